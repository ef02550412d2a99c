"""The judge finds what is planted, and nothing else, in this process and however Spark has distributed the rows."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from expectations.judge import judge
from expectations.laws import JUDGED, laws_of
from expectations.offenders import plain_rows
from expectations.on_spark import SparkView
from tests.expectations.planted import (
    EDGES,
    GATES,
    INTERVALS,
    POINTS,
    WINDOWS,
    Planted,
    Row,
    edges,
    flow_of,
    good,
    identity,
    outcome,
    placed,
    row,
    seconds,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from expectations.judgement import Judgement
    from pipelines.flows.model import Flow
    from tests.conftest import LentSpark
SPAN = (1_000_000_000, 1_200_000_000)
OURS = ("beating", "timers_increase")


def session_of(judge: str, request: pytest.FixtureRequest) -> SparkSession | None:
    if judge == "duckdb":
        return None
    lent: LentSpark = request.getfixturevalue("spark")
    return lent.session()


@pytest.fixture(scope="module", params=["duckdb", "spark"])
def session(request: pytest.FixtureRequest) -> SparkSession | None:
    """Give Spark to the judge, or nothing: what is found is the same."""
    return session_of(request.param, request)


@pytest.fixture(scope="module", params=["duckdb", pytest.param("spark", marks=pytest.mark.exhaustive)])
def plain(request: pytest.FixtureRequest) -> SparkSession | None:
    """Give nothing where what is asked is the judge's own; that the view on Spark answers alike, others show."""
    return session_of(request.param, request)


@pytest.fixture
def flow(tmp_path: Path) -> Flow:
    return flow_of(tmp_path, POINTS)


def test_nothing_planted_nothing_found_and_pages_are_made(
    plain: SparkSession | None, flow: Flow, tmp_path: Path
) -> None:
    found = judge(flow, good(flow).views(plain), SPAN, tmp_path / "docs 100%", "commit 2")
    assert [(each.table, each.expectation) for each in found if not each.held] == []
    assert {(each.expectation, each.table): each.looked_at for each in found} == {
        ("account_holds", "beating"): 606,
        ("timers_increase", "beating"): 60,
        ("timers_on_multiples", "beating"): 60,
        ("account_holds", "ordered"): 666,
        ("few_held", "ordered"): 666,
        ("timers_increase", "ordered"): 60,
        ("account_holds", "punctual"): 666,
        ("timers_increase", "punctual"): 60,
        ("no_event_behind_cti", "punctual"): 606,
        ("ctis_increase", "punctual"): 6,
    }
    index = (tmp_path / "docs 100%" / "index.html").read_text()
    assert "planted.punctual" in index
    results = json.loads((tmp_path / "docs 100%" / "planted.punctual.json").read_text())
    said = {each["expectation_config"]["description"]: each for each in results["results"]}
    assert set(said) == {law.sentence for law in laws_of(flow, "punctual")}
    assert all(each["expectation_config"]["severity"] == "critical" for each in said.values())


@dataclass
class Spoilt:
    """Streams in which violations were planted, and what the judge found."""

    streams: Planted
    planted: dict[tuple[str, str], list[Row]]
    """By expectation and table, the rows that break it, in stream order."""
    governors: dict[tuple[Any, ...], int]
    """By the identity of a row that breaks something, the arrival of what it is held against, in seconds."""
    found: tuple[Judgement, ...] = ()


@pytest.fixture(scope="module")
def spoilt(session: SparkSession | None, tmp_path_factory: pytest.TempPathFactory) -> Spoilt:
    """Plant violations at partition, key and interval boundaries of every stream, and judge once."""
    made = Spoilt(good(flow_of(tmp_path_factory.mktemp("spoilt"), POINTS)), {}, {})
    spoil_timers(made, "beating")
    spoil_port(made, "ordered")
    spoil_promises(made, "punctual")
    made.found = judge(made.streams.flow, made.streams.views(session), SPAN)
    return made


def spoil_timers(made: Spoilt, stream: str) -> None:
    """Stop time where a partition begins, at the last timer of gate p, and at the first one of gate r in the span."""
    rows = made.streams.streams[stream]
    timers = [number for number, each in enumerate(rows) if each["kind"] == "timer"]
    of = {gate: [number for number in timers if rows[number]["gate"] == gate] for gate in GATES}
    cut = next(number for number in timers if first_of_partition(rows, timers, number))
    planted = [cut, of["p"][-1], of["r"][0]]
    for number in planted:
        before = 990 if number == of["r"][0] else rows[timers[timers.index(number) - 1]]["arrival"]
        rows[number]["event_time"] = before - (1 if number == of["p"][-1] else 0)
        made.governors[identity(rows[number])] = before
    made.planted["timers_increase", stream] = [
        rows[number] for number in sorted(planted, key=lambda at: order(rows[at]))
    ]
    made.planted["timers_on_multiples", stream] = [rows[of["p"][-1]]]


def order(each: Row) -> tuple[Any, ...]:
    """Say where a row of a stream by gate stands."""
    return (each["arrival"], each["gate"], each["place"])


def first_of_partition(rows: list[Row], timers: list[int], number: int) -> bool:
    """Say whether a partition begins between a timer and the one before it of its gate."""
    place = timers.index(number)
    if not place or rows[timers[place - 1]]["gate"] != rows[number]["gate"]:
        return False
    return any(timers[place - 1] < edge <= number for edge in edges(rows)[1:-1])


def spoil_port(made: Spoilt, stream: str) -> None:
    """Send a timer of port q again; the other ports have one of the same time, and may."""
    rows = made.streams.streams[stream]
    bad = next(each for each in rows if each["kind"] == "timer" and each["arrival"] == 1_100 and each["gate"] == "q")
    bad["event_time"] = 1_090
    made.governors[identity(bad)] = 1_090
    made.planted["timers_increase", stream] = [bad]


def spoil_promises(made: Spoilt, stream: str) -> None:
    """Break the promise of the interval before, one that stands in another partition, and repeat one."""
    rows = made.streams.streams[stream]
    cut = next(edge for edge in edges(rows)[4:-1] if rows[edge]["kind"] == "data")
    promise = max((each for each in rows[:cut] if each["kind"] == "cti"), key=lambda each: each["event_time"])
    first = next(each for each in rows if each["kind"] == "data")
    ctis = [each for each in rows if each["kind"] == "cti"]
    rows[cut]["event_time"], first["event_time"] = promise["event_time"] - 1, 979
    ctis[3]["event_time"] = ctis[2]["event_time"]
    made.governors |= {identity(first): 990, identity(rows[cut]): promise["arrival"]}
    made.governors[identity(ctis[3])] = ctis[2]["arrival"]
    made.planted["no_event_behind_cti", stream] = [first, rows[cut]]
    made.planted["ctis_increase", stream] = [ctis[3]]


def test_exactly_what_is_planted_is_found(spoilt: Spoilt) -> None:
    found = {(each.expectation, each.table): [identity(row) for row in each.rows] for each in spoilt.found if each.rows}
    assert found == {law: [identity(row) for row in rows] for law, rows in spoilt.planted.items()}
    counted = {(each.expectation, each.table): each.unexpected for each in spoilt.found if not each.held}
    assert counted == {law: len(rows) for law, rows in spoilt.planted.items()}
    assert all(each.remedy for each in spoilt.found)
    assert {each.expectation for each in spoilt.found if each.severity == "warning"} == {"few_held"}
    assert {each.severity for each in spoilt.found} == {"blocking", "warning"}


def test_each_row_is_held_against_what_governs_it(spoilt: Spoilt) -> None:
    rows = [row for each in spoilt.found for row in each.rows if each.expectation != "timers_on_multiples"]
    assert {identity(row): seconds(row["governed_by"]["arrival"]) for row in rows} == spoilt.governors
    assert {row["governed_by"]["commit"] for row in rows} == {1, 2}, "of the span, and of the one before"


def test_the_rows_around_stand_in_stream_order(spoilt: Spoilt) -> None:
    ordered = spoilt.streams.streams["ordered"]
    position = ordered.index(spoilt.planted["timers_increase", "ordered"][0])
    around = outcome(spoilt.found, "timers_increase", "ordered").rows[0]["around"]
    assert [identity(each) for each in around["before"]] == [
        identity(each) for each in ordered[position - 3 : position]
    ]
    assert [identity(each) for each in around["after"]] == [identity(ordered[position + 1])]
    first = next(each for each in outcome(spoilt.found, "timers_increase", "beating").rows if each["gate"] == "r")
    assert [row["commit"] for row in first["around"]["before"]] == [1], "what binds from before the span stands there"


def test_an_outcome_is_plain(spoilt: Spoilt) -> None:
    for each in spoilt.found:
        assert json.loads(json.dumps(each.rows)) == list(each.rows)
        assert all(JUDGED not in row for row in each.rows)


def test_more_violations_than_are_shown_and_rows_that_are_lost(plain: SparkSession | None, flow: Flow) -> None:
    streams = good(flow)
    ordered, punctual = streams.streams["ordered"], streams.streams["punctual"]
    ordered.append({**ordered[-1], "place": ordered[-1]["place"] + 1})
    punctual.remove(next(each for each in punctual if each["kind"] == "timer"))
    late = [each for each in punctual if each["kind"] == "data" and each["arrival"] > 1_100]
    for each in late:
        each["event_time"] = 5
    kept: dict[tuple[str, str], pa.Table] = {}

    def keep(table: str, name: str, rows: pa.Table) -> None:
        kept[table, name] = rows

    found = judge(flow, streams.views(plain), SPAN, keep=keep)
    behind = outcome(found, "no_event_behind_cti", "punctual")
    assert behind.unexpected == len(late)
    every = kept["punctual", "no_event_behind_cti"]
    assert [identity(each) for each in plain_rows(every)] == [identity(each) for each in late], "all, in stream order"
    assert every["held_against"].null_count == 0
    assert [identity(each) for each in behind.rows] == [identity(each) for each in late[:20]]
    assert all(each["around"]["before"] for each in behind.rows)

    accounts = {each.table: each for each in found if each.expectation == "account_holds"}
    assert {table: (each.held, each.unexpected) for table, each in accounts.items()} == {
        "beating": (True, 0),
        "ordered": (False, 1),
        "punctual": (False, 2),
    }
    whole = {"rows_in": 666, "main": 667, "side": 0, "dropped": 0, "held": 0, "missing": -1}
    assert accounts["ordered"].rows == (whole,)
    assert accounts["punctual"].rows[0]["missing"] == 2


@pytest.mark.parametrize(("held", "warns"), [(133, False), (134, True)])
def test_a_merge_that_keeps_more_than_a_fifth_of_what_came_in_warns(
    plain: SparkSession | None, flow: Flow, held: int, *, warns: bool
) -> None:
    streams = good(flow)
    data = [each for each in streams.streams["ordered"] if each["kind"] == "data"]
    gone = [identity(each) for each in data[-held:]]
    streams.streams["ordered"] = [each for each in streams.streams["ordered"] if identity(each) not in gone]
    views = replace(streams.views(plain), held={"ordered": {"data": held}})
    found = {each.expectation: each for each in judge(flow, views, SPAN) if each.table == "ordered"}
    assert found["account_holds"].held
    assert (found["few_held"].held, found["few_held"].severity) == (not warns, "warning")
    if warns:
        (figures,) = found["few_held"].rows
        assert (figures["rows_in"], figures["held"], found["few_held"].unexpected) == (666, held, held)


def test_few_rows_that_are_held_say_nothing(plain: SparkSession | None, flow: Flow) -> None:
    views = replace(Planted(flow=flow, streams={}, landed=0).views(plain), held={"ordered": {"data": 99}})
    (found,) = [each for each in judge(flow, views, SPAN) if each.expectation == "few_held"]
    assert found.held


def test_promises_by_key_bind_their_key_alone_and_ends_by_their_end(
    session: SparkSession | None, tmp_path: Path
) -> None:
    """Gate p lies a thousand seconds behind the promises of gate q, and q behind those of r; none of it is late."""
    own = Planted(flow=flow_of(tmp_path, EDGES), streams={"own": lifetimes()}, landed=540)
    rows = own.streams["own"]
    ends = [each for each in rows if each["kind"] == "end" and each["gate"] == "q"]
    ctis = [each for each in rows if each["kind"] == "cti" and each["gate"] == "r"]
    ends[40]["event_end"] -= 20
    ctis[-1]["event_time"] = ctis[-2]["event_time"]
    found = judge(own.flow, own.views(session), SPAN)
    broken = {each.expectation: [identity(row) for row in each.rows] for each in found if not each.held}
    assert broken == {"no_event_behind_cti": [identity(ends[40])], "ctis_increase": [identity(ctis[-1])]}
    around = [row for each in found for bad in each.rows for row in bad["around"]["before"]]
    assert [row["gate"] for row in around] == ["q"] * 3 + ["r"] * 3, "a stream by key is read key by key"


def test_an_event_that_ends_as_it_starts_has_no_lifetime(session: SparkSession | None, tmp_path: Path) -> None:
    """One tick is a lifetime, none is not, wherever a partition or a key begins; a point has no end to be held to."""
    rows = placed([row("data", at, at, gate, at + 1) for gate in GATES for at in range(1_000, 1_100)], ("gate",))
    rows[7]["event_end"] = None
    bad = sorted((rows[place] for place in (edges(rows)[3], 100, 299)), key=order)
    for number, each in enumerate(bad):
        each["event_end"] = each["event_time"] - number
    lasting = Planted(flow=flow_of(tmp_path, INTERVALS), streams={"own": rows}, landed=300)
    found = [each for each in judge(lasting.flow, lasting.views(session), SPAN) if not each.held]
    assert [(each.expectation, each.unexpected) for each in found] == [("lifetimes_last", 3)]
    assert [identity(each) for each in found[0].rows] == [identity(each) for each in bad]
    assert [each["governed_by"] for each in found[0].rows] == [None] * 3


def test_a_window_leaves_only_with_a_promise_past_its_start(session: SparkSession | None, tmp_path: Path) -> None:
    """Nothing is late and every promise moves on: three windows left too early, one of them before any promise."""
    rows = windows()
    data = [each for each in rows if each["kind"] == "data"]
    cut = next(edge for edge in edges(rows)[3:-1] if rows[edge]["kind"] == "data" and rows[edge]["gate"] == "q")
    first = next(each for each in data if each["gate"] == "r")
    bad = [rows[cut], first, [each for each in data if each["gate"] == "p"][-1]]
    for each in bad:
        # Behind the promise that closed the window before, which reaches just to its start.
        each["arrival"] -= 3
    rows = sorted(rows, key=lambda each: (each["gate"], each["arrival"], each["kind"] == "cti"))
    made = Planted(flow=flow_of(tmp_path, WINDOWS), streams={"counted": rows})
    found = [each for each in judge(made.flow, made.views(session), SPAN) if not each.held]
    assert [(each.expectation, each.table, each.unexpected) for each in found] == [
        ("rows_leave_promised", "counted", 3)
    ]
    assert [identity(row) for row in found[0].rows] == [identity(row) for row in sorted(bad, key=order)]
    governed = {row["gate"]: row["governed_by"] for row in found[0].rows}
    assert governed["r"] is None
    assert seconds(governed["q"]["event_time"]) == rows_start(found[0].rows, "q")


def rows_start(rows: Sequence[dict[str, Any]], gate: str) -> int:
    return next(seconds(row["event_time"]) for row in rows if row["gate"] == gate)


def test_windows_that_leave_with_their_promise_are_right(plain: SparkSession | None, tmp_path: Path) -> None:
    made = Planted(flow=flow_of(tmp_path, WINDOWS), streams={"counted": windows()})
    found = judge(made.flow, made.views(plain), SPAN)
    assert [each for each in found if not each.held] == []
    (asked,) = (each for each in found if each.expectation == "rows_leave_promised")
    assert asked.looked_at == 60


def windows() -> list[Row]:
    """Give windows of ten seconds, each two seconds after its end, with the promise that lets it go behind it."""
    rows = []
    for number, gate in enumerate(GATES):
        for start in range(1_000, 1_200, 10):
            now = start + 1_000 * number
            rows += [row("data", now + 12, now, gate, now + 10), row("cti", now + 12, now + 10, gate)]
    return placed(rows, ("gate",))


def lifetimes() -> list[Row]:
    """Give starts and ends of events; an end's start lies far behind the promises, its end never does."""
    rows = []
    for number, gate in enumerate(GATES):
        for at in range(1_000, 1_090):
            now = at + 1_000 * number
            rows += [row("start", at, now, gate), row("end", at, now - 50, gate, now)]
            rows += [row("cti", at, now, gate)] if at % 3 == 0 else []
    return placed(rows, ("gate",))


def test_the_first_rows_of_a_span_are_held_against_nothing_where_nothing_went_before(
    plain: SparkSession | None, flow: Flow
) -> None:
    streams = good(flow)
    streams.streams["punctual"][1]["event_time"] = 979
    streams.before.clear()
    assert all(each.held for each in judge(flow, streams.views(plain), SPAN))


def test_the_built_in_increasing_has_no_order_and_fails(spark: LentSpark, flow: Flow) -> None:
    """Rows of one key, all timers, in order and in 16 shuffled partitions: ours holds, the built-in does not."""
    import great_expectations as gx
    from great_expectations.expectations.core.expect_column_values_to_be_increasing import (
        ExpectColumnValuesToBeIncreasing,
    )

    timers = placed([row("timer", at, at, "p") for at in range(1_000, 2_000)], ("gate",))
    streams = Planted(flow=flow, streams={"beating": timers})
    views = streams.views(spark.session())
    (ours,) = [each for each in judge(flow, views, SPAN) if (each.table, each.expectation) == OURS]
    assert (ours.held, ours.looked_at) == (True, 1_000)
    view = views.tables["beating"]
    assert isinstance(view, SparkView)
    context = gx.get_context(mode="ephemeral")
    batch = (
        context.data_sources.add_spark("spark", persist=False)
        .add_dataframe_asset("rows")
        .add_batch_definition_whole_dataframe("whole")
        .get_batch(batch_parameters={"dataframe": view.rows})
    )
    built_in = batch.validate(ExpectColumnValuesToBeIncreasing(column="event_time", strictly=True))
    assert not built_in.success
    assert built_in.result["unexpected_count"] > 100, "though every timer comes after the one before it"
