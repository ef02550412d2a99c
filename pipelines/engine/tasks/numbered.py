"""Rows of a carry that an operator numbers itself, and the values, null among them, that it tells them apart by."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import canonical_json
from pipelines.engine.columnar.content import ContentHash, content_hash
from pipelines.engine.columnar.keys import KeyIndex, canonical_keys
from pipelines.engine.tasks import carry as carrying
from pipelines.engine.tasks.carry import CarryChange, stamped

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from pipelines.operators.rows import Longs


class NumberedValues:
    """Dense ids of the values of some columns, in order of first sight; a null is a value like any other.

    Numbers and text are the same where they are equal, floats where they have the same bits (all NaN are one), lists
    and structs where they are spelled the same.

    Args:
        fields: the columns; at least one.
    """

    def __init__(self, fields: Sequence[pa.Field]) -> None:
        self.schema = pa.schema(fields)
        self._index = KeyIndex()
        self._rows = [self.schema.empty_table()]

    def __len__(self) -> int:
        """Count the values known so far."""
        return len(self._index)

    @property
    def rows(self) -> pa.Table:
        """Give the values, a row an id."""
        if len(self._rows) != 1:
            self._rows = [pa.concat_tables(self._rows).combine_chunks()]
        return self._rows[0]

    def ids(self, table: pa.Table) -> Longs:
        """Give the id of each row's values, new ones the next ids."""
        known, chosen = len(self), table.select(self.schema.names)
        columns = [_comparable(column) for column in chosen.columns]
        ids = self._index.ids(canonical_keys([*(pc.is_null(column) for column in columns), *map(_filled, columns)]))
        if len(self) > known:
            fresh, first = np.unique(ids, return_index=True)
            self._rows.append(chosen.take(pa.array(first[fresh >= known])).cast(self.schema))
        return ids


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Give a column whose values can be told apart by their bytes."""
    if pa.types.is_floating(column.type):
        values = np.asarray(pc.fill_null(column.cast(pa.float64()), 0.0))
        bits = np.where(np.isnan(values), np.nan, values).view(np.int64)
        return pa.chunked_array([pa.array(bits, mask=np.asarray(pc.is_null(column)))])
    if pa.types.is_nested(column.type):
        texts = [None if value is None else canonical_json(value) for value in column.to_pylist()]
        return pa.chunked_array([pa.array(texts, pa.string())])
    return column


def _filled(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Give a column with a value in place of null."""
    if not column.null_count:
        return column
    return pc.fill_null(column, _plain(column.type))


def _plain(kind: pa.DataType) -> pa.Scalar:
    """Give a value of a type; any will do, for a column beside it says which rows are null."""
    if pa.types.is_boolean(kind):
        return pa.scalar(False)  # noqa: FBT003 - a value
    if pa.types.is_binary(kind) or pa.types.is_string(kind):
        return pa.scalar(b"" if pa.types.is_binary(kind) else "", kind)
    if pa.types.is_decimal(kind):
        return pa.scalar(Decimal(0), kind)
    return pa.scalar(0, pa.int32() if pa.types.is_date32(kind) else pa.int64()).cast(kind)


class KnownNumbers(NamedTuple):
    """Some rows of a carry: the scope and the age that tell each apart, and the bits of all else."""

    scope: Longs
    age: Longs
    bits: Longs


def changes(
    now: tuple[pa.Table, KnownNumbers], before: tuple[pa.Table, KnownNumbers], commit: int
) -> tuple[list[pa.Table], ContentHash, ContentHash]:
    """Tell two states of a carry's rows apart.

    Returns:
        The rows that are new or other, and those that are gone, as the carry has them; the content hash of what came,
        and of what went.
    """
    (rows, known), (rows_before, known_before) = now, before
    kept, same = _kept(known_before, known)
    _, unchanged = _kept(known, known_before)
    tables = [
        stamped(rows.filter(pa.array(~unchanged)), commit, CarryChange.SET),
        stamped(rows_before.filter(pa.array(~kept)), commit, CarryChange.GONE),
    ]
    went = stamped(rows_before.filter(pa.array(~same)), commit, CarryChange.SET)
    came, gone = (content_hash(each, leave_out=carrying.NOT_HASHED) for each in (tables[0], went))
    return tables, came, gone


def _kept(rows: KnownNumbers, others: KnownNumbers) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Say which rows are among others, by scope and age, and which of these are there with the same bits."""
    ages = np.unique(np.concatenate([rows.age, others.age]))
    mine, theirs = (each.scope * len(ages) + np.searchsorted(ages, each.age) for each in (rows, others))
    if not len(theirs):
        none = np.zeros(len(mine), dtype=np.bool_)
        return none, none
    order = np.argsort(theirs)
    at = order[np.minimum(np.searchsorted(theirs[order], mine), len(theirs) - 1)]
    there = theirs[at] == mine
    return there, there & (rows.bits == others.bits[at]).all(axis=1)
