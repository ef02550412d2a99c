"""Decimals as Great Expectations can be asked of them in this process, where they know floats.

The nearest float of a decimal will do where it is held against what a flow writes. Two decimals may have the same one,
though, and a sum of many is another; so where values are held against each other ranks stand for them, and what is to
be added up comes added, once exactly, with nothing beside it. Spark knows decimals.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.flows.checks import EXACT

if TYPE_CHECKING:
    from collections.abc import Sequence

DIGITS = 76
"""Of the widest decimal: it holds all whole numbers and decimals beside each other."""
SAFE = 15
"""Digits of which each decimal is what its nearest float is read as."""
ADDING = Context(prec=100)


class Exactly(Enum):
    """How the decimals of a check are given."""

    NEAREST = "as their nearest floats"
    RANKED = "each as its rank among all of its check"
    ALONE = "each as its rank, in a check that holds no column against another"
    SUM = "their sum, and nothing beside it"
    MEAN = "their mean, and nothing beside it"
    ROW_SUM = "the sum of each row in the first column, nothing in the others"
    TEXT = "no decimals, but instants: as text, as what the flow writes is"


HOW = {
    "expect_column_values_to_be_unique": Exactly.ALONE,
    "expect_compound_columns_to_be_unique": Exactly.ALONE,
    "expect_column_unique_value_count_to_be_between": Exactly.ALONE,
    "expect_column_proportion_of_unique_values_to_be_between": Exactly.ALONE,
    "expect_select_column_values_to_be_unique_within_record": Exactly.RANKED,
    "expect_column_pair_values_to_be_equal": Exactly.RANKED,
    "expect_column_pair_values_a_to_be_greater_than_b": Exactly.RANKED,
    "expect_multicolumn_values_to_be_equal": Exactly.RANKED,
    "expect_multicolumn_sum_to_equal": Exactly.ROW_SUM,
    "expect_column_sum_to_be_between": Exactly.SUM,
    "expect_column_mean_to_be_between": Exactly.MEAN,
}
"""By expectation; all others hold values against what the flow writes."""


AS_TEXT = {"expect_column_pair_values_to_be_in_set", "expect_column_most_common_value_to_be_in_set"}
"""Expectations that hold instants against the texts of instants."""


def exactly(expectation: str, columns: Sequence[str], schema: pa.Schema, *, decimals: bool) -> Exactly:
    """Say how the values of a check are given.

    Args:
        expectation: its name.
        columns: that it is about.
        schema: of the table.
        decimals: whether decimals are given as they are.
    """
    kinds = [schema.field(name).type for name in columns if name in schema.names]
    if expectation in AS_TEXT and any(pa.types.is_temporal(kind) for kind in kinds):
        return Exactly.TEXT
    how = Exactly.NEAREST if decimals else HOW.get(expectation, Exactly.NEAREST)
    # A sum of whole numbers may be none of 64 bits.
    added = how in {Exactly.SUM, Exactly.MEAN, Exactly.ROW_SUM} and any(pa.types.is_integer(kind) for kind in kinds)
    if not added and not any(pa.types.is_decimal(kind) for kind in kinds):
        return Exactly.NEAREST
    if how in {Exactly.RANKED, Exactly.ROW_SUM} and not all(_is_exact(kind) for kind in kinds):
        return Exactly.NEAREST
    return how


def given(rows: pa.Table, columns: Sequence[str], how: Exactly) -> pa.Table:
    """Give the rows of a check with its decimals as they are asked.

    Args:
        rows: with all columns of it.
        columns: that it is about.
        how: as `exactly` says.
    """
    mine = [name for name in columns if name in rows.column_names and _is_exact(rows.schema.field(name).type)]
    if how in {Exactly.RANKED, Exactly.ALONE}:
        rows = _ranked(rows, mine)
    elif how is Exactly.ROW_SUM:
        rows = _added(rows, mine)
    elif how in {Exactly.SUM, Exactly.MEAN}:
        for name in mine:
            rows = _with(rows, name, _total(rows[name], mean=how is Exactly.MEAN))
    for field in rows.schema:
        if how is Exactly.TEXT and field.name in columns and pa.types.is_temporal(field.type):
            rows = _with(rows, field.name, rows[field.name].cast(pa.string()))
        if pa.types.is_decimal(field.type):
            rows = _with(rows, field.name, _floats(rows[field.name]))
        elif pa.types.is_floating(field.type):
            # As Spark holds them against what a flow writes: wide, and 0 without a sign.
            rows = _with(rows, field.name, pc.add(rows[field.name].cast(pa.float64()), 0.0))
    return rows


def _ranked(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    wide = {name: _wide(rows[name], _scale(rows, columns)) for name in columns}
    chunks = [chunk for each in wide.values() for chunk in each.chunks]
    if not chunks:
        return rows
    values = pc.unique(pa.chunked_array(chunks)).drop_null()
    values = values.take(pc.sort_indices(values))
    for name, each in wide.items():
        rows = _with(rows, name, pc.index_in(each, values).cast(pa.int64()))
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


def near(value: Any, kind: pa.DataType, *, decimals: bool) -> Any:  # noqa: ANN401 - what a flow writes
    """Give a whole number that a flow writes as a column of a type is asked about it.

    Args:
        value: whatever it writes.
        kind: of the column.
        decimals: whether decimals are given as they are.
    """
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) <= EXACT:
        return value
    if pa.types.is_floating(kind):
        return float(value)
    return _beside(float(value), Decimal(value)) if pa.types.is_decimal(kind) and not decimals else value


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


def _beside(near: float, exact: Decimal) -> float:
    said = Decimal(repr(near))
    return near if said == exact else math.nextafter(near, math.inf if exact > said else -math.inf)


def _is_exact(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(kind) or pa.types.is_integer(kind))


def _with(rows: pa.Table, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    return rows.set_column(rows.column_names.index(name), name, values)
