"""When a live landing was blind: from its last reading to the first that its new process made itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipelines.engine import live_landing
from pipelines.engine.landing import Landing
from pipelines.engine.live_feeds import open_live
from pipelines.engine.live_landing import LiveLanding, StreamEndedError
from pipelines.engine.manifests import read_sequence
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
