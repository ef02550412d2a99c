"""The link of a merge whose inputs have CTIs: those that name no port come to all, and the merge makes its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import spelled_as
from pipelines.engine.tasks.link import Link

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.flows.model import Stream


class MergeLink(Link):
    """Rows of all ports; CTIs are taken in, and made anew where they bind all that comes."""

    @classmethod
    def of(cls, stream: Stream) -> type[Link]:
        """Give this class to a merge of streams with CTIs, and to others what every operator has."""
        return Link if stream.policy.promises is None else cls

    @property
    def held_count(self) -> int:
        """Count the rows that wait and that have to be accounted for."""
        return _no_ctis(self._held)

    def _taken_in(self, fresh: pa.Table) -> int:
        return _no_ctis(fresh)

    def _joined(self, inputs: Sequence[pa.Table]) -> pa.Table:
        return super()._joined([self._at_every_port(table) for table in inputs])

    def _at_every_port(self, table: pa.Table) -> pa.Table:
        """Have CTIs that name no value of the column of ports, and so bind all, come once to each."""
        ports = self.stream.ports
        if ports is None or ports.column is None or not self.stream.policy.promises:
            return table
        column = table[ports.column]
        bare = np.asarray(pc.and_(pc.equal(table["kind"], "cti"), pc.is_null(column)))
        if not bare.any():
            return table
        times = np.where(bare, len(ports), 1)
        rows = np.repeat(np.arange(table.num_rows), times)
        # Within one row's copies: the place of the port.
        place = np.arange(len(rows)) - np.repeat(np.cumsum(times) - times, times)
        told = spelled_as(ports.values, column.type).take(pa.array(place))
        named = pc.if_else(pa.array(bare[rows]), told, column.take(pa.array(rows)))
        return table.take(pa.array(rows)).set_column(table.column_names.index(ports.column), ports.column, named)


def _no_ctis(rows: pa.Table) -> int:
    return int(pc.sum(pc.not_equal(rows["kind"], "cti")).as_py() or 0)
