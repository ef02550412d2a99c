"""`pulseline metrics`: what a run and its buffers measure, in Prometheus' text format, on paper or in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.engine.columnar.clock import wall_now
from pipelines.engine.commits.readers import log_state
from pipelines.engine.files.durable import whole
from pipelines.engine.sources.state import read_states
from pipelines.jobs.environment.access import opened
from pipelines.jobs.facts.buffers import buffers_facts, metrics_text
from pipelines.jobs.facts.legs import legs_facts
from pipelines.jobs.runs.known import open_run

if TYPE_CHECKING:
    from collections.abc import Callable

METRICS = "metrics.prom"
"""The file in a run's folder that a stream keeps."""
EVERY = 5.0
"""Seconds between two times that it is written."""


def show_metrics(flow: str, run: str, to: str | None, tell: Callable[[str], object]) -> None:
    """Print the metrics of a run, or write them to a file in one step, as a textfile collector wants it.

    Args:
        flow: name of the flow or path of its file.
        run: name of the run.
        to: the file; printed unless given.
        tell: prints a text.

    Raises:
        WrongUse: no such flow or run.
    """
    known = open_run(flow, run)
    if to is None:
        tell(_text(known.name, run, known.root).rstrip())
        return
    write_metrics(known.name, run, known.root, Path(to))
    tell(f"wrote {to}")


def write_metrics(flow: str, run: str, root: Path, file: Path | None = None) -> None:
    """Write the metrics of a run to a file, whole or not at all.

    Args:
        flow: its name.
        run: its name.
        root: the run's folder.
        file: where to; the run's own unless given.
    """
    named, file = file is not None, file or root / METRICS
    with whole(file) as draft:
        draft.write_text(_text(flow, run, root), encoding="utf-8")
        if named:
            opened(draft)


def _text(flow: str, run: str, root: Path) -> str:
    state, now = log_state(root), wall_now()
    return metrics_text(flow, run, buffers_facts(root, state), state, now, read_states(root), legs_facts(root, now))
