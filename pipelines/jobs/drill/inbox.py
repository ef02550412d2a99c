"""A live flow over a folder in which files arrive, without Spark: who sends, who listens, and what must be there."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from pipelines.engine.columnar.clock import WallClock, wall_now
from pipelines.engine.columnar.columns import instant_text
from pipelines.engine.commits.driver import CommitLog, Driver, open_driver
from pipelines.engine.commits.readers import log_state, read_stream
from pipelines.engine.landing.index import Landing
from pipelines.engine.live.epochs import EpochRunner
from pipelines.engine.live.landing import LiveLanding
from pipelines.engine.tasks.local import CoreEngine
from pipelines.jobs.drill.drilled import tell
from pipelines.jobs.runs.counts import counted
from pipelines.jobs.runs.feeds import open_feeds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    import pyarrow as pa

    from pipelines.engine.commits.history import LogState
    from pipelines.jobs.drill.loops import Here
    from pipelines.jobs.drill.witness import Witness

FILES, LINES = 12, 5
"""That arrive, and rows of each."""
APART = (0.05, 0.35)
"""Seconds between two files, at their quickest and slowest."""
EVERY = 0.02
"""Seconds between two readings."""
INBOX = """\
flow: drilled
every: 1d
sources:
  readings:
    feed: {folder: inbox, format: json, types: {pump: string, at: timestamp, number: int64}}
    key: pump
    time: at
streams:
  beating: {heartbeat: readings, interval: 10s, slack: 2s}
"""


@dataclass
class FilledInbox:
    """The folder, and who puts files there."""

    base: Path
    pace: float
    """From 0, the quickest, to 1."""
    sent: dict[int, int] = field(default_factory=dict)
    """When each row was sent, in ticks of the machine's clock."""

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)

    @property
    def folder(self) -> Path:
        """Give where files arrive."""
        return self.base / "inbox"

    def send(self) -> None:
        """Send all files, one after the other, each at once."""
        for number in range(FILES):
            draft = self.base / "draft"
            now, rows = wall_now(), range(number * LINES, (number + 1) * LINES)
            self.sent |= dict.fromkeys(rows, now)
            lines = ({"pump": "pqr"[row % 3], "at": instant_text(now), "number": row} for row in rows)
            draft.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
            draft.rename(self.folder / f"{number:04}.json")
            time.sleep(APART[0] + (APART[1] - APART[0]) * self.pace)


def landed_rows(state: LogState) -> int:
    """Count the rows that published commits have landed."""
    return sum(sum(counted(row, "landed").values()) for row in state.published)


def listen(here: Here, witness: Witness) -> None:
    """Land what arrives and publish it until all rows are there."""
    wanted = here.wanted()
    with open_driver(here.root, flow=wanted.flow.name, claim=here.claim) as driver:
        landing, clock = Landing(wanted.landing), WallClock()
        watching = Driver(here.root, wanted.flow.name, CommitLog(here.root), driver.token)
        feeds = open_feeds(wanted.flow, wanted.base, here.root, landing, tell)
        start = landing.last_reading() or wall_now()
        lander = LiveLanding(landing, wanted.flow, feeds, start, held=watching.state, clock=WallClock())
        engine = CoreEngine()
        runner = EpochRunner(
            driver=driver, flow=wanted.flow, landing=landing.path, engine=lambda _: engine, published=witness.tell
        )
        runner.finish_pending()
        lander.listen()
        while landed_rows(driver.state()) < FILES * LINES:
            time.sleep(EVERY)
            lander.land(0, clock.read(lander.last))
            runner.advance(runner.last_sequence(), landing.last_id)
        lander.close()


def unlike(here: Here, sent: Mapping[int, int], bounds: tuple[int, int]) -> list[str]:
    """Say what is wrong with the rows that landed.

    Args:
        here: the run.
        sent: when each row was sent, in ticks of the machine's clock.
        bounds: how far the driver's clock stood beside that at least and at most, as far as it was to be believed.
    """
    state = log_state(here.root)
    rows = read_stream(here.root, "beating", state=state)
    data = _facts(rows)
    return [*_once(data, sent), *_in_time(data, sent, bounds), *_in_order(data)]


def _facts(rows: pa.Table) -> list[dict[str, int]]:
    """Give what is to be known of each row that was sent; timers have no number."""
    whole = rows.select(["commit", "arrival", "place", "number"])
    whole = whole.set_column(1, "arrival", whole["arrival"].cast("int64"))
    return whole.filter(pc.is_valid(whole["number"])).to_pylist()  # type: ignore[no-any-return]


def _once(data: list[dict[str, int]], sent: Mapping[int, int]) -> Iterator[str]:
    found = Counter(row["number"] for row in data)
    wrong = sorted(number for number in {*found, *sent} if found[number] != 1)
    if wrong or found.keys() != sent.keys():
        yield f"of {len(sent)} rows {len(wrong)} are not there once: {wrong[:5]}"


def _in_time(data: list[dict[str, int]], sent: Mapping[int, int], bounds: tuple[int, int]) -> Iterator[str]:
    now = wall_now()
    early = [row["number"] for row in data if row["arrival"] < sent.get(row["number"], 0) + bounds[0]]
    if early:
        yield f"rows {early[:5]} arrived before they were sent"
    ahead = [row["number"] for row in data if row["arrival"] > now + bounds[1]]
    if ahead:
        yield f"rows {ahead[:5]} arrived under a clock that was not to be believed"


def _in_order(data: list[dict[str, int]]) -> Iterator[str]:
    """Hold arrivals against the order in which rows were published: per commit, and the files within."""
    spans: dict[int, list[int]] = {}
    for row in data:
        spans.setdefault(row["commit"], []).append(row["arrival"])
    if any(max(spans[one]) > min(spans[two]) for one, two in pairwise(sorted(spans))):
        yield "arrivals decrease from one commit to the next"
    # A sender's files are seen in their order, so a later row never arrives before an earlier one.
    ordered = [row["arrival"] for row in sorted(data, key=lambda row: row["number"])]
    if any(one > two for one, two in pairwise(ordered)):
        yield "arrivals decrease from one row to the next"
