"""How Great Expectations are given the values of a check: both judges must say the same of what floats do not hold.

In this process they know floats, on Spark decimals and floats. The nearest float of a decimal will do where it is held
against what a flow writes, which is a float itself. Two decimals may have the same one, though, and a sum of many is
another; so in this process ranks stand for values that are held against each other, and what is to be added up comes
added, once exactly, with nothing beside it.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.flows.checks import ALIKE, EXACT, LARGEST, writes_an_instant, writes_before
from pipelines.flows.offered import is_other

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.flows.check import Check

DIGITS = 76
"""Of the widest decimal: it holds all whole numbers and decimals beside each other."""
SAFE = 15
"""Digits of which each decimal is what its nearest float is read as."""
SUMMABLE, SUMMABLE_SCALE = 28, 6
"""Digits of decimals that Spark can add up by the billion, and behind the point, which it keeps beside integers."""
GREGORIAN = 1583
"""The first whole year of the calendar of today."""
FARTHEST = 1e140
"""No value is given as farther than this from 0 where all are squared."""
ADDING = Context(prec=400)


class Given(Enum):
    """How the values of a check are given."""

    NEAREST = "decimals as their nearest floats"
    RANKED = "each as its rank among all of its check"
    SUM = "their sum, and nothing beside it"
    MEAN = "their mean, and nothing beside it"
    ROW_SUM = "the sum of each row in the first column, nothing in the others"
    FLOATS = "as their nearest floats, whole numbers too: one of the columns is of floats, and Spark does it so"
    RANKED_FLOATS = "each as its rank among their nearest floats: what is no number is above all, as for Spark"
    FINITE = "as their nearest floats, and nothing in place of what is no finite number: it would be all of a spread"
    INSTANTS = "days as the instants at which they begin"
    TICKS = "times as microseconds since 1970, on Spark"
    TEXT = "instants and decimals as text, as what the flow writes is"
    DECIMALS = "as they are, on Spark"


OF_SPREAD = ("expect_column_value_z_scores_to_be_less_than", "expect_column_values_to_not_be_outliers")
"""Expectations that hold each value against the spread of all."""
HOW = {
    "expect_column_values_to_be_unique": Given.RANKED,
    "expect_compound_columns_to_be_unique": Given.RANKED,
    "expect_column_unique_value_count_to_be_between": Given.RANKED,
    "expect_column_proportion_of_unique_values_to_be_between": Given.RANKED,
    **dict.fromkeys(ALIKE, Given.RANKED),
    "expect_multicolumn_sum_to_equal": Given.ROW_SUM,
    "expect_column_sum_to_be_between": Given.SUM,
    "expect_column_mean_to_be_between": Given.MEAN,
    **dict.fromkeys(OF_SPREAD, Given.FINITE),
}
"""By expectation; all others hold values against what the flow writes."""
TOGETHER = {*ALIKE, "expect_multicolumn_sum_to_equal"}
"""Expectations that hold a column against another, or add it to another."""
AS_TEXT = {
    "expect_column_pair_values_to_be_in_set",
    "expect_column_most_common_value_to_be_in_set",
    "expect_column_distinct_values_to_be_in_set",
    "expect_column_distinct_values_to_contain_set",
    "expect_column_distinct_values_to_equal_set",
}
"""Expectations that hold instants against the texts of instants."""


def how_given(check: Check, schema: pa.Schema, *, decimals: bool) -> Given:
    """Say how the values of a check are given.

    Args:
        check: it.
        schema: of the table.
        decimals: whether the judge knows decimals.
    """
    if is_other(check.name):
        return Given.NEAREST
    kinds = [schema.field(name).type for name in check.columns if name in schema.names]
    if any(map(pa.types.is_temporal, kinds)):
        # Spark's client tells an instant before that by the old calendar, days away.
        is_early = decimals and check.name not in AS_TEXT and writes_before(check, GREGORIAN)
        return Given.TICKS if is_early else _of_times(check, kinds)
    has_decimals = any(map(pa.types.is_decimal, kinds))
    large = any(isinstance(value, int) and abs(value) > EXACT for value in check.arguments.get("value_set", ()))
    if large and has_decimals:
        return Given.TEXT
    how = HOW.get(check.name, Given.NEAREST)
    return how if how in {Given.NEAREST, Given.FINITE} else _of_numbers(check, kinds, how, decimals=decimals)


def _of_numbers(check: Check, kinds: Sequence[pa.DataType], how: Given, *, decimals: bool) -> Given:
    if check.name in TOGETHER and any(map(pa.types.is_floating, kinds)):
        return Given.FLOATS if decimals or check.name not in ALIKE else Given.RANKED_FLOATS
    # A sum of whole numbers may be none of 64 bits; Spark knows that one.
    added = not decimals and how is not Given.RANKED and any(map(pa.types.is_integer, kinds))
    if not added and not any(map(pa.types.is_decimal, kinds)):
        return Given.NEAREST
    if decimals and how is not Given.RANKED and any(map(_is_wide, kinds)):
        return Given.FLOATS
    return Given.DECIMALS if decimals else how


def _is_wide(kind: pa.DataType) -> bool:
    """Say whether Spark may have no decimal for a sum of some, or rounds it."""
    return bool(pa.types.is_decimal(kind) and (kind.precision > SUMMABLE or kind.scale > SUMMABLE_SCALE))


def _of_times(check: Check, kinds: Sequence[pa.DataType]) -> Given:
    if check.name in AS_TEXT:
        return Given.TEXT
    unlike = check.name in ALIKE and len({*kinds}) > 1
    between = any(map(pa.types.is_date, kinds)) and writes_an_instant(check)
    return Given.INSTANTS if unlike or between else Given.NEAREST


def give(rows: pa.Table, columns: Sequence[str], how: Given) -> pa.Table:
    """Give the rows of a check in this process.

    Args:
        rows: with all columns of it.
        columns: that it is about.
        how: as `how_given` says.
    """
    mine = [name for name in columns if name in rows.column_names and _is_exact(rows.schema.field(name).type)]
    if how is Given.RANKED:
        rows = _ranked(rows, mine)
    elif how is Given.ROW_SUM:
        rows = _added(rows, mine)
    elif how in {Given.SUM, Given.MEAN}:
        for name in mine:
            rows = _with(rows, name, _total(rows[name], mean=how is Given.MEAN))
    for name in dict.fromkeys(columns):
        if name in rows.column_names:
            rows = _with(rows, name, _given(rows[name], how))
    return _ranks(rows, columns) if how is Given.RANKED_FLOATS else rows


def _given(values: pa.ChunkedArray, how: Given) -> pa.ChunkedArray:
    kind = values.type
    if pa.types.is_temporal(kind):
        casts = {Given.TEXT: pa.string(), Given.INSTANTS: pa.timestamp("us", getattr(kind, "tz", None) or "UTC")}
        return values.cast(casts.get(how, kind))
    if pa.types.is_decimal(kind) and how is not Given.FINITE:
        return _texts(values) if how is Given.TEXT else _floats(values)
    if pa.types.is_decimal(kind):
        values = values.cast(pa.string()).cast(pa.float64())
    if pa.types.is_integer(kind) and how in {Given.FLOATS, Given.RANKED_FLOATS, Given.FINITE}:
        values = values.cast(pa.float64(), safe=False)
    if not pa.types.is_floating(values.type):
        return values
    # As Spark holds them against what a flow writes: wide, and 0 without a sign.
    wide = pc.add(values.cast(pa.float64()), 0.0)
    return _finite(wide) if how is Given.FINITE else wide


def _finite(values: pa.ChunkedArray) -> pa.ChunkedArray:
    near = pc.max_element_wise(pc.min_element_wise(values, FARTHEST), -FARTHEST)
    finite = pc.if_else(pc.is_finite(values), near, None)
    found = pc.min_max(finite).as_py()
    # Of equal values the mean may be another float, and all would be far from it.
    return pc.multiply(finite, 0.0) if found["min"] == found["max"] else finite


def _ranked(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    for name in columns:
        rows = _with(rows, name, _wide(rows[name], _scale(rows, columns)))
    return _ranks(rows, columns)


def _ranks(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    chunks = [chunk for name in columns for chunk in rows[name].chunks]
    if not chunks:
        return rows
    values = pc.unique(pa.chunked_array(chunks)).drop_null()
    values = values.take(pc.sort_indices(values))
    for name in columns:
        rows = _with(rows, name, pc.index_in(rows[name], values).cast(pa.int64()))
    return rows


def _added(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    first, *others = columns
    wide = [_wide(rows[name], _scale(rows, columns)).to_pylist() for name in columns]
    sums = [None if None in row else _plus(row) for row in zip(*wide, strict=True)]
    rows = _with(rows, first, pa.array([None if each is None else float(each) for each in sums], pa.float64()))
    for name in others:
        rows = _with(rows, name, pc.if_else(pc.is_valid(rows[name]), pa.scalar(0.0), pa.scalar(None, pa.float64())))
    return rows


def _total(values: pa.ChunkedArray, *, mean: bool) -> pa.Array:
    known = values.drop_null()
    alone: list[float | None] = [None] * len(values)
    if len(known):
        whole = pa.types.is_integer(known.type)
        total = pc.sum(known.cast(pa.decimal128(38, 0))).as_py() if whole else _plus(known.to_pylist())
        alone[0] = float(ADDING.divide(total, Decimal(len(known))) if mean else total)
    return pa.array(alone, pa.float64())


def _plus(values: Sequence[Decimal | int]) -> Decimal:
    total = Decimal(0)
    for each in values:
        total = ADDING.add(total, Decimal(each))
    return total


def _scale(rows: pa.Table, columns: Sequence[str]) -> int:
    kinds = (rows.schema.field(name).type for name in columns)
    return max(kind.scale if pa.types.is_decimal(kind) else 0 for kind in kinds)


def _wide(values: pa.ChunkedArray, scale: int) -> pa.ChunkedArray:
    return values.cast(pa.decimal256(DIGITS, scale))


def near(value: Any, kind: pa.DataType, how: Given) -> Any:  # noqa: ANN401 - what a flow writes
    """Give what a flow writes as the values of a column are given.

    Args:
        value: a number, or whatever it writes.
        kind: of the column.
        how: its values are given.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if pa.types.is_integer(kind):
        return int(value) if abs(value) < LARGEST and value == int(value) else value
    if pa.types.is_decimal(kind):
        exact = Decimal(repr(value))
        if how is not Given.TEXT:
            return _beside(float(value), exact)
        # With as many digits behind the point as the column has, unless it has too few.
        scaled = ADDING.quantize(exact, Decimal(1).scaleb(-kind.scale))
        return f"{scaled if scaled == exact else exact:f}"
    return float(value) if pa.types.is_floating(kind) else value


def _floats(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Give the nearest floats, and of what is not what it is read as one beside it: it is more, or less, than that."""
    floats = values.cast(pa.string()).cast(pa.float64())
    if values.type.precision <= SAFE:
        return floats
    near = [
        each if exact is None else _beside(each, exact)
        for each, exact in zip(floats.to_pylist(), values.to_pylist(), strict=True)
    ]
    return pa.chunked_array([pa.array(near, pa.float64())])


def _texts(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Spell decimals as Spark does; Arrow spells small ones with an exponent."""
    texts = [None if value is None else f"{value:f}" for value in values.to_pylist()]
    return pa.chunked_array([pa.array(texts, pa.string())])


def _beside(near: float, exact: Decimal) -> float:
    said = Decimal(repr(near))
    return near if said == exact else math.nextafter(near, math.inf if exact > said else -math.inf)


def _is_exact(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(kind) or pa.types.is_integer(kind))


def _with(rows: pa.Table, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    return rows.set_column(rows.column_names.index(name), name, values)
