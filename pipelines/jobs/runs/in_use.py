"""Which flow a run is made by, and what a changed file would change: a flow never changes under a run unsaid."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pipelines.engine.commits.plan import definition_of, planned, zones_version
from pipelines.flows.changes import Change, StreamFate, as_it_was, changes
from pipelines.flows.definition import fingerprint_of, flow_from_json
from pipelines.flows.feeds.spec import Clock
from pipelines.flows.zones import VERSION
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.parameters import parameter_words
from pipelines.jobs.environment.settings import called, command, read_settings
from pipelines.jobs.runs.known import is_replayed

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipelines.engine.commits.history import LogState
    from pipelines.flows.model import Flow
    from pipelines.jobs.runs.known import KnownRun


MOST_TOLD = 3
"""Streams of which a glance says what has changed."""


@dataclass(frozen=True, kw_only=True)
class Edited:
    """What a flow is, held against the one that a run was made by."""

    older: Flow | None
    """That one; None where nothing was made yet."""
    changes: tuple[Change, ...]
    newer_code: bool
    """Whether an operator has another version than when the run was made."""

    @property
    def differs(self) -> bool:
        """Say whether the run would go on with other rows."""
        return self.newer_code or any(each.fate is not StreamFate.KEPT for each in self.changes)

    def __str__(self) -> str:
        """Say in a few words what has changed."""
        return "; ".join(self.told)

    @property
    def told(self) -> list[str]:
        """Say what has changed, stream by stream, then sources and code."""
        told = [str(each) if each.why else f"{each.stream} is {each.fate}" for each in self.changes if _is_own(each)]
        fed = dict.fromkeys(why for each in self.changes if not _is_own(each) for why in each.fed)
        return [*told, *fed, *(["an operator has another version"] if self.newer_code else [])]


def _is_own(change: Change) -> bool:
    return change.fate not in {StreamFate.KEPT, StreamFate.FOLLOWS}


def as_run(flow: Flow, state: LogState) -> Flow:
    """Give a flow as a run goes on with it: a file that has not changed means what it meant when the run began.

    Where it leaves the number of buckets to its runs, this one's stands.

    Args:
        flow: as its file has it now.
        state: the log of the run.
    """
    pending = state.pending
    row = pending if pending is not None and pending.plan else planned(state, state.tip.commit) if state.tip else None
    if row is None:
        return flow
    made = flow_from_json(definition_of(row))
    return as_it_was(made, replace(flow, buckets=flow.buckets or made.buckets))


def edited(state: LogState, commit: int, flow: Flow) -> Edited:
    """Hold a flow against the one that the carry at a commit was made by.

    Args:
        state: the log.
        commit: from which the run goes on; 0 for its beginning, where any flow may begin.
        flow: as it is now.
    """
    row = planned(state, commit)
    if row is None:
        return Edited(older=None, changes=(), newer_code=False)
    older = flow_from_json(definition_of(row))
    return Edited(older=older, changes=changes(older, flow), newer_code=row.fingerprint != fingerprint_of(older))


def unapplied(known: KnownRun) -> str | None:
    """Say in a few words what the flow's file has otherwise than the run goes on with.

    Returns:
        None where it is the same, where it cannot be read (other commands say that), and where nothing goes on.
    """
    tip = known.state.tip
    if tip is None or is_replayed(known.root) or known.flow_now is None:
        return None
    found = edited(known.state, tip.commit, as_run(known.flow_now, known.state))
    return "; ".join([*found.told[:MOST_TOLD], *(["…"] if found.told[MOST_TOLD:] else [])]) if found.differs else None


def going_on(known: KnownRun, edited: str | None, command: str, *, in_legs: bool) -> str:
    """Say how a run goes on: where the flow's file has changed, that comes before the command that goes on.

    Args:
        known: the run.
        edited: what `unapplied` says of it.
        command: which goes on with the flow that the run was made by.
        in_legs: whether it is in legs, which take no other flow.
    """
    if edited is None:
        return command
    return f"put the flow's file back as it was, then {command}" if in_legs else known.command("apply", "--dry-run")


def begins_in_regions(own: str, flow: Flow) -> str:
    """Say which command begins a run in regions with a flow as it is; of a recorded feed it needs a range."""
    span = () if flow.clock is Clock.WALL else ("--start", "START", "--end", "END")
    return f"{command('stream', own, *span, run='NAME')} begins a run in regions with the flow as it is"


def require_in_use(
    state: LogState, commit: int, flow: Flow, run: str, tell: Callable[[str], object] = lambda _: None
) -> None:
    """See that a run goes on with the flow that it was made by.

    Buckets, the grid and what a flow says about itself may change: no row depends on them. Timezones may too, for
    countries change them; it is noted.

    Args:
        state: the log.
        commit: from which the run goes on.
        flow: as it is now.
        run: name of the run.
        tell: prints a note; nobody reads it unless given.

    Raises:
        WrongUse: the flow or an operator has changed since.
    """
    found = edited(state, commit, flow)
    if found.differs:
        own = called(read_settings(), flow)
        remedy = (
            f"{command('apply', own, *parameter_words(flow.given), run=run)} takes it into use and says what that "
            f"means; or put it back as it was{', parameters included' if flow.given else ''}; or, as where a "
            "column has another type, which no run takes up, have a run of its own (--run NAME)"
        )
        if flow.legs:
            remedy = f"put it back as it was; or {begins_in_regions(own, flow)}"
        raise WrongUse(
            f"run `{run}` goes on with the flow that it was made by, and {flow.name} has changed since ({found}): "
            f"{remedy}"
        )
    row = planned(state, commit)
    before = None if row is None else zones_version(row)
    if before not in {None, VERSION}:
        tell(
            f"note: run `{run}` was made with the timezones of tzdata {before} and goes on with those of {VERSION}: "
            "local times of a zone that changed between them are other instants from here on"
        )
