"""`pulseline reset`: take a run back to a consistent state; whoever streams next plays again from there.

A published commit is a consistent state. The reset is one row of `commits`, so readers see the earlier state at once
and whole; the landed sequences stay, and are played again in their order under new commit numbers.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pipelines.engine.commits.history import CommitKind
from pipelines.engine.commits.lease import Claim
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.commits.resets import way_back
from pipelines.engine.landing.errors import LandingError
from pipelines.engine.landing.manifest import is_closed, load_manifest, read_sequence
from pipelines.flows.legs import MAIN
from pipelines.jobs.commands.reset_legs import commits_back, leg_facts, leg_lines, legs_back, take_back
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.facts.history import require_kept
from pipelines.jobs.facts.live import READING, last_closed
from pipelines.jobs.facts.states import asked_state
from pipelines.jobs.runs.counts import counted as rows_in
from pipelines.jobs.runs.counts import numbered
from pipelines.jobs.runs.held import held_legs
from pipelines.jobs.runs.in_use import going_on, unapplied
from pipelines.jobs.runs.known import is_replayed, open_run
from pipelines.jobs.runs.played import read_range
from pipelines.operators.plain_words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pipelines.engine.commits.driver import Driver
    from pipelines.engine.commits.history import Entry, LogState
    from pipelines.engine.commits.resets import WayBack
    from pipelines.jobs.commands.reset_legs import LegsBack
    from pipelines.jobs.runs.known import KnownRun

WHY = "pulseline reset"


@dataclass(frozen=True, kw_only=True)
class ResetRequest:
    """What `pulseline reset` was asked for."""

    flow: str
    to: str | None = None
    """A commit's number, `sequence:N`, or a date or instant; None for the newest state."""
    run: str = "main"
    dry_run: bool = False
    """Say what would be done, and do nothing."""
    take_over: bool = False
    as_json: bool = False


@dataclass(frozen=True, kw_only=True)
class ResetPlan:
    """What a reset does: what it gives up and takes back, and what is then played again."""

    way: WayBack
    pending: Entry | None
    """The epoch that was begun and is given up."""
    waiting: range
    """Sequences that are closed and were never published; some may be of intervals that were run again."""
    waiting_readings: int
    """How many of them are the stream's."""
    waiting_rows: int
    beyond: str = ""
    """What was asked for, where it lies behind the newest state."""
    legs: LegsBack | None = None
    """What becomes of the other legs of a run that has any."""

    @property
    def superseded(self) -> tuple[int, ...]:
        """Number the commits that readers see no more."""
        return commits_back(self.way)

    @property
    def rows(self) -> int:
        """Count the landed rows that readers saw the results of, and that are played again."""
        return sum(sum(rows_in(row, "landed").values()) for row in self.way.streamed)


def reset_run(wanted: ResetRequest, echo: Callable[[str], None]) -> None:
    """Take a run back to a state, say what that takes away and what will be played again, and what to type next.

    Safe at any time: killed before its row nothing has changed but an epoch given up, behind it all has.

    Raises:
        WrongUse: the run never streamed, its backfill waits for something, or what is to be played again is not there.
        CommitError: there is no such state, or an interval lies behind it.
        TableError: tables and commits of a leg do not belong together; nothing was taken back.
        LeaseHeldError: a driver is at work on this run.
    """
    known = open_run(wanted.flow, wanted.run)
    plan = _planned(known, {leg: part.state for leg, part in known.by_folder.items()}, wanted.to)
    if wanted.dry_run:
        _tell(known, wanted, plan, None, echo)
        return
    claim = Claim.TAKE_OVER if wanted.take_over else Claim.ASK
    with ExitStack() as leases:
        drivers = held_legs(known, leases, claim, gone=True)
        for driver in drivers.values():
            # All before any: a leg that cannot be gone on from would be found when others have been taken back.
            driver.agree()
        plan = _planned(known, {leg: driver.state() for leg, driver in drivers.items()}, wanted.to)
        if not wanted.as_json:
            _announce(known, plan, echo)
        done = reset_to(drivers[MAIN], plan, asked=wanted.to)
        if plan.legs is not None:
            take_back(drivers, plan.legs, WHY, wanted.to)
    _tell(open_run(wanted.flow, wanted.run), wanted, plan, done, echo)


def _planned(known: KnownRun, states: Mapping[str, LogState], to: str | None) -> ResetPlan:
    """Find what a reset would do, to all legs of a run."""
    # What a run cannot be reset for is told before where its legs would go.
    plan = plan_of(known, states[MAIN], to)
    if len(states) == 1:
        return plan
    legs = legs_back(known, states, to)
    return replace(plan_of(known, states[MAIN], legs.to) if legs.further else plan, legs=legs)


def reset_to(driver: Driver, plan: ResetPlan, asked: str | None = None) -> Entry:
    """Give up what was begun, and go back.

    Args:
        driver: holds the lease.
        plan: what was found under this lease.
        asked: the state, as somebody named it.
    """
    if plan.pending is not None:
        driver.abandon(plan.pending.commit, why=WHY)
    given_up = plan.pending.commit if plan.pending else None
    # Punctuations up to here are played again, and do not drain a second time.
    detail = {"why": WHY, "asked": asked, "given_up": given_up, "landed": plan.waiting.stop - 1}
    return driver.reset(driver.next_number(), plan.way.target, detail=detail)


def plan_of(known: KnownRun, state: LogState, to: str | None) -> ResetPlan:
    """Find what a reset would do.

    Args:
        known: the run.
        state: its log now.
        to: as `Wanted.to`.

    Raises:
        WrongUse: the run never streamed, its backfill waits for something, or what is to be played again is not there.
        CommitError: there is no such state, or an interval lies behind it.
    """
    if is_replayed(known.root):
        raise WrongUse(
            f"run `{known.run}` plays what another run landed, and nothing goes on from it: replay again, with --from "
            "and --to for a part"
        )
    if not any(row.kind is CommitKind.EPOCH for row in state.commits.values()):
        told = "never streamed: to replace intervals, run them again (pulseline run)"
        if state.tip is None and (last_closed(landed_path(known.root), 0) or read_range(known.root) is not None):
            told = f"has published nothing yet, so nothing is to be taken back: {known.command('status')} says more"
        raise WrongUse(f"a reset takes a stream back; run `{known.run}` of {known.name} {told}")
    pending = state.pending
    if pending is not None and pending.kind is not CommitKind.EPOCH:
        abandon = known.command("abandon", "--commit", str(pending.commit))
        raise WrongUse(
            f"commit {pending.commit} must be finished or given up first; it is an interval of a backfill at "
            f"{pending.state}: see {known.command('status')}, or {abandon}"
        )
    asked = asked_state(known, state, to)
    way = way_back(state, asked.commit)
    landing = landed_path(known.root)
    last = last_closed(landing, way.upto)
    missing = [number for number in range(way.sequence + 1, last + 1) if not is_closed(landing, number)]
    if missing:
        raise WrongUse(
            f"what came behind commit {way.target} must still be landed to be played again; sequences "
            f"{numbered(missing)} are gone: choose a state that covers them (--to sequence:{missing[-1]} or later)"
        )
    require_kept(landing, state, range(way.sequence + 1, last + 1), "--to")
    _require_whole(landing, range(way.sequence + 1, last + 1))
    waiting = range(way.upto + 1, last + 1)
    read = [each for each in (load_manifest(landing, number) for number in waiting) if each.kind == READING]
    return ResetPlan(
        way=way,
        pending=pending,
        waiting=waiting,
        waiting_readings=len(read),
        waiting_rows=sum(source.rows for each in read for source in each.sources.values()),
        beyond=(to or "") if asked.beyond else "",
    )


def _require_whole(landing: Path, numbers: range) -> None:
    """See that what is to be played again can be read: readers would lose what nobody can give back.

    Raises:
        WrongUse: a sequence cannot be.
    """
    for number in numbers:
        try:
            read_sequence(landing, number)
        except (LandingError, OSError) as problem:
            raise WrongUse(
                f"what is to be played again must be whole; sequence {number} is not ({problem}): nothing was taken "
                f"back; choose a state that covers it (--to sequence:{number} or later)"
            ) from None


def _announce(known: KnownRun, plan: ResetPlan, echo: Callable[[str], None]) -> None:
    for line in _lines(known, plan):
        echo(line)


def _lines(known: KnownRun, plan: ResetPlan) -> list[str]:
    """Say what a reset takes away, and what is played again."""
    way, text = plan.way, known.moments.text
    where = f"commit {way.target}" if way.ground else "its beginning"
    lines = [f"run `{known.run}` of {known.name} goes back to {where}: all that arrived before {text(way.start)}"]
    if plan.pending is not None:
        span = f"{text(plan.pending.span.start)} until {text(plan.pending.span.end)}"
        lines.append(f"given up: commit {plan.pending.commit}, begun over {span}; nobody has seen anything of it")
    if plan.superseded:
        commits = counted(len(plan.superseded), "commit")
        lines.append(
            f"taken back: {commits} ({numbered(plan.superseded)}), {text(way.start)} until {text(way.end)}; readers "
            "see them no more"
        )
    played = sorted(number for row in way.streamed for number in row.sequences)
    if plan.beyond:
        lines.append(f"`{plan.beyond}` lies behind all that is published, so the newest state it is")
    if played:
        sequences = f"{counted(len(played), 'sequence')} ({numbered(played)})"
        lines.append(f"played again: {sequences} with {counted(plan.rows, 'landed row')}")
    if plan.waiting_readings:
        rows = counted(plan.waiting_rows, "row")
        lines.append(f"then, not published yet: {counted(plan.waiting_readings, 'sequence')} with {rows}")
    for row in way.superseded:
        if row.kind is CommitKind.INTERVAL:
            again = known.run_command(*row.span)
            lines.append(f"then to be run again, for it stood on the stream: commit {row.commit}: {again}")
    if not (played or plan.waiting_readings):
        lines.append("nothing lies behind it, so nothing is played again")
    return lines if plan.legs is None else [*lines, *leg_lines(plan.legs)]


def _tell(
    known: KnownRun, wanted: ResetRequest, plan: ResetPlan, done: Entry | None, echo: Callable[[str], None]
) -> None:
    if wanted.as_json:
        echo(json.dumps(facts_of(known, plan, done), ensure_ascii=False))
        return
    if done is None:
        _announce(known, plan, echo)
        words = ["--to", wanted.to] if wanted.to else []
        echo(f"nothing was done; next: {known.command('reset', *words)}")
        return
    echo(f"commit {done.commit} did that; what comes behind it gets new numbers, Spark's checkpoint is made anew")
    echo(f"next: {_next(known, plan)}")


def _next(known: KnownRun, plan: ResetPlan) -> str:
    """Spell what goes on from there: behind an `apply` that was taken back the flow's file is another one."""
    return going_on(known, unapplied(known), known.command("stream"), in_legs=plan.legs is not None)


def facts_of(known: KnownRun, plan: ResetPlan, done: Entry | None) -> dict[str, Any]:
    """Give what a reset did, or would do, as plain values; instants in UTC."""
    from pipelines.engine.columnar.columns import instant_text

    way = plan.way
    return {
        "flow": known.name,
        "run": known.run,
        "commit": done.commit if done else None,
        "to": way.target,
        "to_sequence": way.sequence,
        "to_at": instant_text(way.start),
        "given_up": plan.pending.commit if plan.pending else None,
        "superseded": list(plan.superseded),
        "until_at": instant_text(way.end),
        "sequences": [way.sequence + 1, way.upto] if way.upto > way.sequence else None,
        "rows": plan.rows,
        "waiting": {"sequences": plan.waiting_readings, "rows": plan.waiting_rows},
        **({} if plan.legs is None else {"legs": leg_facts(plan.legs)}),
        "next": _next(known, plan),
    }
