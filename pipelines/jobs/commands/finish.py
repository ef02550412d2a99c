"""`pulseline finish`: say that a stream has ended.

The final punctuation lands as a row of the landing, and only then happens what happens at an end: CTIs at infinity,
held rows that are to be flushed.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, closing
from enum import Enum
from typing import TYPE_CHECKING

from pipelines.engine.columnar.clock import WallClock
from pipelines.engine.columnar.columns import instant_text
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.entry import START_OF_RUN
from pipelines.engine.commits.leg_roots import leg_of, noted_legs, roots_of
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.commits.readers import log_state
from pipelines.engine.landing.index import Landing
from pipelines.engine.live.landing import LiveLanding, require_landed
from pipelines.engine.live.legs import open_legs
from pipelines.engine.tasks.local import CoreEngine
from pipelines.flows.feeds.spec import Clock
from pipelines.jobs.environment.buffer_settings import Buffering
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.parameters import parameters_of
from pipelines.jobs.environment.settings import load_flow, read_settings
from pipelines.jobs.runs.backfill import Backfill
from pipelines.jobs.runs.counts import counted
from pipelines.jobs.runs.feeds import open_feeds
from pipelines.jobs.runs.in_legs import with_legs
from pipelines.jobs.runs.in_use import as_run, require_in_use
from pipelines.jobs.runs.known import require_own_landing
from pipelines.jobs.runs.readings import buffered_runner, settled_buffers
from pipelines.jobs.runs.stop_note import forget_stop
from pipelines.operators.plain_words import counted as in_words
from pipelines.operators.replay import Trigger
from pipelines.operators.rows import KIND_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pipelines.engine.commits.history import Entry
    from pipelines.engine.live.epochs import EpochRunner
    from pipelines.flows.model import Flow

NOUNS = {"data": "row", "start": "start edge", "end": "end edge", "timer": "timer", "cti": "CTI"}


def finish_flow(name: str, run: str, params: Sequence[str], echo: Callable[[str], None]) -> None:
    """End a run's stream and say what that published."""
    settings = read_settings()
    flow = load_flow(settings, name, parameters_of(params))
    root = settings.root(flow.name, run)
    state = log_state(root)
    flow = with_legs(as_run(flow, state), root, state, regions=noted_legs(root) is not None)
    before = _tips(root)
    entry = end_stream(flow, root, settings.feeds_base(flow), Buffering.of(settings), echo)
    forget_stop(root)
    main, *others = roots_of(root)
    rest = [told for each in _since(main, before) if each.commit != entry.commit and (told := _told(flow, each))]
    last = f"commit {entry.commit} published {_made(flow, entry) or 'no row'}"
    legs = [told for leg in others for each in _since(leg, before) if (told := _told(flow, each, leg_of(leg)))]
    echo(f"the stream ended at {instant_text(entry.span.end - 1)}; {'; '.join([*rest, last, *legs])}")
    echo(f"next: pulseline status {name} --run {run}")


def _tips(root: Path) -> dict[str, Entry]:
    """Give the last commit of each of a run's legs, `main` first."""
    return {leg_of(each): tip for each in roots_of(root) if (tip := log_state(each).tip) is not None}


def _since(leg: Path, before: dict[str, Entry]) -> list[Entry]:
    """Give what a leg has published since its tip was another."""
    tip = before.get(leg_of(leg))
    return [row for row in log_state(leg).in_order if tip is None or row.commit > tip.commit]


def _told(flow: Flow, entry: Entry, leg: str = "") -> str:
    """Say which rows a commit published; nothing where there are none."""
    made = _made(flow, entry)
    return f"commit {entry.commit} {f'of {leg}' if leg else 'published'} {made}" if made else ""


def _made(flow: Flow, entry: Entry) -> str:
    found = ((stream, kind, counted(entry, stream).get(kind, 0)) for stream in flow.tables() for kind in KIND_NAMES)
    return ", ".join(f"{in_words(rows, NOUNS[kind])} in {stream}" for stream, kind, rows in found if rows)


def end_stream(
    flow: Flow,
    root: Path,
    base: Path,
    buffering: Buffering | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Entry:
    """Land the final punctuation of a run and publish what it brings.

    Args:
        flow: what runs.
        root: the run's folder.
        base: folder that the feeds' paths are relative to.
        buffering: how its buffers stand, where it has any; in folders of the run unless given.
        tell: told of what goes wrong with them.

    Returns:
        The published commit.

    Raises:
        WrongUse: nothing has landed yet, the stream has ended already, or the buffers have no room.
        LeaseHeldError: a stream or a backfill is at work on this run.
        BuffersLostError: no buffer may speak for what no commit covers.
    """
    engine = CoreEngine()
    require_own_landing(root, "finish")
    with open_driver(root, flow=flow.name) as driver:
        wanted = Backfill(flow=flow, root=root, base=base, engine=engine)
        buffers = settled_buffers(wanted, buffering, tell)
        landing = Landing(landed_path(root), buffers)
        require_landed(landing.path, driver.state())
        runner = buffered_runner(wanted, driver, buffers, engine)
        tip = driver.state().tip
        if tip is None and not landing.last_id:
            raise WrongUse("a stream must have begun before it can end; nothing has landed in this run")
        require_in_use(driver.state(), tip.commit if tip else START_OF_RUN, flow, root.name, tell)
        ended, before = landing.final, _tips(root)
        with ExitStack() as opened:
            legs = opened.enter_context(open_legs(runner, root, lambda _: engine)) if flow.legs else None
            if legs is not None:
                # Before main goes on: what it publishes is handed to those that read it.
                legs.begin(tell)
            if ended is not None or not _is_whole(flow):
                runner.advance(runner.last_sequence(), landing.last_id)
            published = _land_the_end(wanted, landing, runner, tell) if ended is None else None
            if legs is not None:
                legs.catch_up(MOST_SEQUENCES)
        if ended is not None:
            if _tips(root) == before:
                raise WrongUse(f"this stream ended already, at {instant_text(ended)}")
            tell("the end had landed, and what an earlier finish left behind is published now")
            published = driver.state().tip
    if published is None:
        raise WrongUse("the final punctuation landed, and no epoch took it: run pulseline stream --available-now")
    return published


def _land_the_end(wanted: Backfill, landing: Landing, runner: EpochRunner, tell: Callable[[str], None]) -> Entry | None:
    """Land what waits and the final punctuation behind it, and publish both."""
    flow, state = wanted.flow, runner.driver.state()
    last = max(state.in_order[-1].span.end if state.in_order else 0, landing.last_reading() or 0)
    feeds = open_feeds(flow, wanted.base, wanted.root, landing)
    clock = WallClock() if flow.clock is Clock.WALL else None
    with closing(LiveLanding(landing, flow, feeds, last, held=runner.driver.state)) as lander:
        if clock is not None:
            _land_what_waits(lander, clock, landing, runner)
        published = _land(lander, _reading(lander, clock), landing, runner, Ends.YES)
        if lander.backlog:
            tell(f"behind the end is left what was still being written or could not be read: {lander.backlog:,}")
    return published


MOST_SEQUENCES = 64
"""Sequences that a leg which is behind takes in one epoch."""
LOOK_AGAIN = 1.0
"""Seconds after which a file that was seen once is looked at again: one that still stands as it did is whole."""


class Ends(Enum):
    """Whether a reading is the last of its stream."""

    NO = "no"
    """Others come behind it."""
    YES = "yes"
    """The final punctuation lands with it, in its last tick."""


def _reading(lander: LiveLanding, clock: WallClock | None) -> int:
    """Give the next reading, in ticks, behind all that the sources hold, so that nothing of it comes after the end."""
    seen = max(lander.last, lander.look()) + 1
    return seen if clock is None else clock.read(seen)


def _land_what_waits(lander: LiveLanding, clock: WallClock, landing: Landing, runner: EpochRunner) -> None:
    """Land and publish, reading by reading, what had come by now; one reading takes no more than so many rows."""
    _land(lander, _reading(lander, clock), landing, runner, Ends.NO)
    if lander.backlog > lander.left:
        time.sleep(LOOK_AGAIN)
        _land(lander, _reading(lander, clock), landing, runner, Ends.NO)
    while lander.left:
        _land(lander, _reading(lander, clock), landing, runner, Ends.NO)


def _is_whole(flow: Flow) -> bool:
    """Say whether a stream publishes all that comes with its end, or nothing."""
    return flow.region is not None and flow.region.trigger is Trigger.FINAL


def _land(lander: LiveLanding, reading: int, landing: Landing, runner: EpochRunner, ends: Ends) -> Entry | None:
    """Land a reading and publish it; where all is published together, with the end alone or where there is no room.

    Raises:
        WrongUse: the buffers have no room, though all that they hold is published.
    """
    final = reading - 1 if ends is Ends.YES else None
    whole, landed = _is_whole(runner.flow), lander.land(lander.last, reading, final=final)
    if whole and landed is None:
        # What waits for the end makes room where it is published.
        runner.advance(runner.last_sequence(), landing.last_id)
        landed = lander.land(lander.last, reading, final=final)
    if landed is None:
        raise WrongUse(f"there must be room for what lands at the end; {lander.full}: see pulseline status FLOW")
    if whole and ends is Ends.NO:
        return None
    return runner.advance(runner.last_sequence(), landing.last_id)
