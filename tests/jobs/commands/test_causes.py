"""The row behind a promise that came from elsewhere: imported CTIs, and those that come in on the side of a meeting."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.jobs.commands.ledger import LedgerQuery, show_ledger
from tests.jobs.commands.test_ledger import UTC_TIME, at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.jobs.conftest import House

SOURCES = """\
flow: tiny
sources:
  stays: {feed: {parquet: stays.parquet}, key: room, time: came, arrival: told, edge: what}
  marks: {feed: {parquet: marks.parquet}, key: room, time: came, arrival: told, edge: what}
streams:
"""
STAYS = [("a", "10:00", "10:00", "data"), ("b", "10:10", "09:00", "data"), ("b", "10:20", "09:40", "data")]
MARKS = [("a", "10:02", "09:30", "data"), ("b", "10:05", "09:30", "data"), ("a", "10:15", "09:50", "data")]


def explained(
    house: House, streams: str, marks: Sequence[tuple[str, str, str, str]], stays: Sequence[tuple[str, ...]] = STAYS
) -> list[tuple[str, str, dict[str, Any] | None]]:
    """Run a flow over a day and give each late line's stream, what is said of it at length, and its cause."""
    flows = house.config / "flows"
    (flows / "tiny.yaml").write_text(SOURCES + streams)
    for name, rows in (("stays", stays), ("marks", marks)):
        room, told, came, what = zip(*rows, strict=True)
        columns = {"told": [at(clock) for clock in told], "came": [at(clock) for clock in came]}
        table = pa.table(
            {"room": room, "what": what, **{key: pa.array(each, UTC_TIME) for key, each in columns.items()}}
        )
        pq.write_table(table.append_column("who", pa.array([name] * len(rows))), flows / f"{name}.parquet")
    house.backfill("2013-01-01", "2013-01-02")
    asked = LedgerQuery(reason="late")
    show_ledger("tiny", asked, 0, "jsonl", "main", house.tell, explain=True)
    lines = [json.loads(line) for line in house.text.splitlines()]
    show_ledger("tiny", asked, 0, "table", "main", house.tell, explain=True)
    text = house.text
    return [(line["stream"], text, line["cause"] and json.loads(line["cause"])) for line in lines]


def test_the_cause_of_an_imported_promise_is_the_row_behind_it_where_it_was_made(house: House) -> None:
    streams = "  clock: {advance_time: marks, every: {events: 1}, late: drop}\n"
    told = explained(house, streams + "  settled: {advance_time: stays, import: clock, late: drop}\n", MARKS)
    causes = [(stream, cause["who"], cause["event_time"][11:16]) for stream, _, cause in told if cause]
    assert causes == [("settled", "marks", "09:30"), ("settled", "marks", "09:50")]


def test_of_a_key_it_is_the_row_of_that_key(house: House) -> None:
    streams = "  clock: {advance_time: marks, by: key, every: {events: 1}, late: drop}\n"
    streams += "  settled: {advance_time: stays, by: key, import: clock, late: drop}\n"
    told = explained(house, streams, MARKS)
    assert [(stream, cause["room"], cause["event_time"][11:16]) for stream, _, cause in told if cause] == [
        ("settled", "b", "09:30")
    ]


GIVEN = [("a", "10:02", "09:30", "cti"), ("b", "10:05", "09:30", "cti"), ("a", "10:15", "09:50", "cti")]


def test_a_promise_that_landed_in_the_source_it_is_imported_from_is_its_own_cause(house: House) -> None:
    streams = "  settled: {advance_time: stays, by: key, import: marks, late: drop}\n"
    ((stream, text, cause),) = explained(house, streams, GIVEN)
    assert cause is not None
    assert (stream, cause["kind"], cause["arrival"][11:16]) == ("settled", "cti", "10:05")
    assert "the CTI itself, which came with the input" in text


def test_a_promise_that_came_in_on_a_side_is_its_own_cause_where_it_landed(house: House) -> None:
    stays = [*STAYS, ("b", "10:30", "09:35", "cti"), ("b", "10:40", "09:10", "data")]
    told = explained(house, "  both: {union: [stays, marks]}\n", GIVEN, stays)
    assert [(stream, cause and (cause["kind"], cause["arrival"][11:16])) for stream, _, cause in told] == [
        ("both", ("cti", "10:30"))
    ]


def test_one_that_passed_a_filter_before_its_side_is_found_behind_it(house: House) -> None:
    stays = [*STAYS, ("b", "10:30", "09:35", "cti"), ("b", "10:40", "09:10", "data")]
    streams = "  some: {filter: stays, where: who = 'stays'}\n  hours: {window: some, size: 1h, measures: {n: count}}\n"
    told = explained(house, streams, GIVEN, stays)
    assert [(stream, cause and (cause["kind"], cause["who"])) for stream, _, cause in told] == [
        ("hours", ("cti", "stays"))
    ]


CLOCK = "  clock: {advance_time: marks, every: {events: 1}, late: drop}\n"


def test_of_a_key_that_is_heard_later_it_is_found_where_it_was_made(house: House) -> None:
    streams = CLOCK + "  settled: {advance_time: stays, by: key, import: clock, late: drop}\n"
    told = explained(house, streams, MARKS, [("a", "09:20", "09:10", "data"), *STAYS[1:]])
    assert [(stream, cause and (cause["who"], cause["event_time"][11:16])) for stream, _, cause in told] == [
        ("settled", ("marks", "09:30")),
        ("settled", ("marks", "09:50")),
    ]
    assert "09:30, made before the key was heard" in told[0][1]


def test_through_a_filter_and_a_union_it_is_the_row_that_made_it(house: House) -> None:
    streams = CLOCK + "  own: {advance_time: stays, every: {events: 1}, delay: -1h, late: drop}\n"
    streams += "  none: {filter: clock, where: 'false'}\n"
    streams += "  both: {union: [own, none]}\n  settled: {advance_time: stays, import: both, late: drop}\n"
    told = explained(house, streams, MARKS, [*STAYS, ("a", "10:30", "09:20", "data")])
    found = [(cause and (cause["who"], cause["event_time"][11:16])) for stream, _, cause in told if stream == "settled"]
    assert found == [("marks", "09:30"), ("marks", "09:50"), ("marks", "09:50")]


def test_through_a_merge_of_keys_it_is_the_row_of_the_port_that_had_promised_least(house: House) -> None:
    streams = "  clock: {advance_time: marks, by: key, every: {events: 1}, late: drop}\n"
    streams += "  ordered: {merge: clock, ports_by: {room: [a, b]}}\n"
    told = explained(house, streams + "  settled: {advance_time: stays, import: ordered, late: drop}\n", MARKS)
    causes = [(cause["room"], cause["event_time"][11:16]) for stream, _, cause in told if stream == "settled" and cause]
    assert causes == [("b", "09:30")]
