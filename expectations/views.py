"""What is judged: the rows of a span, and of what went before them, whoever asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import pyarrow as pa

from expectations.given import Given
from expectations.laws import EVENTS
from pipelines.flows.expressions import parse_expression

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from expectations.laws import Law

AT = "__pulseline_at"
"""Arrival in ticks: a column of frames that Great Expectations look at row by row."""
Truth = Callable[[str, pa.Table], pa.ChunkedArray]
"""Says of each row whether an expression is true."""
ROWS = "pulseline_rows"
"""What a query calls the rows of a table."""
Counts = Counter[tuple[str, str, str]]
"""Rows by stream or source, by where they are (`landed`, `stream`, `dropped`), and by kind."""
LANDED, STREAM, DROPPED = "landed", "stream", "dropped"


def crossed_to(leg: str) -> str:
    """Name where rows are counted that a leg of a run took of another: as far as it has come, which may be less far."""
    return f"crossed to {leg}"


class View(Protocol):
    """One table: its rows of the span, and the timers and CTIs before them that still bind."""

    def marks(self, laws: Sequence[Law]) -> Any:  # noqa: ANN401 - a frame of pandas or of Spark
        """Give a frame for Great Expectations: a row a judged row, a boolean column a law, true where it is kept."""

    def ask(self, query: str, columns: Sequence[str]) -> pa.Table:
        """Answer a query, in Spark's SQL, over `ROWS`: some columns of the rows and of those before, and `JUDGED`."""

    def whole(self, arrivals: Sequence[int]) -> pa.Table:
        """Give the rows that arrived at some instants, in ticks, with all their columns."""

    @property
    def schema(self) -> pa.Schema:
        """Give all columns of the table, in its order."""

    knows_decimals: ClassVar[bool]
    """Whether Great Expectations are asked of decimals as they are."""

    def chosen(
        self,
        columns: Sequence[str] | None,
        where: str,
        key: Sequence[str] = (),
        how: Given = Given.NEAREST,
    ) -> Any:  # noqa: ANN401 - a frame of pandas or of Spark
        """Give the events, for Great Expectations.

        Args:
            columns: those that are asked for, with what `told_by` names; None gives the table as it is.
            where: an expression; only rows of which it is true. One that names `kind` speaks of all rows.
            key: columns by which the table is numbered.
            how: their values are given.
        """

    def can_choose(self, where: str) -> bool:
        """Say whether Great Expectations can be asked of some rows of a frame that has all events."""

    @property
    def before(self) -> pa.Table | None:
        """Of each timer scope the last timer, of each promise scope the newest CTI, from earlier commits."""


@dataclass(frozen=True, kw_only=True)
class Views:
    """All that one judgement looks at; every view holds the rows of the judged commits alone."""

    tables: Mapping[str, View]
    """By stream and side stream."""
    landed: Mapping[str, View] = field(default_factory=dict)
    """By source of which the flow expects something."""
    count: Callable[[], Counts]
    """Counts what landed, what stands in streams, and what the ledger says was dropped."""
    intervals: Callable[[str], Mapping[str, View]] = lambda _: {}
    """Gives the rows of a table interval by interval, by where each begins; nothing where one commit alone is judged,
    and nothing of what a stream published, whose epochs end anywhere."""
    held: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By stream and kind: rows held in its carry at the end of the span, less those at its beginning."""


def told_by(key: Sequence[str]) -> tuple[str, ...]:
    """Name the columns of a frame that tell its rows apart: the key stands there twice: a check may see it otherwise.

    >>> told_by(["gate"])
    ('__pulseline_at', 'place', '__key_0')
    """
    return (AT, "place", *(f"__key_{number}" for number in range(len(key))))


def kinds_asked(where: str) -> tuple[str, ...] | None:
    """Name the kinds of rows that a check is about: events, or all where its `where` speaks of kinds itself.

    >>> kinds_asked("delay > 5"), kinds_asked("kind = 'timer'")
    (('data', 'start', 'end'), None)
    """
    return None if where and "kind" in parse_expression(where).columns else EVENTS


def needed_columns(columns: Sequence[str], where: str) -> list[str]:
    """Name the columns to read: what is asked, what `where` asks, and what tells a row from others."""
    asked = (*columns, *(parse_expression(where).columns if where else ()), "kind", "arrival", "place")
    return list(dict.fromkeys(asked))
