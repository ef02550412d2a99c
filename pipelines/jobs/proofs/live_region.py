"""A region for real, an item at a time: landed into three buffers, drained by a query of Spark, reset in the log.

It does what `operators.replay.Region` does, with files, commits and damage in place of lists, so that both are held to
the same cases. Every item is a sequence of its own. *Forwarded* is what the selector gave out of a buffer and was read
there; *drained* is what a query of Spark then published.
"""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.engine.buffers.buffers import NAMES, buffers_of
from pipelines.engine.columnar.columns import TIME
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.readers import read_stream
from pipelines.engine.commits.resets import newest_state
from pipelines.engine.landing.errors import BuffersLostError
from pipelines.engine.landing.index import Landing
from pipelines.engine.live.landing import LiveLanding
from pipelines.engine.sources.catalog import open_recorded
from pipelines.flows.reading import read_flow
from pipelines.flows.region import PUNCTUATION
from pipelines.jobs.runs.backfill import Backfill
from pipelines.jobs.runs.readings import buffered_runner, cover, drain, settled_buffers
from pipelines.operators.replay import DRAINING, AllBuffersLostError, Drained, Forwarded, Punctuation, Reset, Trigger

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pipelines.engine.buffers.buffers import Buffers
    from pipelines.engine.commits.history import Entry
    from pipelines.engine.landing.sequence import LandedSequence
    from pipelines.engine.tasks.spark import SparkEngine
    from pipelines.flows.model import Flow
    from pipelines.operators.replay import Output, ReplayPolicy

ITEMS, PASSED = "items", "passed"
FLOW = f"""\
flow: region
buckets: 1
sources:
  {ITEMS}: {{feed: {{parquet: items.parquet}}, key: who, time: at, arrival: at, edge: what, buffers: 3}}
streams:
  {PASSED}: {{filter: {ITEMS}, where: "who = 'one'"}}
"""
FEED = pa.schema([("who", pa.string()), ("at", TIME), ("what", pa.string()), ("item", pa.int64())])
MOST = 64


class PlannedFailure(Exception):  # noqa: N818 - what a case asks for
    """Something failed while the region drained."""


class LiveRegion:
    """A region on Spark, for a case; its methods are those of `Region`.

    Args:
        policy: when it drains.
        base: an empty folder for feed and run.
        spark: runs its queries.
    """

    def __init__(self, policy: ReplayPolicy, base: Path, spark: SparkEngine) -> None:
        """Begin at the beginning: nothing landed, nothing published."""
        self.policy, self._base, self._spark = policy, base, spark
        self._flow = _flow(policy, base)
        self._wanted = Backfill(flow=self._flow, root=base / "run", base=base, engine=spark)
        self._held = ExitStack()
        self._covered: list[Any] = []
        self._untold: list[Output] = []
        self._since = 0
        """The end of the last consistent state or reset, in ticks."""

    def __enter__(self) -> Self:
        self._driver = self._held.enter_context(open_driver(self._wanted.root, flow=self._flow.name))
        # One process for the whole case: a buffer that is silent is not believed for having been started anew.
        self._buffers: Buffers = settled_buffers(self._wanted)  # type: ignore[assignment]
        self._landing = Landing(self._wanted.landing, self._buffers)
        self._begin()
        return self

    def __exit__(self, *problem: object) -> None:
        """Give the lease back; where nothing went wrong, see that what was drained is what the tables hold.

        Raises:
            RuntimeError: they hold something else.
        """
        self._held.close()
        if problem[0] is None:
            covered = [item for item in self._covered if not isinstance(item, Punctuation)]
            published = read_stream(self._wanted.root, PASSED)["item"].to_pylist() if covered else []
            if published != covered:
                message = f"the tables must hold what was drained, {covered}; they hold {published}"
                raise RuntimeError(message)

    def take(self, item: int | Punctuation, *, completes: bool = True) -> list[Output]:
        """Land an item, give it as the selector does, and have Spark publish where the region drains.

        Args:
            item: a tuple or a punctuation.
            completes: as for `drain`, where it drains.
        """
        number = self._land(item, self._last + 1)
        forwarded = self._forwarded(number, number)
        if not completes and item in DRAINING[self.policy.trigger]:
            return [*forwarded, *self._advanced(completes=False)]
        return [*forwarded, *self._drained()] if DRAINING[self.policy.trigger] else forwarded

    def drain(self, *, completes: bool = True) -> list[Output]:
        """Publish because somebody asks for it; a region that its operator drives does not listen.

        Args:
            completes: False where its sequences cannot be opened; the region is then reset.
        """
        if self.policy.trigger is not Trigger.PERIODIC:
            return []
        self._land(None, self._last + 1)
        return self._advanced(completes=completes)

    def _advanced(self, *, completes: bool) -> list[Output]:
        """Publish what is closed."""
        if not completes:
            self._runner.open = _fail
        try:
            self._runner.advance(self._runner.last_sequence(), self._landing.last_id)
        except PlannedFailure:
            return self.reset()
        return self._told()

    def listen(self, now: int, *, completes: bool = True) -> list[Output]:
        """Have the clock read whenever a period is over, and at `now`; each reading may drain.

        Args:
            now: in ticks.
            completes: as for `drain`, of the drain at `now`.
        """
        out: list[Output] = []
        over = self.policy.period is not None and now >= self._since + self.policy.period
        if over and not completes:
            self._land(None, now)
            return self._advanced(completes=False)
        while self.policy.period is not None and (due := self._since + self.policy.period) < now:
            drained = self._read(max(due, self._last + 1))
            out += drained
            if not drained:
                break
        return out + (self._read(now) if now > self._last else [])

    def _read(self, now: int) -> list[Output]:
        self._land(None, now)
        return self._drained()

    def reset(self, now: int | None = None) -> list[Output]:
        """Go back to the newest published commit, in the log, and give again what came since."""
        if now is not None and now > self._last:
            self._land(None, now)
        state, last = self._driver.state(), self._landing.last_id
        self._since = self._last
        done = self._driver.reset(self._driver.next_number(), newest_state(state), detail={"landed": last}, beginning=0)
        self._begin()
        return [Reset(done.parent), *self._forwarded(self._runner.last_sequence() + 1, last)]

    def fail(self, buffers: Iterable[int], now: int | None = None) -> list[Output]:
        """Remove all that some buffers hold, and reset the region.

        Raises:
            AllBuffersLostError: none is left that may speak.
        """
        places = buffers_of(self._wanted.root)
        for place in buffers:
            # One that was lost before may not have been made anew yet.
            shutil.rmtree(places[NAMES[place]], ignore_errors=True)
        try:
            return self.reset(now)
        except BuffersLostError as lost:
            behind = lost.last - lost.first + 1
            raise AllBuffersLostError(newest_state(self._driver.state()), self._driver.next_number(), behind) from lost

    @property
    def _last(self) -> int:
        return self._landing.last_reading() or 0

    def _begin(self) -> None:
        """Begin to run epochs, from where the log stands."""
        self._runner = buffered_runner(self._wanted, self._driver, self._buffers)
        self._runner.published = self._keep

    def _keep(self, entry: Entry) -> None:
        self._untold.append(Drained(entry.commit))
        self._since = entry.span.end
        for number in entry.sequences:
            self._covered += _items(self._buffers.open(number))
        cover(self._buffers)

    def _land(self, item: int | Punctuation | None, reading: int) -> int:
        """Land a reading with an item, or with none; give the number of its sequence."""
        data = not isinstance(item, Punctuation)
        rows = [] if item in (None, Punctuation.FINAL) else [("data" if data else PUNCTUATION, item if data else None)]
        if self._landing.final is not None and item is None:
            # The clock goes on behind the end of a stream, and nothing lands any more.
            return self._landing.last_id
        last = self._last
        fed = [{"who": "one", "at": last, "what": kind, "item": each} for kind, each in rows]
        pq.write_table(pa.Table.from_pylist(fed, schema=FEED), self._base / "items.parquet")
        lander = LiveLanding(self._landing, self._flow, open_recorded(self._flow, self._base), last)
        lander.land(last, reading, reading - 1 if item is Punctuation.FINAL else None)
        return self._landing.last_id

    def _forwarded(self, first: int, last: int) -> list[Output]:
        return [Forwarded(item) for number in range(first, last + 1) for item in _items(self._buffers.open(number))]

    def _drained(self) -> list[Output]:
        """Run a query over what is closed, until nothing is left that it would take."""
        drain(self._spark.session(), self._runner, MOST)
        return self._told()

    def _told(self) -> list[Output]:
        told, self._untold = self._untold, []
        return told


def _items(sequence: LandedSequence) -> list[Any]:
    """Read the items of a sequence out of the buffer that it was opened in."""
    found: list[Any] = [item for batch in sequence.open(ITEMS) for item in batch["item"].to_pylist()]
    found += [Punctuation.WINDOW] * sequence.punctuations
    return found + ([] if sequence.final is None else [Punctuation.FINAL])


def _fail(number: int) -> LandedSequence:
    raise PlannedFailure(number)


def _flow(policy: ReplayPolicy, base: Path) -> Flow:
    file = base / "region.yaml"
    file.write_text(FLOW)
    return replace(read_flow(file), region=policy)
