"""`pulseline bench order`: what order, instances and regions cost, as ratios of one run."""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import psutil

from pipelines.jobs.bench import order_flows as flows
from pipelines.jobs.bench import order_runs as runs
from pipelines.jobs.bench.figures import BenchFigure, tell_figures
from pipelines.jobs.bench.memory import own_processes
from pipelines.jobs.bench.order_flows import laid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pipelines.engine.tasks.stages import Engine

SMALL = 200
"""Rows of a small epoch."""
MOST_LATE = 0.5
"""Seconds by which a row may be later that crosses a queue."""
EPOCHS = 20
"""Of two heavy modules: at the beginning and at the end one region waits for the other."""
CROSSING = 200_000
"""Rows that cross a queue."""


def bench_order(rows: int, commits: int, *, spark: bool, as_json: bool, echo: Callable[[str], None]) -> int:
    """Measure ratios, each against what it is compared with in the same run.

    Args:
        rows: of a large batch.
        commits: of each run of small epochs.
        spark: also what needs several cores: instances and regions on Spark.
        as_json: one object a line instead of words.
        echo: where lines go.

    Returns:
        0, or 1 where a target is not held.
    """
    with tempfile.TemporaryDirectory() as folder:
        return tell_figures(_measured(Path(folder), rows, commits, spark=spark), as_json=as_json, echo=echo)


def _measured(base: Path, rows: int, commits: int, *, spark: bool) -> Iterator[BenchFigure]:
    turns, threads = runs.by_threads(base / "tables", 24, commits)
    yield _ratio("24 tables added by four threads", threads, "one after the other", turns, 0.6)
    yield from _regions(base, commits)
    yield from _order(base, rows)
    if spark:
        yield from _on_spark(base, rows)


def _ratio(  # noqa: PLR0913 - what a figure says
    name: str,
    value: float,
    against: str,
    other: float,
    target: float | None,
    *,
    unit: str = "s",
    at_least: bool = False,
) -> BenchFigure:
    ratio = value / other
    return BenchFigure(
        bench="order",
        name=name,
        value=value,
        unit=unit,
        against=against,
        ratio=ratio,
        target=target,
        at_least=at_least,
    )


def _regions(base: Path, commits: int) -> Iterator[BenchFigure]:
    """Measure what legs and their queues cost, in this process."""
    here = laid(base / "legs", flows.TABLES, SMALL * commits)
    cpu = time.process_time()
    all_epochs = runs.epoch_seconds(here, "one", commits)
    cpu = time.process_time() - cpu
    # What the interpreter does of one leg keeps it from the other: both are threads of one process.
    yield _ratio("processor time of epochs of 24 tables in one leg", cpu, "all their time", sum(all_epochs), None)
    epochs = runs.warm(all_epochs)
    one, two = sum(epochs), sum(runs.warm(runs.in_legs_seconds(here, "two", commits)))
    yield _ratio("epochs of 24 tables in two legs", two, "those in one", one, 0.75)
    # Two legs beside each other take as long as the larger: one pays where its own work is more than what it costs.
    name, a_row = "work of a row from which a region of its own pays, on a core of its own", 1e6 / len(epochs) / SMALL
    costs = max(0.0, two - one)
    yield _ratio(name, costs * a_row, f"an epoch of {SMALL} rows in one", one * a_row, None, unit="µs")
    published, crossed = runs.crossing(laid(base / "crossing", flows.BEHIND, CROSSING))
    yield _ratio("a row that crosses a queue", crossed, "publishing it", published, 0.6, unit="µs")
    here = laid(base / "late", flows.SLOW, SMALL * commits)
    behind, at_once = (
        float(np.median(runs.warm(took(here, name, commits))))
        for name, took in (("behind", runs.behind_seconds), ("at_once", runs.epoch_seconds))
    )
    name = "p50 lateness of a row that crosses a queue, beyond that in one region"
    yield _ratio(name, behind - at_once, "half a second", MOST_LATE, 1.0)
    here, slow = laid(base / "slow", flows.SLOW, SMALL * commits), runs.SlowEngine()
    alone, same = (_p99(runs.epoch_seconds(here, name, commits, by)) for name, by in (("alone", None), ("same", slow)))
    own = _p99(runs.in_legs_seconds(here, "own", commits, others=slow)[:-1])
    yield _ratio("p99 of an epoch beside a slow module in a region of its own", own, "without it", alone, 1.2)
    yield _ratio("p99 of an epoch with the slow module in the same region", same, "without it", alone, None)
    found = runs.depth(laid(base / "depth", flows.BEHIND, SMALL * commits), commits)
    name = "rows in a queue that nobody reads"
    yield _ratio(name, found.waiting, "its bound and one epoch", found.bound, 1.0, unit="rows")
    yield _ratio(
        "memory while nobody reads, the queue full", found.full, "behind one epoch", found.before, 1.1, unit="MB"
    )


def _p99(took: list[float]) -> float:
    return float(np.quantile(runs.warm(took), 0.99))


def _order(base: Path, rows: int) -> Iterator[BenchFigure]:
    """Measure interleave and loop beside what they stand in for."""
    met, united = runs.in_turn_seconds(
        *(laid(base / name, text, rows) for name, text in (("met", flows.INTERLEAVED), ("united", flows.UNITED)))
    )
    yield _ratio("interleave with turns", met, "a union of the same rows", united, 1.0)
    round_, pasted = runs.in_turn_seconds(
        *(laid(base / name, text, rows // 4) for name, text in (("round", flows.ROUND), ("pasted", flows.PASTED)))
    )
    name = f"a loop of {flows.ROUNDS} rounds"
    yield _ratio(name, round_, f"its body {flows.ROUNDS} times in a row", pasted, 1.3)


def _on_spark(base: Path, rows: int) -> Iterator[BenchFigure]:
    """Measure what runs on several cores."""
    from pipelines.jobs.environment.settings import read_settings

    settings = read_settings()
    by = {n: laid(base / f"by{n}", flows.shared_out(n), rows) for n in (1, 2, 4)}
    here = laid(base / "regions", flows.REGIONS, rows)
    with _cores(base, settings.master, settings.spark) as engine:
        took = {n: runs.batch_seconds(each, engine) for n, each in by.items()}
        cpu, again = runs.busy(partial(runs.once, by[1], "busy", engine))
        # Parquet's columns are written and read by threads: one task is more than one core's work.
        yield _ratio("processor time of a heavy module that is one task", cpu, "its time", again, None)
        one = sum(runs.warm(runs.epoch_seconds(here, "one", EPOCHS, engine)))
        cpu, epochs = runs.busy(partial(runs.in_legs_seconds, here, "two", EPOCHS, engine))
        yield _ratio("processor time of two heavy modules in two regions", cpu, "their time", sum(epochs), None)
        two = sum(runs.warm(epochs))
    with on_one_core(), _cores(base, "local[1]", settings.spark) as engine:
        one_core = runs.batch_seconds(laid(base / "alone", flows.shared_out(1), rows), engine)
        alone = sum(runs.warm(runs.epoch_seconds(here, "alone", EPOCHS, engine)))
    for n, target in ((2, 1.6), (4, 1.5)):
        name = f"{n} instances of a heavy module that is one task"
        yield _ratio(name, rows / took[n], "one on one core", rows / one_core, target, unit="rows/s", at_least=True)
        yield _ratio(name, rows / took[n], "one on the same cores", rows / took[1], None, unit="rows/s")
    counted = rows * (1 - runs.WARM)
    name = "two heavy modules in two regions"
    yield _ratio(name, counted / two, "in one on one core", counted / alone, 1.5, unit="rows/s", at_least=True)
    # Nothing is promised of these: one region has the same cores, and parts of its stages run at the same time, too.
    yield _ratio(name, counted / two, "in one on the same cores", counted / one, None, unit="rows/s")


@contextmanager
def on_one_core() -> Iterator[None]:
    """Keep this process, and those it has started and starts, on one core, where the system can do that."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    all_of_them = os.sched_getaffinity(0)
    _stay_on({min(all_of_them)})
    try:
        yield
    finally:
        _stay_on(all_of_them)


def _stay_on(cores: set[int]) -> None:
    """Put every thread on some cores; Spark's JVM outlives a session, and what is started later does as its starter."""
    for process in own_processes():
        with suppress(psutil.Error):
            for thread in process.threads():
                with suppress(ProcessLookupError):
                    os.sched_setaffinity(thread.id, cores)


@contextmanager
def _cores(base: Path, master: str, spark: Mapping[str, str]) -> Iterator[Engine]:
    from pipelines.engine.tasks.spark import SparkEngine

    engine = SparkEngine(master, base / "spark.log", spark)
    try:
        yield engine
    finally:
        engine.close()
