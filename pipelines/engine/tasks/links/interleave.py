"""The link of an interleave: rows of all sides, laid in turn before the scan numbers them anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import longs
from pipelines.engine.tasks.link import Link
from pipelines.engine.tasks.links.meeting import same_columns
from pipelines.engine.tasks.payload import SIDE
from pipelines.engine.tasks.turns import in_turn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.flows.model import Stream


class InterleaveLink(Link):
    """Rows of all sides, which have the same columns; CTIs are made anew of those that come."""

    def _taken_in(self, fresh: pa.Table) -> int:
        return int(pc.sum(pc.not_equal(fresh["kind"], "cti")).as_py() or 0)

    def _ordered(self, table: pa.Table) -> pa.Table:
        if self._turned is None or not table.num_rows:
            return table
        met = self._turned.meetings[self.stream.name]
        order = in_turn(table, met, self._turned, longs(table[SIDE]), self.keys.ids(table))
        return table.take(pa.array(order))

    @staticmethod
    def made(stream: Stream, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """Give its payload columns; see `Link.made`."""
        return same_columns(stream, inputs)
