"""A run in legs in a process of its own, for tests that kill it.

killed_regions.py BASE RUN POINT [SKIP]   # every leg over all readings; die at a point, come past it SKIP times before
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.engine.live import crossing, epochs, legs
from pipelines.flows.legs import in_legs
from pipelines.flows.reading import read_flow
from pipelines.jobs.runs.regional import run_in_legs
from tests.laws.killed_backfill import before, die
from tests.laws.killed_stream import READINGS
from tests.laws.trials import BEGIN, Trial

if TYPE_CHECKING:
    from collections.abc import Callable


def lay_in_wait_for(point: str, skip: int) -> None:
    """Make this process die at a point."""
    if point == "ticket":
        # Published, and nobody who reads it knows.
        crossing.Queue.offer = before(crossing.Queue.offer, skip)  # type: ignore[method-assign]
    elif point == "reading":
        work = epochs.commit_work  # type: ignore[attr-defined]

        def worked(*words: object) -> object:
            if words[7].leg:  # type: ignore[attr-defined]
                wait()
            return work(*words)  # type: ignore[arg-type]

        wait = before(lambda: None, skip)
        epochs.commit_work = worked  # type: ignore[assignment, attr-defined]
    elif point == "waiting":
        legs.RunningLeg.step = never  # type: ignore[assignment, method-assign]
        noted = legs.Legs._note

        def note(self: legs.Legs, each: legs.RunningLeg) -> None:
            noted(self, each)
            if each.waits_since is not None:
                die()

        legs.Legs._note = note  # type: ignore[method-assign]


def never(*_: object) -> bool:
    """Read nothing, so that whoever writes has to wait."""
    return False


def regional(here: Trial, run: str, tell: Callable[[str], object] = lambda _: None, upto: int = len(READINGS)) -> None:
    """Run the flow in its legs over all readings, or so many of them."""
    wanted = here.wanted(run)
    run_in_legs(replace(wanted, flow=replace(here.flow, legs=in_legs(here.flow))), BEGIN, READINGS[:upto], tell=tell)


def main() -> None:
    """Do what the arguments say."""
    base, run, point, *skip = sys.argv[1:]
    here = Trial(flow=read_flow(Path(base) / "flow.yaml", {}), base=Path(base))
    lay_in_wait_for(point, int(skip[0]) if skip else 0)
    regional(here, run)


if __name__ == "__main__":
    main()
