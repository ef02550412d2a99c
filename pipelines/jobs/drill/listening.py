"""The process that the drill `live` disturbs: listens to its sources, lands readings and publishes them, without Spark.

It knows nothing of the drill. Killed anywhere, it is started again and goes on. A reading is noted before it lands, as
Spark notes it, and the next process begins with the one that was noted last, whenever that was.
"""

from __future__ import annotations

import signal
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pipelines.engine.columnar.clock import WallClock, wall_now
from pipelines.engine.commits.driver import CommitLog, Driver, open_driver
from pipelines.engine.landing.index import Landing
from pipelines.engine.live.landing import LiveLanding
from pipelines.jobs.drill.drilled import tell
from pipelines.jobs.drill.witness import Killer
from pipelines.jobs.environment.buffer_settings import Buffering, open_buffers
from pipelines.jobs.runs.feeds import open_feeds
from pipelines.jobs.runs.readings import buffered_runner

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from pathlib import Path

    from pipelines.engine.commits.entry import Entry
    from pipelines.engine.landing.sequence import LandedSequence
    from pipelines.engine.live.epochs import EpochRunner
    from pipelines.jobs.drill.loops import Here
    from pipelines.jobs.drill.witness import CutAt

LATE = 500_000
"""Ticks between two readings, from which on the process slept."""
STILL, LOOKS = 0.5, 3
"""Seconds, and readings, without a row behind the last one that was sent, after which all has come."""


@dataclass(frozen=True)
class Pace:
    """How a process lands."""

    pause: float
    """Seconds between a reading that is noted and its landing."""
    every: int
    """Readings between two epochs."""


def noted(here: Here) -> Path:
    """Give the file in which a run notes its readings; it is there when a process listens."""
    return here.home / "noted"


def listening(pipe: Connection, here: Here, pace: Pace, at: CutAt | None, over: Path) -> None:
    """Land and publish what comes, until `over` is there and nothing more comes, or somebody asks to stop.

    Args:
        pipe: told each commit.
        here: the run.
        pace: how it lands.
        at: where the process kills itself.
        over: a file that is there when all was sent.
    """
    asked = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: asked.set())
    witness = Killer(here.home, pipe, at)
    witness.watch()
    wanted = here.wanted()
    flow, root = wanted.flow, wanted.root
    with open_driver(root, flow=flow.name, claim=here.claim) as driver:
        watching = Driver(root, flow.name, CommitLog(root), driver.token)
        buffers = None if flow.buffers == 1 else open_buffers(root, Buffering(), tell, held=watching.state)
        if buffers is not None:
            buffers.settle()
        landing = Landing(wanted.landing, buffers)
        feeds = open_feeds(flow, wanted.base, root, landing, tell)
        start = landing.last_reading() or wall_now()
        lander = LiveLanding(landing, flow, feeds, start, held=watching.state, clock=WallClock(), late=LATE)
        runner = buffered_runner(wanted, driver, buffers)
        covered = runner.published

        def published(entry: Entry) -> None:
            covered(entry)
            witness.tell(entry)

        runner.published = published
        lander.listen()
        LiveLoop(lander, landing, runner, noted(here), pace, over).run(asked)
        lander.close()


@dataclass
class LiveLoop:
    """Notes a reading, waits, lands it, and publishes every few."""

    lander: LiveLanding
    landing: Landing
    runner: EpochRunner
    noted: Path
    pace: Pace
    over: Path
    still: list[float] = field(default_factory=list)
    """When readings landed nothing, one after the other, behind the last row that was sent."""

    def run(self, asked: threading.Event) -> None:
        """Go on until all has come, or somebody asks to stop."""
        reading, landed = int(self.noted.read_text()) if self.noted.exists() else self._plan(), 0
        while not asked.wait(self.pace.pause):
            sequence = self.lander.land(0, reading)
            landed += 1
            if landed % self.pace.every == 0:
                self._publish()
            if self.is_over(sequence):
                break
            reading = self._plan()
        self._publish()

    def is_over(self, sequence: LandedSequence | None) -> bool:
        """Say whether the last row was sent, and none has come for a while."""
        rows = 0 if sequence is None else sum(source.rows for source in sequence.sources.values())
        if rows or self.lander.backlog or not self.over.exists():
            self.still.clear()
        else:
            self.still.append(time.monotonic())
        return len(self.still) > LOOKS and self.still[-1] - self.still[0] > STILL

    def _plan(self) -> int:
        reading, draft = wall_now(), self.noted.with_suffix(".part")
        draft.write_text(str(reading))
        draft.replace(self.noted)
        return reading

    def _publish(self) -> None:
        self.runner.advance(self.runner.last_sequence(), self.landing.last_id)
