"""Whether a run goes live in parallel regions: as it began, and as its flow says; all else is refused by name."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from pipelines.engine.commits.leg_roots import planned_legs, told_of
from pipelines.flows.legs import in_legs, legs_of, uncrossable
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.runs.known import open_run
from pipelines.operators.plain_words import some_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pipelines.engine.commits.history import LogState
    from pipelines.engine.commits.leg_roots import Noted
    from pipelines.flows.model import Flow
    from pipelines.jobs.runs.known import KnownRun

OFF, ON = "off", "on"
LOOKS, BETWEEN = 20, 0.5
"""How often a live run is looked at until its legs have come equally far, and seconds between two looks."""
UNCROSSABLE = (
    "`{name}` takes over the CTIs of `{given}` for keys that are still to come, which needs what `{given}` remembers, "
    "so both must be in one region: write `connection: synchronous` beside `parallel: true` there, or add --regions off"
)


def wants_regions(said: str) -> bool:
    """Read what `--regions` was given.

    Raises:
        WrongUse: neither word.
    """
    if said not in {OFF, ON}:
        raise WrongUse(f"--regions must be {ON}, as the flow says it, or {OFF}, all in one piece; it is `{said}`")
    return said == ON


def with_legs(flow: Flow, root: Path, state: LogState, *, regions: bool) -> Flow:
    """Give a flow with the legs in which a run goes on; none where it goes on in one piece.

    Args:
        flow: as the run goes on with it.
        root: the run's folder.
        state: its log.
        regions: whether regions that the flow asks for are wanted.

    Raises:
        LegsLostError: it began in legs, and nothing says any more in which.
        WrongUse: the run has begun otherwise, or something would cross that cannot.
    """
    legs = in_legs(flow) if regions else {}
    noted = planned_legs(root, state)
    if noted is None and legs and state.commits:
        raise WrongUse(
            f"run `{root.name}` must go on as it began, in one piece; {flow.name} asks for regions of its own "
            f"({_names(legs.values())}): add --regions off to go on, or --run NAME for a run that begins in regions"
        )
    asked = told_of(legs_of(replace(flow, legs=legs)) if legs else ())
    if noted is not None and _alike(noted) != _alike(asked):
        remedy = "put the flow back as it was" if regions else "leave out --regions off"
        raise WrongUse(
            f"run `{root.name}` must go on in the regions that it began in ({_names(noted)}); now it is asked to go on "
            f"in {_unlike(noted, asked)}: {remedy}, or give it a run of its own (--run NAME)"
        )
    found = replace(flow, legs=legs)
    for name, given in uncrossable(found):
        raise WrongUse(UNCROSSABLE.format(name=name, given=given))
    return found


def _alike(legs: Noted) -> dict[str, list[list[str]]]:
    """Give what makes legs the same: which streams each has, and what it reads, in whatever order a file has them."""
    return {name: [sorted(told["streams"]), sorted(told["reads"])] for name, told in legs.items()}


def _unlike(noted: Noted, asked: Noted) -> str:
    """Say in which other legs, or which streams are made elsewhere in legs of the same names."""
    if noted.keys() != asked.keys():
        return f"others ({_names(asked)})" if asked else "one piece"
    was, now = ({name for told in legs.values() for name in told["streams"]} for legs in (noted, asked))
    differ = [("which makes", sorted(now - was)), ("which no longer makes", sorted(was - now))]
    told = [f"{what} {some_of(names)}" for what, names in differ if names]
    return f"another flow, {' and '.join(told)}" if told else "others, which make or read other streams"


def _names(legs: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(legs))


def require_one_piece(root: Path, state: LogState, verb: str, otherwise: str) -> None:
    """See that a run is in one piece before a command is at work that knows of no legs.

    Args:
        root: the run's folder.
        state: its log.
        verb: the command.
        otherwise: what to do instead.

    Raises:
        LegsLostError: it went live in regions, and nothing says any more in which.
        WrongUse: the run went live in regions.
    """
    noted = planned_legs(root, state)
    if noted is not None:
        raise WrongUse(
            f"pulseline {verb} works on a run in one piece, and run `{root.name}` went live in regions "
            f"({_names(noted)}): {otherwise}"
        )


def open_caught_up(called: str, run: str) -> KnownRun:
    """Open a run all of whose legs have come equally far, before all of them are compared with another run.

    The legs of a live run publish one after the other, and are read so: it is looked at until they have.

    Args:
        called: name of the flow or path of its file.
        run: name of the run.

    Raises:
        WrongUse: no such flow or run, or a leg is behind.
    """
    known = open_run(called, run)
    looks = 1
    while (late := _behind(known)) and known.is_driven and looks < LOOKS:
        time.sleep(BETWEEN)
        known, looks = open_run(called, run), looks + 1
    if late:
        todo = known.command("stream", "--until-caught-up")
        if known.is_driven:
            todo = "its driver is at it: type the same command again, or stop the stream first"
        raise WrongUse(
            f"the legs of run `{known.run}` must have come equally far to be compared; {late} is behind: {todo}"
        )
    return known


def _behind(known: KnownRun) -> str:
    """Name the leg that is behind most; nothing where all have come equally far."""
    ends = {part.root.name: part.state.tip.upto if part.state.tip else 0 for part in known.parts}
    return "" if len(set(ends.values())) == 1 else min(ends, key=lambda name: ends[name])
