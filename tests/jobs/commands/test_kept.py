"""A run whose history stands in segments, and one whose old rows are gone: the same rows, or a clear refusal."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from pipelines.engine.buffers.buffers import buffers_of
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.commits.readers import log_state
from pipelines.engine.files import packed
from pipelines.engine.files.packed import segment_folder, segments_in
from pipelines.engine.landing import retention as keeping
from pipelines.engine.landing.manifest import alone_in, numbers_in
from pipelines.engine.live.upkeep import Upkeep
from pipelines.jobs.commands.advise import AdviseRequest, advise
from pipelines.jobs.commands.replay import ReplayRequest, replay_flow
from pipelines.jobs.commands.reset import ResetRequest, reset_run
from pipelines.jobs.environment.buffer_settings import Buffering
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.facts import history as kept
from tests.jobs.commands.test_replay import lived_in
from tests.jobs.commands.test_reset import go_back
from tests.jobs.commands.test_status_live import HOUR, Stage, hours
from tests.jobs.conftest import copied
from tests.laws.streamed import streamed
from tests.laws.trials import BEGIN, MINUTE, PARCELS, WHOLE, Trial, parcels, trial

if TYPE_CHECKING:
    from pathlib import Path

    from tests.jobs.conftest import House

READINGS = [BEGIN + minutes * MINUTE for minutes in range(10, 181, 10)]
SHORT = PARCELS.partition("  punctual")[0]
COUNT = len(READINGS)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have segments of four sequences, and two that are left as they are."""
    monkeypatch.setattr(packed, "TOGETHER", 4)
    monkeypatch.setattr(keeping, "TOGETHER", 4)
    monkeypatch.setattr(keeping, "RECENT", 2)


def keep_house(root: Path, rows: int | None = None) -> None:
    """Keep history until nothing is left to do."""
    landed, tip, before = landed_path(root), log_state(root).tip, None
    keeper = keeping.Retention(landed, lambda: None)
    while before != (before := sorted(landed.rglob("*"))):
        for _ in range(3):
            keeper.keep(tip.upto if tip else 0, dt.timedelta(0), rows)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """Give the parcels, with the run `whole`: one interval on core."""
    made = trial(tmp_path_factory.mktemp("kept"), SHORT, {"parcels": parcels()})
    made.ran("whole", WHOLE)
    return made


def test_a_reset_to_the_beginning_plays_the_same_out_of_segments(here: Trial) -> None:
    wanted, landed = here.wanted("again"), landed_path(here.root("again"))
    streamed(here, "again", BEGIN, READINGS)
    keep_house(wanted.root)
    assert sorted(alone_in(landed)) == [COUNT - 1, COUNT]

    go_back(wanted, 0)
    streamed(here, "again", BEGIN, READINGS, most=[1, 3, 7])

    assert here.hashes("again", WHOLE) == here.hashes("whole", WHOLE)


def test_segments_that_close_between_epochs_change_nothing(here: Trial) -> None:
    wanted = here.wanted("between")
    for count in range(3, COUNT + 1, 3):
        streamed(here, "between", BEGIN, READINGS[:count], most=2)
        keep_house(wanted.root)
    assert len(segments_in(landed_path(wanted.root))) == (COUNT - 2) // 4
    assert here.hashes("between", WHOLE) == here.hashes("whole", WHOLE)


def test_three_buffers_play_the_same_out_of_segments(here: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.jobs.runs.readings.Buffering", partial(Buffering, margin=1))
    sources = {name: replace(source, buffers=3) for name, source in here.flow.sources.items()}
    buffered = Trial(flow=replace(here.flow, sources=sources), base=here.base)
    wanted, landed = buffered.wanted("buffered"), landed_path(here.root("buffered"))
    streamed(buffered, "buffered", BEGIN, READINGS[:-2])
    keep_house(wanted.root)
    assert len(segments_in(landed)) == 3
    go_back(wanted, 0)
    shutil.rmtree(buffers_of(wanted.root)["a"])

    streamed(buffered, "buffered", BEGIN, READINGS, most=5)

    assert buffered.hashes("buffered", WHOLE) == here.hashes("whole", WHOLE)
    assert numbers_in(landed) == list(range(1, COUNT + 1))


# --- the commands


TEN = hours(*range(2, 21, 2))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> House:
    """Give a house in which the tiny flow ran live over ten readings, two hours apart; tests copy it."""
    return lived_in(tmp_path_factory.mktemp("recorded"), TEN)


@pytest.fixture
def house(recorded: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    """Give such a house of a test's own, its history in segments."""
    house = copied(recorded, tmp_path / "live", monkeypatch)
    with open_driver(house.root, flow="tiny") as driver:
        Upkeep(driver).keep(every=1, keep=dt.timedelta(0))
    assert segments_in(landed_path(house.root))[0] == range(1, 5), "a driver keeps history too"
    keep_house(house.root)
    return house


@pytest.fixture
def stage(house: House) -> Stage:
    """Give what shows it."""
    return Stage(house)


@pytest.fixture
def aged(stage: Stage, house: House) -> Stage:
    """Give it where the rows of the first four sequences are gone, which is all but the newest segment."""
    keep_house(house.root, rows=8 * HOUR)
    return stage


def reset(house: House, to: str) -> dict[str, Any]:
    reset_run(ResetRequest(flow="tiny", to=to, as_json=True), house.tell)
    found: dict[str, Any] = json.loads(house.text)
    return found


def test_a_state_behind_which_rows_were_removed_is_refused(aged: Stage, house: House) -> None:
    with pytest.raises(WrongUse) as found:
        reset(house, "1")
    said = str(found.value)
    assert "what is to be played again must still be kept; the rows of sequences 2–4 were removed at 20" in said
    assert "under `landed: {keep: 8h}`: begin at commit 4 or later (--to 4), or put copies of their folders in" in said
    assert reset(house, "4")["sequences"] == [5, 10]
    aged.play(hours(22))
    assert log_state(house.root).tip.upto == 11  # type: ignore[union-attr]


@pytest.mark.usefixtures("aged")
def test_a_replay_from_before_is_refused(house: House) -> None:
    with pytest.raises(WrongUse, match=r"rows of sequences 1–4 were removed .* commit 4 or later \(--from 4\)"):
        replay_flow(ReplayRequest(flow="tiny"), house.tell)
    assert replay_flow(ReplayRequest(flow="tiny", start="4"), house.tell) == 0


def test_a_replay_reads_segments_and_leaves_them(house: House) -> None:
    landed = landed_path(house.root)
    before = {path: path.stat().st_mtime_ns for path in landed.rglob("*")}
    assert replay_flow(ReplayRequest(flow="tiny"), house.tell) == 0
    assert {path: path.stat().st_mtime_ns for path in landed.rglob("*")} == before


def advised(house: House, **asked: Any) -> dict[str, Any]:  # noqa: ANN401 - as `ResetRequest` takes them
    advise(AdviseRequest(flow="tiny", as_json=True, **asked), house.tell)
    found: dict[str, Any] = json.loads(house.text)
    return found


DIRECT = """
streams:
  beating: {heartbeat: trips, interval: 6h, slack: 90s}
  promised: {advance_time: trips, every: {events: 2}, delay: 1h, late: drop}
"""


def test_advice_reads_segments_and_what_of_them_is_kept(
    recorded: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = copied(recorded, tmp_path / "advised", monkeypatch)
    file = house.config / "flows" / "tiny.yaml"
    file.write_text(file.read_text().partition("\nstreams:")[0] + DIRECT)
    before = advised(house, stream="promised")
    keep_house(house.root)
    assert advised(house, stream="promised") == before
    keep_house(house.root, rows=8 * HOUR)
    after = advised(house, stream="promised")
    assert (after["start"], after["end"]) == ("2013-01-01T13:00:00.000000Z", before["end"])
    assert 0 < after["events"] < before["events"]


def test_status_says_how_much_history_there_is(stage: Stage, house: House) -> None:
    facts, landed = stage.facts()["history"], landed_path(house.root)
    assert facts == {
        "sequences": 10,
        "segments": 2,
        "removed": 0,
        "bytes": sum(file.stat().st_size for file in landed.rglob("*") if file.is_file()),
        "rows_from_at": "2013-01-01T05:00:00.000000Z",
    }
    assert f"history    10 sequences, {facts['bytes']:,} bytes; rows from 2013-01-01 00:00:00 on\n" in stage.text()


def test_status_says_what_was_removed(aged: Stage, house: House) -> None:
    text = aged.text()
    assert "; rows from 2013-01-01 08:00:00 on; those of 4 sequences before were removed\n" in text
    assert "readings   10 readings since 2013-01-01 02:00:00" in text
    assert segments_in(landed_path(house.root)) == [range(1, 5), range(5, 9)]
    assert not list(segment_folder(landed_path(house.root), 1).glob("*.parquet"))


def test_bytes_of_many_folders_are_told_from_the_newest(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "LOOKED", 1)
    assert stage.facts()["history"]["bytes"] > 0
