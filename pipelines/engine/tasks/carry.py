"""The carry as tables: what an operator must remember from one span to the next, one typed column a field."""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import longs, ticks, times
from pipelines.operators.scan import CarryPart, Per

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pipelines.operators.rows import Longs, Records

CHANGE = pa.field("change", pa.string())
COMMIT = pa.field("commit", pa.int64())
POSITION = pa.field("position", pa.int64())
NOT_HASHED = frozenset({"commit", "change", "position"})
"""Held rows have their order in their arrival, key and place; `position` only names them within one run."""


class CarryChange(StrEnum):
    """What a row of a carry table says of the record it names."""

    BASE = "base"
    """It is so, and whatever is not among the base's rows is not there."""
    SET = "set"
    """It is so from this commit on."""
    GONE = "gone"
    """It is no longer there."""


class Writes(Enum):
    """How much of its carry a commit writes."""

    BASE = "base"
    """All of it: an interval."""
    DELTA = "delta"
    """What changed since its parent: an epoch."""
    BOTH = "both"
    """Both, so that whoever comes later need not look further back."""


def _extra(part: CarryPart, event: pa.Field | None) -> list[pa.Field]:
    if part.per is Per.PORT:
        return [pa.field("port", pa.int64())]
    return [pa.field("event", event.type)] if part.per is Per.EVENT and event is not None else []


def part_schema(part: CarryPart, key: Sequence[pa.Field], event: pa.Field | None) -> pa.Schema:
    """Give the schema of one carry part.

    Args:
        part: the operator's declaration.
        key: the key columns of the operator's scope.
        event: the event id column, for parts that stand per event.
    """
    record = part.record.names or ()
    fields = [pa.field(name, ticks_type(part, name)) for name in record]
    return pa.schema([COMMIT, CHANGE, *key, *_extra(part, event), *fields])


def ticks_type(part: CarryPart, field: str) -> pa.DataType:
    """Give the table's type of one field: an instant or a number."""
    return pa.timestamp("us", tz="UTC") if field in part.instants else pa.int64()


def held_schema(rows: pa.Schema) -> pa.Schema:
    """Give the schema of the rows an operator holds, in the order in which they came."""
    return pa.schema([COMMIT, CHANGE, POSITION, *(field for field in rows if field.name != "commit")])


def kept(part: CarryPart, records: Records) -> NDArray[np.bool_]:
    """Say of each record of a part whether the carry keeps it: of a part that stands for a few, not the others."""
    if part.per is Per.EVENT:
        return np.asarray(records["status"] != 0)
    if part.per is Per.SOME_KEY:
        return np.asarray(records != part.fresh(1))
    return np.ones(len(records), dtype=np.bool_)


def from_records(part: CarryPart, records: Records) -> list[pa.Array]:
    """Turn records into columns, instants into timestamps."""
    columns = []
    for name in part.record.names or ():
        values = np.ascontiguousarray(records[name])
        columns.append(times(values) if name in part.instants else pa.array(values))
    return columns


def to_records(part: CarryPart, table: pa.Table) -> Records:
    """Turn columns back into records."""
    records = np.zeros(table.num_rows, dtype=part.record)
    for name in part.record.names or ():
        records[name] = ticks(table[name]) if name in part.instants else longs(table[name])
    return records


def part_table(  # noqa: PLR0913 - one table, column by column
    part: CarryPart, records: Records, schema: pa.Schema, commit: int, change: CarryChange, names: Sequence[pa.Array]
) -> pa.Table:
    """Give rows of one carry part.

    Args:
        part: the operator's declaration.
        records: one record a row.
        schema: from `part_schema`.
        commit: the number that the rows carry.
        change: what the rows say.
        names: the columns that name the records: keys, and the port or event.
    """
    return pa.Table.from_arrays(
        [*_stamps(len(records), commit, change), *names, *from_records(part, records)], schema=schema
    )


def _stamps(rows: int, commit: int, change: CarryChange) -> list[pa.Array]:
    return [pa.array(np.full(rows, commit)), pa.repeat(change.value, rows)]


def stamped(rows: pa.Table, commit: int, change: CarryChange) -> pa.Table:
    """Give rows the columns that every carry table begins with."""
    stamps = _stamps(rows.num_rows, commit, change)
    return pa.Table.from_arrays([*stamps, *rows.columns], schema=pa.schema([COMMIT, CHANGE, *rows.schema]))


def held_table(rows: pa.Table, positions: Longs, schema: pa.Schema, commit: int, change: CarryChange) -> pa.Table:
    """Give held rows as a carry table, each named by its position."""
    table = rows.drop_columns(["commit"]).add_column(0, POSITION, pa.array(positions))
    return stamped(table, commit, change).cast(schema)


def held_rows(table: pa.Table, schema: pa.Schema) -> tuple[pa.Table, Longs]:
    """Give the rows back that `held_table` kept, in their order, and their positions."""
    ordered = table.take(pc.sort_indices(table, sort_keys=[("position", "ascending")]))
    rows = ordered.drop_columns(["change", "position"]).select(schema.names).cast(schema)
    return rows, longs(ordered["position"])


def group_major(groups: Longs, ports: Longs, width: int, records: Records) -> Records:
    """Lay records of (group, port) out as the merge reads them, one after the other."""
    laid = np.zeros(len(records), dtype=records.dtype)
    laid[groups * width + ports] = records
    return laid
