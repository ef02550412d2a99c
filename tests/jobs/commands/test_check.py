"""`pulseline check`: what a flow made holds; what is planted in a commit is found, and its verdict kept."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

from pipelines.engine.columnar.clock import wall_now
from pipelines.engine.columnar.columns import TIME, ticks
from pipelines.engine.commits.history import State
from pipelines.engine.commits.paths import ForeignWriteError, QualityLostError, landed_path, stream_path
from pipelines.engine.commits.quality import quality_path, read_quality
from pipelines.engine.commits.readers import log_state, rows_of
from pipelines.engine.files import packed
from pipelines.engine.files.parquet import FileDamagedError
from pipelines.engine.landing.compaction import compact
from pipelines.errors import Exit
from pipelines.jobs.commands.apply import ApplyRequest, apply_flow
from pipelines.jobs.commands.check import check_commit, check_flow, check_span
from pipelines.jobs.commands.doctor import examine
from pipelines.jobs.commands.expect import propose
from pipelines.jobs.commands.explain import explain_row
from pipelines.jobs.commands.report import report_flow
from pipelines.jobs.commands.show import show_stream
from pipelines.jobs.commands.status import show_status
from pipelines.jobs.commands.tables import TablesQuery, tell_tables
from pipelines.jobs.environment.errors import JobError, WrongUse
from pipelines.jobs.environment.settings import read_settings
from pipelines.jobs.facts import views
from pipelines.jobs.facts.earlier import before
from pipelines.jobs.facts.home import read_home
from pipelines.jobs.runs.backfill import run_backfill
from pipelines.jobs.runs.gate import blocking, hold
from tests.engine.tasks import test_relations as relations
from tests.jobs.damage import flipped
from tests.laws.streamed import streamed
from tests.laws.trials import BEGIN, MINUTE, PARCELS, SPANS, Trial, cut, parcels, trial

if TYPE_CHECKING:
    from collections.abc import Callable

    from expectations.judgement import Judgement
    from pipelines.jobs.facts.views import Session
    from tests.conftest import LentSpark
    from tests.jobs.conftest import House

EXPECTED = [
    ("beating", "account_holds"),
    ("beating", "timers_increase"),
    ("beating", "timers_on_multiples"),
    ("ordered", "account_holds"),
    ("ordered", "few_held"),
    ("ordered", "timers_increase"),
    ("punctual", "account_holds"),
    ("punctual", "timers_increase"),
    ("punctual", "no_event_behind_cti"),
    ("punctual", "ctis_increase"),
]

LYING = (
    "intervals",
    *["trips"] * 5,
    "beating",
    *["ordered"] * 3,
    "punctual",
    "punctual.diverted",
    *["ledger"] * 4,
    "trips",
    "the carry",
)
"""What the command asks and the gate does not: intervals as usual, landings told, and what lies on disk."""


@pytest.fixture(scope="module")
def parcels_run(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """Give a run whose folder would be a pattern, with three hours: two published, the third at written."""
    made = trial(tmp_path_factory.mktemp("judged") / "a 100% {x}[1]*", PARCELS, {"parcels": parcels()})
    made.ran("main", SPANS[:2])
    run_backfill(replace(made.wanted("main"), gate=hold), SPANS[2:])
    return made


@pytest.fixture(params=["duckdb", "spark"])
def session(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Session | None:
    """Give Spark to the judge, which takes all rows for very many; or nothing: what is found is the same."""
    if request.param == "duckdb":
        return None
    monkeypatch.setattr(views, "LARGE", 0)
    lent: LentSpark = request.getfixturevalue("spark")
    return lent.session


@pytest.fixture
def here(parcels_run: Trial, tmp_path: Path) -> Trial:
    """Give a copy that a test may spoil."""
    shutil.copytree(parcels_run.base, tmp_path / "copy")
    return replace(parcels_run, base=tmp_path / "copy")


def broken(found: tuple[Judgement, ...]) -> dict[tuple[str, str], Judgement]:
    return {(each.table, each.expectation): each for each in found if not each.held}


def spoil(here: Trial, stream: str, commit: int, change: Callable[[pa.Table], pa.Table | None]) -> None:
    """Change the first file of a commit that `change` has an answer for."""
    path = stream_path(here.root("main"), stream)
    for file in rows_of(here.root("main"), path, [commit], pa.schema([]), log_state(here.root("main"))).files:
        changed = change(pq.read_table(file))
        if changed is not None:
            pq.write_table(changed, file)
            return
    raise AssertionError(f"commit {commit} has no such row in {stream}")


def with_time(rows: pa.Table, place: int, tick: int) -> pa.Table:
    """Give one row another event time."""
    stamps = ticks(rows["event_time"]).copy()
    stamps[place] = tick
    values = pa.array(stamps, mask=pc.is_null(rows["event_time"]).to_numpy(zero_copy_only=False)).cast(TIME)
    return rows.set_column(rows.schema.get_field_index("event_time"), "event_time", values)


def first(rows: pa.Table, where: pc.Expression) -> int | None:
    numbered = rows.append_column("__at", pa.array(range(rows.num_rows))).filter(where)
    return numbered["__at"][0].as_py() if numbered.num_rows else None


def test_what_a_flow_made_holds_and_its_verdict_is_kept_once(here: Trial) -> None:
    root = here.root("main")
    assert log_state(root).commits[3].state is State.WRITTEN
    found = check_commit(here.flow, root, 3)
    assert [(each.table, each.expectation) for each in found] == EXPECTED
    assert broken(found) == {}
    assert all(each.looked_at for each in found)
    kept = read_quality(root)
    assert [(row.table, row.expectation, row.commit, row.start, row.end) for row in kept] == [
        (*each, 3, *SPANS[2]) for each in EXPECTED
    ]
    check_commit(here.flow, root, 3)
    assert [replace(row, at=0) for row in read_quality(root)] == [replace(row, at=0) for row in kept]
    assert not (root / "quality_docs").exists(), "Great Expectations' own pages are made where something was found"


def test_a_folder_that_looks_like_a_pattern(session: Session | None, parcels_run: Trial) -> None:
    found = check_span(parcels_run.flow, parcels_run.root("main"), *SPANS[1], session=session)
    assert broken(found) == {}
    assert found[0].looked_at == log_state(parcels_run.root("main")).commits[2].counts["landed"]["parcels"]  # type: ignore[index]
    assert {(row.commit, row.start) for row in read_quality(parcels_run.root("main"), commit=0)} == {(0, SPANS[1][0])}


def test_violations_planted_in_a_written_commit_and_at_its_beginning(session: Session | None, here: Trial) -> None:
    """One check of a commit in which three things are wrong, two against what earlier commits sent."""
    root = here.root("main")
    depots: list[str] = []

    def first_timer(rows: pa.Table) -> pa.Table | None:
        place = first(rows.sort_by("arrival"), pc.field("kind") == "timer")
        if place is None:
            return None
        ordered = rows.sort_by("arrival")
        depots.append(ordered["depot"][place].as_py())
        return with_time(ordered, place, BEGIN)

    def lost(rows: pa.Table) -> pa.Table | None:
        place = first(rows, pc.field("kind") == "data")
        return None if place is None else pa.concat_tables([rows.slice(0, place), rows.slice(place + 1)])

    def behind(rows: pa.Table) -> pa.Table | None:
        return with_time(rows, first(rows, pc.field("kind") == "data") or 0, BEGIN)

    spoil(here, "beating", 3, first_timer)
    spoil(here, "ordered", 3, lost)
    spoil(here, "punctual", 3, behind)
    found = broken(check_commit(here.flow, root, 3, session=session))
    assert set(found) == {
        ("beating", "timers_increase"),
        ("ordered", "account_holds"),
        ("punctual", "account_holds"),
        ("punctual", "no_event_behind_cti"),
    }
    timer = found["beating", "timers_increase"].rows[0]
    assert (timer["depot"], timer["commit"], timer["governed_by"]["commit"]) == (depots[0], 3, 2)
    event = found["punctual", "no_event_behind_cti"].rows[0]
    assert event["governed_by"]["commit"] == 2
    assert "number" in event, "the row is shown with its payload"
    assert found["ordered", "account_holds"].rows[0]["missing"] == 1
    assert found["punctual", "account_holds"].rows[0]["missing"] == -1
    assert {row.held for row in read_quality(root, commit=3)} == {True, False}
    assert (root / "quality_docs" / "commit-3" / "index.html").exists()


def test_a_span_without_a_promise_of_its_own_is_held_to_the_newest_one_before(
    session: Session | None, here: Trial
) -> None:
    def behind(rows: pa.Table) -> pa.Table | None:
        events = rows.filter(pc.field("kind") != "cti")
        return with_time(events, first(events, pc.field("kind") == "data") or 0, BEGIN)

    spoil(here, "punctual", 3, behind)
    found = broken(check_commit(here.flow, here.root("main"), 3, session=session))
    assert set(found) == {("punctual", "no_event_behind_cti")}
    assert found["punctual", "no_event_behind_cti"].rows[0]["governed_by"]["commit"] == 2


def test_a_live_run_is_judged_just_the_same(parcels_run: Trial) -> None:
    readings = [BEGIN + minutes * MINUTE for minutes in (20, 59, 60, 61, 140, 180)]
    streamed(parcels_run, "live", BEGIN, readings)
    root = parcels_run.root("live")
    assert broken(check_span(parcels_run.flow, root, BEGIN + 60 * MINUTE, None)) == {}


def test_rows_of_some_commits_are_found_in_a_segment(
    session: Session | None, here: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings = [BEGIN + minutes * MINUTE for minutes in (20, 59, 60, 61, 140, 180)]
    streamed(here, "packed", BEGIN, readings)
    monkeypatch.setattr(packed, "TOGETHER", 4)
    landed = landed_path(here.root("packed"))
    assert compact(landed, 1)
    for number in range(1, 5):
        shutil.rmtree(landed / f"{number:08}")
    found = check_span(here.flow, here.root("packed"), BEGIN + 60 * MINUTE, None, session=session)
    assert broken(found) == {}
    assert broken(check_span(here.flow, here.root("packed"), BEGIN, None, session=session)) == {}


def test_a_commit_that_takes_anothers_place(here: Trial) -> None:
    here.ran("main", [SPANS[1]])
    assert log_state(here.root("main")).successors == {2: 4}
    assert broken(check_commit(here.flow, here.root("main"), 4)) == {}
    with pytest.raises(WrongUse, match="superseded by 4"):
        check_commit(here.flow, here.root("main"), 2)


def test_what_binds_is_looked_for_as_far_back_as_it_takes(here: Trial) -> None:
    from expectations.laws import ctis_increase, timers_increase

    here.ran("main", SPANS[2:])
    root, timers = here.root("main"), timers_increase("beating", ("depot",))
    whole = before(root, timers, [3], [2, 1], pa.schema([]), log_state(root))
    assert whole is not None
    assert set(whole["depot"].to_pylist()) >= {"east", "north", "south", "west"}
    assert set(whole["commit"].to_pylist()) == {2}, "all of them beat in the hour before"
    old = before(root, timers, [3], [1], pa.schema([]), log_state(root))
    assert old is not None
    assert set(old["commit"].to_pylist()) == {1}
    cti = before(root, ctis_increase("punctual", ()), [3], [2, 1], pa.schema([]), log_state(root))
    assert cti is not None
    promised = here.table("main", "punctual").filter((pc.field("kind") == "cti") & (pc.field("commit") < 3))
    assert cti["event_time"].to_pylist() == [pc.max(promised["event_time"]).as_py()]
    assert before(root, timers, [1], [], pa.schema([]), log_state(root)) is None


@pytest.mark.parametrize(
    ("commit", "said"),
    [(9, "9 is none, the newest is 3"), (0, "0 is none")],
)
def test_a_commit_that_is_none(parcels_run: Trial, commit: int, said: str) -> None:
    with pytest.raises(WrongUse, match=said):
        check_commit(parcels_run.flow, parcels_run.root("main"), commit)


def first_file(quality: Path, pattern: str) -> Path:
    return min(quality.glob(pattern))


@pytest.mark.parametrize(
    "damage",
    {
        "a version gone": lambda quality: first_file(quality, "_delta_log/*0.json").unlink(),
        "a version cut": lambda quality: max(quality.glob("_delta_log/*.json")).write_bytes(b'{"add": {"path'),
        "a file gone": lambda quality: first_file(quality, "*.parquet").unlink(),
        "another bit": lambda quality: flipped(first_file(quality, "*.parquet")),
        "a column added": lambda quality: DeltaTable(str(quality)).alter.add_columns(
            [Field("note", PrimitiveType("string"))]
        ),
        "verdicts changed": lambda quality: DeltaTable(str(quality)).update({"held": "false"}),
        "verdicts taken out": lambda quality: DeltaTable(str(quality)).delete("held"),
        "no folder": lambda quality: quality.rename(quality.with_name("away")) and quality.write_text(""),
    }.items(),
    ids=lambda each: each[0],
)
def test_what_checks_found_and_cannot_be_read_is_put_aside_and_judged_again(
    house: House, damage: tuple[str, Callable[[Path], object]]
) -> None:
    """No row stands on it; else no check, and no report, of the run would ever end well again."""
    house.backfill("2013-01-01", "2013-01-02")
    check_flow("tiny", None, None, None, "main", as_json=False, echo=house.tell)
    found = read_quality(house.root)
    damage[1](quality_path(house.root))

    with pytest.raises(QualityLostError, match="pulseline doctor FLOW --repair puts it aside"):
        read_quality(house.root)
    assert examine("tiny", "main", False, False, house.tell) == Exit.CHECK_FAILED  # noqa: FBT003 - the command's flags
    assert "verdicts   quality: what checks found cannot be read (" in house.text
    show_status("tiny", "main", as_json=False, tell=house.tell)
    told = house.text
    assert re.search(r"damaged +.*quality must hold what checks found; it cannot be read", told)
    assert told.endswith("next: pulseline doctor tiny --repair")
    assert examine("tiny", "main", True, False, house.tell) == Exit.FINE  # noqa: FBT003 - as above
    assert read_quality(house.root) == ()
    assert check_flow("tiny", None, None, None, "main", as_json=False, echo=house.tell) == Exit.FINE
    assert [replace(row, at=0) for row in read_quality(house.root)] == [replace(row, at=0) for row in found]


def test_the_command_says_what_holds_and_what_does_not(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-03")
    assert check_flow("tiny", None, None, None, "main", as_json=False, echo=house.tell) == Exit.FINE
    lines = house.text.splitlines()
    assert lines[0] == "tiny, run main: 2013-01-01 until 2013-01-03 (2 commits)"
    assert sum(line.startswith("✓ holds ") for line in lines) == len(EXPECTED) + len(LYING)
    assert lines[-1] == "next: pulseline report tiny"

    path = stream_path(house.root, "punctual")
    (file,) = rows_of(house.root, path, [2], pa.schema([]), log_state(house.root)).files
    rows = pq.read_table(file)
    pq.write_table(with_time(rows, first(rows, pc.field("kind") == "data") or 0, 0), file)
    assert check_flow("tiny", "2013-01-02", None, None, "main", as_json=False, echo=house.tell) == Exit.CHECK_FAILED
    text = house.text
    assert "✗ FAILS  punctual" in text
    assert "1 row breaks it" in text
    assert "held against  kind cti" in text
    assert "> breaks it   kind data, arrival 2013-01-02" in text
    assert "`pulseline run tiny --plan` makes what stands before it anew" in text
    assert "next: pulseline run tiny --start 2013-01-02 --end 2013-01-03" in text
    assert check_flow("tiny", None, None, None, "main", as_json=False, echo=house.tell) == Exit.CHECK_FAILED
    assert house.text.splitlines()[-1] == "next: pulseline run tiny --start 2013-01-02 --end 2013-01-03", (
        "that day alone"
    )

    assert check_flow("tiny", None, None, 2, "main", as_json=True, echo=house.tell) == Exit.CHECK_FAILED
    *each, summary = [json.loads(line) for line in house.text.splitlines()]
    assert len(each) == len(EXPECTED) + len(LYING)
    assert (summary["flow"], summary["run"], summary["commit"], summary["held"]) == ("tiny", "main", 2, False)
    assert summary["blocking_failed"] == [f"{row['table']}: {row['sentence']}" for row in each if not row["held"]]
    told = summary["sentence"]
    assert summary["question"] is None, "readers see it already"
    assert told.startswith("does not hold: ")
    assert "1 row breaks it of " in told
    assert "landed in commit 2 (2013-01-02)" in told or "landed in commit 2 (2013-01-02 until 2013-01-03)" in told
    assert told.endswith("next: pulseline run tiny --start 2013-01-02 --end 2013-01-03")


@pytest.mark.parametrize(
    ("where", "shorter", "asked"),
    [
        ("landed/00000002/trips", False, True),
        ("landed/00000002/trips", True, True),
        ("landed/00000002/trips", False, False),
        ("streams/punctual", False, True),
        ("streams/punctual", True, True),
    ],
)
def test_where_rows_cannot_be_read_the_files_that_are_damaged_are_what_is_found(
    house: House, where: str, *, shorter: bool, asked: bool
) -> None:
    flow, own = house.config / "flows" / "tiny.yaml", "expect: [{expect_column_values_to_not_be_null: {column: line}}]"
    if asked:
        flow.write_text(flow.read_text().replace("arrival: went}", f"arrival: went, {own}}}"))
    house.backfill("2013-01-01", "2013-01-03")
    about = "trips" if "landed" in where else "punctual"
    table = rows_of(house.root, stream_path(house.root, "punctual"), [2], pa.schema([]), log_state(house.root))
    file = house.root / f"{where}.parquet" if about == "trips" else Path(table.files[0])
    flipped(file)
    if shorter:
        file.write_bytes(file.read_bytes()[:1_000])
    assert check_flow("tiny", None, None, None, "main", as_json=False, echo=house.tell) == Exit.CHECK_FAILED
    printed = house.text
    assert f"✗ FAILS  {about}" in printed
    assert str(file.parent) in printed
    assert "note: nothing else was asked, because not all of these rows can be read" in printed
    assert printed.splitlines()[-1] == "next: pulseline doctor tiny --deep --repair"
    assert {(each.table, each.expectation) for each in read_quality(house.root)} == {(about, "as_published")}
    assert examine("tiny", "main", True, False, house.tell, deep=True) == Exit.FINE  # noqa: FBT003 - the command's flags
    assert check_flow("tiny", None, None, None, "main", as_json=False, echo=house.tell) == Exit.FINE


def overwritten(path: Path) -> None:
    """Put another value into a table as a whole, as anybody may who has delta-rs."""
    rows = DeltaTable(str(path)).to_pyarrow_table()
    numbers = pc.if_else(pc.equal(rows["number"], 3), 777, rows["number"])
    write_deltalake(str(path), rows.set_column(rows.column_names.index("number"), "number", numbers), mode="overwrite")


def shown(house: House) -> None:
    show_stream("tiny", "punctual", None, None, 0, "csv", "main", house.tell)


def proposed(house: House) -> None:
    propose("tiny", "punctual", "main", False, house.tell)  # noqa: FBT003 - the command's flag


def traced(house: House) -> None:
    explain_row("tiny", "trips@2013-01-01T12:00:00/1", "main", house.tell, as_json=False)


def reshaped(path: Path) -> None:
    """Put other columns into a table, and none of its own."""
    write_deltalake(str(path), pa.table({"a": [1, 2]}), mode="overwrite", schema_mode="overwrite")


@pytest.mark.parametrize(
    "change",
    [
        overwritten,
        reshaped,
        lambda path: DeltaTable(str(path)).update(updates={"number": "777"}, predicate="number = 3"),
        lambda path: DeltaTable(str(path)).delete("number = 3"),
        lambda path: write_deltalake(str(path), DeltaTable(str(path)).to_pyarrow_table().slice(0, 2), mode="append"),
    ],
    ids=["overwritten", "reshaped", "updated", "deleted", "appended"],
)
def test_rows_that_somebody_else_changed_in_a_table_are_not_what_was_published(
    house: House, change: Callable[[Path], object]
) -> None:
    """The files of the commits lie there as they were, and readers see others."""
    house.backfill("2013-01-01", "2013-01-03")
    change(stream_path(house.root, "punctual"))
    for start in (None, "2013-01-02"):
        assert check_flow("tiny", start, None, None, "main", as_json=False, echo=house.tell) == Exit.CHECK_FAILED
        printed = house.text
        assert re.search(r"✗ FAILS  punctual .*\n.*\n.*streams/punctual.* is not ours and ", printed)
        assert "note: nothing else was asked" in printed
        assert printed.splitlines()[-1] == "next: pulseline doctor tiny --deep --repair"
    show_status("tiny", "main", as_json=False, tell=house.tell)
    assert re.search(r"damaged +streams/punctual: [A-Z]+ in version \d+ is not ours and \w+ \w+", house.text)
    (told,) = read_home(read_settings(), wall_now(), ["tiny"], lambda _: None).runs
    assert any("streams/punctual: " in need.words and " is not ours and " in need.words for need in told.needs)
    with pytest.raises(JobError, match=r"streams/punctual: .* doctor tiny --repair puts the rows of the run back"):
        report_flow("tiny", None, "main", as_json=False, echo=house.tell)
    for tell in (shown, proposed, traced):
        with pytest.raises(JobError, match=r"streams/punctual: .* is not ours .* doctor tiny --repair puts them back"):
            tell(house)
    show_stream("tiny", "beating", None, None, 3, "csv", "main", house.tell)
    tell_tables(TablesQuery(flow="tiny", run="main", stream="punctual", commit=None, as_json=False), house.tell)
    assert house.text.splitlines()[-1].endswith("pulseline doctor tiny --repair puts the rows of the run back")
    with pytest.raises(ForeignWriteError, match=r"streams/punctual must be written by its run alone"):
        house.backfill("2013-01-03", "2013-01-04")
    assert examine("tiny", "main", True, False, house.tell) == Exit.FINE  # noqa: FBT003 - the command's flags
    assert check_flow("tiny", None, None, None, "main", as_json=False, echo=house.tell) == Exit.FINE
    report_flow("tiny", None, "main", as_json=False, echo=house.tell)


def test_after_two_applies_in_a_row_what_is_published_is_checked_as_before(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-03")
    file = house.config / "flows" / "tiny.yaml"
    own = "    expect:\n      - expect_column_values_to_not_be_null: {column: number}\n"
    written = file.read_text().replace(
        "  punctual: {advance_time: ordered, every: {events: 2}, delay: 1h, late: divert}\n",
        "  punctual:\n    advance_time: ordered\n    every: {events: 2}\n    delay: 1h\n    late: divert\n" + own,
    )
    written = written.replace(
        "  trips: {feed: {parquet: trips.parquet}, key: [station, line], time: planned, arrival: went}\n",
        "  trips:\n    feed: {parquet: trips.parquet}\n    key: [station, line]\n    time: planned\n    arrival: went\n"
        + own,
    )
    for delay in ("2h", "3h"):
        file.write_text(written.replace("delay: 1h", f"delay: {delay}"))
        apply_flow(ApplyRequest(flow="tiny"), house.tell)
        assert check_flow("tiny", None, None, None, run="main", as_json=False, echo=house.tell) == 0
    house.backfill("2013-01-03", "2013-01-04")
    assert house.text
    assert check_flow("tiny", None, None, None, run="main", as_json=False, echo=house.tell) == 0
    told = [line for line in house.text.splitlines() if "never be null" in line]
    assert sorted(line.split()[2] for line in told) == ["punctual"] * 2 + ["trips"] * 2, "by each flow with an interval"


@pytest.mark.parametrize(
    ("start", "commit", "said"),
    [
        ("2013-01-01", 2, "give one or the other"),
        (None, 7, "7 is none, the newest is 3"),
        ("2014-01-01", None, "nothing is published in this span"),
        ("2013-01-01T03:00", None, "grid"),
    ],
)
def test_wrong_use_is_told_before_spark_starts(ran: House, start: str | None, commit: int | None, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        check_flow("tiny", start, None, commit, "main", as_json=False, echo=ran.tell)


def test_nothing_published_names_what_to_run(house: House) -> None:
    with pytest.raises(WrongUse, match="next: pulseline run tiny"):
        check_flow("tiny", None, None, None, "main", as_json=False, echo=house.tell)


BLOCKED = """\
flow: blocked
every: 1h
sources:
  rows: {feed: {parquet: rows.parquet}, key: gate, time: sent, arrival: seen}
streams:
  beating: {heartbeat: rows, interval: 5m, slack: 30s}
  ordered: {merge: beating, ports_by: {gate: [p, q]}, max_ahead: %s}
"""


@pytest.mark.parametrize(("bound", "warns"), [("off", True), ("1d", False)])
def test_a_merge_that_one_row_of_another_century_blocks_warns_and_is_published(
    tmp_path: Path, bound: str, *, warns: bool
) -> None:
    seen = [BEGIN + number * MINUTE // 8 for number in range(480)]
    sent = [at + (86 * 365 * 24 * 60 * MINUTE if number == 8 else 0) for number, at in enumerate(seen)]
    stamps = {name: pa.array(of, pa.int64()).cast(TIME) for name, of in (("sent", sent), ("seen", seen))}
    rows = pa.table({"gate": ["pq"[number % 2] for number in range(480)], **stamps})
    here = trial(tmp_path, BLOCKED % bound, {"rows": rows})
    here.ran("main", SPANS[:1])
    found = check_commit(here.flow, here.root("main"), 1)
    assert set(broken(found)) == ({("ordered", "few_held")} if warns else set())
    if warns:
        told = broken(found)["ordered", "few_held"]
        assert (told.severity, told.unexpected > 200) == ("warning", True)
        assert blocking(found) == [], "it is published all the same"


PROJECTED = """\
flow: projected
every: 1h
sources:
  rows: {feed: {parquet: rows.parquet}, key: gate, time: sent, arrival: seen}
streams:
  beating: {heartbeat: rows, interval: 5m, slack: 30s}
  keyed: {project: beating, columns: {n: "1"}}
  ordered: {merge: beating, ports_by: {gate: [p, q]}}
  punctual: {advance_time: ordered, every: {events: 9}, delay: 1m, late: drop}
  bare: {project: punctual, columns: {n: "1"}}
  named: {project: punctual, columns: {gate: gate}}
"""


def test_a_projection_of_a_stream_without_key_has_no_law_of_timers_that_it_cannot_be_held_to(tmp_path: Path) -> None:
    seen = [BEGIN + number * MINUTE // 8 for number in range(480)]
    times = pa.array(seen, pa.int64()).cast(TIME)
    rows = pa.table({"gate": ["pq"[number % 2] for number in range(480)], "sent": times, "seen": times})
    here = trial(tmp_path, PROJECTED, {"rows": rows})
    here.ran("main", SPANS[:1])
    found = check_commit(here.flow, here.root("main"), 1)

    assert broken(found) == {}
    judged = {(each.table, each.expectation) for each in found}
    assert ("keyed", "timers_increase") in judged
    assert not {("bare", "timers_increase"), ("named", "timers_increase")} & judged
    assert {("bare", "ctis_increase"), ("named", "no_event_behind_cti")} <= judged


def test_results_of_unions_joins_and_windows_left_with_their_promises(tmp_path: Path) -> None:
    """Of every cut and scope: edges and intervals, stream-wide and by key, held back by ends that nobody knows."""
    spells = relations.rows(2, 70).select(["line", "gate", "number", "weight", *relations.TIMES])
    pcsv.write_csv(spells, tmp_path / "spells.csv")
    here = trial(tmp_path, relations.FLOW, {"moves": relations.rows(1, 90)})
    here.run("main", cut(*relations.SPAN, relations.CUTS), final=relations.END - 1)
    found = check_span(here.flow, here.root("main"), None, None)
    assert broken(found) == {}
    asked = {each.table: each.looked_at for each in found if each.expectation == "rows_leave_promised"}
    assert set(asked) == {"both", "pairs", "open", "keyed", "apart"}
    assert min(asked.values()) >= 5

    def sooner(rows: pa.Table) -> pa.Table | None:
        place = first(rows, pc.field("kind") == "data")
        if place is None:
            return None
        at = rows.schema.get_field_index("arrival")
        stamps = ticks(rows["arrival"]).copy()
        stamps[place] = BEGIN
        return rows.set_column(at, "arrival", pa.array(stamps).cast(TIME))

    spoil(here, "apart", 1, sooner)
    assert set(broken(check_commit(here.flow, here.root("main"), 1))) == {("apart", "rows_leave_promised")}


@pytest.mark.parametrize("left", [0, 100, 2_000])
def test_a_damaged_file_is_named_with_what_to_do(here: Trial, left: int) -> None:
    root = here.root("main")
    *_, file = rows_of(root, stream_path(root, "punctual"), [3], pa.schema([]), log_state(root)).files
    Path(file).write_bytes(Path(file).read_bytes()[:left])
    with pytest.raises(FileDamagedError, match=f"{re.escape(file)} must be as it was written.*pulseline doctor FLOW"):
        check_commit(here.flow, root, 3)
