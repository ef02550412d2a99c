"""A live run in a process of its own, one of whose buffers fails midway: everything that is done with a run, after it.

faulty_buffer.py BASE ERRNO BUFFER WHEN   # ERRNO 0: nothing fails; WHEN: `born` or `midway`

Runs under tests/laws/faulty_disk.c; says each thing that it did.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pipelines.engine.buffers.places import read_record
from pipelines.engine.columnar.columns import NOT_HASHED
from pipelines.engine.columnar.content import content_hash
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.entry import LEDGER
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.landing.index import Landing
from pipelines.engine.live.landing import LiveLanding
from pipelines.jobs.commands.finish import finish_flow
from pipelines.jobs.commands.metrics import show_metrics
from pipelines.jobs.commands.report import report_flow
from pipelines.jobs.commands.reset import ResetRequest, reset_run
from pipelines.jobs.commands.status import show_status
from pipelines.jobs.environment.buffer_settings import Buffering
from pipelines.jobs.environment.settings import load_flow, read_settings
from pipelines.jobs.proofs.parity import rows_between
from pipelines.jobs.runs.backfill import Backfill
from pipelines.jobs.runs.feeds import open_feeds
from pipelines.jobs.runs.readings import buffered_runner, settled_buffers
from tests.laws.trials import BEGIN, CORE, MINUTE

READINGS = [BEGIN + minutes * MINUTE for minutes in range(10, 181, 10)]
END = READINGS[-1] + 10
FIRST, THEN = READINGS[:6], READINGS[6:]


def say(line: str) -> None:
    """Tell the test."""
    sys.stdout.write(f"{line}\n")


class Played:
    """The run of the flow in a folder."""

    def __init__(self, base: Path) -> None:
        """Read flow and settings, as a command does."""
        self.called = str(base / "flow.yaml")
        settings = read_settings()
        self.flow = load_flow(settings, self.called)
        self.root = settings.root(self.flow.name, "main")
        self.wanted = Backfill(flow=self.flow, root=self.root, base=base, engine=CORE)
        self.buffering = Buffering.of(settings)

    def play(self, readings: list[int], fails: int, disk: str) -> None:
        """Land readings and run epochs over them in one process; a buffer fails before one of them."""
        with open_driver(self.root, flow=self.flow.name) as driver:
            buffers = settled_buffers(self.wanted, self.buffering, say)
            runner = buffered_runner(self.wanted, driver, buffers, CORE)
            landing = Landing(landed_path(self.root), buffers)
            feeds = open_feeds(self.flow, self.wanted.base, self.root, landing)
            lander = LiveLanding(landing, self.flow, feeds, landing.last_reading() or BEGIN)
            for at, reading in enumerate(readings):
                if at == fails:
                    fail(disk)
                lander.land(0, reading)
                if at % 2:
                    runner.advance(runner.last_sequence(), landing.last_id)


def fail(disk: str) -> None:
    """Have a disk fail from now on; an empty text mends it."""
    Path(os.environ["FAULTS"]).write_text(disk)


def main() -> None:
    """Do what the arguments say."""
    base, number, name, when = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
    disk = f"{number} {base / 'disks' / name}"
    fail(disk if when == "born" else "")
    here = Played(base)
    here.play(FIRST, 3, disk)
    say("landed, read by tasks")
    here.play(THEN[:4], -1, disk)
    say("started")
    show_status(here.called, "main", as_json=False, tell=say)
    show_status(here.called, "main", as_json=True, tell=lambda _: None)
    show_metrics(here.called, "main", None, say)
    report_flow(here.called, None, "main", as_json=True, echo=lambda _: None)
    say("looked at")
    reset_run(ResetRequest(flow=here.called, to="2"), say)
    here.play(THEN[4:8], -1, disk)
    say("reset")
    record = read_record(landed_path(here.root))
    told = {each: record.of(each).why for each in "abc"} if record else {}
    finish_flow(here.called, "main", (), say)
    tables = (*here.flow.tables(), LEDGER)
    hashes = {
        name: str(content_hash(rows_between(here.root, here.flow, name, BEGIN, END), leave_out=NOT_HASHED))
        for name in tables
    }
    say(json.dumps({"why": told, "hashes": hashes}))


if __name__ == "__main__":
    main()
