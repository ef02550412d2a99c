"""`pulseline finish`: all that waits when the end is said lands before it, however little one reading takes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from pipelines.engine.commits.leg_roots import roots_of
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.commits.readers import log_state, read_stream
from pipelines.engine.landing.index import Landing
from pipelines.engine.live.landing import LiveLanding
from pipelines.engine.live.legs import Legs
from pipelines.jobs.commands import finish
from pipelines.jobs.commands.finish import finish_flow
from pipelines.jobs.environment.errors import WrongUse
from tests.jobs.commands.test_status_live import FOLDER, Stage, hours

if TYPE_CHECKING:
    from pathlib import Path

    from tests.jobs.conftest import House

FILES, ROWS = 7, 3


def filled(inbox: Path, files: range) -> None:
    """Put files of a few rows each into a folder."""
    for number in files:
        lines = [f'{{"door": "d{number}-{row}", "opened": "2013-01-01T05:10:00Z"}}\n' for row in range(ROWS)]
        (inbox / f"{number:02}.jsonl").write_text("".join(lines))


def test_what_waits_lands_before_the_end_though_a_reading_takes_only_a_part(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox = house.config / "flows" / "inbox"
    inbox.mkdir()
    (house.config / "flows" / "doors.yaml").write_text(FOLDER)
    filled(inbox, range(1))
    Stage(house, "doors").play(hours(1))
    filled(inbox, range(1, FILES))
    monkeypatch.setattr(finish, "LiveLanding", partial(LiveLanding, limit_rows=ROWS))
    finish_flow("doors", "main", (), house.tell)
    root = house.home / "doors" / "main"
    doors = [row["door"] for row in read_stream(root, "beating").to_pylist() if row["kind"] == "data"]
    assert sorted(doors) == sorted(f"d{number}-{row}" for number in range(FILES) for row in range(ROWS))
    landing, state = Landing(landed_path(root)), log_state(root)
    assert landing.final is not None
    assert state.tip is not None
    assert state.tip.span.end == landing.final + 1, "the end is the last thing that is published"
    assert state.tip.upto == landing.last_id > FILES - 1


def test_an_end_that_landed_and_was_not_published_is_published_by_the_same_command(house: House) -> None:
    stage = Stage(house)
    stage.play(hours(5, 9))
    stage.play(hours(12), publish=False, final=True)
    finish_flow("tiny", "main", (), house.tell)
    told = house.text
    assert "the end had landed, and what an earlier finish left behind is published now" in told
    assert "the stream ended at 2013-01-01T16:59:59.999999Z; commit 3 published " in told
    with pytest.raises(WrongUse, match="this stream ended already, at 2013-01-01T16:59:59"):
        finish_flow("tiny", "main", (), house.tell)


def test_what_waited_is_told_with_what_the_end_published(house: House) -> None:
    stage = Stage(house)
    stage.play(hours(5))
    stage.play(hours(9), publish=False)
    finish_flow("tiny", "main", (), house.tell)
    told = house.text
    assert "; commit 2 published " in told
    assert "; commit 3 published " in told
    assert [row.commit for row in log_state(house.root).published] == [1, 2, 3]


def test_a_stream_that_publishes_with_its_end_alone_publishes_all_of_it_then(house: House) -> None:
    file = house.config / "flows" / "tiny.yaml"
    file.write_text(file.read_text("utf-8").replace("flow: tiny\n", "flow: tiny\nregion: {drain: final}\n"))
    with pytest.raises(WrongUse, match="nothing has landed in this run"):
        finish_flow("tiny", "main", (), house.tell)
    stage = Stage(house)
    stage.play(hours(5, 9, 12), publish=False)
    finish_flow("tiny", "main", (), house.tell)
    state, landing = log_state(house.root), Landing(landed_path(house.root))
    assert [(row.commit, row.upto) for row in state.published] == [(1, landing.last_id)], "all of it or nothing"
    assert landing.final is not None
    with pytest.raises(WrongUse, match="ended already"):
        finish_flow("tiny", "main", (), house.tell)


def test_legs_that_a_finish_did_not_come_to_are_taken_to_the_end_by_the_next(
    regional: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Legs, "catch_up", dies)
        with pytest.raises(KeyboardInterrupt):
            finish_flow("tiny", "main", (), regional.tell)
    regional.printed.clear()
    finish_flow("tiny", "main", (), regional.tell)
    assert "left behind is published now" in regional.text
    assert [tip.upto for each in roots_of(regional.root) if (tip := log_state(each).tip)] == [4, 4, 4]
    with pytest.raises(WrongUse, match="ended already"):
        finish_flow("tiny", "main", (), regional.tell)
