"""The intervals of a backfill, one after the other: each landed, worked on, judged and published.

Small ones that follow one another are worked on in one go, for most of what a small day costs is not its rows. Each is
a commit of its own all the same, with its counts, hashes, carry and verdict, and can be run again alone; they share
files. They are judged before any of them counts: the first that a blocking expectation refuses, and whatever else goes
wrong in one of several, is met again by that interval alone.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pipelines.engine.commits.carry_format import UPGRADES, require_current
from pipelines.engine.commits.entry import Span, State
from pipelines.engine.commits.lease import Claim
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.commits.plan import plan_of
from pipelines.engine.commits.steps import Finished
from pipelines.engine.landing.arrived import Standing
from pipelines.engine.landing.index import Closed, land_interval
from pipelines.engine.sources.landed_schema import payloads_over
from pipelines.engine.tasks.commit_work import Sequences, commit_work, commits_work
from pipelines.engine.tasks.stages import ColumnsSeen, check_tables, create_tables
from pipelines.errors import PulselineError
from pipelines.flows.definition import fingerprint_of
from pipelines.jobs.environment.asked_for import run_address
from pipelines.jobs.runs.gate import Checked, Gate, blocking, hold, kept_words, publish_at_once
from pipelines.jobs.runs.replaced import landed_before, require_arrivals, require_files, sequences_before
from pipelines.jobs.text.moments import Moments

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from pipelines.engine.commits.driver import Driver
    from pipelines.engine.commits.file_lists import SharedFiles
    from pipelines.engine.commits.history import Entry
    from pipelines.engine.landing.sequence import LandedSequence
    from pipelines.engine.landing.source_feed import SourceFeed
    from pipelines.engine.tasks.stages import Engine
    from pipelines.flows.model import Flow

Interval = tuple[int, int]
"""Start and end, in ticks; the end is exclusive."""
ENOUGH_ROWS = 250_000
"""Landed rows from which on no more intervals are added to those of one go: by then their rows are what costs."""
MOST = 128
"""Intervals of one go, unless as many are asked for: what a kill or a refusal makes to be done again."""


@dataclass(frozen=True, kw_only=True)
class Backfill:
    """What is to be run: a flow over intervals, into a root, by an engine."""

    flow: Flow
    root: Path
    base: Path
    """Folder that the feeds' paths are relative to."""
    engine: Engine
    claim: Claim = Claim.ASK
    gate: Gate = publish_at_once
    """What each written interval goes through."""
    last_gate: Gate | None = None
    """What the last interval goes through; `gate` unless given."""
    accept_loss: bool = False
    """Replace published rows of a source by none, where none arrive any more."""
    at_once: int | None = 1
    """Intervals that are worked on in one go, at most; None: as many as have so few rows together that it pays."""

    def gate_of(self, interval: Interval, intervals: Sequence[Interval]) -> Gate:
        """Give what a written interval goes through."""
        is_last = bool(intervals) and interval == intervals[-1]
        return self.last_gate if is_last and self.last_gate is not None else self.gate

    @property
    def landing(self) -> Path:
        """Where the run's sequences lie."""
        return landed_path(self.root)


@dataclass(frozen=True, kw_only=True)
class Ran:
    """One interval that went through its gate."""

    entry: Entry
    seconds: float
    before: int | None = None
    """Rows that had landed for what it replaces; None where it replaces nothing."""
    behind: int = 0
    """How many ran in one go with it and are told after it."""


@dataclass(frozen=True)
class _Ready:
    """An interval that has landed, and whose tables have the columns that it writes."""

    span: Span
    sequence: LandedSequence
    schemas: dict[str, pa.Schema]
    before: int | None

    @property
    def rows(self) -> int:
        return sum(source.rows for source in self.sequence.sources.values())


class Intervals:
    """The intervals of one backfill, under the lease of its driver.

    Args:
        driver: of the run.
        wanted: flow, root and engine.
        intervals: all that are to be run, in order.
        feeds: what `open_recorded` gave, by source.
        final: arrival of the final punctuation, which the last interval lands; None where the feed does not end.
        tell: told what is done now, in a few words.
    """

    def __init__(  # noqa: PLR0913 - a backfill at work
        self,
        driver: Driver,
        wanted: Backfill,
        intervals: Sequence[Interval],
        feeds: Mapping[str, SourceFeed],
        final: int | None,
        tell: Callable[[str], None],
    ) -> None:
        """Have run none."""
        self._driver, self._wanted, self._intervals, self._feeds = driver, wanted, intervals, feeds
        self._final, self._tell = final, tell
        taken = driver.state().last_sequence(State.PUBLISHED)
        self._closed, self._seen = Closed(wanted.landing, taken), ColumnsSeen()
        self._one_by_one = False
        """Whether something went wrong in one of several: it is to be met by the interval that has it."""
        self._refused: set[Interval] = set()

    def next(self, waiting: Sequence[Interval]) -> list[Ran]:
        """Run the first of the intervals that wait, with those behind it that go with it, and give what ran.

        Raises:
            RejectedError: the first may not be published.
        """
        begun = time.perf_counter()
        ready = self._land(waiting)
        entry = begin(self._driver, self._wanted.flow, ready[0].sequence)
        return self._together(entry, ready) or [self._alone(entry, ready[0], begun)]

    def _land(self, waiting: Sequence[Interval]) -> list[_Ready]:
        """Land the first interval, and those that are to be worked on with it."""
        found = [self._landed(waiting[0], Standing.FIRST)]
        if not self._shares(waiting[0]):
            return found
        for interval in waiting[1 : self._wanted.at_once or MOST]:
            enough = self._wanted.at_once is None and sum(each.rows for each in found) >= ENOUGH_ROWS
            if enough or interval[0] != found[-1].span.end or not self._shares(interval):
                break
            try:
                more = self._landed(interval, Standing.LATER)
            except PulselineError:
                # Those before it go on; it will say the same when it is the first.
                break
            if more.schemas != found[0].schemas:
                break
            found.append(more)
        return found

    def _shares(self, interval: Interval) -> bool:
        """Say whether an interval may be worked on with others."""
        gate = self._wanted.gate_of(interval, self._intervals)
        judged = gate is publish_at_once or isinstance(gate, Checked)
        return judged and not self._one_by_one and tuple(interval) not in self._refused

    def _landed(self, interval: Interval, standing: Standing) -> _Ready:
        wanted, state = self._wanted, self._driver.state()
        before = landed_before(state, Span(*interval))
        if standing is Standing.FIRST and state.parent_for(interval[0]):
            standing = Standing.LATER
        self._tell("landing")
        ends = self._final if interval == self._intervals[-1] else None
        sequence = land_interval(wanted.landing, wanted.flow, *interval, self._feeds, ends, standing, self._closed)
        if not wanted.accept_loss:
            called = Moments(wanted.flow.timezone).span(*interval)
            require_arrivals(before, sequence, called)
            kept = sequences_before(wanted.landing, state, Span(*interval), called)
            require_files(kept, sequence, wanted.base, called)
        # Before anything is begun: a commit whose tables have other columns could never be finished.
        schemas = payloads_over(wanted.flow, (sequence,))
        check_tables(wanted.root, wanted.flow, schemas, self._seen)
        return _Ready(Span(*interval), sequence, schemas, sum(before.values()) if before else None)

    def _alone(self, entry: Entry, ready: _Ready, begun: float) -> Ran:
        written = work_on(self._driver, self._wanted, entry, ready.sequence, self._tell, self._seen)
        gate = self._wanted.gate_of((ready.span.start, ready.span.end), self._intervals)
        return replace(through(self._driver, gate, written, begun, self._tell), before=ready.before)

    def _together(self, entry: Entry, ready: Sequence[_Ready]) -> list[Ran]:
        """Work on several intervals in one go; nothing where the first is to be worked on alone."""
        while len(ready) > 1:
            begun = time.perf_counter()
            try:
                finished, files = self._work(entry, ready)
                judged = self._judged(entry.commit, finished, files)
            except Exception as error:
                # Whatever else it is, the interval that has it says it, as if it ran alone.
                if isinstance(error, PulselineError) and not error.is_of_work:
                    raise
                self._one_by_one = True
                return []
            if len(judged) == len(ready):
                rows = self._driver.publish_together(entry.commit, judged, files)
                seconds = (time.perf_counter() - begun) / len(rows)
                behind = range(len(rows) - 1, -1, -1)
                told = zip(rows, ready, behind, strict=True)
                return [Ran(entry=row, seconds=seconds, before=each.before, behind=left) for row, each, left in told]
            refused = ready[len(judged)].span
            self._refused.add((refused.start, refused.end))
            ready = ready[: len(judged)]
        return []

    def _work(self, entry: Entry, ready: Sequence[_Ready]) -> tuple[list[Finished], SharedFiles]:
        wanted, schemas = self._wanted, ready[0].schemas
        create_tables(wanted.root, wanted.flow, schemas, self._seen)
        entries = [replace(entry, commit=entry.commit + place, span=each.span) for place, each in enumerate(ready)]
        landed = Sequences(tuple(each.sequence for each in ready))
        state = self._driver.state()
        worked = commits_work(wanted.root, wanted.flow, entries, landed, state, wanted.engine, schemas, self._tell)
        self._tell("committing")
        files = self._driver.secure_together(entry.commit, len(ready), worked.outcome.new_files())
        durations = {"tasks_ms": round(worked.seconds * 1000 / len(ready))}
        facts = zip(ready, worked.counts, worked.hashes, worked.carries, strict=True)
        finished = [
            Finished(
                span=each.span,
                sequences=(each.sequence.id,),
                counts=counts,
                hashes=hashes,
                carry_hash=carry,
                durations=durations,
            )
            for each, counts, hashes, carry in facts
        ]
        return finished, files

    def _judged(self, number: int, finished: Sequence[Finished], files: SharedFiles) -> list[Finished]:
        """Give each interval with its verdict, up to the first that a blocking expectation refuses."""
        gate = self._wanted.gate
        if not isinstance(gate, Checked):
            return list(finished)
        self._tell("checking")
        judged: list[Finished] = []
        state = self._driver.would_publish(number, finished, files)
        for place, each in enumerate(finished):
            found = gate.judge(number + place, state)
            if blocking(found):
                break
            judged.append(replace(each, verdict=kept_words(found)))
        return judged


def begin(driver: Driver, flow: Flow, sequence: LandedSequence) -> Entry:
    """Begin the commit of an interval that has landed."""
    span = Span(sequence.start, sequence.end)
    parent = driver.state().parent_for(span.start)
    require_current(driver.state(), parent)
    plan = plan_of(flow, UPGRADES.current, run_address())
    return driver.intent(driver.next_number(), span, parent, [sequence.id], plan, fingerprint_of(flow))


def work_on(  # noqa: PLR0913 - a commit, and what it is made of
    driver: Driver,
    wanted: Backfill,
    entry: Entry,
    sequence: LandedSequence,
    tell: Callable[[str], None],
    seen: ColumnsSeen | None = None,
) -> Entry:
    """Bring a commit at intent to written."""
    landed = Sequences((sequence,))
    schemas = payloads_over(wanted.flow, landed.parts)
    create_tables(wanted.root, wanted.flow, schemas, seen)
    worked = commit_work(wanted.root, wanted.flow, entry, landed, driver.state(), wanted.engine, schemas, progress=tell)
    tell("committing")
    durations = {"tasks_ms": round(worked.seconds * 1000)}
    carry = worked.share.carry.text
    return driver.written(entry.commit, worked.outcome.new_files(), worked.counts, worked.hashes, carry, durations)


def through(driver: Driver, gate: Gate, written: Entry, begun: float, tell: Callable[[str], None]) -> Ran:
    """Take a written commit through its gate."""
    if gate is not publish_at_once and gate is not hold:
        tell("checking")
    return Ran(entry=gate(driver, written), seconds=time.perf_counter() - begun)
