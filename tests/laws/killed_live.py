"""A live flow in a process of its own, for tests that kill it.

killed_live.py BASE RUN POINT SKIP [sorted]   # listen, land and publish; die at a point, come past it SKIP times
                                              # before; `sorted`: write plans as homes of before have them
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.engine.columnar.clock import WallClock, wall_now
from pipelines.engine.columnar.columns import canonical_json
from pipelines.engine.commits import driver as commits
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.landing.index import Landing
from pipelines.engine.live.epochs import EpochRunner
from pipelines.engine.live.landing import LiveLanding
from pipelines.engine.sources.socket.spool import Spool
from pipelines.flows.reading import read_flow
from pipelines.jobs.runs.feeds import open_feeds
from tests.laws.killed_backfill import after
from tests.laws.killed_stream import lay_in_wait_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipelines.engine.tasks.stages import Engine


def live(base: Path, run: str, engine: Engine, is_done: Callable[[], bool]) -> None:
    """Listen, land and publish until it is done."""
    flow, root = read_flow(base / "flow.yaml", {}), base / "runs" / run
    with open_driver(root, flow=flow.name) as driver:
        landing = Landing(landed_path(root))
        start = landing.last_reading() or wall_now()
        lander = LiveLanding(landing, flow, open_feeds(flow, base, root, landing), start, clock=WallClock())
        runner = EpochRunner(driver=driver, flow=flow, landing=landing.path, engine=lambda _: engine)
        runner.finish_pending()
        lander.listen()
        while not is_done():
            time.sleep(0.01)
            lander.land(0, wall_now())
            runner.advance(runner.last_sequence(), landing.last_id)
        lander.close()


def main() -> None:
    """Do what the arguments say."""
    base, run, point, skip = Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
    if "sorted" in sys.argv[5:]:
        vars(commits)["plan_text"] = lambda plan: canonical_json(dict(plan))
    if point == "spool":
        Spool._write = after(Spool._write, skip)  # type: ignore[method-assign]
    live(base, run, lay_in_wait_for(point, skip), lambda: False)


if __name__ == "__main__":
    main()
