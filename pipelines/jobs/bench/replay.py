"""`pulseline bench replay`: what three buffers cost, how fast they are played again, and how much memory that takes."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.history import settled_of
from pipelines.engine.commits.readers import log_state
from pipelines.engine.tasks.spark import SparkEngine
from pipelines.flows.reading import read_flow
from pipelines.jobs.bench.figures import BenchFigure, seconds, tell_figures, versions_text
from pipelines.jobs.bench.generated import record
from pipelines.jobs.bench.memory import Peak
from pipelines.jobs.runs.backfill import Backfill, run_backfill
from pipelines.jobs.runs.readings import land_readings, runner_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pipelines.engine.commits.driver import Driver
    from pipelines.engine.tasks.stages import Engine
    from pipelines.flows.model import Flow
    from pipelines.jobs.bench.generated import Recorded

BENCH = "replay"
KEYS = 1_000
SEQUENCES = 10
LANDING, REPLAY = 2.5, 1.3
"""What the landing may cost times a plain Parquet write by Spark, and the replay times a backfill of the same rows."""
LONGER = 4
"""How much longer the second recording is that memory is held over."""
SHORT = 10
"""Share of the rows, one in so many, that one recording for memory has."""


def bench_replay(rows: int, as_json: bool, echo: Callable[[str], None]) -> int:  # noqa: FBT001 - the command's flag
    """Measure landing into three buffers, replay, reset and memory, in the shipped configuration.

    Args:
        rows: how many.
        as_json: one object a line instead of words.
        echo: where lines go.

    Returns:
        0, or 1 where a target is not held.
    """
    if not as_json:
        echo(f"{rows:,} rows of {KEYS:,} keys in {SEQUENCES} sequences, three buffers; {versions_text()}")
    engine = SparkEngine("local[2]", Path(tempfile.gettempdir()) / "pulseline-bench-spark.log")
    with tempfile.TemporaryDirectory(prefix="pulseline-bench-") as folder:
        base = Path(folder)
        figures = chain(timed(base / "timed", rows, engine), memory(base / "memory", rows // SHORT, engine))
        try:
            return tell_figures(figures, as_json=as_json, echo=echo)
        finally:
            engine.close()


def buffered(feed: Recorded) -> Flow:
    """Give the flow of one heartbeat over a feed that lands in three buffers."""
    feed.beating()
    file = feed.folder / "flow.yaml"
    file.write_text(file.read_text().replace("arrival: seen}", "arrival: seen, buffers: 3}"))
    return read_flow(file, {})


def timed(base: Path, rows: int, engine: SparkEngine) -> Iterator[BenchFigure]:
    """Measure what takes time."""
    feed = record(base, rows, KEYS)
    spark = engine.session()
    source, target = str(base / "rows.parquet"), str(base / "plain")

    def plain() -> None:
        spark.read.parquet(source).write.mode("overwrite").parquet(target)

    plain()
    written = seconds(plain)
    wanted = Backfill(flow=buffered(feed), root=base / "run", base=base, engine=engine)
    spans = feed.spans(SEQUENCES)
    with synced() as spent:
        landed = seconds(lambda: _land(wanted, spans))
    yield BenchFigure(
        bench=BENCH,
        name="landing into three buffers",
        value=landed,
        unit="s",
        against="Spark's plain Parquet write",
        ratio=landed / written,
        target=LANDING,
        rows=rows,
        keys=KEYS,
    )
    yield BenchFigure(bench=BENCH, name="  of it fsync", value=sum(spent), unit="s", rows=rows)
    yield from replayed(base, wanted, spans, rows, engine)


def _land(wanted: Backfill, spans: list[tuple[int, int]]) -> None:
    with open_driver(wanted.root, flow=wanted.flow.name):
        land_readings(wanted, spans[0][0], [end for _, end in spans])


def replayed(
    base: Path, wanted: Backfill, spans: list[tuple[int, int]], rows: int, engine: Engine
) -> Iterator[BenchFigure]:
    """Play what is landed, hold it against a backfill that finds the same rows landed, reset it and play again."""
    for name in ("warm", "batch"):
        run_backfill(Backfill(flow=wanted.flow, root=base / name, base=base, engine=engine), spans)
    tasks = sum(_worked(base / "batch"))
    with open_driver(wanted.root, flow=wanted.flow.name) as driver:
        played = seconds(lambda: _play(wanted, driver, engine))
        first = log_state(wanted.root).published[0]
        begun = time.perf_counter()
        driver.reset(driver.next_number(), 0, detail={"why": "pulseline bench replay"})
        runner = runner_of(wanted, driver, engine)
        runner.advance(0, 1)
        took = time.perf_counter() - begun
        again = log_state(wanted.root).published[-1]
    if again.hashes != first.hashes:
        yield BenchFigure(bench=BENCH, name="rows played again DIFFER", value=1, unit="wrong answer", target=0)
    yield BenchFigure(
        bench=BENCH,
        name="replay as fast as it goes",
        value=played,
        unit="s",
        against="a backfill's tasks and tables over the same rows",
        ratio=played / tasks,
        target=REPLAY,
        rows=rows,
        keys=KEYS,
    )
    name = f"from a reset to the first published commit of {rows // SEQUENCES:,} rows"
    yield BenchFigure(bench=BENCH, name=name, value=took, unit="s", rows=rows // SEQUENCES)


def _worked(root: Path) -> Iterator[float]:
    state = log_state(root)
    settled = {found.commit: found.milliseconds for found in (settled_of(row) for row in state.entries if row.settled)}
    for entry in state.published:
        yield (float(str(entry.durations["tasks_ms"])) + settled.get(entry.commit, 0)) / 1_000


def _play(wanted: Backfill, driver: Driver, engine: Engine) -> None:
    runner = runner_of(wanted, driver, engine)
    for number in range(SEQUENCES):
        runner.advance(number, number + 1)


def memory(base: Path, rows: int, engine: SparkEngine) -> Iterator[BenchFigure]:
    """Measure the most memory that landing and replay take over a recording, and over one some times as long."""
    peaks = []
    for times in (1, 1, LONGER):
        # The first one is for warmth: what is loaded once stays.
        shutil.rmtree(base, ignore_errors=True)
        feed = record(base, rows * times, KEYS)
        spans = feed.spans(SEQUENCES * times)
        wanted = Backfill(flow=buffered(feed), root=base / "run", base=base, engine=engine)
        with Peak() as peak:
            _land(wanted, spans)
            with open_driver(wanted.root, flow=wanted.flow.name) as driver:
                runner = runner_of(wanted, driver, engine)
                for number in range(len(spans)):
                    runner.advance(number, number + 1)
        peaks.append(peak.python)
    yield BenchFigure(
        bench=BENCH,
        name=f"memory of a recording {LONGER} times as long, {rows * LONGER:,} rows",
        value=peaks[-1],
        unit="MB",
        against=f"one of {rows:,} rows",
        ratio=peaks[-1] / peaks[1],
        target=1.1,
        rows=rows * LONGER,
    )


@contextmanager
def synced() -> Iterator[list[float]]:
    """Take the time that this process spends in fsync."""
    spent: list[float] = []
    real = os.fsync

    def measured(handle: int) -> None:
        spent.append(seconds(partial(real, handle)))

    os.fsync = measured  # type: ignore[assignment]
    try:
        yield spent
    finally:
        os.fsync = real
