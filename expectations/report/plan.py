"""The page of a plan: a calendar of how each day stands, why, and what running what is left would do and cost.

`render_plan(facts)` is a pure function, as `render` is: the page loads nothing and runs no script.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from expectations.report import words
from expectations.report.calendar import WAITING, CalendarState, lay_out
from expectations.report.page import Figure, environment
from expectations.report.verdict import Tone
from expectations.report.words import ReportClock, count

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from expectations.report.calendar import CalendarDay
    from expectations.report.page import Around

TONES = {CalendarState.RED: Tone.BAD, CalendarState.PUBLISHED: Tone.GOOD}
"""Of a state; of all others there is something to do."""


@dataclass(frozen=True, kw_only=True)
class PlanSpan:
    """Intervals that stand alike for the same cause."""

    state: CalendarState
    start: int
    """Of the first, in ticks."""
    end: int
    """Of the last."""
    intervals: int
    cause: str = ""


@dataclass(frozen=True, kw_only=True)
class PlanFacts:
    """All that the page of a plan says."""

    flow: str
    run: str
    timezone: str
    sentence: str
    """What running would do, in the words of the command."""
    command: str
    """What to type next."""
    about: str = ""
    spans: tuple[PlanSpan, ...] = ()
    """All intervals, in order, those together that follow one another and stand alike."""
    days: tuple[CalendarDay, ...] = ()
    """The calendar: a cell a day, or an interval where those are longer."""
    left: int = 0
    """Intervals that running would run."""
    follow: int = 0
    """Of these, those that run only where a carry comes out otherwise."""
    seconds: float = 0.0
    """That running would take, by what was measured; 0 where nothing was."""
    made_at: int | None = None


@dataclass(frozen=True, kw_only=True)
class PlanForm:
    """The button that runs what is left, for somebody who may."""

    action: str
    """Where it is sent to, with the first day as `start` and the day after the last one as `end`."""
    runs: str
    """What it makes a run of."""
    paused: bool = False
    """Whether that run would have to wait until somebody lets it go on."""


def render_plan(facts: PlanFacts, around: Around | None = None, form: PlanForm | None = None) -> str:
    """Write the page of a plan.

    Args:
        facts: what the jobs read in the tables of the run and the files of its sources.
        around: where the page of all flows and that of the flow's run are; None for a page that stands alone.
        form: the button; None for who may not press it, and for a page that stands alone.

    Returns:
        A complete HTML document that loads nothing.
    """
    clock = ReportClock(facts.timezone)
    return (
        environment()
        .get_template("plan.html")
        .render(
            facts=facts,
            around=around,
            form=form if facts.left else None,
            bounds=_bounds(facts, clock),
            tone=_tone(facts),
            tones=TONES,
            open=Tone.OPEN,
            figures=_figures(facts),
            view=lay_out(facts.days, clock, "held against what its sources hold now") if facts.days else None,
            causes=causes(facts.spans),
            clock=clock,
            words=words,
        )
    )


def _bounds(facts: PlanFacts, clock: ReportClock) -> tuple[str, str, str]:
    """Give what the button offers: the first day, the day after the last one, and what is run between them.

    What nobody ran yet may be a year, so it is offered only where nothing else is left.
    """
    waiting = [each for each in facts.spans if each.state in WAITING]
    spans = waiting or [each for each in facts.spans if each.state is CalendarState.PLANNED]
    if not spans:
        return "", "", ""
    after = clock.at(spans[-1].end - 1).date() + dt.timedelta(days=1)
    return f"{clock.at(spans[0].start):%Y-%m-%d}", after.isoformat(), any_of({each.state for each in spans})


def any_of(states: Collection[CalendarState]) -> str:
    """Join the states that occur as a sentence does.

    >>> any_of({CalendarState.STALE, CalendarState.MISSING, CalendarState.RED})
    'red, missing or stale'
    """
    *others, last = (state.value for state in CalendarState if state in states)
    return " or ".join(filter(None, [", ".join(others), last]))


def causes(spans: Sequence[PlanSpan]) -> tuple[PlanSpan, ...]:
    """Give each cause once: from where to where it reaches, and how many intervals it is of."""
    found = [each for each in spans if each.state in WAITING]
    many: Counter[tuple[CalendarState, str]] = Counter()
    for each in found:
        many[each.state, each.cause] += each.intervals
    first = {(each.state, each.cause): each.start for each in reversed(found)}
    last = {(each.state, each.cause): each.end for each in found}
    return tuple(
        PlanSpan(state=state, cause=cause, start=first[state, cause], end=last[state, cause], intervals=number)
        for (state, cause), number in many.items()
    )


def _tone(facts: PlanFacts) -> Tone:
    if any(each.state is CalendarState.RED for each in facts.spans):
        return Tone.BAD
    return Tone.GOOD if facts.spans and not facts.left else Tone.OPEN


def _figures(facts: PlanFacts) -> tuple[Figure, ...]:
    whole = sum(each.intervals for each in facts.spans)
    figures = [Figure(value=f"{count(facts.left)} of {count(whole)}", label="intervals to run")]
    if facts.follow:
        figures.append(Figure(value=count(facts.follow), label="only where a carry comes out otherwise"))
    if facts.seconds:
        figures.append(
            Figure(value=words.seconds(facts.seconds), label="of work for the operators, by what was measured")
        )
    return tuple(figures)
