"""Rows that benches measure with: made from a fixed seed, the same on every machine."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.engine.columnar.columns import times
from pipelines.flows.reading import read_flow
from pipelines.operators.rows import TICKS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipelines.flows.model import Flow
    from pipelines.operators.rows import Longs

SEED = 7
BEGIN = 1_700_012_345 * TICKS_PER_SECOND
APART = 1_000
"""Ticks from one arrival to the next: a thousand rows a second."""
LATE_SHARE, LATEST = 0.01, 10
"""Share of rows out of order, and by how many seconds at most."""
STRETCHES = 16
"""In every second of so many stretches, the keys with an odd number are silent."""
ROWS_A_TIMER = 20
"""The interval is such that about so many rows come for each timer, however many keys there are."""
CHUNK = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A feed of generated rows: a file `rows.parquet` with `device`, `time`, `seen` and `value`, 32 bytes a row."""

    folder: Path
    rows: int
    keys: int

    @property
    def end(self) -> int:
        """The instant behind the last arrival, in ticks."""
        return BEGIN + self.rows * APART

    def spans(self, parts: int) -> list[tuple[int, int]]:
        """Cut the feed's arrivals into so many spans of ticks."""
        cuts = [BEGIN + self.rows * i // parts * APART for i in range(parts + 1)]
        return list(pairwise(cuts))

    def flow(self, operator: str, buckets: int = 4) -> Flow:
        """Read a flow of one stream `out`, whose operator is spelled in YAML, over this feed.

        Args:
            operator: such as `heartbeat: rows, interval: 20s`.
            buckets: of the landing; 4 unless a flow says otherwise.
        """
        text = (
            f"flow: bench\nbuckets: {buckets}\nsources:\n"
            "  rows: {feed: {parquet: rows.parquet}, key: device, time: time, arrival: seen}\n"
            f"streams:\n  out: {{{operator}}}\n"
        )
        (self.folder / "flow.yaml").write_text(text)
        return read_flow(self.folder / "flow.yaml", {})

    @property
    def interval(self) -> float:
        """Seconds from one multiple to the next, for `ROWS_A_TIMER`."""
        return ROWS_A_TIMER * self.keys * APART / TICKS_PER_SECOND

    def beating(self, buckets: int = 4) -> Flow:
        """Read the flow of one heartbeat."""
        return self.flow(f"heartbeat: rows, interval: {self.interval:.6f}, slack: 5s", buckets)


def record(folder: Path, rows: int, keys: int) -> Recorded:
    """Write generated rows as one Parquet file, a chunk at a time.

    Args:
        folder: made when it is not there.
        rows: how many.
        keys: how many devices.
    """
    folder.mkdir(parents=True, exist_ok=True)
    schema = pa.schema([("device", pa.int64()), ("time", times(_none()).type), ("seen", times(_none()).type)])
    with pq.ParquetWriter(folder / "rows.parquet", schema.append(pa.field("value", pa.float64()))) as writer:
        for table in chunks(rows, keys):
            writer.write_table(table)
    return Recorded(folder=folder, rows=rows, keys=keys)


def chunks(rows: int, keys: int) -> Iterator[pa.Table]:
    """Give generated rows in order of arrival: keys drawn, some rows late, half of the keys silent for stretches."""
    drawn = np.random.default_rng(SEED)
    for first in range(0, rows, CHUNK):
        at = np.arange(first, min(first + CHUNK, rows))
        device = drawn.integers(0, keys, len(at))
        silent = (at * STRETCHES // rows % 2 == 1) & (device % 2 == 1)
        seen = BEGIN + at * APART
        late = np.where(drawn.random(len(at)) < LATE_SHARE, drawn.integers(0, LATEST, len(at)), 0)
        yield pa.table(
            {
                "device": device - silent,
                "time": times(seen - late * TICKS_PER_SECOND),
                "seen": times(seen),
                "value": drawn.normal(size=len(at)),
            }
        )


def _none() -> Longs:
    return np.zeros(0, dtype=np.int64)
