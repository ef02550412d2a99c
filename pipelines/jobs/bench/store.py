"""`pulseline bench store`: what a home in an object store costs beside one on this machine's disk, and its calls."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.paths import data_tables
from pipelines.engine.files.folders import CARRY, UNNAMED
from pipelines.engine.files.stored import path_of
from pipelines.engine.live.epochs import EpochRunner
from pipelines.engine.tasks.local import CoreEngine
from pipelines.jobs.bench.figures import BenchFigure, Median, tell_figures
from pipelines.jobs.bench.stream import BEGIN, RECORDED, epochs, laid_feed, laid_flow
from pipelines.jobs.proofs.emulator import BUCKET, access_to, emulator, in_environment
from pipelines.jobs.proofs.store_proxy import StoreProxy
from pipelines.jobs.runs.backfill import Backfill
from pipelines.jobs.runs.readings import land_readings
from pipelines.operators.rows import TICKS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

ROWS = 1_000
"""Of a commit."""
WARM = 5
"""Commits that are not counted."""
MOST_CALLS = 6
"""Of a commit and table, beside its data files."""


def bench_store(as_json: bool, commits: int, echo: Callable[[str], None]) -> int:  # noqa: FBT001 - the command's flag
    """Measure small commits over one feed, in a folder and in a store of this machine.

    Args:
        as_json: one object a line instead of words.
        commits: how many.
        echo: where lines go.

    Returns:
        0, or 1 where a target is not held.
    """
    with tempfile.TemporaryDirectory() as folder:
        return tell_figures(_measured(Path(folder), commits + WARM), as_json=as_json, echo=echo)


def _measured(base: Path, commits: int) -> Iterator[BenchFigure]:
    flow = laid_flow(base, RECORDED)
    laid_feed(base, BEGIN + np.arange(commits * ROWS) * TICKS_PER_SECOND // ROWS)
    readings = [BEGIN + (each + 1) * TICKS_PER_SECOND for each in range(commits)]
    wanted, core = Backfill(flow=flow, root=base / "home", base=base, engine=CoreEngine()), CoreEngine()
    here = Median.of(epochs(wanted, BEGIN, readings, lambda _: core)[WARM:])
    yield BenchFigure(bench="store", name="a commit in a folder", value=here.times(1e3), unit="ms", rows=ROWS)
    with emulator() as behind, StoreProxy(behind).listening() as proxy:
        with in_environment(access_to(behind)):
            there = replace(wanted, root=path_of(f"s3://{BUCKET}/timed"))
            took = Median.of(epochs(there, BEGIN, readings, lambda _: core)[WARM:])
        yield BenchFigure(
            bench="store",
            name="a commit in an emulated store",
            value=took.times(1e3),
            unit="ms",
            against="one in a folder",
            ratio=took / here,
            rows=ROWS,
        )
        with in_environment(access_to(proxy.port)):
            yield from _called(replace(wanted, root=path_of(f"s3://{BUCKET}/counted")), readings, proxy)


def _called(wanted: Backfill, readings: Sequence[int], proxy: StoreProxy) -> Iterator[BenchFigure]:
    """Count what commits ask of a store; the landing of their rows is counted apart."""
    with open_driver(wanted.root, flow=wanted.flow.name) as driver:
        proxy.counted()
        land_readings(wanted, BEGIN, readings)
        landing, _, _ = proxy.counted()
        runner = EpochRunner(driver=driver, flow=wanted.flow, landing=wanted.landing, engine=lambda _: wanted.engine)
        runner.advance(0, WARM)
        tables = len(data_tables(wanted.root)) + 1
        proxy.counted()
        files = read = 0
        for number in range(WARM, len(readings)):
            runner.advance(number, number + 1)
            read += sum("/landed/" in call for call in proxy.paths)
            files += sum(map(_is_data, proxy.paths))
            proxy.paths.clear()
        calls, sent, got = proxy.counted()
    count = len(readings) - WARM
    beside = (calls.total() - files - read) / count
    kinds = ", ".join(f"{kind} {number / count:.1f}" for kind, number in sorted(calls.items()))
    figures = (
        (f"calls of a commit ({kinds})", calls.total() / count, "calls", None),
        ("of them for data files", files / count, "calls", None),
        ("of them for what landed", read / count, "calls", None),
        (f"of the others, for each of {tables} tables with `commits`", beside / tables, "calls", MOST_CALLS),
        ("calls of a reading that lands", landing.total() / len(readings), "calls", None),
        ("bytes of a commit, sent", sent / count, "bytes", None),
        ("bytes of a commit, read", got / count, "bytes", None),
    )
    for name, value, unit, target in figures:
        yield BenchFigure(bench="store", name=name, value=value, unit=unit, target=target, rows=ROWS)


def _is_data(call: str) -> bool:
    """Say whether a call is about a file of rows: of a stream, the ledger or the carry."""
    return call.endswith(".parquet") and any(f"/{each}/" in call for each in (UNNAMED, CARRY))
