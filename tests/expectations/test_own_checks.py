"""Every expectation that a flow may ask for: a table that passes, and one that fails for that reason, at that row."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql.classic.dataframe import DataFrame

from expectations.catalogue import PATH, made, spelled
from expectations.checkpoints import Checkpoints
from expectations.on_duckdb import PlainView
from expectations.on_spark import SparkView
from expectations.own_checks import own_judgements
from expectations.suites import AskedCheck, sentence_of
from pipelines.engine.columnar.columns import ORDER_FIELDS, TIME
from pipelines.flows.check import Check
from pipelines.flows.offered import offers
from pipelines.flows.reading import read_flow
from pipelines.jobs.runs.fitting import is_true

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import Row, SparkSession

    from expectations.judgement import Judgement
    from pipelines.flows.model import Flow
    from tests.conftest import LentSpark

ROWS = 64
SPOILT = 37
"""The row in which each column has its odd value."""
SECOND = 1_000_000
FLOW = """\
flow: own
sources:
  rows: {{feed: {{parquet: rows.parquet}}, key: gate, time: sent, arrival: seen}}
streams:
  punctual:
    advance_time: rows
    every: {{events: 3}}
    late: drop
    expect:
{checks}
"""


@dataclass(frozen=True)
class Case:
    """One expectation with columns of its own: their values, and those that break it."""

    name: str
    arguments: str
    columns: Mapping[str, tuple[pa.DataType, Any, Any]]
    """By column: its type, the value of each row (a function of the row's number, or one for all), the odd one."""
    often: bool = False
    """The odd value stands in every row: what is asked is what is usual."""


def same(name: str, arguments: str, kind: pa.DataType, good: Any, odd: Any, *, often: bool = False) -> Case:  # noqa: ANN401, PLR0913 - values of a column
    """Give a case of one column, `c` in its arguments."""
    return Case(name, arguments, {"c": (kind, good, odd)}, often)


INT, REAL, TEXT = pa.int64(), pa.float64(), pa.string()
CASES = (
    same("expect_column_distinct_values_to_be_in_set", "column: c, value_set: [a, b]", TEXT, "a", "z"),
    same("expect_column_distinct_values_to_contain_set", "column: c, value_set: [a]", TEXT, "a", "z", often=True),
    same("expect_column_distinct_values_to_equal_set", "column: c, value_set: [a]", TEXT, "a", "z"),
    same("expect_column_max_to_be_between", "column: c, max_value: 9", INT, 5, 10),
    same("expect_column_mean_to_be_between", "column: c, min_value: 4, max_value: 6", REAL, 5.0, 1e6),
    same("expect_column_median_to_be_between", "column: c, min_value: 4, max_value: 6", INT, 5, 10, often=True),
    same("expect_column_min_to_be_between", "column: c, min_value: 1", INT, 5, 0),
    same("expect_column_most_common_value_to_be_in_set", "column: c, value_set: [a]", TEXT, "a", "z", often=True),
    Case(
        "expect_column_pair_values_a_to_be_greater_than_b",
        "column_A: a, column_B: b",
        {"a": (INT, 5, 1), "b": (INT, 4, 4)},
    ),
    Case("expect_column_pair_values_to_be_equal", "column_A: a, column_B: b", {"a": (INT, 5, 1), "b": (INT, 5, 5)}),
    Case(
        "expect_column_pair_values_to_be_in_set",
        "column_A: a, column_B: b, value_pairs_set: [[1, 2]]",
        {"a": (INT, 1, 2), "b": (INT, 2, 2)},
    ),
    same("expect_column_proportion_of_non_null_values_to_be_between", "column: c, min_value: 1", INT, 5, None),
    same("expect_column_proportion_of_unique_values_to_be_between", "column: c, min_value: 1", INT, int, 0),
    same("expect_column_stdev_to_be_between", "column: c, max_value: 1", REAL, 5.0, 1e6),
    same("expect_column_sum_to_be_between", "column: c, max_value: 400", INT, 5, 1_000),
    same("expect_column_unique_value_count_to_be_between", "column: c, max_value: 1", TEXT, "a", "z"),
    same("expect_column_value_lengths_to_be_between", "column: c, max_value: 2", TEXT, "ab", "abc"),
    same("expect_column_value_lengths_to_equal", "column: c, value: 2", TEXT, "ab", "abc"),
    same(
        "expect_column_value_z_scores_to_be_less_than", "column: c, threshold: 4, double_sided: true", REAL, float, 1e6
    ),
    same("expect_column_values_to_be_between", "column: c, min_value: 1, max_value: 9", INT, 5, 10),
    same("expect_column_values_to_be_in_set", "column: c, value_set: [5, 6]", INT, 5, 10),
    same("expect_column_values_to_be_json_parseable", "column: c", TEXT, '{"a": 1}', "{"),
    same("expect_column_values_to_be_null", "column: c", TEXT, None, "z"),
    same("expect_column_values_to_be_unique", "column: c", INT, int, ROWS - 1),
    same("expect_column_values_to_match_regex", "column: c, regex: '^a+$'", TEXT, "aa", "ab"),
    same("expect_column_values_to_match_regex_list", "column: c, regex_list: ['^a+$', '^c']", TEXT, "aa", "ab"),
    same("expect_column_values_to_match_strftime_format", "column: c, strftime_format: '%H:%M'", TEXT, "10:30", "noon"),
    same("expect_column_values_to_not_be_in_set", "column: c, value_set: [10]", INT, 5, 10),
    same("expect_column_values_to_not_be_null", "column: c", INT, 5, None),
    same("expect_column_values_to_not_be_outliers", "column: c, method: iqr, multiplier: 3", REAL, float, 1e6),
    same("expect_column_values_to_not_match_regex", "column: c, regex: '^z'", TEXT, "aa", "za"),
    same("expect_column_values_to_not_match_regex_list", "column: c, regex_list: ['^z']", TEXT, "aa", "za"),
    Case("expect_compound_columns_to_be_unique", "column_list: [a, b]", {"a": (INT, int, ROWS - 1), "b": (INT, 1, 1)}),
    Case("expect_multicolumn_sum_to_equal", "column_list: [a, b], sum_total: 9", {"a": (INT, 5, 1), "b": (INT, 4, 4)}),
    Case("expect_multicolumn_values_to_be_equal", "column_list: [a, b]", {"a": (INT, 5, 1), "b": (INT, 5, 5)}),
    Case(
        "expect_select_column_values_to_be_unique_within_record",
        "column_list: [a, b]",
        {"a": (INT, 5, 4), "b": (INT, 4, 4)},
    ),
)
OF_THE_TABLE = {
    "expect_column_to_exist": "column: gate",
    "expect_table_column_count_to_be_between": "min_value: 1",
    "expect_table_column_count_to_equal": "value: {columns}",
    "expect_table_columns_to_match_ordered_list": "column_list: [{names}]",
    "expect_table_columns_to_match_set": "column_set: [{names}]",
    "expect_table_row_count_to_be_between": "min_value: {rows}, max_value: {rows}",
    "expect_table_row_count_to_equal": "value: {rows}",
}
"""Of these the odd table is one with a column or a row less."""
IN_ORDER = {"expect_column_values_to_be_increasing", "expect_column_values_to_be_decreasing"}
"""Laws of a stream: `tests/jobs/commands/test_own_checks.py` has them."""


def session_of(judge: str, request: pytest.FixtureRequest) -> SparkSession | None:
    if judge == "duckdb":
        return None
    lent: LentSpark = request.getfixturevalue("spark")
    return lent.session()


@pytest.fixture(scope="module", params=["duckdb", pytest.param("spark", marks=pytest.mark.exhaustive)])
def session(request: pytest.FixtureRequest) -> SparkSession | None:
    return session_of(request.param, request)


@pytest.fixture(scope="module", params=["duckdb", "spark"])
def either(request: pytest.FixtureRequest) -> SparkSession | None:
    return session_of(request.param, request)


def test_the_list_is_what_is_installed() -> None:
    assert PATH.read_text() == spelled(made()), "run: python -m expectations.catalogue"


def test_every_expectation_that_is_offered_has_a_case() -> None:
    offered = {name for name, offer in offers().items() if not offer.refused}
    assert offered == {case.name for case in CASES} | set(OF_THE_TABLE) | IN_ORDER


def named(number: int, case: Case) -> tuple[str, dict[str, str]]:
    """Give the arguments of a case over columns of its own, and what each column is called."""
    names = {column: f"{column}{number}" for column in case.columns}
    words = case.arguments
    for column, name in names.items():
        for before, after in (
            (f": {column},", f": {name},"),
            (f"[{column},", f"[{name},"),
            (f" {column}]", f" {name}]"),
        ):
            words = words.replace(before, after)
        words = words.removesuffix(f": {column}") + f": {name}" if words.endswith(f": {column}") else words
    return words, names


def column_of(case: Case, column: str, *, odd: bool) -> pa.Array:
    kind, good, wrong = case.columns[column]
    values = [good(number) if callable(good) else good for number in range(ROWS)]
    if odd:
        at = range(ROWS) if case.often else [SPOILT]
        for number in at:
            values[number] = wrong
    return pa.array(values, kind)


def table(*, odd: bool) -> pa.Table:
    """Give rows of one gate in stream order, one a second, with the columns of all cases."""
    moments = pa.array([number * SECOND for number in range(ROWS)], pa.int64()).cast(TIME)
    own = {"kind": ["data"] * ROWS, "place": [1] * ROWS, "commit": [1] * ROWS, "landed_place": [1] * ROWS}
    columns = {field.name: own.get(field.name, moments if field.type == TIME else None) for field in ORDER_FIELDS}
    rows = pa.table({field.name: pa.array(columns[field.name], field.type) for field in ORDER_FIELDS})
    rows = rows.append_column("gate", pa.array(["p"] * ROWS))
    for number, case in enumerate(CASES):
        for column, name in named(number, case)[1].items():
            rows = rows.append_column(name, column_of(case, column, odd=odd))
    return rows


class Rows:
    """Rows that lie in memory."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    def scan(self, columns: Sequence[str] | None = None, where: pc.Expression | None = None) -> pa.Table:
        """Read some columns of some rows."""
        rows = self._rows if where is None else self._rows.filter(where)
        return rows if columns is None else rows.select(list(columns))


def view_of(rows: pa.Table, session: SparkSession | None) -> PlainView | SparkView:
    """Lay rows out for a judge; on Spark shuffled over a few partitions."""
    if session is None:
        return PlainView(rows=Rows(rows), truth=is_true)
    order = pa.array(random.Random(3).sample(range(rows.num_rows), rows.num_rows), pa.int64())  # noqa: S311 - a shuffle
    return SparkView(rows=session.createDataFrame(rows.take(order)).repartition(3).cache(), truth=is_true)


def flow_of(folder: Path, checks: Sequence[str], by_key: str = "") -> Flow:
    file = folder / "own.yaml"
    file.write_text((FLOW + by_key).format(checks="\n".join(f"      - {check}" for check in checks)))
    return read_flow(file)


def judged(flow: Flow, rows: pa.Table, session: SparkSession | None) -> list[Judgement]:
    return own_judgements(flow, "punctual", view_of(rows, session), Checkpoints("own", None))


def of_all_cases(folder: Path) -> Flow:
    return flow_of(folder, [f"{case.name}: {{{named(number, case)[0]}}}" for number, case in enumerate(CASES)])


def test_each_passes_on_good_rows(tmp_path: Path, session: SparkSession | None) -> None:
    good = judged(of_all_cases(tmp_path), table(odd=False), session)
    assert [each.expectation for each in good if not each.held] == []
    assert {each.looked_at for each in good} == {ROWS}


def test_each_fails_on_its_own_odd_value(tmp_path: Path, either: SparkSession | None) -> None:
    found = judged(of_all_cases(tmp_path), table(odd=True), either)
    assert [each.expectation for each in found if each.held] == []
    for case, each in zip(CASES, found, strict=True):
        assert each.sentence, case.name
        if not offers()[case.name].rows:
            assert "observed_value" in each.rows[0], case.name
            continue
        odd = {int(row["arrival"][17:19]) for row in each.rows}
        # Of values that must be unique, the one that was there before breaks it as well.
        expected = {SPOILT, ROWS - 1} if "unique" in case.name and "record" not in case.name else {SPOILT}
        assert {at % 60 for at in expected} == odd, case.name


def test_no_row_or_one_breaks_nothing(tmp_path: Path, session: SparkSession | None) -> None:
    flow, rows = of_all_cases(tmp_path), table(odd=False)
    for few in (rows.slice(0, 0), rows.slice(SPOILT, 1)):
        found = judged(flow, few, session)
        # Great Expectations want to see a spread where they are asked for its bounds, and one value has none.
        spread = {"expect_column_stdev_to_be_between"} if len(few) else set()
        assert {each.expectation.split("(")[0] for each in found if not each.held} == spread
        assert {each.looked_at for each in found} == {len(few)}


OF_SOME = {"n >= 30": 32, "n < 30": 30, "n > 1000": 0, "n = 37 OR n IS NULL": 3}
"""Of rows: the odd one among them, all but it, none, and some for which another expression would be neither."""


def of_some(folder: Path, cases: Iterable[tuple[int, Case]]) -> Flow:
    """Give a flow with checks of each row, asked of some of them."""
    return flow_of(
        folder,
        [
            f"{case.name}: {{{named(number, case)[0]}}}\n        where: {where}"
            for number, case in cases
            for where in OF_SOME
        ],
    )


def numbered(*, odd: bool) -> pa.Table:
    """Give rows with their numbers, which two of them do not have."""
    numbers = pa.array([None if number in {31, 40} else number for number in range(ROWS)], pa.int64())
    return table(odd=odd).append_column("n", numbers)


@pytest.mark.parametrize("each", [5, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_checks_of_some_rows_are_the_same_in_this_process_and_on_spark(
    tmp_path: Path, spark: LentSpark, each: int
) -> None:
    of_rows = [(number, case) for number, case in enumerate(CASES) if offers()[case.name].rows]
    flow, rows = of_some(tmp_path, of_rows[::each]), numbered(odd=True)
    plain, there = judged(flow, rows, None), judged(flow, rows, spark.session())
    assert there == plain
    for check, found in zip(flow.expect["punctual"], there, strict=True):
        assert found.looked_at == OF_SOME[check.where], found.sentence
        if check.where != "n = 37 OR n IS NULL":
            assert found.held == (check.where != "n >= 30"), found.sentence


def test_spark_reads_the_rows_once_for_all_checks_of_each(
    tmp_path: Path, spark: LentSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nulls, sets, lengths and patterns, of all rows and of some: no row is read again to be counted or chosen."""
    read: list[DataFrame] = []
    collect = DataFrame.collect

    def seen(rows: DataFrame) -> list[Row]:
        read.append(rows)
        return collect(rows)

    monkeypatch.setattr(DataFrame, "collect", seen)
    of_rows = {"to_not_be_null", "to_be_in_set", "lengths_to_be_between", "to_match_regex", "to_be_between"}
    of_columns = {f"expect_column_{name}_to_be_between" for name in ("max", "min", "mean", "sum", "stdev")}
    of_rows = {
        case.name
        for case in CASES
        if offers()[case.name].rows and "c" in case.columns and any(case.name.endswith(f"_{name}") for name in of_rows)
    }
    checks = [
        f"{case.name}: {{{named(number, case)[0]}}}" + (f"\n        where: {where}" if where else "")
        for number, case in enumerate(CASES)
        for where in ("", "n >= 30", "n < 30")
        if case.name in of_rows or (case.name in of_columns and not where)
    ]
    checks.append(f"expect_table_row_count_to_equal: {{value: {ROWS}}}")
    found = judged(flow_of(tmp_path, checks), numbered(odd=False), spark.session())
    assert [each.held for each in found] == [True] * len(checks)
    assert [each.looked_at for each in found if each.expectation.endswith("n >= 30")] == [32] * len(of_rows)
    assert {each.looked_at for each in found} == {ROWS, 32, 30}
    assert len(read) == 1


def test_rows_are_counted_on_spark_where_nothing_else_is_and_where_something_fails(
    tmp_path: Path, spark: LentSpark
) -> None:
    (place,) = (number for number, case in enumerate(CASES) if "z_scores" in case.name)
    far = f"{CASES[place].name}: {{{named(place, CASES[place])[0]}}}"
    one = table(odd=False).slice(0, 1)
    for value, checks in ((1, []), (2, []), (1, [far]), (2, [far])):
        flow = flow_of(tmp_path, [f"expect_table_row_count_to_equal: {{value: {value}}}", *checks])
        found = judged(flow, one, spark.session())
        assert [each.held for each in found] == [value == 1, *(True for _ in checks)]


def test_what_is_asked_of_a_table_as_a_whole(tmp_path: Path, either: SparkSession | None) -> None:
    rows = table(odd=False).select([*(field.name for field in ORDER_FIELDS), "gate"])
    said = {"columns": rows.num_columns, "names": ", ".join(rows.column_names), "rows": ROWS}
    checks = [f"{name}: {{{words.format(**said)}}}" for name, words in OF_THE_TABLE.items()]
    flow = flow_of(tmp_path, [*checks, "expect_column_to_exist: {column: nobody}"])
    whole = {each.expectation: each.held for each in judged(flow, rows, either)}
    assert [name for name, held in whole.items() if not held] == ["expect_column_to_exist() #2"]

    fewer = rows.slice(1).drop_columns(["due_at"])
    broken = [each.expectation for each in judged(flow, fewer, either) if not each.held]
    lasting = {"expect_column_to_exist()", "expect_table_column_count_to_be_between()"}
    assert set(broken) == set(whole) - lasting


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.decimal128(6, 2), ["0.10", "0.20"]),
        (pa.decimal128(20, 0), ["9007199254740992", "9007199254740993"]),
        (pa.date32(), [19_000, 19_001]),
        (pa.bool_(), [True, False]),
        (pa.string(), ["it's", 'a "b"']),
    ],
    ids=str,
)
def test_a_row_is_shown_whatever_its_key_is(
    tmp_path: Path, either: SparkSession | None, kind: pa.DataType, values: Sequence[Any]
) -> None:
    """Two keys have a row at each arrival and place; one of the rows is odd, also where the check is about the key."""
    rows = table(odd=False).select([field.name for field in ORDER_FIELDS])
    first, second = (
        pa.array([value] * ROWS, kind) if kind == pa.date32() else pa.array([value] * ROWS).cast(kind)
        for value in values
    )
    fine, odd = pa.array([5] * ROWS), pa.array([5] * SPOILT + [10] + [5] * (ROWS - SPOILT - 1))
    both = pa.concat_tables(
        rows.append_column("gate", gate).append_column("c", c) for gate, c in ((first, fine), (second, odd))
    )
    flow = flow_of(
        tmp_path,
        [
            "expect_column_values_to_be_between: {column: c, max_value: 9}",
            "expect_column_values_to_be_null: {column: gate}",
        ],
        "    by: gate\n",
    )
    found = {each.expectation.split("(")[0]: each for each in judged(flow, both, either)}
    one, of_the_key = found["expect_column_values_to_be_between"], found["expect_column_values_to_be_null"]
    assert [(str(row["gate"]).lower(), str(row["c"])) for row in one.rows] == [
        (second.cast(pa.string())[0].as_py(), "10")
    ]
    assert of_the_key.unexpected == 2 * ROWS
    assert of_the_key.rows


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "greater than those"),
        ({"or_equal": False}, "greater than those"),
        ({"or_equal": True}, "greater than or equal to those"),
    ],
)
def test_what_may_not_be_equal_is_said_so(given: dict[str, bool], told: str) -> None:
    arguments = {"column_A": "due", "column_B": "posted", **given}
    check = Check(name="expect_column_pair_values_a_to_be_greater_than_b", arguments=arguments)
    assert sentence_of(AskedCheck(check, arguments)) == f"Values in due must always be {told} in posted."


@pytest.mark.parametrize(
    ("check", "seen"),
    [
        ("to_be_in_set: {column: size, value_set: [1]}", "not in the set: 2, 3"),
        ("to_equal_set: {column: size, value_set: [1, 2, 9]}", "not in the set: 3; missing: 9"),
        ("to_contain_set: {column: size, value_set: [1, 8, 9]}", "missing: 8, 9"),
    ],
)
def test_of_a_set_of_values_those_are_named_that_break_it_and_no_rows_are_counted(
    tmp_path: Path, either: SparkSession | None, check: str, seen: str
) -> None:
    """Great Expectations count values there, and of all other checks of columns rows."""
    flow = flow_of(tmp_path, [f"expect_column_distinct_values_{check}"])
    rows = table(odd=False).append_column("size", pa.array([1, *([2] * 40), *([3] * (ROWS - 41))], INT))
    (found,) = judged(flow, rows, either)
    assert (found.held, found.looked_at, found.unexpected) == (False, ROWS, 0)
    assert found.rows == ({"observed_value": seen},)
