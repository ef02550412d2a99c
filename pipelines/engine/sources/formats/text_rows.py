"""Lines of a socket and values of a topic: each stands alone, and one that cannot be read is told with its bytes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pipelines.engine.landing.errors import FeedUnreadableError
from pipelines.engine.landing.file_rows import DROPPED, ColumnTerms, FileRows, Line, with_unreadable
from pipelines.engine.sources.formats.csv_rows import read_csv_records
from pipelines.engine.sources.formats.json_rows import read_objects

if TYPE_CHECKING:
    from pipelines.flows.feeds.csv_text import LiveText


def read_texts(where: str, body: list[bytes], schema: pa.Schema, spec: LiveText, terms: ColumnTerms) -> FileRows:
    """Read JSON objects or CSV records that have no header.

    Args:
        where: what they stand in, as a person calls it.
        body: the texts; none is blank.
        schema: the declared columns, for CSV in the records' order.
        spec: format and, for CSV, delimiter and nulls; timezone of times that carry none.
        terms: what becomes of columns that are not the declared ones.
    """
    if spec.format == "json":
        return read_objects(body, schema, spec.timezone, terms)
    return _halved(where, body, schema, spec, terms)


def _halved(where: str, body: list[bytes], schema: pa.Schema, spec: LiveText, terms: ColumnTerms) -> FileRows:
    """Read records; where one of them spoils the others, find it by halves."""
    try:
        return read_csv_records(where, schema.names, body, schema, spec, terms)
    except FeedUnreadableError as error:
        if len(body) == 1:
            line = Line(number=1, reason="unreadable_row", action=DROPPED, raw=body[0], problem=error.problem)
            nothing = np.zeros(0, dtype=np.int64)
            return FileRows(rows=with_unreadable(schema).empty_table(), numbers=nothing, count=1, lines=(line,))
    half = len(body) // 2
    first, rest = (_halved(where, part, schema, spec, terms) for part in (body[:half], body[half:]))
    moved = tuple(replace(line, number=line.number + half) for line in rest.lines)
    return FileRows(
        rows=pa.concat_tables([first.rows, rest.rows]),
        numbers=np.concatenate([first.numbers, rest.numbers + half]),
        count=len(body),
        lines=(*first.lines, *moved),
    )
