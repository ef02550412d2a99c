"""`pulseline reset` over a run in legs: every leg goes back, and none stands beyond what it reads.

The leg that takes what lands goes first, under the leases of all. A reset that is cut short between two legs leaves one
that stands beyond what it reads; nobody streams on from there, and the same reset does the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipelines.engine.commits.history import START_OF_RUN, CommitKind
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.commits.resets import way_back
from pipelines.engine.live.legs_back import states_at
from pipelines.flows.legs import MAIN
from pipelines.jobs.facts.history import require_kept
from pipelines.jobs.facts.states import asked_state
from pipelines.jobs.runs.counts import numbered
from pipelines.operators.plain_words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipelines.engine.commits.driver import Driver
    from pipelines.engine.commits.history import Entry, LogState
    from pipelines.engine.commits.resets import WayBack
    from pipelines.jobs.runs.known import KnownRun


@dataclass(frozen=True, kw_only=True)
class LegBack:
    """What a reset does to a leg that does not take what lands."""

    leg: str
    target: int
    """The commit that it then stands at; 0 for its beginning."""
    sequence: int
    way: WayBack | None
    """None where it stays where it is."""
    pending: Entry | None
    """The epoch that was begun and is given up."""

    @property
    def superseded(self) -> tuple[int, ...]:
        """Number the commits that readers see no more."""
        return commits_back(self.way) if self.way else ()


@dataclass(frozen=True, kw_only=True)
class LegsBack:
    """Where all legs of a run go back to."""

    to: str | None
    """The state that the leg that takes what lands goes to; as it was asked for, if it does not go further back."""
    further: bool
    others: tuple[LegBack, ...]


def commits_back(way: WayBack) -> tuple[int, ...]:
    """Number the commits that readers see no more; a reset before this one had shown them nothing."""
    return tuple(row.commit for row in way.superseded if row.kind is not CommitKind.RESET)


def legs_back(known: KnownRun, states: Mapping[str, LogState], to: str | None) -> LegsBack:
    """Find where the legs of a run go back to.

    Args:
        known: the run.
        states: the log of each leg.
        to: the state that was asked for, of the leg that takes what lands.

    Raises:
        WrongUse: it is no state, or what is to be played again is not kept.
        CommitError: no state covers so little.
    """
    main, legs = states[MAIN], known.legs
    roots = {leg: part.root for leg, part in known.by_folder.items()}
    asked = _sequence(main, asked_state(known, main, to).commit)
    found = states_at(legs, roots, states, asked)
    lowest = min(_sequence(states[leg], commit) for leg, commit in found.items())
    require_kept(landed_path(known.root), main, range(lowest + 1, _sequence(main, found[MAIN]) + 1), "--to")
    further = _sequence(main, found[MAIN]) < asked
    return LegsBack(
        to=str(found[MAIN]) if further else to,
        further=further,
        others=tuple(_back(leg.name, states[leg.name], found[leg.name]) for leg in legs if leg.name != MAIN),
    )


def _sequence(state: LogState, commit: int) -> int:
    """Give the last sequence that a state covers; what no leg ever began covers none."""
    return state.commits[commit].upto if commit in state.commits else 0


def _back(leg: str, state: LogState, target: int) -> LegBack:
    stands = state.tip.commit if state.tip else START_OF_RUN
    way = None if stands == target else way_back(state, target)
    return LegBack(leg=leg, target=target, sequence=_sequence(state, target), way=way, pending=state.pending)


def take_back(drivers: Mapping[str, Driver], plan: LegsBack, why: str, asked: str | None) -> None:
    """Take the legs back that do not take what lands, each behind what it reads.

    Args:
        drivers: hold the leases.
        plan: what was found under these leases.
        why: what is said of it in the logs.
        asked: the state, as somebody named it.
    """
    for each in plan.others:
        driver = drivers[each.leg]
        if each.pending is not None:
            driver.abandon(each.pending.commit, why=why)
        if each.way is not None:
            driver.reset(driver.next_number(), each.way.target, detail={"why": why, "asked": asked})


def leg_lines(plan: LegsBack) -> Iterator[str]:
    """Say what a reset does to the other legs."""
    if plan.further:
        yield (
            "that is further back than was asked for: some of what crosses has been put together since, and is made "
            "anew with what comes behind"
        )
    for each in plan.others:
        given_up = "" if each.pending is None else f"; commit {each.pending.commit}, which was begun, is given up"
        if each.way is None:
            yield f"{each.leg} stays at sequence {each.sequence:,}{given_up}"
            continue
        where = f"commit {each.target}" if each.target else "its beginning"
        commits = counted(len(each.superseded), "commit")
        back = f"; taken back: {commits} ({numbered(each.superseded)})" if each.superseded else ""
        yield f"{each.leg} goes back to {where}, sequence {each.sequence:,}{back}{given_up}"


def leg_facts(plan: LegsBack) -> dict[str, Any]:
    """Give what a reset does to the other legs as plain values."""
    return {
        each.leg: {
            "to": each.target,
            "to_sequence": each.sequence,
            "given_up": each.pending.commit if each.pending else None,
            "superseded": list(each.superseded),
        }
        for each in plan.others
    }
