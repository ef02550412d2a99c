"""What is judged: Spark frames of the rows of a span, and of what went before them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame


@dataclass(frozen=True, kw_only=True)
class View:
    """One table: its rows of the span, and the timers and CTIs before them that still bind."""

    rows: DataFrame
    """All columns of the stream, in any order and partitioning."""
    before: DataFrame | None = None
    """Of each timer scope the last timer, of each promise scope the newest CTI, from earlier commits."""
    small: bool = False
    """So few rows that one task asks faster than several that must shuffle first."""


@dataclass(frozen=True, kw_only=True)
class Views:
    """All that one judgement looks at; every frame holds the rows of the judged commits alone."""

    tables: Mapping[str, View]
    """By stream and side stream."""
    ledger: DataFrame
    landed: Mapping[str, DataFrame]
    """By source: `kind` and `arrival` of what landed."""
    held: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By stream and kind: rows held in its carry at the end of the span, less those at its beginning."""
