"""`pulseline bench scale`: what rows, tasks and files cost, fitted to runs of this machine, and what that foretells.

Two things grow with a cluster: rows, which workers share, and what one driver does for each row, task and file. Rows
are measured by backfills of growing size, tasks by ones that only sleep, files by flows of many buckets. The model is a
sum of these costs; `foretell` asks it about a day of a team that is larger than this machine.
"""

from __future__ import annotations

import gc
import shutil
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipelines.engine.landing.index import land_interval
from pipelines.engine.sources.catalog import open_recorded
from pipelines.engine.tasks.local import CoreEngine
from pipelines.engine.tasks.spark import SparkEngine
from pipelines.jobs.bench.figures import BenchFigure, seconds, tell_figures
from pipelines.jobs.bench.generated import Recorded, record
from pipelines.jobs.bench.memory import MEGABYTE, Peak
from pipelines.jobs.runs.backfill import Backfill, Ran, run_backfill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pipelines.engine.tasks.task import Done, Task
    from pipelines.flows.model import Flow

KEYS = 1_000
INTERVAL = 10_000_000
"""Most rows of one interval that is measured."""
ROWS = (1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000)
TASKS = (1, 10, 100, 1_000, 10_000)
SLOTS = 32
"""Sleeping tasks that run at once."""
NAP = 0.05
"""Seconds that each sleeps."""
WARM = 8
"""Sleeping tasks of each slot that are not counted: a worker imports with its first one."""
WORKERS = 2
DAY = 86_400
PARTS = ("landing", "tasks", "merge", "dispatch", "files", "commit")


class Took(NamedTuple):
    """What a backfill took."""

    rows: int
    landing: float
    """Seconds, in the driver."""
    tasks: float
    """Seconds on the workers, from the first to the last."""
    whole: float
    """Seconds behind the landing: tasks and commit."""


@dataclass(frozen=True, kw_only=True)
class Costs:
    """The model: what each part costs on this machine, in seconds."""

    landing: float
    """Of a row, in the driver."""
    task: float
    """Of a row of one stage by key, of one core."""
    merge: float
    """Of a row of a stage without key, which is one task."""
    dispatch: float
    """Of a task, in the driver."""
    file: float
    """Of a task's files, in the driver: named, listed, looked for, settled."""
    commit: float
    """Of a commit, whatever it holds."""
    memory: float
    """Bytes of the driver for each row of an interval that lands."""
    disk: float
    """Bytes of a row that landed once and left once."""

    def foretell(self, rows: float, tasks: float, cores: float) -> dict[str, float]:
        """Give the seconds of one interval, by part; parts follow one another.

        Args:
            rows: of the interval.
            tasks: of its stage by key.
            cores: of all workers.
        """
        parts = (
            self.landing * rows,
            self.task * rows / min(cores, tasks),
            self.merge * rows,
            self.dispatch * tasks,
            self.file * tasks,
            self.commit,
        )
        return dict(zip(PARTS, parts, strict=True))


@dataclass(frozen=True, kw_only=True)
class LargerDay:
    """A cluster and a day that the model is asked about."""

    nodes: int
    cores: int
    """Of a node."""
    rows: float
    """Of a day."""
    every: float
    """Seconds of an interval."""


def bench_scale(as_json: bool, most_rows: int, most_tasks: int, ahead: LargerDay, echo: Callable[[str], None]) -> int:  # noqa: FBT001
    """Measure, fit, and tell what is foretold.

    Args:
        as_json: one object a line instead of words.
        most_rows: of the largest backfill.
        most_tasks: of the largest job.
        ahead: what is asked of the model.
        echo: where lines go.

    Returns:
        0.
    """
    with tempfile.TemporaryDirectory(prefix="pulseline-bench-") as folder:
        sizes = [rows for rows in ROWS if rows <= most_rows] or [most_rows]
        counts = [tasks for tasks in TASKS if tasks <= most_tasks]
        return tell_figures(_measured(Path(folder), sizes, counts, ahead), as_json=as_json, echo=echo)


def _measured(base: Path, sizes: Sequence[int], counts: Sequence[int], ahead: LargerDay) -> Iterator[BenchFigure]:
    engine = SparkEngine(f"local[{WORKERS}]", base / "spark.log")
    try:
        runs = [_ran(engine, base, rows) for rows in sizes]
        disk, memory, merge = _bytes_and_merge(engine, base, min(sizes[-1], INTERVAL))
    finally:
        engine.close()
    for took in runs:
        yield _figure(f"backfill of {took.rows:,} rows", took.landing + took.whole, "s", took.rows)
        yield _figure("  of it landing", took.landing, "s", took.rows)
        yield _figure("  of it tasks", took.tasks, "s", took.rows)
    files = [(tasks, _many_files(base, tasks)) for tasks in counts]
    for tasks, spent in files:
        yield _figure(f"the driver's part of a commit of {tasks:,} tasks and their files", spent, "s")
    dispatched = [(tasks, waves) for tasks, waves in zip(counts, _slept(base, counts), strict=True)]
    for tasks, spent in dispatched:
        yield _figure(f"{tasks:,} tasks that sleep, beyond their sleep", spent, "s")
    costs = fitted(runs, files, dispatched, merge, memory, disk)
    yield from _told(costs)
    yield _figure("the model's largest error over the backfills", _error(costs, runs) * 100, "%")
    yield from foretold(costs, ahead)


def fitted(  # noqa: PLR0913 - all that was measured
    runs: Sequence[Took],
    files: Sequence[tuple[int, float]],
    dispatched: Sequence[tuple[int, float]],
    merge: float,
    memory: float,
    disk: float,
) -> Costs:
    """Fit the model: each cost is a slope, weighted so that small runs count as much as large ones."""
    rows = np.array([took.rows for took in runs], dtype=float)
    landing, _ = _line(rows, np.array([took.landing for took in runs]))
    task, _ = _line(rows, np.array([took.tasks for took in runs]))
    file, commit = _line(np.array([n for n, _ in files], dtype=float), np.array([spent for _, spent in files]))
    dispatch, _ = _line(np.array([n for n, _ in dispatched], dtype=float), np.array([spent for _, spent in dispatched]))
    return Costs(
        landing=landing,
        task=task * WORKERS,
        merge=merge,
        dispatch=dispatch,
        file=file,
        commit=commit,
        memory=memory,
        disk=disk,
    )


def _line(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Fit y = slope x + rest with the least relative error, neither below zero."""
    if len(x) == 1:
        return float(y[0] / x[0]), 0.0
    design = np.stack([x, np.ones_like(x)], axis=1) / y[:, None]
    slope, rest = np.linalg.lstsq(design, np.ones_like(y), rcond=None)[0]
    if rest < 0:
        return float(1 / np.mean(y / x / (y / x) ** 2)), 0.0
    return max(float(slope), 0.0), float(rest)


def _error(costs: Costs, runs: Sequence[Took]) -> float:
    """Give the largest share by which the model misses a backfill."""
    return max(abs(_modelled(costs, took) / (took.landing + took.whole) - 1) for took in runs)


def _modelled(costs: Costs, took: Took) -> float:
    intervals = max(1, took.rows // INTERVAL)
    parts = costs.foretell(took.rows / intervals, 4, WORKERS)
    return intervals * sum(value for name, value in parts.items() if name != "merge")


def _told(costs: Costs) -> Iterator[BenchFigure]:
    yield _figure("landing, of a row in the driver", costs.landing * 1e6, "µs")
    yield _figure("a stage by key, of a row and one core", costs.task * 1e6, "µs")
    yield _figure("a stage without key, of a row in its one task", costs.merge * 1e6, "µs")
    yield _figure("dispatch, of a task in the driver", costs.dispatch * 1e3, "ms")
    yield _figure("files, of a task in the driver", costs.file * 1e3, "ms")
    yield _figure("a commit, whatever it holds", costs.commit * 1e3, "ms")
    yield _figure("memory of the driver, of a row of the interval that lands", costs.memory, "bytes")
    yield _figure("disk, of a row that landed once and left once", costs.disk, "bytes")


def foretold(costs: Costs, ahead: LargerDay) -> Iterator[BenchFigure]:
    """Say what an interval of a larger day would take, and what each part would fill of the time there is."""
    rows, cores = ahead.rows * ahead.every / DAY, ahead.nodes * ahead.cores
    parts = costs.foretell(rows, cores, cores)
    yield _figure(f"foretold: rows of an interval of {ahead.every:,.0f} s, {cores:,} cores", rows, "rows")
    for name, value in parts.items():
        yield _figure(f"foretold: {name}", value, "s", share=value / ahead.every)
    whole = sum(parts.values())
    yield _figure("foretold: an interval, part after part", whole, "s", share=whole / ahead.every)
    yield _figure("foretold: memory of the driver", costs.memory * rows / 1e9, "GB")
    yield _figure("foretold: bytes a second into the home", costs.disk * ahead.rows / DAY / 1e6, "MB/s")


def _figure(name: str, value: float, unit: str, rows: int = 0, share: float | None = None) -> BenchFigure:
    against = "" if share is None else "the time there is"
    return BenchFigure(bench="scale", name=name, value=value, unit=unit, rows=rows, against=against, ratio=share)


def _ran(engine: SparkEngine, base: Path, rows: int) -> Took:
    """Backfill generated rows, in intervals of at most `INTERVAL`; once more before, where they are few, for warmth."""
    feed = record(base / f"rows-{rows}", rows, KEYS)
    flow = feed.beating()
    if rows == ROWS[0]:
        _backfilled(engine, feed, flow, "warm")
    took = _backfilled(engine, feed, flow, "run")
    shutil.rmtree(feed.folder)
    return took


def _backfilled(engine: SparkEngine, feed: Recorded, flow: Flow, run: str) -> Took:
    wanted = Backfill(flow=flow, root=feed.folder / run, base=feed.folder, engine=engine)
    feeds, landing, done = open_recorded(flow, feed.folder), 0.0, list[Ran]()
    whole = 0.0
    for span in feed.spans(max(1, feed.rows // INTERVAL)):
        landing += seconds(partial(land_interval, wanted.landing, flow, *span, feeds))
        whole += seconds(partial(run_backfill, wanted, [span], done=done.append))
    tasks = sum(float(str(each.entry.durations["tasks_ms"])) for each in done) / 1_000
    return Took(feed.rows, landing, tasks, whole)


def _bytes_and_merge(engine: SparkEngine, base: Path, rows: int) -> tuple[float, float, float]:
    """Measure bytes on disk and in memory, and a stage without key, each of a row."""
    feed = record(base / "bytes", rows, KEYS)
    _backfilled(engine, feed, feed.beating(), "run")
    disk = sum(file.stat().st_size for file in (feed.folder / "run").rglob("*") if file.is_file()) / rows
    # In a process of its own: what one has taken once it keeps.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
        memory = alone.submit(_memory, feed).result() / rows
    three = record(base / "three", rows, 3)
    flow = three.flow("merge: rows, ports_by: {device: [0, 1, 2]}", buckets=1)
    _backfilled(engine, three, flow, "warm")
    merge = _backfilled(engine, three, flow, "again").tasks / rows
    shutil.rmtree(feed.folder)
    shutil.rmtree(three.folder)
    return disk, memory, merge


def _memory(feed: Recorded) -> float:
    """Land a feed; give the bytes that this process grew by, at most."""
    flow, feeds = feed.beating(), open_recorded(feed.beating(), feed.folder)
    wanted = Backfill(flow=flow, root=feed.folder / "watched", base=feed.folder, engine=CoreEngine())
    # A few rows before: what is loaded once is no row's.
    land_interval(wanted.landing.with_name("few"), flow, *feed.spans(100)[0], feeds)
    with Peak() as before:
        gc.collect()
    with Peak() as after:
        land_interval(wanted.landing, flow, *feed.spans(1)[0], feeds)
    return (after.python - before.python) * MEGABYTE


def _many_files(base: Path, tasks: int) -> float:
    """Give what the driver does for a commit of so many buckets, beside its tasks and the landing."""
    feed = record(base / f"files-{tasks}", max(10 * tasks, 1_000), tasks)
    wanted = Backfill(flow=feed.beating(tasks), root=feed.folder / "run", base=feed.folder, engine=CoreEngine())
    done: list[Ran] = []
    land_interval(wanted.landing, wanted.flow, *feed.spans(1)[0], open_recorded(wanted.flow, feed.folder))
    whole = seconds(lambda: run_backfill(wanted, feed.spans(1), done=done.append))
    shutil.rmtree(feed.folder)
    return whole - float(str(done[0].entry.durations["tasks_ms"])) / 1_000


class _Listening(CoreEngine):
    """Keeps the tasks of the newest stage."""

    tasks: Sequence[Task] = ()

    def run(self, tasks: Sequence[Task]) -> list[Done]:
        self.tasks = tasks
        return super().run(tasks)


def _slept(base: Path, counts: Sequence[int]) -> list[float]:
    """Send real tasks out as often as asked, each to sleep only; give what each job took beyond the sleep, in seconds.

    Workers share this machine's cores, so what they do for a task of their own is in it: more than the driver's part.
    """
    feed, engine = record(base / "slept", 1_000, 4), _Listening()
    run_backfill(
        Backfill(flow=feed.beating(), root=feed.folder / "run", base=feed.folder, engine=engine), feed.spans(1)
    )
    spark = SparkEngine(f"local[{SLOTS}]", base / "sleeping.log")
    try:
        context = spark.session().sparkContext

        def job(count: int) -> float:
            tasks = [engine.tasks[number % len(engine.tasks)] for number in range(count)]
            return seconds(lambda: context.parallelize(tasks, count).map(_sleep).collect())

        job(WARM * SLOTS)
        return [max(job(count) - NAP * -(-count // SLOTS), 1e-4) for count in counts]
    finally:
        spark.close()


def _sleep(task: Task) -> int:
    time.sleep(NAP)
    return task.bucket
