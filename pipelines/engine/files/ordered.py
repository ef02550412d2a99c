"""Files of rows, read back in stream order a window of arrivals at a time.

Each file holds rows in order. Several files of one stream (a file a bucket) are merged by (arrival, key, place), or by
(arrival, place) where the stream is numbered stream-wide; nothing is inferred from the order of files. A window holds
all rows of an arrival, or none: whoever sees keys meet in them puts them by time (`by_time`).
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import ticks
from pipelines.engine.columnar.keys import canonical_keys
from pipelines.engine.files.background import BEHIND, ahead
from pipelines.engine.files.packed import opened

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

    from pipelines.operators.rows import Longs

BLOCK = 262_144


def order_of(arrival: Longs, rest: Callable[[Longs], tuple[Longs, ...]] = lambda _: ()) -> Longs | None:
    """Give the order of rows by arrival and then `rest`, or None where they stand in it already.

    Safe for ties: rows equal in all columns keep their order.

    Args:
        arrival: one instant a row.
        rest: gives, for row numbers, further columns of those rows, the most important first; asked of ties alone.

    Returns:
        Row numbers in order.
    """
    in_order = bool((arrival[1:] >= arrival[:-1]).all())
    order = None if in_order else np.argsort(arrival, kind="stable")
    laid = arrival if order is None else arrival[order]
    same = laid[1:] == laid[:-1]
    if not same.any():
        return order
    order = np.arange(len(arrival)) if order is None else order
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    rows = order[tied]
    within = np.lexsort([*reversed(rest(rows)), arrival[rows]])
    if in_order and (np.diff(within) == 1).all():
        return None
    order[tied] = rows[within]
    return order


def key_ranks(table: pa.Table, key: Sequence[str]) -> Longs:
    """Number the keys of a table's rows so that numbers compare as keys do, by value."""
    if not key:
        return np.zeros(table.num_rows, dtype=np.int64)
    encoded = canonical_keys([table[name].combine_chunks() for name in key]).dictionary_encode()
    ranks = np.empty(len(encoded.dictionary), dtype=np.int64)
    ranks[np.asarray(pc.array_sort_indices(encoded.dictionary))] = np.arange(len(ranks))
    found: Longs = ranks[np.asarray(encoded.indices)]
    return found


def in_order(table: pa.Table, key: Sequence[str]) -> pa.Table:
    """Give the rows of a stream in its order: (arrival, key, place)."""
    arrival = ticks(table["arrival"])
    if len(arrival) > 1 and (np.diff(arrival) > 0).all():
        return table
    order = order_of(arrival, lambda tied: _places(table.take(pa.array(tied)), key))
    return table if order is None else table.take(pa.array(order))


def _places(table: pa.Table, key: Sequence[str]) -> tuple[Longs, Longs]:
    return key_ranks(table, key), ticks(table["place"])


def row_groups(path: str, groups: Sequence[int]) -> Iterator[pa.Table]:
    """Open the named row groups of a Parquet file, in blocks."""
    for batch in batches(path, groups):
        yield pa.Table.from_batches([batch])


def batches(path: str, groups: Sequence[int], size: int | None = None) -> Generator[pa.RecordBatch]:
    """Open the named row groups of a Parquet file, in batches; of many, the next ones are read meanwhile.

    Args:
        path: of the file.
        groups: numbers of row groups, in the order wanted.
        size: rows of a batch at most; a block unless given.
    """
    size = size or BLOCK
    with opened(path) as file:
        read: Generator[pa.RecordBatch] = file.iter_batches(batch_size=size, row_groups=list(groups))
        many = sum(file.metadata.row_group(group).num_rows for group in groups) > BEHIND * size
        with closing(ahead(read) if many else read) as rows:
            yield from rows


class Reader:
    """One file of a stream, in order, with the rows that were read ahead."""

    def __init__(self, blocks: Iterable[pa.Table]) -> None:
        self._blocks = iter(blocks)
        self._ahead: pa.Table | None = None
        self.ended = False

    def last_arrival(self) -> int | None:
        """Give the arrival of the last row read ahead, None where the file has ended."""
        return None if self.ended or self._ahead is None else int(ticks(self._ahead["arrival"][-1:])[0])

    def fill(self) -> None:
        """Read one block further ahead."""
        block = next((block for block in self._blocks if block.num_rows), None)
        if block is None:
            self.ended = True
        else:
            self._ahead = block if self._ahead is None else pa.concat_tables([self._ahead, block])

    def take(self, before: int) -> pa.Table | None:
        """Take the rows with an arrival below `before`."""
        if self._ahead is None:
            return None
        count = self.count(before)
        taken, rest = self._ahead.slice(0, count), self._ahead.slice(count)
        self._ahead = rest if rest.num_rows else None
        return taken if count else None

    def count(self, before: int) -> int:
        """Count the rows read ahead with an arrival below `before`."""
        return 0 if self._ahead is None else int(np.searchsorted(ticks(self._ahead["arrival"]), before))

    @property
    def ahead(self) -> pa.Table | None:
        """Give the rows that are read ahead."""
        return self._ahead

    @property
    def waiting(self) -> int:
        """Count the rows that are read ahead."""
        return 0 if self._ahead is None else int(self._ahead.num_rows)


class OrderedInput:
    """One stream or source as a task reads it: windows of arrivals over its files, each in order.

    Args:
        readers: blocks of each file, in order inside a file.
        schema: of the rows, for windows that hold none.
        key: the columns by which the stream is numbered; () for stream-wide.
    """

    def __init__(self, readers: Sequence[Iterable[pa.Table]], schema: pa.Schema, key: Sequence[str]) -> None:
        self._readers = [Reader(blocks) for blocks in readers]
        self._schema = schema
        self._key = key

    @property
    def waiting(self) -> int:
        """Count the rows that are read ahead."""
        return sum(reader.waiting for reader in self._readers)

    def distinct(self, key: Sequence[str]) -> int:
        """Count the keys among the rows read ahead; without key columns all rows have one."""
        ahead = [table for reader in self._readers if (table := reader.ahead) is not None]
        if not ahead or not set(key) <= set(ahead[0].column_names):
            return 0
        if not key:
            return 1
        return int(pa.concat_tables(ahead).select(list(key)).group_by(list(key)).aggregate([]).num_rows)

    def count(self, before: int) -> int:
        """Count the rows read ahead with an arrival below `before`."""
        return sum(reader.count(before) for reader in self._readers)

    def bound(self, after: int) -> int | None:
        """Give an arrival above `after` below which all rows are read ahead; None where all files have ended.

        A block's worth is read ahead at least, so that small files are not a window each, nor what is behind the last.
        """
        bounds = []
        for reader in self._readers:
            while not reader.ended and (reader.waiting < BLOCK or (reader.last_arrival() or after) <= after):
                reader.fill()
            last = reader.last_arrival()
            if last is not None:
                bounds.append(last)
        return min(bounds, default=None)

    def take(self, before: int) -> pa.Table:
        """Take all rows with an arrival below `before`, in order."""
        parts = [part for reader in self._readers if (part := reader.take(before)) is not None]
        if not parts:
            return self._schema.empty_table()
        table = pa.concat_tables(parts)
        return table if len(parts) == 1 else in_order(table, self._key)


def windows(inputs: Sequence[OrderedInput], start: int, close: int) -> Iterator[int]:
    """Cut a span into readings, so that no window holds more than a few blocks; the last one is `close`.

    The spacing of readings changes nothing, so every cut is as good as another.
    """
    reading = start
    while True:
        bounds = [bound for source in inputs if (bound := source.bound(reading)) is not None]
        reading = min(bounds, default=close)
        if reading >= close or not bounds:
            yield close
            return
        yield reading
