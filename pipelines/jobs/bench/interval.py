"""`pulseline bench interval`: what a small day costs with and without its checks, in this process and on Spark."""

from __future__ import annotations

import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pipelines.engine.commits.readers import log_state
from pipelines.engine.tasks.local import CoreEngine
from pipelines.engine.tasks.spark import SparkEngine
from pipelines.flows.grid import intervals
from pipelines.jobs.bench.figures import BenchFigure, Median, tell_figures
from pipelines.jobs.commands.run import checking
from pipelines.jobs.environment.settings import load_flow, read_settings
from pipelines.jobs.facts import views
from pipelines.jobs.runs.backfill import Backfill, run_backfill
from pipelines.jobs.runs.gate import publish_at_once

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pipelines.flows.model import Flow
    from pipelines.jobs.environment.settings import Settings
    from pipelines.jobs.runs.gate import Gate

FLOW, START = "flights", "2013-01-01"
FEW_DAYS = 14
WARM = 2
"""Days that are not counted: they compile and import."""
CHECKED, PUBLISHED = 1.0, 0.25
"""Seconds that a day of some 1,000 rows and 17 expectations may take."""


def bench_interval(as_json: bool, days: int, echo: Callable[[str], None]) -> int:  # noqa: FBT001 - the command's flag
    """Measure days of the flights, some 900 rows each into eight streams, one commit each.

    Args:
        as_json: one object a line instead of words.
        days: how many.
        echo: where lines go.

    Returns:
        0, or 1 where a target is not held.
    """
    with tempfile.TemporaryDirectory() as folder:
        return tell_figures(_measured(Path(folder), days + WARM), as_json=as_json, echo=echo)


def _measured(base: Path, days: int) -> Iterator[BenchFigure]:
    settings = read_settings()
    flow = load_flow(settings, FLOW)
    end = str(np.datetime64(START) + np.timedelta64(days, "D"))
    spans = intervals(flow, START, end)
    bare = _median(settings, flow, base / "bare", spans, publish_at_once)
    yield _figure("a day without checks", bare, PUBLISHED)
    plain = _median(settings, flow, base / "plain", spans, checking(base / "plain", flow, None))
    verdict = log_state(base / "plain").published[-1].verdict
    yield _figure(f"a day checked in this process ({verdict})", plain, CHECKED)
    spark = SparkEngine(settings.master, base / "spark.log", settings.spark)
    try:
        with all_on_spark():
            there = _median(settings, flow, base / "spark", spans, checking(base / "spark", flow, spark.session))
    finally:
        spark.close()
    checks, on_spark = plain - bare, there - bare
    yield BenchFigure(
        bench="interval",
        name="checks of a day in this process",
        value=checks,
        unit="s",
        against="the same on Spark",
        ratio=checks / on_spark,
    )


@contextmanager
def all_on_spark() -> Iterator[None]:
    """Let Spark judge however few the rows are."""
    large, views.LARGE = views.LARGE, 0
    try:
        yield
    finally:
        views.LARGE = large


def _median(settings: Settings, flow: Flow, root: Path, spans: list[tuple[int, int]], gate: Gate) -> Median:
    """Run days one by one, the first to warm up; give the median of a day in seconds."""
    wanted = Backfill(flow=flow, root=root, base=settings.feeds_base(flow), engine=CoreEngine(), gate=gate)
    took = [time.perf_counter()]
    run_backfill(wanted, spans, done=lambda _: took.append(time.perf_counter()))
    return Median.of(np.diff(took)[WARM:].tolist())


def _figure(name: str, value: float, target: float) -> BenchFigure:
    return BenchFigure(bench="interval", name=name, value=value, unit="s", target=target)
