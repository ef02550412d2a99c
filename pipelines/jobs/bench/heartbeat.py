"""`pulseline bench heartbeat`: heartbeat and merge beside Spark's shuffle and sort of the same rows, in one run."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow.parquet as pq

from pipelines.engine.columnar.columns import ticks
from pipelines.engine.landing.index import land_interval
from pipelines.engine.sources.catalog import open_recorded
from pipelines.engine.tasks.spark import SparkEngine
from pipelines.jobs.bench.figures import (
    REPEATS,
    BenchFigure,
    Median,
    median_seconds,
    seconds,
    tell_figures,
    versions_text,
)
from pipelines.jobs.bench.generated import BEGIN, Recorded, chunks, record
from pipelines.jobs.bench.memory import Peak
from pipelines.jobs.bench.stream import epochs
from pipelines.jobs.runs.backfill import Backfill, Ran, run_backfill
from pipelines.jobs.runs.counts import counted
from pipelines.operators.heartbeat import Heartbeat
from pipelines.operators.rows import TICKS_PER_SECOND, Kind, Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pipelines.flows.model import Flow

FEW, MANY = 1, 1_000_000
"""Keys beside those that are asked for."""
SLACK = 5 * TICKS_PER_SECOND
COMMIT = 1_000_000
"""Rows of a commit of the stream."""
COMMITS = REPEATS + 3
"""Of the stream; the first three are for warmth."""
PORTS = (3, 64)
COMMITTED, FROM_FILES, MERGED = 0.3, 0.6, 1.5
"""Times Spark's shuffle and sort into Parquet: into committed tables, with landing from raw files, a merge."""
KEYS_APART, LINEAR, FLAT = 2.0, 1.05, 1.2
"""Times: the slowest number of keys the fastest; many intervals so often one; memory over many that of one."""
OF_STATEFUL, STREAMED = 20, 4e6
"""What a stream is to reach: times Spark's stateful operator, and rows a second."""


class BackfillTook(NamedTuple):
    """What a backfill took: seconds of landing, of tasks, of commits, of all; and the timers that it made."""

    landing: float
    tasks: float
    whole: float
    from_files: float
    timers: int


@dataclass(frozen=True)
class HeartbeatBench:
    """Where and with what is measured."""

    base: Path
    engine: SparkEngine
    rows: int
    keys: int
    grow: int

    def recorded(self, keys: int) -> Recorded:
        """Give a feed of rows with so many keys."""
        return record(self.base / f"keys-{keys}", self.rows, keys)


def bench_heartbeat(  # noqa: PLR0913 - as the command has it
    rows: int,
    keys: int,
    grow: int,
    parts: tuple[str, ...],
    as_json: bool,  # noqa: FBT001
    echo: Callable[[str], None],
) -> int:
    """Measure heartbeat and merge in batch and stream.

    Args:
        rows: how many generated rows.
        keys: how many keys they have.
        grow: how many times the rows the longest run has.
        parts: of batch, keys, growth, stream, merge.
        as_json: one object a line instead of words.
        echo: where lines go.

    Returns:
        0, or 1 where a target is not held.
    """
    engine = SparkEngine("local[2]", Path(tempfile.gettempdir()) / "pulseline-bench-spark.log")
    measures = {"batch": batch, "keys": per_keys, "growth": growth, "stream": stream, "merge": merge}
    if not as_json:
        echo(f"{rows:,} rows of 32 bytes, {keys:,} keys; medians of {REPEATS}, warm; {versions_text()}")
    with tempfile.TemporaryDirectory(prefix="pulseline-bench-") as folder:
        bench = HeartbeatBench(Path(folder), engine, rows, keys, grow)
        try:
            return tell_figures(
                chain.from_iterable(measures[part](bench) for part in parts), as_json=as_json, echo=echo
            )
        finally:
            engine.close()


def batch(bench: HeartbeatBench) -> Iterator[BenchFigure]:
    """Hold a backfill of one interval against Spark's shuffle and sort of the same rows."""
    from pipelines.jobs.bench.peers import spark_sorts

    feed = bench.recorded(bench.keys)
    named, scratch = _namer(feed), feed.folder / "sorted"
    spark = spark_sorts(bench.engine.session(), feed.folder / "rows.parquet", scratch, REPEATS, ("device", "seen"))
    yield named("Spark's shuffle and sort, to nowhere", spark.noop, "s")
    yield named("Spark's shuffle and sort, into Parquet", spark.parquet, "s")
    yield named("compiled heartbeat alone, one process", alone(feed), "s", "Spark's, to nowhere", spark.noop)
    took = backfilled(bench.engine, feed, feed.beating())
    against = "Spark's, into Parquet"
    yield named("batch, from the landing into committed tables", took.whole, "s", against, spark.parquet, COMMITTED)
    yield named("  of it tasks on Spark's workers", took.tasks, "s")
    raw = "batch, from raw files, landing included"
    yield named(raw, took.from_files, "s", against, spark.parquet, FROM_FILES)
    yield named("  of it landing, in the driver", took.landing, "s")
    yield named("timers", took.timers, "timers")
    # Watching memory costs time, so it is watched in a run of its own.
    with Peak() as peak:
        _backfill(bench.engine, feed, feed.beating(), feed.spans(1), "watched")
    yield named("peak memory, Python, driver and workers", peak.python, "MB")
    yield named("peak memory, Spark's JVM", peak.java, "MB")
    shutil.rmtree(feed.folder)


def per_keys(bench: HeartbeatBench) -> Iterator[BenchFigure]:
    """Hold one key and a million against each other."""
    took = {}
    for keys in sorted({FEW, bench.keys, MANY}):
        feed = bench.recorded(keys)
        took[keys] = backfilled(bench.engine, feed, feed.beating()).whole
        yield _namer(feed)(f"batch, {keys:,} {'key' if keys == 1 else 'keys'}", took[keys], "s")
        shutil.rmtree(feed.folder)
    slowest, fastest = max(took.values()), min(took.values())
    named = _namer(Recorded(folder=bench.base, rows=bench.rows, keys=MANY))
    yield named("slowest number of keys", slowest, "s", "the fastest", fastest, KEYS_APART)


def growth(bench: HeartbeatBench) -> Iterator[BenchFigure]:
    """Hold many intervals against one: time in proportion, memory flat."""
    short = bench.recorded(bench.keys)
    one = backfilled(bench.engine, short, short.beating())
    with Peak() as before:
        _backfill(bench.engine, short, short.beating(), short.spans(1), "watched")
    shutil.rmtree(short.folder)
    long = record(bench.base / "long", bench.rows * bench.grow, bench.keys)
    many = _backfill(bench.engine, long, long.beating(), long.spans(bench.grow), "run")
    shutil.rmtree(long.folder / "run")
    with Peak() as after:
        _backfill(bench.engine, long, long.beating(), long.spans(bench.grow), "watched")
    shutil.rmtree(long.folder)
    named, against = _namer(long), f"{bench.grow} times one interval of {bench.rows:,}"
    linear = one.from_files * bench.grow
    yield named(f"{bench.grow} intervals, landing included", many.from_files, "s", against, linear, LINEAR)
    yield named("  peak memory, Python", after.python, "MB", "that of one interval", before.python, FLAT)


def stream(bench: HeartbeatBench) -> Iterator[BenchFigure]:
    """Hold commits of a stream against `transformWithStateInPandas` over the same rows."""
    from pipelines.jobs.bench.peers import beating, rates

    feed = record(bench.base / "stream", COMMIT * COMMITS, bench.keys)
    wanted = Backfill(flow=feed.beating(), root=feed.folder / "live", base=feed.folder, engine=bench.engine)
    took = epochs(wanted, BEGIN, [end for _, end in feed.spans(COMMITS)], lambda _: bench.engine)
    ours = Median.of(took[-REPEATS:]).rate(COMMIT)
    (feed.folder / "files").mkdir()
    for number, rows in enumerate(chunks(COMMIT * (REPEATS + 1), bench.keys)):
        pq.write_table(rows, feed.folder / "files" / f"{number}.parquet")
    made = beating(bench.engine.session(), feed.folder / "files", round(feed.interval * TICKS_PER_SECOND), SLACK)
    theirs = Median.of(rates(made, feed.folder / "checkpoint")[1:])
    shutil.rmtree(feed.folder)
    named, name = _namer(feed), "transformWithStateInPandas"
    yield named(f"{name}, commits of about {COMMIT:,} rows", theirs, "rows/s")
    yield named(f"stream, commits of {COMMIT:,} rows", ours, "rows/s", target=STREAMED, at_least=True)
    yield named("  the same, beside that", ours, "rows/s", name, theirs, OF_STATEFUL, at_least=True)


def merge(bench: HeartbeatBench) -> Iterator[BenchFigure]:
    """Hold a merge of one group against Spark's global sort of the same rows."""
    from pipelines.jobs.bench.peers import spark_sorts

    for ports in PORTS:
        feed = bench.recorded(ports)
        spark = spark_sorts(bench.engine.session(), feed.folder / "rows.parquet", feed.folder / "sorted", REPEATS)
        flow = feed.flow(f"merge: rows, ports_by: {{device: {list(range(ports))}}}", buckets=1)
        took = backfilled(bench.engine, feed, flow)
        shutil.rmtree(feed.folder)
        named, name = _namer(feed), f"merge over {ports} ports, one task, from the landing"
        yield named(name, took.whole, "s", "Spark's sort by time, into Parquet", spark.parquet, MERGED)


def alone(feed: Recorded) -> Median:
    """Run the compiled function over columns in this process; give the median of seconds."""
    table = pq.read_table(feed.folder / "rows.parquet")
    zero = np.zeros(feed.rows, dtype=np.int64)
    kind = np.full(feed.rows, Kind.DATA, dtype=np.int8)
    device, seen, time = (ticks(table[name]) for name in ("device", "seen", "time"))
    rows = Rows(kind, device, zero, seen, zero, time, zero, zero)
    for column in rows:
        column.setflags(write=False)
    policy = feed.beating().streams["out"].policy

    def work() -> None:
        operator = Heartbeat(policy)  # type: ignore[arg-type]
        operator.grow(feed.keys)
        for _ in operator.feed(rows):
            pass

    return median_seconds(work, REPEATS)


def backfilled(engine: SparkEngine, feed: Recorded, flow: Flow) -> BackfillTook:
    """Backfill a feed as one interval, each time into a run of its own; give medians."""
    took = []
    for number in range(REPEATS + 1):
        took.append(_backfill(engine, feed, flow, feed.spans(1), f"run-{number}"))
        shutil.rmtree(feed.folder / f"run-{number}")
    landing, tasks, whole, from_files, timers = (Median.of(each) for each in zip(*took[1:], strict=True))
    return BackfillTook(landing, tasks, whole, from_files, round(timers))


def _backfill(engine: SparkEngine, feed: Recorded, flow: Flow, spans: list[tuple[int, int]], run: str) -> BackfillTook:
    """Land and run intervals, one after the other."""
    wanted = Backfill(flow=flow, root=feed.folder / run, base=feed.folder, engine=engine)
    landing = tasks = whole = 0.0
    timers = 0
    feeds = open_recorded(flow, feed.folder)
    for span in spans:
        landing += seconds(partial(land_interval, wanted.landing, flow, *span, feeds))
        ran: list[Ran] = []
        whole += seconds(partial(run_backfill, wanted, [span], done=ran.append))
        [done] = ran
        tasks += float(str(done.entry.durations["tasks_ms"])) / 1_000
        timers += counted(done.entry, "out").get("timer", 0)
    return BackfillTook(landing, tasks, whole, landing + whole, timers)


def _namer(feed: Recorded) -> Callable[..., BenchFigure]:
    """Give a maker of figures over the rows of a feed."""

    def named(  # noqa: PLR0913 - a figure, as a line
        name: str,
        value: float,
        unit: str,
        against: str = "",
        beside: float | None = None,
        target: float | None = None,
        *,
        at_least: bool = False,
    ) -> BenchFigure:
        return BenchFigure(
            bench="heartbeat",
            name=name,
            value=value,
            unit=unit,
            against=against,
            ratio=None if beside is None else value / beside,
            target=target,
            at_least=at_least,
            rows=feed.rows,
            keys=feed.keys,
        )

    return named
