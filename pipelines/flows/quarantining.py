"""What a quarantine goes by: those of its stream's checks that are asked of each row, as expressions of the flow.

An expression gives the same on every engine; a check of Great Expectations is asked by two judges. What the gate asks
afterwards, of what passed, is that check itself: so each of them proves the expression beside it.
"""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

from pipelines.flows.check import Severity
from pipelines.flows.checks import KEY, instant_of, item_of, read_checks, writes_an_instant
from pipelines.flows.errors import one_of
from pipelines.flows.expressions import parse_expression
from pipelines.flows.known_columns import columns_of, kind_of
from pipelines.flows.offered import offer_of
from pipelines.flows.settings import expression_at
from pipelines.operators.quarantine import Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pipelines.flows.check import Check
    from pipelines.flows.model import Flow
    from pipelines.flows.section import Section

DAY_AS_INSTANT = "timestamp of a date"
"""How a date is spelled that is held against instants."""
BLOCKING = Severity.BLOCKING.name.lower()


def rules_of(section: Section, read: str, flow: Flow) -> tuple[Rule, ...]:
    """Give the checks by which a quarantine sets rows aside, in the order of the flow.

    Args:
        section: of the stream.
        read: what it reads, which has its columns.
        flow: with that.

    Raises:
        FlowError: no blocking check of each row, or one that no expression says.
    """
    checks = read_checks(section, read, flow, behind=True)
    places = [item_of(section, item) for item in section.tree.entries[KEY].items] if checks else []  # type: ignore[union-attr]
    asked = [
        (place, check)
        for place, check in zip(places, checks, strict=True)
        if check.severity == BLOCKING and offer_of(check.name).rows
    ]
    if not asked:
        expected = f"a blocking one that each row keeps or breaks: {one_of(SAID)}"
        came = f"no blocking check of each row under `{KEY}`"
        raise section.wrong(KEY if section.has(KEY) else None, came, expected)
    types = columns_of(flow, read).types
    return tuple(
        Rule(check.label, _told(place, check, types), check.columns if check.name in EQUAL else ())
        for place, check in asked
    )


def _told(section: Section, check: Check, types: Mapping[str, str]) -> str:
    """Spell a check as an expression that is true of the rows that keep it."""
    if check.name not in SAID:
        came = f"`{check.name}`, which no expression says of one row,"
        expected = f"{one_of(SAID)}; or `severity: warning`, or it under a stream that reads this one"
        raise section.wrong(check.name, came, expected)
    if check.arguments.get("mostly", 1) != 1:
        raise section.wrong(check.name, f"`mostly` of `{check.name}`", "no `mostly`: a row keeps a check or breaks it")
    if check.where and "kind" in parse_expression(check.where).columns:
        came = f"`where: {check.where}` with `kind`"
        raise section.wrong("where", came, "a condition of events alone: timers and CTIs always pass")
    spelled = types.get(check.columns[0], "")
    if spelled == "date" and writes_an_instant(check):
        # No day is such an instant, and it lies between two.
        spelled = DAY_AS_INSTANT
    keeps = SAID[check.name](check, spelled)
    return expression_at(
        section, check.name, f"NOT coalesce({check.where}, false) OR ({keeps})" if check.where else keeps
    )


def _value(column: str, spelled: str) -> str:
    """Spell the value that a check holds against what it writes."""
    return f"CAST({_named(column)} AS TIMESTAMP)" if spelled == DAY_AS_INSTANT else _named(column)


def _named(column: str) -> str:
    return "`" + column.replace("`", "``") + "`"


def _spelled(value: str | float | bool, spelled: str) -> str:  # noqa: FBT001 - any value
    """Spell a value of a check as a literal, beside a column of a type."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return repr(value)
    if spelled == "date":
        return f"DATE '{instant_of(value).date()}'"
    if kind_of(spelled) == "time":
        return f"TIMESTAMP '{instant_of(value).astimezone(UTC).isoformat()}'"
    quoted = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{quoted}'"


def _within(check: Check, what: str, spelled: str) -> str:
    """Say that a value lies within the bounds of a check."""
    low, high = (check.arguments.get(name) for name in ("min_value", "max_value"))
    if not spelled and any(isinstance(each, str) for each in (low, high)):
        # An instant, for texts have no bounds: beside a column that nothing says the type of, a time or a date.
        what, spelled = f"CAST({what} AS TIMESTAMP)", "timestamp"
    above, below = (
        ">" if check.arguments.get("strict_min") else ">=",
        "<" if check.arguments.get("strict_max") else "<=",
    )
    parts = [f"{what} {above} {_spelled(low, spelled)}"] if low is not None else []
    parts += [f"{what} {below} {_spelled(high, spelled)}"] if high is not None else []
    if high is None and kind_of(spelled or "float64") == "number":
        parts += _is_a_number(what, spelled or "float64")
    return " AND ".join(parts)


def _is_a_number(what: str, spelled: str) -> list[str]:
    """Say that a float is one: what is none lies between no bounds for Great Expectations, and above all for Spark."""
    return [f"{what} <= CAST('Infinity' AS DOUBLE)"] if spelled.startswith(("float", "double")) else []


def _unless_null(column: str, keeps: str) -> str:
    """Pass over a value that is missing, as Great Expectations does."""
    return f"{_named(column)} IS NULL OR ({keeps})"


def _set_of(check: Check, spelled: str) -> str:
    return ", ".join(_spelled(value, spelled) for value in check.arguments["value_set"] if value is not None)


def _is_null(check: Check, _: str) -> str:
    return f"{_named(check.columns[0])} IS NULL"


def _is_not_null(check: Check, _: str) -> str:
    return f"{_named(check.columns[0])} IS NOT NULL"


def _between(check: Check, spelled: str) -> str:
    column = check.columns[0]
    return _unless_null(column, _within(check, _value(column, spelled), spelled))


def _in_set(check: Check, spelled: str) -> str:
    column, values = check.columns[0], _set_of(check, spelled)
    return _unless_null(column, f"{_value(column, spelled)} IN ({values})" if values else "false")


def _not_in_set(check: Check, spelled: str) -> str:
    column, values = check.columns[0], _set_of(check, spelled)
    return _unless_null(column, f"{_value(column, spelled)} NOT IN ({values})" if values else "true")


def _length_between(check: Check, _: str) -> str:
    column = check.columns[0]
    return _unless_null(column, _within(check, f"length({_named(column)})", "int64"))


def _length_equal(check: Check, _: str) -> str:
    column = check.columns[0]
    return _unless_null(column, f"length({_named(column)}) = {_spelled(check.arguments['value'], 'int64')}")


def _pair(check: Check, compared: str) -> str:
    a, b = _named(check.arguments["column_A"]), _named(check.arguments["column_B"])
    return f"{a} IS NULL OR {b} IS NULL OR {a} {compared} {b}"


def _pair_greater(check: Check, _: str) -> str:
    return _pair(check, ">=" if check.arguments.get("or_equal") else ">")


def _pair_equal(check: Check, _: str) -> str:
    return _pair(check, "=")


SAID: Mapping[str, Callable[[Check, str], str]] = {
    "expect_column_values_to_be_between": _between,
    "expect_column_values_to_be_in_set": _in_set,
    "expect_column_values_to_not_be_in_set": _not_in_set,
    "expect_column_values_to_be_null": _is_null,
    "expect_column_values_to_not_be_null": _is_not_null,
    "expect_column_value_lengths_to_be_between": _length_between,
    "expect_column_value_lengths_to_equal": _length_equal,
    "expect_column_pair_values_a_to_be_greater_than_b": _pair_greater,
    "expect_column_pair_values_to_be_equal": _pair_equal,
}
"""How each check of one row is said as an expression, given the type of its column; empty where the flow says none."""
EQUAL = (
    "expect_column_values_to_be_in_set",
    "expect_column_values_to_not_be_in_set",
    "expect_column_pair_values_to_be_equal",
)
"""Those that ask whether values are equal, which of floats cannot be told."""
