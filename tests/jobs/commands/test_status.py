"""`status`: where a run stands, what is left to do, and what to type for it."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import shutil
from dataclasses import replace
from io import StringIO
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from pipelines.engine.columnar.clock import wall_now
from pipelines.engine.commits import lease as leases
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.history import LogState, Span, State
from pipelines.engine.commits.instants import NoInstantError, versions_at
from pipelines.engine.commits.lease import Renewal, write_renewal
from pipelines.engine.commits.log import CommitLog
from pipelines.engine.commits.quality import Quality, write_quality
from pipelines.engine.commits.readers import log_state
from pipelines.jobs.commands import stream
from pipelines.jobs.commands.apply import ApplyRequest, apply_flow
from pipelines.jobs.commands.check import check_flow
from pipelines.jobs.commands.plan import show_plan
from pipelines.jobs.commands.report import report_flow
from pipelines.jobs.commands.run import RunRequest as Run
from pipelines.jobs.commands.run import run_flow
from pipelines.jobs.commands.show import show_stream
from pipelines.jobs.commands.status import lease_text, show_all, show_status
from pipelines.jobs.commands.tables import TablesQuery, tell_tables
from pipelines.jobs.environment.errors import JobError, WrongUse
from pipelines.jobs.environment.settings import read_settings
from pipelines.jobs.facts import planning
from pipelines.jobs.facts.overview import read_overview
from pipelines.jobs.facts.planning import PlanRequest
from pipelines.jobs.facts.report import Reported
from pipelines.jobs.facts.status import status_of
from pipelines.jobs.runs.known import KnownRun, open_run
from pipelines.jobs.text.moments import utc_text
from tests.jobs.conftest import copied

if TYPE_CHECKING:
    from pathlib import Path

    from tests.jobs.conftest import House

DAYS = [int(dt.datetime(2013, 1, day, 5, tzinfo=dt.UTC).timestamp()) * 1_000_000 for day in (1, 2, 3, 4)]


def status(house: House, run: str = "main") -> str:
    show_status("tiny", run, as_json=False, tell=house.tell)
    return house.text


def facts(house: House) -> dict[str, Any]:
    show_status("tiny", "main", as_json=True, tell=house.tell)
    found: dict[str, Any] = json.loads(house.text)
    return found


def begin(house: House, *, written: bool) -> None:
    """Leave a commit of the third day pending, as a driver that died would."""
    log = CommitLog(house.root).state()
    with open_driver(house.root, flow="tiny") as driver:
        tip = log.published[-1]
        plan = json.loads(log.commits[tip.commit].plan or "{}")
        driver.intent(driver.next_number(), Span(DAYS[2], DAYS[3]), tip.commit, [3], plan, "print")
        if written:
            driver.written(tip.commit + 1, {}, {}, {}, "hash", {})


def test_a_run_that_is_complete_says_what_is_published_and_how_to_go_on(ran: House) -> None:
    text = status(ran)
    assert "published  2013-01-01 until 2013-01-04 (America/New_York), in 3 commits (number 1 to 3)" in text
    assert "landed: 35 rows of trips" in text
    assert "pending    nothing" in text
    assert "stale      nothing" in text
    assert "lease      free; process " in text
    assert text.endswith("next: pulseline run tiny --start 2013-01-04 --end 2013-01-05")


def test_each_stream_has_its_rows_by_kind_and_its_newest_row(ran: House) -> None:
    found = facts(ran)
    beating = found["streams"]["beating"]
    assert beating["kinds"]["data"] == 35
    assert beating["rows"] == sum(beating["kinds"].values())
    assert beating["newest"]["arrival_at"] == "2013-01-04T03:01:00.000000Z"
    assert beating["newest_cti"] is None
    punctual = found["streams"]["punctual"]
    assert punctual["newest_cti"]["event_at"] <= punctual["newest"]["event_at"]
    assert found["streams"]["punctual.diverted"]["rows"] == 1
    assert found["ledger"]["rows"] == sum(line["rows"] for line in found["ledger"]["lines"])
    assert {line["reason"] for line in found["ledger"]["lines"]} == {"late", "no_arrival", "unknown_port"}


def test_the_last_commits_have_their_durations(ran: House) -> None:
    commits = facts(ran)["commits"]
    assert [row["commit"] for row in commits] == [1, 2, 3]
    assert all(row["seconds"] * 1000 >= row["durations"]["tasks_ms"] for row in commits)
    assert commits[0]["start"] == "2013-01-01T05:00:00.000000Z"
    assert commits[1]["parent"] == 1
    text = status(ran)
    assert "2013-01-02  published" in text
    assert " UTC" in text


def test_json_is_one_object_with_everything(ran: House) -> None:
    show_status("tiny", "main", as_json=True, tell=ran.tell)
    assert len(ran.printed) == 1
    assert "\n" not in ran.printed[0]
    expected = {"flow", "run", "root", "timezone", "now_at", "published", "landed", "streams", "ledger", "broken"}
    assert set(json.loads(ran.text)) == expected | {
        "legs",
        "lease",
        "pending",
        "also_pending",
        "stopped",
        "rejected",
        "stale",
        "unread",
        "red",
        "edited",
        "other_flow",
        "unsettled",
        "live",
        "replay",
        "history",
        "awaited",
        "damaged",
        "promises",
        "sources",
        "commits",
        "next",
    }


@pytest.mark.parametrize(("severity", "held"), [("blocking", False), ("blocking", True), ("warning", False)])
def test_published_days_that_do_not_hold_are_told_with_what_shows_why(
    ran: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, severity: str, *, held: bool
) -> None:
    ran = copied(ran, tmp_path / "own", monkeypatch)
    _, second, third = log_state(ran.root).published
    rows = ({"commit": second.commit}, {"commit": third.commit})
    found = Quality(
        expectation="bound",
        table="punctual",
        severity=severity,
        sentence="All are small.",
        remedy="",
        held=held,
        looked_at=9,
        unexpected=0 if held else 2,
        rows=() if held else rows,
        start=second.span.start,
        end=third.span.end,
        commit=0,
        at=third.at + 1,
    )
    write_quality(ran.root, [found])
    told = [line for line in status(ran).splitlines() if line.startswith("red ")]
    is_red = severity == "blocking" and not held
    red = "red        Wed 2 Jan 2013 and 1 more day are red: punctual: All are small.: pulseline check tiny"
    assert told == ([red] if is_red else [])
    assert bool(facts(ran)["red"]) == is_red


def test_a_file_that_was_changed_and_not_applied_is_told_with_what_to_do(
    ran: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = copied(ran, tmp_path / "own", monkeypatch)
    file = ran.config / "flows" / "tiny.yaml"
    before = file.read_text()
    assert facts(ran)["edited"] is None
    file.write_text(before.replace("interval: 6h", "interval: 2h"))
    assert file.read_text() != before
    told = facts(ran)
    assert told["edited"]
    assert told["next"] == "pulseline apply tiny --dry-run"
    assert "the run does not go on with it" in status(ran)
    file.write_text(before.replace("interval: 6h", "intervall: 6h"))
    assert facts(ran)["edited"] is None


def test_before_the_first_run_it_says_what_to_type(house: House) -> None:
    assert "nothing was run yet; next: pulseline run tiny --start YYYY-MM-DD --end YYYY-MM-DD" in status(house)
    assert facts(house)["published"]["commits"] == 0
    assert not house.root.exists()


@pytest.mark.parametrize(
    ("written", "left", "step"),
    [
        (False, "its tasks may be half done", "run tiny --start 2013-01-03 --end 2013-01-04"),
        (True, "it waits for its check; nobody sees it", "check tiny --commit 3"),
    ],
)
def test_a_pending_commit_is_named_with_what_comes_next(house: House, written: bool, left: str, step: str) -> None:  # noqa: FBT001 - a parameter
    house.backfill("2013-01-01", "2013-01-03")
    begin(house, written=written)
    text = status(house)
    assert f"commit 3 (2013-01-03) at {'written' if written else 'intent'} since " in text
    assert left in text
    assert text.endswith(f"next: pulseline {step}  (finishes commit 3)")
    assert facts(house)["pending"]["start"] == "2013-01-03T05:00:00.000000Z"


def test_a_pending_first_commit_has_no_table_of_streams(house: House) -> None:
    with open_driver(house.root, flow="tiny") as driver:
        driver.intent(1, Span(DAYS[0], DAYS[1]), 0, [1], {}, "print")
    text = status(house)
    assert "published  nothing yet" in text
    assert "(finishes commit 1)" in text


def test_stale_intervals_are_named_with_the_command_that_runs_them_again(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-04")
    feed = house.config / "flows" / "trips.parquet"
    rows = pq.read_table(feed)
    pq.write_table(rows.slice(1), feed)
    house.backfill("2013-01-01", "2013-01-02")
    stale = facts(house)["stale"]
    assert [each["commits"] for each in stale] == [[2], [3]]
    text = status(house)
    assert "stale      2013-01-02 (began from what was replaced since): pulseline run tiny" in text
    assert "\n           2013-01-03 (what comes before it is run again)\n" in text
    assert "next: pulseline run tiny --start 2013-01-02 --end 2013-01-03  (then ask status again" in text
    assert "superseded by 4" in text
    assert "published, replaces 1" in text


def test_a_stream_that_goes_on_from_stale_days_says_so(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.backfill("2013-01-01", "2013-01-04")
    monkeypatch.setattr(stream, "engine_named", lambda *_: StringIO())  # something to close
    monkeypatch.setattr(stream, "run_live", lambda _live, _: stream.Figures())
    wanted = stream.StreamRequest(flow="tiny", start="2013-01-01", end="2013-01-05", after_backfill=True)
    stream.stream_flow(wanted, house.tell)
    assert "note: " not in house.text
    feed = house.config / "flows" / "trips.parquet"
    pq.write_table(pq.read_table(feed).slice(1), feed)
    house.backfill("2013-01-01", "2013-01-02")
    stream.stream_flow(wanted, house.tell)
    said = "note: 1 published commit began from what was replaced since, and this stream goes on from what they made"
    assert f"{said}: pulseline status tiny names what makes them anew" in house.text


@pytest.mark.parametrize(
    ("is_flow", "why"), [(True, "the flow has changed since: "), (False, "what arrives of trips ")]
)
def test_what_is_stale_is_what_the_plan_and_the_site_call_so(house: House, is_flow: bool, why: str) -> None:  # noqa: FBT001 - a parameter
    house.backfill("2013-01-01", "2013-01-04")
    flows = house.config / "flows"
    if is_flow:
        file = flows / "tiny.yaml"
        file.write_text(file.read_text().replace("delay: 1h", "delay: 2h"))
        apply_flow(ApplyRequest(flow="tiny"), house.tell)
    else:
        rows = pq.read_table(flows / "trips.parquet")
        pq.write_table(rows.slice(1), flows / "trips.parquet")
    house.printed.clear()
    found = facts(house)
    assert [number for each in found["stale"] for number in each["commits"]] == [1, 2, 3]
    assert found["stale"][0]["why"].startswith(why)
    assert found["next"] == "pulseline run tiny --plan"
    assert f"\nstale      2013-01-01{' until 2013-01-04' if is_flow else ''} ({why}" in status(house)
    show_plan(PlanRequest(flow="tiny", as_json=True), house.tell)
    plan = [json.loads(line)["state"] for line in house.printed[:-1]]
    days = read_overview(Reported(known=open_run("tiny", "main")), None).facts.calendar
    assert plan == [day.state.value for day in days] == ["stale"] * 3


@pytest.mark.parametrize("gone", [False, True])
def test_of_sources_that_were_not_read_it_says_so(house: House, monkeypatch: pytest.MonkeyPatch, gone: bool) -> None:  # noqa: FBT001 - a parameter
    house.backfill("2013-01-01", "2013-01-04")
    feed = house.config / "flows" / "trips.parquet"
    pq.write_table(pq.read_table(feed).slice(1), feed)
    if gone:
        feed.unlink()
    monkeypatch.setattr(planning, "GLANCE_BYTES", 0)
    text = status(house)
    why = (
        "what its sources hold now cannot be read (a feed must be there; nothing is trips.parquet"
        if gone
        else "files of its sources changed since, and were not read again for 3 intervals: pulseline plan tiny\n"
    )
    assert f"\nstale      nothing by the log and the flow; {why}" in text
    show_all(as_json=False, tell=house.tell)
    assert ("tiny: what its sources hold now cannot be read" in house.text) == gone


def test_a_lease_that_is_held_names_its_holder(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-02")
    with open_driver(house.root, flow="tiny") as driver:
        text = status(house)
        assert "lease      held by process " in text
        assert "which is alive, since " in text
        assert "it is being worked on; to look again: pulseline status tiny" in text
        plan = json.loads(CommitLog(house.root).state().commits[1].plan or "")
        driver.intent(2, Span(DAYS[1], DAYS[2]), 1, [2], plan, "print")
        assert "the holder of the lease is at it" in status(house)


def test_a_lease_whose_process_is_gone_or_silent_is_free(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-02")
    known = open_run("tiny", "main")
    row = known.state.lease
    assert row is not None
    write_renewal(house.root, Renewal(row.token, row.at))
    late = with_holder(pid=2**22 + 1)
    assert status_of(late, wall_now())["lease"]["standing"] == "gone"
    silent = with_holder(machine="elsewhere")
    assert status_of(silent, row.at + leases.LAPSES_AFTER + 1)["lease"]["standing"] == "lapsed"
    assert status_of(silent, row.at + 1)["lease"]["standing"] == "held"
    assert status_of(silent, row.at - leases.LAPSES_AFTER - 1)["lease"]["standing"] == "ahead"


WATCHES = "the next run watches it for 30 s and takes it if it does not renew"


@pytest.mark.parametrize(
    ("standing", "process", "away", "expected"),
    [
        ("held", "alive", -3, "held by {who}, which is alive, since {since}; {last} (3 s ago)"),
        ("held", "untold", -3, "held by {who}, which cannot be looked up from here, since {since}; {last} (3 s ago)"),
        ("lapsed", "alive", -60, "not renewed: {who}, which is alive, took it {since} ({last} (1 m ago)); {watches}"),
        (
            "ahead",
            "untold",
            60,
            "taken by {who}, whose clock ran ahead of this one's ({last} (1 m from now)); {watches}",
        ),
    ],
)
def test_the_words_about_a_lease_say_what_is_seen(standing: str, process: str, away: int, expected: str) -> None:
    now = wall_now() // 1_000_000 * 1_000_000
    since, renewed = now - 3_600_000_000, now + away * 1_000_000
    holder = {"pid": 7, "host": "there"}
    told = {"standing": standing, "holder": holder, "since_at": since, "renewed_at": renewed, "process": process}
    words = {"who": "process 7 on there", "watches": WATCHES, "last": f"last renewed {utc_text(renewed)}"}
    assert lease_text(told, now) == expected.format(**words, since=f"{utc_text(since)} (1 h ago)")


def with_holder(**changes: object) -> KnownRun:
    known = open_run("tiny", "main")
    entries = [
        replace(row, detail={**row.detail, **changes}) if row.state is State.LEASE else row
        for row in known.state.entries
    ]
    return replace(known, state=LogState.of(entries))


def test_another_run_has_its_name_in_every_command(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-02", run="second")
    assert status(house, "second").endswith("--start 2013-01-02 --end 2013-01-03 --run second")
    with pytest.raises(WrongUse, match="no run `secnd` of tiny; did you mean `second`"):
        status(house, "secnd")


@pytest.mark.parametrize("run", ["../evil", "a/b", "", ".", "x" * 200])
def test_a_run_name_that_leads_elsewhere_is_refused(house: House, run: str) -> None:
    with pytest.raises(WrongUse, match="--run must be a name"):
        read_settings().root("tiny", run)
    assert not house.root.exists()


@pytest.mark.parametrize("table", ["streams/punctual", "carry/ordered.held"])
@pytest.mark.parametrize("cut", [None, 50])
def test_where_files_are_gone_or_torn_the_rest_is_told_and_what_to_do(
    house: House, table: str, cut: int | None
) -> None:
    house.backfill("2013-01-01", "2013-01-04")
    for file in (house.root / table).rglob("*.parquet"):
        file.unlink() if cut is None else os.truncate(file, cut)
    text = status(house)
    is_of_log = cut is None and table.startswith("streams/")
    gone = r"\d+ files of streams/punctual are gone" if is_of_log else "a file of the run is gone or cannot be read"
    assert re.search(rf"damaged    {gone} \(", text)
    assert "): pulseline doctor tiny says what can be had again" in text
    assert "in 3 commits (number 1 to 3)" in text
    assert text.endswith("next: pulseline doctor tiny")
    house.printed.clear()
    assert facts(house)["published"]["commits"] == 3


@pytest.mark.parametrize(
    ("gone", "told"),
    [
        ("ledger/_delta_log", "damaged    ledger is an older copy of itself, or its newest versions are gone: "),
        ("landed/00000002/manifest.json", "damaged    a file of the run is gone or cannot be read (a landed sequence"),
    ],
)
def test_what_no_run_goes_on_from_is_told_and_led_out_of(house: House, gone: str, told: str) -> None:
    house.backfill("2013-01-01", "2013-01-04")
    shutil.move(house.root / gone, house.root.parent / "gone")
    text = status(house)
    assert told in text
    assert text.endswith("next: pulseline doctor tiny")


def test_where_the_log_lost_its_newest_versions_nobody_says_that_nothing_was_published(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-03")
    log = house.root / "commits" / "_delta_log"
    for version in sorted(log.glob("*.json"))[-2:]:
        version.unlink()
    assert "damaged    tables hold commit 2, and `commits` does not have it as published" in status(house)
    for look in (
        lambda: show_stream("tiny", "punctual", None, None, 5, "table", "main", house.tell),
        lambda: check_flow("tiny", None, None, None, run="main", as_json=False, echo=house.tell),
        lambda: report_flow("tiny", None, "main", as_json=False, echo=house.tell),
        lambda: tell_tables(TablesQuery(flow="tiny", run="main", stream=None, commit=None, as_json=False), house.tell),
    ):
        with pytest.raises(JobError, match="tables hold commit 2"):
            look()


def test_a_table_that_is_an_older_copy_of_itself_is_told_by_page_and_overview(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-03")
    house.backfill("2013-01-03", "2013-01-04")
    report_flow("tiny", None, "main", as_json=False, echo=house.tell)
    assert "an older copy" not in house.text
    max((house.root / "streams" / "punctual" / "_delta_log").glob("*.json")).unlink()
    with pytest.raises(JobError, match="streams/punctual is an older copy of itself"):
        report_flow("tiny", None, "main", as_json=False, echo=house.tell)
    show_all(as_json=False, tell=house.tell)
    head, *lines = house.text.splitlines()
    assert head == "1 of 1 flow needs a person."
    assert any(line.startswith("tiny: streams/punctual is an older copy of itself") for line in lines)


def test_how_far_promises_lag_goes_by_the_newest_day_and_not_by_what_was_run_last(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-03")

    def lag() -> str:
        show_all(as_json=False, tell=house.tell)
        return next(line for line in house.text.splitlines() if line.startswith("tiny  main"))

    before = lag()
    house.backfill("2013-01-01", "2013-01-02")
    assert lag().split()[-5:] == before.split()[-5:]


def test_at_the_end_of_what_sources_hold_no_further_day_is_proposed(house: House) -> None:
    file = house.config / "flows" / "tiny.yaml"
    file.write_text(file.read_text().replace("buckets: 2\n", "buckets: 2\nends: 2013-01-03\n"))
    house.backfill("2013-01-01", "2013-01-02")
    assert facts(house)["next"] == "pulseline run tiny --start 2013-01-02 --end 2013-01-03"
    house.backfill("2013-01-02", "2013-01-03")
    assert facts(house)["next"] == "pulseline report tiny"


def test_after_apply_check_and_run_the_page_is_made_as_before(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-03")
    file = house.config / "flows" / "tiny.yaml"
    file.write_text(file.read_text().replace("delay: 1h", "delay: 2h"))
    apply_flow(ApplyRequest(flow="tiny"), house.tell)
    check_flow("tiny", None, None, None, run="main", as_json=False, echo=house.tell)
    house.backfill("2013-01-01", "2013-01-03")
    report_flow("tiny", None, "main", as_json=False, echo=house.tell)
    show_all(as_json=False, tell=house.tell)
    assert "tiny" in house.text


def test_what_was_published_while_it_looked_is_no_damage(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-02")
    known = open_run("tiny", "main")
    house.backfill("2013-01-02", "2013-01-03")
    assert status_of(known, DAYS[2])["damaged"] == status_of(open_run("tiny", "main"), DAYS[2])["damaged"]


def test_a_commit_that_tables_followed_together_with_another_is_told_with_that_one(house: House) -> None:
    run_flow(Run(flow="tiny", start="2013-01-01", end="2013-01-04", engine="core", check=False), house.tell)
    state = open_run("tiny", "main").state
    assert versions_at(house.root, state, 3)
    with pytest.raises(NoInstantError, match="they followed it together with commit 3"):
        versions_at(house.root, state, 2)


def test_of_several_tables_that_somebody_else_wrote_to_one_is_told_and_how_many_more(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-03")
    for name in ("beating", "punctual"):
        DeltaTable(str(house.root / "streams" / name)).delete("number = 1")
    told = next(line for line in status(house).splitlines() if line.startswith("damaged"))
    assert told.startswith("damaged    streams/beating: DELETE in version ")
    assert told.endswith("puts the rows of the run back; and 1 more, which pulseline doctor tiny names")
