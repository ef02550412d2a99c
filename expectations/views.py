"""What is judged: the rows of a span, and of what went before them, whoever asks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from expectations.laws import Law

ROWS = "pulseline_rows"
"""What a query calls the rows of a table."""
Counts = Counter[tuple[str, str, str]]
"""Rows by stream or source, by where they are (`landed`, `stream`, `dropped`), and by kind."""
LANDED, STREAM, DROPPED = "landed", "stream", "dropped"


class View(Protocol):
    """One table: its rows of the span, and the timers and CTIs before them that still bind."""

    def marks(self, laws: Sequence[Law]) -> Any:  # noqa: ANN401 - a frame of pandas or of Spark
        """Give a frame for Great Expectations: a row a judged row, a boolean column a law, true where it is kept."""

    def ask(self, query: str, columns: Sequence[str]) -> pa.Table:
        """Answer a query, in Spark's SQL, over `ROWS`: some columns of the rows and of those before, and `__judged`."""

    def whole(self, arrivals: Sequence[int]) -> pa.Table:
        """Give the rows that arrived at some instants, in ticks, with all their columns."""

    @property
    def before(self) -> pa.Table | None:
        """Of each timer scope the last timer, of each promise scope the newest CTI, from earlier commits."""


@dataclass(frozen=True, kw_only=True)
class Views:
    """All that one judgement looks at; every view holds the rows of the judged commits alone."""

    tables: Mapping[str, View]
    """By stream and side stream."""
    count: Callable[[], Counts]
    """Counts what landed, what stands in streams, and what the ledger says was dropped."""
    held: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By stream and kind: rows held in its carry at the end of the span, less those at its beginning."""
