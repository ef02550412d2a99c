"""The expectations as the page tells them: a line each, and the rows that break one among the rows around them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from expectations.laws import OF_INTERVALS
from expectations.report.words import instant_or_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from expectations.report.facts import Broken, ExpectationFacts, ReportFacts
    from expectations.report.words import ReportClock

SHOWN_ROWS = 5
"""Offending rows told of one check."""
SHOWN_CHECKS = 3
"""Checks told of one expectation."""
LEFT_OUT = frozenset({"around", "before", "after", "governed_by", "position", "commit", "landed_place"})
LEADING = ("kind", "arrival", "place", "event_time", "event_end")
MOST_COLUMNS = 10


@dataclass(frozen=True, kw_only=True)
class OffenderScene:
    """One offending row in stream order: the rows before it, itself, the rows after it, and what governs it."""

    columns: tuple[str, ...]
    lines: tuple[tuple[str, tuple[str, ...]], ...]
    """`around`, `offender` or `governor`, and a text a column."""
    governed: bool


@dataclass(frozen=True, kw_only=True)
class BrokenView:
    """One check in which an expectation did not hold."""

    where: str
    rows: int
    scenes: tuple[OffenderScene, ...]


@dataclass(frozen=True, kw_only=True)
class CheckLine:
    """One expectation on one stream."""

    facts: ExpectationFacts
    broken: tuple[BrokenView, ...]
    left_out: int
    """Checks in which it failed and that are not told."""

    @property
    def noun(self) -> str:
        """Name what breaks it."""
        return "case" if self.facts.name in OF_INTERVALS else "row"


@dataclass(frozen=True, kw_only=True)
class ChecksView:
    """All expectations, and how many commits none of them has looked at."""

    lines: tuple[CheckLine, ...]
    unchecked: int


def checks_view(facts: ReportFacts, clock: ReportClock) -> ChecksView | None:
    """Tell the expectations; none where nothing was published or checked."""
    if not facts.expectations and not facts.unchecked:
        return None
    ranked = sorted(facts.expectations, key=lambda each: each.held)
    return ChecksView(lines=tuple(_line(each, clock) for each in ranked), unchecked=facts.unchecked)


def _line(facts: ExpectationFacts, clock: ReportClock) -> CheckLine:
    newest = facts.broken[-SHOWN_CHECKS:]
    told = tuple(_broken(found, clock) for found in newest)
    return CheckLine(facts=facts, broken=told, left_out=len(facts.broken) - len(newest))


def _broken(found: Broken, clock: ReportClock) -> BrokenView:
    commit = f"commit {found.commit}, " if found.commit is not None else ""
    scenes = tuple(_scene(row, clock) for row in found.rows[:SHOWN_ROWS])
    return BrokenView(where=f"{commit}{clock.span(found.start, found.end)}", rows=found.unexpected, scenes=scenes)


def _scene(row: Mapping[str, object], clock: ReportClock) -> OffenderScene:
    around = row.get("around")
    before, after = (_rows(around, side) for side in ("before", "after"))
    governor = row.get("governed_by")
    every = [
        *([("governor", governor)] if isinstance(governor, dict) else []),
        *[("around", each) for each in before],
        ("offender", row),
        *[("around", each) for each in after],
    ]
    columns = _columns([each for _, each in every])
    lines = tuple((role, tuple(instant_or_text(each.get(name), clock) for name in columns)) for role, each in every)
    return OffenderScene(columns=columns, lines=lines, governed=isinstance(governor, dict))


def _rows(around: object, side: str) -> list[Mapping[str, object]]:
    found = around.get(side, []) if isinstance(around, dict) else []
    return [each for each in found if isinstance(each, dict)]


def _columns(rows: Sequence[Mapping[str, object]]) -> tuple[str, ...]:
    """Choose the columns that say something: those of every stream first, then those that most rows have."""
    names = dict.fromkeys(name for row in rows for name in row if name not in LEFT_OUT)
    filled = {name: sum(row.get(name) is not None for row in rows) for name in names}
    ranked = sorted((name for name in names if filled[name]), key=lambda name: (name not in LEADING, -filled[name]))
    leading = [name for name in LEADING if name in ranked]
    return tuple([*leading, *(name for name in ranked if name not in LEADING)][:MOST_COLUMNS])
