"""`pulseline publish`: the gate decides, or a person does, whose name and reason stand in the record for good."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from expectations.decided import accepted_words
from expectations.report.calendar import CalendarState
from pipelines.engine.commits.driver import Driver
from pipelines.engine.commits.history import State
from pipelines.engine.commits.instants import NoInstantError, versions_at
from pipelines.engine.commits.readers import log_state
from pipelines.engine.commits.settling import is_settled
from pipelines.engine.tasks.local import CoreEngine
from pipelines.flows.grid import intervals
from pipelines.jobs.commands.check import check_flow
from pipelines.jobs.commands.publish import Answer, answer_of, publish_commit
from pipelines.jobs.commands.report import report_flow
from pipelines.jobs.commands.run import RunRequest, run_flow
from pipelines.jobs.commands.status import show_status
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.settings import load_flow, read_settings
from pipelines.jobs.facts.overview import read_overview
from pipelines.jobs.facts.report import Reported
from pipelines.jobs.runs.backfill import Backfill, run_backfill
from pipelines.jobs.runs.gate import RejectedError, hold
from pipelines.jobs.runs.known import open_run
from tests.jobs.conftest import FLOW

if TYPE_CHECKING:
    from tests.jobs.conftest import House

NOWHERE = """\
  ordered:
    merge: beating
    ports_by: {station: [north, south]}
    expect: [{expect_column_values_to_be_in_set: {column: station, value_set: [nowhere]}}]
"""


@pytest.fixture
def held(house: House) -> House:
    """Give a house whose first day is written and judged, and breaks what its team expects."""
    ordered = "  ordered: {merge: beating, ports_by: {station: [north, south]}}\n"
    (house.config / "flows" / "tiny.yaml").write_text(FLOW.replace(ordered, NOWHERE))
    settings = read_settings()
    flow = load_flow(settings, "tiny")
    base = settings.feeds_base(flow)
    wanted = Backfill(flow=flow, root=house.root, base=base, engine=CoreEngine(), gate=hold)
    run_backfill(wanted, intervals(flow, "2013-01-01", "2013-01-02"))
    assert check_flow("tiny", None, None, 1, run="main", as_json=True, echo=house.tell) == 1
    told = json.loads(house.text.splitlines()[-1])
    assert told["next"].startswith("pulseline publish tiny --commit 1 --reject REASON --by NAME, or, for readers")
    assert told["next"].endswith("pulseline publish tiny --commit 1 --accept REASON --by NAME")
    assert told["question"]["subject"] == "tiny: publish commit 1 (2013-01-01)?"
    assert "* ordered: " in told["question"]["body"]
    assert "`pulseline check tiny --commit 1`" in told["question"]["body"]
    return house


def state(house: House) -> State:
    return log_state(house.root).commits[1].state


def test_the_gate_rejects_what_breaks_an_expectation(held: House) -> None:
    with pytest.raises(RejectedError, match="rows break") as ended:
        publish_commit("tiny", 1, run="main", as_json=False, echo=held.tell)
    assert state(held) is State.REJECTED
    assert str(ended.value).endswith("It is rejected, and stays so; next: pulseline check tiny --commit 1")


def test_a_person_publishes_it_all_the_same_and_the_record_says_who_and_why(held: House) -> None:
    answer = answer_of(" the feed was down ", None, "ann")
    publish_commit("tiny", 1, run="main", as_json=True, echo=held.tell, answer=answer)
    told = json.loads(held.text)
    assert (told["state"], state(held)) == ("published", State.PUBLISHED)
    assert (told["by"], told["reason"]) == ("ann", "the feed was down")
    assert told["verdict"].startswith("accepted by ann: the feed was down; ordered: ")
    assert "rows break" in told["verdict"]
    publish_commit("tiny", 1, run="main", as_json=True, echo=held.tell, answer=answer)
    assert json.loads(held.text)["by"] == "ann", "a second try says what the first has written down"
    publish_commit("tiny", 1, run="main", as_json=True, echo=held.tell, answer=answer_of("fine by me", None, "bob"))
    assert "by" not in json.loads(held.text), "and nobody else's answer"
    publish_commit("tiny", 1, run="main", as_json=False, echo=held.tell)
    assert "is published already: accepted by ann: the feed was down" in held.text
    with pytest.raises(WrongUse, match="readers see commit 1 already"):
        publish_commit("tiny", 1, run="main", as_json=False, echo=held.tell, answer=answer_of(None, "no", "bob"))
    assert state(held) is State.PUBLISHED


def test_the_next_day_waits_until_somebody_has_decided(held: House) -> None:
    with pytest.raises(WrongUse, match=r"commit 1 \(2013-01-01\) must be decided of before another interval is run"):
        run_flow(RunRequest(flow="tiny", start="2013-01-02", end="2013-01-03"), held.tell)
    assert state(held) is State.WRITTEN
    with pytest.raises(RejectedError):
        run_flow(RunRequest(flow="tiny", start="2013-01-01", end="2013-01-02"), held.tell)
    assert [each.state for each in log_state(held.root).commits.values()] == [State.REJECTED] * 2


class Killed(BaseException):
    """The process ends."""


def test_published_again_where_the_first_ended_before_its_tables_followed_they_do(held: House) -> None:
    answer = answer_of("the feed was down", None, "ann")

    def end(*_: object) -> None:
        raise Killed

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Driver, "_settle", end)
        with pytest.raises(Killed):
            publish_commit("tiny", 1, run="main", as_json=False, echo=held.tell, answer=answer)
    assert (state(held), is_settled(log_state(held.root), held.root)) == (State.PUBLISHED, False)
    with pytest.raises(NoInstantError, match="not every table has followed it yet"):
        versions_at(held.root, log_state(held.root), 1)
    publish_commit("tiny", 1, run="main", as_json=False, echo=held.tell)
    assert "is published already: accepted by ann" in held.text
    assert is_settled(log_state(held.root), held.root)


def test_what_a_person_let_pass_stays_red_and_asks_for_nobody(held: House) -> None:
    answer = answer_of("the feed was down", None, "ann")
    publish_commit("tiny", 1, run="main", as_json=False, echo=held.tell, answer=answer)
    for told in ("judged at the gate", "and as a run"):
        overview = read_overview(Reported(known=open_run("tiny", "main")), None)
        (day,) = overview.facts.calendar
        assert (day.state, day.is_accepted) == (CalendarState.RED, True)
        assert day.cause.endswith("; accepted by ann: the feed was down")
        assert overview.facts.next_step == "pulseline run tiny --start 2013-01-02 --end 2013-01-03"
        assert check_flow("tiny", None, None, None, run="main", as_json=False, echo=held.tell) == 1, told
        *_, note, step = held.text.splitlines()
        assert note == "note: readers see what does not hold all the same, accepted by ann: the feed was down"
        assert step == "next: pulseline report tiny"


def test_what_changes_behind_somebody_s_word_asks_for_a_person_again(held: House) -> None:
    answer = answer_of("the feed was down", None, "ann")
    publish_commit("tiny", 1, run="main", as_json=False, echo=held.tell, answer=answer)
    path = next((held.root / "streams" / "punctual").rglob("*.parquet"))
    pq.write_table(pq.read_table(path).slice(1), path)
    assert check_flow("tiny", None, None, None, run="main", as_json=False, echo=held.tell) == 1
    assert "readers see what does not hold all the same" not in held.text
    (day,) = read_overview(Reported(known=open_run("tiny", "main")), None).facts.calendar
    assert (day.state, day.is_accepted) == (CalendarState.RED, False)
    assert "accepted by" not in day.cause
    report_flow("tiny", None, "main", as_json=False, echo=held.tell)
    assert "nothing has been changed since" in held.text.splitlines()[0]


def test_a_reason_is_told_whole_whatever_stands_in_it(held: House) -> None:
    answer = answer_of("the feed was down; agreed with bo; late", None, "ann")
    publish_commit("tiny", 1, run="main", as_json=False, echo=held.tell, answer=answer)
    verdict = log_state(held.root).commits[1].verdict
    wanted = "accepted by ann: the feed was down; agreed with bo; late"
    assert accepted_words(verdict).replace("\N{NO-BREAK SPACE}", " ") == wanted
    publish_commit("tiny", 1, run="main", as_json=False, echo=held.tell, answer=answer)
    assert "is published already: accepted by ann" in held.text


def test_nobody_decides_without_a_name() -> None:
    with pytest.raises(WrongUse, match="--reject needs --by NAME"):
        answer_of(None, "not ours", None)


def test_a_person_rejects_it(held: House) -> None:
    with pytest.raises(RejectedError, match="commit 1 is not published: rejected by bob: not ours; ordered: "):
        publish_commit(
            "tiny",
            1,
            run="main",
            as_json=False,
            echo=held.tell,
            answer=Answer(publish=False, reason="not ours", by="bob"),
        )
    assert state(held) is State.REJECTED
    with pytest.raises(RejectedError, match=r"rejected by bob.* run tiny --start 2013-01-01 .*--hold"):
        publish_commit(
            "tiny", 1, run="main", as_json=False, echo=held.tell, answer=Answer(publish=True, reason="ours", by="ann")
        )
    assert state(held) is State.REJECTED, "told is told"


@pytest.mark.parametrize(
    "words", [("why", "why not", "ann"), (None, None, "ann"), ("why", None, None), (" ", None, "ann"), (None, "x", " ")]
)
def test_a_decision_has_one_answer_a_reason_and_a_name(words: tuple[str | None, str | None, str | None]) -> None:
    with pytest.raises(WrongUse):
        answer_of(*words)
    assert answer_of(None, None, None) is None


def test_a_run_names_the_checks_that_only_warn_and_do_not_hold(house: House) -> None:
    ordered = "  ordered: {merge: beating, ports_by: {station: [north, south]}}\n"
    warned = NOWHERE.replace("[nowhere]}}]", "[nowhere]}, severity: warning}]")
    (house.config / "flows" / "tiny.yaml").write_text(FLOW.replace(ordered, warned))
    run_flow(RunRequest(flow="tiny", start="2013-01-01", end="2013-01-03", engine="core"), house.tell)
    lines = house.text.splitlines()

    (named,) = [line for line in lines if line.startswith("warning: ordered: ")]
    assert named.endswith("does not hold in 2 intervals")
    assert "note: pulseline report tiny has the rows that break them" in lines


def test_each_command_after_a_rejection_leads_to_its_rows_and_from_there_on(house: House) -> None:
    ordered = "  ordered: {merge: beating, ports_by: {station: [north, south]}}\n"
    (house.config / "flows" / "tiny.yaml").write_text(FLOW.replace(ordered, NOWHERE))
    day = RunRequest(flow="tiny", start="2013-01-01", end="2013-01-02", engine="core")
    with pytest.raises(RejectedError):
        run_flow(day, house.tell)
    look, again = "pulseline check tiny --commit 1", "pulseline run tiny --start 2013-01-01 --end 2013-01-02"
    assert house.text.endswith(f"next: {look}")
    show_status("tiny", "main", False, house.tell)  # noqa: FBT003 - the flag of the command
    told = house.text
    assert told.endswith(f"next: {look}")
    assert told.count(f"what to do about it: {look}") == 1
    assert check_flow("tiny", None, None, 1, run="main", as_json=False, echo=house.tell) == 1
    assert house.text.endswith(f"next: {again} once that is put right, or with --hold to decide over it")
    run_flow(replace(day, hold=True), house.tell)
    show_status("tiny", "main", False, house.tell)  # noqa: FBT003 - the flag of the command
    assert house.text.endswith("pulseline check tiny --commit 2  (finishes commit 2)")


@pytest.mark.parametrize("holds", [True, False])
def test_a_run_of_other_days_says_what_becomes_of_a_commit_that_waits_and_what_it_did_not_begin(
    house: House,
    holds: bool,  # noqa: FBT001 - drawn
) -> None:
    if not holds:
        ordered = "  ordered: {merge: beating, ports_by: {station: [north, south]}}\n"
        (house.config / "flows" / "tiny.yaml").write_text(FLOW.replace(ordered, NOWHERE))
    day = RunRequest(flow="tiny", start="2013-01-01", end="2013-01-02", engine="core", hold=True)
    run_flow(day, house.tell)
    assert "waits to be published: this run" not in house.text
    if holds:
        assert check_flow("tiny", None, None, 1, run="main", as_json=False, echo=house.tell) == 0
        show_status("tiny", "main", False, house.tell)  # noqa: FBT003 - the flag of the command
        assert "it holds, and waits to be published; nobody sees it" in house.text
    other = replace(day, start="2013-01-02", end="2013-01-03", hold=False)
    if holds:
        run_flow(other, house.tell)
    else:
        with pytest.raises(RejectedError):
            run_flow(other, house.tell)
    told = house.text
    first = "note: commit 1 (2013-01-01) waits to be published: this run checks it first, and publishes it if it holds"
    assert first in told
    left = "note: 1 interval not begun (2013-01-02): run again, when the one before is published"
    assert (left in told) is not holds
