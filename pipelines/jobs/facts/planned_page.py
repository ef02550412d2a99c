"""A plan as its page shows it: the calendar, the spans that stand alike, and what running would do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from expectations.report.calendar import CalendarDay, CalendarState
from expectations.report.plan import PlanFacts, PlanSpan
from pipelines.engine.columnar.clock import wall_now
from pipelines.jobs.facts.overview import days_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipelines.flows.model import Flow
    from pipelines.jobs.facts.planned import RunPlan


def plan_facts(flow: Flow, run: str, plan: RunPlan, said: str, step: str) -> PlanFacts:
    """Give a plan as its page shows it.

    Args:
        flow: whose.
        run: its name.
        plan: where each interval stands.
        said: what running would do.
        step: the command to type next.
    """
    return PlanFacts(
        flow=flow.name,
        run=run,
        about=flow.about,
        timezone=flow.timezone,
        sentence=f"{said[:1].upper()}{said[1:]}.",
        command=step,
        spans=tuple(_spans(plan)),
        days=tuple(days_of(flow, list(_days(plan)))),
        left=len(plan.left),
        follow=sum(each.follows for each in plan.left),
        seconds=plan.seconds,
        made_at=wall_now(),
    )


def _spans(plan: RunPlan) -> Iterator[PlanSpan]:
    for group in plan.alike:
        state, start, end = CalendarState(group[0].state.value), group[0].span.start, group[-1].span.end
        yield PlanSpan(state=state, start=start, end=end, intervals=len(group), cause=group[0].why)


def _days(plan: RunPlan) -> Iterator[CalendarDay]:
    for each in plan.found:
        state, (start, end) = CalendarState(each.state.value), each.span
        yield CalendarDay(start=start, end=end, state=state, cause=each.why, rows=each.rows)
