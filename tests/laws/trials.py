"""A flow over feeds in a folder, and runs of it: by any engine, in any cut, with any number of buckets."""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.engine.columnar.columns import times
from pipelines.engine.commits.entry import LEDGER
from pipelines.engine.commits.readers import read_ledger, read_stream
from pipelines.engine.tasks.local import CoreEngine
from pipelines.flows.reading import read_flow
from pipelines.jobs.proofs.parity import table_hashes
from pipelines.jobs.runs.backfill import Backfill, run_backfill

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pipelines.engine.columnar.content import ContentHash
    from pipelines.engine.tasks.stages import Engine
    from pipelines.engine.tasks.task import Done, Task
    from pipelines.flows.model import Flow
    from pipelines.jobs.runs.backfill import Interval, Ran

    Hashes = dict[str, ContentHash]

CORE = CoreEngine()


class ScatteredEngine(CoreEngine):
    """Runs tasks here as if each had a core of its own: stages fall into all their parts, which run in any order."""

    def __init__(self) -> None:
        self.drawn = random.Random(1)  # noqa: S311 - an order

    def cores(self) -> int:
        """Have more than there are tasks."""
        return 1_000

    def run(self, tasks: Sequence[Task]) -> list[Done]:
        """Run them shuffled."""
        return super().run(self.drawn.sample(tasks, len(tasks)))


SCATTERED = ScatteredEngine()
SECOND = 1_000_000
MINUTE, HOUR = 60 * SECOND, 3_600 * SECOND
BEGIN = int(dt.datetime(2024, 1, 1, tzinfo=dt.UTC).timestamp()) * SECOND

PARCELS = """\
flow: parcels
every: 1h
buckets: 3
sources:
  parcels: {feed: {parquet: parcels.parquet}, key: depot, time: sent, arrival: seen}
streams:
  beating: {heartbeat: parcels, interval: 5m, slack: 30s}
  ordered: {merge: beating, ports_by: {depot: [east, north, south, west]}}
  punctual: {advance_time: ordered, every: {events: 7}, delay: 10m, late: divert}
"""
DEPOTS = ("east", "north", "south", "west", "moor")
"""The last one is no port of the merge."""
HOURS = 3
SPANS = [(BEGIN + hour * HOUR, BEGIN + (hour + 1) * HOUR) for hour in range(HOURS)]
WHOLE = [(SPANS[0][0], SPANS[-1][1])]


def parcels(rows: int = 200, seed: int = 1) -> pa.Table:
    """Give a random feed of three hours: ties in arrival, parcels hours late, some that were never seen or sent.

    Args:
        rows: how many.
        seed: of the random numbers; the same seed gives the same rows.
    """
    drawn = np.random.default_rng(seed)
    seen = BEGIN + np.sort(drawn.integers(0, HOURS * 360, rows)) * 10 * SECOND
    late = np.where(
        drawn.random(rows) < 0.1, drawn.integers(0, 90, rows) * MINUTE, drawn.integers(0, 60, rows) * SECOND
    )
    sent = seen - late
    columns = {
        "number": pa.array(np.arange(rows)),
        "depot": pa.array(np.array(DEPOTS)[drawn.choice(len(DEPOTS), rows, p=[0.24, 0.24, 0.24, 0.24, 0.04])]),
        "sent": with_nulls(times(sent), drawn.random(rows) < 0.03),
        "seen": with_nulls(times(seen), drawn.random(rows) < 0.03),
        "weight": pa.array(np.where(drawn.random(rows) < 0.1, np.nan, drawn.normal(size=rows))),
        "note": with_nulls(pa.array([f"parcel {number % 7}" for number in range(rows)]), drawn.random(rows) < 0.2),
    }
    return pa.table(columns)


def with_nulls(column: pa.Array, missing: np.ndarray) -> pa.Array:
    """Take out the values where `missing` is true."""
    return column.take(pa.array(np.arange(len(column)), mask=missing))


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A flow, the folder with its feeds, and the runs that tests make of it."""

    flow: Flow
    base: Path
    home: Path | None = None
    """Where its runs lie; beside its feeds unless given."""

    def root(self, run: str) -> Path:
        """Give the root of a run."""
        return (self.home or self.base / "runs") / run

    def wanted(self, run: str, engine: Engine = CORE, buckets: int | None = None) -> Backfill:
        """Give a run as the job takes it."""
        flow = replace(self.flow, buckets=buckets or self.flow.buckets)
        return Backfill(flow=flow, root=self.root(run), base=self.base, engine=engine)

    def ran(
        self, run: str, spans: Sequence[Interval], engine: Engine = CORE, *, buckets: int | None = None
    ) -> list[Ran]:
        """Backfill spans and give the commits."""
        return run_backfill(self.wanted(run, engine, buckets), spans)

    def run(
        self,
        run: str,
        spans: Sequence[Interval],
        engine: Engine = CORE,
        *,
        buckets: int | None = None,
        final: int | None = None,
    ) -> Hashes:
        """Backfill spans and give the content hash of every table and the carry."""
        run_backfill(self.wanted(run, engine, buckets), spans, final=final)
        return self.hashes(run, spans)

    def hashes(self, run: str, spans: Sequence[Interval]) -> Hashes:
        """Give the content hash of every table of a run, read back."""
        return table_hashes(self.root(run), self.flow, spans[0][0], spans[-1][1])

    def table(self, run: str, name: str) -> pa.Table:
        """Read a stream, in its order, or the ledger."""
        if name == LEDGER:
            return read_ledger(self.root(run))
        return read_stream(self.root(run), name, key=self.flow.key_of(name))


def trial(folder: Path, flow: str, feeds: Mapping[str, pa.Table]) -> Trial:
    """Write a flow and its feeds into a folder.

    Args:
        folder: made when it is not there.
        flow: the text of the flow's file.
        feeds: by name, without suffix.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in feeds.items():
        pq.write_table(rows, folder / f"{name}.parquet")
    (folder / "flow.yaml").write_text(flow, encoding="utf-8")
    return Trial(flow=read_flow(folder / "flow.yaml", {}), base=folder)


def cut(start: int, end: int, cuts: Iterable[int]) -> list[Interval]:
    """Cut a span; instants outside of it are no cuts.

    >>> cut(0, 9, [3, 12])
    [(0, 3), (3, 9)]
    """
    return list(pairwise(sorted({start, end, *(at for at in cuts if start < at < end)})))
