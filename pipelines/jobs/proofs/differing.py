"""In which rows two tables of one stream differ: missing, extra, and changed in which columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE, THERE = "__pulseline_here", "__pulseline_there"
NAMED = 4
"""Columns that are named in a line."""


@dataclass(frozen=True, kw_only=True)
class Spread:
    """How two tables differ, by rows that have the same place in the order."""

    missing: int
    """Rows of the first that the second has not."""
    extra: int
    """Rows of the second that the first has not."""
    changed: int
    """Rows that both have, with other values."""
    columns: tuple[str, ...]
    """In which these differ."""

    def __str__(self) -> str:
        """Count what is missing, extra and changed, with the columns that differ; of equal tables say that they are."""
        parts = [
            f"{self.missing:,} missing" if self.missing else "",
            f"{self.extra:,} extra" if self.extra else "",
            f"{self.changed:,} with another {some(self.columns)}" if self.changed else "",
        ]
        return ", ".join(part for part in parts if part) or "the same rows"


def some(names: Sequence[str]) -> str:
    """Name the first few, and say how many others there are.

    >>> some(["a", "b"]), some(["a", "b", "c", "d", "e", "f"])
    ('a, b', 'a, b, c, d and 2 more')
    """
    rest = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {rest} more" if rest > 0 else "")


def spread(expected: pa.Table, came: pa.Table, order: Sequence[str]) -> Spread:
    """Hold two tables against each other.

    Args:
        expected: rows of the first.
        came: rows of the second.
        order: the columns by which a row is known again; no two rows of one table are equal in all of them.
    """
    both = _placed(expected, order, HERE).join(_placed(came, order, THERE), list(order), join_type="full outer")
    pairs = both.filter(pc.and_(pc.is_valid(both[HERE]), pc.is_valid(both[THERE])))
    left, right = expected.take(pairs[HERE]), came.take(pairs[THERE])
    shared = [name for name in expected.column_names if name in came.column_names]
    lone = {*expected.column_names} ^ {*came.column_names}
    apart = {name: _unlike(left[name], right[name]) for name in shared if name not in order}
    changed = pa.array([False] * pairs.num_rows, pa.bool_())
    for found in apart.values():
        changed = pc.or_(changed, found)
    columns = [name for name, found in apart.items() if pc.any(found).as_py()]
    return Spread(
        missing=both[THERE].null_count,
        extra=both[HERE].null_count,
        changed=pairs.num_rows if lone else pc.sum(changed).as_py() or 0,
        columns=(*columns, *sorted(lone)),
    )


def _placed(rows: pa.Table, order: Sequence[str], name: str) -> pa.Table:
    numbered: pa.Table = rows.select(list(order))
    return numbered.append_column(name, pa.array(range(rows.num_rows), pa.int64()))


def _unlike(left: pa.ChunkedArray, right: pa.ChunkedArray) -> pa.Array:
    """Say for each pair of values whether they differ; null is null, and not a number is not a number."""
    if left.type != right.type or pa.types.is_nested(left.type):
        pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
        return pa.array([repr(one) != repr(other) for one, other in pairs], pa.bool_())
    if pa.types.is_floating(left.type):
        as_text = [pa.array([repr(value) for value in side.to_pylist()], pa.string()) for side in (left, right)]
        return pc.not_equal(*as_text)
    known = pc.fill_null(pc.not_equal(left, right), fill_value=False)
    found = pc.or_(known, pc.xor(pc.is_null(left), pc.is_null(right)))
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
