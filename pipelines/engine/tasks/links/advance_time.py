"""The link of advance time: where it imports, it reads another stream's CTIs, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import RESERVED, longs, ticks
from pipelines.engine.tasks.link import Link
from pipelines.engine.tasks.payload import SIDE

if TYPE_CHECKING:
    from pipelines.flows.model import Stream
    from pipelines.operators.rows import Longs

NOBODY = -1


class AdvanceTimeLink(Link):
    """Advance time under the CTIs of another stream; of that one nothing else is taken, nor accounted for."""

    @classmethod
    def of(cls, stream: Stream) -> type[Link]:
        """Give this class to a stream that imports, and to others what every operator has."""
        return cls if len(stream.inputs) > 1 else Link

    def _of_side(self, table: pa.Table, port: int) -> pa.Table:
        if port == 0:
            return table
        promises = table.filter(pc.equal(table["kind"], "cti"))
        taken = {*RESERVED, *self.stream.by, *self._beside(promises)}
        return promises.select([name for name in promises.column_names if name in taken])

    def _taken_in(self, fresh: pa.Table) -> int:
        return int((longs(fresh[SIDE]) == 0).sum())

    def _key_ids(self, table: pa.Table) -> Longs:
        """Give the id of each row's key; CTIs that bind every key have none."""
        if not self.everywhere:
            return self.keys.ids(table)
        own = longs(table[SIDE]) == 0
        ids = np.full(table.num_rows, NOBODY, dtype=np.int64)
        ids[own] = self.keys.ids(table.filter(pa.array(own)))
        return ids

    everywhere = False
    """Whether the CTIs that are imported bind every key."""

    def bind(self, sent: pa.Table | None) -> None:
        """Know the newest CTI of a whole stream that was imported before the span.

        Args:
            sent: the carry of the stream that sends them; None where it has none.
        """
        self.everywhere = True
        if sent is not None and sent.num_rows:
            self.operator.bound[0] = ticks(sent["promised" if "promised" in sent.column_names else "cti"])[0]
