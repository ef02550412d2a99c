"""`pulseline bench all`: benches one after the other, and one table of all that they measured."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields
from typing import TYPE_CHECKING

from pipelines.errors import Exit
from pipelines.jobs.bench.figures import BenchFigure, versions_text
from pipelines.jobs.text.tables import table_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

WORDS = {"year": ("interval", "--year")}
"""How a bench is called that is not called by its name alone."""
HELD = {True: "held", False: "NOT held", None: ""}


def bench_all(parts: Sequence[str], echo: Callable[[str], None]) -> int:
    """Run benches, each in a process of its own; tell figures as they come, and then all of them as a table.

    Args:
        parts: names of benches.
        echo: where lines go.

    Returns:
        0, or 1 where a target is not held or a bench came to no end, which is said.
    """
    figures: list[BenchFigure] = []
    broken = []
    for part in parts:
        command = [sys.executable, "-m", "pipelines.cli", "bench", *WORDS.get(part, (part,)), "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own words
            for figure in figures_in(process.stdout or ()):
                echo(figure.as_text())
                figures.append(figure)
        if process.returncode not in {Exit.FINE, Exit.CHECK_FAILED}:
            broken.append(f"pulseline bench {part} came to no end: exit code {process.returncode}")
    for text in ["", figures_table(figures), "", versions_text(), *broken]:
        echo(text)
    return Exit.CHECK_FAILED if broken or any(each.held is False for each in figures) else Exit.FINE


def figures_in(lines: Iterable[str]) -> Iterator[BenchFigure]:
    """Read figures as a bench gives them, one JSON object a line; other lines are passed over."""
    names = {field.name for field in fields(BenchFigure)}
    for line in lines:
        if line.startswith("{"):
            found = {name: value for name, value in json.loads(line).items() if name in names}
            spread = found.pop("spread", None)
            yield BenchFigure(**found, spread=None if spread is None else (spread[0], spread[1]))


def figures_table(figures: Sequence[BenchFigure]) -> str:
    """Set figures as a table: each with what it is compared with in the same run, its target, and whether it holds."""
    columns = {
        "bench": [each.bench for each in figures],
        "measured": [each.name for each in figures],
        "value": [f"{each.value:,.4g} {each.unit}" for each in figures],
        "from to": [each.spread_text() for each in figures],
        "times": ["" if each.ratio is None else f"{each.ratio:.2f}" for each in figures],
        "what it is compared with": [each.against for each in figures],
        "target": [_target(each) for each in figures],
        "": [HELD[each.held] for each in figures],
    }
    return table_text(columns, ["value", "from to", "times"])


def _target(figure: BenchFigure) -> str:
    if figure.target is None:
        return ""
    of_value = figure.ratio is None or figure.of_value
    return f"{'≥' if figure.at_least else '≤'} {figure.target:g}{f' {figure.unit}' if of_value else ' times'}"
