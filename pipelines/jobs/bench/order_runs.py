"""How `pulseline bench order` runs its flows: in batches, in small epochs, in legs, and tables by themselves."""

from __future__ import annotations

import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.engine.commits import delta_log
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.paths import NewFile
from pipelines.engine.commits.table_log import TableChange, TableLog
from pipelines.engine.files.writing import Layout, TableFile
from pipelines.engine.live.legs import open_legs
from pipelines.engine.tasks.local import CoreEngine
from pipelines.engine.tasks.task import opened
from pipelines.jobs.bench.figures import Median, median_seconds, seconds
from pipelines.jobs.bench.memory import Peak, own_processes
from pipelines.jobs.bench.order_flows import BEGIN, SPAN
from pipelines.jobs.runs.backfill import run_backfill
from pipelines.jobs.runs.readings import land_readings, runner_of
from pipelines.operators.rows import TICKS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from pipelines.engine.live.legs import Legs
    from pipelines.engine.tasks.stages import Engine
    from pipelines.engine.tasks.task import Done, Task
    from pipelines.jobs.bench.order_flows import LaidFlow

T = TypeVar("T")
THREADS = 4
WARM = 0.2
"""Share of epochs, at the beginning, that is not counted."""
SLEEP = 0.5
"""Seconds that the slow module takes for an epoch."""


class SlowEngine(CoreEngine):
    """Runs tasks here, and takes its time."""

    def run(self, tasks: Sequence[Task]) -> list[Done]:
        """Sleep, then run them."""
        time.sleep(SLEEP)
        return super().run(tasks)


def batch_seconds(here: LaidFlow, engine: Engine | None = None) -> float:
    """Run all of a feed as one interval, once for warmth and five times again; give the median of these."""
    return in_turn_seconds(here, engine=engine)[0]


def in_turn_seconds(*given: LaidFlow, engine: Engine | None = None) -> tuple[float, ...]:
    """Do the same of several, one run of each after the other: what slows the machine for a while slows all."""
    took = [[once(here, run, engine) for here in given] for run in "abcdef"][1:]
    return tuple(Median.of(each) for each in zip(*took, strict=True))


def once(here: LaidFlow, run: str, engine: Engine | None = None) -> float:
    """Run all of a feed as one interval; give how long it took."""
    return seconds(partial(run_backfill, here.run(run, engine), [(BEGIN, BEGIN + SPAN)]))


def busy(work: Callable[[], T]) -> tuple[float, T]:
    """Do something; give the processor time that this process and those it started took meanwhile, and what came."""
    before = _processor_time()
    made = work()
    return _processor_time() - before, made


def _processor_time() -> float:
    total = 0.0
    for process in own_processes():
        with suppress(psutil.Error):
            total += sum(process.cpu_times()[:2])
    return total


def readings(count: int) -> list[int]:
    """Give so many closing readings over the feed."""
    return [BEGIN + SPAN * (number + 1) // count for number in range(count)]


@contextmanager
def _in_legs(here: LaidFlow, run: str, commits: int, engine: Engine, others: Engine) -> Iterator[tuple[Legs, int]]:
    """Land a feed and open the legs of a run; give them, and the last sequence."""
    wanted = here.run(run, engine, legs=True)
    with open_driver(wanted.root, flow=wanted.flow.name) as driver:
        last = land_readings(wanted, BEGIN, readings(commits)).last_id
        runner = runner_of(wanted, driver, engine)
        with open_legs(runner, wanted.root, lambda _: others) as legs:
            legs.begin(lambda _: None)
            yield legs, last


def _all_legs(legs: Legs, commits: int, last: int, advance: Callable[[Legs, int], None]) -> float:
    """Run every leg up to a sequence, the first one epoch by epoch; give the seconds of waiting for the others."""
    legs.start(commits)
    try:
        while legs.main.runner.upto < last:
            advance(legs, legs.main.runner.upto)
        return seconds(legs.await_all)
    finally:
        legs.stop()


def in_legs_seconds(
    here: LaidFlow, run: str, commits: int, engine: Engine | None = None, others: Engine | None = None
) -> list[float]:
    """Run every leg over all readings; give the seconds of each epoch of the first, and of waiting for the others."""
    took = []

    def advance(legs: Legs, after: int) -> None:
        took.append(seconds(partial(legs.advance_main, after, after + 1)))

    with _in_legs(here, run, commits, engine or CoreEngine(), others or engine or CoreEngine()) as (legs, last):
        waited = _all_legs(legs, commits, last, advance)
    return [*took, waited]


def epoch_seconds(here: LaidFlow, run: str, commits: int, engine: Engine | None = None) -> list[float]:
    """Run a flow in one piece over all readings; give the seconds of each epoch."""
    wanted, took = here.run(run, engine), []
    with open_driver(wanted.root, flow=wanted.flow.name) as driver:
        last = land_readings(wanted, BEGIN, readings(commits)).last_id
        runner = runner_of(wanted, driver, wanted.engine)
        while runner.last_sequence() < last:
            after = runner.upto
            took.append(seconds(partial(runner.advance, after, after + 1)))
    return took


def warm(took: Sequence[float]) -> list[float]:
    """Leave out the first epochs."""
    return list(took[round(len(took) * WARM) :])


def behind_seconds(here: LaidFlow, run: str, commits: int) -> list[float]:
    """Give the seconds from the beginning of each epoch of the first leg to the last leg's commit that covers it."""
    began: dict[int, float] = {}

    def advance(legs: Legs, after: int) -> None:
        began[after + 1] = time.time()
        legs.advance_main(after, after + 1)

    with _in_legs(here, run, commits, CoreEngine(), CoreEngine()) as (legs, last):
        _all_legs(legs, commits, last, advance)
        rows = legs.others[-1].runner.driver.state().in_order
    covered = {number: row.at / TICKS_PER_SECOND for row in rows for number in row.sequences}
    return [covered[number] - at for number, at in began.items()]


class Depth(NamedTuple):
    """What waits where nobody reads, and the memory of this process."""

    waiting: int
    bound: int
    """Rows that may wait, and those of the largest epoch."""
    before: float
    """MB behind the first epoch."""
    full: float
    """MB once no more may wait."""


def depth(here: LaidFlow, commits: int) -> Depth:
    """Let the first leg go on while nobody reads."""
    with _in_legs(here, "depth", commits, CoreEngine(), CoreEngine()) as (legs, last):
        main, (queue,) = legs.main, legs.main.outs
        main.runner.advance(0, 1)
        with Peak() as before:
            pass
        while main.full is None and main.runner.upto < last:
            main.runner.advance(main.runner.upto, main.runner.upto + 1)
        with Peak() as full:
            pass
        rows = [each.rows for each in queue.waiting]
        return Depth(sum(rows), queue.reader.most_behind + max(rows), before.python, full.python)


def crossing(here: LaidFlow) -> tuple[float, float]:
    """Give the µs that a row costs: to be written into the stream's files, and to be read by the leg behind it."""
    with _in_legs(here, "crossing", 1, CoreEngine(), CoreEngine()) as (legs, last):
        legs.main.runner.advance(0, last)
        (queue,) = legs.main.outs
        (stream,) = queue.waiting[0].files
        rows = queue.waiting[0].rows
        pieces = [p for bucket in range(4) for chain in queue.inputs(stream, bucket, 1, last) for p in chain]
        read = median_seconds(lambda: [block for piece in pieces for block in opened(piece)])
        table = pa.concat_tables([block for piece in pieces for block in opened(piece)])
        written = median_seconds(lambda: _publish(here.base, table))
    return written / rows * 1e6, read / rows * 1e6


def _publish(base: Path, table: pa.Table) -> None:
    """Write rows as a task does, hash included."""
    file = TableFile(base, "streams/again", "c1", Layout(), frozenset({"commit"}))
    file.write(table)
    file.close()


def by_threads(base: Path, tables: int, commits: int) -> tuple[float, float]:
    """Add a file to each of so many tables, commit after commit; give the seconds, in turn and by threads."""
    base.mkdir(parents=True)
    paths = [base / f"t{number}" for number in range(tables)]
    rows = pa.table({"n": pa.array(range(100), pa.int64())})
    for path in paths:
        delta_log.create(path, rows.schema)
    logs = [TableLog(path) for path in paths]

    def add(log: TableLog, number: int) -> None:
        name = f"f{number}.parquet"
        pq.write_table(rows, log.path / name)
        log.look()
        log.commit(TableChange(adds=[NewFile(name, 100, (log.path / name).stat().st_size)]), {})

    took: dict[str, list[float]] = {"turns": [], "threads": []}
    with ThreadPoolExecutor(THREADS) as threads:
        for number in range(commits):
            took["turns"].append(seconds(partial(deque, map(add, logs, repeat(2 * number)), 0)))
            took["threads"].append(seconds(partial(_all_of, threads, add, logs, 2 * number + 1)))
    return float(np.median(took["turns"])), float(np.median(took["threads"]))


def _all_of(
    threads: ThreadPoolExecutor, add: Callable[[TableLog, int], None], logs: Sequence[TableLog], number: int
) -> None:
    deque(threads.map(add, logs, repeat(number)), 0)
