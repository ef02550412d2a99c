"""Own checks where rows are cut: a fault at the border of a partition, a key or a commit is found at its row.

What is asked of several rows together (order, uniqueness, sets, spreads), and some of what is asked of each.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql import functions as sql

from expectations.checkpoints import Checkpoints
from expectations.laws import values_in_order
from expectations.offenders import every_offender
from expectations.on_duckdb import PlainView
from expectations.on_spark import SparkView
from expectations.own_checks import own_judgements
from pipelines.engine.columnar.columns import ORDER_FIELDS, TIME
from pipelines.flows.check import is_of_each
from pipelines.flows.offered import offers
from pipelines.jobs.runs.fitting import is_true
from tests.expectations.test_own_checks import CASES, INT, SECOND, Case, Rows, flow_of, named

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from expectations.judgement import Judgement
    from pipelines.flows.model import Flow
    from tests.conftest import LentSpark

    Laid = Callable[[SparkSession, pa.Table], DataFrame]

ROWS, PARTITIONS = 64, 16
BORDERS = {"partition": 12, "key": 32, "commit": 48}
"""The first row behind each: of a sixteenth of the rows, of the second of two keys, of the third of three commits."""
COMMITS = (0, 24, BORDERS["commit"], ROWS)
SAMPLE = {
    "expect_column_values_to_be_between",
    "expect_column_values_to_be_in_set",
    "expect_column_values_to_not_be_null",
    "expect_column_values_to_match_regex",
    "expect_column_pair_values_to_be_equal",
    "expect_multicolumn_sum_to_equal",
}
"""Of what is asked of each row by itself."""
CHOSEN = [each for each in CASES if not is_of_each(each.name) or each.name in SAMPLE]
PLANTED = [(case, border) for case in CHOSEN for border in BORDERS.values()]


def column_of(case: Case, column: str, border: int, *, odd: bool) -> pa.Array:
    """Give a column that keeps a check, or breaks it by the rows at a border alone."""
    kind, good, wrong = case.columns[column]
    values = [good(number) if callable(good) else good for number in range(ROWS)]
    if case.often:
        # What is usual hangs on the two rows at the border; of what must be there at all, they alone are it.
        alone = "contain" in case.name
        values = [
            wrong if number not in {border - 1, border} and (alone or number % 2) else good for number in range(ROWS)
        ]
    if odd:
        values[border] = values[border - 1] if callable(good) and "unique" in case.name else wrong
        values[border - 1] = wrong if case.often else values[border - 1]
    return pa.array(values, kind)


def table(cases: Sequence[int] = (), *, odd: bool) -> pa.Table:
    """Give rows of two keys, one a second and key, so that only the key tells two rows apart, in three commits."""
    moments = pa.array([number % BORDERS["key"] * SECOND for number in range(ROWS)], pa.int64()).cast(TIME)
    commit = [sum(number >= first for first in COMMITS) for number in range(ROWS)]
    own = {"kind": ["data"] * ROWS, "place": [1] * ROWS, "commit": commit, "landed_place": [1] * ROWS}
    columns = {field.name: own.get(field.name, moments if field.type == TIME else None) for field in ORDER_FIELDS}
    rows = pa.table({field.name: pa.array(columns[field.name], field.type) for field in ORDER_FIELDS})
    rows = rows.append_column("gate", pa.array(["p" if number < BORDERS["key"] else "q" for number in range(ROWS)]))
    rows = rows.append_column("number", pa.array(range(ROWS), INT))
    for place in cases:
        case, border = PLANTED[place]
        for column, name in named(place, case)[1].items():
            rows = rows.append_column(name, column_of(case, column, border, odd=odd))
    return rows


def flow_with(folder: Path, cases: Sequence[int]) -> Flow:
    """Give a flow that asks some of what is planted."""
    checks = [f"{PLANTED[place][0].name}: {{{named(place, PLANTED[place][0])[0]}}}" for place in cases]
    return flow_of(folder, checks, "    by: gate\n")


def in_partitions(session: SparkSession, rows: pa.Table) -> DataFrame:
    """Cut rows as they stand into partitions."""
    place = sql.expr(f"CAST(number DIV {ROWS // PARTITIONS} AS INT)")
    return session.createDataFrame(rows).repartitionById(PARTITIONS, place)


def shuffled(session: SparkSession, rows: pa.Table) -> DataFrame:
    """Shuffle rows over partitions."""
    order = pa.array(random.Random(5).sample(range(ROWS), ROWS), pa.int64())  # noqa: S311 - a shuffle
    return session.createDataFrame(rows.take(order)).repartition(PARTITIONS)


def on_spark(session: SparkSession, rows: pa.Table, laid: Laid) -> SparkView:
    """Lay rows out for the judge on Spark."""
    frame = laid(session, rows)
    assert frame.rdd.getNumPartitions() == PARTITIONS
    return SparkView(rows=frame.cache(), truth=is_true)


def here(rows: pa.Table) -> PlainView:
    """Lay rows out for the judge in this process."""
    return PlainView(rows=Rows(rows), truth=is_true)


def judged(flow: Flow, view: PlainView | SparkView) -> list[Judgement]:
    return own_judgements(flow, "punctual", view, Checkpoints("own", None))


def assert_found(found: list[Judgement], cases: Sequence[int]) -> None:
    """See that each fault is found, and where rows are told, at its row and at no other."""
    for place, each in zip(cases, found, strict=True):
        case, border = PLANTED[place]
        assert not each.held, (case.name, border)
        if not offers()[case.name].rows:
            assert "observed_value" in each.rows[0], (case.name, border)
            continue
        both = "to_be_unique" in case.name
        assert sorted(row["number"] for row in each.rows) == [border - 1, border][not both :], (case.name, border)
        assert {row["commit"] for row in each.rows} <= {1, 2, 3}


TURNS = range(len(BORDERS))


def in_turn(turn: int) -> list[int]:
    """Choose of each case what is planted at one border, at another one each turn."""
    return [len(BORDERS) * place + (place + turn) % len(BORDERS) for place in range(len(CHOSEN))]


@pytest.mark.parametrize("turn", [0, *(pytest.param(turn, marks=pytest.mark.exhaustive) for turn in TURNS[1:])])
def test_each_fault_at_a_border_is_found_at_its_row(tmp_path: Path, turn: int) -> None:
    cases = in_turn(turn)
    flow = flow_with(tmp_path, cases)
    good = judged(flow, here(table(cases, odd=False)))
    assert [each.expectation for each in good if not each.held] == []
    assert_found(judged(flow, here(table(cases, odd=True))), cases)


FEW = [place for place, (case, _) in enumerate(PLANTED) if case.name == "expect_compound_columns_to_be_unique"]


@pytest.mark.parametrize("laid", [in_partitions, shuffled])
def test_a_row_that_is_there_twice_is_found_across_partitions(tmp_path: Path, spark: LentSpark, laid: Laid) -> None:
    flow, rows = flow_with(tmp_path, FEW), table(FEW, odd=True)
    there = judged(flow, on_spark(spark.session(), rows, laid))
    assert there == judged(flow, here(rows))
    assert_found(there, FEW)


def ordered(view: PlainView | SparkView, flow: Flow) -> dict[str, list[int]]:
    """Give the rows that break each check of values in stream order."""
    laws = [values_in_order(flow, "punctual", check) for check in flow.expect["punctual"]]
    return {law.name: every_offender(law, view, ("gate",))["number"].to_pylist() for law in laws}


def test_values_in_stream_order_are_held_across_borders_but_not_from_key_to_key(
    tmp_path: Path,
) -> None:
    checks, rows = [], table(odd=False)
    for border in BORDERS.values():
        # The row behind the border goes back below the one before it; from key to key nothing binds.
        up = [number - 3 * (number == border) for number in range(ROWS)]
        for name, values in (("increasing", up), ("decreasing", [-each for each in up])):
            rows = rows.append_column(f"{name}_{border}", pa.array(values, INT))
            checks.append(f"expect_column_values_to_be_{name}: {{column: {name}_{border}, strictly: true}}")
    flow = flow_of(tmp_path, checks, "    by: gate\n")
    found = ordered(here(rows), flow)
    assert sorted(found.values()) == sorted(
        [] if border == BORDERS["key"] else [border] for border in BORDERS.values() for _ in "ab"
    )
    assert found["expect_column_values_to_be_increasing(increasing_48)"] == [BORDERS["commit"]]
