"""A team's own checks: what a flow says under `expect:`, asked of the events of a table by Great Expectations."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from expectations.checkpoints import Checkpoints, size_of
from expectations.decided import IN_EACH
from expectations.given import Given, how_given, near
from expectations.judgement import Judgement
from expectations.laws import remedy_of
from expectations.offenders import all_of, shown
from expectations.views import told_by
from pipelines.errors import Exit, PulselineError
from pipelines.flows.check import OF_INTERVALS
from pipelines.flows.checks import (
    IGNORED,
    expected_column,
    ignored_if,
    instant_of,
    is_instant,
    misfit_of,
    strange_column,
    texts_of,
)
from pipelines.flows.expressions import parse_expression
from pipelines.flows.known_columns import kind_of
from pipelines.flows.offered import is_other, offer_of, offers

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from expectations.checkpoints import Asked
    from expectations.judgement import Keep
    from expectations.suites import AskedCheck
    from expectations.views import View
    from pipelines.flows.check import Check
    from pipelines.flows.model import Flow

SHOWN = 20
"""Intervals that break one of them and are shown."""


@dataclass(eq=False)
class CheckDoesNotFitError(PulselineError, ValueError):
    """A check of a flow's own that cannot be asked of the columns that its table has."""

    table: str
    check: str
    came: str
    expected: str
    code: ClassVar[Exit] = Exit.WRONG_USE
    says = "`{check}` of `{table}` has {came}, expected {expected}: change it in the flow's file"


def own_judgements(  # noqa: PLR0913 - which rows, by whom, and where what is found goes
    flow: Flow,
    table: str,
    view: View,
    checkpoints: Checkpoints,
    keep: Keep | None = None,
    intervals: Callable[[], Mapping[str, View]] = dict,
    known: int | None = None,
) -> list[Judgement]:
    """Judge what a flow expects of a table, but for values in stream order, which are laws.

    Args:
        flow: the model.
        table: a source, stream or side stream.
        view: its rows.
        checkpoints: Great Expectations at work.
        keep: is given all rows that break a check.
        intervals: gives the same rows interval by interval, by where each begins; nothing where one alone is judged.
        known: how many events the view has, where they have been counted.

    Raises:
        CheckDoesNotFitError: a check names a column that the table does not have, or one of another type.
    """
    from expectations.others import completed

    checks = [completed(check) for check in flow.expect.get(table, ()) if not check.in_order]
    schema = view.schema if checks else pa.schema([])
    try:
        for check in checks:
            _see(table, check, schema)
    except CheckDoesNotFitError:
        if size_of(view.chosen((), "")):
            raise
        # A table has no columns of its own before its first row.
        return [_unasked(check, table) for check in checks]
    counted = [check for check in checks if check.name in OF_INTERVALS]
    apart = intervals() if counted else {}
    found = {
        check.label: _one_by_one(f"{flow.name}.{table}-counted-{number}", table, apart, check, checkpoints)
        for number, check in enumerate(counted)
        if apart
    }
    groups: dict[tuple[str, bool, Given, str], list[Check]] = {}
    for check in checks:
        if check.label not in found:
            how = how_given(check, schema, decimals=view.knows_decimals)
            # What others' classes raise, and how they scan, is no matter of ours.
            alone = check.label if how is Given.ROW_SUM or is_other(check.name) else ""
            groups.setdefault((_apart(check, view, schema, how), _is_whole(check), how, alone), []).append(check)
    for number, ((where, _, how, _), some) in enumerate(groups.items()):
        name = f"{flow.name}.{table}-own" + (f"-{number}" if number else "")
        asked = _group(name, flow, table, view, where, how, some, checkpoints, keep, None if where else known)
        found |= {each.expectation: each for each in asked}
    return [found[check.label] for check in checks]


def _unasked(check: Check, table: str) -> Judgement:
    """Judge a check of a table that never had a row."""
    return _outcome(check, table, f"{check.label} ({table})", held=True)


def _outcome(  # noqa: PLR0913 - what came of a check
    check: Check,
    table: str,
    sentence: str,
    *,
    held: bool,
    looked_at: int = 0,
    unexpected: int = 0,
    rows: tuple[dict[str, Any], ...] = (),
) -> Judgement:
    """Say what came of a check."""
    return Judgement(
        expectation=check.label,
        table=table,
        severity=check.severity,
        sentence=sentence,
        remedy=remedy_of(check),
        held=held,
        looked_at=looked_at,
        unexpected=unexpected,
        rows=rows,
    )


def _sentence(check: Check, table: str, asked: Asked, more: str = "") -> str:
    said = asked.sentence
    for text in texts_of(check):
        # As the flow writes it, where it was asked in microseconds.
        said = said.replace(str(_ticks(instant_of(text))), text) if is_instant(text) else said
    said = _as_written(said, check.arguments)
    return f"{said} ({table}{f', where {check.where}' if check.where else ''}{more})"


def _as_written(said: str, arguments: Mapping[str, object]) -> str:
    """Spell whole numbers and sets as the flow does: what is asked in floats has a point, and sets have no commas.

    >>> _as_written("n must be >= 1.0 and in: 1.0 b c d.", {"min_value": 1, "value_set": [1, "b c", "d"]})
    'n must be >= 1 and in: 1, "b c", "d".'
    """
    values = [each for value in arguments.values() for each in (value if isinstance(value, list) else [value])]
    for whole in sorted({each for each in values if type(each) is int}, key=abs, reverse=True):
        said = re.sub(rf"(?<![\w.-]){whole}\.0(?![\w])", str(whole), said)
    for name, each in arguments.items():
        if isinstance(each, list) and any(isinstance(part, str) for part in each):
            quoted = "value" in name
            told = [json.dumps(part, ensure_ascii=False) if quoted else str(part) for part in each]
            said = _listed(said, [str(part) for part in each], ", ".join(told))
    return said


def _listed(said: str, parts: Sequence[str], told: str) -> str:
    """Put what a flow writes in the place of its parts, between which stand blanks; empty ones do not show there.

    >>> _listed("s in: b é.", ["b", "", "é"], 'b, "", é'), _listed("s not in:", [""], '""')
    ('s in: b, "", é.', 's not in: ""')

    A part may be like a word of the sentence.

    >>> _listed("value must be in: s be.", ["s", "be"], '"s", "be"'), _listed("be must be in: be", ["be"], '"be"')
    ('value must be in: "s", "be".', 'be must be in: "be"')
    """
    shown = r"\s+".join(re.escape(part) for part in parts if part.strip())
    if not shown:
        return re.sub(r":\s*(\.?)$", lambda end: f": {told}{end[1]}", said)
    behind = rf"(:\s*)(?:{shown})(?!\w)"
    if re.search(behind, said):
        return re.sub(behind, lambda begin: f"{begin[1]}{told}", said, count=1)
    return re.sub(rf"(?<!\w)(?:{shown})(?!\w)", lambda _: told, said, count=1)


def _ticks(moment: dt.datetime) -> int:
    ticks: int = pa.scalar(moment, pa.timestamp("us", "UTC")).value
    return ticks


def _is_whole(check: Check) -> bool:
    """Say whether a check is about which columns a table has."""
    of_all = is_other(check.name) and not check.columns
    return of_all or check.name.startswith("expect_table_column") or check.name == "expect_column_to_exist"


def _apart(check: Check, view: View, schema: pa.Schema, how: Given) -> str:
    """Give the rows that a check needs a frame of its own for; empty where it is asked with all others.

    Of several columns Great Expectations count the rows wrongly that have values in all, where some are chosen; and
    what is chosen by has to be as it is, not as it is given. Others' classes need not know of chosen rows.
    """
    if is_other(check.name):
        return check.where
    shared = offers()[check.name].rows and "column" in check.arguments and view.can_choose(check.where)
    by = parse_expression(check.where).columns if check.where else ()
    as_it_is = how not in {Given.TEXT, Given.FINITE} and not any(
        pa.types.is_decimal(schema.field(name).type) for name in by
    )
    return "" if shared and as_it_is else check.where


def _one_by_one(
    name: str, table: str, intervals: Mapping[str, View], check: Check, checkpoints: Checkpoints
) -> Judgement:
    """Judge a check of each of several intervals; Data Docs have those that break it, or the last."""
    from expectations.suites import AskedCheck, own_suite

    def asked(start: str, by: Checkpoints) -> Asked:
        suite = own_suite(f"{name} {start}", table, [AskedCheck(check, check.arguments)])
        return by.ask(suite, intervals[start].chosen((), check.where), [])[check.label]

    unseen = Checkpoints("", None)
    every = {start: asked(start, unseen) for start in intervals}
    broken = [start for start, each in every.items() if not each.held][:SHOWN]
    (*_, last) = [asked(start, checkpoints) for start in broken or list(every)[-1:]]
    return _outcome(
        check,
        table,
        _sentence(check, table, last, IN_EACH),
        held=not broken,
        looked_at=sum(each.looked_at for each in every.values()),
        rows=tuple({"interval": start, "observed_value": every[start].observed} for start in broken),
    )


def _group(  # noqa: PLR0913 - which checks of which rows, asked by whom
    name: str,
    flow: Flow,
    table: str,
    view: View,
    where: str,
    how: Given,
    checks: Sequence[Check],
    checkpoints: Checkpoints,
    keep: Keep | None,
    known: int | None,
) -> Iterator[Judgement]:
    """Judge checks that are about the same rows, in one pass."""
    from expectations.suites import own_suite

    key = flow.key_of(table)
    columns = None if _is_whole(checks[0]) else tuple(dict.fromkeys(c for check in checks for c in _read(check, where)))
    frame, schema = view.chosen(columns, where, key, how), view.schema
    every = [_asked(check, schema, where, how) for check in checks]
    suite = own_suite(name, table, every)
    asked = checkpoints.ask(suite, frame, told_by(key), known)
    for check in checks:
        found = asked[check.label]
        if found.rows and keep is not None:
            keep(table, check.label, all_of(view, key, found.rows))
        yield _judged(check, table, found, view, key)


def _judged(check: Check, table: str, asked: Asked, view: View, key: Sequence[str]) -> Judgement:
    nothing = not asked.looked_at and bool(check.columns)
    held = asked.held or nothing
    rows = shown(view, key, asked.rows) if asked.rows else ()
    if not held and not rows:
        rows = ({"observed_value": asked.observed},)
    return _outcome(
        check,
        table,
        _sentence(check, table, asked),
        held=held,
        looked_at=asked.looked_at,
        unexpected=0 if nothing else asked.unexpected,
        rows=() if held else rows,
    )


def _see(table: str, check: Check, schema: pa.Schema) -> None:
    """See that the columns of a check are there, and of a type that it can take."""
    strange = strange_column(check, schema.names)
    if strange is not None:
        expected = expected_column(strange, schema.names)
        raise CheckDoesNotFitError(table, check.name, f"the column `{strange}`", expected)
    kinds = {column: kind_of(str(schema.field(column).type)) for column in check.columns}
    misfit = misfit_of(check, offer_of(check.name), kinds)
    if misfit:
        came, expected = misfit
        raise CheckDoesNotFitError(table, check.name, came.removesuffix(","), expected)


def _read(check: Check, where: str) -> tuple[str, ...]:
    """Name the columns that a check is about, and those of its own `where`."""
    return check.columns if check.where == where else (*check.columns, *parse_expression(check.where).columns)


def _asked(check: Check, schema: pa.Schema, where: str, how: Given) -> AskedCheck:
    """Give a check with its arguments as its columns have values: instants for times, or their text."""
    from expectations.suites import AskedCheck

    own = "" if check.where == where else check.where
    ignored = ignored_if(check.name)
    arguments = dict(check.arguments) if ignored is None else {**check.arguments, IGNORED: ignored}
    kinds = [schema.field(column).type for column in check.columns if column in schema.names]
    of_times = next((kind for kind in kinds if _is_time(kind)), None)
    kind = of_times or next(iter(kinds), pa.null())
    for name, each in offer_of(check.name).arguments.items():
        if each.takes == "value" and name in arguments:
            arguments[name] = _as_valued(arguments[name], kind, how)
        elif each.takes == "values" and name in arguments:
            values = [_as_valued(value, kind, how) for value in arguments[name]]
            # Spark counts how many are there: one that is written twice would be missing.
            arguments[name] = list(dict.fromkeys(_possible(values, kind) if offers()[check.name].rows else values))
        elif each.takes == "pairs" and name in arguments:
            both = [schema.field(arguments[side]).type for side in ("column_A", "column_B")]
            arguments[name] = [
                [_as_valued(*one, how) for one in zip(pair, both, strict=True)] for pair in arguments[name]
            ]
    return AskedCheck(check, arguments, own)


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _possible(values: list[Any], kind: pa.DataType) -> list[Any]:
    """Leave out what no whole number equals: beside it the other values would be taken for floats."""
    return [value for value in values if not isinstance(value, float)] if pa.types.is_integer(kind) else values


def _as_valued(value: Any, kind: pa.DataType, how: Given) -> Any:  # noqa: ANN401 - JSON
    """Give what a flow writes as the values of a column are given."""
    if not isinstance(value, str) or not _is_time(kind):
        return near(value, kind, how)
    moment: Any = instant_of(value)
    if how is Given.TICKS:
        return _ticks(moment)
    if pa.types.is_date(kind) and how is not Given.INSTANTS:
        moment = moment.date()
    elif not getattr(kind, "tz", "UTC"):
        moment = moment.replace(tzinfo=None)
    return pa.scalar(moment, kind).cast(pa.string()).as_py() if how is Given.TEXT else moment
