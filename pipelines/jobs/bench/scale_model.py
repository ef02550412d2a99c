"""What a commit costs, as a sum of parts: fitted to what `pulseline bench scale` measures, and asked of larger days."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipelines.jobs.bench.figures import BenchFigure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

INTERVAL = 10_000_000
"""Most rows of one interval that is measured."""
WORKERS = 2
BUCKETS = 4
"""Of the backfills that are measured."""
DAY = 86_400
PARTS = ("landing", "tasks", "dispatch", "files", "commit", "store")
"""Of a commit, one behind another. A stage without key comes on top where a flow has one."""


class Took(NamedTuple):
    """What a backfill took."""

    rows: int
    landing: float
    """Seconds, in the driver."""
    tasks: float
    """Seconds on the workers, from the first to the last."""
    whole: float
    """Seconds behind the landing: tasks and commit."""


class Called(NamedTuple):
    """What a commit of some tasks asks of a store."""

    tasks: int
    calls: float
    chain: float
    """Of the driver's, those that wait for one another."""


@dataclass(frozen=True, kw_only=True)
class ScaleFigures:
    """All that the model is fitted to."""

    runs: Sequence[Took]
    files: Sequence[tuple[int, float]]
    """Tasks of a commit, and what the driver did for them and their files, in seconds."""
    slept: Sequence[tuple[int, float]]
    """Tasks of a job, and what it took beyond their sleep, in seconds."""
    called: Sequence[Called]
    merge: float
    """Seconds of a row of a stage without key, which is one task."""
    memory: float
    """Bytes of the driver for each row of an interval that lands."""
    disk: float
    """Bytes of a row that landed once and left once."""


class StraightLine(NamedTuple):
    """So much for each, and so much in any case."""

    each: float
    once: float = 0.0

    def at(self, count: float) -> float:
        """Give what so many cost."""
        return self.each * count + self.once


@dataclass(frozen=True, kw_only=True)
class Costs:
    """The model: what each part costs on this machine, in seconds, calls and bytes."""

    landing: float
    """Of a row, in the driver."""
    task: float
    """Of a row of one stage by key, of one core."""
    merge: float
    """Of a row of a stage without key."""
    dispatch: StraightLine
    """Of tasks, in the driver."""
    file: StraightLine
    """Of a commit of so many tasks in the driver: files named, listed, looked for, settled."""
    calls: StraightLine
    """Of a commit of so many tasks, in a store."""
    chain: StraightLine
    """Of these, those of the driver that wait for one another."""
    memory: float
    """Bytes of the driver for each row of an interval that lands."""
    disk: float
    """Bytes of a row that landed once and left once."""

    def foretell(self, rows: float, tasks: float, cores: float, call: float = 0.0) -> dict[str, float]:
        """Give the seconds of one interval, by part; parts follow one another.

        Args:
            rows: of the interval.
            tasks: of its stage by key.
            cores: of all workers.
            call: seconds of a call of the store; 0 where the home is a folder.
        """
        parts = (
            self.landing * rows,
            self.task * rows / min(cores, tasks),
            self.dispatch.each * tasks,
            self.file.each * tasks,
            self.file.once,
            self.chain.at(tasks) * call,
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
    call: float
    """Seconds of a call of the store."""


def fitted(found: ScaleFigures) -> Costs:
    """Fit the model: each cost is a slope, weighted so that small runs count as much as large ones."""
    return Costs(
        landing=line([(took.rows, took.landing) for took in found.runs]).each,
        task=line([(took.rows, took.tasks) for took in found.runs]).each * WORKERS,
        merge=found.merge,
        dispatch=line(found.slept),
        file=line(found.files),
        calls=line([(called.tasks, called.calls) for called in found.called]),
        chain=line([(called.tasks, called.chain) for called in found.called]),
        memory=found.memory,
        disk=found.disk,
    )


def line(points: Sequence[tuple[float, float]]) -> StraightLine:
    """Fit the line of the least relative error, neither of its parts below zero."""
    x, y = (np.array(each, dtype=float) for each in zip(*points, strict=True))
    if len(x) == 1:
        return StraightLine(float(y[0] / x[0]))
    design = np.stack([x, np.ones_like(x)], axis=1) / y[:, None]
    each, once = np.linalg.lstsq(design, np.ones_like(y), rcond=None)[0]
    if once < 0:
        return StraightLine(float(np.sum(x / y) / np.sum((x / y) ** 2)))
    if each < 0:
        return StraightLine(0.0, float(np.sum(1 / y) / np.sum(1 / y**2)))
    return StraightLine(float(each), float(once))


def modelled(costs: Costs, took: Took) -> float:
    """Give what the model says of a backfill that was measured."""
    intervals = max(1, took.rows // INTERVAL)
    return intervals * sum(costs.foretell(took.rows / intervals, BUCKETS, WORKERS).values())


def told(costs: Costs) -> Iterator[BenchFigure]:
    """Say what each part costs."""
    yield figure("landing, of a row in the driver", costs.landing * 1e6, "µs")
    yield figure("a stage by key, of a row and one core", costs.task * 1e6, "µs")
    yield figure("a stage without key, of a row in its one task", costs.merge * 1e6, "µs")
    yield figure("dispatch, of a task in the driver", costs.dispatch.each * 1e3, "ms")
    yield figure("files, of a task in the driver", costs.file.each * 1e3, "ms")
    yield figure("a commit, whatever it holds", costs.file.once * 1e3, "ms")
    yield figure("calls of a store, of a task", costs.calls.each, "calls")
    yield figure("calls of a store, of a commit", costs.calls.once, "calls")
    yield figure("calls that wait for one another in the driver, of a task", costs.chain.each, "calls")
    yield figure("calls that wait for one another in the driver, of a commit", costs.chain.once, "calls")
    yield figure("memory of the driver, of a row of the interval that lands", costs.memory, "bytes")
    yield figure("disk, of a row that landed once and left once", costs.disk, "bytes")


def residuals(costs: Costs, found: ScaleFigures) -> Iterator[BenchFigure]:
    """Hold the model against each measurement that it was fitted to."""
    for took in found.runs:
        yield missed(f"a backfill of {took.rows:,} rows", modelled(costs, took), took.landing + took.whole, "s")
    for tasks, spent in found.files:
        yield missed(f"the driver's part of a commit of {tasks:,} tasks", costs.file.at(tasks), spent, "s")
    for tasks, spent in found.slept:
        yield missed(f"{tasks:,} tasks that sleep", costs.dispatch.at(tasks), spent, "s")
    for called in found.called:
        yield missed(
            f"calls of a commit of {called.tasks:,} tasks", costs.calls.at(called.tasks), called.calls, "calls"
        )
        yield missed("  one behind another", costs.chain.at(called.tasks), called.chain, "calls")


def foretold(costs: Costs, ahead: LargerDay) -> Iterator[BenchFigure]:
    """Say what an interval of a larger day would take, and what each part would fill of the time there is."""
    rows, cores = ahead.rows * ahead.every / DAY, ahead.nodes * ahead.cores
    parts = costs.foretell(rows, cores, cores, ahead.call)
    yield figure(f"foretold: rows of an interval of {ahead.every:,.0f} s, {cores:,} cores", rows, "rows")
    for name, value in parts.items():
        yield figure(f"foretold: {name}", value, "s", share=value / ahead.every)
    whole = sum(parts.values())
    yield figure("foretold: an interval, part after part", whole, "s", share=whole / ahead.every)
    merge = costs.merge * rows
    yield figure("foretold: on top, a stage without key over all rows", merge, "s", share=merge / ahead.every)
    yield figure("foretold: memory of the driver", costs.memory * rows / 1e9, "GB")
    yield figure("foretold: calls of a store, of an interval", costs.calls.at(cores), "calls")
    yield figure("foretold: bytes a second into the home", costs.disk * ahead.rows / DAY / 1e6, "MB/s")
    most = _fills(costs, ahead)
    yield figure("foretold: rows of a day at which an interval takes all the time there is", most, "rows")


def _fills(costs: Costs, ahead: LargerDay) -> float:
    """Give the rows of a day at which one interval takes as long as the next takes to come; 0 where any is too much."""
    cores = ahead.nodes * ahead.cores
    fixed, more = (sum(costs.foretell(rows, cores, cores, ahead.call).values()) for rows in (0.0, 1e6))
    return max(0.0, (ahead.every - fixed) / ((more - fixed) / 1e6)) * DAY / ahead.every


def figure(name: str, value: float, unit: str, rows: int = 0, share: float | None = None) -> BenchFigure:
    """Make a figure of this bench."""
    against = "" if share is None else "the time there is"
    return BenchFigure(bench="scale", name=name, value=value, unit=unit, rows=rows, against=against, ratio=share)


def missed(name: str, said: float, was: float, unit: str) -> BenchFigure:
    """Hold what the model says against what was measured."""
    return BenchFigure(
        bench="scale", name=f"model: {name}", value=said, unit=unit, against="what was measured", ratio=said / was
    )
