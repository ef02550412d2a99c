"""`pulseline bench commands`: how long one waits for commands that start no Spark."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.engine.tasks.local import CoreEngine
from pipelines.flows.grid import intervals
from pipelines.jobs.bench.figures import REPEATS, BenchFigure, Median, median_seconds, tell_figures
from pipelines.jobs.commands.run import checking
from pipelines.jobs.environment.settings import MAIN_RUN, load_flow, read_settings
from pipelines.jobs.runs.backfill import Backfill, run_backfill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

FLOW, START, END = "flights", "2013-01-01", "2013-01-08"
QUICK, JUDGING = 0.7, 10.0
"""Seconds that a command that looks at tables may take, and one that judges a week."""
NOTHING = ("--help",)
NOT_KEPT = "PYTHONDONTWRITEBYTECODE"
"""Where it is set, each process compiles all that it loads, which takes longer than any of these commands."""
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("show", FLOW, "delays"),
    ("ledger", FLOW),
    ("status", FLOW),
    ("flows", "validate", FLOW),
    ("advise", FLOW, "punctual"),
    ("report", FLOW),
    ("apply", FLOW),
    ("plan", FLOW),
    ("tables", FLOW),
    ("doctor", FLOW),
    ("metrics", FLOW),
)


def bench_commands(as_json: bool, echo: Callable[[str], None]) -> int:  # noqa: FBT001 - the command's flag
    """Measure commands over a week of flights, each in a process of its own, beside one that does nothing.

    Args:
        as_json: one object a line instead of words.
        echo: where lines go.

    Returns:
        0, or 1 where a target is not held.

    Raises:
        CalledProcessError: a command failed.
    """
    with tempfile.TemporaryDirectory() as home:
        return tell_figures(_measured(Path(home)), as_json=as_json, echo=echo)


def _measured(home: Path) -> Iterator[BenchFigure]:
    settings = read_settings()
    flow, root = load_flow(settings, FLOW), home / FLOW / MAIN_RUN
    wanted = Backfill(
        flow=flow, root=root, base=settings.feeds_base(flow), engine=CoreEngine(), gate=checking(root, flow, None)
    )
    run_backfill(wanted, intervals(flow, START, END))
    nothing = _waited(home, NOTHING)
    for words in COMMANDS:
        yield _figure(words, _waited(home, words), nothing, QUICK)
    yield _figure(("check", FLOW), _waited(home, ("check", FLOW), repeats=1), nothing, JUDGING)


def _waited(home: Path, words: Sequence[str], repeats: int = REPEATS) -> Median:
    """Give the median of the seconds from typing a command to its end; once before, for warmth."""
    command = [sys.executable, "-m", "pipelines.cli", *words]
    here = {**os.environ, "PULSELINE_HOME": str(home)}
    here.pop(NOT_KEPT, None)
    return median_seconds(lambda: subprocess.run(command, env=here, capture_output=True, check=True), repeats)  # noqa: S603 - our own words


def _figure(words: Sequence[str], took: float, nothing: float, target: float) -> BenchFigure:
    return BenchFigure(
        bench="commands",
        name=f"pulseline {' '.join(words)}",
        value=took,
        unit="s",
        against="pulseline --help",
        ratio=took / nothing,
        target=target,
        of_value=True,
    )
