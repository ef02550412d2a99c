"""`pulseline plan` and `run --plan`: what is not as it should be is named with its cause, and run, and nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from typer.testing import CliRunner

from dags.tab.overview import overview_page
from dags.tab.plan import plan_page
from pipelines.cli import app
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.quality import Quality, write_quality
from pipelines.engine.commits.readers import log_state
from pipelines.jobs.commands.doctor import examine
from pipelines.jobs.commands.plan import run_plan, show_plan
from pipelines.jobs.commands.run import RunRequest, run_flow
from pipelines.jobs.commands.status import show_status
from pipelines.jobs.environment.errors import JobError, WrongUse
from pipelines.jobs.facts.overview import read_overview
from pipelines.jobs.facts.planning import PlanRequest
from pipelines.jobs.facts.report import Reported
from pipelines.jobs.runs.gate import RejectedError, hold
from pipelines.jobs.runs.known import open_run
from tests.jobs.commands.test_status_live import Stage, hours
from tests.jobs.conftest import trips

if TYPE_CHECKING:
    from pipelines.engine.commits.driver import Driver
    from pipelines.engine.commits.history import Entry
    from tests.jobs.conftest import House

BROKEN = "ordered: 1 row breaks `it is so`"


@pytest.fixture
def three(house: House) -> House:
    """Give a flow whose sources hold three days, of which two are published."""
    file = house.config / "flows" / "tiny.yaml"
    file.write_text(file.read_text() + "starts: 2013-01-01\nends: 2013-01-04\n")
    house.backfill("2013-01-01", "2013-01-03")
    return house


def states(house: House) -> list[str]:
    """Give the state of each interval."""
    house.printed.clear()
    show_plan(PlanRequest(flow="tiny", as_json=True), house.tell)
    *each, summary = [json.loads(line) for line in house.text.splitlines()]
    assert summary["left"] == sum(row["state"] != "published" for row in each)
    return [row["state"] for row in each]


def ran(house: House) -> list[int]:
    """Run the plan; give the numbers of the commits that readers see."""
    house.printed.clear()
    run_plan(RunRequest(flow="tiny", start="", end="", engine="core", check=False), house.tell)
    return [entry.commit for entry in log_state(house.root).published]


def test_what_is_not_run_yet_is_planned_and_run(three: House) -> None:
    assert states(three) == ["published", "published", "planned"]
    show_plan(PlanRequest(flow="tiny"), three.tell)
    lines = three.text.splitlines()
    assert lines[0] == "published  2013-01-01 until 2013-01-03  (2 intervals)"
    assert lines[1] == "planned    2013-01-03  (1 interval)"
    assert lines[2].startswith("running would run 1 interval of 3, less than a second of work ")
    assert lines[3] == "next: pulseline run tiny --plan"
    assert ran(three) == [1, 2, 3]
    assert three.text.splitlines()[-1] == "plan: 1 interval ran; 2 stayed as they were"
    assert ran(three) == [1, 2, 3]


@pytest.mark.parametrize("harm", ["a file", "others"])
def test_a_plan_over_rows_that_are_gone_says_so_and_runs_nothing(three: House, harm: str) -> None:
    table = three.root / "streams" / "punctual"
    if harm == "a file":
        for file in (table / "_written").glob("*.parquet"):
            file.unlink()
    else:
        DeltaTable(str(table)).delete("number = 1")
    show_plan(PlanRequest(flow="tiny"), three.tell)
    *_, told, then = three.text.splitlines()
    assert told.startswith("damaged: ")
    assert then == "next: pulseline doctor tiny"
    show_plan(PlanRequest(flow="tiny", as_json=True), three.tell)
    assert json.loads(three.text.splitlines()[-1])["damaged"]
    with pytest.raises(JobError, match=r"must be in the tables and the log of the run.*pulseline doctor"):
        ran(three)
    examine("tiny", "main", True, False, three.tell)  # noqa: FBT003 - the command's flags
    assert ran(three) == [1, 2, 3]


def test_days_that_would_come_out_as_they_stand_and_do_not_hold_are_told(house: House) -> None:
    file = house.config / "flows" / "tiny.yaml"
    file.write_text(file.read_text() + "starts: 2013-01-01\nends: 2013-01-03\n")
    house.backfill("2013-01-01", "2013-01-03")
    second = log_state(house.root).published[1]
    found = Quality(
        expectation="bound",
        table="punctual",
        severity="blocking",
        sentence="All are small.",
        remedy="",
        held=False,
        looked_at=9,
        unexpected=1,
        rows=({"commit": second.commit},),
        start=second.span.start,
        end=second.span.end,
        commit=0,
        at=second.at + 1,
    )
    write_quality(house.root, [found])
    show_plan(PlanRequest(flow="tiny"), house.tell)
    _, summary, red, then = house.text.splitlines()
    assert summary == "2 intervals would come out as they stand, which does not hold; nothing to run"
    assert red == "red: Wed 2 Jan 2013 is red: punctual: All are small.: pulseline check tiny"
    assert then == "next: pulseline check tiny"
    show_plan(PlanRequest(flow="tiny", as_json=True), house.tell)
    assert json.loads(house.text.splitlines()[-1])["red"] == [red.removeprefix("red: ")]
    write_quality(house.root, [replace(found, held=True, unexpected=0, rows=(), at=second.at + 2)])
    show_plan(PlanRequest(flow="tiny"), house.tell)
    assert "2 intervals as they should be; nothing to run" in house.text


def test_a_day_whose_commit_was_begun_is_not_finished_and_running_the_plan_finishes_it(
    three: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise InterruptedError

    again = RunRequest(flow="tiny", start="2013-01-02", end="2013-01-03", engine="core", check=False)
    with monkeypatch.context() as patch:
        patch.setattr("pipelines.engine.tasks.commit_work.run_stages", die)
        with pytest.raises(InterruptedError):
            run_flow(again, three.tell)
    assert states(three) == ["published", "stale", "planned"]
    show_plan(PlanRequest(flow="tiny"), three.tell)
    assert "stale      2013-01-02  (1 interval)  commit 3 in its place is not finished" in three.text
    three.printed.clear()
    run_plan(RunRequest(flow="tiny", start="", end="2013-01-03", engine="core", check=False), three.tell)
    assert three.text.splitlines()[-1] == "plan: 1 interval ran; 1 stayed as they were"
    assert log_state(three.root).pending is None
    assert states(three) == ["published", "published", "planned"]


def feed(house: House, rows: pa.Table, **how: int) -> None:
    """Write the flow's feed anew."""
    pq.write_table(rows, house.config / "flows" / "trips.parquet", **how)


def test_a_late_row_of_a_published_day_is_noticed_and_what_follows_is_named_at_once(three: House) -> None:
    ran(three)
    feed(three, pa.concat_tables([trips(), trips().slice(0, 1)]))
    assert states(three) == ["stale"] * 3
    show_plan(PlanRequest(flow="tiny"), three.tell)
    first, follow, *_ = three.text.splitlines()
    assert first.startswith("stale      2013-01-01  (1 interval)  what arrives of ")
    assert first.endswith("is not what landed: a late or changed file")
    assert follow.endswith("(2 intervals)  what comes before it is run again")
    ran(three)
    assert states(three) == ["published"] * 3


def test_a_file_that_changed_and_whose_rows_did_not_is_no_cause(three: House) -> None:
    ran(three)
    feed(three, trips(), row_group_size=7)
    assert states(three) == ["published"] * 3


def test_a_run_stops_where_the_carry_comes_out_as_before(three: House) -> None:
    ran(three)
    rows = trips()
    place = rows.schema.get_field_index("weight")
    feed(three, rows.set_column(place, "weight", pa.array([7.0, *rows["weight"].to_pylist()[1:]])))
    assert states(three) == ["stale"] * 3
    assert ran(three) == [4, 2, 3]
    said = three.text.splitlines()[-1]
    assert said == "plan: 1 interval ran; 2 intervals stood, for the carry came out as before; 0 stayed as they were"
    assert states(three) == ["published"] * 3


@pytest.mark.parametrize(("before", "after"), [("buckets: 2", "buckets: 5"), ("buckets: 2", "buckets: 2\nevery: 12h")])
def test_what_no_row_depends_on_makes_no_day_stale(three: House, before: str, after: str) -> None:
    ran(three)
    flow = three.config / "flows" / "tiny.yaml"
    assert before in flow.read_text()
    flow.write_text(flow.read_text().replace(before, after))
    assert states(three) == ["published"] * 3


def test_a_changed_flow_makes_days_stale_and_says_what_changed(three: House) -> None:
    ran(three)
    flow = three.config / "flows" / "tiny.yaml"
    flow.write_text(flow.read_text().replace("delay: 1h", "delay: 2h"))
    assert states(three) == ["stale"] * 3
    show_plan(PlanRequest(flow="tiny"), three.tell)
    assert "the flow has changed since: punctual" in three.text or "delay 1h → 2h" in three.text
    ran(three)
    assert states(three) == ["published"] * 3


def test_days_before_the_first_are_missing(house: House) -> None:
    house.backfill("2013-01-02", "2013-01-03")
    file = house.config / "flows" / "tiny.yaml"
    file.write_text(file.read_text() + "starts: 2013-01-01\n")
    assert states(house) == ["missing", "stale"]
    ran(house)
    assert states(house) == ["published", "published"]


def test_a_day_that_waits_or_was_rejected_behind_what_is_published_is_named_though_nothing_says_where_days_end(
    house: House,
) -> None:
    house.backfill("2013-01-01", "2013-01-03")
    assert states(house) == ["published", "published"]
    house.backfill("2013-01-03", "2013-01-04", gate=hold)
    assert states(house) == ["published", "published", "held"]
    show_plan(PlanRequest(flow="tiny"), house.tell)
    assert house.text.splitlines()[-1] == (
        "next: pulseline check tiny --commit 3, then pulseline publish tiny --commit 3"
    )
    with open_driver(house.root, flow="tiny") as driver:
        driver.reject(3, verdict="not ours")
    assert states(house) == ["published", "published", "red"]


def test_days_or_a_plan_must_be_asked_for(house: House) -> None:
    done = CliRunner().invoke(app, ["run", "tiny", "--start", "2013-01-01", "--engine", "core"])
    assert (done.exit_code, house.root.exists()) == (2, False)
    assert "--end must be given, or --plan for what is missing, stale or red" in done.output


def test_a_first_day_that_was_rejected_is_named_and_led_to(house: House) -> None:
    with pytest.raises(RejectedError):
        house.backfill("2013-01-02", "2013-01-03", gate=rejecting)
    assert states(house) == ["red"]
    show_plan(PlanRequest(flow="tiny"), house.tell)
    day, would, then = house.text.splitlines()
    assert day.startswith("red        2013-01-02  (1 interval)")
    assert would.startswith("running would run 1 interval of 1")
    assert then.startswith("next: pulseline check tiny --commit 1, which shows what broke it")


def accepting(driver: Driver, entry: Entry) -> Entry:
    """Publish a commit as a person does who lets pass what it breaks."""
    return driver.publish(entry.commit, verdict=f"accepted by ann: known; so far; {BROKEN}")


def rejecting(driver: Driver, entry: Entry) -> Entry:
    """Reject a commit as its gate does."""
    driver.reject(entry.commit, verdict=BROKEN)
    raise RejectedError(entry.commit, BROKEN)


def calendar() -> list[str]:
    """Give the state of each day as the site and the overview have it."""
    found = read_overview(Reported(known=open_run("tiny", "main")), None).facts.calendar
    return [day.state.value for day in found]


def test_what_a_person_accepted_stands_though_the_same_rows_were_rejected_again(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-02")
    house.backfill("2013-01-02", "2013-01-03", gate=accepting)
    with pytest.raises(RejectedError):
        house.backfill("2013-01-02", "2013-01-03", gate=rejecting)
    house.backfill("2013-01-03", "2013-01-04")
    assert states(house) == calendar() == ["published"] * 3
    show_status("tiny", "main", as_json=True, tell=house.tell)
    told = json.loads(house.text)
    assert (told["stale"], told["rejected"]) == ([], None)
    assert told["next"] == "pulseline run tiny --start 2013-01-04 --end 2013-01-05"


def test_what_a_person_accepted_is_asked_again_where_it_has_to_be_made_anew(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-02")
    house.backfill("2013-01-02", "2013-01-03", gate=accepting)
    feed(house, pa.concat_tables([trips().slice(0, 10), trips().slice(11)]))
    house.backfill("2013-01-01", "2013-01-02")
    assert states(house) == ["published", "stale"]
    with pytest.raises(RejectedError):
        house.backfill("2013-01-02", "2013-01-03", gate=rejecting)
    assert states(house) == ["published", "red"], "running it would be refused again"
    show_plan(PlanRequest(flow="tiny"), house.tell)
    assert house.text.splitlines()[-1].startswith("next: pulseline check tiny --commit 4, which shows what broke it")
    show_status("tiny", "main", as_json=True, tell=house.tell)
    assert json.loads(house.text)["rejected"]["commit"] == 4


def test_nothing_follows_a_day_whose_same_rows_were_rejected_and_the_plan_says_what_to_look_at(three: House) -> None:
    ran(three)
    with pytest.raises(RejectedError):
        three.backfill("2013-01-02", "2013-01-03", gate=rejecting)
    assert states(three) == ["published", "red", "published"]
    assert calendar() == ["published", "rejected", "published"]
    show_plan(PlanRequest(flow="tiny"), three.tell)
    *_, summary, step = three.text.splitlines()
    assert summary.startswith("running would run 1 interval of 3")
    assert step == (
        "next: pulseline check tiny --commit 4, which shows what broke it and how to decide of it; once that is put "
        "right, pulseline run tiny --plan"
    )


def test_a_day_that_was_rejected_with_other_rows_is_told_with_what_changed_and_is_followed(three: House) -> None:
    ran(three)
    feed(three, pa.concat_tables([trips().slice(0, 14), trips().slice(15)]))
    with pytest.raises(RejectedError):
        three.backfill("2013-01-02", "2013-01-03", gate=rejecting)
    assert states(three) == ["published", "red", "stale"]
    assert calendar() == ["published", "rejected", "stale"]
    show_plan(PlanRequest(flow="tiny"), three.tell)
    assert (
        f"commit 4 was rejected: {BROKEN}; commit 2 stands, and what arrives of trips is not what landed" in three.text
    )


def test_of_several_parts_the_last_alone_waits_and_one_line_of_json_has_the_commits_of_all(three: House) -> None:
    ran(three)
    feed(three, trips().slice(3))
    three.printed.clear()
    wanted = RunRequest(flow="tiny", start="", end="", engine="core", check=False, hold=True, as_json=True)
    run_plan(wanted, three.tell)
    told = [json.loads(line) for line in three.text.splitlines() if line.startswith("{")]
    assert len(told) == 1
    assert [(each["commit"], each["state"]) for each in told[0]["commits"]] == [
        (4, "published"),
        (5, "published"),
        (6, "written"),
    ]
    assert "pulseline publish tiny --commit 6" in told[0]["next"]


def test_a_run_that_streams_has_no_plan(house: House) -> None:
    Stage(house).play(hours(5, 9))
    told = "a plan is of intervals that .pulseline run. makes; run .main. of tiny streams: see pulseline status tiny"
    with pytest.raises(WrongUse, match=told):
        show_plan(PlanRequest(flow="tiny"), house.tell)


def page(house: House) -> str:
    """Give the page **Plan** of the flow, as Airflow shows it."""
    return plan_page("tiny", "backfill_tiny", house.home / "reports")


def test_the_page_says_what_the_command_says_and_leads_to_the_pages_that_there_are(three: House) -> None:
    feed(three, pa.concat_tables([trips(), trips().slice(0, 1)]))
    report = three.home / "reports" / "tiny" / "main" / "2013-01-02.html"
    report.parent.mkdir(parents=True)
    report.touch()
    shown = page(three)
    show_plan(PlanRequest(flow="tiny"), three.tell)
    *_, summary, step = three.text.splitlines()
    assert f"R{summary[1:]}." in shown
    assert step.removeprefix("next: ") in shown
    assert "is not what landed: a late or changed file" in shown
    assert 'href="pages/main/2013-01-02.html"' in shown
    assert "pages/main/2013-01-01.html" not in shown


def test_the_page_of_a_flow_that_never_ran_and_does_not_end_says_what_to_do(house: House) -> None:
    assert "nothing is published, and the flow does not say what its sources hold" in page(house).lower()
    assert ran(house) == []
    said, step, count = house.text.splitlines()
    assert said == "nothing is published, and the flow does not say what its sources hold: give --start and --end"
    assert step == "next: pulseline flows validate tiny, which says in which days there are rows"
    assert count == "plan: 0 intervals ran; 0 stayed as they were"


def test_hours_are_told_by_their_days(house: House) -> None:
    file = house.config / "flows" / "tiny.yaml"
    file.write_text(file.read_text() + "every: 6h\nstarts: 2013-01-01\nends: 2013-01-04\n")
    house.backfill("2013-01-01", "2013-01-02T12:00:00-05:00")
    shown = page(house)
    assert shown.count('<span class="day planned" title="Wed 2 Jan 2013: planned, 4 intervals') == 1
    assert "Running would run 6 intervals of 12" in shown


def test_a_flow_that_is_called_otherwise_than_its_file_has_its_page(three: House) -> None:
    file = three.config / "flows" / "tiny.yaml"
    file.rename(file.with_stem("trips_of_two"))
    assert "Next: <code>pulseline run trips_of_two --plan" in page(three)


def test_the_overview_leads_to_the_plan_of_a_flow_whose_backfill_may_be_seen(three: House) -> None:
    reports = three.home / "reports"
    assert 'href="dags/backfill_tiny/plan">plan<' in overview_page({"backfill_tiny", "stream_tiny"}, reports)
    assert "/plan" not in overview_page({"stream_tiny"}, reports)


def test_a_plan_and_a_refusal_with_other_parameters_name_what_takes_them(house: House) -> None:
    """Without them the next command would be of the flow as it was, and do nothing."""
    file = house.config / "flows" / "tiny.yaml"
    text = file.read_text()
    assert "delay: 1h" in text
    file.write_text(text.replace("delay: 1h", 'delay: "${wait}"') + "parameters: {wait: 1h}\n")
    house.backfill("2013-01-01", "2013-01-02")

    show_plan(PlanRequest(flow="tiny", params=("wait=2h",)), house.tell)
    assert house.text.splitlines()[-1] == "next: pulseline run tiny --plan --param wait=2h"
    wanted = RunRequest(
        flow="tiny", start="2013-01-02", end="2013-01-03", engine="core", check=False, params=("wait=2h",)
    )
    with pytest.raises(WrongUse, match=r"pulseline apply tiny --param wait=2h takes it .* parameters included; or, "):
        run_flow(wanted, house.tell)
