"""`pulseline plan` and `pulseline run --plan`: a backfill as a build, which runs what is not as it should be."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from pipelines.engine.commits.entry import State
from pipelines.engine.commits.readers import log_state
from pipelines.jobs.environment.errors import JobError
from pipelines.jobs.environment.exits import named
from pipelines.jobs.environment.settings import command, publishing, read_settings
from pipelines.jobs.facts.home import red_lines, red_or_lost
from pipelines.jobs.facts.planning import PlanRequest, next_step, planned, summary
from pipelines.jobs.facts.status import damage_of
from pipelines.jobs.runs.known import open_run
from pipelines.jobs.text.moments import Moments
from pipelines.operators.plain_words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pipelines.engine.commits.history import Entry, LogState
    from pipelines.jobs.commands.run import RunRequest
    from pipelines.jobs.facts.planned import PlannedInterval


def show_plan(wanted: PlanRequest, echo: Callable[[str], None]) -> None:
    """Say where each interval stands, and what running would do and cost.

    Raises:
        WrongUse: no such flow, or one that lives by the real clock.
    """
    flow, plan = planned(wanted)
    moments, known = Moments(flow.timezone), open_run(wanted.flow, wanted.run)
    red, lost = red_or_lost(known)
    damaged = damage_of(known) or lost
    if wanted.as_json:
        for each in plan.found:
            echo(json.dumps(_facts(each, moments), ensure_ascii=False))
        facts = {"flow": flow.name, "run": wanted.run, "left": len(plan.left), "seconds": round(plan.seconds, 1)}
        echo(json.dumps(facts | {"damaged": damaged, "red": red_lines(red)}, ensure_ascii=False))
        return
    for group in plan.alike:
        echo(_line(group, moments))
    echo(f"damaged: {named(damaged, wanted.flow, wanted.run)}" if damaged else summary(plan, is_red=bool(red)))
    for line in red_lines(red):
        echo(f"red: {line}")
    looks = next((need.command for need in red if not plan.left and need.command), "")
    echo(f"next: {known.command('doctor') if damaged else looks or next_step(wanted, plan)}")


def run_plan(wanted: RunRequest, echo: Callable[[str], None]) -> None:
    """Run what a plan names, in order; what only followed is left alone where the carry comes out as it was.

    Raises:
        WrongUse: no such flow, or one that lives by the real clock.
        RejectedError: an interval may not be published; those after it were not begun.
        JobError: rows that are published are not there, or not the run's own.
    """
    from pipelines.jobs.commands.run import json_of, run_flow

    asked = PlanRequest(
        flow=wanted.flow, start=wanted.start or None, end=wanted.end or None, run=wanted.run, params=wanted.params
    )
    flow, plan = planned(asked)
    if damaged := damage_of(open_run(wanted.flow, wanted.run)):
        raise JobError(f"what is published must be in the tables and the log of the run: {damaged}")
    if not plan.found:
        echo(summary(plan, is_red=False))
        echo(f"next: {next_step(asked, plan)}")
    moments, root = Moments(flow.timezone), read_settings().root(flow.name, wanted.run)
    ran: list[Entry] = []
    done, spared = 0, 0
    parts = list(_parts(plan.left))
    for part in parts:
        if part[0].follows and _stands(log_state(root), part[0]):
            spared += 1
            continue
        first, last = (moments.argument(tick) for tick in (part[0].span.start, part[-1].span.end))
        whole = len(part) == 1 and part[0].commit is not None
        own = replace(wanted, start=first, end=last, one_shot=wanted.one_shot or whole, as_json=False)
        ran += run_flow(own if part is parts[-1] else replace(own, hold=False), echo)
        done += len(part)
    as_they_were = len(plan.found) - len(plan.left)
    spared_text = f"; {counted(spared, 'interval')} stood, for the carry came out as before" if spared else ""
    echo(f"plan: {counted(done, 'interval')} ran{spared_text}; {as_they_were} stayed as they were")
    if wanted.as_json:
        held = next((each.commit for each in ran if each.state is State.WRITTEN), None)
        report = command("report", wanted.flow, run=wanted.run)
        echo(json_of(wanted, flow, ran, report if held is None else publishing(wanted.flow, held, run=wanted.run)))


def _stands(state: LogState, interval: PlannedInterval) -> bool:
    """Say whether an interval that only followed is as it should be after all."""
    entry = state.at(interval.span)
    return entry is not None and entry not in state.stale


def _parts(left: Sequence[PlannedInterval]) -> Iterator[list[PlannedInterval]]:
    """Give what is run at once: adjacent intervals that nobody ran yet, and each one that stands already alone."""
    part: list[PlannedInterval] = []
    for each in left:
        new = each.commit is None
        if part and not (new and part[-1].commit is None and part[-1].span.end == each.span.start):
            yield part
            part = []
        part.append(each)
    if part:
        yield part


def _line(group: Sequence[PlannedInterval], moments: Moments) -> str:
    span = moments.span(group[0].span.start, group[-1].span.end)
    cause = f"  {group[0].why}" if group[0].why else ""
    return f"{group[0].state:9}  {span}  ({counted(len(group), 'interval')}){cause}"


def _facts(each: PlannedInterval, moments: Moments) -> dict[str, object]:
    start, end = (moments.argument(tick) for tick in each.span)
    told = {"start": start, "end": end, "state": each.state.value, "cause": each.cause, "follows": each.follows}
    return told | {"commit": each.commit, "rows": each.rows}
