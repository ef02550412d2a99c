"""Timestamps of one stream in a few files, the same on every machine, and what CTIs must make of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from pipelines.engine.columnar.columns import ticks, times
from pipelines.flows.reading import read_flow
from pipelines.jobs.bench.generated import APART, LATE_SHARE, SEED
from pipelines.operators.rows import TICKS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pipelines.flows.model import Flow
    from pipelines.operators.rows import Longs

FILES = 10
GAPS = 2_001
"""A row is so many ticks after the one before, or less."""
LATEST = 10_000_000
"""A late row is so many ticks before its time, or less."""
BLOCK = 1 << 20
"""Timestamps that are read at once."""
EVENTS = 1_000
DELAY = 5 * TICKS_PER_SECOND
FLOW = f"""\
flow: bench
buckets: 1
sources:
  rows: {{feed: {{parquet: "*.parquet", landing: reference}}, key: device, time: time, arrival: seen}}
streams:
  out: {{advance_time: rows, every: {{events: {EVENTS}}}, delay: {DELAY // TICKS_PER_SECOND}s, late: drop}}
"""


class StampAnswer(NamedTuple):
    """What is asked: a wrong one is no speed."""

    candidates: int
    """Every so many events a CTI may be due."""
    drops: int
    newest: int
    """The newest CTI at each candidate, summed up."""


RIGHT = {10_000_000: StampAnswer(10_000, 44_932, 49_953_919_237_911)}
"""What is right is known beforehand for so many rows; for others it is what NumPy says."""


@dataclass(frozen=True, kw_only=True)
class Stamps:
    """A feed whose order is that of file names and, inside a file, of rows, which is what its column `seen` declares.

    The rows of `device`, `time` and `seen` have one device.
    """

    folder: Path
    rows: int

    @property
    def files(self) -> list[str]:
        """Name the files, in order."""
        return [str(path) for path in sorted(self.folder.glob("*.parquet"))]

    @property
    def flow(self) -> Flow:
        """Read the flow: a CTI every 1,000 events, 5 s behind; what is late is dropped."""
        (self.folder / "flow.yaml").write_text(FLOW)
        return read_flow(self.folder / "flow.yaml", {})

    def spans(self, parts: int) -> list[tuple[int, int]]:
        """Cut the arrivals into so many spans of ticks."""
        return list(pairwise(self.rows * i // parts * APART for i in range(parts + 1)))


def drawn(rows: int) -> Longs:
    """Draw timestamps: they step on by a gap each, and one in a hundred is late."""
    random = np.random.default_rng(SEED)
    stamps = np.cumsum(random.integers(0, GAPS, rows))
    late = random.random(rows) < LATE_SHARE
    stamps[late] -= random.integers(0, LATEST, int(late.sum()))
    return stamps


def record_stamps(folder: Path, rows: int) -> Stamps:
    """Write drawn timestamps as ten Parquet files.

    Args:
        folder: made when it is not there.
        rows: how many.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stamps = drawn(rows)
    for number, (first, last) in enumerate(pairwise(rows * i // FILES for i in range(FILES + 1))):
        device = pa.array(np.zeros(last - first, dtype=np.int64))
        columns = {"device": device, "time": times(stamps[first:last]), "seen": times(np.arange(first, last) * APART)}
        pq.write_table(pa.table(columns), folder / f"{number:02d}.parquet")
    return Stamps(folder=folder, rows=rows)


def read_stamps(files: Sequence[str]) -> Longs:
    """Read the timestamps of files, in order, in ticks."""
    return ticks(pq.read_table(list(files), columns=["time"])["time"])


def blocks_of(files: Sequence[str]) -> Iterator[Longs]:
    """Give the timestamps of files a block at a time, in order; files are read ahead."""
    for batch in ds.dataset(list(files)).to_batches(columns=["time"], batch_size=BLOCK):
        yield ticks(batch["time"])


def answered(rows: int, drops: int, instants: Longs, ordinals: Longs) -> StampAnswer:
    """Give the answer from the CTIs that were sent; a candidate that sent none leaves the newest one as it was.

    Args:
        rows: how many were received.
        drops: how many of them were dropped.
        instants: what each CTI promised, in order.
        ordinals: behind how many rows each CTI was sent.
    """
    candidates = rows // EVENTS
    standing = np.diff(np.append(ordinals // EVENTS, candidates + 1))
    return StampAnswer(candidates, drops, int((instants * standing).sum()))
