"""The leases of a run in legs: its own, which is the run's, and behind it those of the legs, which follow it.

Whoever works on a leg asks for the run's first. Who has that has all: nobody watches leg by leg whether an earlier
driver still lives, and one that was stopped and woken finds itself overtaken in every leg.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.lease import Claim
from pipelines.engine.commits.leg_roots import put_gone_aside
from pipelines.flows.legs import MAIN

if TYPE_CHECKING:
    from contextlib import ExitStack

    from pipelines.engine.commits.driver import Driver
    from pipelines.jobs.runs.known import KnownRun


def held_legs(known: KnownRun, leases: ExitStack, claim: Claim = Claim.ASK, *, gone: bool = False) -> dict[str, Driver]:
    """Take the leases of all legs of a run, the one that takes what lands first.

    Args:
        known: the run.
        leases: holds them.
        claim: whether to take the run's from a holder that lives.
        gone: of a leg of which no log is left, too: it begins there anew, and what else is left is put aside.

    Raises:
        LeaseHeldError: a driver is at work on the run.
    """
    main = leases.enter_context(open_driver(known.root, flow=known.name, claim=claim))
    if gone:
        put_gone_aside(known.root, main.state())
    legs = {
        leg: leases.enter_context(open_driver(part.root, flow=known.name, under=main.state))
        for leg, part in (known.by_folder if gone else known.by_leg).items()
        if leg != MAIN
    }
    return {MAIN: main, **legs}
