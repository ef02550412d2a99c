"""What a team expects of a source or stream itself: `expect:`, a list of expectations of Great Expectations.

Checks say what must hold of rows and make none, so they are no part of a flow's fingerprint: a published run goes on
under new ones, and what is published is judged by those that the file has now.
"""

from __future__ import annotations

import datetime as dt
import re
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from itertools import combinations
from math import isfinite
from typing import TYPE_CHECKING, Any

from pipelines.flows.check import IN_ORDER, Check, Severity
from pipelines.flows.document import Listing, Scalar, YamlMapping
from pipelines.flows.errors import nearest, one_of
from pipelines.flows.expressions import ExpressionError, parse_expression
from pipelines.flows.known_columns import columns_of, kind_of
from pipelines.flows.offered import CLASS, is_other, offer_of, offers, snake, told_name
from pipelines.operators.specs import SPECS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from pipelines.flows.document import Tree
    from pipelines.flows.known_columns import KnownColumns
    from pipelines.flows.model import Flow, Stream
    from pipelines.flows.offered import Argument, Offer
    from pipelines.flows.section import Section

KEY = "expect"
SIDES = "sides"
"""Under a stream: what is said of those that its operator sets aside."""
BESIDE = ("severity", "where", "owner", "remedy")
"""What is said beside the expectation and its arguments."""
TYPED = "`{name}: {{column: <column>, …}}`"
NUMBERS = ("int", "float")
PLACE = "column_index"
BOUNDS = ("min_value", "max_value")
WRITTEN: Mapping[str, type | tuple[type, ...]] = {"time": str, "text": str, "truth": bool, "number": (int, float)}
"""How a flow writes the values of a column, by its kind; of other kinds anything may be asked."""
ALIKE = {
    "expect_column_pair_values_to_be_equal",
    "expect_column_pair_values_a_to_be_greater_than_b",
    "expect_multicolumn_values_to_be_equal",
    "expect_select_column_values_to_be_unique_within_record",
}
"""Expectations that hold columns against each other, which are of one kind then."""
LARGEST = 2**63
"""Whole numbers of 64 bits are below this."""
MIDNIGHT, FOUR_DIGITS = dt.time(), 1_000
MOST = 200
TOTAL = "sum_total"
COLUMNS = "column_list"
OF_COLUMNS = "expect_table_columns_to_match_ordered_list"
"""Lists the columns of a table; other lists are of columns that are held against each other."""
EXACT = 2**53
"""Whole numbers up to this are floats."""
IGNORED = "ignore_row_if"
MISSING = {
    "expect_column_pair_values_": "either_value_is_missing",
    "expect_multicolumn_": "any_value_is_missing",
    "expect_select_column_values_": "any_value_is_missing",
}
"""Of values that are held against each other nothing can be said of which one is missing: one judge fails over it, the
other passes it. By how the expectations begin."""


def read_checks(section: Section, table: str, flow: Flow, *, behind: bool = False) -> tuple[Check, ...]:
    """Read what a source or stream says under `expect`; nothing where it says nothing.

    Args:
        section: of the source or stream.
        table: its name in the flow.
        flow: with the table and all that it is made from.
        behind: the section is of a stream that reads the table, and has its columns.

    Raises:
        FlowError: an expectation, argument, column or type is not there, or one of the judges cannot ask it.
    """
    if not section.has(KEY):
        return ()
    tree = section.tree.entries[KEY]
    if not isinstance(tree, Listing) or not tree.items:
        raise section.wrong(
            KEY, f"{tree} under `{KEY}`", f"a list of checks, such as `- {TYPED.format(name='expect_…')}`"
        )
    if len(tree.items) > MOST:
        raise section.wrong(KEY, f"{len(tree.items)} checks", f"at most {MOST}")
    read = [_read(item_of(section, item), table, flow, behind=behind) for item in tree.items]
    return tuple(_labelled(read))


def read_checks_of_sides(section: Section, stream: Stream, flow: Flow) -> Iterator[tuple[str, tuple[Check, ...]]]:
    """Read what a stream says under `sides`: checks of each stream that its operator sets aside, by its name.

    Raises:
        FlowError: nothing is set aside, or nothing of that name; and as `read_checks`.
    """
    if not section.has(SIDES):
        return
    known = {name.removeprefix(f"{stream.name}."): name for name in stream.sides}
    if not known:
        chosen = SPECS[stream.operator].sets_aside
        expected = f"`{chosen}: divert`, which sets rows aside, or no `{SIDES}`" if chosen else f"no `{SIDES}`"
        raise section.wrong(SIDES, f"`{SIDES}` where no row is set aside", expected)
    what = f"`{SIDES}` of {section.what}"
    inside = section.inner(SIDES, what, f"`{{{next(iter(known))}: {{{KEY}: [<checks>]}}}}`")
    inside.only(known)
    for word in inside.tree.entries:
        side = inside.inner(word, f"`{word}` under {what}", f"`{{{KEY}: [<checks>]}}`")
        side.only((KEY,))
        if not side.has(KEY):
            raise side.wrong(None, f"no `{KEY}`", f"`{KEY}: [<checks>]`")
        yield known[word], read_checks(side, known[word], flow)


def item_of(section: Section, item: Tree) -> Section:
    """Give the section of one check in the list."""
    what = f"`{KEY}` of {section.what}"
    if not isinstance(item, YamlMapping):
        at = replace(section, tree=YamlMapping({}, {}, item.line))
        raise at.wrong(None, f"{item} under `{KEY}`", TYPED.format(name="expect_…"))
    return replace(section, what=what, tree=item)


def _labelled(checks: list[Check]) -> Iterator[Check]:
    """Tell the checks of a table apart: by name and columns, then by their rows, then by number."""
    seen: dict[str, int] = {}
    for check in checks:
        about = f"{told_name(check.name)}({', '.join(check.columns)})" + (
            f" where {check.where}" if check.where else ""
        )
        seen[about] = seen.get(about, 0) + 1
        yield replace(check, label=about if seen[about] == 1 else f"{about} #{seen[about]}")


def _read(section: Section, table: str, flow: Flow, *, behind: bool) -> Check:
    name = _name(section)
    offer = offer_of(name)
    arguments = _arguments(section, name, offer)
    where = _where(section, name)
    check = Check(
        name=name,
        arguments=arguments,
        severity=section.choice("severity", Severity, Severity.BLOCKING).name.lower(),
        where=where,
        owner=section.text("owner", ""),
        remedy=section.text("remedy", ""),
    )
    if check.in_order and table in flow.sources and not behind:
        raise section.wrong(
            name, f"`{name}` under a source", "it under a stream that reads the source, which has an order"
        )
    if check.in_order and check.arguments.get("mostly", 1) != 1:
        raise section.wrong(name, f"`mostly` of `{name}`", "no `mostly`: each row is held against the one before it")
    _fits(section, check, offer, columns_of(flow, table))
    return check


def ignored_if(name: str) -> str | None:
    """Say which rows an expectation passes over, in its own words; None where it says so itself."""
    return next((missing for begins, missing in MISSING.items() if name.startswith(begins)), None)


def _name(section: Section) -> str:
    """Give which expectation a check is; one, offered, that both judges can ask."""
    known = {name: offer for name, offer in offers().items() if not offer.refused}
    found = [key for key in section.tree.entries if key not in BESIDE]
    if not found:
        raise section.wrong(None, "no expectation", TYPED.format(name="expect_…"))
    for key in found:
        if is_other(key):
            _require_a_class(section, key)
            continue
        if key in offers() and offers()[key].refused:
            raise section.wrong(key, f"`{key}`, which is not offered: {offers()[key].refused},", "another expectation")
        asked = next((name for name in found if name in known and key in known[name].arguments), None)
        if asked:
            came = f"`{key}` beside `{asked}`"
            raise section.wrong(key, came, f"it among its arguments: `{asked}: {{…, {key}: <{key}>}}`")
        if key not in known:
            other = next((f"; arguments stand within `{name}`" for name in found if is_other(name)), "")
            kinds = "an expectation of Great Expectations (docs/reference/checks.md has all), one of another package "
            expected = f"{kinds}(`my_package.module.ExpectColumnValuesTo…`), or {one_of(BESIDE)}{other}"
            raise section.wrong(key, f"unknown key `{key}`", expected, nearest(key, (*known, *BESIDE)))
    if len(found) > 1:
        raise section.wrong(found[1], f"both `{found[0]}` and `{found[1]}`", "one expectation a check: begin a new `-`")
    return found[0]


def _require_a_class(section: Section, key: str) -> None:
    """Refuse what cannot be a class of another package; whether it is one, a job looks up when it starts."""
    *_, kind = key.split(".")
    if not CLASS.fullmatch(key):
        raise section.wrong(key, f"`{key}`", "a module and a class in it: `my_package.module.ExpectColumnValuesTo…`")
    if key.startswith("great_expectations."):
        core = snake(kind)
        known = core in offers()
        expected = f"`{core}`" if known else "its own name, such as `expect_column_values_to_not_be_null`"
        near = None if known else nearest(core, offers())
        raise section.wrong(key, f"`{key}`, a class of Great Expectations' own,", expected, near)


def _where(section: Section, name: str) -> str:
    if not section.has("where"):
        return ""
    if name in IN_ORDER:
        raise section.wrong(
            "where", f"`where` beside `{name}`", "no `where`: a stream behind a `filter:` has its own checks"
        )
    try:
        return parse_expression(section.text("where")).text
    except ExpressionError as problem:
        raise section.wrong(
            "where", f"`where: {section.text('where')}` with {problem.came}", problem.expected, problem.nearest
        ) from None


def _arguments(section: Section, name: str, offer: Offer) -> dict[str, Any]:
    inside = section.inner(name, f"`{name}`") if not _is_bare(section, name) else replace(section, tree=_empty(section))
    if is_other(name):
        known = offer.arguments
        return {
            key: _value(inside, key, known[key]) if key in known else _plain(inside, tree)
            for key, tree in inside.tree.entries.items()
        }
    for key in inside.tree.entries:
        if key not in offer.arguments:
            came = f"the argument `{key}`"
            raise inside.wrong(
                key, came, one_of(offer.arguments) if offer.arguments else "none", nearest(key, offer.arguments)
            )
    missing = [key for key, each in offer.arguments.items() if each.required and not inside.has(key)]
    if missing:
        raise inside.wrong(None, f"no `{missing[0]}`", f"`{missing[0]}: <{_said(offer.arguments[missing[0]])}>`")
    values = {key: _value(inside, key, offer.arguments[key]) for key in inside.tree.entries}
    _require_a_place(inside, values)
    _require_a_sum(inside, values)
    _require_several(inside, name, values)
    _require_bounds(inside, offer, values)
    for key in values.keys() & PATTERNS.keys():
        _require_readable(inside, key, values[key])
    return values


def _require_a_place(section: Section, values: Mapping[str, Any]) -> None:
    """Refuse the place that Great Expectations take for none: whatever stands there, they would say that it holds."""
    if values.get(PLACE) == 0:
        others = "expect_table_columns_to_match_ordered_list asks of the first"
        raise section.wrong(PLACE, f"`{PLACE}: 0`", f"a place above 0, or no `{PLACE}` ({others})")


def _require_a_sum(section: Section, values: Mapping[str, Any]) -> None:
    """Refuse a sum that is no float."""
    total = values.get(TOTAL)
    if isinstance(total, int) and abs(total) > EXACT:
        raise section.wrong(
            TOTAL, f"`{TOTAL}: {total}`", f"a number of at most {EXACT:,}: sums are held against floats"
        )


def _require_several(section: Section, name: str, values: Mapping[str, Any]) -> None:
    """Refuse one column where columns are held against each other."""
    if name != OF_COLUMNS and len({*values.get(COLUMNS, ())}) == 1:
        came = f"`{COLUMNS}: [{', '.join(values[COLUMNS])}]`"
        raise section.wrong(COLUMNS, came, "at least two columns, which are held against each other")


def _require_bounds(section: Section, offer: Offer, values: Mapping[str, Any]) -> None:
    """Refuse a check between no bounds, or between bounds that no value lies between."""
    if not offer.arguments.keys() >= set(BOUNDS):
        return
    low, high = (values.get(name) for name in BOUNDS)
    for name in BOUNDS:
        if isinstance(values.get(name), int) and abs(values[name]) > EXACT:
            raise section.wrong(name, f"`{name}: {values[name]}`", f"a number of at most {EXACT:,}: bounds are floats")
    if low is None and high is None:
        raise section.wrong(None, "neither `min_value` nor `max_value`", "one of them, or both")
    if isinstance(low, str) and isinstance(high, str):
        with suppress(ValueError):
            low, high = (instant_of(each) for each in (low, high))
    comparable = type(low) is type(high) or not any(isinstance(each, str) for each in (low, high))
    if low is not None and high is not None and comparable and low > high:
        came = f"`min_value: {values['min_value']}` above `max_value: {values['max_value']}`"
        raise section.wrong("min_value", came, "a `min_value` that is at most `max_value`")


def instant_of(text: str) -> dt.datetime:
    """Read an instant of a check, in UTC; without a zone it is that.

    Raises:
        ValueError: it is none.
    """
    moment = dt.datetime.fromisoformat(text)
    try:
        return moment.astimezone(dt.UTC) if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    except OverflowError:
        raise ValueError(text) from None


def is_day(text: str) -> bool:
    """Say whether an instant is a day, of a year that every engine can spell."""
    moment = instant_of(text)
    return moment.time() == MIDNIGHT and moment.year >= FOUR_DIGITS


def writes_an_instant(check: Check) -> bool:
    """Say whether a check of days writes an instant that none of them is."""
    return any(not is_day(each) for each in texts_of(check))


def writes_before(check: Check, year: int) -> bool:
    """Say whether a check of times writes one before a year."""
    return any(instant_of(each).year < year for each in texts_of(check))


def texts_of(check: Check) -> list[str]:
    """Give the texts among the bounds and the values that a check writes; what another package's are nobody knows."""
    if is_other(check.name):
        return []
    written = [*(check.arguments.get(name) for name in BOUNDS), *check.arguments.get("value_set", ())]
    return [each for each in written if isinstance(each, str)]


def _reads_times(pattern: str) -> None:
    dt.datetime.strptime(dt.datetime(2013, 1, 1, tzinfo=dt.UTC).strftime(pattern), pattern)  # noqa: DTZ007 - no value is read


PATTERNS: Mapping[str, tuple[str, Callable[[str], object]]] = {
    "regex": ("a regular expression", re.compile),
    "regex_list": ("a list of regular expressions", re.compile),
    "strftime_format": ("a format of times, such as `%Y-%m-%d`", _reads_times),
}
"""Arguments that are written in a language of their own, with what reads it."""


def _require_readable(section: Section, key: str, value: str | list[str]) -> None:
    expected, read = PATTERNS[key]
    for each in [value] if isinstance(value, str) else value:
        try:
            read(each)
        except (re.error, ValueError) as problem:
            raise section.wrong(key, f"`{each}` under `{key}` ({problem})", expected) from None


def _is_bare(section: Section, name: str) -> bool:
    tree = section.tree.entries[name]
    return isinstance(tree, Scalar) and tree.kind == "null"


def _empty(section: Section) -> YamlMapping:
    return YamlMapping({}, {}, section.line())


def _said(argument: Argument) -> str:
    return argument.takes if isinstance(argument.takes, str) else one_of(argument.takes)


def _value(section: Section, key: str, argument: Argument) -> Any:  # noqa: ANN401 - JSON
    value = _plain(section, section.tree.entries[key])
    if not _is_a(value, argument.takes):
        raise section.wrong(
            key, f"{section.tree.entries[key]} under `{key}`", EXPECTED.get(_said(argument), _said(argument))
        )
    if argument.takes == "values" and None in value:
        # SQL knows of no value whether it is one of a set with a null.
        raise section.wrong(key, f"`null` under `{key}`", "values alone: a missing one keeps a check of a set anyway")
    return value


EXPECTED = {
    "column": "a column's name",
    "columns": "a list of columns",
    "share": "a share of the rows, from 0 to 1",
    "truth": "true or false",
    "value": "a number, or an instant such as 2013-01-01T00:00:00Z",
    "instant": "an instant such as 2013-01-01T00:00:00Z",
    "values": "a list of values",
    "texts": "a list of texts",
    "pairs": "a list of pairs, such as [[1, 2], [3, 4]]",
    "ranges": "`{quantiles: [0.5], value_ranges: [[1, 2]]}`",
    "object": "a mapping",
}
"""What an argument takes, in words where the catalogue's own do not say it."""


def _is_a(value: Any, takes: str | tuple[str, ...]) -> bool:  # noqa: ANN401 - JSON
    if isinstance(takes, tuple):
        return value in takes
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    is_list = isinstance(value, list) and bool(value)
    texts = is_list and all(isinstance(each, str) for each in value)
    return {
        "column": isinstance(value, str),
        "columns": texts,
        "number": is_number,
        "whole number": is_number and isinstance(value, int),
        "share": is_number and 0 <= value <= 1,
        "truth": isinstance(value, bool),
        "text": isinstance(value, str),
        "texts": texts,
        "value": is_number or isinstance(value, str),
        "values": is_list and not any(isinstance(each, list | dict) for each in value),
        "pairs": is_list and all(isinstance(each, list) and len(each) == 2 for each in value),  # noqa: PLR2004 - a pair
        "ranges": isinstance(value, dict) and value.keys() >= {"quantiles", "value_ranges"},
        "object": isinstance(value, dict),
    }[takes]


def _plain(section: Section, tree: Tree) -> Any:  # noqa: ANN401 - JSON
    """Give a value as JSON has it; an instant stays a text."""
    if isinstance(tree, Listing):
        return [_plain(section, item) for item in tree.items]
    if isinstance(tree, YamlMapping):
        return {key: _plain(section, value) for key, value in tree.entries.items()}
    return None if tree.kind == "null" else _scalar(section, tree)


def _scalar(section: Section, tree: Scalar) -> str | int | float | bool:
    within = replace(section, tree=YamlMapping({"value": tree}, {"value": tree.line}, tree.line))
    text = within.text("value")
    if tree.kind == "bool":
        return text.lower() == "true"
    if tree.kind in NUMBERS or text != tree.text:
        return _number(within, text)
    return text


def _number(section: Section, text: str) -> int | float | str:
    """Give a number that every judge can hold values against; a text that is none stays one."""
    written = text.replace("_", "")
    for read in (int, float):
        try:
            number = read(written)
        except ValueError:
            continue
        if isinstance(number, int):
            if not -LARGEST <= number < LARGEST:
                raise section.wrong("value", f"`{text}`", f"a whole number of 64 bits, as a bound at most {EXACT:,}")
        elif not isfinite(number) or Decimal(repr(number)) != Decimal(written):
            # Of two numbers that are one float no judge can tell which was meant.
            raise section.wrong("value", f"`{text}`, which is {number} as a float,", "a number of at most 15 digits")
        return number
    return text


def _fits(section: Section, check: Check, offer: Offer, known: KnownColumns) -> None:
    """See that the columns are there, and of a type that the check can take, where the flow says what there is."""
    strange = strange_column(check, known.types) if known.whole else None
    if strange is not None:
        at = check.name if strange in check.columns else "where"
        raise section.wrong(at, f"the column `{strange}`", one_of(known.types), nearest(strange, known.types))
    kinds = {column: kind_of(known.types[column]) for column in check.columns if column in known.types}
    misfit = misfit_of(check, offer, kinds)
    if misfit:
        raise section.wrong(check.name, *misfit)


def strange_column(check: Check, there: Collection[str]) -> str | None:
    """Give the first column that a check or its `where` names and that is not there; None where all are."""
    asked = (*check.columns, *(parse_expression(check.where).columns if check.where else ()))
    return next((column for column in asked if column not in there), None)


def expected_column(strange: str, there: Collection[str]) -> str:
    """Say which columns there are in place of one that is not, and which of them may have been meant."""
    near = nearest(strange, there)
    return one_of(there) + (f"; did you mean `{near}`?" if near else "")


def misfit_of(check: Check, offer: Offer, kinds: Mapping[str, str]) -> tuple[str, str] | None:
    """Say what of a check does not fit the kinds of its columns, and what would.

    Args:
        check: the check.
        offer: what it is.
        kinds: `text`, `number`, `time` or another kind, by column.
    """
    for column, kind in kinds.items():
        bounds = {name: check.arguments.get(name) for name in BOUNDS if _is_bound(offer, name)}
        if kind in {"text", "truth"} and any(value is not None for value in bounds.values()):
            return f"bounds of `{column}`, which is a {kind},", "a column of numbers or times, or a check of a set"
        if offer.needs and kind != offer.needs:
            return f"`{column}`, which is no {offer.needs} ({kind}),", f"a column of {offer.needs}s"
        for name, value in bounds.items():
            if kind == "time" and isinstance(value, str) and not is_instant(value):
                return f"`{name}: {value}`", EXPECTED["instant"]
            if value is not None and _is_unlike(value, kind):
                wanted = EXPECTED["instant"] if kind == "time" else f"a bound that is a {kind}"
                return f"`{name}: {value}` beside `{column}`, which is a {kind},", wanted
    return _misfit_of_values(check, offer, kinds)


def _misfit_of_values(check: Check, offer: Offer, kinds: Mapping[str, str]) -> tuple[str, str] | None:
    """Say what no value of a column can equal: of those that a check writes, or of another column."""
    for column, kind in kinds.items():
        strange = next((value for value in _compared(check, offer, column) if _is_unlike(value, kind)), None)
        if strange is not None:
            return f"`{strange}` among the values of `{column}`, which is a {kind},", f"values that are {kind}s"
    if check.name in ALIKE:
        for (one, kind), (other, unlike) in combinations(kinds.items(), 2):
            if kind != unlike:
                came = f"`{one}`, which is a {kind}, held against `{other}`, which is a {unlike},"
                return came, "columns of one kind"
    return None


def _compared(check: Check, offer: Offer, column: str) -> Iterator[Any]:
    """Give the values that those of a column are held against."""
    takes = {name: each.takes for name, each in offer.arguments.items()}
    for name, value in check.arguments.items():
        if takes.get(name) == "values":
            yield from value
        elif takes.get(name) == "pairs":
            for side, key in enumerate(("column_A", "column_B")):
                if check.arguments[key] == column:
                    yield from (pair[side] for pair in value)


def _is_unlike(value: Any, kind: str) -> bool:  # noqa: ANN401 - JSON
    """Say that no value of a column of some kind can equal what a flow writes."""
    if kind not in WRITTEN or value is None:
        return False
    is_other = not isinstance(value, WRITTEN[kind]) or (isinstance(value, bool) and kind != "truth")
    return is_other or (kind == "time" and not is_instant(value))


def is_instant(text: str) -> bool:
    """Say whether a text is an instant."""
    try:
        instant_of(text)
    except ValueError:
        return False
    return True


def _is_bound(offer: Offer, name: str) -> bool:
    return name in offer.arguments and offer.arguments[name].takes == "value"
