"""Quarantine, held against Great Expectations: what passed keeps the checks, what went aside breaks those it names.

Rules of docs/semantics.md: P5, P6
"""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import csv

from expectations.checkpoints import Checkpoints
from expectations.on_duckdb import PlainView
from expectations.own_checks import own_judgements
from pipelines.flows.errors import FlowError
from pipelines.flows.reading import read_flow
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.runs.fitting import is_true
from tests.expectations.test_own_checks import Rows
from tests.laws.trials import BEGIN, SECOND, trial
from tests.wide import drawn as examples_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

TYPES = {
    "sensor": "string",
    "seen": "timestamp",
    "whole": "int64",
    "other": "int64",
    "real": "float64",
    "price": "decimal(10, 2)",
    "name": "string",
    "day": "date",
    "bought": "timestamp",
    "until": "date",
}
OF_ARROW = {
    "int64": pa.int64(),
    "float64": pa.float64(),
    "decimal(10, 2)": pa.decimal128(10, 2),
    "date": pa.date32(),
}
FLOW = """\
flow: checked
every: 1h
buckets: 3
sources:
  rows:
    feed: {feed}
    key: sensor
    time: seen
    arrival: seen
streams:
  clean:
    quarantine: rows
    expect:
{checks}
  beating: {{heartbeat: clean, interval: 7s}}
  again: {{heartbeat: clean.quarantined, interval: 9s}}
  aside: {{project: clean.quarantined, columns: {{whole: whole, name: name}}}}
  kept: {{project: clean, columns: {{whole: whole, name: name}}}}
  met: {{interleave: [aside, kept]}}
"""
CHECKS = (
    "expect_column_values_to_be_between: {column: whole, min_value: -3, max_value: 7}",
    "expect_column_values_to_be_between: {column: whole, min_value: -3, strict_min: true}",
    "expect_column_values_to_be_between: {column: whole, max_value: 7.5, strict_max: true}",
    "expect_column_values_to_be_between: {column: real, min_value: -1.5, max_value: 2.25}",
    "expect_column_values_to_be_between: {column: price, min_value: 0, max_value: 9.99}",
    "expect_column_values_to_be_between: {column: price, min_value: 0.1, max_value: 19.99}",
    "expect_column_values_to_be_between: {column: real, min_value: -1.6}",
    "expect_column_values_to_be_in_set: {column: price, value_set: [0.1, 19.99, 10]}",
    "expect_column_values_to_be_between: {column: bought, min_value: '2024-01-01T12:00:00Z'}",
    "expect_column_values_to_be_between: {column: bought, max_value: '2024-01-02T01:00:00+01:00'}",
    "expect_column_values_to_be_between: {column: day, min_value: '2024-01-02', max_value: '2024-01-03'}",
    "expect_column_values_to_be_in_set: {column: day, value_set: ['2024-01-02', '2024-01-03']}",
    "expect_column_values_to_be_in_set: {column: day, value_set: ['2024-01-01T12:00:00Z', '2024-01-03']}",
    "expect_column_values_to_not_be_in_set: {column: bought, value_set: ['2024-01-02T01:00:01+01:00']}",
    "expect_column_values_to_be_in_set: {column: bought, value_set: ['2024-01-01T12:00:00', '2024-01-01']}",
    "expect_column_pair_values_a_to_be_greater_than_b: {column_A: bought, column_B: day}",
    "expect_column_pair_values_to_be_equal: {column_A: bought, column_B: until}",
    "expect_column_values_to_be_in_set: {column: name, value_set: [ash, 'O''Hara', 'a\\\\b', '%']}",
    "expect_column_values_to_be_in_set: {column: whole, value_set: [1, 2, 3]}",
    "expect_column_values_to_not_be_in_set: {column: name, value_set: ['', 'O''Hara']}",
    "expect_column_values_to_not_be_in_set: {column: whole, value_set: [0]}",
    "expect_column_values_to_be_null: {column: name}",
    "expect_column_values_to_not_be_null: {column: name}",
    "expect_column_values_to_not_be_null: {column: real}",
    "expect_column_value_lengths_to_be_between: {column: name, min_value: 1, max_value: 3}",
    "expect_column_value_lengths_to_equal: {column: name, value: 3}",
    "expect_column_pair_values_a_to_be_greater_than_b: {column_A: whole, column_B: other}",
    "expect_column_pair_values_a_to_be_greater_than_b: {column_A: whole, column_B: other, or_equal: true}",
    "expect_column_pair_values_to_be_equal: {column_A: whole, column_B: other}",
    "expect_column_pair_values_to_be_equal: {column_A: whole, column_B: other, ignore_row_if: either_value_is_missing}",
)
WHERES = ("", "", "sensor = 'b'", "whole > 0", "name IS NOT NULL OR real < 0")
NUMBERS = st.sampled_from([None, -4, -3, 0, 1, 3, 7, 8])
BOUGHT = (
    None,
    "2024-01-01T11:59:59.999999",
    "2024-01-01T12:00:00",
    "2024-01-02T00:00:00",
    "2024-01-02T00:00:01",
)
ROW = st.fixed_dictionaries(
    {
        "sensor": st.sampled_from(["a", "b", "c"]),
        "whole": NUMBERS,
        "other": NUMBERS,
        "real": st.sampled_from([None, "nan", "inf", -1.5, -1.6, -0.0, 2.25, 2.3]),
        "price": st.sampled_from([None, "-0.01", "0.00", "0.10", "9.99", "10.00", "19.99"]),
        "name": st.sampled_from([None, "ash", "O'Hara", "a\\b", "%", "longer", "x"]),
        "day": st.sampled_from([None, "2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04"]),
        "bought": st.sampled_from(
            [None, "2024-01-02T00:00:00", "2024-01-01T11:59:59.999999", "2024-01-01T12:00:00", "2024-01-02T00:00:01"]
        ),
        "until": st.sampled_from([None, "2024-01-01", "2024-01-02"]),
    }
)


def feed_of(rows: Sequence[dict[str, Any]]) -> pa.Table:
    """Give rows as texts, one a second; what is missing is an empty field."""
    begin = dt.datetime.fromtimestamp(BEGIN // SECOND, dt.UTC).replace(tzinfo=None)
    seen = [(begin + dt.timedelta(seconds=number // 2)).isoformat() for number in range(len(rows))]
    told = {name: [None if row[name] is None else str(row[name]) for row in rows] for name in rows[0]}
    return pa.table({name: pa.array(seen if name == "seen" else told[name], pa.string()) for name in TYPES})


def written(folder: Path, rows: Sequence[dict[str, Any]], checks: Sequence[str], *, typed: bool = True) -> str:
    """Write rows and give a flow that says their types, or leaves it to the file to show them."""
    csv.write_csv(feed_of(rows), folder / "rows.csv", csv.WriteOptions(quoting_style="needed"))
    types = ", ".join(f"{name}: '{kind}'" for name, kind in TYPES.items())
    told = f"{{csv: rows.csv, types: {{{types}}}, timezone: UTC}}"
    if not typed:
        columns = [
            feed_of(rows)[name].cast(OF_ARROW.get(kind, pa.string())) if kind != "timestamp" else _instants(rows, name)
            for name, kind in TYPES.items()
        ]
        pq.write_table(pa.table(columns, [*TYPES]), folder / "rows.parquet")
        told = "{parquet: rows.parquet}"
    return FLOW.format(feed=told, checks="\n".join(checks))


def _instants(rows: Sequence[dict[str, Any]], name: str) -> pa.ChunkedArray:
    return pc.assume_timezone(feed_of(rows)[name].cast(pa.timestamp("us")), "UTC")


def spelled(check: str, where: str) -> str:
    return f"      - {check}" + (f'\n        where: "{where}"' if where else "")


def view(rows: pa.Table) -> PlainView:
    return PlainView(rows=Rows(rows), truth=is_true)


@settings(max_examples=examples_of(6, 60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    rows=st.lists(ROW, min_size=1, max_size=30),
    checks=st.lists(st.tuples(st.sampled_from(CHECKS), st.sampled_from(WHERES)), min_size=1, max_size=5, unique=True),
    typed=st.booleans(),
)
def test_what_passes_keeps_the_checks_and_what_went_aside_breaks_them(
    rows: list[dict[str, Any]],
    checks: list[tuple[str, str]],
    typed: bool,  # noqa: FBT001 - drawn
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder: Path = tmp_path_factory.mktemp("quarantine")
    here = trial(folder, written(folder, rows, [spelled(*each) for each in checks], typed=typed), {})
    spans = [(BEGIN, BEGIN + 5 * SECOND), (BEGIN + 5 * SECOND, BEGIN + 60 * SECOND)]
    here.ran("run", spans)
    clean, aside, ledger = (here.table("run", name) for name in ("clean", "clean.quarantined", "ledger"))
    both = pa.concat_tables([clean, aside.drop_columns(["broken"])])
    named = Counter(name for row in aside["broken"].to_pylist() for name in row.split("; "))

    assert clean.num_rows + aside.num_rows == len(rows)
    for judged in own_judgements(here.flow, "clean", view(both), Checkpoints("checked", None)):
        assert judged.unexpected == named[judged.expectation], judged.sentence
    for judged in own_judgements(here.flow, "clean", view(clean), Checkpoints("checked", None)):
        assert judged.held, judged.sentence
    lines = ledger.filter(pc.equal(ledger["reason"], "quarantined"))
    assert [json.loads(raw)["broken"] for raw in lines["raw"].to_pylist()] == _in_order(lines, aside)
    assert here.table("run", "met").filter(pc.equal(pc.field("kind"), "data")).num_rows == len(rows)
    assert here.hashes("run", [(spans[0][0], spans[1][1])]) == here.run(
        "whole", [(spans[0][0], spans[1][1])], buckets=1
    )


def _in_order(lines: pa.Table, aside: pa.Table) -> list[str]:
    """Give what quarantined rows say that they break, in the order of their lines."""
    told = {
        (row["landed_at"], row["landed_place"]): row["broken"]
        for row in aside.select(["landed_at", "landed_place", "broken"]).to_pylist()
    }
    return [told[row["landed_at"], row["landed_place"]] for row in lines.to_pylist()]


REFUSED: tuple[tuple[list[str], str], ...] = (
    ([], "no blocking check of each row"),
    (["expect_column_mean_to_be_between: {column: whole, max_value: 3}"], "no blocking check of each row"),
    (["expect_column_values_to_match_regex: {column: name, regex: a}"], "which no expression says of one row"),
    (["expect_column_values_to_not_be_null: {column: name, mostly: 0.9}"], "`mostly`"),
    (["expect_column_values_to_be_between: {column: bought, max_value: soon}"], "`max_value: soon`"),
    (["expect_column_values_to_be_between: {column: name, max_value: soon}"], "which is a text"),
    (["expect_column_values_to_be_between: {column: whole, max_value: 9007199254740993}"], "bounds are floats"),
    (["expect_column_values_to_not_be_null: {column: name}\n        where: kind = 'timer'"], "of events alone"),
)


@pytest.mark.parametrize(("checks", "words"), REFUSED)
def test_a_check_that_no_row_keeps_or_breaks_by_itself_is_refused_by_name(
    checks: list[str], words: str, tmp_path: Path
) -> None:
    text = written(tmp_path, [dict.fromkeys([*TYPES])], [spelled(check, "") for check in checks])
    file = tmp_path / "checked.yaml"
    file.write_text(text if checks else text.replace("    expect:\n", ""))

    with pytest.raises(FlowError) as caught:
        read_flow(file)
    assert words in str(caught.value)


def test_the_line_of_the_check_is_told(tmp_path: Path) -> None:
    checks = [
        "expect_column_values_to_not_be_null: {column: name}",
        "expect_column_values_to_match_regex: {column: name, regex: a}",
    ]
    text = written(tmp_path, [dict.fromkeys([*TYPES])], [spelled(check, "") for check in checks])
    (file := tmp_path / "checked.yaml").write_text(text)
    (line,) = (number for number, each in enumerate(text.splitlines(), 1) if "match_regex" in each)

    with pytest.raises(FlowError, match=f"checked.yaml:{line}: "):
        read_flow(file)


def test_equal_floats_are_not_asked_for(tmp_path: Path) -> None:
    check = spelled("expect_column_values_to_be_in_set: {column: real, value_set: [0.1]}", "")
    here = trial(tmp_path, written(tmp_path, [dict.fromkeys([*TYPES])], [check]), {})

    with pytest.raises(WrongUse, match="`expect: real` is double, of which equal values cannot be told"):
        here.ran("run", [(BEGIN, BEGIN + SECOND)])


def test_a_column_that_is_not_there_is_told_before_a_row_is_read(tmp_path: Path) -> None:
    check = spelled("expect_column_values_to_not_be_null: {column: nme}", "")
    here = trial(tmp_path, written(tmp_path, [dict.fromkeys([*TYPES])], [check]), {})

    with pytest.raises(WrongUse, match="did you mean `name`"):
        here.ran("run", [(BEGIN, BEGIN + SECOND)])
