"""The carry as tables: what an operator must remember from one span to the next, one typed column a field."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columns import longs, ticks, times
from pipelines.operators.scan import Part, Per

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.operators.rows import Longs, Records

CHANGE = pa.field("change", pa.string())
COMMIT = pa.field("commit", pa.int64())
POSITION = pa.field("position", pa.int64())
BASE = "base"
NOT_HASHED = frozenset({"commit", "change"})


def _extra(part: Part, event: pa.Field | None) -> list[pa.Field]:
    if part.per is Per.PORT:
        return [pa.field("port", pa.int64())]
    return [pa.field("event", event.type)] if part.per is Per.EVENT and event is not None else []


def part_schema(part: Part, key: Sequence[pa.Field], event: pa.Field | None) -> pa.Schema:
    """Give the schema of one carry part.

    Args:
        part: the operator's declaration.
        key: the key columns of the operator's scope.
        event: the event id column, for parts that stand per event.
    """
    record = part.record.names or ()
    fields = [pa.field(name, ticks_type(part, name)) for name in record]
    return pa.schema([COMMIT, CHANGE, *key, *_extra(part, event), *fields])


def ticks_type(part: Part, field: str) -> pa.DataType:
    """Give the table's type of one field: an instant or a number."""
    return pa.timestamp("us", tz="UTC") if field in part.instants else pa.int64()


def held_schema(rows: pa.Schema) -> pa.Schema:
    """Give the schema of the rows an operator holds, in the order in which they came."""
    return pa.schema([COMMIT, CHANGE, POSITION, *(field for field in rows if field.name != "commit")])


def from_records(part: Part, records: Records) -> list[pa.Array]:
    """Turn records into columns, instants into timestamps."""
    columns = []
    for name in part.record.names or ():
        values = np.ascontiguousarray(records[name])
        columns.append(times(values) if name in part.instants else pa.array(values))
    return columns


def to_records(part: Part, table: pa.Table) -> Records:
    """Turn columns back into records."""
    records = np.zeros(table.num_rows, dtype=part.record)
    for name in part.record.names or ():
        records[name] = ticks(table[name]) if name in part.instants else longs(table[name])
    return records


def part_table(  # noqa: PLR0913 - one table, column by column
    part: Part, records: Records, schema: pa.Schema, commit: int, key: pa.Table, extra: Sequence[pa.Array]
) -> pa.Table:
    """Give the table of one carry part, a base of commit `commit`.

    Args:
        part: the operator's declaration.
        records: one record a row.
        schema: from `part_schema`.
        commit: the number that the rows carry.
        key: key columns, one row a record.
        extra: the port or event column, where the part has one.
    """
    rows = len(records)
    columns = [pa.array(np.full(rows, commit)), pa.array([BASE]).take(pa.array(np.zeros(rows, dtype=np.int64)))]
    columns += [column.combine_chunks() for column in key.columns]
    return pa.Table.from_arrays([*columns, *extra, *from_records(part, records)], schema=schema)


def held_table(rows: pa.Table, schema: pa.Schema, commit: int) -> pa.Table:
    """Give held rows as a carry table that keeps their order as data."""
    count = rows.num_rows
    table = rows.drop_columns(["commit"])
    table = table.add_column(0, POSITION, pa.array(np.arange(count)))
    table = table.add_column(0, CHANGE, pa.array([BASE]).take(pa.array(np.zeros(count, dtype=np.int64))))
    return table.add_column(0, COMMIT, pa.array(np.full(count, commit))).cast(schema)


def held_rows(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Give the rows back that `held_table` kept, in their order."""
    ordered = table.take(pc.sort_indices(table, sort_keys=[("position", "ascending")]))
    return ordered.drop_columns(["change", "position"]).select(schema.names).cast(schema)


def group_major(groups: Longs, ports: Longs, width: int, records: Records) -> Records:
    """Lay records of (group, port) out as the merge reads them, one after the other."""
    laid = np.zeros(len(records), dtype=records.dtype)
    laid[groups * width + ports] = records
    return laid
