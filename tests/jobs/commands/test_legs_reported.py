"""`report` over a run in legs: rows, commits and accounts of all of them, and the drawing with live numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.jobs.commands.metrics import show_metrics
from pipelines.jobs.commands.report import report_flow
from pipelines.jobs.environment.settings import read_settings
from pipelines.jobs.facts.report import Reported, read_facts
from pipelines.jobs.runs.known import open_run
from tests.jobs.regional import taken, under_way, wanted

if TYPE_CHECKING:
    from expectations.report import ReportFacts
    from pipelines.engine.live.legs import Legs
    from tests.jobs.conftest import House


def facts(run: str = "main") -> ReportFacts:
    return read_facts(Reported(known=open_run("tiny", run)), None)


def test_the_page_has_rows_commits_and_accounts_of_every_leg(regional: House) -> None:
    regional.backfill("2013-01-01", "2013-01-04", run="piece")
    found, piece = facts(), facts("piece")

    assert {each.name: each.counts for each in found.streams} == {each.name: each.counts for each in piece.streams}
    assert found.accounts == piece.accounts
    assert [each.missing for each in found.accounts] == [0, 0, 0, 0]
    assert found.ledger is not None
    assert piece.ledger is not None
    assert found.ledger.num_rows == piece.ledger.num_rows
    assert [each.leg for each in found.commits] == ["main"] * 3 + ["timed"] * 3 + ["main-2"] * 3
    assert {each.leg for each in piece.commits} == {""}
    assert piece.legs == ()


def test_a_leg_that_is_behind_says_by_how_much(house: House) -> None:
    taken(house, 2, 1, 0)
    main, timed, last = facts().legs

    assert (main.sequence, main.queues, main.most) == (2, (), 1_000_000)
    assert (timed.sequence, timed.most, timed.queues[0].crossing) == (1, 5, ("some",))
    assert timed.queues[0].rows > 5
    assert timed.queues[0].seconds >= 0
    assert (last.sequence, last.upto, last.region) == (0, None, "main")
    assert [(each.writer, each.rows > 0) for each in last.queues] == [("timed", True)]


def test_who_waits_for_whom_is_told_while_somebody_drives_the_run(house: House) -> None:
    with under_way(wanted(house)) as legs:
        legs.advance_main(0, 1)
        note(legs)
        waiting = facts().legs[0].waits
        assert 'pulseline_leg_waits{flow="tiny",leg="main",run="main"} 1.0' in metrics_told(house)
    assert waiting is not None
    assert (waiting.leg, waiting.most) == ("timed", 5)
    assert facts().legs[0].waits is None
    assert 'pulseline_leg_waits{flow="tiny",leg="main",run="main"} 0.0' in metrics_told(house)


def metrics_told(house: House) -> str:
    show_metrics("tiny", "main", None, house.tell)
    return house.text


def note(legs: Legs) -> None:
    assert legs.main.full is not None
    legs._note(legs.main)


def test_the_command_writes_the_page(regional: House) -> None:
    report_flow("tiny", None, "main", False, regional.tell)  # noqa: FBT003 - the command's flag

    page = (read_settings().pages("tiny", "main") / "index.html").read_text()
    assert ">Regions<" in page
    assert "main-2 <span" in page
    report_flow("tiny", "2013-01-02", "main", False, regional.tell)  # noqa: FBT003 - as above
