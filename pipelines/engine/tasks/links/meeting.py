"""What the links of operators share at which rows of several sides meet, or that make rows of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import TIME, kinds
from pipelines.engine.columnar.keys import canonical_keys
from pipelines.engine.tasks.link import Link
from pipelines.engine.tasks.payload import PayloadError
from pipelines.operators.rows import NULL, Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipelines.flows.model import Stream
    from pipelines.operators.leaving import Leaving
    from pipelines.operators.rows import Longs

NOBODY = -1
SPOKEN = 3
"""How many columns are named of those that differ."""


class MeetingLink(Link):
    """Rows of several sides; event ids are of one block, for what is open is among the held rows."""

    def _taken_in(self, fresh: pa.Table) -> int:
        return int(pc.sum(pc.not_equal(fresh["kind"], "cti")).as_py() or 0)

    def _event_ids(self, table: pa.Table) -> Longs:
        ids = np.zeros(table.num_rows, dtype=np.int64)
        edges = np.flatnonzero(np.isin(kinds(table["kind"]), (Kind.START, Kind.END)))
        if not len(edges):
            return ids
        taken, first = table.take(pa.array(edges)), 1
        port = self._ports(taken)
        for side, column in enumerate(self.stream.event_ids):
            mine = np.flatnonzero(port == side)
            if column and len(mine):
                found = self._named(taken.take(pa.array(mine)), column)
                ids[edges[mine]] = first + found
                first += int(found.max(initial=-1)) + 1
        return ids

    def _named(self, edges: pa.Table, column: str) -> Longs:
        """Number edges by scope and event id; a null is an id like any other."""
        found = codes(edges, (*self.stream.by, column))
        if (found >= 0).all():
            return found
        scopes = codes(edges, self.stream.by) if self.stream.by else np.zeros(len(found), dtype=np.int64)
        return np.where(found < 0, found.max() + 1 + scopes, found)


class ResultLink(MeetingLink):
    """Results that are rows of nobody's: under `due_at` the scan says what else they were made of."""

    def _due(self, out: Leaving, table: pa.Table) -> pa.Array:  # noqa: ARG002 - as every link is asked
        return pa.nulls(len(out.src), TIME)

    def _made_of(self, out: Leaving) -> Longs:
        """Give what the scan says of each row that leaves; NOBODY where it is no result."""
        return np.where(out.due_at == NULL, NOBODY, out.due_at)

    def _without_identity(self, rows: int) -> dict[str, pa.Array]:
        """Give the columns that say which landed row a row is."""
        return {"landed_at": pa.nulls(rows, TIME), "landed_place": pa.nulls(rows, pa.int64())}


def same_columns(stream: Stream, inputs: Sequence[pa.Schema]) -> pa.Schema:
    """Give the columns of all sides, which are the same.

    Raises:
        PayloadError: they are not.
    """
    first = inputs[0]
    for name, other in zip(stream.inputs[1:], inputs[1:], strict=True):
        strange = [field for field in first if field not in list(other)] + [f for f in other if f not in list(first)]
        if strange:
            sides = {stream.inputs[0]: first, name: other}
            columns = [_apart(column, sides) for column in dict.fromkeys(field.name for field in strange)]
            differ = ", ".join(columns[:SPOKEN]) + (f" and {len(columns) - SPOKEN} more" if columns[SPOKEN:] else "")
            kind = "an interleave" if stream.operator == "interleave" else f"a {stream.operator}"
            problem = f"the sides of {kind} must have the same columns and types; `{stream.inputs[0]}` and `{name}` "
            remedy = "project one of them first (a key stays as it is: all need one; `rename:` of a source names it)"
            raise PayloadError(stream.name, problem + f"differ in {differ}", remedy)
    return first


def _apart(column: str, sides: Mapping[str, pa.Schema]) -> str:
    """Say in what two sides differ: one has a column alone, or each of another type."""
    having = {name: str(schema.field(column).type) for name, schema in sides.items() if column in schema.names}
    if len(having) == 1:
        return f"`{column}` (only `{next(iter(having))}` has it)"
    return f"`{column}` ({' and '.join(having.values())})"


def codes(table: pa.Table, names: Sequence[str]) -> Longs:
    """Number rows by the values of some columns, densely; -1 where one of them is null."""
    spelled = canonical_keys([table[name].combine_chunks() for name in names])
    encoded = (
        spelled.dictionary_encode() if isinstance(spelled, pa.Array) else spelled.combine_chunks().dictionary_encode()
    )
    return np.asarray(pc.fill_null(encoded.indices.cast(pa.int64()), -1), dtype=np.int64)
