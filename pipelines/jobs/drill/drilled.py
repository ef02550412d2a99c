"""The process that a drill disturbs: lands a recorded feed reading by reading into three buffers and runs its epochs.

It knows nothing of the drill. Killed anywhere, it is started again and goes on.
"""

from __future__ import annotations

import os
import sys
import time
from functools import partial
from typing import TYPE_CHECKING

from pipelines.engine.commits.driver import CommitLog, Driver, open_driver
from pipelines.engine.landing.index import Landing
from pipelines.engine.live.landing import LiveLanding
from pipelines.engine.tasks.local import CoreEngine
from pipelines.flows.reading import read_flow
from pipelines.jobs.environment.buffer_settings import Buffering, open_buffers
from pipelines.jobs.runs.backfill import Backfill
from pipelines.jobs.runs.feeds import open_feeds
from pipelines.jobs.runs.readings import buffered_runner

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pipelines.engine.commits.entry import Entry
    from pipelines.engine.commits.lease import Claim

EVERY = 2
"""Sequences that land between two epochs."""


def drilled(file: Path, root: Path, readings: Sequence[int], pause: float, claim: Claim) -> None:
    """Land what is left of a feed, and publish it.

    Args:
        file: of the flow.
        root: the run's folder.
        readings: all of them, the first one the begin, in ticks.
        pause: seconds between two readings.
        claim: how the lease is asked for.
    """
    wanted = Backfill(flow=read_flow(file, {}), root=root, base=file.parent, engine=CoreEngine(), claim=claim)
    live(wanted, readings, every=EVERY, pause=pause)


def live(  # noqa: PLR0913 - a run, its readings, and whoever looks on
    wanted: Backfill,
    readings: Sequence[int],
    *,
    every: int = 1,
    pause: float = 0.0,
    published: Callable[[Entry], None] = lambda _: None,
    between: Callable[[Driver], object] = lambda _: None,
) -> None:
    """Land a feed reading by reading, with an epoch after every few, from where the run stands; no Spark.

    Args:
        wanted: flow, root and claim.
        readings: all of them, the first one the begin, in ticks.
        every: sequences that land between two epochs.
        pause: seconds between two readings.
        published: told of each commit when it is published.
        between: done after each epoch.
    """
    flow, root = wanted.flow, wanted.root
    with open_driver(root, flow=flow.name, claim=wanted.claim) as driver:
        watching = Driver(root, flow.name, CommitLog(root), driver.token)
        buffers = None if flow.buffers == 1 else open_buffers(root, Buffering(), tell, held=watching.state)
        if buffers is not None:
            buffers.settle()
        landing = Landing(wanted.landing, buffers)
        start = landing.last_reading() or readings[0]
        feeds = open_feeds(flow, wanted.base, root, landing, tell)
        lander = LiveLanding(landing, flow, feeds, start, held=watching.state)
        runner = buffered_runner(wanted, driver, buffers)
        runner.published = partial(_each, (runner.published, published))
        for number, reading in enumerate([each for each in readings if each > start], 1):
            time.sleep(pause)
            lander.land(0, reading)
            if number % every == 0:
                runner.advance(runner.last_sequence(), landing.last_id)
                between(driver)
        runner.advance(runner.last_sequence(), landing.last_id)


def _each(told: Sequence[Callable[[Entry], None]], entry: Entry) -> None:
    for tell_one in told:
        tell_one(entry)


def logged(  # noqa: PLR0913 - what `drilled` takes, and where it writes
    work: Callable[[Path, Path, Sequence[int], float, Claim], None],
    log: Path,
    file: Path,
    root: Path,
    readings: Sequence[int],
    pause: float,
    claim: Claim,
) -> None:
    """Do the work of a process that was forked, with all that it prints in a file."""
    with log.open("ab") as written:
        os.dup2(written.fileno(), sys.stdout.fileno())
        os.dup2(written.fileno(), sys.stderr.fileno())
    work(file, root, readings, pause, claim)


def tell(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)  # noqa: T201 - standard output is this process's log
