"""`pulseline abandon`: give up a commit that was begun and can no longer be finished as it was begun.

A pending commit is finished under its own plan. Where that plan can only fail again (a merge that holds more than its
old `max_held`), giving it up is the way out: nobody has seen any of it, and the next run begins anew under the flow as
it is now.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING

from pipelines.engine.commits.history import CommitKind, State
from pipelines.engine.commits.leg_roots import leg_of
from pipelines.flows.legs import MAIN
from pipelines.jobs.commands.run import facts_of
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.facts.status import command_for
from pipelines.jobs.runs.held import held_legs
from pipelines.jobs.runs.known import open_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipelines.engine.commits.history import Entry
    from pipelines.jobs.runs.known import KnownRun

WHY = "pulseline abandon"


def abandon_commit(called: str, number: int | str, run: str, as_json: bool, echo: Callable[[str], None]) -> None:  # noqa: FBT001 - the command's flag
    """Give up a commit at intent or at written and say what to type next; one that was given up already stays so.

    Safe at any time: nothing of such a commit is ever seen, its sequences stay landed, its number stays used.

    Args:
        called: name of the flow, or the path of its file.
        number: of the commit; of another leg than the one that takes what lands `<leg>:<number>`.
        run: name of the run.
        as_json: one JSON object instead of words.
        echo: where lines go.

    Raises:
        WrongUse: there is no such commit, or it is published or rejected.
        TableAheadError: a table has it, so it was published: an older copy of `commits` stands there.
        LeaseHeldError: a driver is at work on this run, perhaps on this very commit.
    """
    known = open_run(called, run)
    part, commit = known.named_commit(str(number))
    _allowed(known, part.commit(commit))
    with ExitStack() as leases:
        driver = held_legs(known, leases)[leg_of(part.root) or MAIN]
        entry = _allowed(known, driver.state().commits[commit])
        if entry.state is not State.ABANDONED:
            # Where an older copy of `commits` stands, what is called begun may have been published.
            driver.agree(commit)
            entry = driver.abandon(commit, why=WHY)
    next_command = known.command("doctor") if known.out_of_step else command_for(known, entry)
    if as_json:
        echo(json.dumps({"flow": known.name, "run": run, **facts_of(entry), "next": next_command}))
        return
    echo(f"commit {number} ({known.moments.span(*entry.span)}) is given up; nobody has seen anything of it")
    # A run in legs goes on with the flow that it began with, and with no other.
    echo(f"next{'' if len(known.parts) > 1 else ', under the flow as it is now'}: {next_command}")


def _allowed(known: KnownRun, entry: Entry) -> Entry:
    """Give a commit that may be given up, as the log has it."""
    number, status = entry.commit, known.command("status")
    if entry.state is State.REJECTED:
        raise WrongUse(f"commit {number} was rejected and is nothing to give up: nobody sees it; {status}")
    if entry.state is State.PUBLISHED:
        again = (
            "a reset takes a stream back" if entry.kind is CommitKind.EPOCH else "running its span again replaces it"
        )
        raise WrongUse(f"only a commit that waits can be given up; commit {number} is published: {again}, see {status}")
    return entry
