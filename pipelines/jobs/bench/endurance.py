"""`pulseline bench endurance`: what a small commit of a stream costs at the end of many, and whether all else is flat.

The run keeps nothing for readers who look back or are at it, so that what is replaced goes at once and not within an
hour or a week: what is left is what grows. A run has its newest 512 sequences as folders of their own, so that files
stand still only behind these.
"""

from __future__ import annotations

import datetime as dt
import os
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import psutil

from pipelines.engine.commits import housekeeping, log
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.landing.index import Landing
from pipelines.engine.live.landing import LiveLanding
from pipelines.engine.live.upkeep import Upkeep
from pipelines.engine.tasks.local import CoreEngine
from pipelines.jobs.bench.figures import BenchFigure, Median, seconds, tell_figures
from pipelines.jobs.bench.memory import MEGABYTE
from pipelines.jobs.bench.stream import BEGIN, KEYS, RECORDED, laid_feed, laid_flow
from pipelines.jobs.commands.stream import HOUSE_EVERY
from pipelines.jobs.runs.backfill import Backfill
from pipelines.jobs.runs.feeds import open_feeds
from pipelines.jobs.runs.readings import runner_of
from pipelines.operators.rows import TICKS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROWS = 10
"""Of a commit."""
EARLY = 10
"""The end is held against what it was after the first part in so many."""
LATER, FLAT = 1.2, 1.2
"""Times: a late commit an early one, and files, handles and memory those of then."""
NOTHING = dt.timedelta(0)
KEPT = 100 * TICKS_PER_SECOND
"""So long landed rows are kept behind the newest reading, in ticks: a hundred commits."""


@dataclass(frozen=True)
class RunTakes:
    """What a run has taken at one moment: files in its folder, and handles and MB of this process."""

    files: int
    handles: int
    memory: float


def bench_endurance(commits: int, *, as_json: bool, echo: Callable[[str], None]) -> int:
    """Measure a stream of small commits, each landed and published, with the upkeep between them.

    Args:
        commits: how many.
        as_json: one object a line instead of words.
        echo: where lines go.

    Returns:
        0, or 1 where a target is not held.
    """
    with tempfile.TemporaryDirectory(prefix="pulseline-bench-") as folder:
        return tell_figures(endured(Path(folder), commits), as_json=as_json, echo=echo)


def endured(base: Path, commits: int) -> Iterator[BenchFigure]:
    """Run commits; hold the last part of them against the part behind the first tenth, and what is taken at each."""
    early, part = commits // EARLY, max(commits // EARLY // 2, 1)
    with without_readers():
        took, stood = _run(base, commits, {early + part, commits})
    (then, now) = stood.values()
    first, last = took[early : early + part], took[-part:]
    against = f"that after {early:,}"

    def figure(name: str, value: float, unit: str, beside: float, target: float) -> BenchFigure:
        held = {"against": against, "ratio": value / beside, "target": target}
        return BenchFigure(bench="endurance", name=name, value=value, unit=unit, rows=ROWS, keys=KEYS, **held)  # type: ignore[arg-type]

    yield figure(f"median of a commit after {commits:,}", Median.of(last), "s", Median.of(first), LATER)
    # A mean has in it what is done once in many commits: tables put in order, history put together.
    yield figure("  mean of it, with upkeep", float(np.mean(last)), "s", float(np.mean(first)), LATER)
    yield figure("  files of the run", now.files, "files", then.files, FLAT)
    yield figure("  handles of the process", now.handles, "handles", then.handles, FLAT)
    yield figure("  memory of the process", now.memory, "MB", then.memory, FLAT)


@contextmanager
def without_readers() -> Iterator[None]:
    """Let what nobody needs any more go at once: nobody but this process reads the run."""
    kept = housekeeping.KEEP_CARRY, log.KEEP_LOG
    housekeeping.KEEP_CARRY = log.KEEP_LOG = NOTHING
    try:
        yield
    finally:
        housekeeping.KEEP_CARRY, log.KEEP_LOG = kept


def _run(base: Path, commits: int, looked: set[int]) -> tuple[list[float], dict[int, RunTakes]]:
    """Land and commit a reading each; give the seconds of each, and what was taken behind some of them."""
    flow, core, took, stood = laid_flow(base, RECORDED), CoreEngine(), list[float](), dict[int, RunTakes]()
    laid_feed(base, BEGIN + np.arange(commits * ROWS) * TICKS_PER_SECOND // ROWS)
    wanted = Backfill(flow=flow, root=base / "live", base=base, engine=core)
    with open_driver(wanted.root, flow=flow.name) as driver:
        landing = Landing(wanted.landing)
        lander = LiveLanding(landing, flow, open_feeds(flow, base, wanted.root, landing), BEGIN)
        runner, upkeep = runner_of(wanted, driver, core), Upkeep(driver)

        def commit(number: int) -> None:
            reading = BEGIN + number * TICKS_PER_SECOND
            lander.land(BEGIN, reading)
            runner.advance(number - 1, number)
            upkeep.keep(every=HOUSE_EVERY, keep=NOTHING, rows=KEPT)

        for number in range(1, commits + 1):
            took.append(seconds(lambda: commit(number)))  # noqa: B023 - called here
            if number in looked:
                stood[number] = _standing(wanted.root)
        lander.close()
    return took, stood


def _standing(root: Path) -> RunTakes:
    me = psutil.Process()
    files = sum(len(names) for _, _, names in os.walk(root))
    return RunTakes(files, me.num_fds(), me.memory_full_info().uss / MEGABYTE)
