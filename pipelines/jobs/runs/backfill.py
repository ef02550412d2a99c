"""Backfill: land the intervals of a span and run a flow over them, one commit an interval.

An interval is landed, announced (intent), run by tasks, added to its tables (written), and published once its gate lets
it. Killed anywhere, the next run finishes the pending commit first; nothing is seen twice and nothing is lost.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.engine.columnar.columns import instant_text
from pipelines.engine.commits.delta_log import exists
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.errors import GapError
from pipelines.engine.commits.file_lists import FileLists
from pipelines.engine.commits.history import CommitKind, State
from pipelines.engine.commits.quality import read_quality
from pipelines.engine.files.folders import CARRY
from pipelines.engine.files.stored import path_of
from pipelines.engine.landing.arrived import Standing
from pipelines.engine.landing.index import land_interval
from pipelines.engine.landing.manifest import load_manifest, read_sequence
from pipelines.engine.live.landing import require_landed
from pipelines.engine.sources.catalog import open_recorded
from pipelines.engine.sources.landed_schema import payloads_over
from pipelines.engine.tasks.stages import create_tables
from pipelines.engine.tasks.standing import flow_begun
from pipelines.errors import Exit
from pipelines.flows.definition import fingerprint_of, flow_from_json
from pipelines.jobs.environment.engines import engine_named
from pipelines.jobs.environment.errors import JobError, WrongUse
from pipelines.jobs.runs.bucketing import with_buckets
from pipelines.jobs.runs.counts import counted
from pipelines.jobs.runs.fitting import fitting_payloads
from pipelines.jobs.runs.gate import blocking, reject
from pipelines.jobs.runs.intervals import Backfill, Interval, Intervals, Ran, through, work_on
from pipelines.jobs.runs.known import require_own_landing
from pipelines.jobs.runs.replaced import require_arrivals, require_files
from pipelines.jobs.text.moments import Moments

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pipelines.engine.commits.driver import Driver
    from pipelines.engine.commits.history import Entry, LogState
    from pipelines.engine.landing.sequence import LandedSequence
    from pipelines.engine.landing.source_feed import SourceFeed

__all__ = ["Backfill", "Interval", "Ran", "run_backfill"]

EVERY = 50
"""Commits from one time that a backfill puts tables in order to the next."""


def silent(_: str) -> None:
    """Tell nobody."""


def run_backfill(
    wanted: Backfill,
    intervals: Sequence[Interval],
    tell: Callable[[str], None] = silent,
    done: Callable[[Ran], None] = lambda _: None,
    final: int | None = None,
) -> list[Ran]:
    """Run a flow over intervals, in order; a pending commit of an earlier run is finished first.

    Args:
        wanted: flow, root and engine.
        intervals: adjacent intervals of the flow's grid.
        tell: told what is done now, in a few words.
        done: given each interval when it is published.
        final: arrival of the final punctuation, which the last interval then lands; None where the feed does not end.

    Returns:
        The commits that this call published or left to be checked, the finished pending one among them.

    Raises:
        RejectedError: an interval may not be published; those after it were not begun.
        LeaseHeldError: another driver works on this root.
        MissingPredecessorError: an interval before the first must be run first.
        GapError: intervals before the run's first instant do not reach it.
        LandingError: a feed cannot be landed.
        WrongUse: the streams do not go together with the feeds' columns, or published rows would be replaced by none;
            nothing was begun.
    """
    ran = []
    require_own_landing(wanted.root, "run")
    feeds = open_recorded(wanted.flow, wanted.base)
    fitting_payloads(wanted.flow, {name: feed.schema for name, feed in feeds.items()})
    with open_driver(wanted.root, flow=wanted.flow.name, claim=wanted.claim) as driver:
        begun = time.perf_counter()
        require_landed(wanted.landing, driver.state())
        order = in_turn(driver.state(), intervals)
        wanted = replace(
            wanted,
            flow=with_buckets(wanted.flow, driver.state(), wanted.landing, feeds.values, wanted.engine.cores),
        )
        pending = driver.pending()
        if pending is not None and pending.kind is CommitKind.ADOPT:
            driver.abandon(pending.commit, why="the carry was not wholly taken over")
            pending = None
        if pending is not None and pending.state is State.WRITTEN:
            pending = _standing(driver, wanted, pending, intervals, feeds, final)
        if pending is not None:
            tell(f"finishing commit {pending.commit}, which an earlier run left at {pending.state}")
            finished = _finish(driver, wanted, pending, tell)
            gate = wanted.gate_of((finished.span.start, finished.span.end), intervals)
            ran.append(through(driver, gate, finished, begun, tell))
            done(ran[-1])
        # What an earlier run left counts as run where nothing before it runs again, and it would be the same now.
        waiting = order
        if pending is not None and order[:1] == [pending.span]:
            now = _landed(wanted, pending, intervals, feeds, final)
            waiting = order[1:] if _is_of(pending, now, wanted) else order
        on = Intervals(driver, wanted, intervals, feeds, final, tell)
        while waiting:
            _require_ground(driver.state(), waiting[0][0])
            went = on.next(waiting)
            waiting = waiting[len(went) :]
            for each in went:
                ran.append(each)
                done(each)
            _keep_house(driver, went[-1].entry)
    return ran


def _keep_house(driver: Driver, newest: Entry) -> None:
    """Put tables in order once every so many commits: what a day costs may not grow with the days before it."""
    if (newest.first_together - 1) // EVERY != newest.commit // EVERY:
        driver.keep_house(every=1)


def _standing(  # noqa: PLR0913 - a commit, and what its interval would be now
    driver: Driver,
    wanted: Backfill,
    written: Entry,
    intervals: Sequence[Interval],
    feeds: Mapping[str, SourceFeed],
    final: int | None,
) -> Entry | None:
    """Give a commit at written that may still be published.

    One whose interval is to be run again is rejected where it failed its check, and given up where it would now be
    another, for the flow or what arrived has changed. In both cases None, and the interval is run anew.

    Raises:
        WrongUse: it failed its check, and other intervals are to be run: somebody has to decide of it first.
    """
    span = (written.span.start, written.span.end)
    broken = blocking(read_quality(wanted.root, commit=written.commit))
    if broken and span in intervals:
        reject(driver, written, broken)
        return None
    if broken:
        decided = f"pulseline publish FLOW --commit {written.commit}"
        raise WrongUse(
            f"commit {written.commit} ({Moments(wanted.flow.timezone).span(*span)}) must be decided of before another "
            f"interval is run, for it failed its check and waits: {decided} --reject REASON --by NAME, or --accept "
            "REASON --by NAME for readers to see it all the same; or run its own interval again"
        )
    if span not in intervals or written.kind is not CommitKind.INTERVAL:
        return written
    now = _landed(wanted, written, intervals, feeds, final)
    if _is_of(written, now, wanted):
        return written
    if not wanted.accept_loss:
        called = Moments(wanted.flow.timezone).span(*span)
        require_arrivals(counted(written, "landed"), now, called)
        require_files([load_manifest(wanted.landing, each) for each in written.sequences], now, wanted.base, called)
    driver.abandon(written.commit, why="its interval was run again, and is another now")
    return None


def _is_of(entry: Entry, now: LandedSequence, wanted: Backfill) -> bool:
    """Say whether a commit has the flow and the rows coming in that its interval has now."""
    return (entry.sequences, entry.fingerprint) == ((now.id,), fingerprint_of(wanted.flow))


def _landed(
    wanted: Backfill,
    entry: Entry,
    intervals: Sequence[Interval],
    feeds: Mapping[str, SourceFeed],
    final: int | None,
) -> LandedSequence:
    """Land the interval of a commit as it is now; one that has not changed is the sequence that it was."""
    ends = final if entry.span == intervals[-1] else None
    standing = Standing.LATER if entry.parent else Standing.FIRST
    return land_interval(wanted.landing, wanted.flow, *entry.span, feeds, ends, standing)


def in_turn(state: LogState, intervals: Sequence[Interval]) -> list[Interval]:
    """Give intervals in the order in which they are run: those that extend a run backwards come from the last to the
    first, so that readers never see a gap, and then again in order, each on the carry of the one before.

    Raises:
        GapError: they lie before the run's first instant and do not reach it.
    """  # noqa: D205 - one sentence
    first = state.published[0].span.start if state.published else None
    early = [interval for interval in intervals if first is not None and interval[0] < first]
    if first is None or not early:
        return list(intervals)
    if early[-1][1] < first:
        raise GapError(early[-1][1], first)
    return [*reversed(early), *intervals[1:]]


def _require_ground(state: LogState, start: int) -> None:
    """Refuse to begin a run behind an interval that was rejected: it could never be put right afterwards.

    Raises:
        WrongUse: nothing is published, and what was to come first was rejected.
    """
    rejected = [row for row in state.commits.values() if row.state is State.REJECTED and row.span.start < start]
    if rejected and not state.published:
        first = min(rejected, key=lambda row: row.span.start)
        raise WrongUse(
            f"a run begins with its first interval; that of {instant_text(first.span.start)} was rejected (commit "
            f"{first.commit}) and nothing is published: run it again first, or begin a run of its own (--run NAME)"
        )


def _finish(driver: Driver, wanted: Backfill, pending: Entry, tell: Callable[[str], None]) -> Entry:
    """Bring a pending commit to written, under its own plan."""
    if pending.state is State.WRITTEN and _has_tables(wanted.root, driver.state(), pending.commit):
        return pending
    if pending.kind is not CommitKind.INTERVAL:
        raise JobError(
            f"commit {pending.commit} must be finished by what began it; it is an epoch of a stream: pulseline stream, "
            "or a run of its own (--run NAME)"
        )
    if pending.plan is None:
        raise JobError(f"commit {pending.commit} has no plan to be finished under; the table commits is damaged")
    sequence = read_sequence(wanted.landing, pending.sequences[0])
    flow = flow_begun(wanted.root, pending.plan, lambda: sequence)
    if pending.state is State.WRITTEN:
        # A log that was damaged before it had any rows has been taken away, and the gate reads by it.
        create_tables(wanted.root, flow, payloads_over(flow, (sequence,)))
        return pending
    entry = pending.under(fingerprint_of(flow))
    own = Backfill(flow=flow, root=wanted.root, base=wanted.base, engine=wanted.engine)
    return work_on(driver, own, entry, sequence, tell)


def _has_tables(root: Path, state: LogState, commit: int) -> bool:
    """Say whether each table into which a commit wrote has a log."""
    return all(exists(root / table) for table in FileLists(root, state).of(commit) if not table.startswith(CARRY))


def main(argv: Sequence[str] = ()) -> int:
    """Run one request, JSON from a file or standard input: flow, root, base, intervals, engine, master.

    Args:
        argv: path of the request; standard input where there is none.
    """
    text = Path(argv[0]).read_text() if argv else sys.stdin.read()
    request = json.loads(text)
    engine = engine_named(request["engine"], request.get("master", "local[2]"))
    wanted = Backfill(
        flow=flow_from_json(request["flow"]),
        root=path_of(request["root"]),
        base=Path(request["base"]),
        engine=engine,
    )
    try:
        run_backfill(wanted, [(start, end) for start, end in request["intervals"]])
    finally:
        engine.close()
    return Exit.FINE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
