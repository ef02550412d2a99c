"""The calendar of a run: a cell a day, or an interval where those are longer, how it stands, and its page."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import TYPE_CHECKING

from expectations.report.words import DAY, counted

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence

    from expectations.report.facts import ReportFacts
    from expectations.report.words import ReportClock

MOST_TOLD = 100
"""Days that the table below the calendar tells: the newest that are not as they should be."""
LONGEST_DAY = DAY + DAY // 12
"""A day on which clocks are set is longer, and a day all the same."""


class CalendarState(StrEnum):
    """How a day stands; of a day of several intervals, how the worst of them does."""

    RED = "red"
    """Published, and an expectation that blocks does not hold: somebody decided so, or it was judged behind."""
    REJECTED = "rejected"
    """Its last run broke an expectation; readers see what was published before, or nothing."""
    HELD = "held"
    """Written, and waits for somebody's word."""
    MISSING = "missing"
    """Nothing is published, and what comes behind it is."""
    STALE = "stale"
    """Published, and it would come out otherwise now."""
    PLANNED = "planned"
    """Behind what is published; of a day that is half published the other half is."""
    PUBLISHED = "published"


WORST_FIRST = tuple(CalendarState)
WAITING = frozenset(CalendarState) - {CalendarState.PUBLISHED, CalendarState.PLANNED}
"""States that somebody should look at."""
MARKS = {
    CalendarState.RED: "!",
    CalendarState.REJECTED: "✗",
    CalendarState.HELD: "?",
    CalendarState.MISSING: "–",
    CalendarState.STALE: "↻",
    CalendarState.PLANNED: "○",
}
WARNED = "•"
"""What marks a published day of which something only warns."""
"""What tells a state apart without its colour."""


@dataclass(frozen=True, kw_only=True)
class CalendarDay:
    """One day of a run, or one interval where those are longer."""

    start: int
    """In ticks."""
    end: int
    state: CalendarState
    cause: str = ""
    """Why it is not as it should be."""
    more: tuple[str, ...] = ()
    """Further reasons of the same kind."""
    alone: tuple[int, int] | None = None
    """The span that has to be asked by itself for the reason to show; None where one that has more shows it too."""
    rows: int | None = None
    """That landed; None where nothing ran."""
    warned: int = 0
    """Expectations that do not hold and only warn."""
    intervals: int = 1
    is_accepted: bool = False
    """Whether a person let pass what does not hold: nobody has to look."""
    page: str = ""
    """Name of its page, in the same folder; empty where it has none."""


@dataclass(frozen=True, kw_only=True)
class CalendarCell:
    """One cell: its number, its state and mark, what it says when it is pointed at, and its page."""

    label: str
    state: CalendarState
    mark: str
    told: str
    page: str
    column: int
    """Of the week, from 1, where the cell begins a month; else 0."""


@dataclass(frozen=True, kw_only=True)
class CalendarMonth:
    """A month, or a year where intervals are longer than days."""

    title: str
    cells: tuple[CalendarCell, ...]
    weeks: bool
    """Whether the cells are days, seven to a line."""


@dataclass(frozen=True, kw_only=True)
class CalendarView:
    """What the template writes."""

    lead: str
    states: tuple[tuple[CalendarState, str, int], ...]
    """Those that occur, with their mark and how many there are."""
    months: tuple[CalendarMonth, ...]
    lines: tuple[tuple[CalendarState, str, str, str], ...]
    """State, span, cause and page of those that somebody should look at, the newest first."""
    left_out: int


def calendar_view(facts: ReportFacts, clock: ReportClock) -> CalendarView | None:
    """Lay the calendar of a run out; none where the page has none."""
    told = "as the run's tables and its sources tell; each leads to its page"
    return lay_out(facts.calendar, clock, told) if facts.calendar else None


def lay_out(days: Sequence[CalendarDay], clock: ReportClock, told: str) -> CalendarView:
    """Lay days out by months, and intervals that are longer by years.

    Args:
        days: one at least, in order.
        clock: of the flow.
        told: what they are told from.
    """
    counts = Counter(day.state for day in days)
    of_days = all(day.end - day.start <= LONGEST_DAY for day in days)
    waiting = [day for day in reversed(days) if day.state in WAITING]
    noun = "day" if of_days else "interval"
    return CalendarView(
        lead=f"{counted(len(days), noun)}, {told}.{_warned(days, noun)}",
        states=tuple((state, MARKS.get(state, ""), counts[state]) for state in WORST_FIRST if counts[state]),
        months=_months(days, clock, of_days=of_days),
        lines=tuple((day.state, clock.span(day.start, day.end), day.cause, day.page) for day in waiting[:MOST_TOLD]),
        left_out=max(0, len(waiting) - MOST_TOLD),
    )


def _warned(days: Sequence[CalendarDay], noun: str) -> str:
    warned = sum(day.warned > 0 and day.state not in MARKS for day in days)
    return f" A dot marks {counted(warned, noun)} of which something warns." if warned else ""


def _months(days: Sequence[CalendarDay], clock: ReportClock, *, of_days: bool) -> tuple[CalendarMonth, ...]:
    def title(day: CalendarDay) -> str:
        moment = clock.at(day.start)
        return f"{moment:%B} {moment.year:04d}" if of_days else f"{moment.year:04d}"

    return tuple(
        CalendarMonth(title=name, cells=tuple(_cells(list(group), clock, of_days=of_days)), weeks=of_days)
        for name, group in groupby(days, key=title)
    )


def _cells(days: Sequence[CalendarDay], clock: ReportClock, *, of_days: bool) -> list[CalendarCell]:
    cells = []
    for place, day in enumerate(days):
        moment = clock.at(day.start)
        cells.append(
            CalendarCell(
                label=f"{moment.day}" if of_days else f"{moment.day} {moment:%b}",
                state=day.state,
                mark=MARKS.get(day.state, WARNED if day.warned else ""),
                told=_told(day, clock),
                page=day.page,
                column=_weekday(moment) if of_days and not place else 0,
            )
        )
    return cells


def _weekday(moment: dt.datetime) -> int:
    return moment.isoweekday()


def _told(day: CalendarDay, clock: ReportClock) -> str:
    """Say what a cell says when it is pointed at, and to who cannot see it."""
    parts = [
        f"{clock.span(day.start, day.end)}: {day.state}",
        *([counted(day.intervals, "interval")] if day.intervals > 1 else []),
        *([] if day.rows is None else [counted(day.rows, "row")]),
        *([counted(day.warned, "warning")] if day.warned else []),
        *([day.cause] if day.cause else []),
    ]
    return ", ".join(parts)
