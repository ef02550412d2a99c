"""`pulseline finish`: say that a stream has ended.

The final punctuation lands as a row of the landing, and only then happens what happens at an end: CTIs at infinity,
held rows that are to be flushed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.engine.clock import wall_now
from pipelines.engine.columns import instant_text
from pipelines.engine.commits import open_driver
from pipelines.engine.core import CoreEngine
from pipelines.engine.landing import Landing
from pipelines.engine.live_landing import LiveLanding
from pipelines.engine.tables import landed_path
from pipelines.flows.model import Clock
from pipelines.jobs.backfill import Backfill
from pipelines.jobs.buffering import Buffering
from pipelines.jobs.counts import counted
from pipelines.jobs.failures import WrongUse
from pipelines.jobs.in_use import require_in_use
from pipelines.jobs.known import require_own_landing
from pipelines.jobs.parameters import parameters_of
from pipelines.jobs.readings import buffered_runner, settled_buffers
from pipelines.jobs.settings import load_flow, read_settings
from pipelines.jobs.stopped import forget_stop
from pipelines.jobs.stream import open_feeds
from pipelines.operators.rows import KIND_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pipelines.engine.history import Entry
    from pipelines.flows.model import Flow


def finish_flow(name: str, run: str, params: Sequence[str], echo: Callable[[str], None]) -> None:
    """End a run's stream and say what that published."""
    settings = read_settings()
    flow = load_flow(settings, name, parameters_of(params))
    root = settings.root(flow.name, run)
    entry = end_stream(flow, root, settings.feeds_base(flow), Buffering.of(settings), echo)
    forget_stop(root)
    echo(
        f"the stream ended at {instant_text(entry.span.end - 1)}; commit {entry.commit} published {_made(flow, entry)}"
    )
    echo(f"next: pulseline status {name} --run {run}")


def _made(flow: Flow, entry: Entry) -> str:
    found = ((stream, kind, counted(entry, stream).get(kind, 0)) for stream in flow.tables() for kind in KIND_NAMES)
    return ", ".join(f"{rows:,} {kind} in {stream}" for stream, kind, rows in found if rows) or "no row"


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
        WrongUse: nothing was published yet, or the stream has ended already.
        LeaseHeldError: a stream or a backfill is at work on this run.
        BuffersLostError: no buffer may speak for what no commit covers.
    """
    engine = CoreEngine()
    require_own_landing(root, "finish")
    with open_driver(root, flow=flow.name) as driver:
        wanted = Backfill(flow=flow, root=root, base=base, engine=engine)
        buffers = settled_buffers(wanted, buffering, tell)
        landing = Landing(landed_path(root), buffers)
        runner = buffered_runner(wanted, driver, buffers, engine)
        tip = driver.state().tip
        if tip is None:
            raise WrongUse("a stream must have begun before it can end; this run has published nothing")
        require_in_use(driver.state(), tip.commit, flow, root.name)
        if landing.final is not None:
            raise WrongUse(f"this stream ended already, at {instant_text(landing.final)}")
        last = max(tip.span.end, landing.last_reading() or tip.span.end)
        reading = wall_now() if flow.clock is Clock.WALL else last + 1
        lander = LiveLanding(landing, flow, open_feeds(flow, base, root, landing), last)
        lander.land(last, reading, final=reading - 1)
        lander.close()
        published = runner.advance(runner.last_sequence(), landing.last_id)
    if published is None:
        raise WrongUse("the final punctuation landed, and no epoch took it: run pulseline stream --available-now")
    return published
