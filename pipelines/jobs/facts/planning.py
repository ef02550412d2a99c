"""The plan of a run, held against what its sources hold now: for the command, Airflow's requests, and the page."""

from __future__ import annotations

import json
import shlex
from contextlib import nullcontext
from dataclasses import dataclass, replace
from textwrap import shorten
from typing import TYPE_CHECKING

import pyarrow as pa

from pipelines.engine.commits.paths import landed_path
from pipelines.engine.commits.readers import log_state
from pipelines.engine.landing.arrived import Standing
from pipelines.engine.landing.errors import LandingError, ReferenceBrokenError, SequenceBrokenError
from pipelines.engine.landing.index import changed_sources, must_be_read
from pipelines.engine.landing.manifest import load_manifest
from pipelines.engine.sources.catalog import open_recorded
from pipelines.flows.definition import flow_from_json, flow_to_json
from pipelines.flows.errors import GridError
from pipelines.flows.feeds.spec import Clock
from pipelines.flows.grid import cut_at
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.parameters import parameter_words, parameters_of
from pipelines.jobs.environment.settings import MAIN_RUN, command, load_flow, publishing, read_settings
from pipelines.jobs.facts.planned import Planning, PlanState, RunPlan
from pipelines.jobs.runs.in_use import as_run, edited
from pipelines.jobs.runs.known import is_replayed
from pipelines.jobs.runs.replaced import files_gone
from pipelines.operators.compiled import as_written
from pipelines.operators.plain_words import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.engine.commits.history import Entry, LogState
    from pipelines.engine.landing.sequence import LandedSequence
    from pipelines.flows.model import Flow
    from pipelines.jobs.environment.settings import Settings
    from pipelines.jobs.runs.known import KnownRun

FOUND: dict[str, dict[int, tuple[tuple[object, ...], tuple[str, ...]]]] = {}
"""By landing and sequence, what it was held against and what was found: where a file changed, every interval is read
again, and a page is asked for again and again."""
GLANCE_BYTES = 32 << 20
"""Bytes of files that changed, counted once an interval, which `plan_of` reads at most; `planned` reads all."""
FEW_BYTES = 500_000
"""Of those, what is hashed as functions are written: loading their machine code takes longer."""
UNREADABLE = (LandingError, OSError, pa.ArrowException)
MOST_SAID = 200
"""Characters of why sources cannot be read."""


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
    if state.streams:
        see = f"run `{wanted.run}` of {flow.name} streams: see {command('status', wanted.flow, run=wanted.run)}"
        raise WrongUse(f"a plan is of intervals that `pulseline run` makes; {see}")
    start, end = (
        None if given is None else cut_at(flow, given, name)
        for given, name in ((wanted.start, "start"), (wanted.end, "end"))
    )
    held = _Held(settings, flow, wanted.run)
    return flow, replace(_planning(flow, state, held), start=start, end=end).plan()


def plan_of(known: KnownRun) -> RunPlan:
    """Say where each interval of a run stands, as `planned` does, for whoever tells of the run as a whole.

    Where files that changed are large, or many intervals landed of them, they are not read; the plan then says so. Of a
    run that streams, or that a replay made, the log alone is asked: nothing of it is run again by intervals.

    Args:
        known: the run.
    """
    state, made = known.state, flow_from_json(known.definition)
    if not state.published or state.streams or is_replayed(known.root):
        return Planning(flow=made, state=state, changed=_nothing, edit=lambda _: "", gone=_nothing).plan()
    flow = as_run(known.flow_now or made, state)
    try:
        return _glanced(known, flow)
    except UNREADABLE as error:
        said = shorten(str(error), MOST_SAID, placeholder=" …")
        is_ours = isinstance(error, SequenceBrokenError) and not isinstance(error, ReferenceBrokenError)
        why = f"what {'landed' if is_ours else 'its sources hold now'} cannot be read ({said})"
        damage = said if is_ours else ""
        return replace(_planning(flow, state).plan(), unread=why, is_unreadable=True, damage=damage)
    except GridError:
        why = "the grid of the flow's file is not that of the run"
        return replace(_planning(made, state).plan(), unread=why)


def _glanced(known: KnownRun, flow: Flow) -> RunPlan:
    """Make the plan of a run; files that changed are read where they are small."""
    held = _Held(read_settings(), flow, known.run)
    planning = _planning(flow, known.state, held)
    changed = sum(map(held.must_be_read, planning.published))
    to_read = changed * held.size()
    if to_read <= GLANCE_BYTES:
        with as_written() if to_read <= FEW_BYTES else nullcontext():
            return planning.plan()
    why = f"files of its sources changed since, and were not read again for {counted(changed, 'interval')}"
    return replace(_planning(flow, known.state).plan(), unread=why)


def _planning(flow: Flow, state: LogState, held: _Held | None = None) -> Planning:
    """Give what a plan is made from; without what its sources hold they are taken to hold what landed."""
    return Planning(
        flow=flow,
        state=state,
        changed=held.changed if held else _nothing,
        edit=lambda entry: str(edited(state, entry.commit, flow)),
        gone=held.gone if held else _nothing,
    )


def _nothing(_: Entry) -> tuple[str, ...]:
    return ()


class _Held:
    """What the sources of a run hold now, against what landed."""

    def __init__(self, settings: Settings, flow: Flow, run: str) -> None:
        """Open the sources.

        Raises:
            LandingError: a feed is missing, or does not have what its source says of it, or is no recording.
        """
        self._landing, self._flow = landed_path(settings.root(flow.name, run)), flow
        self._base = settings.feeds_base(flow)
        self._feeds = open_recorded(flow, self._base)
        self._found = FOUND.setdefault(str(self._landing), {})
        self._now = (json.dumps(flow_to_json(flow)), *(feed.fingerprint() for feed in self._feeds.values()))

    def size(self) -> int:
        """Give the bytes of the sources."""
        return sum(feed.size() or 0 for feed in self._feeds.values())

    def changed(self, entry: Entry) -> tuple[str, ...]:
        """Name the sources of which a published interval would land with other rows now."""
        standing = _standing(entry)
        return tuple(dict.fromkeys(name for number in entry.sequences for name in self._looked(number, standing)))

    def gone(self, entry: Entry) -> tuple[str, ...]:
        """Name the files that a published interval landed from and that are no longer there."""
        landed = (load_manifest(self._landing, number) for number in entry.sequences)
        return tuple(dict.fromkeys(path for each in landed for path in files_gone(each, self._base)))

    def must_be_read(self, entry: Entry) -> bool:
        """Say whether the sources have to be read for that."""
        standing = _standing(entry)
        landed = {number: load_manifest(self._landing, number) for number in entry.sequences}
        return any(
            self._remembered(number, each, standing) is None and must_be_read(each, self._flow, self._feeds, standing)
            for number, each in landed.items()
        )

    def _looked(self, number: int, standing: Standing) -> tuple[str, ...]:
        landed = load_manifest(self._landing, number)
        before = self._remembered(number, landed, standing)
        if before is not None:
            return before
        found = changed_sources(landed, self._flow, self._feeds, standing)
        self._found[number] = (self._key(landed, standing), found)
        return found

    def _remembered(self, number: int, landed: LandedSequence, standing: Standing) -> tuple[str, ...] | None:
        key, found = self._found.get(number, ((), None))
        return found if key == self._key(landed, standing) else None

    def _key(self, landed: LandedSequence, standing: Standing) -> tuple[object, ...]:
        stood = (landed.ledger.content, *((each.feed, each.content) for each in landed.sources.values()))
        return self._now, stood, standing


def _standing(entry: Entry) -> Standing:
    return Standing.LATER if entry.parent else Standing.FIRST


def summary(plan: RunPlan, *, is_red: bool = False) -> str:
    """Say what running a plan would do, and cost.

    Args:
        plan: all of it.
        is_red: whether days that would come out as they stand do not hold.
    """
    if not plan.found:
        return "nothing is published, and the flow does not say what its sources hold: give --start and --end"
    if not plan.left:
        counts, many = counted(len(plan.found), "interval"), bool(plan.found[1:])
        are = f"as {'they' if many else 'it'} should be"
        stand = f"would come out as {'they stand' if many else 'it stands'}, which does not hold"
        return f"{counts} {stand if is_red else are}; nothing to run"
    took = f"about {plan.seconds:.0f} s" if plan.seconds >= 1 else "less than a second"
    cost = f", {took} of work for the operators, by what was measured" if plan.seconds else ""
    follow = sum(each.follows for each in plan.left)
    spared = f"; {follow} of them only where a carry comes out otherwise" if follow else ""
    return f"running would run {counted(len(plan.left), 'interval')} of {len(plan.found)}{cost}{spared}"


def next_step(wanted: PlanRequest, plan: RunPlan) -> str:
    """Spell the command to type next: a commit that waits for somebody's word comes before all that would run.

    A run that was rejected is looked at before it is made again: that says how somebody can decide of it.
    """
    held = next((each.commit for each in plan.found if each.state is PlanState.HELD), None)
    if held is not None:
        return publishing(wanted.flow, held, run=wanted.run)
    rejected = next((each.rejected for each in plan.left if each.rejected is not None), None)
    if rejected is not None:
        check, again = (
            command(*words, run=wanted.run)
            for words in (("check", wanted.flow, "--commit", str(rejected)), _running(wanted))
        )
        return f"{check}, which shows what broke it and how to decide of it; once that is put right, {again}"
    if not plan.found:
        return shlex.join(["pulseline", "flows", "validate", wanted.flow]) + ", which says in which days there are rows"
    if plan.left:
        return command(*_running(wanted), run=wanted.run)
    return command("report", wanted.flow, run=wanted.run)


def _running(wanted: PlanRequest) -> tuple[str, ...]:
    return ("run", wanted.flow, "--plan", *_bounds(wanted), *parameter_words(parameters_of(wanted.params)))


def _bounds(wanted: PlanRequest) -> list[str]:
    pairs = (("--start", wanted.start), ("--end", wanted.end))
    return [word for option, given in pairs if given for word in (option, given)]
