"""A measured value: how time is taken, what it is held against, and how it is told."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from pipelines.errors import Exit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

PACKAGES = ("pyspark", "deltalake", "pyarrow", "numba", "numpy", "duckdb", "polars", "bytewax")
"""Those that are installed; the last three are only compared with."""


@dataclass(frozen=True, kw_only=True)
class BenchFigure:
    """One measured value and what it is held against."""

    bench: str
    name: str
    value: float
    unit: str
    against: str = ""
    ratio: float | None = None
    target: float | None = None
    """What the value, or the ratio where there is one, is to stay under."""
    at_least: bool = False
    """The target is what it is to reach."""
    of_value: bool = False
    """The target is the value's, also where there is a ratio."""
    rows: int = 0
    keys: int = 0

    @property
    def held(self) -> bool | None:
        """Say whether the target is held; None where there is none."""
        if self.target is None:
            return None
        judged = self.value if self.ratio is None or self.of_value else self.ratio
        return judged >= self.target if self.at_least else judged <= self.target

    def as_json(self) -> str:
        """Spell it as one JSON object, with the versions it was measured with."""
        facts = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return json.dumps({**facts, "held": self.held, "cores": os.cpu_count(), "versions": versions()})

    def as_text(self) -> str:
        """Spell the figure with its unit, what it is held against, and whether it held."""
        against = f", {self.ratio:.2f} times {self.against}" if self.ratio is not None else ""
        bound = "at least" if self.at_least else "at most"
        unit = f" {self.unit}" if self.of_value else ""
        judged = (
            "" if self.target is None else f" ({bound} {self.target:g}{unit}: {'held' if self.held else 'NOT held'})"
        )
        return f"{self.name}: {self.value:,.4g} {self.unit}{against}{judged}"


def tell_figures(figures: Iterable[BenchFigure], *, as_json: bool, echo: Callable[[str], None]) -> int:
    """Tell figures as they come.

    Args:
        figures: measured while they are asked for.
        as_json: one object a line instead of words.
        echo: where lines go.

    Returns:
        0, or 1 where a target is not held.
    """
    missed = 0
    for figure in figures:
        missed += figure.held is False
        echo(figure.as_json() if as_json else figure.as_text())
    return Exit.CHECK_FAILED if missed else Exit.FINE


def versions() -> dict[str, str]:
    """Give the versions of what is installed."""
    return {name: metadata.version(name) for name in PACKAGES if find_spec(name)}


def versions_text() -> str:
    """Name the machine's cores and the versions that figures were measured with."""
    return f"{os.cpu_count()} cores; {', '.join(f'{name} {version}' for name, version in versions().items())}"


def median_seconds(work: Callable[[], object], repeats: int) -> float:
    """Do something once for warmth and then again; give the median of the latter, in seconds."""
    work()
    return float(np.median([seconds(work) for _ in range(repeats)]))


def seconds(work: Callable[[], object]) -> float:
    """Do something; give how long it took."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun
