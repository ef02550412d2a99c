"""`pulseline expect`: what it proposes can be pasted as it is, and all that is published keeps it."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.engine.commits.readers import log_state, read_stream
from pipelines.flows.check import with_checks
from pipelines.flows.reading import read_flow
from pipelines.jobs.commands.check import check_span
from pipelines.jobs.commands.expect import propose
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.facts.profile import proposals, unbounded

BETWEEN = "values_to_be_between"

if TYPE_CHECKING:
    from tests.jobs.conftest import House


def test_the_proposal_is_pasted_as_it_is_and_holds(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-03")
    propose("tiny", "punctual", "main", as_json=False, echo=house.tell)
    lines = house.text.splitlines()
    assert "in 2 intervals; of so few days the bounds are a first guess" in lines[0]
    assert lines[-1].endswith("then: pulseline check tiny")

    file = house.config / "flows" / "tiny.yaml"
    flow = read_flow(file)
    text = file.read_text()
    inline = next(line for line in text.splitlines() if line.startswith("  punctual:"))
    spread = "  punctual:\n    advance_time: ordered\n    every: {events: 2}\n    delay: 1h\n    late: divert"
    file.write_text(text.replace(inline, "\n".join((spread, *lines[1:-1]))))
    proposed = read_flow(file)
    made = with_checks(flow, proposed)
    found = [each for each in check_span(made, house.root, None, None) if each.expectation.startswith("expect_")]
    rows = read_stream(house.root, "punctual", state=log_state(house.root))
    assert len(found) == len(list(proposals(rows))) > 3
    assert [each.expectation for each in found if not each.held] == []
    assert {each.severity for each in found} == {"warning"}


def test_the_proposal_for_what_is_set_aside_is_pasted_under_its_stream_and_holds(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-03")
    propose("tiny", "punctual.diverted", "main", as_json=False, echo=house.tell)
    first, *lines, last = house.text.splitlines()
    assert " of punctual.diverted in 2 intervals" in first
    assert lines[:3] == ["    sides:", "      diverted:", "        expect:"]
    assert "Paste it under `punctual:` in the flow's file (its items, where `sides:` stands there already)" in last

    file = house.config / "flows" / "tiny.yaml"
    flow, text = read_flow(file), file.read_text()
    inline = next(line for line in text.splitlines() if line.startswith("  punctual:"))
    spread = "  punctual:\n    advance_time: ordered\n    every: {events: 2}\n    delay: 1h\n    late: divert"
    file.write_text(text.replace(inline, "\n".join((spread, first, *lines))))
    found = check_span(with_checks(flow, read_flow(file)), house.root, None, None)
    own = [each for each in found if each.expectation.startswith("expect_")]
    assert {each.table for each in own} == {"punctual.diverted"}
    assert len(own) > 1
    assert [each.expectation for each in own if not each.held] == []


def test_the_proposal_for_a_source_is_pasted_under_it_and_what_landed_keeps_it(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-03")
    propose("tiny", "trips", "main", as_json=False, echo=house.tell)
    first, *lines, last = house.text.splitlines()
    assert first.startswith("    # From 23 events of trips in 2 intervals"), "one never went"
    assert "Paste it under `trips:`" in last
    file = house.config / "flows" / "tiny.yaml"
    flow, inline = read_flow(file), next(line for line in file.read_text().splitlines() if "trips: {feed" in line)
    spread = (
        "  trips:\n    feed: {parquet: trips.parquet}\n    key: [station, line]\n    time: planned\n    arrival: went"
    )
    file.write_text(file.read_text().replace(inline, "\n".join((spread, *lines))))
    made = with_checks(flow, read_flow(file))
    found = [each for each in check_span(made, house.root, None, None) if each.expectation.startswith("expect_")]
    assert len(found) == sum(line.startswith("      - ") for line in lines) > 3
    assert [each.expectation for each in found if not each.held] == []


def test_bounds_are_wider_than_what_was_seen_and_names_are_no_set() -> None:
    rows = pa.table(
        {
            "kind": ["data"] * 100 + ["timer"],
            "commit": [1] * 60 + [2] * 41,
            "litres": [float(at) for at in range(100)] + [None],
            "pump": [at % 4 for at in range(100)] + [None],
            "fuel": [("diesel", "petrol")[at % 2] for at in range(100)] + [None],
            "plate": [f"plate {at}" for at in range(100)] + [None],
            "note": ["x", None] * 50 + [None],
        }
    )
    found = {(each.name, each.arguments.get("column")): each.arguments for each in proposals(rows)}
    count = found.pop(("expect_table_row_count_to_be_between", None))
    assert (count["min_value"], count["max_value"]) == (20, 120), "the timer is no event"
    assert found["expect_column_values_to_be_between", "litres"] == {
        "column": "litres",
        "min_value": -9.9,
        "max_value": 108.9,
    }
    assert found["expect_column_values_to_be_between", "pump"] == {"column": "pump", "min_value": -1, "max_value": 4}
    assert found["expect_column_values_to_be_in_set", "fuel"]["value_set"] == ["diesel", "petrol"]
    assert ("expect_column_values_to_be_in_set", "plate") not in found
    assert ("expect_column_values_to_not_be_null", "plate") in found
    assert ("expect_column_values_to_not_be_null", "note") not in found
    assert not list(proposals(rows.filter(pc.field("kind") == "timer")))


def test_an_interval_without_events_is_named_for_none_can_have_fewer() -> None:
    rows = pa.table({"kind": ["data", "data", "timer"], "commit": [1, 1, 2]})
    (count,) = proposals(rows, commits=2)
    assert count.arguments == {"min_value": 0, "max_value": 4}
    assert count.seen == "0 to 2 an interval; one was empty, so none is too few: raise min_value to be told of such"


@given(st.lists(st.decimals(places=30, min_value=-(10**6), max_value=10**6), min_size=1))
def test_bounds_of_decimals_cut_none_of_them_off(values: list[Decimal]) -> None:
    rows = of("price", values, pa.decimal128(38, 30))
    (found,) = (each.arguments for each in proposals(rows) if BETWEEN in each.name)
    low, high = (Decimal(repr(found[name])) for name in ("min_value", "max_value"))
    assert low <= min(values) <= max(values) <= high


def test_columns_without_bounds_are_named_with_the_reason(ran: House) -> None:
    wide = of("price", [Decimal(2**53 + 1)], pa.decimal128(20, 2))
    assert list(unbounded(wide)) == [("price", "too large for a bound")]
    assert list(unbounded(of("weight", [1.0, float("nan"), None], pa.float64()))) == [("weight", "not all are numbers")]
    assert list(unbounded(of("due", [date(2026, 4, 1)], pa.date32()))) == [("due", "days go on")]
    assert not [each for each in proposals(wide) if BETWEEN in each.name]
    propose("tiny", "punctual", "main", as_json=False, echo=ran.tell)
    assert "    # No bounds for planned (days go on), went (days go on), weight (not all are numbers).\n" in ran.text


def of(name: str, values: list[Any], kind: pa.DataType) -> pa.Table:
    """Give events with one column of payload."""
    return pa.table({"kind": ["data"] * len(values), "commit": [1] * len(values), name: pa.array(values, kind)})


def test_json_and_what_is_not_there(ran: House) -> None:
    propose("tiny", "beating", "main", as_json=True, echo=ran.tell)
    assert {"check", "arguments", "seen"} == set(json.loads(ran.text.splitlines()[0]))
    with pytest.raises(WrongUse, match="did you mean `punctual`"):
        propose("tiny", "punctul", "main", as_json=False, echo=ran.tell)
