"""A stream of the parcels in a process of its own that stops itself with SIGSTOP, for tests that overtake and wake it.

stopped_stream.py BASE RUN POINT SKIP   # epochs over all readings; stop at a point, come past it SKIP times before
Ends as the command does: with the exit code and the line of whatever was raised.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from pipelines.flows.reading import read_flow
from pipelines.jobs.environment.exits import exit_code_of
from tests.laws import killed_backfill
from tests.laws.killed_stream import READINGS, lay_in_wait_for
from tests.laws.streamed import streamed
from tests.laws.trials import BEGIN, Trial


def stop() -> None:
    """Stand still until somebody sends SIGCONT, once."""
    killed_backfill.die = lambda: None
    os.kill(os.getpid(), signal.SIGSTOP)


def main() -> int:
    """Do what the arguments say."""
    base, run, point, skip = sys.argv[1:]
    here = Trial(flow=read_flow(Path(base) / "flow.yaml", {}), base=Path(base))
    killed_backfill.die = stop
    engine = lay_in_wait_for(point, int(skip))
    try:
        streamed(here, run, BEGIN, READINGS, engine=engine)
    except Exception as error:  # noqa: BLE001 - as the command does
        code, line = exit_code_of(error)
        sys.stderr.write(f"{line}\n")
        return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
