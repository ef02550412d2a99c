"""A stream of the parcels in a process of its own, for tests that kill it.

killed_stream.py BASE RUN POINT [SKIP]   # epochs over all readings; die at a point, come past it SKIP times before
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.engine.commits.driver import Driver
from pipelines.engine.live import epochs
from pipelines.flows.reading import read_flow
from tests.laws.killed_backfill import after, before, lay_in_wait
from tests.laws.streamed import streamed
from tests.laws.trials import BEGIN, MINUTE, Trial

if TYPE_CHECKING:
    from pipelines.engine.tasks.stages import Engine

READINGS = [BEGIN + minutes * MINUTE for minutes in (7, 20, 21, 59, 60, 61, 100, 140, 179, 180)]


def lay_in_wait_for(point: str, skip: int) -> Engine:
    """Make this process die at a point of a stream, and give the engine to run with."""
    engine = lay_in_wait(point, skip)
    if point == "unpublished":
        Driver.written_and_published = before(Driver.written_and_published, skip)  # type: ignore[method-assign]
    elif point == "folded":
        epochs.FOLD_EVERY = 2
        Driver.written_and_published = before(Driver.written_and_published, skip)  # type: ignore[method-assign]
    elif point == "done":
        Driver.written_and_published = after(Driver.written_and_published, skip)  # type: ignore[method-assign]
    return engine


def main() -> None:
    """Do what the arguments say."""
    base, run, point, *skip = sys.argv[1:]
    here = Trial(flow=read_flow(Path(base) / "flow.yaml", {}), base=Path(base))
    engine = lay_in_wait_for(point, int(skip[0]) if skip else 0)
    streamed(here, run, BEGIN, READINGS, engine=engine)


if __name__ == "__main__":
    main()
