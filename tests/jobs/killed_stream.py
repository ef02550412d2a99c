"""A stream of the parcels in a process of its own, for tests that kill it.

killed_stream.py BASE RUN POINT [SKIP]   # epochs over all readings; die at a point, come past it SKIP times before
"""

from __future__ import annotations

import sys
from pathlib import Path

from pipelines.engine import epochs
from pipelines.engine.commits import Driver
from pipelines.flows.reading import read_flow
from tests.jobs.killed_backfill import after, before, lay_in_wait
from tests.jobs.streamed import streamed
from tests.jobs.trials import BEGIN, MINUTE, Trial

READINGS = [BEGIN + minutes * MINUTE for minutes in (7, 20, 21, 59, 60, 61, 100, 140, 179, 180)]


def main() -> None:
    """Do what the arguments say."""
    base, run, point, *skip = sys.argv[1:]
    count = int(skip[0]) if skip else 0
    here = Trial(flow=read_flow(Path(base) / "flow.yaml", {}), base=Path(base))
    engine = lay_in_wait(point, count)
    if point == "unpublished":
        Driver.written_and_published = before(Driver.written_and_published, count)  # type: ignore[method-assign]
    elif point == "folded":
        epochs.FOLD_EVERY = 2
        Driver.fold = after(Driver.fold, count)  # type: ignore[method-assign]
    elif point == "done":
        Driver.written_and_published = after(Driver.written_and_published, count)  # type: ignore[method-assign]
    streamed(here, run, BEGIN, READINGS, engine=engine)


if __name__ == "__main__":
    main()
