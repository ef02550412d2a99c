"""`check` over a run in legs: the gate judges the tables of all of them, each as far as it has come."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from expectations.laws import USUAL_HELD, USUAL_LATENESS, USUAL_LEDGER
from pipelines.engine.commits.quality import read_quality
from pipelines.jobs.commands.check import check_flow
from pipelines.jobs.facts.recomputation import sample_of
from tests.jobs.regional import taken, wanted

if TYPE_CHECKING:
    from tests.jobs.conftest import House


def checked(house: House, run: str = "main", commit: int | None = None) -> tuple[int, list[dict[str, Any]]]:
    """Check all that is published; give the exit code and what was found, the sum last."""
    code = check_flow("tiny", None, None, commit, run, True, house.tell)  # noqa: FBT003 - the command's flag
    return code, [json.loads(line) for line in house.text.splitlines()]


def looked_at(found: list[dict[str, Any]]) -> dict[tuple[str, str], int]:
    """Give how many rows each expectation looked at.

    How many files of a carry there are depends on cuts. What is usual of the ledger and of merges is asked in the leg
    alone in which rows land, and of heartbeats where they were published live.
    """
    left_out = {USUAL_LEDGER, USUAL_HELD, USUAL_LATENESS}
    return {
        (each["table"], each["expectation"]): each["looked_at"]
        for each in found[:-1]
        if each["table"] != "the carry" and each["expectation"] not in left_out
    }


def test_the_rows_of_all_legs_are_judged_as_in_one_piece(regional: House) -> None:
    regional.backfill("2013-01-01", "2013-01-04", run="piece")
    code, found = checked(regional)
    _, piece = checked(regional, run="piece")

    assert code == 0
    assert [each for each in found[:-1] if not each["held"]] == []
    assert looked_at(found) == looked_at(piece)
    assert looked_at(found)["timed.beating", "account_holds"] > 20
    assert looked_at(found)["last", "account_holds"] > 20
    assert found[-1]["behind"] == {}
    assert {each.table for each in read_quality(regional.root)} >= {"some", "timed.ordered", "last"}


def test_epochs_of_all_legs_are_computed_again(regional: House) -> None:
    every = sample_of("all", 7, deep=True)
    assert check_flow("tiny", None, None, None, "main", as_json=True, echo=regional.tell, deep=every) == 0
    found = [json.loads(line) for line in regional.text.splitlines()]
    (again,) = (each for each in found[:-1] if each["expectation"] == "as_recomputed")
    assert again["held"]
    assert "asked of 9 of 9" in again["sentence"]
    assert "commits 1–3; timed:1–3; main-2:1–3" in again["sentence"]


def test_what_is_on_its_way_to_a_leg_is_not_missing(house: House) -> None:
    taken(house, 3, 2, 1)
    code, found = checked(house)

    assert code == 0, found
    assert [each for each in found[:-1] if not each["held"]] == []
    assert found[-1]["behind"] == {"timed": "2013-01-03T05:00:00.000000Z", "main-2": "2013-01-02T05:00:00.000000Z"}
    check_flow("tiny", None, None, None, "main", False, house.tell)  # noqa: FBT003 - the command's flag
    told = house.text
    assert "(3 commits of main, 2 of timed, 1 of main-2)" in told
    assert "timed is behind: judged up to 2013-01-03 00:00:00\n" in told


def test_a_leg_that_took_nothing_yet_is_told(house: House) -> None:
    taken(house, 1, 1, 0)
    code, found = checked(house)

    assert code == 0
    assert found[-1]["behind"] == {"main-2": None}


def test_a_commit_is_judged_with_what_others_made_of_its_span(regional: House) -> None:
    code, found = checked(regional, commit=2)

    assert code == 0
    assert [each for each in found[:-1] if not each["held"]] == []
    assert 0 < looked_at(found)["last", "account_holds"] < 30


def test_a_row_that_went_from_a_leg_is_found(regional: House) -> None:
    """Both ways: it is not in its own table, and it never came to the leg behind."""
    folder = regional.root / "regions" / "timed" / "streams" / "timed.ordered"
    file = max(folder.rglob("*.parquet"), key=lambda each: pq.read_metadata(each).num_rows)
    rows = pq.read_table(file)
    pq.write_table(rows.slice(1), file)
    code, found = checked(regional)

    broken = {(each["table"], each["expectation"]) for each in found[:-1] if not each["held"]}
    assert code == 1
    assert {("timed.ordered", "account_holds"), ("timed.ordered", "as_published"), ("last", "account_holds")} <= broken
    assert found[-1]["next"] == "pulseline replay tiny"


def test_what_a_team_asks_of_values_leads_to_the_rows_and_not_to_a_replay(regional: House) -> None:
    file = regional.config / "flows" / "tiny.yaml"
    own = "{expect_column_values_to_be_between: {column: number, max_value: 3}}"
    text = re.sub(r"(  trips: \{.*)\}\n", rf"\1, expect: [{own}]}}\n", file.read_text())
    assert own in text
    file.write_text(text)
    code, found = checked(regional)

    assert code == 1
    assert [each["table"] for each in found[:-1] if not each["held"]] == ["trips"]
    assert found[-1]["next"] == "pulseline report tiny"


def test_a_run_in_one_piece_is_checked_as_before(house: House) -> None:
    wanted(house)
    house.backfill("2013-01-01", "2013-01-04")
    code, found = checked(house)

    assert code == 0
    assert found[-1]["behind"] == {}
