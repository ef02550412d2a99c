"""`pulseline bench scale`: what rows, tasks and files cost, fitted to runs of this machine, and what that foretells.

Two things grow with a cluster: rows, which workers share, and what one driver does for each row, task and file. Rows
are measured by backfills of growing size, tasks by ones that only sleep, files by flows of many buckets, calls by
commits in an emulated store. The model is a sum of these costs; `scale_model` fits it, holds it against each
measurement and asks it about a day of a team that is larger than this machine.
"""

from __future__ import annotations

import gc
import shutil
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pipelines.engine.files.stored import path_of
from pipelines.engine.landing.index import land_interval
from pipelines.engine.sources.catalog import open_recorded
from pipelines.engine.tasks.local import CoreEngine
from pipelines.engine.tasks.spark import SparkEngine, leave_out_of_collection
from pipelines.flows.reading import MOST_BUCKETS
from pipelines.jobs.bench.figures import seconds, tell_figures
from pipelines.jobs.bench.generated import Recorded, record
from pipelines.jobs.bench.memory import MEGABYTE, Peak
from pipelines.jobs.bench.scale_model import (
    BUCKETS,
    INTERVAL,
    WORKERS,
    Called,
    ScaleFigures,
    Took,
    figure,
    fitted,
    foretold,
    residuals,
    told,
)
from pipelines.jobs.proofs.emulator import BUCKET, access_to, emulator, in_environment
from pipelines.jobs.proofs.store_proxy import StoreFault, StoreProxy
from pipelines.jobs.runs.backfill import Backfill, Ran, run_backfill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pipelines.engine.tasks.task import Done, Task
    from pipelines.flows.model import Flow
    from pipelines.jobs.bench.figures import BenchFigure
    from pipelines.jobs.bench.scale_model import LargerDay

KEYS = 1_000
ROWS = (1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000)
TASKS = (1, 10, 100, 1_000, 10_000)
SLOTS = 8
"""Sleeping tasks that run at once."""
NAP = 0.02
"""Seconds that each sleeps."""
WARM = 8
"""Sleeping tasks of each slot that are not counted: a worker imports with its first one."""
CALLED = (1, 4, 16)
"""Tasks of commits whose calls are counted."""
KEYS_A_TASK = 8
"""So many that no task has none."""
WARM_COMMITS, COMMITS = 2, 3
"""Of those that ask a store: not counted, counted, and as many again that are held up."""
HELD_UP = 0.05
"""Seconds of a call then."""


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
    engine, runs = SparkEngine(f"local[{WORKERS}]", base / "spark.log"), list[Took]()
    try:
        for rows in sizes:
            runs.append(_ran(engine, base, rows))
            yield from _told_run(runs[-1])
        disk, memory, merge = _bytes_and_merge(engine, base, min(sizes[-1], INTERVAL))
    finally:
        engine.close()
    files = [(tasks, _many_files(base, tasks)) for tasks in counts if tasks <= MOST_BUCKETS]
    for tasks, spent in files:
        yield figure(f"the driver's part of a commit of {tasks:,} tasks and their files", spent, "s")
    slept = list(zip(counts, _slept(base, counts), strict=True))
    for tasks, spent in slept:
        yield figure(f"{tasks:,} tasks that sleep, beyond their sleep", spent, "s")
    called = [_called(base, tasks) for tasks in CALLED]
    for each in called:
        yield figure(f"calls of a commit of {each.tasks:,} tasks in a store", each.calls, "calls")
        yield figure("  of the driver's, one behind another", each.chain, "calls")
    found = ScaleFigures(runs=runs, files=files, slept=slept, called=called, merge=merge, memory=memory, disk=disk)
    costs = fitted(found)
    yield from told(costs)
    yield from residuals(costs, found)
    yield from foretold(costs, ahead)


def _told_run(took: Took) -> Iterator[BenchFigure]:
    yield figure(f"backfill of {took.rows:,} rows", took.landing + took.whole, "s", took.rows)
    yield figure("  of it landing", took.landing, "s", took.rows)
    yield figure("  of it tasks", took.tasks, "s", took.rows)


def _ran(engine: SparkEngine, base: Path, rows: int) -> Took:
    """Backfill generated rows, in intervals of at most `INTERVAL`; once more before, where they are few, for warmth."""
    feed = record(base / f"rows-{rows}", rows, KEYS)
    flow = feed.beating(BUCKETS)
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
    memory = _memory_alone(feed) / rows
    three = record(base / "three", rows, 3)
    flow = three.flow("merge: rows, ports_by: {device: [0, 1, 2]}", buckets=1)
    _backfilled(engine, three, flow, "warm")
    merge = _backfilled(engine, three, flow, "again").tasks / rows
    shutil.rmtree(feed.folder)
    shutil.rmtree(three.folder)
    return disk, memory, merge


def _memory_alone(feed: Recorded) -> float:
    """Measure in a process of its own: what one has taken once it keeps, and gives back when it likes."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
        return alone.submit(_memory, feed).result()


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


def _called(base: Path, tasks: int) -> Called:
    """Count what a commit of so many tasks asks of an emulated store, its landing among it, and what waits for what.

    Each call is held up for a while, and what the driver takes longer by says how many of its calls waited for one
    another. Tasks are not in it: on a cluster they wait beside each other.
    """
    feed = record(base / f"called-{tasks}", 10_000, KEYS_A_TASK * tasks)
    counts, spent = list[int](), list[float]()
    with emulator() as behind, StoreProxy(behind).listening() as proxy, in_environment(access_to(proxy.port)):
        proxy.slow = HELD_UP

        def counted(ran: Ran) -> None:
            calls, _, _ = proxy.counted()
            counts.append(calls.total())
            spent.append(ran.seconds - float(str(ran.entry.durations["tasks_ms"])) / 1_000)
            if len(spent) == WARM_COMMITS + COMMITS:
                proxy.disturbing = lambda _: StoreFault.SLOW

        root = path_of(f"s3://{BUCKET}/called-{tasks}")
        wanted = Backfill(flow=feed.beating(tasks), root=root, base=feed.folder, engine=CoreEngine())
        run_backfill(wanted, feed.spans(WARM_COMMITS + 2 * COMMITS), done=counted)
    shutil.rmtree(feed.folder)
    quick, slow = np.split(np.array(spent[WARM_COMMITS:]), 2)
    chain = float(np.median(slow) - np.median(quick)) / HELD_UP
    return Called(tasks, float(np.median(counts[WARM_COMMITS:])), max(chain, 1.0))


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
    # As behind every task of ours: else a worker looks through all that it has loaded, a quarter of a second each time.
    leave_out_of_collection()
    return task.bucket
