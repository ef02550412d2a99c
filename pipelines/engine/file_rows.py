"""What one file that arrived holds: rows that can be read, and those that cannot, with their bytes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pipelines.engine.csv_feed import UNREADABLE
from pipelines.engine.landed_types import check_timezones, landed_column, landed_type, told_unreadable, unreadable
from pipelines.engine.landing_errors import FeedUnreadableError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.operators.rows import Longs

DROPPED, NOTED = "dropped", "noted"


@dataclass(frozen=True, kw_only=True)
class Line:
    """A ledger line of the landing that stands for a row, or for a file, that has no payload."""

    number: int
    """Of the row, from 1, in its file; the place in its instant once it arrives."""
    reason: str
    action: str
    raw: bytes
    problem: str


@dataclass(frozen=True, kw_only=True)
class FileRows:
    """A file that was read."""

    rows: pa.Table
    """The declared columns and UNREADABLE, in the file's order."""
    numbers: Longs
    """Number of each of these rows in the file, from 1; those that are lines have theirs."""
    count: int
    """How many rows the file has, readable or not."""
    lines: tuple[Line, ...] = field(default=())


def with_unreadable(schema: pa.Schema) -> pa.Schema:
    """Give the columns of FileRows."""
    return schema.append(pa.field(UNREADABLE, pa.string()))


def check_columns(file: str, wanted: Sequence[str], came: Sequence[str], kind: str) -> None:
    """Refuse a file that has not just the wanted columns, in whatever order.

    Raises:
        FeedUnreadableError: a column is missing, is there twice, or nobody declared it.
    """
    if sorted(wanted) != sorted(came):
        declared = f"{kind} with the columns {', '.join(wanted)}"
        raise FeedUnreadableError(file, declared, f"it has {', '.join(came) or 'none'}")


def read_parquet(file: str, data: bytes, schema: pa.Schema, timezone: str | None) -> FileRows:
    """Read a Parquet file whose columns have the declared names, in any order, and types that become the declared.

    Args:
        file: its name.
        data: its bytes.
        schema: the declared columns, of landed types.
        timezone: of times that carry none.

    Raises:
        FeedUnreadableError: it is no such file.
        TimezoneMissingError: it has times without a timezone, and the feed names none.
    """
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(pa.BufferReader(data))
        check_columns(file, schema.names, table.schema.names, "Parquet")
        for column in table.schema:
            check_timezones(file, column.name, column.type, timezone)
        rows = pa.Table.from_batches(
            [_landed(file, batch, schema, timezone) for batch in table.to_batches()], with_unreadable(schema)
        )
    except (pa.ArrowException, OSError) as error:
        raise FeedUnreadableError(file, "Parquet of the declared columns", str(error)) from error
    return FileRows(rows=rows, numbers=np.arange(1, rows.num_rows + 1), count=rows.num_rows)


def _landed(file: str, batch: pa.RecordBatch, schema: pa.Schema, timezone: str | None) -> pa.RecordBatch:
    columns, lost = [], {}
    for wanted in schema:
        came = batch.column(wanted.name)
        columns.append(landed_column(came, landed_type(file, wanted.name, came.type), timezone))
        text = unreadable(came, columns[-1])
        if text is not None:
            lost[wanted.name] = text
        if columns[-1].type != wanted.type:
            columns[-1] = columns[-1].cast(wanted.type)
    told = told_unreadable(lost, batch.num_rows)
    return pa.RecordBatch.from_arrays([*columns, told], schema=with_unreadable(schema))
