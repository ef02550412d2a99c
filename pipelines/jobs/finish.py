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
from pipelines.engine.epochs import EpochRunner
from pipelines.engine.landing import Landing
from pipelines.engine.live_landing import LiveLanding
from pipelines.engine.tables import landed_path
from pipelines.flows.model import Clock
from pipelines.jobs.counts import counted
from pipelines.jobs.failures import WrongUse
from pipelines.jobs.in_use import require_in_use
from pipelines.jobs.known import require_own_landing
from pipelines.jobs.parameters import parameters_of
from pipelines.jobs.settings import load_flow, read_settings
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
    entry = end_stream(flow, settings.root(flow.name, run), settings.feeds_base(flow))
    echo(
        f"the stream ended at {instant_text(entry.span.end - 1)}; commit {entry.commit} published {_made(flow, entry)}"
    )
    echo(f"next: pulseline status {name} --run {run}")


def _made(flow: Flow, entry: Entry) -> str:
    found = ((stream, kind, counted(entry, stream).get(kind, 0)) for stream in flow.tables() for kind in KIND_NAMES)
    return ", ".join(f"{rows:,} {kind} in {stream}" for stream, kind, rows in found if rows) or "no row"


def end_stream(flow: Flow, root: Path, base: Path) -> Entry:
    """Land the final punctuation of a run and publish what it brings.

    Args:
        flow: what runs.
        root: the run's folder.
        base: folder that the feeds' paths are relative to.

    Returns:
        The published commit.

    Raises:
        WrongUse: nothing was published yet, or the stream has ended already.
        LeaseHeldError: a stream or a backfill is at work on this run.
    """
    engine = CoreEngine()
    require_own_landing(root, "finish")
    with open_driver(root, flow=flow.name) as driver:
        landing = Landing(landed_path(root))
        runner = EpochRunner(driver=driver, flow=flow, landing=landing.path, engine=lambda _: engine)
        runner.finish_pending()
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
