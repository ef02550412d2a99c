"""Silent is not disconnected: what `status` says of each source and key, since when, and what to do."""

from __future__ import annotations

import json
import os
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.landing.manifest import MANIFEST, sequence_folder
from pipelines.engine.live import landing as live_landing
from pipelines.engine.sources.folder.inbox import Inbox
from pipelines.jobs.facts import presence
from pipelines.jobs.facts.live import closed_at
from pipelines.jobs.facts.presence import LOOK, RETIRED, patience
from pipelines.jobs.facts.report_live import read_presence
from pipelines.jobs.facts.status import status_of
from pipelines.jobs.runs.known import open_run
from pipelines.jobs.runs.played import FILE, keep_range
from tests.jobs.commands.test_status_live import FOLDER, HOUR, START, Stage, hours

if TYPE_CHECKING:
    from pathlib import Path

    from tests.jobs.conftest import House

    Facts = dict[str, Any]

SECOND = 1_000_000
ROWS = "".join(f'{{"door": "{door}", "opened": "2013-01-01T05:10:00Z"}}\n' for door in ("front", "back"))


@pytest.fixture
def doors(house: House, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Give a folder flow, two of whose doors opened in the second hour, and nothing since."""
    monkeypatch.setattr(live_landing, "wall_now", lambda: 0)  # each stage begins before its own readings
    # What lies in the folder was seen before them, too.
    monkeypatch.setattr("pipelines.engine.sources.folder.inbox.Inbox", partial(Inbox, now=lambda: 0))
    inbox = house.config / "flows" / "inbox"
    inbox.mkdir()
    text = FOLDER.replace("interval: 1h", "interval: 1h, slack: 5m, expire: 6h")
    (house.config / "flows" / "doors.yaml").write_text(text)
    (inbox / "a.jsonl").write_text(ROWS)
    return Stage(house, "doors")


def front_again(stage: Stage, at: float) -> None:
    """Let the front door open once more, and look at the folder twice."""
    row = '{"door": "front", "opened": "2013-01-01T05:20:00Z"}\n'
    (stage.house.config / "flows" / "inbox" / f"{at}.jsonl").write_text(row)
    stage.play(hours(at, at + 0.1))


def root_of(stage: Stage) -> Path:
    return stage.house.home / stage.name / "main"


def said(stage: Stage, now: int, *, held: bool = True) -> Facts:
    """Give what holds of the only source, while a driver holds the lease or when none does."""
    if not held:
        facts = status_of(open_run(stage.name, "main"), now)
    else:
        with open_driver(root_of(stage), flow=stage.name):
            facts = status_of(open_run(stage.name, "main"), now)
    (found,) = facts["sources"].values()
    return dict(found)


def keys(found: Facts) -> list[tuple[str, str, float]]:
    """Give key, state and hours since the beginning of the longest silences."""
    rows = found["keys"]["longest"]
    return [(row["key"]["door"], row["state"], since(row["since_at"])) for row in rows]


def since(instant: int) -> float:
    """Give hours since the beginning."""
    return round((instant - START) / HOUR, 3)


def closed(stage: Stage) -> int:
    return closed_at(landed_path(root_of(stage)), stage_last(stage))


def stage_last(stage: Stage) -> int:
    return len(list((landed_path(root_of(stage))).glob("0*")))


def test_a_recorded_feed_under_a_backfill_is_recorded(ran: House) -> None:
    (found,) = status_of(open_run("tiny", "main"), START)["sources"].values()
    assert (found["state"], found["since_at"], found["do"], "keys" in found) == ("recorded", None, None, False)
    assert "\nsource     trips is recorded: its rows are read from the recording" in Stage(ran).text()


def test_a_recording_whose_stream_is_starting_is_not_said_to_be_run_a_day_at_a_time(house: House) -> None:
    root = house.root
    with open_driver(root, flow="tiny"):
        keep_range(root, START, START + 24 * HOUR)
        facts = status_of(open_run("tiny", "main"), START)
        assert facts["sources"]["trips"]["why"] == "a stream is starting, and has played nothing yet"
    (found,) = status_of(open_run("tiny", "main"), START)["sources"].values()
    assert found["why"].startswith("its rows are read from the recording")


def test_a_recording_that_was_played_to_its_end_is_not_said_to_have_stopped(house: House) -> None:
    stage = Stage(house)
    stage.play(hours(5, 9))
    keep_range(house.root, START, hours(9)[0])
    (found,) = status_of(open_run("tiny", "main"), START)["sources"].values()
    assert found["why"] == "the recording was played to the end of its range"
    with open_driver(house.root, flow="tiny"):
        later = closed(stage) + 2 * presence.STARTING
        (found,) = status_of(open_run("tiny", "main"), later)["sources"].values()
    assert (found["state"], found["do"]) == ("recorded", None)
    assert found["why"] == "the recording was played to the end of its range; its stream waits"


@pytest.mark.usefixtures("doors")
def test_a_folder_that_nobody_ever_listened_to_is_disconnected() -> None:
    (found,) = status_of(open_run("doors", "main"), START)["sources"].values()
    assert (found["state"], found["do"]) == ("disconnected", "pulseline stream doors")
    assert found["why"] == "nobody has listened to it yet"


def test_a_source_flows_for_its_heartbeats_interval_and_slack_and_is_silent_after_that(doors: Stage) -> None:
    doors.play(hours(1, 2))
    (came,) = hours(2)
    lately = HOUR + 300 * SECOND + presence.TRIGGER
    assert said(doors, came + lately)["state"] == "flowing"
    found = said(doors, came + lately + 1)
    assert (found["state"], found["since_at"]) == ("silent", came)
    assert found["do"] == "nothing where it has nothing to say; else look at who writes it"


def test_one_key_flows_while_another_is_silent_and_both_are_counted(doors: Stage) -> None:
    doors.play(hours(1, 2))
    front_again(doors, 4)
    found = said(doors, hours(4.5)[0])
    assert found["state"] == "flowing"
    assert found["keys"]["states"] == {"flowing": 1, "silent": 1}
    assert keys(found) == [("back", "silent", 2.0)]


def test_a_key_whose_rows_wait_to_be_published_is_not_called_silent(doors: Stage) -> None:
    doors.play(hours(1, 2))
    row = '{"door": "front", "opened": "2013-01-01T05:20:00Z"}\n'
    (doors.house.config / "flows" / "inbox" / "later.jsonl").write_text(row)
    doors.play(hours(4, 4.1), publish=False)
    found = said(doors, hours(4.5)[0])
    assert found["state"] == "flowing"
    assert found["keys"]["states"] == {"flowing": 2}, "as far as rows are taken in, both spoke lately"

    doors.play(hours(4.2))
    assert keys(said(doors, hours(4.5)[0])) == [("back", "silent", 2.0)]


def test_a_key_that_its_heartbeat_gave_up_is_retired_since_it_expired(doors: Stage) -> None:
    doors.play(hours(1, 2))
    front_again(doors, 7)
    doors.play(hours(9, 9.1, 9.2))
    found = said(doors, hours(9)[0])
    assert found["keys"]["states"] == {"silent": 1, "retired": 1}
    assert keys(found) == [("front", "silent", 7.1), ("back", "retired", 8.0)], "retired ones last"
    assert [since(row["last_at"]) for row in found["keys"]["longest"]] == [7.1, 2.0]
    assert found["keys"]["do"] == {"silent": LOOK, "retired": RETIRED}


def test_a_source_that_gave_no_row_yet_is_silent_since_the_first_reading(doors: Stage) -> None:
    (doors.house.config / "flows" / "inbox" / "a.jsonl").unlink()
    doors.play(hours(1, 2))
    found = said(doors, hours(9)[0])
    assert (found["state"], found["since_at"], "keys" in found) == ("silent", hours(1)[0], False)


def test_a_landing_that_stopped_ticking_is_no_silence(doors: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    doors.play(hours(1, 2))
    last = closed(doors)
    assert said(doors, last + 10 * SECOND + 1)["why"] == "a stream is starting, and has not listened yet"
    monkeypatch.setattr(presence, "STARTING", SECOND)
    assert "stopped" not in said(doors, last + 10 * SECOND)["why"]
    found = said(doors, last + 10 * SECOND + 1)
    assert (found["state"], found["since_at"]) == ("disconnected", last)
    assert found["why"] == "the landing has stopped: no reading for more than 10 s"
    assert found["do"] == "pulseline stream doors --take-over"
    rows = found["keys"]["longest"]
    assert {(row["state"], row["since_at"]) for row in rows} == {("disconnected", last)}, "silence needs a listener"
    assert {since(row["last_at"]) for row in rows} == {2.0}


def test_readings_that_come_seldom_are_waited_for_as_long_as_ten_of_them_take(doors: Stage) -> None:
    doors.play(hours(1, 2, 3, 4))
    landing = landed_path(root_of(doors))
    for number, at in ((1, 100), (2, 102), (3, 104), (4, 190)):
        os.utime(sequence_folder(landing, number) / MANIFEST, (at, at))
    known = open_run("doors", "main")
    assert patience(known, 4) == 20 * SECOND
    assert patience(known, 1) == 10 * SECOND
    assert said(doors, 210 * SECOND)["state"] != "disconnected"
    assert said(doors, 210 * SECOND + 1)["state"] == "disconnected"


def test_without_a_stream_a_folder_is_disconnected_and_retired_keys_stay_so(doors: Stage) -> None:
    doors.play(hours(1, 2))
    front_again(doors, 7)
    doors.play(hours(9, 9.1, 9.2))
    found = said(doors, hours(9)[0], held=False)
    assert (found["state"], found["why"]) == ("disconnected", "no stream runs, so nobody listens")
    assert found["do"] == "pulseline stream doors"
    assert [row[:2] for row in keys(found)] == [("front", "disconnected"), ("back", "retired")]
    assert found["keys"]["do"] == {"disconnected": "pulseline stream doors", "retired": RETIRED}


def test_a_folder_that_is_gone_does_not_answer(doors: Stage) -> None:
    doors.play(hours(1, 2))
    inbox = doors.house.config / "flows" / "inbox"
    inbox.rename(inbox.with_name("elsewhere"))
    found = said(doors, hours(2)[0])
    assert found["state"] == "disconnected"
    assert found["why"] == f"the folder {inbox} cannot be listed"
    assert said(doors, hours(2)[0], held=False)["why"] == found["why"], "a stream started now would fail of it"


def test_a_stream_that_ended_is_not_waited_for(house: House) -> None:
    stage = Stage(house)
    stage.play(hours(6, 12), final=True)
    found = said(stage, START)
    assert (found["state"], found["since_at"]) == ("ended", hours(12)[0] - 1)


def test_a_recording_that_is_played_is_judged_by_its_own_clock(house: House) -> None:
    stage = Stage(house)
    stage.play(hours(13, 20))
    now = closed(stage)
    assert said(stage, now)["state"] == "flowing"
    found = said(stage, now, held=False)
    assert (found["state"], found["why"]) == ("recorded", "nobody plays the recording")
    assert (found["since_at"], found["do"]) == (hours(20)[0], "pulseline stream tiny"), "by the recording's clock"
    assert (found["keys"]["states"], found["keys"]["longest"]) == ({"recorded": 3}, []), "nothing is missed of them"
    (stage.house.root / FILE).write_text(json.dumps([START, hours(20)[0]]))
    found = said(stage, now, held=False)
    assert (found["why"], found["do"]) == ("the recording was played to the end of its range", None)
    stage.play(hours(100, 120))
    found = said(stage, now)
    assert (found["state"], found["since_at"]) == ("silent", hours(100)[0])


def test_a_large_carry_is_not_read(doors: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    doors.play(hours(1, 2))
    monkeypatch.setattr(presence, "MOST_BYTES", 0)
    found = said(doors, hours(2)[0])
    assert "keys" not in found
    assert found["keys_left_out"] == "they are too many to look at quickly: pulseline report doors"
    assert "\n           its keys: they are too many to look at quickly" in doors.text()
    page = read_presence(open_run("doors", "main"), hours(2)[0])
    assert page is not None
    assert page.sources[0].keys is not None, "a page takes its time"


def test_only_the_longest_silences_are_told_one_by_one(doors: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    doors.play(hours(1, 2))
    front_again(doors, 4)
    monkeypatch.setattr(presence, "LONGEST", 1)
    found = said(doors, hours(6)[0])
    assert keys(found) == [("back", "silent", 2.0)]
    assert found["keys"]["states"] == {"silent": 2}


def test_status_says_it_in_words_and_as_json(doors: Stage) -> None:
    doors.play(hours(1, 2))
    front_again(doors, 7)
    doors.play(hours(9, 9.1, 9.2))
    text = doors.text()
    assert "\nsource     doors is disconnected since " in text
    assert "no stream runs, so nobody listens; what to do: pulseline stream doors\n" in text
    assert "\n           its keys in beating: 1 disconnected, 1 retired; longest: front disconnected since " in text
    assert " (last row 2013-01-01 12:05:59), back retired since 2013-01-01 12:59:59 (last row " in text
    assert f"; about retired ones: {RETIRED}\n" in text
    longest = doors.facts()["sources"]["doors"]["keys"]["longest"][-1]
    told = {"since_at": "2013-01-01T12:59:59.999999Z", "last_at": "2013-01-01T06:59:59.999999Z"}
    assert longest == {"key": {"door": "back"}, "state": "retired", **told}
