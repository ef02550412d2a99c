"""The page of a day says what was found of the day, whether its rows were judged alone or with those of other days."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from expectations.laws import EVENTS
from pipelines.engine.commits.quality import read_quality
from pipelines.jobs.commands.check import check_flow
from pipelines.jobs.commands.publish import answer_of, publish_commit
from pipelines.jobs.commands.run import RunRequest, run_flow
from pipelines.jobs.facts.report import Reported, read_facts
from pipelines.jobs.runs.counts import counted
from pipelines.jobs.runs.gate import RejectedError
from pipelines.jobs.runs.known import open_run
from tests.jobs.conftest import FIRST, HOUR

if TYPE_CHECKING:
    from tests.jobs.conftest import House

DAYS = 5
ROWS = 24
SEEDS = 12 if os.environ.get("PULSELINE_WIDE") else 1
CHECKS = """
    expect:
      - expect_column_values_to_be_between: {column: number, min_value: 0, max_value: 1000000}
      - expect_column_values_to_not_be_null: {column: note, mostly: 0.8}
        severity: warning
      - expect_column_values_to_be_in_set: {column: note, value_set: [a, b], mostly: 0.5}
        severity: warning
        where: line = 1
      - expect_column_values_to_be_between: {column: weight, max_value: 9}
        severity: warning
      - expect_column_values_to_be_in_set: {column: note, value_set: [a, b, c]}
        severity: warning
      - expect_column_values_to_be_unique: {column: weight}
        severity: warning
      - expect_column_mean_to_be_between: {column: weight, max_value: 5}
        severity: warning
      - expect_column_sum_to_be_between: {column: weight, max_value: 130}
        severity: warning
      - expect_column_distinct_values_to_contain_set: {column: note, value_set: [c]}
        severity: warning
      - expect_column_unique_value_count_to_be_between: {column: note, min_value: 3}
        severity: warning
      - expect_table_row_count_to_be_between: {min_value: 22, max_value: 26}
        severity: warning
"""
FLOW = f"""\
flow: tiny
timezone: America/New_York
buckets: 2
sources:
  trips:
    feed: {{parquet: trips.parquet}}
    key: line
    time: planned
    arrival: went{CHECKS}
streams:
  beating: {{heartbeat: trips, interval: 6h}}
  punctual:
    advance_time: beating
    every: {{events: 2}}
    delay: 1h
    late: divert{CHECKS}
      - expect_column_values_to_be_increasing: {{column: number}}
        severity: warning
"""
RUN = "tiny", "main"
Found = dict[tuple[str, str], tuple[bool, int, int]]


def trips(drawn: random.Random) -> dict[str, list[Any]]:
    """Draw days of which some have too few values, or rows, or odd ones."""
    rows: dict[str, list[Any]] = {name: [] for name in ("number", "line", "planned", "note", "weight")}
    for day in range(DAYS):
        odd = drawn.choice([0.0, 0.0, 0.3, 0.6])
        for at in range(drawn.choice([ROWS, ROWS, ROWS - 6])):
            rows["number"].append(day * ROWS + at if drawn.random() > odd / 9 else -1 - at)
            rows["line"].append(at % 2)
            rows["planned"].append(FIRST + (24 * day + at) * HOUR)
            rows["note"].append(None if drawn.random() < odd else drawn.choice("aabbcd"))
            rows["weight"].append(drawn.randrange(0, 40 if drawn.random() < odd else 20) / 2)
    return rows


def write(house: House, rows: dict[str, list[Any]]) -> None:
    """Write the feed."""
    instants = pa.array(rows["planned"], pa.timestamp("us", "UTC"))
    table = pa.table({**rows, "planned": instants, "went": instants})
    pq.write_table(table, house.config / "flows" / "trips.parquet")


def publish(house: House, rows: dict[str, list[Any]], day: int, drawn: random.Random) -> None:
    """Run a day; where it is rejected a person lets it pass, or its rows are mended and it runs again."""
    start, end = (f"{FIRST.date().replace(day=1 + each):%Y-%m-%d}" for each in (day, day + 1))
    wanted = RunRequest(flow="tiny", start=start, end=end)
    try:
        run_flow(wanted, house.tell)
    except RejectedError:
        if drawn.random() < 0.5:
            (entry,) = run_flow(replace(wanted, hold=True), house.tell)
            check_flow("tiny", None, None, entry.commit, run="main", as_json=True, echo=house.tell)
            answer = answer_of("so be it", None, "ann")
            publish_commit("tiny", entry.commit, run="main", as_json=True, echo=house.tell, answer=answer)
            return
        rows["number"] = [
            max(0, number) if planned < FIRST + 24 * (day + 1) * HOUR else number
            for number, planned in zip(rows["number"], rows["planned"], strict=True)
        ]
        write(house, rows)
        run_flow(wanted, house.tell)


def pages() -> dict[str, Found]:
    """Give what the page of each day says of each expectation, which it also remembers so."""
    known = open_run(*RUN)
    found = {}
    for entry in known.state.published:
        facts = read_facts(Reported(known=known, span=tuple(entry.span)), None)  # type: ignore[arg-type]
        told = {(each.table, each.name): (each.held, each.looked_at, each.unexpected) for each in facts.expectations}
        found[known.moments.argument(entry.span.start)] = told
        newest = {(each.table, each.name): each.memory.points[-1:] for each in facts.expectations}
        assert {name: (point.held,) for name, points in newest.items() for point in points} == {
            name: told[name][:1] for name, points in newest.items() if points
        }
        assert all(point.span == tuple(entry.span) for points in newest.values() for point in points)
    return found


def gates() -> dict[str, Found]:
    """Give what the gate found of each published commit."""
    known = open_run(*RUN)
    judged = read_quality(known.root)
    return {
        known.moments.argument(entry.span.start): {
            (each.table, each.expectation): (each.held, each.looked_at, 0 if each.held else each.unexpected)
            for each in judged
            if each.commit == entry.commit
        }
        for entry in known.state.published
    }


def _different(one: dict[str, Found], other: dict[str, Found]) -> list[tuple[object, ...]]:
    """Give what one says otherwise than the other, of all that it says."""
    return [
        (start, *name, found, other[start].get(name))
        for start, told in one.items()
        for name, found in told.items()
        if other[start].get(name) != found
    ]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_day_is_told_as_its_gate_found_it_though_all_were_judged_together(house: House, seed: int) -> None:
    drawn = random.Random(seed)  # noqa: S311 - which rows are odd
    (house.config / "flows" / "tiny.yaml").write_text(FLOW)
    rows = trips(drawn)
    write(house, rows)
    for day in range(DAYS):
        publish(house, rows, day, drawn)
        if day in {2, DAYS - 1}:
            found = gates()
            assert _different(found, pages()) == []
            for _ in range(2):
                check_flow("tiny", None, None, None, run="main", as_json=True, echo=house.tell)
                now = pages()
                assert _different(found, now) == []
                more = {(start, *name) for start, told in now.items() for name in {*told} - {*found[start]}}
                assert all(now[start][table, name][0] for start, table, name in more), "all days together hold it"


def test_of_how_many_rows_of_a_day_a_check_was_asked_is_told_where_somebody_counted_them(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-04")
    file, between = (
        house.config / "flows" / "tiny.yaml",
        "expect_column_values_to_be_between: {column: number, max_value: 3",
    )
    checks = f"[{{{between}0}}, severity: warning}}, {{{between}1}}, where: station = 'north', severity: warning}}]"
    file.write_text(file.read_text().replace("late: divert}", f"late: divert, expect: {checks}}}"))
    check_flow("tiny", None, None, None, run="main", as_json=True, echo=house.tell)
    known = open_run(*RUN)
    every, some = (
        each for each in read_facts(Reported(known=known), None).expectations if each.name.startswith("expect_")
    )
    events = [sum(counted(each, "punctual").get(kind, 0) for kind in EVENTS) for each in known.state.published]
    assert every.looked_at == sum(events) > some.looked_at > 0
    assert {point.looked_at for point in every.memory.points if not point.held} <= {*events}
    assert {point.looked_at for point in some.memory.points if not point.held} == {0}, "of a day it was not counted"
