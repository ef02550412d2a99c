"""`pulseline plan` and `pulseline run --plan`: a backfill as a build, which runs what is not as it should be."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pipelines.engine.commits.entry import State
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.commits.readers import log_state
from pipelines.engine.landing.arrived import Standing
from pipelines.engine.landing.index import changed_sources
from pipelines.engine.landing.manifest import load_manifest
from pipelines.engine.sources.catalog import open_recorded
from pipelines.flows.feeds.spec import Clock
from pipelines.flows.grid import cut_at
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.parameters import parameters_of
from pipelines.jobs.environment.settings import MAIN_RUN, command, load_flow, publishing, read_settings
from pipelines.jobs.facts.planned import Planning, PlanState, RunPlan
from pipelines.jobs.runs.in_use import as_run, edited
from pipelines.jobs.text.moments import Moments
from pipelines.operators.plain_words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pipelines.engine.commits.history import Entry, LogState
    from pipelines.flows.model import Flow
    from pipelines.jobs.commands.run import RunRequest
    from pipelines.jobs.environment.settings import Settings
    from pipelines.jobs.facts.planned import PlannedInterval


@dataclass(frozen=True, kw_only=True)
class PlanRequest:
    """What `pulseline plan` was asked for."""

    flow: str
    start: str | None = None
    end: str | None = None
    run: str = MAIN_RUN
    params: Sequence[str] = ()
    as_json: bool = False


def show_plan(wanted: PlanRequest, echo: Callable[[str], None]) -> None:
    """Say where each interval stands, and what running would do and cost.

    Raises:
        WrongUse: no such flow, or one that lives by the real clock.
    """
    flow, plan = planned(wanted)
    moments = Moments(flow.timezone)
    if wanted.as_json:
        for each in plan.found:
            echo(json.dumps(_facts(each, moments), ensure_ascii=False))
        echo(
            json.dumps(
                {"flow": flow.name, "run": wanted.run, "left": len(plan.left), "seconds": round(plan.seconds, 1)}
            )
        )
        return
    for group in plan.alike:
        echo(_line(group, moments))
    echo(summary(plan))
    echo(f"next: {next_step(wanted, plan)}")


def next_step(wanted: PlanRequest, plan: RunPlan) -> str:
    """Spell the command to type next: a commit that waits for somebody's word comes before all that would run."""
    held = next((each.commit for each in plan.found if each.state is PlanState.HELD), None)
    if held is not None:
        return publishing(wanted.flow, held, run=wanted.run)
    if not plan.found:
        return shlex.join(["pulseline", "flows", "validate", wanted.flow]) + ", which says in which days there are rows"
    if plan.left:
        return command("run", wanted.flow, "--plan", *_bounds(wanted), run=wanted.run)
    return command("report", wanted.flow, run=wanted.run)


def run_plan(wanted: RunRequest, echo: Callable[[str], None]) -> None:
    """Run what a plan names, in order; what only followed is left alone where the carry comes out as it was.

    Raises:
        WrongUse: no such flow, or one that lives by the real clock.
        RejectedError: an interval may not be published; those after it were not begun.
    """
    from pipelines.jobs.commands.run import json_of, run_flow

    asked = PlanRequest(
        flow=wanted.flow, start=wanted.start or None, end=wanted.end or None, run=wanted.run, params=wanted.params
    )
    flow, plan = planned(asked)
    moments, root = Moments(flow.timezone), read_settings().root(flow.name, wanted.run)
    ran: list[Entry] = []
    spared = 0
    parts = list(_parts(plan.left))
    for part in parts:
        if part[0].follows and _stands(log_state(root), part[0]):
            spared += 1
            continue
        first, last = (moments.argument(tick) for tick in (part[0].span.start, part[-1].span.end))
        whole = len(part) == 1 and part[0].commit is not None
        own = replace(wanted, start=first, end=last, one_shot=wanted.one_shot or whole, as_json=False)
        ran += run_flow(own if part is parts[-1] else replace(own, hold=False), echo)
    as_they_were = len(plan.found) - len(plan.left)
    spared_text = f"; {counted(spared, 'interval')} stood, for the carry came out as before" if spared else ""
    echo(f"plan: {counted(len(ran), 'interval')} ran{spared_text}; {as_they_were} stayed as they were")
    if wanted.as_json:
        held = next((each.commit for each in ran if each.state is State.WRITTEN), None)
        report = command("report", wanted.flow, run=wanted.run)
        echo(json_of(wanted, flow, ran, report if held is None else publishing(wanted.flow, held, run=wanted.run)))


def planned(wanted: PlanRequest) -> tuple[Flow, RunPlan]:
    """Make the plan of a run.

    Raises:
        WrongUse: no such flow, or one that lives by the real clock.
        GridError: start or end lies off the flow's grid.
    """
    settings = read_settings()
    flow = load_flow(settings, wanted.flow, parameters_of(wanted.params))
    if flow.clock is Clock.WALL:
        raise WrongUse(f"{wanted.flow} lives by the real clock and has no days to plan: see its stream")
    root = settings.root(flow.name, wanted.run)
    state = log_state(root)
    flow = as_run(flow, state)
    start, end = (
        None if given is None else cut_at(flow, given, name)
        for given, name in ((wanted.start, "start"), (wanted.end, "end"))
    )
    changed = _changed(settings, flow, wanted.run)
    planning = Planning(
        flow=flow,
        state=state,
        changed=changed,
        edit=lambda entry: str(edited(state, entry.commit, flow)),
        start=start,
        end=end,
    )
    return flow, planning.plan()


def _changed(settings: Settings, flow: Flow, run: str) -> Callable[[Entry], tuple[str, ...]]:
    landing = landed_path(settings.root(flow.name, run))
    feeds = open_recorded(flow, settings.feeds_base(flow))

    def changed(entry: Entry) -> tuple[str, ...]:
        standing = Standing.LATER if entry.parent else Standing.FIRST
        landed = (load_manifest(landing, number) for number in entry.sequences)
        return tuple(dict.fromkeys(name for each in landed for name in changed_sources(each, flow, feeds, standing)))

    return changed


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


def _bounds(wanted: PlanRequest) -> list[str]:
    pairs = (("--start", wanted.start), ("--end", wanted.end))
    return [word for option, given in pairs if given for word in (option, given)]


def _line(group: Sequence[PlannedInterval], moments: Moments) -> str:
    span = moments.span(group[0].span.start, group[-1].span.end)
    cause = f"  {group[0].why}" if group[0].why else ""
    return f"{group[0].state:9}  {span}  ({counted(len(group), 'interval')}){cause}"


def summary(plan: RunPlan) -> str:
    """Say what running a plan would do, and cost."""
    if not plan.found:
        return "nothing is published, and the flow does not say what its sources hold: give --start and --end"
    if not plan.left:
        return f"{counted(len(plan.found), 'interval')} as they should be; nothing to run"
    cost = f", about {plan.seconds:.0f} s by what was measured" if plan.seconds else ""
    follow = sum(each.follows for each in plan.left)
    spared = f"; {follow} of them only where a carry comes out otherwise" if follow else ""
    return f"running would run {counted(len(plan.left), 'interval')} of {len(plan.found)}{cost}{spared}"


def _facts(each: PlannedInterval, moments: Moments) -> dict[str, object]:
    start, end = (moments.argument(tick) for tick in each.span)
    told = {"start": start, "end": end, "state": each.state.value, "cause": each.cause, "follows": each.follows}
    return told | {"commit": each.commit, "rows": each.rows}
