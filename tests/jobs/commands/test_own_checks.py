"""A flow's own checks: asked by the gate and by `pulseline check`, of what landed and of streams, and kept."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, NoReturn

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from expectations.offenders import CONTEXT
from expectations.own_checks import CheckDoesNotFitError
from pipelines.engine.commits.entry import State
from pipelines.engine.commits.errors import LeaseLostError
from pipelines.engine.commits.quality import read_quality
from pipelines.engine.commits.readers import log_state
from pipelines.engine.landing.index import Landing
from pipelines.errors import Exit
from pipelines.flows.check import with_checks
from pipelines.flows.definition import fingerprint_of, flow_from_json, flow_to_json
from pipelines.flows.reading import read_flow
from pipelines.jobs.commands.check import check_flow, check_span
from pipelines.jobs.commands.plan import show_plan
from pipelines.jobs.commands.report import report_flow
from pipelines.jobs.commands.run import RunRequest, _kept, checking, run_flow, span_text
from pipelines.jobs.commands.status import show_status
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.facts import views
from pipelines.jobs.facts.planning import PlanRequest
from pipelines.jobs.facts.report import Reported, read_facts
from pipelines.jobs.runs.backfill import run_backfill
from pipelines.jobs.runs.gate import RejectedError
from pipelines.jobs.runs.known import open_run
from pipelines.jobs.text.moments import Moments
from tests.laws.trials import PARCELS, SPANS, Trial, parcels, trial

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from expectations.judgement import Judgement
    from pipelines.flows.model import Flow
    from pipelines.jobs.facts.views import Session
    from tests.conftest import LentSpark
    from tests.jobs.conftest import House

AGED = """\
    expect:
      - expect_column_values_to_be_between: {column: number, max_value: 150}
        where: depot = 'east'
        severity: warning
        owner: scales@example.com
        remedy: Weigh them again.
      - expect_column_values_to_be_increasing: {column: number}
        severity: warning
      - expect_column_mean_to_be_between: {column: number, max_value: 10}
        severity: warning
      - expect_column_values_to_not_be_null: {column: depot}
      - expect_column_values_to_be_between: {column: sent, min_value: 2023-12-31, max_value: 2024-01-01T02:00:00Z}
        severity: warning
"""
LANDED = "    expect:\n      - expect_column_values_to_not_be_null: {column: note}\n        severity: warning\n"


def flow_with(folder: Path, stream: str = "", source: str = "") -> Flow:
    """Give the parcels' flow with checks under its source and under its last stream."""
    text = PARCELS
    if source:
        text = text.replace(
            "  parcels: {feed: {parquet: parcels.parquet}, key: depot, time: sent, arrival: seen}\n",
            "  parcels:\n    feed: {parquet: parcels.parquet}\n    key: depot\n    time: sent\n    arrival: seen\n"
            + source,
        )
    text = text.replace(
        "  punctual: {advance_time: ordered, every: {events: 7}, delay: 10m, late: divert}\n",
        "  punctual:\n    advance_time: ordered\n    every: {events: 7}\n    delay: 10m\n    late: divert\n" + stream,
    )
    file = folder / "with_checks.yaml"
    file.write_text(text)
    return read_flow(file)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    found = trial(tmp_path_factory.mktemp("own"), PARCELS, {"parcels": parcels()})
    found.ran("main", SPANS)
    return found


@pytest.fixture(params=["duckdb", "spark"])
def session(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Session | None:
    if request.param == "duckdb":
        return None
    monkeypatch.setattr(views, "LARGE", 0)
    lent: LentSpark = request.getfixturevalue("spark")
    return lent.session


def own(found: tuple[Judgement, ...]) -> dict[str, Judgement]:
    return {each.expectation: each for each in found if each.expectation.startswith("expect_")}


def test_rows_that_landed_by_reference_came_in_as_others_do(tmp_path: Path, session: Session | None) -> None:
    feed = "{parquet: parcels.parquet, landing: reference}"
    text = PARCELS.replace("{parquet: parcels.parquet}", feed).replace("buckets: 3", "buckets: 1")
    rows = parcels().filter(pc.field("seen").is_valid() & pc.field("sent").is_valid())
    here = trial(tmp_path, text, {"parcels": rows})
    here.ran("main", SPANS)
    landed = [each.sources["parcels"].referenced for each in Landing(here.wanted("main").landing).sequences]
    assert any(each is not None and each.rows for each in landed)
    judged = check_span(here.flow, here.root("main"), None, None, session=session)
    accounts = [each for each in judged if each.expectation == "account_holds"]
    assert accounts
    assert [each.rows for each in accounts if not each.held] == []


def test_rows_are_counted_interval_by_interval(made: Trial, tmp_path: Path, session: Session | None) -> None:
    rows = made.table("main", "punctual").filter(pc.field("kind") == "data")
    counts = {each["values"]: each["counts"] for each in rows["commit"].value_counts().to_pylist()}
    low, high = min(counts.values()), max(counts.values())
    assert low < high, "or one count would do for all"
    checks = "\n".join(
        [
            "    expect:",
            f"      - expect_table_row_count_to_be_between: {{min_value: {low}, max_value: {high}}}",
            f"      - expect_table_row_count_to_be_between: {{max_value: {high - 1}}}",
            "      - expect_table_row_count_to_equal: {value: 0}",
            "        where: number / 2 < 0\n",
        ]
    )
    landed = "    expect:\n      - expect_table_row_count_to_be_between: {max_value: 1}\n"
    flow = with_checks(made.flow, flow_with(tmp_path, checks, landed))
    judged = check_span(flow, made.root("main"), None, None, session=session)
    fits, tight, none = (each for each in judged if each.table == "punctual" and each.expectation.startswith("expect_"))
    assert (fits.held, none.held) == (True, True)
    assert fits.looked_at == rows.num_rows
    assert "in each interval" in fits.sentence
    begins = {number: moment for number, (moment, _) in enumerate(SPANS, 1)}
    moments = Moments(made.flow.timezone)
    too_many = [
        {"interval": moments.argument(begins[commit]), "observed_value": count}
        for commit, count in sorted(counts.items())
        if count == high
    ]
    assert not tight.held
    assert list(tight.rows) == too_many
    (source,) = (each for each in judged if each.table == "parcels" and each.expectation.startswith("expect_"))
    assert len(source.rows) == len(SPANS), "each of them has more than one row"

    start, end = SPANS[0]
    (_, alone, _) = own(check_span(flow, made.root("main"), start, end, session=session)).values()
    assert "in each interval" not in alone.sentence, "of one interval the gate's own words hold"


def test_exactly_the_rows_that_break_a_check_are_found(made: Trial, tmp_path: Path, session: Session | None) -> None:
    flow = with_checks(made.flow, flow_with(tmp_path, AGED, LANDED))
    found = own(check_span(flow, made.root("main"), None, None, session=session))
    rows = made.table("main", "punctual").filter(pc.field("kind") == "data")
    wrong = rows.filter((pc.field("number") > 150) & (pc.field("depot") == "east"))["number"].to_pylist()

    aged = found["expect_column_values_to_be_between(number) where depot = 'east'"]
    assert aged.unexpected == len(wrong)
    assert [row["number"] for row in aged.rows] == wrong[:20]
    assert aged.looked_at == rows.filter(pc.field("depot") == "east").num_rows
    assert aged.remedy == "Weigh them again. Owner: scales@example.com."
    assert all(row["around"]["before"] and "governed_by" in row for row in aged.rows)

    late = found["expect_column_values_to_be_between(sent)"]
    border = pc.field("sent") > pc.scalar(SPANS[1][1]).cast(rows.schema.field("sent").type)
    assert late.unexpected == rows.filter(border).num_rows > 0

    mean = found["expect_column_mean_to_be_between(number)"]
    assert not mean.held
    assert mean.unexpected == 0
    assert mean.rows[0]["observed_value"] == pytest.approx(pc.mean(rows["number"]).as_py())

    landed = found["expect_column_values_to_not_be_null(note)"]
    assert landed.table == "parcels"
    assert landed.unexpected > 0
    assert all(row["note"] is None for row in landed.rows)
    assert found["expect_column_values_to_not_be_null(depot)"].held


def test_values_in_stream_order_are_held_across_the_border_of_intervals(
    made: Trial, tmp_path: Path, session: Session | None
) -> None:
    flow = with_checks(made.flow, flow_with(tmp_path, AGED))
    rows = made.table("main", "punctual").filter(pc.field("kind") == "data")
    numbers = rows["number"].to_pylist()
    arrivals = rows["arrival"].cast("int64").to_pylist()
    wrong = [
        (after, at >= SPANS[1][0])
        for before, after, at in zip(numbers, numbers[1:], arrivals[1:], strict=False)
        if after < before
    ]
    name = "expect_column_values_to_be_increasing(number)"
    whole = own(check_span(flow, made.root("main"), None, None, session=session))[name]
    later = own(check_span(flow, made.root("main"), SPANS[1][0], None, session=session))[name]
    assert whole.unexpected == len(wrong) > 0
    assert later.unexpected == sum(is_later for _, is_later in wrong), "the last row before the span binds its first"
    assert [row["number"] for row in whole.rows] == [number for number, _ in wrong][:20]


ASIDE = """\
    sides:
      diverted:
        expect:
          - expect_column_values_to_be_between: {column: number, max_value: 150}
            where: depot = 'east'
          - expect_column_values_to_be_increasing: {column: number}
            severity: warning
          - expect_table_row_count_to_be_between: {max_value: 0}
            severity: warning
"""


def test_what_is_set_aside_is_asked_for_itself(made: Trial, tmp_path: Path, session: Session | None) -> None:
    """Values, stream order and counts: of the rows that were diverted and of no other."""
    flow = with_checks(made.flow, flow_with(tmp_path, ASIDE))
    assert list(flow.expect) == ["punctual.diverted"]
    found = own(check_span(flow, made.root("main"), None, None, session=session))
    aside = made.table("main", "punctual.diverted")
    assert {each.table for each in found.values()} == {"punctual.diverted"}

    wrong = aside.filter((pc.field("number") > 150) & (pc.field("depot") == "east"))["number"].to_pylist()
    values = found["expect_column_values_to_be_between(number) where depot = 'east'"]
    assert [row["number"] for row in values.rows] == wrong[:20] != []
    assert values.unexpected == len(wrong)
    assert values.looked_at == aside.filter(pc.field("depot") == "east").num_rows

    numbers = aside["number"].to_pylist()
    fallen = [after for before, after in pairwise(numbers) if after < before]
    order = found["expect_column_values_to_be_increasing(number)"]
    assert [row["number"] for row in order.rows] == fallen[:20] != []

    counted = found["expect_table_row_count_to_be_between()"]
    assert len(counted.rows) == len(aside["commit"].unique())


def test_a_blocking_check_of_what_is_set_aside_keeps_an_interval_from_readers(made: Trial, tmp_path: Path) -> None:
    flow = flow_with(tmp_path, ASIDE.replace("max_value: 150", "max_value: 0"))
    assert fingerprint_of(flow) == fingerprint_of(made.flow)
    assert flow_from_json(json.loads(json.dumps(flow_to_json(flow)))).expect == flow.expect
    root = made.root("aside")
    with pytest.raises(RejectedError, match=r"less than or equal to 0\. \(punctual\.diverted"):
        run_backfill(replace(made.wanted("aside"), flow=flow, gate=checking(root, flow, None)), SPANS)
    unfit = flow_with(tmp_path, ASIDE.replace("column: number", "column: nmber"))
    with pytest.raises(WrongUse, match=r"`punctual\.diverted` has the column `nmber`.*did you mean `number`"):
        run_backfill(replace(made.wanted("nowhere"), flow=unfit), SPANS)


def test_a_blocking_check_keeps_an_interval_from_readers_and_the_file_counts(made: Trial, tmp_path: Path) -> None:
    strict = "    expect:\n      - expect_column_values_to_be_between: {column: number, max_value: 5}\n"
    flow = flow_with(tmp_path, strict)
    root = made.root("held")
    gate = checking(root, flow, None)
    with pytest.raises(RejectedError, match="less than or equal to 5"):
        run_backfill(replace(made.wanted("held"), flow=flow, gate=gate), SPANS[:1])
    assert log_state(root).commits[1].state is State.REJECTED
    kept = {row.expectation: row for row in read_quality(root, commit=1)}
    assert not kept["expect_column_values_to_be_between(number)"].held

    mended = flow_with(tmp_path, strict.replace("max_value: 5", "max_value: 500"))
    gate = checking(root, mended, None)
    run_backfill(replace(made.wanted("held"), flow=mended, gate=gate), SPANS[:1])
    assert [entry.state for entry in log_state(root).published] == [State.PUBLISHED]


def test_checks_are_kept_with_a_commit_and_change_no_fingerprint(made: Trial, tmp_path: Path) -> None:
    flow = flow_with(tmp_path, AGED, LANDED)
    assert fingerprint_of(flow) == fingerprint_of(made.flow)
    told = json.loads(json.dumps(flow_to_json(flow)))
    assert flow_from_json(told).expect == flow.expect
    assert "expect" not in flow_to_json(made.flow), "a flow without checks is spelled as it was"


@pytest.mark.parametrize(
    ("check", "says"),
    [
        ("expect_column_values_to_not_be_null: {column: nmber}", "did you mean `number`"),
        ("expect_column_values_to_match_regex: {column: number, regex: a}", "which is no text"),
        ("expect_column_values_to_be_between: {column: number, max_value: x}", "a number"),
    ],
)
def test_what_a_table_does_not_have_is_named(made: Trial, tmp_path: Path, check: str, says: str) -> None:
    flow = with_checks(made.flow, flow_with(tmp_path, f"    expect:\n      - {check}\n"))
    with pytest.raises(CheckDoesNotFitError, match=says):
        check_span(flow, made.root("main"), None, None)


def test_a_column_that_is_not_there_is_named_before_anything_lands(made: Trial, tmp_path: Path) -> None:
    for where in ("", "\n        where: nmber > 1"):
        column = "number" if where else "nmber"
        check = f"    expect:\n      - expect_column_values_to_not_be_null: {{column: {column}}}{where}\n"
        flow = flow_with(tmp_path, check)
        with pytest.raises(WrongUse, match=r"the column `nmber`, expected .*; did you mean `number`"):
            run_backfill(replace(made.wanted("unfit"), flow=flow), SPANS)
    assert not log_state(made.root("unfit")).commits


def test_a_run_that_a_check_ends_names_the_days_it_did_not_come_to_and_what_warned_before(house: House) -> None:
    file = house.config / "flows" / "tiny.yaml"
    checks = [
        "{expect_column_values_to_be_between: {column: number, max_value: 11}}",
        "{expect_column_values_to_be_between: {column: number, max_value: -1}, severity: warning}",
    ]
    checked = f"late: divert, expect: [{', '.join(checks)}]}}"
    file.write_text(file.read_text().replace("late: divert}", checked))
    request = RunRequest(flow="tiny", start="2013-01-01", end="2013-01-04", engine="core")
    with pytest.raises(RejectedError):
        run_flow(request, house.tell)
    printed = house.text
    assert "note: 1 interval not begun (2013-01-03)" in printed
    assert re.search(r"warning: punctual: number .* -1\..*: does not hold in 1 interval", printed)
    with pytest.raises(RejectedError):
        run_flow(replace(request, start="2013-01-02", end="2013-01-03"), house.tell)
    assert "not begun" not in house.text


def test_a_run_that_was_overtaken_ends_with_its_sentence(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it had judged and another driver never heard of is in no log."""

    def overtaken(*_: object) -> NoReturn:
        raise LeaseLostError("tiny", 1, 2, "another", 0)

    monkeypatch.setattr("pipelines.engine.commits.driver.Driver.publish_together", overtaken)
    with pytest.raises(LeaseLostError):
        run_flow(RunRequest(flow="tiny", start="2013-01-01", end="2013-01-03", engine="core", at_once="2"), house.tell)
    assert 2 not in log_state(house.root).commits


def test_a_where_that_is_no_condition_is_refused(made: Trial, tmp_path: Path) -> None:
    checks = "    expect:\n      - expect_column_values_to_not_be_null: {column: note}\n        where: number + 1\n"
    flow = with_checks(made.flow, flow_with(tmp_path, checks))
    with pytest.raises(WrongUse, match="a condition"):
        check_span(flow, made.root("main"), None, None)


def test_a_table_that_never_had_a_row_is_not_asked(tmp_path: Path) -> None:
    rows = parcels()
    nobody = rows.filter(pc.field("number") < 0)
    made = trial(tmp_path, PARCELS, {"parcels": nobody})
    made.ran("main", SPANS[:1])
    checks = "    expect:\n      - expect_column_mean_to_be_between: {column: weight, max_value: 1}\n"
    flow = with_checks(made.flow, flow_with(tmp_path, checks))
    found = own(check_span(flow, made.root("main"), None, None))
    assert [(each.held, each.looked_at) for each in found.values()] == [(True, 0)]


@pytest.mark.parametrize(
    ("verdicts", "told"),
    [
        (("4 of 4", "4 of 4", "4 of 4"), "; 4 of 4 expectations hold"),
        (("4 of 4", "3 of 4", "3 of 4"), "; 3 to 4 of 4 expectations hold, fewest of {1}"),
        (("4 of 4", "3 of 4", "5 of 5"), "; 3 to 5 expectations hold, fewest of {1}"),
        (("4 of 4", "4 of 5", "4 of 5"), "; 4 of 4 expectations hold, 4 of 5 expectations hold"),
    ],
)
def test_a_run_of_many_days_says_how_many_hold_and_of_which_day_the_fewest(
    made: Trial, verdicts: tuple[str, ...], told: str
) -> None:
    entries = log_state(made.root("main")).published[: len(verdicts)]
    seen = [replace(entry, verdict=f"{each} expectations hold") for entry, each in zip(entries, verdicts, strict=True)]
    assert _kept(made.flow, seen) == told.format(*(span_text(made.flow, entry.span) for entry in entries))


OURS = ("start", "rows", "interval", "file", "problem", "around", "governed_by", "place_", "asked", "__judged")
"""Names that our own columns, marks and cases have, and that a team's may have as well."""


def test_columns_may_be_called_as_what_ours_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULSELINE_HOME", str(tmp_path / "home"))
    values = [[(row + place) % 10 for place in range(len(OURS))] for row in range(48)]
    lines = [
        f"k,2013-01-0{1 + row // 24}T{row % 24:02}:00:00Z,{','.join(map(str, each))}" for row, each in enumerate(values)
    ]
    (tmp_path / "rows.csv").write_text("\n".join([f"k,at,{','.join(OURS)}", *lines, ""]))
    types = ", ".join(f"{name}: int64" for name in OURS)
    asked = "".join(f"      - expect_column_values_to_be_between: {{column: {name}, max_value: 8}}\n" for name in OURS)
    flow = tmp_path / "own.yaml"
    flow.write_text(
        f"flow: own\nsources:\n  rows:\n    feed: {{csv: rows.csv, types: {{at: timestamp, {types}}}}}\n    key: k\n"
        f"    time: at\n    arrival: at\n    expect:\n{asked}streams:\n  beating:\n    heartbeat: rows\n"
        f"    interval: 6h\n    expect:\n{asked}"
    )
    told: list[str] = []
    wanted = RunRequest(flow=str(flow), start="2013-01-01", end="2013-01-03", engine="core", check=False)
    run_flow(wanted, told.append)
    check_flow(str(flow), None, None, None, "main", as_json=True, echo=told.append)
    found = {(each.table, each.expectation): each for each in read_quality(tmp_path / "home" / "own" / "main")}
    for place, name in enumerate(OURS):
        broken = [each for each in values if each[place] > 8]
        for table in ("rows", "beating"):
            check = found[table, f"expect_column_values_to_be_between({name})"]
            assert (check.unexpected, len(check.rows)) == (len(broken), len(broken))
            shown = [row[f"{name}_" if name in CONTEXT else name] for row in check.rows]
            assert shown == [each[place] for each in broken]
    known = open_run(str(flow), "main")
    for entry in known.state.published:
        facts = read_facts(Reported(known=known, span=tuple(entry.span)), None)  # type: ignore[arg-type]
        day = values[:24] if entry.commit == 1 else values[24:]
        of_day = {(each.table, each.name): each.unexpected for each in facts.expectations}
        for place, name in enumerate(OURS):
            broken = [each for each in day if each[place] > 8]
            assert of_day["rows", f"expect_column_values_to_be_between({name})"] == len(broken)


IN_WORDS, AS_JSON = False, True
MOSTLY = """
streams:
  beating: {heartbeat: trips, interval: 6h, slack: 90s}
  ordered:
    merge: beating
    ports_by: {station: [north, south]}
    expect:
      - expect_column_values_to_be_between: {column: number, min_value: 12, mostly: 0.6}
        severity: SEVERITY
"""


def test_a_day_that_does_not_hold_by_itself_is_led_to_by_all_that_say_so(house: House) -> None:
    """Of the rows of all days together it holds, which a check of them all says."""
    file = house.config / "flows" / "tiny.yaml"
    text = file.read_text().partition("\nstreams:")[0] + "\nstarts: 2013-01-01\nends: 2013-01-04" + MOSTLY
    file.write_text(text.replace("SEVERITY", "warning"))
    run_flow(RunRequest(flow="tiny", start="2013-01-01", end="2013-01-04", engine="core"), house.tell)
    file.write_text(text.replace("SEVERITY", "blocking"))
    leads = "pulseline check tiny --start 2013-01-01 --end 2013-01-02"

    def said(ask: Callable[..., object], *given: object) -> list[str]:
        house.printed.clear()
        ask(*given, house.tell)
        return house.text.splitlines()

    status, plan = partial(show_status, "tiny", "main"), partial(show_plan, PlanRequest(flow="tiny"))
    for _ in range(2):
        red, *_ = (line for line in said(status, IN_WORDS) if line.startswith("red "))
        assert re.fullmatch(rf"red +Tue 1 Jan 2013 is red: ordered: .*at least 60 %.*: {leads}", red)
        assert said(status, IN_WORDS)[-1] == said(plan)[-1] == said(report_flow, "tiny", None, "main", IN_WORDS)[-1]
        assert said(status, IN_WORDS)[-1] == f"next: {leads}"
        *_, red, then = said(check_flow, "tiny", None, None, None, "main", IN_WORDS)
        assert re.fullmatch(rf"red: Tue 1 Jan 2013 is red: ordered: .*: {leads}", red)
        assert then == f"next: {leads}"
    *_, summary = map(json.loads, said(check_flow, "tiny", None, None, None, "main", AS_JSON))
    assert (summary["held"], summary["next"], len(summary["red"])) == (True, leads, 1)
    assert summary["sentence"].startswith("all that blocks holds of these rows together; Tue 1 Jan 2013 is red")
    assert check_flow("tiny", "2013-01-01", "2013-01-02", None, "main", IN_WORDS, house.tell) == Exit.CHECK_FAILED


def test_every_reason_of_a_red_day_counts_and_changed_files_come_first(house: House) -> None:
    file = house.config / "flows" / "tiny.yaml"
    checks = "".join(
        f"      - expect_column_values_to_be_between: {{column: number, max_value: {most}}}\n"
        "        severity: SEVERITY\n"
        for most in (3, 4)
    )
    text = file.read_text().partition("\nstreams:")[0] + MOSTLY.partition("      - expect")[0] + checks
    file.write_text(text.replace("SEVERITY", "warning"))
    run_flow(RunRequest(flow="tiny", start="2013-01-01", end="2013-01-02", engine="core"), house.tell)
    file.write_text(text.replace("SEVERITY", "blocking"))

    def red() -> str:
        house.printed.clear()
        show_status("tiny", "main", IN_WORDS, house.tell)
        return next(line for line in house.text.splitlines() if line.startswith("red "))

    assert red().startswith("red        Tue 1 Jan 2013 is red: ordered: number values must be less than or equal to 3")
    assert red().endswith("; and 1 other reason: pulseline check tiny")
    changed = next((house.root / "streams" / "beating" / "_written").glob("*.parquet"))
    rows = pq.read_table(changed)
    pq.write_table(
        rows.set_column(rows.column_names.index("line"), "line", pc.add(rows["line"], 1).cast("int32")), changed
    )
    assert check_flow("tiny", None, None, None, "main", IN_WORDS, house.tell) == Exit.CHECK_FAILED
    assert red().startswith("red        Tue 1 Jan 2013 is red: beating: Rows of beating are what their commits say")
    assert red().endswith("; and 2 other reasons: pulseline check tiny")


def test_days_that_do_not_hold_by_themselves_are_told_beside_what_a_check_of_all_finds(house: House) -> None:
    file = house.config / "flows" / "tiny.yaml"
    text = file.read_text().partition("\nstreams:")[0] + MOSTLY
    text += "      - expect_column_values_to_be_between: {column: number, max_value: 30}\n        severity: SEVERITY\n"
    file.write_text(text.replace("SEVERITY", "warning"))
    run_flow(RunRequest(flow="tiny", start="2013-01-01", end="2013-01-04", engine="core"), house.tell)
    file.write_text(text.replace("SEVERITY", "blocking"))
    house.printed.clear()
    show_status("tiny", "main", IN_WORDS, house.tell)
    whole, alone = (line for line in house.text.splitlines() if line.startswith("red "))
    assert re.match(r"red +Thu 3 Jan 2013 is red: ordered: number values must be less .*: pulseline check tiny$", whole)
    leads = "pulseline check tiny --start 2013-01-01 --end 2013-01-02"
    assert re.match(rf"red +Tue 1 Jan 2013 is red: ordered: .*at least 60 %.*: {leads}$", alone)
    assert check_flow("tiny", None, None, None, "main", IN_WORDS, house.tell) == Exit.CHECK_FAILED
    [red] = (line for line in house.text.splitlines() if line.startswith("red: "))
    assert re.match(rf"red: Tue 1 Jan 2013 is red: ordered: .*at least 60 %.*: {leads}$", red)


def test_what_days_break_together_stays_red_where_they_are_run_again_with_the_same_rows(house: House) -> None:
    file = house.config / "flows" / "tiny.yaml"
    text = file.read_text().partition("\nstreams:")[0] + MOSTLY.partition("      - expect")[0]
    file.write_text(text + "      - expect_column_sum_to_be_between: {column: number, max_value: 400}\n")
    spans = (("2013-01-01", "2013-01-04"), ("2013-01-02", "2013-01-03"), ("2013-01-01", "2013-01-04"))
    for place, (start, end) in enumerate(spans):
        run_flow(RunRequest(flow="tiny", start=start, end=end, engine="core"), house.tell)
        if not place:
            assert check_flow("tiny", None, None, None, "main", IN_WORDS, house.tell) == Exit.CHECK_FAILED
        house.printed.clear()
        show_status("tiny", "main", IN_WORDS, house.tell)
        [red] = (line for line in house.text.splitlines() if line.startswith("red "))
        assert "Tue 1 Jan 2013 to Thu 3 Jan 2013 together do not hold: ordered: " in red
    rows = pq.read_table(house.config / "flows" / "trips.parquet")
    pq.write_table(rows.slice(0, 20), house.config / "flows" / "trips.parquet")
    run_flow(RunRequest(flow="tiny", start="2013-01-02", end="2013-01-03", engine="core", accept_loss=True), house.tell)
    house.printed.clear()
    show_status("tiny", "main", IN_WORDS, house.tell)
    assert "together do not hold" not in house.text
