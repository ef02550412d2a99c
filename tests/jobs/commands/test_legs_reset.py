"""`reset` over a run in legs: each goes back, none beyond what it reads, and going on gives the rows of a calm run."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from pipelines.engine.commits import housekeeping, lease
from pipelines.engine.commits.driver import Driver, open_driver
from pipelines.engine.commits.errors import NoStateError
from pipelines.engine.commits.leg_roots import leg_root
from pipelines.engine.commits.paths import TableAheadError, commits_path
from pipelines.engine.commits.readers import log_state
from pipelines.engine.live.legs import LegAheadError, open_legs
from pipelines.engine.tasks.local import CoreEngine
from pipelines.jobs.commands.abandon import abandon_commit
from pipelines.jobs.commands.check import check_flow
from pipelines.jobs.commands.explain import explain_row
from pipelines.jobs.commands.ledger import LedgerQuery, show_ledger
from pipelines.jobs.commands.report import report_flow
from pipelines.jobs.commands.reset import ResetRequest, reset_run
from pipelines.jobs.commands.status import show_status
from pipelines.jobs.environment.errors import JobError, WrongUse
from pipelines.jobs.runs.readings import land_readings, runner_of
from tests.jobs.regional import LEGS, begun, content, readings, stepped, taken, under_way, wanted

if TYPE_CHECKING:
    from pathlib import Path

    from tests.jobs.conftest import House


def stands(house: House) -> list[int]:
    """Give the last sequence of each leg."""
    tips = [log_state(leg_root(house.root, leg)).tip for leg in LEGS]
    return [tip.upto if tip else 0 for tip in tips]


def reset(house: House, to: str | None, *, dry_run: bool = False) -> dict[str, Any]:
    reset_run(ResetRequest(flow="tiny", to=to, dry_run=dry_run, as_json=True), house.tell)
    told: dict[str, Any] = json.loads(house.text)
    return told


@pytest.mark.parametrize(("to", "then"), [("2", [2, 2, 2]), ("sequence:1", [1, 1, 1]), ("0", [0, 0, 0])])
def test_all_legs_go_back_and_play_again(regional: House, to: str, then: list[int]) -> None:
    calm = content(regional.root)
    dry = reset(regional, to, dry_run=True)
    assert stands(regional) == [3, 3, 3]
    told = reset(regional, to)

    assert stands(regional) == then
    again = reset(regional, to, dry_run=True)
    assert (again["superseded"], [each["superseded"] for each in again["legs"].values()]) == ([], [[], []])
    assert {leg: each["to_sequence"] for leg, each in told["legs"].items()} == {"timed": then[1], "main-2": then[2]}
    assert dry["legs"] == told["legs"]
    assert content(regional.root)["last"] != calm["last"]
    show_status("tiny", "main", True, regional.tell)  # noqa: FBT003 - the command's flag
    behind = [each["rows"] for leg in json.loads(regional.text)["legs"] for each in leg["behind"]]
    assert behind == [0, 0]

    taken(regional, 3, 3, 3)
    assert content(regional.root) == calm


def test_where_all_is_taken_back_nothing_is_said_to_be_published(regional: House) -> None:
    reset_run(ResetRequest(flow="tiny", to="0"), regional.tell)
    assert "goes back to its beginning" in regional.text
    report_flow("tiny", None, "main", False, regional.tell)  # noqa: FBT003 - the command's flag
    assert "Nothing of tiny is published: what was has been taken back." in regional.text
    show_ledger("tiny", LedgerQuery(), 0, "table", "main", regional.tell)
    assert regional.text.endswith("next: pulseline stream tiny")
    with pytest.raises(WrongUse, match="nothing is published in run `main` of tiny yet"):
        explain_row("tiny", "trips@2013-01-01T08:00:00", "main", regional.tell, as_json=False)


def test_a_leg_that_has_not_come_so_far_stays(house: House) -> None:
    taken(house, 3, 2, 1)
    reset_run(ResetRequest(flow="tiny", to="2"), house.tell)
    told = house.text

    assert stands(house) == [2, 2, 1]
    assert "timed stays at sequence 2" in told
    assert "main-2 stays at sequence 1" in told
    taken(house, 3, 3, 3)
    calm = content(house.root)
    reset(house, "0")
    taken(house, 3, 3, 3)
    assert content(house.root) == calm


def test_the_newest_state_takes_nothing_back(house: House) -> None:
    taken(house, 3, 2, 1)
    told = reset(house, None)

    assert stands(house) == [3, 2, 1]
    assert [each["superseded"] for each in told["legs"].values()] == [[], []]


def test_an_epoch_that_a_leg_had_begun_is_given_up(house: House) -> None:
    begun(house)
    told = reset(house, None)

    assert told["legs"]["timed"]["given_up"] == 1
    assert log_state(leg_root(house.root, "timed")).pending is None
    taken(house, 3, 3, 3)


def test_what_was_put_together_is_made_anew(regional: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """The leg that was asked to go back to its second state would have to read files that are no more."""
    calm = content(regional.root)
    monkeypatch.setattr(housekeeping, "FEW", 2)
    timed = leg_root(regional.root, "timed")
    with open_driver(timed, flow="tiny") as driver:
        assert driver.keep_house(every=1)
    behind = leg_root(regional.root, "main-2")
    with open_driver(behind, flow="tiny") as driver:
        driver.reset(driver.next_number(), 1)
    told = reset(regional, "3")

    assert stands(regional) == [1, 1, 1]
    assert told["to_sequence"] == 1
    reset_run(ResetRequest(flow="tiny", dry_run=True), regional.tell)
    taken(regional, 3, 3, 3)
    assert content(regional.root) == calm


def test_a_reset_that_was_cut_short_goes_on_with_the_same_command(
    regional: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    calm, done = content(regional.root), Driver.reset

    def dies_behind_the_first(driver: Driver, *args: Any, **named: Any) -> Any:  # noqa: ANN401 - as it is called
        if driver.root != regional.root:
            raise KeyboardInterrupt
        return done(driver, *args, **named)

    monkeypatch.setattr(Driver, "reset", dies_behind_the_first)
    with pytest.raises(KeyboardInterrupt):
        reset(regional, "1")
    monkeypatch.setattr(Driver, "reset", done)
    assert stands(regional) == [1, 3, 3]
    with pytest.raises(LegAheadError, match=r"pulseline reset FLOW takes .+ back behind it"):
        taken(regional, 3, 3, 3)
    with pytest.raises(JobError, match="leg main ends at sequence 1, and timed has read it up to 3"):
        check_flow("tiny", None, None, None, "main", False, regional.tell)  # noqa: FBT003 - the command's flag
    show_status("tiny", "main", False, regional.tell)  # noqa: FBT003 - as above
    told = regional.text
    assert "or a reset was cut short: pulseline doctor tiny says more" in told
    assert told.endswith("next: pulseline doctor tiny")

    reset(regional, None)
    assert stands(regional) == [1, 1, 1]
    taken(regional, 3, 3, 3)
    assert content(regional.root) == calm


def test_behind_a_reset_that_was_cut_short_nothing_names_what_would_be_refused(house: House) -> None:
    """An epoch that was begun is finished by nobody, for the next start refuses to go on."""
    made, done = stepped(house, (1, 2), (1,), ()), Driver.reset

    def dies(*_: Any, **__: Any) -> Any:  # noqa: ANN401 - as it is called
        raise KeyboardInterrupt

    def dies_behind_the_first(driver: Driver, *args: Any, **named: Any) -> Any:  # noqa: ANN401 - as above
        return (done if driver.root == house.root else dies)(driver, *args, **named)

    with under_way(made) as legs:
        timed = legs.all[LEGS.index("timed")].runner
        timed.engine = dies
        with pytest.raises(KeyboardInterrupt):
            timed.advance(1, 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Driver, "reset", dies_behind_the_first)
        patch.setattr(Driver, "abandon", dies)
        with pytest.raises(KeyboardInterrupt):
            reset(house, "0")

    show_status("tiny", "main", False, house.tell)  # noqa: FBT003 - the command's flag
    told = house.text
    assert "commit 2 of timed " in told
    assert told.endswith("next: pulseline doctor tiny")
    abandon_commit("tiny", "timed:2", "main", False, house.tell)  # noqa: FBT003 - as above
    assert house.text.endswith("pulseline doctor tiny")
    assert set(reset(house, "0")["legs"]) == {"timed", "main-2"}
    assert stands(house) == [0, 0, 0]


def test_behind_an_older_copy_of_a_whole_leg_what_reads_it_goes_back_to_it(house: House, tmp_path: Path) -> None:
    """Whatever state is asked for: a reset that left it beyond what it reads would be one that nobody goes on from."""
    taken(house, 1, 1, 1)
    timed = leg_root(house.root, "timed")
    shutil.copytree(timed, tmp_path / "timed")
    taken(house, 3, 3, 3)
    calm = content(house.root)
    shutil.rmtree(timed)
    shutil.copytree(tmp_path / "timed", timed)
    with pytest.raises(LegAheadError):
        taken(house, 3, 3, 3)

    reset(house, None)
    assert stands(house) == [3, 1, 1]
    taken(house, 3, 3, 3)
    assert content(house.root) == calm


@pytest.mark.parametrize("leg", LEGS)
def test_an_older_copy_of_a_legs_commits_is_told_and_no_leg_is_taken_back(
    house: House, tmp_path: Path, leg: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other legs stand beyond it, which is no reset that was cut short."""
    # The older copy tells of a holder, which is watched before it is succeeded.
    monkeypatch.setattr(lease, "LAPSES_AFTER", 1_000_000)
    commits = commits_path(leg_root(house.root, leg))
    taken(house, 1, 1, 1)
    shutil.copytree(commits, tmp_path / "older")
    taken(house, 3, 3, 3)
    calm = content(house.root)
    shutil.move(commits, tmp_path / "newer")
    shutil.copytree(tmp_path / "older", commits)
    with pytest.raises(TableAheadError, match="put `commits` back out of a copy of the run's folder"):
        taken(house, 3, 3, 3)
    with pytest.raises(TableAheadError, match="put `commits` back out of a copy of the run's folder"):
        reset(house, "sequence:1")

    shutil.rmtree(commits)
    shutil.move(tmp_path / "newer", commits)
    assert stands(house) == [3, 3, 3]
    taken(house, 3, 3, 3)
    assert content(house.root) == calm


def test_an_epoch_that_an_older_copy_has_begun_is_not_finished_a_second_time(house: House, tmp_path: Path) -> None:
    """What it was to write is published, and more behind it."""
    timed = leg_root(house.root, "timed")
    begun(house)
    shutil.copytree(commits_path(timed), tmp_path / "older")
    taken(house, 3, 3, 3)
    calm, files = content(house.root), sorted(timed.rglob("*.parquet"))
    shutil.move(commits_path(timed), tmp_path / "newer")
    shutil.copytree(tmp_path / "older", commits_path(timed))
    with pytest.raises(TableAheadError, match="put `commits` back out of a copy of the run's folder"):
        taken(house, 3, 3, 3)

    shutil.rmtree(commits_path(timed))
    shutil.move(tmp_path / "newer", commits_path(timed))
    assert sorted(timed.rglob("*.parquet")) == files
    taken(house, 3, 3, 3)
    assert content(house.root) == calm


def test_what_an_overtaken_driver_published_last_is_no_older_copy(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was stopped on its last step and is woken while the one who took over looks at the tables."""
    begun(house)
    made, agree = wanted(house), Driver.agree
    with open_driver(made.root, flow="tiny") as driver:
        land_readings(made, *readings(made))
        with open_legs(runner_of(made, driver), made.root, lambda _: CoreEngine()) as legs:
            runner = legs.others[0].runner

            def late(_: Driver, number: int | None = None) -> None:
                monkeypatch.setattr(Driver, "agree", agree)
                assert number == 1
                assert runner.finish_pending() is not None
                raise TableAheadError("timed.beating", 0, 1)

            monkeypatch.setattr(Driver, "agree", late)
            legs.begin(lambda _: None)
    assert Driver.agree is agree
    assert log_state(leg_root(house.root, "timed")).pending is None
    taken(house, 3, 3, 3)
    assert stands(house) == [3, 3, 3]


def test_what_is_no_state_is_refused_and_nothing_is_done(regional: House) -> None:
    with pytest.raises(NoStateError):
        reset(regional, "99")
    assert stands(regional) == [3, 3, 3]
