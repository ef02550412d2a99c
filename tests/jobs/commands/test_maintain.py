"""`pulseline maintain`: files go, no row does; what is ill is told, and where a driver works nothing is done."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from pipelines.engine.columnar.content import content_hash
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.paths import FILE, REGIONS, stream_path
from pipelines.engine.commits.readers import read_stream
from pipelines.jobs.commands.maintain import maintain
from pipelines.jobs.commands.status import show_all
from pipelines.jobs.environment.errors import WrongUse
from tests.jobs.regional import begun, content

if TYPE_CHECKING:
    from tests.jobs.conftest import House


def told(house: House) -> tuple[int, dict[str, Any], str]:
    """Give code, result and words."""
    code = maintain("tiny", as_json=True, echo=house.tell)
    *words, last = house.text.splitlines()
    found: dict[str, Any] = json.loads(last)
    return code, found, "\n".join(words)


def test_files_go_and_no_row_does_in_every_run(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-04")
    house.backfill("2013-01-01", "2013-01-02", run="other")
    stray = stream_path(house.root, "punctual") / "part-of-an-attempt.parquet"
    # A thousand bytes beside the million are for the checksums of pages in what is put together.
    stray.write_bytes(b"x" * 1_001_000)
    os.utime(stray, (0, 0))
    before = content_hash(read_stream(house.root, "punctual"))
    code, found, words = told(house)
    assert (code, set(found["runs"])) == (0, {"main", "other"})
    main = found["runs"]["main"]
    assert main["freed_bytes"] == main["bytes"]["before"] - main["bytes"]["after"] > 900_000
    assert not stray.exists()
    assert content_hash(read_stream(house.root, "punctual")) == before
    assert f"all runs: {found['freed_bytes']:,} bytes freed" in words


def test_what_is_ill_is_told_and_what_is_at_work_is_left_alone(house: House) -> None:
    with pytest.raises(WrongUse, match="nothing of tiny was run yet"):
        maintain("tiny", as_json=True, echo=house.tell)
    house.backfill("2013-01-01", "2013-01-02")
    with open_driver(house.root, flow="tiny"):
        code, found, _ = told(house)
    assert (code, found["runs"]["main"]["left"]) == (0, "a driver is at work, which keeps it in order itself")
    next(stream_path(house.root, "punctual").rglob("*.parquet")).unlink()
    code, found, _ = told(house)
    assert code == 1
    assert found["sentence"].startswith("main: ")


def test_of_a_run_in_legs_what_landed_is_kept_once_and_no_leg_is_asked_for_it(regional: House) -> None:
    settings = next(file for file in regional.config.glob("*.yaml") if "master" in file.read_text())
    settings.write_text(settings.read_text() + "landed: {keep: 1s}\n")
    calm = content(regional.root)
    code, found, _ = told(regional)
    assert (code, found["runs"]["main"]["ill"]) == (0, [])
    assert content(regional.root) == calm


def test_of_a_run_in_legs_it_says_which_were_left_as_they_are(house: House) -> None:
    begun(house)
    assert maintain("tiny", as_json=False, echo=house.tell) == 0
    told = house.text.splitlines()[0]
    assert " files became " in told
    assert "; what is of timed, main-2 is left as it is (a commit waits to be finished, or none was begun); " in told


def test_a_run_that_cannot_be_read_is_told_with_its_name_and_the_others_are_put_in_order(regional: House) -> None:
    regional.backfill("2013-01-01", "2013-01-02", run="other")
    (regional.root / REGIONS / FILE).unlink()
    regional.root.rename(regional.root.with_name("live"))
    code, found, words = told(regional)
    assert code == 1
    assert "pulseline doctor tiny --run live --repair makes it anew" in found["sentence"]
    assert "run live: left as it is" in words
    assert found["runs"]["other"]["left"] is None

    show_all(as_json=False, tell=regional.tell)
    assert "pulseline doctor tiny --run live --repair makes it anew" in regional.text
