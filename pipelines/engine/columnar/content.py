"""What a table says, as one number: the content hash that certificates compare.

Order is data here (`arrival` and `place` are hashed columns), so a plain sum of row hashes misses nothing and does not
care about files, buckets, cores, engines or the order of columns; commits join by addition, without being read again.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.byte_hash import BLOCK, fold, spread
from pipelines.errors import Exit, PulselineError
from pipelines.flows.codec import Spelling

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    Lane = npt.NDArray[np.uint64]
    Lanes = tuple[Lane, Lane]

LANE = 1 << 64
ROW = np.uint64(0xA0761D6478BD642F)
NULL_MARK = np.uint64(0xE7037ED1A0B428DB)
ONE_NAN = np.uint64(0x7FF8000000000000)
FEW = 512
"""Rows of text that are looked at first: where they hold few values, values are told apart before they are hashed."""
GIVE = np.uint64(0x8EBC6AF09C88C6E3)


@dataclass(eq=False)
class ContentTypeError(PulselineError, TypeError):
    """A column whose type has no canonical bytes: says which, and what has.

    Keep the column's name and its type as text.
    """

    column: str
    came: str
    code = Exit.WRONG_USE
    says = (
        "column `{column}` is {came}, which has no canonical bytes; hashed columns are bool, integers, floats, "
        "decimal, string, binary, date, timestamp, and structs and lists of these: cast it"
    )


@dataclass(frozen=True)
class ContentHash:
    """The number of rows and the sum of their 128-bit hashes, in two 64-bit lanes that wrap."""

    rows: int = 0
    high: int = 0
    low: int = 0

    def __add__(self, other: Self) -> ContentHash:
        """Give the hash of both contents together."""
        return ContentHash(self.rows + other.rows, (self.high + other.high) % LANE, (self.low + other.low) % LANE)

    def __sub__(self, other: Self) -> ContentHash:
        """Take rows away again: `a + b - b == a`."""
        return ContentHash(self.rows - other.rows, (self.high - other.high) % LANE, (self.low - other.low) % LANE)

    @property
    def text(self) -> str:
        """Spell it as `rows:` and 32 hexadecimal digits."""
        return f"{self.rows}:{self.high:016x}{self.low:016x}"

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read what `text` spelt.

        Raises:
            ValueError: it is no such spelling.
        """
        rows, _, digits = text.partition(":")
        if not rows.isdecimal() or len(digits) != 32:  # noqa: PLR2004 - 128 bits in hexadecimal
            message = f"a content hash is `rows:` and 32 hexadecimal digits; it is {text!r}"
            raise ValueError(message)
        return cls(int(rows), int(digits[:16], 16), int(digits[16:], 16))


NOTHING = ContentHash()
SPELLED = Spelling(lambda content: content.text, ContentHash.from_text)
"""How records on disk say one."""


def content_hash(table: pa.Table | pa.RecordBatch, *, leave_out: frozenset[str] = frozenset()) -> ContentHash:
    """Hash the rows of a table by what they say, column names included and column order not.

    Canonical are: one NaN, -0.0 kept apart from 0.0, null marked, integers of any width by value, float32 as the
    float64 it equals, timestamps in µs, dates in days, text by its bytes and length. Integers, floats, booleans,
    timestamps and dates that share their bits differ. A column that is all null differs from one that is not there.

    >>> whole = pa.table({"a": [1, 2], "b": ["x", None]})
    >>> content_hash(whole) == content_hash(whole[:1]) + content_hash(whole[1:])
    True

    Args:
        table: any number of rows and chunks.
        leave_out: names of columns that do not count, such as `commit`.

    Returns:
        The hash; that of no rows is `ContentHash()`.

    Raises:
        ContentTypeError: a column's type has no canonical bytes.
    """
    if not table.num_rows:
        return NOTHING
    total = NOTHING
    for high, low in _lanes_of(table, leave_out):
        total += ContentHash(len(high), _sum(high), _sum(low))
    return total


def row_hashes(table: pa.Table, *, leave_out: frozenset[str] = frozenset()) -> Lane:
    """Hash each row by what it says: the first lane of what `content_hash` adds up, to find rows that differ.

    Args:
        table: any number of rows and chunks.
        leave_out: names of columns that do not count.

    Returns:
        A word a row, in the order of the rows.

    Raises:
        ContentTypeError: a column's type has no canonical bytes.
    """
    return np.concatenate([np.zeros(0, dtype=np.uint64), *(high for high, _ in _lanes_of(table, leave_out))])


def _lanes_of(table: pa.Table | pa.RecordBatch, leave_out: frozenset[str]) -> Iterator[Lanes]:
    """Give two words a row, a block of rows after the other."""
    kept = [name for name in table.schema.names if name not in leave_out]
    seeds = [_seed(name) for name in kept]
    return (_rows(block, kept, seeds) for block in _blocks(table.select(kept)))


def _blocks(table: pa.Table | pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    batches = [table] if isinstance(table, pa.RecordBatch) else table.to_batches()
    for batch in batches:
        for at in range(0, batch.num_rows, BLOCK):
            yield batch.slice(at, BLOCK)


def _sum(lane: Lane) -> int:
    return int(np.add.reduce(lane))


def _seed(name: str) -> np.uint64:
    return np.uint64(int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little"))


def _rows(block: pa.RecordBatch | pa.StructArray, names: list[str], seeds: list[np.uint64]) -> Lanes:
    count = len(block) if isinstance(block, pa.StructArray) else block.num_rows
    columns = block.flatten() if isinstance(block, pa.StructArray) else block.columns
    alike = [seed for seed, column in zip(seeds, columns, strict=True) if _is_nothing(column)]
    high, low = (np.full(count, word, dtype=np.uint64) for word in _nothings(alike))
    for name, seed, column in zip(names, seeds, columns, strict=True):
        if not _is_nothing(column):
            _add((high, low), column, seed, name)
    return _mix(high, low)


def _is_nothing(column: pa.Array) -> bool:
    """Say whether all values are null, which says the same of every row."""
    return bool(0 < column.null_count == len(column) and not pa.types.is_nested(column.type))


def _nothings(seeds: list[np.uint64]) -> Lanes:
    """Give the two lanes of a row that has nothing but nulls, one in each of the columns with these seeds."""
    nulls = np.array([_null_of(seed) for seed in seeds], dtype=np.uint64)
    start = np.full(1, ROW, dtype=np.uint64)
    return start + np.add.reduce(nulls), start + np.add.reduce(fold(nulls))


def _add(lanes: Lanes, column: pa.Array, seed: np.uint64, name: str) -> None:
    """Add one column to the lanes of its rows."""
    from pipelines.engine.columnar.lanes import stir

    if not _is_word(column.type):
        for lane, said in zip(lanes, _column(column, seed, name), strict=True):
            np.add(lane, said, out=lane)
        return
    family, words = _words(column, name)
    missing = (np.asarray(column.is_null()), _null_of(seed)) if column.null_count else None
    stir(lanes, words, seed ^ _TAGS[family], missing)


def _mix(high: Lane, low: Lane) -> Lanes:
    """Mix the two lanes of a sum into each other, so that values cannot be swapped between rows unseen."""
    mixed_high = spread(high + fold(low))
    return mixed_high, spread(low + mixed_high * GIVE)


def _column(column: pa.Array, seed: np.uint64, name: str) -> Lanes:
    if column.null_count == 0:
        return _values(column, seed, name)
    null = np.full(1, _null_of(seed))
    lanes = _values(column, seed, name)
    missing = np.asarray(column.is_null())
    return np.where(missing, null, lanes[0]), np.where(missing, fold(null), lanes[1])


@lru_cache(maxsize=4_096)
def _null_of(seed: np.uint64) -> np.uint64:
    return np.uint64(spread(np.full(1, seed ^ NULL_MARK, dtype=np.uint64))[0])


def _is_word(kind: pa.DataType) -> bool:
    """Say whether each value is one machine word."""
    nested = pa.types.is_nested(kind) or pa.types.is_dictionary(kind)
    return not (nested or pa.types.is_decimal(kind) or _is_bytes(kind))


def _values(column: pa.Array, seed: np.uint64, name: str) -> Lanes:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _picked(column, seed, name)
    if pa.types.is_struct(kind):
        names = [field.name for field in kind]
        return _tagged(_rows(column, names, [_seed(inner) for inner in names]), seed)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _tagged(_lists(column, name), seed)
    if pa.types.is_decimal(kind):
        return _decimals(column, seed)
    if _is_bytes(kind):
        is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        return _texts(column, seed ^ _TAGS["text" if is_text else "binary"])
    family, words = _words(column, name)
    high = spread(words ^ (seed ^ _TAGS[family]))
    return high, fold(high)


def _picked(column: pa.Array, seed: np.uint64, name: str) -> Lanes:
    """Hash each word of a dictionary once; a null among them, or for one of them, is as one among plain values."""
    if column.null_count or column.dictionary.null_count or not len(column.dictionary):
        return _values(column.dictionary_decode(), seed, name)
    high, low = _values(column.dictionary, seed, name)
    rows = np.asarray(column.indices)
    return high[rows], low[rows]


def _texts(column: pa.Array, tag: np.uint64) -> Lanes:
    """Hash text: where few values stand in many rows, each value once; the lanes of one value stand for all rows."""
    from pipelines.engine.columnar.lanes import hash_texts

    if len(column) < FEW or len(column.slice(0, FEW).unique()) > FEW // 8:
        return hash_texts(column, tag)
    empty = b"" if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type) else ""
    encoded = (pc.fill_null(column, empty) if column.null_count else column).dictionary_encode()
    high, low = hash_texts(encoded.dictionary, tag)
    if len(high) == 1:
        return high, low
    rows = np.asarray(encoded.indices)
    return high[rows], low[rows]


def _tagged(lanes: Lanes, seed: np.uint64) -> Lanes:
    return spread(lanes[0] ^ seed), spread(lanes[1] + seed)


def _is_bytes(kind: pa.DataType) -> bool:
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return bool(is_text or pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


_TAGS = {
    family: _seed(f"family {family}") for family in ("integer", "float", "bool", "timestamp", "date", "text", "binary")
}


def _words(column: pa.Array, name: str) -> tuple[str, Lane]:
    kind = column.type
    if pa.types.is_floating(kind) and kind != pa.float16():
        return "float", _float_bits(column)
    if pa.types.is_timestamp(kind):
        return "timestamp", _integers(column if kind.unit == "us" else column.cast(pa.timestamp("us", tz=kind.tz)))
    if pa.types.is_date(kind):
        return "date", _integers(column.cast(pa.date32()).cast(pa.int32()))
    if pa.types.is_boolean(kind):
        return "bool", _integers(column)
    if pa.types.is_integer(kind):
        return "integer", _integers(column)
    if pa.types.is_null(kind):
        return "integer", np.zeros(len(column), dtype=np.uint64)
    raise ContentTypeError(name, str(kind))


def _integers(column: pa.Array) -> Lane:
    """Give whole numbers of any width as words; where a value is null, anything."""
    return _buffer(column if column.type.bit_width == 64 else column.cast(pa.int64()))  # noqa: PLR2004 - a word


def _buffer(column: pa.Array) -> Lane:
    """Show the values of a column of words, without a copy."""
    data = column.buffers()[1]
    if data is None:
        return np.zeros(len(column), dtype=np.uint64)
    return np.frombuffer(data, dtype=np.uint64, count=len(column), offset=8 * column.offset)


def _float_bits(column: pa.Array) -> Lane:
    bits = _buffer(column.cast(pa.float64()))
    nan = np.isnan(bits.view(np.float64))
    return np.where(nan, ONE_NAN, bits) if nan.any() else bits


def _decimals(column: pa.Array, seed: np.uint64) -> Lanes:
    wide = pc.fill_null(column.cast(pa.decimal128(38, column.type.scale)), 0)
    words = np.frombuffer(wide.buffers()[1], dtype=np.uint64)[2 * wide.offset : 2 * (wide.offset + len(wide))]
    tag = seed ^ _seed(f"decimal scale {column.type.scale}")
    high = spread(spread(words[0::2] ^ tag) + words[1::2])
    return high, spread(words[1::2] + fold(high) + words[0::2] * GIVE)


def _lists(column: pa.Array, name: str) -> Lanes:
    """Hash each list by its length and, at its place, each element."""
    sizes = np.asarray(pc.fill_null(pc.list_value_length(column), 0), dtype=np.int64)
    values = column.flatten()
    ends = np.cumsum(sizes)
    places = (np.arange(len(values)) - np.repeat(ends - sizes, sizes)).astype(np.uint64)
    high, low = _column(values, ROW, f"{name}[]")
    counts = sizes.astype(np.uint64)
    return (
        _per_list(spread(high + places * GIVE), ends, sizes) + counts,
        _per_list(spread(low ^ fold(places)), ends, sizes) + counts,
    )


def _per_list(lane: Lane, ends: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> Lane:
    running = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(lane, dtype=np.uint64)])
    summed: Lane = running[ends] - running[ends - sizes]
    return summed
