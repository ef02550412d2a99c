"""The plan of a run, held against what its sources hold now: for the command, Airflow's requests, and the page."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipelines.engine.commits.entry import CommitKind
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.commits.readers import log_state
from pipelines.engine.landing.arrived import Standing
from pipelines.engine.landing.index import changed_sources
from pipelines.engine.landing.manifest import load_manifest
from pipelines.engine.sources.catalog import open_recorded
from pipelines.flows.definition import flow_to_json
from pipelines.flows.feeds.spec import Clock
from pipelines.flows.grid import cut_at
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.parameters import parameter_words, parameters_of
from pipelines.jobs.environment.settings import MAIN_RUN, command, load_flow, publishing, read_settings
from pipelines.jobs.facts.planned import Planning, PlanState, RunPlan
from pipelines.jobs.runs.in_use import as_run, edited
from pipelines.operators.plain_words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipelines.engine.commits.history import Entry
    from pipelines.flows.model import Flow
    from pipelines.jobs.environment.settings import Settings

FOUND: dict[str, dict[int, tuple[tuple[object, ...], tuple[str, ...]]]] = {}
"""By landing and sequence, what it was held against and what was found: where a file changed, every interval is read
again, and a page is asked for again and again."""


@dataclass(frozen=True, kw_only=True)
class PlanRequest:
    """What a plan is asked of."""

    flow: str
    start: str | None = None
    end: str | None = None
    run: str = MAIN_RUN
    params: Sequence[str] = ()
    as_json: bool = False


def planned(wanted: PlanRequest) -> tuple[Flow, RunPlan]:
    """Make the plan of a run.

    Raises:
        WrongUse: no such flow, or one that lives by the real clock, or a run that streams.
        GridError: start or end lies off the flow's grid.
    """
    settings = read_settings()
    flow = load_flow(settings, wanted.flow, parameters_of(wanted.params))
    if flow.clock is Clock.WALL:
        raise WrongUse(f"{wanted.flow} lives by the real clock and has no days to plan: see its stream")
    root = settings.root(flow.name, wanted.run)
    state = log_state(root)
    flow = as_run(flow, state)
    if any(row.kind is CommitKind.EPOCH for row in state.published):
        see = f"run `{wanted.run}` of {flow.name} streams: see {command('status', wanted.flow, run=wanted.run)}"
        raise WrongUse(f"a plan is of intervals that `pulseline run` makes; {see}")
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
    found = FOUND.setdefault(str(landing), {})
    now = (json.dumps(flow_to_json(flow)), *(feed.fingerprint() for feed in feeds.values()))

    def looked(number: int, standing: Standing) -> tuple[str, ...]:
        landed = load_manifest(landing, number)
        stood = (landed.ledger.content, *((each.feed, each.content) for each in landed.sources.values()))
        before = found.get(number)
        if before is None or before[0] != (now, stood, standing):
            before = found[number] = ((now, stood, standing), changed_sources(landed, flow, feeds, standing))
        return before[1]

    def changed(entry: Entry) -> tuple[str, ...]:
        standing = Standing.LATER if entry.parent else Standing.FIRST
        return tuple(dict.fromkeys(name for number in entry.sequences for name in looked(number, standing)))

    return changed


def summary(plan: RunPlan) -> str:
    """Say what running a plan would do, and cost."""
    if not plan.found:
        return "nothing is published, and the flow does not say what its sources hold: give --start and --end"
    if not plan.left:
        return f"{counted(len(plan.found), 'interval')} as they should be; nothing to run"
    took = f"about {plan.seconds:.0f} s" if plan.seconds >= 1 else "less than a second"
    cost = f", {took} of work for the operators, by what was measured" if plan.seconds else ""
    follow = sum(each.follows for each in plan.left)
    spared = f"; {follow} of them only where a carry comes out otherwise" if follow else ""
    return f"running would run {counted(len(plan.left), 'interval')} of {len(plan.found)}{cost}{spared}"


def next_step(wanted: PlanRequest, plan: RunPlan) -> str:
    """Spell the command to type next: a commit that waits for somebody's word comes before all that would run."""
    held = next((each.commit for each in plan.found if each.state is PlanState.HELD), None)
    if held is not None:
        return publishing(wanted.flow, held, run=wanted.run)
    if not plan.found:
        return shlex.join(["pulseline", "flows", "validate", wanted.flow]) + ", which says in which days there are rows"
    if plan.left:
        given = parameter_words(parameters_of(wanted.params))
        return command("run", wanted.flow, "--plan", *_bounds(wanted), *given, run=wanted.run)
    return command("report", wanted.flow, run=wanted.run)


def _bounds(wanted: PlanRequest) -> list[str]:
    pairs = (("--start", wanted.start), ("--end", wanted.end))
    return [word for option, given in pairs if given for word in (option, given)]
