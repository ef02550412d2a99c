"""When a live landing was blind: from its last reading to the first that its new process made itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipelines.engine.columnar.clock import ClockJumpError, WallClock
from pipelines.engine.landing.index import Landing
from pipelines.engine.landing.manifest import read_sequence
from pipelines.engine.live import landing as live_landing
from pipelines.engine.live.landing import LiveLanding, StreamEndedError
from pipelines.engine.sources.folder.inbox import Inbox
from pipelines.engine.sources.live_feeds import open_live
from pipelines.flows.reading import read_flow

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.flows.model import Flow

FLOW = """\
flow: quiet
sources:
  readings:
    feed: {folder: inbox, format: csv, types: {pump: string, at: timestamp}, timezone: UTC}
    key: pump
    time: at
streams:
  beating: {heartbeat: readings, interval: 10s}
"""


@pytest.fixture
def flow(tmp_path: Path) -> Flow:
    """Give a flow over a folder in which nothing arrives."""
    (tmp_path / "inbox").mkdir()
    (tmp_path / "flow.yaml").write_text(FLOW)
    return read_flow(tmp_path / "flow.yaml", {})


def begun(tmp_path: Path, flow: Flow, start: int, now: int, patch: pytest.MonkeyPatch) -> LiveLanding:
    """Give the landing of a process that begins at `now`."""
    patch.setattr(live_landing, "wall_now", lambda: now)
    return LiveLanding(Landing(tmp_path / "landing"), flow, open_live(flow, tmp_path, tmp_path, {}), start)


def blind(lander: LiveLanding, reading: int) -> tuple[tuple[int, int], ...]:
    """Land a reading and give its blind spans."""
    sequence = lander.land(0, reading)
    assert sequence is not None
    return sequence.sources["readings"].blind_spans


def test_nobody_is_blind_before_the_first_reading(tmp_path: Path, flow: Flow, monkeypatch: pytest.MonkeyPatch) -> None:
    lander = begun(tmp_path, flow, 100, 100, monkeypatch)
    assert blind(lander, 200) == ()
    assert blind(lander, 300) == ()


def test_a_reading_planned_by_who_died_does_not_end_the_blind_span(
    tmp_path: Path, flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    blind(begun(tmp_path, flow, 100, 100, monkeypatch), 200)
    again = begun(tmp_path, flow, 200, 900, monkeypatch)
    assert blind(again, 300) == ((200, 300),), "planned before, landed now"
    assert blind(again, 950) == ((300, 950),), "nobody listened until the new process read the clock"
    assert blind(again, 960) == ()


def test_nothing_lands_twice_and_nothing_after_the_end(
    tmp_path: Path, flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    lander = begun(tmp_path, flow, 100, 100, monkeypatch)
    blind(lander, 200)
    assert lander.land(0, 200) is None
    lander.land(0, 300, final=299)
    with pytest.raises(StreamEndedError, match="ended at"):
        lander.land(0, 400)


def test_what_an_overtaken_driver_closed_meanwhile_is_not_landed_again(
    tmp_path: Path, flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = begun(tmp_path, flow, 100, 100, monkeypatch)
    blind(first, 200)
    second = begun(tmp_path, flow, 200, 200, monkeypatch)
    blind(first, 300)

    landed = second.land(0, 400)
    assert landed is not None
    assert (landed.id, landed.start, landed.end) == (3, 300, 400), "the one of the first driver stands"
    assert landed.sources["readings"].blind_spans == ((300, 400),)
    blind(first, 500)
    assert second.land(0, 450) == read_sequence(tmp_path / "landing", 4), "nothing was left of that span"
    assert second.last == 500


CSV = "pump,at\na,2013-01-01T00:00:00Z\n"


def test_a_reading_closes_behind_all_that_its_sources_were_seen_to_hold(tmp_path: Path, flow: Flow) -> None:
    """A reading may be planned long before it lands: by Spark before a crash, or before it had its workers."""
    clock = iter(range(1_000, 9_000, 100))

    def tick() -> int:
        return next(clock)

    feeds = {"readings": Inbox(flow.sources["readings"], tmp_path, now=tick)}
    landing = Landing(tmp_path / "landing")
    watch = WallClock(wall=tick, monotonic=lambda: 0)
    lander = LiveLanding(landing, flow, feeds, 10, clock=watch)
    (tmp_path / "inbox" / "a.csv").write_text(CSV)
    first, second = lander.land(0, 20), lander.land(0, 1_250)
    assert first is not None
    assert second is not None
    assert (first.end, second.end) == (1_200, 1_400), "seen at 1,100 and 1,300"
    assert (first.sources["readings"].rows, second.sources["readings"].rows) == (0, 1)
    assert lander.land(0, 1_350) is None, "planned before the last one closed"
    third = lander.land(0, 5_000)
    assert third is not None
    assert third.end == 5_000, "never before it was planned"
    assert lander.land(0, 5_000) is None


def test_what_came_before_the_clock_was_set_back_holds_the_reading_up(tmp_path: Path, flow: Flow) -> None:
    feeds = {"readings": Inbox(flow.sources["readings"], tmp_path, now=lambda: 9_000)}
    clock = WallClock(max_jump=8_500, wall=lambda: 1_000, monotonic=lambda: 0)
    sequence = LiveLanding(Landing(tmp_path / "landing"), flow, feeds, 10, clock=clock).land(0, 20)
    assert sequence is not None
    assert sequence.end == 9_001
    behind = WallClock(max_jump=5_000, wall=lambda: 1_000, monotonic=lambda: 0)
    lander = LiveLanding(Landing(tmp_path / "landing"), flow, feeds, 10, clock=behind)
    with pytest.raises(ClockJumpError, match="set the machine's clock right"):
        lander.land(0, 9_500)
