"""What a recorded feed says of single rows: why one cannot land, and what it brings that nobody declared.

Such a row keeps its place in the feed, so that it is told at the instant at which it came in, and no other row moves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pipelines.engine.landing.column_errors import Breach
from pipelines.engine.landing.file_rows import DROPPED, NOTED, Line
from pipelines.engine.landing.undeclared import NOTHING, Undeclared, coalesced, retyped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy.typing as npt

TOLD = "<told>"
"""The column beside the feed's own that lists what the ledger is told of a row; one that is dropped does not land."""
TOLD_TYPE = pa.list_(
    pa.struct(
        [
            ("reason", pa.string()),
            ("action", pa.string()),
            ("where", pa.string()),
            ("problem", pa.string()),
            ("raw", pa.binary()),
            ("breach", pa.list_(pa.string())),
        ]
    )
)
NEW = "<new "
"""What the name of a column that nobody declared begins with, before its kind and own name."""
FILE = b"pulseline.file"
"""Under this a batch's schema names the file that its rows come from."""
FIELDS = "where", "reason", "action", "problem", "raw", "breach"


def told_column(lines: Mapping[int, Sequence[Line]], rows: int) -> pa.Array:
    """Lay out what is told, by row from 0."""
    return pa.array([_spelt(lines[row]) if row in lines else None for row in range(rows)], TOLD_TYPE)


def _spelt(lines: Sequence[Line]) -> list[dict[str, object]]:
    return [
        {name: getattr(line, name) for name in FIELDS} | {"breach": line.breach and list(line.breach)} for line in lines
    ]


def told_line(where: str, line: Line) -> Line:
    """Give a line that says where its row stands."""
    return line.at(line.number, where)


def note_new(where: str, columns: Mapping[str, str]) -> list[Line]:
    """Tell of the columns of a file that nobody declared, beside its first row.

    Args:
        where: the file.
        columns: kind by name.
    """
    from pipelines.engine.columnar.columns import canonical_json

    return [
        Line(
            number=1,
            reason="new_column",
            action=NOTED,
            raw=canonical_json({"column": name, "file": where, "type": kind}).encode(),
            problem=f"{where}: `{name}` is no declared column; it lands as {kind}",
            where=where,
        )
        for name, kind in columns.items()
    ]


def lines_told(rows: pa.Table) -> list[tuple[int, Line]]:
    """Give what is told of rows, with the number of each row, from 0."""
    if TOLD not in rows.schema.names:
        return []
    column = rows[TOLD].combine_chunks()
    found = []
    for row in np.flatnonzero(np.asarray(column.is_valid())).tolist():
        for said in column[row].as_py():
            breach = Breach(*said["breach"]) if said["breach"] else None
            found.append((row, Line(**said | {"number": row + 1, "breach": breach})))
    return found


def is_lost(rows: pa.Table) -> npt.NDArray[np.bool_]:
    """Say of each row whether it cannot land."""
    lost: npt.NDArray[np.bool_] = np.zeros(rows.num_rows, dtype=bool)
    lost[[row for row, line in lines_told(rows) if line.action == DROPPED]] = True
    return lost


def is_empty_file(rows: pa.Table) -> npt.NDArray[np.bool_]:
    """Say of each row whether it stands for a file that has not one byte."""
    return _stands_for_file(rows, lambda raw: not raw)


def is_blank_file(rows: pa.Table) -> npt.NDArray[np.bool_]:
    """Say of each row whether it stands for a file that has nothing but white space."""
    return _stands_for_file(rows, lambda raw: not raw.strip())


def _stands_for_file(rows: pa.Table, of: Callable[[bytes], bool]) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = np.zeros(rows.num_rows, dtype=bool)
    found[[row for row, line in lines_told(rows) if line.reason == "unreadable_file" and of(line.raw)]] = True
    return found


def new_name(kind: str, name: str) -> str:
    """Name the column beside a feed's own that holds values nobody declared."""
    return f"{NEW}{kind}> {name}"


def is_beside(name: str) -> bool:
    """Say whether a column stands beside the feed's own."""
    return name == TOLD or name.startswith(NEW)


def undeclared_of(rows: pa.Table) -> dict[str, Undeclared]:
    """Give the columns that nobody declared, where these rows have values of them, by name."""
    parts: dict[str, list[Undeclared]] = {}
    for column in (name for name in rows.schema.names if name.startswith(NEW)):
        kind, _, name = column.removeprefix(NEW).partition("> ")
        parts.setdefault(name, []).append(retyped(Undeclared(kind, rows[column].combine_chunks())))
    joined = {name: coalesced(columns) for name, columns in sorted(parts.items())}
    return {name: column for name, column in joined.items() if column.kind != NOTHING}


def in_file(batch: pa.RecordBatch, file: str) -> pa.RecordBatch:
    """Say which file the rows of a batch come from."""
    return batch.replace_schema_metadata({FILE: file.encode()})


def file_of(batch: pa.RecordBatch) -> bytes:
    """Say which file the rows of a batch come from; empty where they come from none."""
    found: bytes = (batch.schema.metadata or {}).get(FILE, b"")
    return found


def stacked(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> pa.Table:
    """Put batches under one another that have these columns, and perhaps some beside them."""
    tables = [pa.Table.from_batches([batch]).replace_schema_metadata(None) for batch in batches]
    return pa.concat_tables([schema.empty_table(), *tables], promote_options="default")


def alone(schema: pa.Schema, line: Line) -> pa.RecordBatch:
    """Give the one row that stands for a file, or the rest of one, that cannot be read."""
    nothing = [pa.nulls(1, field.type) for field in schema]
    return pa.RecordBatch.from_arrays([*nothing, told_column({0: [line]}, 1)], schema=beside(schema))


def beside(schema: pa.Schema) -> pa.Schema:
    """Give columns with TOLD beside them."""
    return schema.append(pa.field(TOLD, TOLD_TYPE))
