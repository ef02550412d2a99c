"""A flow that declares what its source brought before: what landed is played with it, and nothing of it is lost."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from pipelines.engine.commits.paths import SchemaChangedError
from pipelines.engine.commits.readers import read_stream
from pipelines.engine.landing.column_errors import LandedColumnError
from pipelines.engine.sources.folder.inbox import Inbox
from pipelines.jobs.commands.apply import ApplyRequest, apply_flow
from pipelines.jobs.commands.replay import ReplayRequest, replay_flow
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.settings import load_flow, read_settings
from pipelines.jobs.runs.in_use import require_in_use
from pipelines.jobs.runs.known import open_run
from tests.jobs.commands.test_status_live import FOLDER, Stage, hours
from tests.jobs.conftest import build, live_in

if TYPE_CHECKING:
    from pathlib import Path

    from tests.jobs.conftest import House

NARROW = FOLDER.replace(
    "beating: {heartbeat: doors, interval: 1h}", "seen: {project: doors, columns: {opened: opened}}"
)
WIDER = "opened: timestamp, w: {}"


@pytest.fixture
def doors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    """Give a house whose doors begin to say `w` in the second reading, which nobody declared."""
    house = build(tmp_path)
    live_in(house, monkeypatch)
    # Readings here are told, so what lies in the folder was seen before them.
    monkeypatch.setattr("pipelines.engine.sources.folder.inbox.Inbox", partial(Inbox, now=lambda: 0))
    return house


def put(house: House, name: str, **said: Any) -> None:  # noqa: ANN401 - values of JSON
    row = {"door": "front", "opened": "2013-01-01T06:00:00Z", **said}
    folder = house.config / "flows" / "inbox"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.jsonl").write_text(json.dumps(row) + "\n")


def declare(house: House, text: str, types: str = "opened: timestamp") -> None:
    (house.config / "flows" / "doors.yaml").write_text(text.replace("opened: timestamp", types))


def begun(house: House, text: str) -> Stage:
    """Land and publish a file without `w` and one with it."""
    declare(house, text)
    stage = Stage(house, "doors")
    put(house, "a")
    stage.play(hours(6, 7))
    put(house, "b", w=1)
    stage.play(hours(8, 9))
    return stage


def values(house: House, stream: str, run: str) -> list[Any]:
    rows = read_stream(house.home / "doors" / run, stream).to_pylist()
    return [row.get("w") for row in rows if row["kind"] == "data"]


def test_a_column_that_streams_show_is_played_into_a_run_of_its_own(doors: House) -> None:
    stage = begun(doors, FOLDER)
    assert values(doors, "beating", "main") == [None, None]
    declare(doors, FOLDER, WIDER.format("float64"))
    known = open_run("doors", "main")
    assert known.state.tip is not None
    with pytest.raises(WrongUse, match="pulseline apply doors takes it into use"):
        require_in_use(known.state, known.state.tip.commit, load_flow(read_settings(), "doors"), "main")
    with pytest.raises(SchemaChangedError, match="pulseline replay FLOW --run RUN --into NAME"):
        apply_flow(ApplyRequest(flow="doors"), doors.tell)
    assert replay_flow(ReplayRequest(flow="doors", into="wider"), doors.tell) == 1
    assert "beating differs first in row 1: 2 with another w" in doors.text.replace("0 missing, 0 extra, ", "")
    assert values(doors, "beating", "wider") == [None, 1.0]
    declare(doors, FOLDER)
    put(doors, "c", w=2)
    stage.play(hours(10, 11))
    assert values(doors, "beating", "main") == [None] * 3, "the run goes on with the flow of before"


def test_a_replay_that_begins_behind_held_rows_reads_them_without_the_column(doors: House) -> None:
    merged = FOLDER + "  held: {merge: [beating, other]}\n  other: {metronome: 1h}\n"
    begun(doors, merged)
    declare(doors, merged, WIDER.format("int64"))
    replay_flow(ReplayRequest(flow="doors", into="wider", start="2"), doors.tell)
    assert values(doors, "beating", "wider") == [1]


def test_a_type_that_what_landed_cannot_become_is_refused_before_anything_is_played(doors: House) -> None:
    begun(doors, NARROW)
    declare(doors, NARROW, WIDER.format("timestamp"))
    with pytest.raises(LandedColumnError, match="in sequence 4 it landed as int64"):
        replay_flow(ReplayRequest(flow="doors", into="wider"), doors.tell)
    assert not (doors.home / "doors" / "wider").exists()
