"""`pulseline bench interval --year`: a year of small days, together and day by day, and what it leaves on the disk."""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv

from pipelines.engine.commits.readers import log_state
from pipelines.engine.landing.progress import SourceProgress
from pipelines.engine.landing.source_feed import Reading
from pipelines.engine.sources.catalog import open_recorded
from pipelines.engine.tasks.local import CoreEngine
from pipelines.flows.grid import intervals
from pipelines.jobs.bench.figures import BenchFigure, seconds, tell_figures
from pipelines.jobs.commands.run import checking
from pipelines.jobs.environment.settings import load_flow, read_settings
from pipelines.jobs.runs.backfill import Backfill, run_backfill
from pipelines.jobs.runs.gate import publish_at_once

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pipelines.flows.model import Flow
    from pipelines.jobs.runs.intervals import Interval

FLOW, START, DAYS = "flights", "2013-01-01", 365
ENDS = 60
"""Days at the begin of the year, and at its end, that are held against each other."""
CHECKED, PUBLISHED = 90.0, 10.0
"""Seconds that the year may take, with its checks and without."""
LAST, FILES, BYTES = 1.05, 10, 2.0
"""Times: the last days the first. Files of a day. Times: bytes those of the rows as CSV."""


class YearBench(NamedTuple):
    """A flow over many days, and how many of them each end has."""

    flow: Flow
    feeds: Path
    days: list[Interval]
    ends: int

    def wanted(self, root: Path, at_once: int | None) -> Backfill:
        """Give a run over it without checks, in this process."""
        return Backfill(
            flow=self.flow, root=root, base=self.feeds, engine=CoreEngine(), gate=publish_at_once, at_once=at_once
        )


def bench_year(days: int, *, as_json: bool, echo: Callable[[str], None]) -> int:
    """Measure the days of the flights: together, and one by one as a scheduler runs them.

    Args:
        days: how many, from the first of the year.
        as_json: one object a line instead of words.
        echo: where lines go.

    Returns:
        0, or 1 where a target is not held.
    """
    settings = read_settings()
    flow = load_flow(settings, FLOW)
    spans = intervals(flow, START, str(np.datetime64(START) + np.timedelta64(days, "D")))
    bench = YearBench(flow, settings.feeds_base(flow), spans, min(ENDS, days // 2))
    with tempfile.TemporaryDirectory(prefix="pulseline-bench-") as folder:
        return tell_figures(year(Path(folder), bench), as_json=as_json, echo=echo)


def year(base: Path, bench: YearBench) -> Iterator[BenchFigure]:
    """Measure the days together, checked and unchecked, and then one by one."""
    count = len(bench.days)
    # A day before, for warmth: what is compiled and imported is no day's.
    warm = replace(bench.wanted(base / "warm", 1), gate=checking(base / "warm", bench.flow, None))
    run_backfill(warm, bench.days[:1])
    wanted = replace(bench.wanted(base / "checked", None), gate=checking(base / "checked", bench.flow, None))
    took = seconds(lambda: run_backfill(wanted, bench.days))
    verdicts = sorted({str(entry.verdict) for entry in log_state(wanted.root).published})
    yield _figure(f"{count} days, checked and published ({', '.join(verdicts)})", took, "s", CHECKED)
    bare = bench.wanted(base / "bare", None)
    yield _figure(f"{count} days without checks", seconds(lambda: run_backfill(bare, bench.days)), "s", PUBLISHED)
    yield from day_by_day(bench.wanted(base / "alone", 1), bench)


def day_by_day(wanted: Backfill, bench: YearBench) -> Iterator[BenchFigure]:
    """Run days one by one; hold the last against the first, and count what is on the disk."""
    done = [time.perf_counter()]
    run_backfill(wanted, bench.days, done=lambda _: done.append(time.perf_counter()))
    yield _figure(f"{len(bench.days)} days one by one, without checks", done[-1] - done[0], "s")
    took = np.diff(done)
    first, last = float(np.mean(took[: bench.ends])), float(np.mean(took[-bench.ends :]))
    figure = _figure(f"a day of the last {bench.ends}, without checks", last, "s", LAST)
    yield replace(figure, against=f"one of the first {bench.ends}", ratio=last / first)
    files = [path for path in wanted.root.rglob("*") if path.is_file()]
    yield _figure("files that a day leaves", len(files) / len(bench.days), "files", FILES)
    size, text = sum(path.stat().st_size for path in files) / 1e6, text_bytes(bench) / 1e6
    figure = _figure("bytes of the run", size, "MB", BYTES)
    yield replace(figure, against="those of the rows that landed, as CSV", ratio=size / text)


def text_bytes(bench: YearBench) -> int:
    """Give the bytes of all rows of the sources that arrived in these days, as CSV."""
    span, counted = Reading(bench.days[0][0], bench.days[-1][1]), 0
    for feed in open_recorded(bench.flow, bench.feeds).values():
        rows, sink = feed.arrive(span, SourceProgress()).rows, pa.BufferOutputStream()
        pcsv.write_csv(rows.select([name for name in feed.schema.names if name in rows.column_names]), sink)
        counted += sink.tell()
    return counted


def _figure(name: str, value: float, unit: str, target: float | None = None) -> BenchFigure:
    return BenchFigure(bench="year", name=name, value=value, unit=unit, target=target)
