"""`pulseline bench stream`: what a commit of a live stream costs, and how late timers are while all is silent."""

from __future__ import annotations

import tempfile
import time
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.engine.columnar.columns import times
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.history import settled_of
from pipelines.engine.commits.readers import log_state
from pipelines.engine.live.epochs import SMALL_EPOCH, EpochRunner
from pipelines.engine.live.upkeep import Upkeep
from pipelines.engine.tasks.local import CoreEngine
from pipelines.engine.tasks.spark import SparkEngine
from pipelines.flows.reading import read_flow
from pipelines.jobs.bench.figures import BenchFigure, tell_figures
from pipelines.jobs.commands.stream import HOUSE_EVERY, Live, run_live
from pipelines.jobs.runs.backfill import Backfill, run_backfill
from pipelines.jobs.runs.readings import land_readings
from pipelines.operators.rows import TICKS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pipelines.engine.tasks.stages import Engine
    from pipelines.flows.model import Flow

KEYS = 1_000
SIZES = (0, 1_000, 100_000, 1_000_000)
REPEATS = 3
OUT_OF_ORDER = 0.01
"""Share of rows whose event time lies before that of rows that came earlier."""
WARM_UP = (1_000, SMALL_EPOCH + 1, SMALL_EPOCH + 1)
"""Rows of commits that are not counted: they start Spark, load the compiled scans, and meet every key."""
BEGIN = 1_700_000_000 * TICKS_PER_SECOND
RECORDED = """\
flow: bench
buckets: 4
sources:
  rows: {feed: {parquet: rows.parquet}, key: device, time: time, arrival: seen}
streams:
  beating: {heartbeat: rows, interval: 1m, slack: 5s}
"""
FOLDER = """\
flow: silent
buckets: 4
sources:
  rows: {feed: {folder: inbox, format: parquet}, key: device, time: time}
streams:
  beating: {heartbeat: rows, interval: 1s, max_ahead: off}
"""


def bench_stream(as_json: bool, commits: int, seconds: float, echo: Callable[[str], None]) -> int:  # noqa: FBT001
    """Measure the stream in its shipped configuration: durable, with ledger, carry and commits.

    Args:
        as_json: one object a line instead of words.
        commits: small commits to run before the last are held against those after 100.
        seconds: how long the silent sources are listened to.
        echo: where lines go.

    Returns:
        0, or 1 where a target is not held.
    """
    spark = SparkEngine("local[2]", Path(tempfile.gettempdir()) / "pulseline-bench-spark.log")
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        measured = chain(
            cost_of_a_commit(base / "cost", spark),
            many_commits(base / "many", commits),
            silent_sources(base / "silent", spark, seconds),
        )
        missed = tell_figures(measured, as_json=as_json, echo=echo)
    spark.close()
    return missed


def _flow(base: Path, text: str) -> Flow:
    base.mkdir(parents=True, exist_ok=True)
    (base / "flow.yaml").write_text(text)
    return read_flow(base / "flow.yaml", {})


def _feed(base: Path, arrivals: np.ndarray) -> None:
    """Write a feed: a row an arrival, keys drawn, one in a hundred out of order."""
    drawn = np.random.default_rng(7)
    count = len(arrivals)
    time_of = arrivals - np.where(
        drawn.random(count) < OUT_OF_ORDER, drawn.integers(0, 10, count) * TICKS_PER_SECOND, 0
    )
    columns = {
        "device": pa.array(drawn.integers(0, KEYS, count)),
        "time": times(time_of),
        "seen": times(arrivals),
        "value": pa.array(drawn.normal(size=count)),
    }
    pq.write_table(pa.table(columns), base / "rows.parquet", row_group_size=131_072)


def cost_of_a_commit(base: Path, spark: SparkEngine) -> Iterator[BenchFigure]:
    """Fit the cost of a commit over its rows, and hold the part per row against batch into the same tables."""
    flow = _flow(base, RECORDED)
    sizes = [size for size in SIZES for _ in range(REPEATS)]
    second = TICKS_PER_SECOND
    every = [*WARM_UP, *sizes]
    spans = [BEGIN + i * second + np.arange(size) * second // max(size, 1) for i, size in enumerate(every)]
    _feed(base, np.concatenate(spans))
    readings = [BEGIN + (i + 1) * second for i in range(len(spans))]
    wanted = Backfill(flow=flow, root=base / "live", base=base, engine=spark)
    took = epochs(wanted, BEGIN, readings, lambda rows: CoreEngine() if rows <= SMALL_EPOCH else spark)[len(WARM_UP) :]
    medians = [float(np.median(took[i : i + REPEATS])) for i in range(0, len(took), REPEATS)]
    per_row, fixed = (float(part) for part in np.polyfit(np.array(SIZES, dtype=float), np.array(medians), 1))
    whole = Backfill(flow=flow, root=base / "batch", base=base, engine=spark)
    warm = readings[len(WARM_UP) - 1]
    run_backfill(whole, [(BEGIN, warm)])
    begun = time.perf_counter()
    run_backfill(whole, [(warm, readings[-1])])
    batch = (time.perf_counter() - begun) / sum(sizes)
    rows = sum(sizes)
    for size, median in zip(SIZES, medians, strict=True):
        yield BenchFigure(bench="stream", name=f"commit of {size:,} rows", value=median, unit="s", rows=size, keys=KEYS)
    yield BenchFigure(
        bench="stream", name="fixed part of a commit", value=fixed, unit="s", target=0.5, rows=rows, keys=KEYS
    )
    yield BenchFigure(
        bench="stream",
        name="part per row",
        value=per_row * 1e6,
        unit="µs",
        against="batch into the same tables, landing included",
        ratio=per_row / batch,
        target=1.3,
        rows=rows,
        keys=KEYS,
    )


def epochs(wanted: Backfill, begin: int, readings: Sequence[int], engine: Callable[[int], Engine]) -> list[float]:
    """Land readings, then run an epoch each; give seconds by epoch."""
    took = []
    with open_driver(wanted.root, flow=wanted.flow.name) as driver:
        land_readings(wanted, begin, readings)
        runner = EpochRunner(driver=driver, flow=wanted.flow, landing=wanted.landing, engine=engine)
        upkeep = Upkeep(driver)
        for number in range(1, len(readings) + 1):
            begun = time.perf_counter()
            runner.advance(number - 1, number)
            took.append(time.perf_counter() - begun)
            upkeep.keep(every=HOUSE_EVERY)
    return took


def many_commits(base: Path, commits: int) -> Iterator[BenchFigure]:
    """Hold the median of small commits late in a run against that of early ones."""
    flow = _flow(base, RECORDED)
    _feed(base, BEGIN + np.arange(commits * 10) * TICKS_PER_SECOND // 10)
    readings = [BEGIN + (i + 1) * TICKS_PER_SECOND for i in range(commits)]
    wanted = Backfill(flow=flow, root=base / "live", base=base, engine=CoreEngine())
    core = CoreEngine()
    took = epochs(wanted, BEGIN, readings, lambda _: core)
    early, late = float(np.median(took[50:150])), float(np.median(took[-100:]))
    yield BenchFigure(
        bench="stream",
        name=f"median of a small commit after {commits:,}",
        value=late,
        unit="s",
        against="that after 100",
        ratio=late / early,
        target=1.5,
        rows=10,
        keys=KEYS,
    )


def silent_sources(base: Path, spark: SparkEngine, seconds: float, keys: int = 10_000) -> Iterator[BenchFigure]:
    """Measure how late timers are published while every source is silent: published minus due."""
    flow = _flow(base, FOLDER)
    (base / "inbox").mkdir()
    now = time.time_ns() // 1000
    columns = {"device": pa.array(np.arange(keys)), "time": times(np.full(keys, now))}
    pq.write_table(pa.table(columns), base / "inbox" / "first.parquet")
    live = Live(flow=flow, root=base / "live", base=base, spark=spark, lasts=seconds)
    run_live(live, lambda _: None)
    entries = [entry for entry in log_state(live.root).published if "p99_ms" in entry.detail.get("lateness", {})]  # type: ignore[operator]
    late = [entry.detail["lateness"] for entry in entries[len(entries) // 3 :]]
    worst = float(np.quantile([each["p99_ms"] for each in late], 0.99)) if late else float("nan")  # type: ignore[index]
    usual = float(np.median([each["p50_ms"] for each in late])) if late else float("nan")  # type: ignore[index]
    tasks = [float(entry.durations["tasks_ms"]) for entry in entries[len(entries) // 3 :]]  # type: ignore[arg-type]
    rows = [row for row in log_state(live.root).entries if row.settled]
    tables = [float(settled_of(row).milliseconds) for row in rows[len(rows) // 3 :]]
    yield BenchFigure(bench="stream", name="heartbeat lateness, silent sources, p50", value=usual, unit="ms", keys=keys)
    yield BenchFigure(
        bench="stream", name="heartbeat lateness, silent sources, p99", value=worst, unit="ms", target=2_000, keys=keys
    )
    for name, values in (("tasks", tasks), ("tables", tables)):
        median = float(np.median(values)) if values else float("nan")
        yield BenchFigure(bench="stream", name=f"of an epoch, {name}", value=median, unit="ms", keys=keys)
