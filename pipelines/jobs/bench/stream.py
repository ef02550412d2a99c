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
from pipelines.engine.commits.paths import data_tables, ledger_path
from pipelines.engine.live.epochs import SMALL_EPOCH, EpochRunner
from pipelines.engine.live.upkeep import Upkeep
from pipelines.engine.tasks.local import CoreEngine
from pipelines.engine.tasks.spark import SparkEngine
from pipelines.flows.reading import read_flow
from pipelines.jobs.bench.figures import REPEATS, BenchFigure, Median, tell_figures
from pipelines.jobs.bench.silence import silent_sources
from pipelines.jobs.commands.stream import HOUSE_EVERY
from pipelines.jobs.environment.settings import load_flow, read_settings
from pipelines.jobs.runs.backfill import Backfill, run_backfill
from pipelines.jobs.runs.readings import land_readings
from pipelines.operators.rows import TICKS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pipelines.engine.tasks.stages import Engine
    from pipelines.flows.model import Flow

KEYS = 1_000
SIZES = (0, 1_000, 100_000, 1_000_000)
OUT_OF_ORDER = 0.01
"""Share of rows whose event time lies before that of rows that came earlier."""
WARM_UP = (1_000, SMALL_EPOCH + 1, SMALL_EPOCH + 1)
"""Rows of commits that are not counted: they start Spark, load the compiled scans, and meet every key."""
BEGIN = 1_700_000_000 * TICKS_PER_SECOND
FIXED, A_COMMIT, A_ROW, LATER = 0.2, 0.2, 1.3, 1.2
"""To stay under: seconds of a commit without rows and of one of eight tables, times of a row and of late commits."""
MANY_TABLES, HOURS, WARM_COMMITS = "flights", 4, 10
"""The flow of eight tables, hours of it that one commit takes, and commits that are not counted."""
FIRST_READING = 1_357_016_400 * TICKS_PER_SECOND
"""Midnight in New York at the begin of 2013."""
RECORDED = """\
flow: bench
buckets: 4
sources:
  rows: {feed: {parquet: rows.parquet}, key: device, time: time, arrival: seen}
streams:
  beating: {heartbeat: rows, interval: 1m, slack: 5s}
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
            many_tables(base / "tables"),
            many_commits(base / "many", commits),
            silent_sources(base / "silent", spark, seconds, bench="stream"),
        )
        missed = tell_figures(measured, as_json=as_json, echo=echo)
    spark.close()
    return missed


def laid_flow(base: Path, text: str) -> Flow:
    """Write a flow's file, and read it."""
    base.mkdir(parents=True, exist_ok=True)
    (base / "flow.yaml").write_text(text)
    return read_flow(base / "flow.yaml", {})


def laid_feed(base: Path, arrivals: np.ndarray) -> None:
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
    flow = laid_flow(base, RECORDED)
    sizes = [size for size in SIZES for _ in range(REPEATS)]
    second = TICKS_PER_SECOND
    every = [*WARM_UP, *sizes]
    spans = [BEGIN + i * second + np.arange(size) * second // max(size, 1) for i, size in enumerate(every)]
    laid_feed(base, np.concatenate(spans))
    readings = [BEGIN + (i + 1) * second for i in range(len(spans))]
    wanted = Backfill(flow=flow, root=base / "live", base=base, engine=spark)
    took = epochs(wanted, BEGIN, readings, lambda rows: CoreEngine() if rows <= SMALL_EPOCH else spark)[len(WARM_UP) :]
    medians = [Median.of(took[i : i + REPEATS]) for i in range(0, len(took), REPEATS)]
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
        bench="stream", name="fixed part of a commit", value=fixed, unit="s", target=FIXED, rows=rows, keys=KEYS
    )
    yield BenchFigure(
        bench="stream",
        name="part per row",
        value=per_row * 1e6,
        unit="µs",
        against="batch into the same tables, landing included",
        ratio=per_row / batch,
        target=A_ROW,
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


def many_tables(base: Path, commits: int = 60, warm: int = WARM_COMMITS) -> Iterator[BenchFigure]:
    """Measure small commits of a flow of eight tables: the flights, some hours each."""
    settings, core = read_settings(), CoreEngine()
    flow = load_flow(settings, MANY_TABLES)
    wanted = Backfill(flow=flow, root=base, base=settings.feeds_base(flow), engine=core)
    apart = HOURS * 3_600 * TICKS_PER_SECOND
    readings = [FIRST_READING + (each + 1) * apart for each in range(commits + warm)]
    took = epochs(wanted, FIRST_READING, readings, lambda _: core)[warm:]
    streams = [table for table in data_tables(base) if table != ledger_path(base)]
    name = f"a commit of {len(streams)} streams and the ledger"
    yield BenchFigure(bench="stream", name=name, value=Median.of(took), unit="s", target=A_COMMIT)


def many_commits(base: Path, commits: int) -> Iterator[BenchFigure]:
    """Hold the median of small commits late in a run against that of early ones."""
    flow = laid_flow(base, RECORDED)
    laid_feed(base, BEGIN + np.arange(commits * 10) * TICKS_PER_SECOND // 10)
    readings = [BEGIN + (i + 1) * TICKS_PER_SECOND for i in range(commits)]
    wanted = Backfill(flow=flow, root=base / "live", base=base, engine=CoreEngine())
    core = CoreEngine()
    took = epochs(wanted, BEGIN, readings, lambda _: core)
    early, late = Median.of(took[50:150]), Median.of(took[-100:])
    yield BenchFigure(
        bench="stream",
        name=f"median of a small commit after {commits:,}",
        value=late,
        unit="s",
        against="that after 100",
        ratio=late / early,
        target=LATER,
        rows=10,
        keys=KEYS,
    )
