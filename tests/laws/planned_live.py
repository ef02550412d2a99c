"""A live flow in a process of its own whose readings are planned as Spark plans them, for tests that kill it.

planned_live.py BASE RUN READINGS DELAY   # land and publish so many readings, each DELAY s after it was planned

A reading is noted before it lands. The next process begins with the one that was noted last, whenever that was.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from pipelines.engine.columnar.clock import WallClock, wall_now
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.landing.index import Landing
from pipelines.engine.live.epochs import EpochRunner
from pipelines.engine.live.landing import LiveLanding
from pipelines.engine.tasks.local import CoreEngine
from pipelines.flows.reading import read_flow
from pipelines.jobs.runs.feeds import open_feeds


def planned(noted: Path) -> int:
    """Note the next reading."""
    reading = wall_now()
    noted.write_text(str(reading))
    return reading


def main() -> None:
    """Do what the arguments say; die with the last reading planned, and rows behind it in the spool."""
    base, run, readings, delay = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    flow, root, noted = read_flow(base / "flow.yaml", {}), base / "runs" / run, base / "planned"
    with open_driver(root, flow=flow.name) as driver:
        landing = Landing(landed_path(root))
        start = landing.last_reading() or wall_now()
        lander = LiveLanding(landing, flow, open_feeds(flow, base, root, landing), start, clock=WallClock())
        engine = CoreEngine()
        runner = EpochRunner(driver=driver, flow=flow, landing=landing.path, engine=lambda _: engine)
        runner.finish_pending()
        lander.listen()
        reading = int(noted.read_text()) if noted.exists() else planned(noted)
        for _ in range(readings):
            time.sleep(delay)
            lander.land(0, reading)
            runner.advance(runner.last_sequence(), landing.last_id)
            reading = planned(noted)
        time.sleep(delay)
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
