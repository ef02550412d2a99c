"""A check of another package: the gate goes by it, each command sees it when it starts, and none fails for it alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipelines.engine.commits.entry import State
from pipelines.engine.commits.quality import read_quality
from pipelines.engine.commits.readers import log_state
from pipelines.errors import Exit
from pipelines.jobs.commands.apply import ApplyRequest, apply_flow
from pipelines.jobs.commands.check import check_flow
from pipelines.jobs.commands.flows import contract_flow, validate_flow
from pipelines.jobs.commands.replay import ReplayRequest, replay_flow
from pipelines.jobs.commands.report import report_flow
from pipelines.jobs.commands.run import RunRequest, run_flow
from pipelines.jobs.commands.stream import StreamRequest, stream_flow
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.runs.gate import RejectedError
from tests.other_package import MULTIPLES, ODD, PACKAGE, installed

if TYPE_CHECKING:
    from pathlib import Path

    from tests.jobs.conftest import House

DAYS = RunRequest(flow="tiny", start="2013-01-01", end="2013-01-03", engine="core")
NOT_THERE = f"the package `{PACKAGE}`, which is not installed"


def expecting(house: House, check: str) -> None:
    """Have the last stream of the flow expect something."""
    file = house.config / "flows" / "tiny.yaml"
    text = file.read_text().partition(", expect:")[0].removesuffix("}\n").rstrip("}\n")
    file.write_text(f"{text}, expect: [{{{check}}}]}}\n")


def test_the_gate_goes_by_a_check_of_another_package_and_its_record_outlives_the_package(
    house: House, tmp_path: Path
) -> None:
    label = "expect_column_values_to_be_multiples of team_checks.numbers(number)"
    with installed(tmp_path):
        expecting(house, f"{MULTIPLES}: {{column: number, of: 1}}, owner: numbers")
        run_flow(DAYS, house.tell)
        expecting(house, f"{MULTIPLES}: {{column: number, of: 7}}, owner: numbers, remedy: Count again")
        with pytest.raises(RejectedError, match=r"multiples: column number, of 7"):
            run_flow(RunRequest(flow="tiny", start="2013-01-03", end="2013-01-04", engine="core"), house.tell)
        house.printed.clear()
        assert check_flow("tiny", None, None, None, "main", False, house.tell) == Exit.CHECK_FAILED  # noqa: FBT003
        assert "Count again. Owner: numbers." in house.text
    assert [entry.state for entry in log_state(house.root).commits.values()][-1] is State.REJECTED
    kept = [row for row in read_quality(house.root, commit=3) if row.expectation == label]
    assert [row.held for row in kept] == [False]
    assert [row["number"] for row in kept[0].rows][:3] == [23, 24, 25]
    report_flow("tiny", "2013-01-03", "main", False, house.tell)  # noqa: FBT003 - as the command has it
    pages = [page.read_text() for page in house.root.rglob("*.html")]
    assert any("multiples: column number, of 7" in page and "Count again. Owner: numbers." in page for page in pages)


def test_where_the_package_is_not_installed_jobs_that_judge_say_so_before_they_begin(house: House) -> None:
    expecting(house, f"{MULTIPLES}: {{column: number, of: 7}}")
    for begin in (
        lambda: run_flow(DAYS, house.tell),
        lambda: stream_flow(StreamRequest(flow="tiny", start="2013-01-01", end="2013-01-03"), house.tell),
    ):
        with pytest.raises(WrongUse, match=rf"tiny.yaml:\d+: `punctual` cannot be checked: .*{NOT_THERE}"):
            begin()
    assert not log_state(house.root).commits
    house.backfill("2013-01-01", "2013-01-03")
    with pytest.raises(WrongUse, match=NOT_THERE):
        check_flow("tiny", None, None, None, "main", False, house.tell)  # noqa: FBT003


def test_what_judges_nothing_goes_on_without_the_package_and_says_so(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-03")
    expecting(house, f"{MULTIPLES}: {{column: number, of: 7}}")
    validate_flow("tiny", house.tell)
    printed = house.text
    assert f"warning: {house.config}/flows/tiny.yaml:" in printed
    assert NOT_THERE in printed
    assert "tiny is valid, 1 warning" in printed
    assert apply_flow(ApplyRequest(flow="tiny"), house.tell) == Exit.FINE
    assert NOT_THERE in house.text
    assert replay_flow(ReplayRequest(flow="tiny"), house.tell) == Exit.FINE
    assert NOT_THERE in house.text
    contract_flow("tiny", None, house.tell)
    assert f"type: {MULTIPLES}" in house.text


def test_what_an_installed_package_cannot_ask_is_refused_by_all(house: House, tmp_path: Path) -> None:
    house.backfill("2013-01-01", "2013-01-02")
    expecting(house, f"{ODD}: {{column: number}}")
    with installed(tmp_path):
        for begin in (
            lambda: run_flow(DAYS, house.tell),
            lambda: check_flow("tiny", None, None, None, "main", False, house.tell),  # noqa: FBT003
            lambda: apply_flow(ApplyRequest(flow="tiny", dry_run=True), house.tell),
            lambda: validate_flow("tiny", house.tell),
        ):
            with pytest.raises(WrongUse, match=r"ExpectOdd`: the judge on Spark cannot ask it"):
                begin()


def test_a_run_without_checks_asks_nobody(house: House) -> None:
    expecting(house, f"{MULTIPLES}: {{column: number, of: 7}}")
    run_flow(RunRequest(flow="tiny", start="2013-01-01", end="2013-01-02", engine="core", check=False), house.tell)
    assert [entry.state for entry in log_state(house.root).commits.values()] == [State.PUBLISHED]
