"""A measured value: how time is taken, what it is held against, and how it is told."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from typing import TYPE_CHECKING, Self

import numpy as np

from pipelines.errors import Exit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

REPEATS = 5
"""How often each is measured, after once for warmth: the median is told, with the least and the most."""
PACKAGES = ("pyspark", "deltalake", "pyarrow", "numba", "numpy", "duckdb", "polars", "bytewax")
"""Those that are installed; the last three are only compared with."""


class Median(float):
    """The median of what was measured several times, which still knows the least and the most of them."""

    spread: tuple[float, float]

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        """Take the median of what was measured; of nothing it is no number."""
        found = cls(np.median(values) if len(values) else np.nan)
        found.spread = (float(min(values)), float(max(values))) if len(values) else (np.nan, np.nan)
        return found

    def rate(self, count: float) -> Median:
        """Give so many of something a second, where these are the seconds that they took."""
        rated = Median(count / self)
        least, most = self.spread
        rated.spread = (count / most, count / least)
        return rated

    def times(self, factor: float) -> Median:
        """Give it in another unit."""
        scaled = Median(factor * self)
        least, most = self.spread
        scaled.spread = (factor * least, factor * most)
        return scaled


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
    spread: tuple[float, float] | None = None
    """The least and the most, where the value is the median of several."""

    def __post_init__(self) -> None:
        """Take the spread along with a median."""
        if isinstance(self.value, Median):
            object.__setattr__(self, "spread", self.value.spread)

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
        return f"{self.name}: {self.value:,.4g} {self.unit}{self.spread_text(' (', ')')}{against}{judged}"

    def spread_text(self, before: str = "", behind: str = "") -> str:
        """Spell the least and the most; nothing where it was measured once."""
        return "" if self.spread is None else f"{before}{self.spread[0]:,.4g} to {self.spread[1]:,.4g}{behind}"


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


def median_seconds(work: Callable[[], object], repeats: int = REPEATS) -> Median:
    """Do something once for warmth and then again; give the median of the latter, in seconds."""
    work()
    return Median.of([seconds(work) for _ in range(repeats)])


def seconds(work: Callable[[], object]) -> float:
    """Do something; give how long it took."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun
