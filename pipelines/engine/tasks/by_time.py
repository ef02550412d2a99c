"""The order of a stream that is numbered per key where it is read under a shorter key: within an arrival, by time.

Rows of one reading share an arrival. Key by key, as they are numbered, whoever reads them together would see one key's
whole backlog before the next key's first row, and call the second late. So they stand by how far each key's time has
come, and the keys take turns as they did when the rows were made. No key's own rows change places.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import kinds, ticks
from pipelines.engine.files.ordered import order_of
from pipelines.flows.model import main_of
from pipelines.operators.rows import INFINITY, NULL, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from pipelines.flows.model import Flow, Stream
    from pipelines.operators.rows import Longs

DAY = 86_400_000_000
MAX_AHEAD = "max_ahead"
"""The setting of an operator that says how far a row's time may run ahead of its arrival and be believed."""


def numbering(flow: Flow, name: str) -> tuple[str, ...]:
    """Give the key by which a stream is numbered; sources are numbered stream-wide."""
    name = main_of(name)
    return () if name in flow.sources else flow.streams[name].by


@dataclass(frozen=True, kw_only=True)
class ByTime:
    """How a reader sees a stream whose keys meet in it.

    Args:
        key: by which the stream is numbered; at least one column.
        max_ahead: ticks by which a row's time may be past its arrival and count; None: it always counts.
    """

    key: tuple[str, ...]
    max_ahead: int | None

    def laid(self, rows: pa.Table) -> pa.Table:
        """Put rows in the reader's order: (arrival, time, key, place).

        Args:
            rows: in the order of the stream, (arrival, key, place); all rows of an arrival are among them.
        """
        order = order_of(ticks(rows["arrival"]), lambda tied: (self._time(rows.take(tied)),))
        return rows if order is None else rows.take(order)

    def _time(self, rows: pa.Table) -> Longs:
        return highest_times(rows, self.key, self.max_ahead)


def highest_times(rows: pa.Table, key: Sequence[str], max_ahead: int | None) -> Longs:
    """Give, for each row, the highest time so far in its arrival and key, in ticks; NULL where nothing has one.

    Args:
        rows: in order, those of one arrival and key one behind the other.
        key: columns of it; () where all rows of an arrival count together.
        max_ahead: ticks by which a row's time may be past its arrival and count; None: it always counts.
    """
    values, ranks = np.unique(_moved_to(rows, max_ahead), return_inverse=True)
    begins = np.ones(rows.num_rows, dtype=np.int64)
    begins[1:] = np.diff(ticks(rows["arrival"])) != 0
    for name in key:
        begins[1:] |= np.asarray(pc.not_equal(rows[name][1:], rows[name][:-1]))
    before = np.cumsum(begins) * len(values)
    highest: Longs = values[np.maximum.accumulate(before + ranks) - before]
    return highest


def _moved_to(rows: pa.Table, max_ahead: int | None) -> Longs:
    """Give the instant to which each row moves its key's time; NULL where it moves nothing."""
    kind, arrival = kinds(rows["kind"]), ticks(rows["arrival"])
    time = np.where(kind == Kind.END, ticks(rows["event_end"]), ticks(rows["event_time"]))
    believed = np.isin(kind, (Kind.TIMER, Kind.CTI)) | (time == NULL)
    bound = INFINITY if max_ahead is None else np.minimum(arrival, INFINITY - max_ahead) + max_ahead
    return np.where(believed | (time <= bound), time, NULL)


def met_by_time(flow: Flow, reader: Stream, name: str) -> ByTime | None:
    """Say how a reader sees one of its inputs; None: as the stream is numbered.

    A merge whose ports each have one key of a group orders its ports itself.

    Args:
        flow: of both.
        reader: the stream that reads.
        name: of its input.
    """
    key = numbering(flow, name)
    met = set(key) - set(reader.by)
    port = reader.ports.column if reader.operator == "merge" and reader.ports else None
    return ByTime(key=key, max_ahead=getattr(reader.policy, MAX_AHEAD, DAY)) if met - {port} else None
