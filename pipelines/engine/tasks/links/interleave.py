"""The link of an interleave: rows of all sides, laid in turn before the scan numbers them anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import longs
from pipelines.engine.tasks.links.dispatch import DealingLink
from pipelines.engine.tasks.links.meeting import same_columns
from pipelines.engine.tasks.payload import SIDE
from pipelines.engine.tasks.turns import in_turn
from pipelines.operators.dispatch import NOWHERE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.flows.model import Stream


class InterleaveLink(DealingLink):
    """Rows of all sides, which have the same columns; CTIs are made anew of those that come."""

    def _taken_in(self, fresh: pa.Table) -> int:
        return int(pc.sum(pc.not_equal(fresh["kind"], "cti")).as_py() or 0)

    def _ordered(self, table: pa.Table) -> pa.Table:
        policy: Any = self.stream.policy
        if (policy.dealt_of or policy.dealt_numeric) and table.num_rows:
            table = self._of_owners(table, policy)
        if self._turned is None or not table.num_rows:
            return table
        met = self._turned.meetings[self.stream.name]
        order = in_turn(table, met, self._turned, longs(table[SIDE]), self.keys.ids(table))
        return table.take(pa.array(order))

    def _of_owners(self, table: pa.Table, policy: Any) -> pa.Table:  # noqa: ANN401 - of an interleave
        """Leave out the CTIs of keys that come by another side: that one has them too, behind what is to come first."""
        ctis = np.asarray(pc.equal(table["kind"], "cti"))
        found = self._instances(policy.dealt_of, policy.dealt_numeric, policy.ports, table.filter(pa.array(ctis)))
        kept = ~ctis
        kept[ctis] = longs(table[SIDE])[ctis] == np.where(found == NOWHERE, 0, found)
        return table.filter(pa.array(kept))

    @staticmethod
    def made(stream: Stream, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """Give its payload columns; see `Link.made`."""
        return same_columns(stream, inputs)
