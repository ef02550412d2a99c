"""What a flow says under `expect:` is refused where it stands, with what is expected, before any row is worked on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pipelines.flows.check import Check, is_of_each
from pipelines.flows.checks import misfit_of
from pipelines.flows.errors import FlowError
from pipelines.flows.offered import offer_of, offers

if TYPE_CHECKING:
    from tests.flows.conftest import Read

STREAMS = "  beating:\n    heartbeat: d\n    interval: 1m\n    expect:\n      - {check}\n"
IN_SET = "expect_column_values_to_be_in_set"
BETWEEN, MEAN = "expect_column_values_to_be_between", "expect_column_mean_to_be_between"


@pytest.mark.parametrize(
    ("check", "says"),
    [
        ("expect_column_values_to_be_betwen: {column: n}", "unknown key `expect_column_values_to_be_betwen`"),
        (f"{BETWEEN}: {{column: n, least: 3}}", "the argument `least`"),
        (f"{BETWEEN}: {{column: n, min_value: [3]}}", "a list of 1 under `min_value`"),
        (f"{BETWEEN}: {{column: n}}", "neither `min_value` nor `max_value`"),
        ("expect_column_to_exist: {column: n, column_index: 0}", "`column_index: 0`"),
        ("expect_table_row_count_to_be_between: {}", "neither `min_value` nor `max_value`"),
        (f"{BETWEEN}: {{column: n, min_value: 3, max_value: 2.5}}", "`min_value: 3` above `max_value: 2.5`"),
        (f"{BETWEEN}: {{column: t, min_value: 2013-02-01, max_value: 2013-01-01T01:00:00Z}}", "above `max_value: 2013"),
        ("expect_column_values_to_match_regex: {column: c, regex: '[a'}", "`[a` under `regex` (unterminated character"),
        ("expect_column_values_to_match_regex_list: {column: c, regex_list: [a, '*']}", "`*` under `regex_list`"),
        ("expect_column_values_to_match_strftime_format: {column: c, strftime_format: '%Q'}", "`%Q` under"),
        (f"{BETWEEN}: {{column: n, min_value: 0.10000000000000000001}}", "which is 0.1 as a float"),
        (f"{IN_SET}: {{column: n, value_set: [1.0e+400]}}", "which is inf as a float"),
        (f"{IN_SET}: {{column: n, value_set: [1, 9223372036854775808]}}", "`9223372036854775808`"),
        ("expect_compound_columns_to_be_unique: {column_list: [n]}", "`column_list: [n]`"),
        ("expect_compound_columns_to_be_unique: {column_list: [n, n]}", "`column_list: [n, n]`"),
        (f"{BETWEEN}: {{column: n, max_value: 1}}\n        mostly: 0.9", f"`mostly` beside `{BETWEEN}`"),
        ("expect_table_row_count_to_be_between: {min_value: 2026-05-04T00:00:00Z}", "under `min_value`"),
        ("my_package.ColumnValues: {column: n}", "`, expected a module and a class in it"),
        ("my-package.ExpectOdd: {column: n}", "`, expected a module and a class in it"),
        (f"my_package.ExpectOdd: {{column: n}}\n        {BETWEEN}: {{column: n}}", "both `my_package.ExpectOdd` and"),
        ("my_package.ExpectOdd: {}\n        column: n", "arguments stand within `my_package.ExpectOdd`"),
        ("my_package.ExpectOdd: {column: [n]}", "a list of 1 under `column`"),
        ("my_package.ExpectOdd: {column: n, mostly: 2}", "a share of the rows, from 0 to 1"),
        (
            "great_expectations.expectations.ExpectColumnMeanToBeBetween: {column: n}",
            "expected `expect_column_mean_to_be_between`",
        ),
        (
            "expect_column_pair_values_to_be_equal: {column_A: n, column_B: m, ignore_row_if: neither}",
            "`neither` under `ignore_row_if`",
        ),
        (
            "expect_column_values_to_be_between: {column: n, min_value: 1, mostly: 2}",
            "a share of the rows, from 0 to 1",
        ),
    ],
)
def test_what_great_expectations_would_refuse_is_refused_with_the_flow(read: Read, check: str, says: str) -> None:
    with pytest.raises(FlowError) as refused:
        read(streams=STREAMS.format(check=check))

    assert says in str(refused.value)
    assert refused.value.expected


@pytest.mark.parametrize(
    "check",
    [
        f"{BETWEEN}: {{column: n, min_value: 3, max_value: 3}}",
        f"{BETWEEN}: {{column: n, max_value: 2.5, strict_max: true}}",
        f"{BETWEEN}: {{column: t, min_value: 2013-01-01, max_value: 2013-01-01T01:00:00Z}}",
        f"{MEAN}: {{column: n, min_value: -1}}",
        "expect_column_values_to_match_regex: {column: c, regex: '^[a-z]+$'}",
        "expect_column_values_to_match_strftime_format: {column: c, strftime_format: '%Y-%m-%d'}",
    ],
)
def test_what_makes_sense_is_taken(read: Read, check: str) -> None:
    (taken,) = read(streams=STREAMS.format(check=check)).expect["beating"]

    assert taken.name == check.partition(":")[0]


def test_a_class_of_another_package_is_taken_without_that_package(read: Read) -> None:
    check = "nobody.has.ExpectColumnPairValuesToRhyme: {column_A: n, column_B: m, with: {depth: 3}}"
    (taken,) = read(streams=STREAMS.format(check=check)).expect["beating"]

    assert taken.label == "expect_column_pair_values_to_rhyme of nobody.has(n, m)"
    assert taken.arguments == {"column_A": "n", "column_B": "m", "with": {"depth": 3}}
    assert not is_of_each(taken.label), "whether it holds rows against each other nobody knows"
    assert misfit_of(taken, offer_of(taken.name), {"n": "text", "m": "number"}) is None


def test_values_that_no_value_of_a_column_can_equal_are_refused() -> None:
    check = Check(name=IN_SET, arguments={"column": "litres", "value_set": [1, "a"]})
    offer = offers()[IN_SET]

    assert misfit_of(check, offer, {"litres": "number"}) == (
        "`a` among the values of `litres`, which is a number,",
        "values that are numbers",
    )
    assert misfit_of(check, offer, {"litres": "text"}) == (
        "`1` among the values of `litres`, which is a text,",
        "values that are texts",
    )
    assert misfit_of(check, offer, {"litres": "bool"}) is None
    assert (
        misfit_of(replace(check, arguments={"column": "litres", "value_set": [1, 2.5]}), offer, {"litres": "number"})
        is None
    )


def test_truth_is_no_number_and_columns_of_unlike_kinds_are_not_held_against_each_other() -> None:
    check = Check(name=IN_SET, arguments={"column": "litres", "value_set": [1, True]})
    equal = "expect_column_pair_values_to_be_equal"
    pair = Check(name=equal, arguments={"column_A": "a", "column_B": "b"})
    kinds = {"a": "number", "b": "truth"}

    assert misfit_of(check, offers()[IN_SET], {"litres": "number"}) is not None
    assert misfit_of(check, offers()[IN_SET], {"litres": "truth"}) is not None
    assert misfit_of(pair, offers()[equal], kinds) == (
        "`a`, which is a number, held against `b`, which is a truth,",
        "columns of one kind",
    )


NOT_NULL = "expect_column_values_to_not_be_null"
ASIDE = """\
  beating: {{heartbeat: d, interval: 10m}}
  ordered: {{merge: beating, ports_by: {{origin: [EWR, JFK]}}, ahead: {ahead}}}
  punctual:
    advance_time: ordered
    every: {{events: 50}}
    late: {late}
    {said}
  clean:
    quarantine: punctual
    expect: [{{{check}: {{column: carrier}}}}]
    {of_clean}
"""


def aside(said: str = "", of_clean: str = "", late: str = "divert", ahead: str = "drop") -> str:
    """Give streams that set rows aside, and what they say of them."""
    return ASIDE.format(said=said, of_clean=of_clean, late=late, ahead=ahead, check=NOT_NULL)


def test_what_is_set_aside_has_checks_of_its_own(read: Read) -> None:
    found = read(
        streams=aside(
            f"sides: {{diverted: {{expect: [{{{NOT_NULL}: {{column: carrier}}, severity: warning}}]}}}}",
            "sides:\n      quarantined:\n        expect:\n          "
            "- expect_column_values_to_match_regex: {column: broken, regex: carrier}",
        )
    )

    assert {table: [each.label for each in checks] for table, checks in found.expect.items()} == {
        "punctual.diverted": [f"{NOT_NULL}(carrier)"],
        "clean": [f"{NOT_NULL}(carrier)"],
        "clean.quarantined": ["expect_column_values_to_match_regex(broken)"],
    }
    assert found.expect["punctual.diverted"][0].severity == "warning"
    assert found.where("punctual.diverted") == found.where("punctual")


@pytest.mark.parametrize(
    ("streams", "says"),
    [
        (
            aside("sides: {divertd: {expect: []}}"),
            "unknown key `divertd` in `sides` of stream `punctual`, expected `diverted`; did you mean `diverted`",
        ),
        (aside("sides: {quarantined: {expect: []}}"), "unknown key `quarantined` in `sides` of stream `punctual`"),
        (
            aside("sides: {diverted: {expect: []}}", late="drop"),
            "`sides` where no row is set aside in stream `punctual`, expected `late: divert`",
        ),
        (aside("sides: [diverted]"), "expected `{diverted: {expect: [<checks>]}}`"),
        (aside("sides: {diverted: {}}"), "no `expect` in `diverted` under `sides` of stream `punctual`"),
        (aside("sides: {diverted: {expct: []}}"), "did you mean `expect`"),
        (aside("sides: {diverted: {expect: [{expect_column_values_to_be_nul: {column: n}}]}}"), "did you mean"),
        (aside("side: {diverted: {expect: []}}"), "did you mean `sides`"),
        (
            aside().replace("interval: 10m", "interval: 10m, sides: {diverted: {expect: []}}"),
            "`sides` where no row is set aside in stream `beating`, expected no `sides`",
        ),
    ],
)
def test_a_side_that_a_stream_does_not_have_is_refused(read: Read, streams: str, says: str) -> None:
    with pytest.raises(FlowError) as refused:
        read(streams=streams)

    assert says in str(refused.value)
