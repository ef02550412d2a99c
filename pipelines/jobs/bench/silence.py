"""`pulseline bench silence`: how late timers are while every source is silent, and the memory of a silent key."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.engine.columnar.columns import times
from pipelines.engine.commits.history import settled_of
from pipelines.engine.commits.readers import log_state
from pipelines.engine.tasks.spark import SparkEngine
from pipelines.flows.reading import read_flow
from pipelines.jobs.bench.figures import BenchFigure, Median, tell_figures
from pipelines.jobs.bench.memory import MEGABYTE, Peak
from pipelines.jobs.commands.stream import Live, run_live
from pipelines.operators.rows import TICKS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from pipelines.engine.commits.history import Entry, LogState

FLOW = """\
flow: silent
buckets: 4
sources:
  rows: {{feed: {{folder: inbox, format: parquet}}, key: device, time: time}}
streams:
  beating: {{heartbeat: rows, interval: {interval}s, max_ahead: off}}
"""
MULTIPLES = 4
"""Of an interval, so many are listened to, where that is longer than what was asked for."""
WARM = 3
"""The first part in so many is not counted: caches and workers are cold."""
FEW = 1


class SilenceBound(NamedTuple):
    """How often silent keys send a timer, and how late that may be published."""

    keys: int
    """Up to so many."""
    interval: int
    """In seconds."""
    p50: float | None
    """In milliseconds."""
    p99: float


BOUNDS = (
    SilenceBound(10_000, 1, 250, 500),
    SilenceBound(100_000, 30, None, 1_000),
    SilenceBound(1_000_000, 30, None, 3_000),
)


def bench_silence(keys: Sequence[int], seconds: float, *, as_json: bool, echo: Callable[[str], None]) -> int:
    """Measure the lateness of timers of silent keys in the shipped configuration.

    Args:
        keys: how many, each number in a run of its own.
        seconds: how long each is listened to, at least.
        as_json: one object a line instead of words.
        echo: where lines go.

    Returns:
        0, or 1 where a target is not held.
    """
    spark = SparkEngine("local[2]", Path(tempfile.gettempdir()) / "pulseline-bench-spark.log")
    with tempfile.TemporaryDirectory(prefix="pulseline-bench-") as folder:
        try:
            return tell_figures(_measured(Path(folder), spark, keys, seconds), as_json=as_json, echo=echo)
        finally:
            spark.close()


def _measured(base: Path, spark: SparkEngine, keys: Sequence[int], seconds: float) -> Iterator[BenchFigure]:
    # What is loaded once is no key's: workers start and import here.
    with Peak() as before:
        listen(base / "few", spark, seconds, FEW)
    for count in keys:
        with Peak() as after:
            yield from silent_sources(base / f"keys-{count}", spark, seconds, count)
        a_key = (after.python - before.python) * MEGABYTE / count
        name = "memory of a silent key, Python, driver and workers"
        yield BenchFigure(bench="silence", name=name, value=max(a_key, 0.0), unit="bytes", keys=count)


def bound_of(keys: int) -> SilenceBound:
    """Give the bound that so many keys are held to; more than any bound has are held to the last.

    >>> bound_of(10_000).p99, bound_of(10_001).interval
    (500, 30)
    """
    return next((bound for bound in BOUNDS if keys <= bound.keys), BOUNDS[-1])


def silent_sources(
    base: Path, spark: SparkEngine, seconds: float, keys: int = BOUNDS[0].keys, bench: str = "silence"
) -> Iterator[BenchFigure]:
    """Measure how late timers are published while every source is silent: published minus due.

    Args:
        base: a folder of its own.
        spark: runs it.
        seconds: how long it is listened to, at least.
        keys: that speak once, and then no more.
        bench: whose figures these are.
    """
    bound, state = bound_of(keys), listen(base, spark, seconds, keys)
    told = [entry for entry in state.published if "p99_ms" in _lateness(entry)]
    told = told[len(told) // WARM :]
    late = [_lateness(entry) for entry in told]
    worst = float(np.quantile([each["p99_ms"] for each in late], 0.99)) if late else float("nan")
    rows = [row for row in state.entries if row.settled]

    def figure(name: str, value: float, target: float | None = None) -> BenchFigure:
        return BenchFigure(bench=bench, name=name, value=value, unit="ms", target=target, keys=keys)

    name = f"lateness of timers of {keys:,} silent keys"
    yield figure(f"{name}, p50", Median.of([each["p50_ms"] for each in late]), bound.p50)
    yield figure(f"{name}, p99", worst, bound.p99)
    yield figure("  of an epoch, tasks", Median.of([float(str(entry.durations["tasks_ms"])) for entry in told]))
    tables = [float(settled_of(row).milliseconds) for row in rows[len(rows) // WARM :]]
    yield figure("  of an epoch, tables", Median.of(tables))
    latency = [(entry.at - entry.span.end) / TICKS_PER_SECOND * 1_000 for entry in told]
    yield figure("  latency, from a reading to the published commit", Median.of(latency))


def listen(base: Path, spark: SparkEngine, seconds: float, keys: int) -> LogState:
    """Have so many keys speak once, and listen to their silence; give what was published."""
    base.mkdir(parents=True)
    interval = bound_of(keys).interval
    (base / "flow.yaml").write_text(FLOW.format(interval=interval))
    flow = read_flow(base / "flow.yaml", {})
    (base / "inbox").mkdir()
    now = time.time_ns() // 1_000
    columns = {"device": pa.array(np.arange(keys)), "time": times(np.full(keys, now))}
    pq.write_table(pa.table(columns), base / "inbox" / "first.parquet")
    lasts = max(seconds, MULTIPLES * interval)
    run_live(Live(flow=flow, root=base / "live", base=base, spark=spark, lasts=lasts), lambda _: None)
    return log_state(base / "live")


def _lateness(entry: Entry) -> dict[str, Any]:
    found = entry.detail.get("lateness", {})
    return found if isinstance(found, dict) else {}
