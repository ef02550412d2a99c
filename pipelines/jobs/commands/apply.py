"""`pulseline apply`: take a changed flow into use at a commit boundary, and say what is kept, reset and stale.

The change is a commit of its own, without rows: it writes the carry anew, of the streams whose carry stands, in the
format of now. What is published stays as it is.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pipelines.engine.commits.carry_format import UPGRADES, UnknownCarryError
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.history import CommitKind, State
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.commits.plan import carry_format
from pipelines.engine.landing.arrived import is_declared
from pipelines.engine.landing.index import Landing
from pipelines.engine.landing.manifest import load_manifest
from pipelines.engine.sources.catalog import open_recorded
from pipelines.engine.sources.landed_schema import payloads_over
from pipelines.engine.tasks.carry_over import BEGUN_ANEW, LEFT_OPEN, Ground, adopt, left_behind
from pipelines.engine.tasks.stages import check_tables
from pipelines.errors import Exit
from pipelines.flows.changes import StreamFate
from pipelines.flows.definition import fingerprint_of
from pipelines.flows.feeds.spec import Clock
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.parameters import parameters_of
from pipelines.jobs.environment.settings import MAIN_RUN, load_flow, read_settings
from pipelines.jobs.facts.contracts import broken, consumers_of
from pipelines.jobs.facts.live import last_closed
from pipelines.jobs.facts.planning import UNREADABLE
from pipelines.jobs.runs.feeds import open_feeds
from pipelines.jobs.runs.fitting import fitting_payloads
from pipelines.jobs.runs.in_legs import require_one_piece
from pipelines.jobs.runs.in_use import as_run, begins_in_regions, edited
from pipelines.jobs.runs.known import open_run
from pipelines.jobs.runs.looked_up import missing_of
from pipelines.jobs.runs.replaced import keep_own_file, require_own_file
from pipelines.operators.merge import MergePolicy
from pipelines.operators.plain_words import counted as number_of
from pipelines.operators.registry import parts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from pipelines.engine.commits.driver import Driver
    from pipelines.engine.commits.entry import Entry
    from pipelines.engine.commits.history import LogState
    from pipelines.flows.changes import Change
    from pipelines.flows.model import Flow
    from pipelines.jobs.environment.settings import Settings
    from pipelines.jobs.runs.in_use import Edited
    from pipelines.jobs.runs.known import KnownRun

ENDED = frozenset({State.PUBLISHED, State.REJECTED})
"""How commits stand whose sequences nothing waits for."""
WORDS: Mapping[StreamFate, str] = {
    StreamFate.KEPT: "kept",
    StreamFate.FOLLOWS: "goes on",
    StreamFate.CHANGED: "goes on",
    StreamFate.RESET: "reset",
    StreamFate.NEW: "new",
    StreamFate.GONE: "gone",
}
TOLD: Mapping[StreamFate, str] = {
    StreamFate.KEPT: "its rows are those of before",
    StreamFate.FOLLOWS: "from what it remembers, with other rows",
    StreamFate.CHANGED: "from what it remembers, under its new settings",
    StreamFate.RESET: "what it remembers cannot stand, so it begins anew",
    StreamFate.NEW: "it begins with nothing",
    StreamFate.GONE: "its rows stay readable, where `pulseline tables` says, and none comes behind them",
}
STALE = frozenset({StreamFate.FOLLOWS, StreamFate.CHANGED, StreamFate.RESET})


@dataclass(frozen=True, kw_only=True)
class ApplyRequest:
    """What `pulseline apply` was asked for."""

    flow: str
    run: str = MAIN_RUN
    dry_run: bool = False
    params: Sequence[str] = ()
    as_json: bool = False


@dataclass(frozen=True, kw_only=True)
class ApplyPlan:
    """What taking a flow into use does."""

    ground: Entry
    found: Edited
    written: int
    """Format of the carry as it is."""
    waiting: Mapping[str, int]
    """Rows and open windows in each stream that does not go on from what it remembers; the ledger takes them."""
    binding: tuple[str, ...]
    """Streams of which readers have timers or CTIs that what comes now does not know of."""

    @property
    def needed(self) -> bool:
        """Say whether there is anything to do."""
        return self.found.differs or self.written != UPGRADES.current

    @property
    def stale(self) -> tuple[str, ...]:
        """Name the streams whose published rows the flow of now would not have given."""
        return tuple(each.stream for each in self.found.changes if each.fate in STALE)


def apply_flow(wanted: ApplyRequest, echo: Callable[[str], None]) -> int:
    """Take a flow into use as it is now, and say what that means for each stream.

    Returns:
        1 where it was only to be said what that means, and a consumer's contract would be broken; else 0.

    Raises:
        WrongUse: nothing is published, a commit waits to be finished under the flow of before, the streams do not go
            together with the columns of the sources, a consumer's contract would be broken, or a check of a package
            that is installed cannot be asked.
        UnknownCarryError: the carry is of a format that is not known here.
        SchemaChangedError: a stream has other columns than its table.
        LeaseHeldError: a driver is at work on this run.
    """
    settings, known = read_settings(), open_run(wanted.flow, wanted.run)
    # What is to be typed next has the parameters of now.
    known = replace(known, given={**known.given, **parameters_of(wanted.params)})
    flow = load_flow(settings, wanted.flow, known.given)
    require_one_piece(known.root, known.state, "apply", begins_in_regions(known.called, flow))
    flow = as_run(flow, known.state)
    missing = missing_of(flow)
    plan = plan_of(known, known.state, flow)
    done = None
    breaks: tuple[str, ...] = ()
    if plan.needed:
        schemas = _payloads(known.root, known.state, flow, plan, settings.feeds_base(flow))
        breaks = _breaks(settings, flow, schemas)
        if breaks and not wanted.dry_run:
            raise WrongUse(f"{breaks[0]}: agree on it with them and change that file, or leave the flow as it is")
        if not wanted.as_json:
            # Before what may refuse the flow altogether: whoever keeps a contract is to be asked either way.
            for line in breaks:
                echo(line)
        check_tables(known.root, flow, schemas)
        require_own_file(known.root, flow)
    if plan.needed and not wanted.dry_run:
        with open_driver(known.root, flow=known.name) as driver:
            plan = plan_of(known, driver.state(), flow)
            done = take_into_use(driver, flow, plan, settings.feeds_base(flow))
        keep_own_file(known.root, flow)
    for line in () if wanted.as_json else missing:
        echo(f"warning: {line}")
    if wanted.as_json:
        todo = {"next": _todo(known, keeps=not breaks)} if plan.needed and done is None else {}
        echo(json.dumps(facts_of(known, plan, done) | {"breaks": list(breaks)} | todo, ensure_ascii=False))
    else:
        for line in lines_of(known, plan, done, keeps=not breaks):
            echo(line)
    return Exit.CHECK_FAILED if breaks else Exit.FINE


def _breaks(settings: Settings, flow: Flow, schemas: Mapping[str, pa.Schema]) -> tuple[str, ...]:
    """Say which contracts of consumers the flow would break, as it is now.

    Raises:
        WrongUse: the streams do not go together with the columns of the sources.
    """
    known = fitting_payloads(flow, schemas)
    return tuple(line for each in consumers_of(settings, flow.name) for line in broken(each, flow, known))


def plan_of(known: KnownRun, state: LogState, flow: Flow) -> ApplyPlan:
    """Find what taking a flow into use would do.

    Raises:
        WrongUse: nothing is published, or a commit waits to be finished under the flow of before.
        UnknownCarryError: the carry is of a format that is not known here.
    """
    tip, pending = state.tip, state.pending
    if pending is not None and pending.kind is not CommitKind.ADOPT:
        finish = known.command("stream") if pending.kind is CommitKind.EPOCH else known.run_command(*pending.span)
        under = "this flow already" if pending.fingerprint == fingerprint_of(flow) else "the flow of before"
        raise WrongUse(
            f"a flow is taken into use between two commits; commit {pending.commit} is at {pending.state}, under "
            f"{under}: {finish} finishes it, {known.command('abandon', '--commit', str(pending.commit))} gives it up"
        )
    written = carry_format(state, tip.commit) if tip else None
    if tip is None or written is None:
        raise WrongUse(
            f"{known.nothing_yet()}: a run begins with the flow as it is, so there is nothing to take into use"
        )
    if not UPGRADES.oldest <= written <= UPGRADES.current:
        raise UnknownCarryError(tip.commit, written, UPGRADES.oldest, UPGRADES.current)
    found = edited(state, tip.commit, flow)
    stands = {each.stream for each in found.changes if each.fate.remembers}
    ground = _ground(known.root, state, tip, found.older)
    lost = Counter(left_behind(ground, stands, tip.commit)["stream"].to_pylist())
    forgets = [flow.streams[each.stream] for each in found.changes if _forgets(flow, each)]
    return ApplyPlan(
        ground=tip,
        found=found,
        written=written,
        waiting=dict(lost),
        binding=tuple(each.name for each in forgets if flow.promises(each.name) or flow.has_timers(each.name)),
    )


def _forgets(flow: Flow, change: Change) -> bool:
    """Say whether a stream goes on otherwise, and remembers nothing that would keep what it promised."""
    if change.fate is not StreamFate.CHANGED:
        return change.fate is StreamFate.RESET
    stream = flow.streams[change.stream]
    return not parts_of(stream.operator, stream.policy)


def take_into_use(driver: Driver, flow: Flow, plan: ApplyPlan, base: Path) -> Entry:
    """Publish the commit from which a run goes on with a changed flow.

    Args:
        driver: holds the lease.
        flow: as it is now.
        plan: what was found under this lease.
        base: folder that the feeds' paths are relative to.
    """
    pending, tip = driver.pending(), plan.ground
    if pending is not None:
        driver.abandon(pending.commit, why="the carry was not wholly taken over")
    state = driver.state()
    ground = replace(_ground(driver.root, state, tip, plan.found.older), latest=_latest(flow, plan))
    fates = {each.stream: each.fate for each in plan.found.changes}
    streams = [name for name in flow.streams if fates[name].remembers]
    detail = {"fates": {name: str(fate) for name, fate in fates.items()}, "format_before": plan.written}
    return adopt(driver, flow, ground, streams, _payloads(driver.root, state, flow, plan, base), detail)


def _ground(root: Path, state: LogState, tip: Entry, older: Flow | None) -> Ground:
    """Give the state whose carry is taken over."""
    return Ground(root=root, state=state, commit=tip.commit, end=tip.span.end, sequence=tip.upto, older=older)


def _latest(flow: Flow, plan: ApplyPlan) -> dict[str, int]:
    """Give, of each merge whose settings have changed, the instant past which no row may have led one of its ports."""
    changed = [flow.streams[each.stream] for each in plan.found.changes if each.fate is StreamFate.CHANGED]
    bounds = {stream.name: stream.policy.max_ahead for stream in changed if isinstance(stream.policy, MergePolicy)}
    return {name: plan.ground.span.end + bound for name, bound in bounds.items() if bound is not None}


def _payloads(root: Path, state: LogState, flow: Flow, plan: ApplyPlan, base: Path) -> dict[str, pa.Schema]:
    """Give the payload of each source, as it lands from here on.

    Of a recorded one, and of one that is new or changed, its feed says it; of another one what it declares, or landed.

    Raises:
        WrongUse: a source is new or changed, and what waits to be published landed before that.
        LandingError: a feed is missing, or is not what the flow says of it, and the flow says something else now.
    """
    landing, tip = landed_path(root), plan.ground
    # A day that was run again has a later sequence than the newest.
    worked_on = {number for entry in state.commits.values() if entry.state in ENDED for number in entry.sequences}
    waiting = [number for number in range(tip.upto + 1, last_closed(landing, tip.upto) + 1) if number not in worked_on]
    last = load_manifest(landing, tip.upto)
    landed = {name: each.declared for name, each in last.sources.items()}
    standing = {name: each for name, each in flow.sources.items() if is_declared(each, landed.get(name))}
    behind = [load_manifest(landing, number) for number in waiting]
    found = payloads_over(replace(flow, sources=standing), [*behind, last])
    missing = [name for name in flow.sources if name not in found]
    if missing and waiting:
        raise WrongUse(
            f"what landed must have every source as the flow says; {_waits(len(waiting))} to be published that "
            f"landed before {', '.join(missing)} changed: publish them with the flow of before first"
        )
    if flow.clock is Clock.RECORDED:
        return _as_recorded(flow, plan, base, found)
    if missing:
        feeds = open_feeds(flow, base, root, Landing(landing))
        found |= {name: feeds[name].schema for name in missing}
    return found


def _as_recorded(flow: Flow, plan: ApplyPlan, base: Path, landed: dict[str, pa.Schema]) -> dict[str, pa.Schema]:
    """Give the payload of each recorded source as the next run lands it: its types may be others than what landed has.

    Where the feeds cannot be read, and the flow says of them what it said before, what landed stands for them.

    Raises:
        LandingError: a feed is missing, or is not what the flow says of it, and the flow says something else now.
    """
    try:
        return {name: feed.schema for name, feed in open_recorded(flow, base).items()}
    except UNREADABLE:
        if landed.keys() != flow.sources.keys() or any(change.fed for change in plan.found.changes):
            raise
        return landed


def _waits(sequences: int) -> str:
    return f"{number_of(sequences, 'sequence')} {'waits' if sequences == 1 else 'wait'}"


def lines_of(known: KnownRun, plan: ApplyPlan, done: Entry | None, *, keeps: bool = True) -> list[str]:
    """Say in words what taking a flow into use does, or did."""
    text = known.moments.text(plan.ground.span.end)
    if not plan.needed:
        return [f"run `{known.run}` of {known.name} is made by this flow already; nothing to do"]
    lines = [f"run `{known.run}` of {known.name}, behind commit {plan.ground.commit} ({text}):"]
    lines += [f"{_line(each)}{_lost(plan, each.stream)}" for each in plan.found.changes]
    if plan.found.newer_code:
        lines.append("an operator has another version than when the run was made; its carry stands")
    if plan.written != UPGRADES.current:
        lines.append(f"the carry is written anew: format {plan.written} → {UPGRADES.current}")
    if plan.stale:
        made = f"rows that {', '.join(plan.stale)} published up to {text} were made by the flow of before, and stay"
        lines.append(f"stale: {made}; what they would be now: {known.command('replay')}")
    if plan.binding:
        told = f"timers and CTIs that {', '.join(plan.binding)} published stand too"
        broken = f"{known.command('check')} says so"
        if not _is_streamed(known, plan):
            broken = f"their day is held back, and {known.command('run', '--plan')} makes the days before anew as well"
        lines.append(f"promised: {told}; where rows from here on break them, {broken}")
    if done is None:
        lines.append(f"nothing was done; next: {_todo(known, keeps=keeps)}")
        return lines
    return [*lines, f"commit {done.commit} takes it into use; next: {_next(known, plan)}"]


def _line(change: Change) -> str:
    why = f" ({', '.join(change.why)})" if change.why else ""
    return f"  {WORDS[change.fate]:8}{change.stream}{why}: {TOLD[change.fate]}"


def _lost(plan: ApplyPlan, name: str) -> str:
    """Say what of a stream is lost to the run, if anything is."""
    if name not in plan.waiting or plan.found.older is None:
        return ""
    stream = plan.found.older.streams[name]
    if stream.accountable:
        return f"; {number_of(plan.waiting[name], 'row')} that waited in it: to the ledger, as `{BEGUN_ANEW}`"
    # Windows, or rows that could still be paired.
    return f"; {plan.waiting[name]:,} that stood open in it: noted in the ledger, as `{LEFT_OPEN}`"


def _is_streamed(known: KnownRun, plan: ApplyPlan) -> bool:
    return plan.ground.kind is CommitKind.EPOCH or known.state.streams


def _todo(known: KnownRun, *, keeps: bool) -> str:
    return known.command("apply") if keeps else "agree with who keeps the contract, for apply does not break it"


def _next(known: KnownRun, plan: ApplyPlan) -> str:
    if _is_streamed(known, plan):
        return known.command("stream")
    if plan.binding:
        return known.command("run", "--plan")
    from pipelines.flows.grid import cuts_between

    end = plan.ground.span.end
    return known.run_command(end, cuts_between(known.grid, end, end + 1)[-1])


def facts_of(known: KnownRun, plan: ApplyPlan, done: Entry | None) -> dict[str, Any]:
    """Give what taking a flow into use does, or did, as plain values."""
    return {
        "flow": known.name,
        "run": known.run,
        "needed": plan.needed,
        "commit": done.commit if done else None,
        "behind": plan.ground.commit,
        "streams": {each.stream: {"fate": str(each.fate), "why": list(each.why)} for each in plan.found.changes},
        "waiting": dict(plan.waiting),
        "stale": list(plan.stale),
        "newer_code": plan.found.newer_code,
        "format": {"written": plan.written, "current": UPGRADES.current},
        "next": _next(known, plan),
    }
