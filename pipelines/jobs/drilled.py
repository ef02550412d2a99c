"""The process that a drill disturbs: lands a recorded feed reading by reading into three buffers and runs its epochs.

It knows nothing of the drill. Killed anywhere, it is started again and goes on.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from pipelines.engine.commits import CommitLog, Driver, open_driver
from pipelines.engine.core import CoreEngine
from pipelines.engine.landing import Landing
from pipelines.engine.live_landing import LiveLanding
from pipelines.flows.reading import read_flow
from pipelines.jobs.backfill import Backfill
from pipelines.jobs.buffering import Buffering, open_buffers
from pipelines.jobs.readings import buffered_runner
from pipelines.jobs.stream import open_feeds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pipelines.engine.lease import Claim

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
    flow = read_flow(file, {})
    wanted = Backfill(flow=flow, root=root, base=file.parent, engine=CoreEngine())
    with open_driver(root, flow=flow.name, claim=claim) as driver:
        watching = Driver(root, flow.name, CommitLog(root), driver.token)
        buffers = open_buffers(root, Buffering(), tell, held=watching.state)
        buffers.settle()
        landing = Landing(wanted.landing, buffers)
        start = landing.last_reading() or readings[0]
        feeds = open_feeds(flow, file.parent, root, landing, tell)
        lander = LiveLanding(landing, flow, feeds, start, held=watching.state)
        runner = buffered_runner(wanted, driver, buffers)
        for number, reading in enumerate([each for each in readings if each > start]):
            time.sleep(pause)
            lander.land(0, reading)
            if number % EVERY:
                runner.advance(runner.last_sequence(), landing.last_id)
        runner.advance(runner.last_sequence(), landing.last_id)


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
