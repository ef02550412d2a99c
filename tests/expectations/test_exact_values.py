"""Both judges say the same of values that floats do not hold, of what is no number, of instants and of missing ones."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from expectations.judge import judge
from expectations.laws import keys_speak
from expectations.on_duckdb import PlainView
from expectations.reckoned import Reckoned
from expectations.views import Views
from pipelines.engine.columnar.columns import ORDER_FIELDS, TIME
from pipelines.flows.errors import FlowError
from pipelines.flows.reading import read_flow
from tests.expectations.test_own_checks import SECOND, Rows, flow_of, judged, session_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ROWS = 20
ODD = 4
"""The row that is unlike all others, in each column."""
BIG = 9_007_199_254_740_992
"""The first whole number of which the next one is the same float."""
DAY = dt.date(2024, 1, 1)
NOON = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
ONLY = [ODD]
PAIRS = "expect_column_pair_values_to_be_in_set: "
CHECKS: tuple[tuple[str, list[int]], ...] = (
    ("expect_column_values_to_be_unique: {column: whole}", []),
    ("expect_column_values_to_be_unique: {column: many}", []),
    ("expect_compound_columns_to_be_unique: {column_list: [many, gate]}", []),
    ("expect_column_unique_value_count_to_be_between: {column: many, min_value: 20, max_value: 20}", []),
    ("expect_column_pair_values_to_be_equal: {column_A: many, column_B: almost}", ONLY),
    ("expect_column_pair_values_a_to_be_greater_than_b: {column_A: many, column_B: almost, or_equal: true}", ONLY),
    ("expect_column_pair_values_a_to_be_greater_than_b: {column_A: almost, column_B: many, or_equal: true}", []),
    ("expect_multicolumn_values_to_be_equal: {column_list: [many, almost]}", ONLY),
    ("expect_multicolumn_values_to_be_equal: {column_list: [two, more]}", ONLY),
    ("expect_select_column_values_to_be_unique_within_record: {column_list: [whole, many]}", []),
    ("expect_multicolumn_sum_to_equal: {column_list: [one, two], sum_total: 3.3}", ONLY),
    ("expect_multicolumn_sum_to_equal: {column_list: [one, number], sum_total: 3.1}", ONLY),
    ("expect_column_sum_to_be_between: {column: one, min_value: 22.01, max_value: 22.01}", []),
    ("expect_column_mean_to_be_between: {column: one, min_value: 1.1005, max_value: 1.1005}", []),
    ("expect_column_values_to_be_between: {column: one, min_value: 1.1, max_value: 1.1}", ONLY),
    (f"expect_column_values_to_be_in_set: {{column: same, value_set: [5, {BIG}]}}", ONLY),
    (f"expect_column_values_to_not_be_in_set: {{column: next, value_set: [{BIG}]}}", []),
    (f"expect_column_values_to_not_be_in_set: {{column: next, value_set: [{BIG + 1}, 7]}}", ONLY),
    ("expect_column_values_to_not_be_in_set: {column: minus, value_set: [5, 9223372036854775807]}", []),
    ("expect_column_values_to_be_between: {column: real, min_value: 0}", ONLY),
    ("expect_column_values_to_be_between: {column: real, max_value: 100}", ONLY),
    ("expect_column_values_to_be_between: {column: single, min_value: 0}", ONLY),
    ("expect_column_values_to_not_be_in_set: {column: signed, value_set: [0]}", ONLY),
    ("expect_column_values_to_be_in_set: {column: signed, value_set: [0, 1]}", []),
    ("expect_column_values_to_be_in_set: {column: third, value_set: [0.5]}", ONLY),
    ("expect_column_values_to_not_be_in_set: {column: third, value_set: [0.1]}", []),
    ("expect_column_unique_value_count_to_be_between: {column: zeros, min_value: 1, max_value: 1}", []),
    ("expect_column_max_to_be_between: {column: real, max_value: 19}", []),
    ("expect_column_min_to_be_between: {column: real, min_value: 0, max_value: 0}", []),
    ("expect_column_pair_values_a_to_be_greater_than_b: {column_A: real, column_B: minus}", []),
    ("expect_column_pair_values_a_to_be_greater_than_b: {column_A: minus, column_B: real}", list(range(ROWS))),
    ("expect_column_pair_values_a_to_be_greater_than_b: {column_A: real, column_B: real, or_equal: true}", []),
    ("expect_column_values_to_be_in_set: {column: number, value_set: [0.5]}", list(range(ROWS))),
    ("expect_column_values_to_be_between: {column: day, max_value: '2024-01-01T12:00:00Z'}", ONLY),
    (
        "expect_column_values_to_be_between: {column: day, min_value: '2024-01-01T12:00:00Z'}",
        [*range(ODD), *range(ODD + 1, ROWS)],
    ),
    ("expect_column_sum_to_be_between: {column: widest, min_value: 1.0e+38}", []),
    ("expect_multicolumn_sum_to_equal: {column_list: [widest, number], sum_total: 1}", list(range(ROWS))),
    ("expect_column_value_z_scores_to_be_less_than: {column: vast, threshold: 3, double_sided: true}", ONLY),
    ("expect_column_max_to_be_between: {column: instant, max_value: '2024-01-01T12:00:19Z'}", []),
    ("expect_column_min_to_be_between: {column: instant, min_value: '2024-01-01T12:00:00Z'}", []),
    ("expect_column_max_to_be_between: {column: arrival, max_value: '1970-01-01T00:00:19Z'}", []),
    ("expect_column_max_to_be_between: {column: day, max_value: '2024-01-02'}", []),
    (PAIRS + "{column_A: day, column_B: day, value_pairs_set: [['2024-01-01', '2024-01-01']]}", ONLY),
    (PAIRS + "{column_A: noon, column_B: gate, value_pairs_set: [['2024-01-01T12:00:00Z', p]]}", ONLY),
    ("expect_column_most_common_value_to_be_in_set: {column: day, value_set: ['2024-01-01']}", []),
    ("expect_column_most_common_value_to_be_in_set: {column: day, value_set: ['2024-01-01'], ties_okay: true}", []),
    ("expect_column_most_common_value_to_be_in_set: {column: noon, value_set: ['2024-01-01T13:00:00+01:00']}", []),
    ("expect_multicolumn_sum_to_equal: {column_list: [number, missing], sum_total: 2}", []),
    ("expect_multicolumn_sum_to_equal: {column_list: [number, other], sum_total: 5}", ONLY),
    ("expect_column_mean_to_be_between: {column: other, min_value: 3.05, max_value: 3.05}", []),
    ("expect_multicolumn_values_to_be_equal: {column_list: [text, gate]}", []),
    ("expect_column_distinct_values_to_contain_set: {column: gate, value_set: [p, p]}", []),
    ("expect_column_values_to_be_in_set: {column: number, value_set: [0.5, 2]}", []),
    ("expect_column_pair_values_to_be_equal: {column_A: real, column_B: real}", []),
    ("expect_column_value_z_scores_to_be_less_than: {column: real, threshold: 3, double_sided: true}", []),
    ("expect_column_value_z_scores_to_be_less_than: {column: tenth, threshold: 0.5, double_sided: true}", []),
    ("expect_column_values_to_not_be_outliers: {column: far, method: std, multiplier: 3}", ONLY),
    ("expect_select_column_values_to_be_unique_within_record: {column_list: [day, noon]}", []),
    ("expect_column_values_to_be_between: {column: day, min_value: '0001-01-01'}", []),
    ("expect_column_sum_to_be_between: {column: nothing, min_value: 0, max_value: 0}", []),
    ("expect_column_values_to_be_between: {column: early, min_value: '0001-01-01', max_value: '1500-02-28'}", []),
    ("expect_column_values_to_be_between: {column: early, max_value: '1500-02-27T12:00:00Z'}", ONLY),
    ("expect_column_values_to_be_between: {column: early, max_value: '1500-02-28T00:00:01Z'}", []),
    (
        "expect_column_values_to_be_between: {column: early, min_value: '0001-01-01T00:00:01Z'}",
        [*range(ODD), *range(ODD + 1, ROWS)],
    ),
    ("expect_column_values_to_be_between: {column: ago, min_value: '0001-01-01T00:00:00Z'}", []),
    ("expect_column_values_to_be_between: {column: ago, max_value: '1500-02-28T12:00:00Z'}", []),
    ("expect_column_values_to_be_between: {column: ago, max_value: '1500-02-28T12:00:00Z', strict_max: true}", ONLY),
    ("expect_column_values_to_be_between: {column: ago, max_value: '1500-02-28T11:59:59Z'}", ONLY),
    ("expect_column_values_to_be_in_set: {column: ago, value_set: ['0001-01-01T00:00:00Z']}", ONLY),
    ("expect_column_values_to_be_in_set: {column: early, value_set: ['0001-01-01', '1500-02-28']}", []),
    ("expect_column_max_to_be_between: {column: ago, max_value: '1500-02-28T12:00:00Z'}", []),
    ("expect_column_min_to_be_between: {column: ago, min_value: '0001-01-01T00:00:00Z'}", []),
    ("expect_column_max_to_be_between: {column: early, max_value: '1500-02-28'}", []),
    ("expect_column_distinct_values_to_equal_set: {column: early, value_set: ['0001-01-01', '1500-02-28']}", []),
    ("expect_column_distinct_values_to_contain_set: {column: ago, value_set: ['1500-02-28T12:00:00Z']}", []),
)
"""What is asked, and which rows break it."""
BROKEN_AS_A_WHOLE = (
    "expect_column_sum_to_be_between: {column: endless, min_value: 0, max_value: 1}",
    "expect_column_max_to_be_between: {column: instant, max_value: '2024-01-01T12:00:18Z'}",
    "expect_column_most_common_value_to_be_in_set: {column: day, value_set: ['2024-01-02']}",
    "expect_column_sum_to_be_between: {column: one, max_value: 22.009}",
    "expect_column_unique_value_count_to_be_between: {column: many, max_value: 19}",
)


OLD = dt.datetime(1500, 2, 28, 12, tzinfo=dt.UTC)
"""By the calendar before, ten days earlier."""


def odd(usual: Any, other: Any) -> list[Any]:  # noqa: ANN401 - values of a column
    return [other if number == ODD else usual for number in range(ROWS)]


def rows() -> pa.Table:
    moments = pa.array([number * SECOND for number in range(ROWS)], pa.int64()).cast(TIME)
    own = {"kind": ["data"] * ROWS, "place": [1] * ROWS, "commit": [1] * ROWS, "landed_place": [1] * ROWS}
    columns = {field.name: own.get(field.name, moments if field.type == TIME else None) for field in ORDER_FIELDS}
    cents = [Decimal(9_007_199_254_740_993_000 + number) / 100 for number in range(ROWS)]
    money, wide = pa.decimal128(6, 2), pa.decimal128(30, 2)
    instants = [NOON + dt.timedelta(seconds=number) for number in range(ROWS)]
    return pa.table(
        {
            **{field.name: pa.array(columns[field.name], field.type) for field in ORDER_FIELDS},
            "gate": ["p"] * ROWS,
            "whole": pa.array([Decimal(BIG + number) for number in range(ROWS)], pa.decimal128(20, 0)),
            "many": pa.array(cents, wide),
            "almost": pa.array([each + Decimal(number == ODD) / 100 for number, each in enumerate(cents)], wide),
            "one": pa.array(odd(Decimal("1.10"), Decimal("1.11")), money),
            "two": pa.array([Decimal("2.20")] * ROWS, money),
            "more": pa.array(odd(Decimal("2.200"), Decimal("2.201")), pa.decimal128(9, 3)),
            "same": pa.array(odd(Decimal(5), Decimal(BIG + 1)), pa.decimal128(20, 0)),
            "next": pa.array(odd(Decimal(5), Decimal(BIG + 1)), pa.decimal128(20, 0)),
            "number": pa.array([2] * ROWS, pa.int64()),
            "other": pa.array(odd(3, 4), pa.int64()),
            "missing": pa.array([None] + [0] * (ROWS - 1), pa.int64()),
            "real": pa.array([math.nan if number == ODD else float(number) for number in range(ROWS)]),
            "single": pa.array(odd(1.5, math.nan), pa.float32()),
            "signed": pa.array(odd(1.0, -0.0)),
            "zeros": pa.array(odd(0.0, -0.0)),
            "third": pa.array(odd(0.5, 0.1), pa.float32()),
            "tenth": pa.array([0.1] * ROWS),
            "far": pa.array([math.inf if number == 0 else 1e6 if number == ODD else 1.0 for number in range(ROWS)]),
            "vast": pa.array(odd(1.0, 1.797e308)),
            "widest": pa.array([Decimal(9 * 10**37)] * ROWS, pa.decimal128(38, 0)),
            "endless": pa.array([1.797e308] * (ROWS - 4) + [-math.inf] * 4),
            "nothing": pa.array([None] * ROWS, pa.int64()),
            "minus": pa.array([-1.0] * ROWS),
            "instant": pa.array(instants, pa.timestamp("us", "UTC")),
            "noon": pa.array(odd(NOON, NOON + dt.timedelta(microseconds=1)), pa.timestamp("us", "UTC")),
            "day": pa.array(odd(DAY, DAY + dt.timedelta(days=1)), pa.date32()),
            "text": pa.array(odd("p", None), pa.string()),
            "early": pa.array(odd(dt.date(1, 1, 1), dt.date(1500, 2, 28)), pa.date32()),
            "ago": pa.array(odd(dt.datetime(1, 1, 1, tzinfo=dt.UTC), OLD), pa.timestamp("us", "UTC")),
        }
    )


@pytest.fixture(scope="module", params=["duckdb", "spark"])
def either(request: pytest.FixtureRequest) -> SparkSession | None:
    return session_of(request.param, request)


def test_what_breaks_is_told_and_nothing_else(tmp_path: Path, either: SparkSession | None) -> None:
    found = judged(flow_of(tmp_path, [check for check, _ in CHECKS]), rows(), either)
    for each, (check, broken) in zip(found, CHECKS, strict=True):
        told = [int(row["arrival"][17:19]) for row in each.rows]
        assert (each.held, each.unexpected, told) == (not broken, len(broken), broken), check


def test_what_breaks_as_a_whole_is_told_as_it_was_seen(tmp_path: Path, either: SparkSession | None) -> None:
    found = judged(flow_of(tmp_path, BROKEN_AS_A_WHOLE), rows(), either)
    assert [each.held for each in found] == [False] * len(BROKEN_AS_A_WHOLE)
    assert all("observed_value" in each.rows[0] for each in found)


def test_a_sum_of_whole_numbers_is_none_of_64_bits(tmp_path: Path) -> None:
    """Of Spark a sum that no column holds is an error of its own."""
    large = rows().append_column("huge", pa.array([9 * 10**18] * 2 + [-1] * (ROWS - 2), pa.int64()))
    checks = [
        "expect_column_sum_to_be_between: {column: huge, max_value: 1000}",
        "expect_column_mean_to_be_between: {column: huge, min_value: 8.0e+17}",
        "expect_multicolumn_sum_to_equal: {column_list: [huge, number], sum_total: 1}",
    ]
    found = judged(flow_of(tmp_path, checks), large, None)
    assert [(each.held, each.unexpected) for each in found] == [(False, 0), (True, 0), (False, 2)]
    with pytest.raises(FlowError, match="`null` under `value_set`"):
        flow_of(tmp_path, ["expect_column_values_to_be_in_set: {column: number, value_set: [2, null]}"])
    with pytest.raises(FlowError, match="`sum_total: 18014398509481984`"):
        flow_of(
            tmp_path, ["expect_multicolumn_sum_to_equal: {column_list: [huge, number], sum_total: 18014398509481984}"]
        )


def test_a_stream_is_called_what_it_likes(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    stream = (
        "  {name}:\n    advance_time: rows\n    every: {{events: 3}}\n    late: drop\n    expect:\n      - {check}\n"
    )
    check = "expect_column_values_to_not_be_null: {column: gate}"
    names = ("account", "kept", "own", "reckoned")
    head = (
        "flow: own\nsources:\n  rows: {feed: {parquet: rows.parquet}, key: gate, time: sent, arrival: seen}\nstreams:\n"
    )
    file.write_text(head + "".join(stream.format(name=name, check=check) for name in names))
    flow, table = read_flow(file), rows()
    views = {name: PlainView(rows=Rows(table.slice(0, 0)), truth=None) for name in flow.tables()}
    law = keys_speak("rows", 3, 7, 14)
    found = judge(
        flow, Views(tables=views, count=Counter), (0, 1), reckoned=[Reckoned(law=law, looked_at=0, unexpected=0)]
    )
    assert {each.table for each in found} >= {*names, "rows"}
    assert all(each.held for each in found)
