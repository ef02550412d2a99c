"""Keys as bytes: one canonical spelling that sorts as the keys do, the bucket it names, and dense ids for scans.

Everything that compares keys compares these bytes, so the core, Spark's tasks and the carry agree without ever asking
what type a key column has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.byte_hash import hash_bytes, spread
from pipelines.errors import Exit, PulselineError

if TYPE_CHECKING:
    import numpy.typing as npt

    from pipelines.operators.rows import Longs

SIGN = np.uint64(1 << 63)
KEY_SEED = np.uint64(0x9E3779B97F4A7C15)
CHEAP_DISTINCT = 16_384


@dataclass(eq=False)
class KeyTypeError(PulselineError, TypeError):
    """A column whose type has no order to key by: says which, and what a key may be.

    Keep the column's name (or its place) and its type as text.
    """

    column: str
    came: str
    code = Exit.WRONG_USE
    says = (
        "key {column} is {came}; a key must be bool, an integer, decimal, string, binary, date or timestamp: cast it "
        "in the feed or key by another column"
    )


@dataclass(eq=False)
class NullKeyError(PulselineError, ValueError):
    """A null key where rows without key should have been set aside before.

    Keep how many of how many keys are null.
    """

    nulls: int
    rows: int
    says = "every row must have a key; {nulls} of {rows} are null: set them aside before keys are counted"


def canonical_keys(columns: list[pa.Array]) -> pa.Array:
    """Spell each row's key as bytes whose memcmp order is the order of the keys by value.

    It is safe to store and to compare across engines because the spelling is fixed per type: integers, booleans, dates
    and timestamps (in µs) are 8 bytes, most significant first, sign flipped; decimals 16; strings and binary are their
    bytes, in all but the last column with 00 escaped and 00 00 at the end. A row with a null in any column is null.

    >>> canonical_keys([pa.array([1], pa.int8())]).equals(canonical_keys([pa.array([1], pa.int64())]))
    True

    Args:
        columns: the key columns, left to right, of one length; at least one.

    Returns:
        One `binary` a row.

    Raises:
        KeyTypeError: a column is a float or of another type without a key order.
    """
    whole = [_whole(column) for column in columns]
    last = len(whole) - 1
    parts = [_part(column, place, last) for place, column in enumerate(whole)]
    return parts[0] if last == 0 else pc.binary_join_element_wise(*parts, b"")


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _part(column: pa.Array, place: int, last: int) -> pa.Array:
    kind = column.type
    if _is_bytes(kind):
        plain = column.cast(pa.binary())
        return plain if place == last else _closed(plain)
    if pa.types.is_decimal(kind):
        return _decimals(column)
    if _is_whole_number(kind):
        return _integers(column)
    raise KeyTypeError(f"column {place + 1}", str(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return bool(is_text or pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _is_whole_number(kind: pa.DataType) -> bool:
    is_moment = pa.types.is_timestamp(kind) or pa.types.is_date(kind)
    is_signed = pa.types.is_integer(kind) and kind != pa.uint64()
    return bool(is_moment or is_signed or pa.types.is_boolean(kind))


def check_key_type(name: str, kind: pa.DataType) -> None:
    """Refuse a key column by name when its type has no order to key by.

    Raises:
        KeyTypeError: the type is no bool, integer, decimal, string, binary, date or timestamp.
    """
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not (_is_bytes(value) or pa.types.is_decimal(value) or _is_whole_number(value)):
        raise KeyTypeError(f"`{name}`", str(kind))


def _closed(column: pa.Array) -> pa.Array:
    escaped = pc.replace_substring(column, b"\x00", b"\x00\xff")
    return pc.binary_join_element_wise(escaped, pa.scalar(b"\x00\x00", pa.binary()), b"")


def _integers(column: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", tz=column.type.tz))
    elif pa.types.is_date(column.type):
        column = column.cast(pa.date32()).cast(pa.int32())
    values = np.asarray(pc.fill_null(column.cast(pa.int64()), 0), dtype=np.int64)
    flipped = values.view(np.uint64) ^ SIGN
    return _fixed(flipped.astype(">u8").tobytes(), 8, column)


def _decimals(column: pa.Array) -> pa.Array:
    wide = pc.fill_null(column.cast(pa.decimal128(38, column.type.scale)), 0)
    words = np.frombuffer(wide.buffers()[1], dtype="<u8")[2 * wide.offset : 2 * (wide.offset + len(wide))]
    pairs = words.reshape(-1, 2)
    flipped = np.column_stack([pairs[:, 1] ^ SIGN, pairs[:, 0]])
    return _fixed(flipped.astype(">u8").tobytes(), 16, column)


def _fixed(data: bytes, width: int, like: pa.Array) -> pa.Array:
    offsets = np.arange(0, (len(like) + 1) * width, width, dtype=np.int32)
    made = pa.Array.from_buffers(pa.binary(), len(like), [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    return made if like.null_count == 0 else pc.if_else(like.is_valid(), made, pa.scalar(None, pa.binary()))


def bucket_of(canonical: pa.Array, buckets: int) -> Longs:
    """Name each key's bucket by a fixed hash of its canonical bytes.

    The hash is written here and in `byte_hash`, never Python's own, so a bucket is the same in every process.

    Args:
        canonical: what `canonical_keys` gave.
        buckets: how many there are, 1 or more.

    Returns:
        One number from 0 to `buckets - 1` a row.

    Raises:
        NullKeyError: a key is null.
    """
    _refuse_nulls(canonical)
    if buckets == 1:
        return np.zeros(len(canonical), dtype=np.int64)
    head = canonical.slice(0, CHEAP_DISTINCT)
    if len(canonical) > CHEAP_DISTINCT and len(head.unique()) < CHEAP_DISTINCT // 16:
        encoded = canonical.dictionary_encode()
        chosen: Longs = _buckets(encoded.dictionary, buckets)[np.asarray(encoded.indices)]
        return chosen
    return _buckets(canonical, buckets)


def _buckets(canonical: pa.Array, buckets: int) -> Longs:
    chosen = spread(_spread_hash(canonical)) % np.uint64(buckets)
    return chosen.astype(np.int64)


def _refuse_nulls(canonical: pa.Array) -> None:
    if canonical.null_count:
        raise NullKeyError(canonical.null_count, len(canonical))


class KeyIndex:
    """Number keys densely, in order of first sight, starting with the keys that a carry already knows.

    Ids never change while the index lives, so row k of the carry is id k.
    """

    def __init__(self, known: pa.Array | None = None) -> None:
        """Begin with the carry's keys, which take the ids 0, 1, 2, …; they must be distinct."""
        self._chunks: list[pa.Array] = []
        self._hashes = np.empty(0, dtype=np.uint64)
        self._named = np.empty(0, dtype=np.int64)
        if known is not None:
            self._learn(_whole(known), _spread_hash(_whole(known)))

    def __len__(self) -> int:
        """Count the keys known so far."""
        return len(self._named)

    @property
    def canonical(self) -> pa.Array:
        """All keys known so far, by id."""
        if len(self._chunks) != 1:
            self._chunks = [pa.concat_arrays([pa.array([], pa.binary()), *self._chunks])]
        return self._chunks[0]

    def ids(self, canonical: pa.Array) -> Longs:
        """Give each row's key its id, and new keys the next ones in order of first sight.

        Args:
            canonical: one block's keys, as `canonical_keys` gave them.

        Returns:
            One id a row.

        Raises:
            NullKeyError: a key is null.
        """
        _refuse_nulls(canonical)
        encoded = canonical.dictionary_encode()
        distinct, hashes = encoded.dictionary, _spread_hash(encoded.dictionary)
        named = self._look_up(distinct, hashes)
        fresh = named < 0
        named[fresh] = len(self) + np.arange(np.count_nonzero(fresh))
        if fresh.any():
            self._learn(distinct.filter(pa.array(fresh)), hashes[fresh])
        result: Longs = named[np.asarray(encoded.indices)]
        return result

    def _look_up(self, distinct: pa.Array, hashes: npt.NDArray[np.uint64]) -> Longs:
        """Give the id of each key, -1 to one never seen: by hash, and by bytes where two keys share one."""
        named = np.full(len(distinct), -1, dtype=np.int64)
        if len(self) == 0:
            return named
        at = np.minimum(np.searchsorted(self._hashes, hashes), len(self) - 1)
        hit = self._hashes[at] == hashes
        named[hit] = self._named[at[hit]]
        same = pc.equal(self.canonical.take(pa.array(named[hit])), distinct.filter(pa.array(hit)))
        if pc.all(same).as_py() is not False:
            return named
        return np.asarray(pc.fill_null(pc.index_in(distinct, value_set=self.canonical), -1)).astype(np.int64)

    def _learn(self, fresh: pa.Array, hashes: npt.NDArray[np.uint64]) -> None:
        order = np.argsort(hashes, kind="stable")
        at = np.searchsorted(self._hashes, hashes[order])
        self._named = np.insert(self._named, at, len(self) + order)
        self._hashes = np.insert(self._hashes, at, hashes[order])
        self._chunks.append(fresh)


def _spread_hash(canonical: pa.Array) -> npt.NDArray[np.uint64]:
    return hash_bytes(canonical, KEY_SEED)[0]
