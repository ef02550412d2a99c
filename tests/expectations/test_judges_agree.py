"""Checks drawn over odd values: the judge in this process and the one on Spark find the same rows, and none stops."""

from __future__ import annotations

import datetime as dt
import math
import random
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as sql

from expectations.checkpoints import CheckFailedError, Checkpoints
from expectations.on_spark import SparkView
from expectations.own_checks import own_judgements
from pipelines.engine.columnar.columns import ORDER_FIELDS, TIME
from pipelines.flows.errors import FlowError
from pipelines.jobs.runs.fitting import is_true
from tests.expectations.test_own_checks import flow_of, judged, numbered

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import LentSpark

ROWS, MOST = 12, 80
FLOATS = 2**53
NAN, INF, UTC = math.nan, math.inf, dt.UTC
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "tiny": (pa.int8(), [0, 1, -1, 127, -128, 5]),
    "int": (pa.int32(), [0, 1, 2, 3, 5, 2**31 - 1]),
    "long": (pa.int64(), [0, 1, 2, 5, FLOATS - 1, FLOATS, FLOATS + 1, -FLOATS - 1, 2**63 - 1, -(2**63)]),
    "single": (pa.float32(), [0.0, -0.0, 0.5, 1.0, 2.0, 5.0, NAN, INF, -INF]),
    "real": (pa.float64(), [0.0, -0.0, 0.1, 0.5, 1.0, 2.0, 5.0, float(FLOATS), NAN, INF, -INF, 1e300]),
    "usual": (pa.float64(), [0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0]),
    "money": (pa.decimal128(6, 2), [Decimal(each) / 100 for each in (0, 10, 100, 110, 200, 500, -100)]),
    "cents": (
        pa.decimal128(30, 2),
        [Decimal(1), Decimal(FLOATS), Decimal(FLOATS + 1), Decimal(FLOATS * 100 + 1) / 100],
    ),
    "whole": (pa.decimal128(20, 0), [Decimal(each) for each in (1, 5, FLOATS, FLOATS + 1, 2**63, 10**20 - 1)]),
    "fine": (pa.decimal128(38, 20), [Decimal(each) for each in ("0.1", "0.10000000000000000001", "1", "5")]),
    "text": (pa.string(), ["a", "b", "", "5", "true", "1.0", "2024-01-01", "é", "A"]),
    "truth": (pa.bool_(), [True, False]),
    "day": (pa.date32(), [dt.date(2024, 1, 1), dt.date(2024, 1, 2), dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    "instant": (
        pa.timestamp("us", "UTC"),
        [
            dt.datetime(2024, 1, 1, tzinfo=UTC),
            dt.datetime(2024, 1, 1, 12, tzinfo=UTC),
            dt.datetime(2024, 1, 1, 12, 0, 0, 1, tzinfo=UTC),
            dt.datetime(1, 1, 1, tzinfo=UTC),
            dt.datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        ],
    ),
    "never": (pa.int64(), [None]),
}
"""Of each type what judges have been wrong about: each column stands there twice."""
TIMES = ["day", "instant"]
NUMBERS = [name for name, (kind, _) in COLUMNS.items() if not (pa.types.is_temporal(kind) or name in {"text", "truth"})]
WRITTEN = {
    "text": ["a", "b", "''", "'5'", "é", "A"],
    "truth": ["true", "false"],
    **{name: ["'2024-01-01'", "'2024-01-01T12:00:00.000001Z'", "'0001-01-01'", "'9999-12-31'"] for name in TIMES},
}
NUMERALS = ["0", "1", "-1", "2", "5", "0.1", "0.5", "1.1", "-0.0", "1.0e+300", "127", "9007199254740992"]
LARGE = ["9007199254740993", "9223372036854775807", "-9223372036854775808"]
NAMED = "expect_column_"


class Drawn:
    """Rows and checks, by a seed."""

    def __init__(self, seed: int) -> None:
        self.by = random.Random(seed)  # noqa: S311 - a draw

    def rows(self) -> pa.Table:
        """Give a few rows of one gate; of each column few values, so that some are equal."""
        moments = pa.array([number * 1_000_000 for number in range(ROWS)], pa.int64()).cast(TIME)
        own = {"kind": ["data"] * ROWS, "place": [1] * ROWS, "commit": [1] * ROWS, "landed_place": [1] * ROWS}
        columns = {field.name: own.get(field.name, moments if field.type == TIME else None) for field in ORDER_FIELDS}
        drawn = {field.name: pa.array(columns[field.name], field.type) for field in ORDER_FIELDS}
        for name, (kind, pool) in COLUMNS.items():
            for side in "ab":
                some = self.by.sample(pool, min(len(pool), self.by.choice([1, 2, 3, 5])))
                some += [None] * self.by.choice([0, 0, 1])
                drawn[f"{name}_{side}"] = pa.array([self.by.choice(some) for _ in range(ROWS)], kind)
        return pa.table({**drawn, "gate": ["p"] * ROWS})

    def column(self, names: list[str] | None = None) -> str:
        """Name a column, as its kind."""
        return self.by.choice(names or [*COLUMNS])

    def value(self, name: str, more: list[str] | None = None) -> str:
        """Write a value for a column."""
        return self.by.choice([*WRITTEN.get(name, NUMERALS), *(more or []) * (name not in WRITTEN)])

    def values(self, name: str) -> str:
        """Write a set of values for a column."""
        return f"[{', '.join(self.value(name, LARGE) for _ in range(self.by.choice([1, 1, 2, 3])))}]"

    def bounds(self, name: str) -> str:
        """Write bounds for a column: one or both."""
        pair = sorted((self.value(name), self.value(name)), key=lambda each: each if "'" in each else float(each))
        both = [f"{side}_value: {each}" for side, each in zip(("min", "max"), pair, strict=True)]
        strict = self.by.choice([[], [], ["strict_min: true"], ["strict_max: true"]])
        return ", ".join([*self.by.choice([both, both[:1], both[1:]]), *strict])

    def check(self) -> str:  # noqa: PLR0911 - one a kind
        """Write a check."""
        name = self.column()
        one, pick = f"column: {name}_a", self.by.choice
        kind = pick(["bounds", "extreme", "figure", "set", "distinct", "usual", "pair", "several", "unique", "spread"])
        if kind in {"bounds", "extreme"}:
            name = self.column(NUMBERS + TIMES)
            one = f"column: {name}_a"
        if kind == "bounds":
            return f"{NAMED}values_to_be_between: {{{one}, {self.bounds(name)}}}"
        if kind == "extreme":
            return f"{NAMED}{pick(['max', 'min'])}_to_be_between: {{{one}, {self.bounds(name)}}}"
        if kind == "figure":
            of = self.column(NUMBERS)
            what = pick(["sum", "mean", "median", "stdev"])
            return f"{NAMED}{what}_to_be_between: {{column: {of}_a, {self.bounds(of)}}}"
        if kind == "set":
            return f"{NAMED}values_to_{pick(['be', 'not_be'])}_in_set: {{{one}, value_set: {self.values(name)}}}"
        if kind == "distinct":
            what = pick(["be_in_set", "contain_set", "equal_set"])
            return f"{NAMED}distinct_values_to_{what}: {{{one}, value_set: {self.values(name)}}}"
        if kind == "usual":
            ties = pick(["", ", ties_okay: true"])
            return f"{NAMED}most_common_value_to_be_in_set: {{{one}, value_set: {self.values(name)}{ties}}}"
        if kind in {"pair", "several"}:
            return self._of_two(kind, name)
        if kind == "unique":
            what = pick(
                ["values_to_be_unique: {%s}", "unique_value_count_to_be_between: {%s, min_value: 1, max_value: 2}"]
            )
            return NAMED + what % one
        of = self.column(NUMBERS)
        what = pick(
            ["value_z_scores_to_be_less_than: {column: %s_a, threshold: %s, double_sided: %s}"]
            + [
                f"values_to_not_be_outliers: {{column: %s_a, multiplier: %s, method: {each}}} # %s"
                for each in ("iqr", "std")
            ]
        )
        return NAMED + what % (of, pick(["0.5", "1", "2"]), pick(["true", "false"]))

    def _of_two(self, kind: str, name: str) -> str:
        like = NUMBERS if name in NUMBERS else TIMES if name in TIMES else [name]
        other = self.column(like)
        a, b, pick = f"{name}_a", f"{other}_b", self.by.choice
        if kind == "several":
            what = pick(
                [
                    "compound_columns_to_be_unique",
                    "multicolumn_values_to_be_equal",
                    "select_column_values_to_be_unique_within_record",
                    "multicolumn_sum_to_equal",
                ]
            )
            total = f", sum_total: {pick(['0', '1', '2', '0.3', '6'])}" if "sum" in what else ""
            return f"expect_{what}: {{column_list: [{a}, {b}]{total}}}"
        pairs = ", ".join(f"[{self.value(name)}, {self.value(other)}]" for _ in range(2))
        what = pick(
            [
                "equal: {%s}",
                "a_to_be_greater_than_b: {%s}",
                "a_to_be_greater_than_b: {%s, or_equal: true}",
                f"be_in_set: {{%s, value_pairs_set: [{pairs}]}}",
            ]
        )
        what = what if what.startswith("a_") else f"to_{'be_' * what.startswith('equal')}{what}"
        return f"{NAMED}pair_values_{what % f'column_A: {a}, column_B: {b}'}"


def taken(folder: Path, drawn: Drawn, most: int) -> Iterator[str]:
    """Draw checks that a flow takes: it refuses a sum of texts, and an instant that is none."""
    found = 0
    while found < most:
        check = drawn.check().partition(" #")[0]
        try:
            flow_of(folder, [check])
        except FlowError:
            continue
        found += 1
        yield check


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(1, 7))
def test_both_find_the_same(tmp_path: Path, spark: LentSpark, seed: int) -> None:
    """What was found so stands in `test_exact_values.py` too, which runs each time."""
    drawn = Drawn(seed)
    rows = drawn.rows()
    checks = [check for check in taken(tmp_path, drawn, MOST) if not _is_unfit(tmp_path, check, rows)]
    assert len(checks) > MOST / 2
    flow = flow_of(tmp_path, checks)
    for check, here, there in zip(checks, judged(flow, rows, None), judged(flow, rows, spark.session()), strict=True):
        found = [(each.held, each.unexpected, [row.get("arrival") for row in each.rows]) for each in (here, there)]
        assert found[0] == found[1], (check, rows.to_pylist())


def _is_unfit(folder: Path, check: str, rows: pa.Table) -> bool:
    """Say whether a check does not fit the types that the rows have, which its flow does not know."""
    from expectations.own_checks import CheckDoesNotFitError

    try:
        judged(flow_of(folder, [check]), rows, None)
    except CheckDoesNotFitError:
        return True
    return False


def test_a_scan_that_fails_ends(tmp_path: Path, spark: LentSpark) -> None:
    """Great Expectations ask again what failed: what waits for its rows to be counted was never told to stop."""
    broken = (
        spark.session()
        .createDataFrame(numbered(odd=False))
        .withColumn(
            "n", sql.when(sql.col("n") > 30, sql.raise_error(sql.lit("the disk is gone"))).otherwise(sql.col("n"))
        )
    )
    checks = [
        "expect_column_values_to_be_between: {column: n, min_value: 0}",
        "expect_column_values_to_be_null: {column: n}",
    ]
    with pytest.raises(CheckFailedError, match="the disk is gone"):
        own_judgements(
            flow_of(tmp_path, checks), "punctual", SparkView(rows=broken, truth=is_true), Checkpoints("own", None)
        )
