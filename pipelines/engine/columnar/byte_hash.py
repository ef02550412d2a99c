"""A 64-bit hash of byte strings and a 64-bit mixer, on whole columns: the same numbers on every machine and version.

Both are NumPy on unsigned integers, where wrapping is defined; no loop runs per row. They find differences, they do not
withstand somebody who looks for collisions.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from pipelines.operators.rows import Longs

    Lane = npt.NDArray[np.uint64]
    Lanes = tuple[Lane, Lane]

FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)
STEP = np.uint64(0xD6E8FEB86659FD93)
LONG = 1_024
SHORT = 16
BLOCK = 32_768
SHIFT_30, SHIFT_27, SHIFT_31, SHIFT_32 = (np.uint64(shift) for shift in (30, 27, 31, 32))


def spread(words: Lane) -> Lane:
    """Mix 64-bit words so that any bit in changes half the bits out; one to one (splitmix64's finalizer, Steele 2014).

    Args:
        words: any length; read only.

    Returns:
        A new array of the same length.
    """
    mixed: Lane = words >> SHIFT_30
    scratch = np.empty_like(mixed)
    mixed ^= words
    mixed *= FIRST
    np.right_shift(mixed, SHIFT_27, out=scratch)
    mixed ^= scratch
    mixed *= SECOND
    np.right_shift(mixed, SHIFT_31, out=scratch)
    mixed ^= scratch
    return mixed


def fold(words: Lane) -> Lane:
    """Mix 64-bit words once more, cheaply and one to one: a second lane out of `spread`'s first."""
    folded: Lane = words >> SHIFT_32
    folded ^= words
    folded *= STEP
    return folded


def hash_block(data: pa.Buffer | None, offsets: Longs, seed: np.uint64) -> Lanes:
    """Hash some values, eight bytes of all of them at a time: no loop runs per row.

    Args:
        data: where the bytes lie; None where there are none.
        offsets: where each value begins, and where the last one ends.
        seed: changes every hash.
    """
    return _hash_block(_words_at(data, offsets), offsets, seed)


def hash_bytes(column: pa.Array, seed: np.uint64, block: Callable[..., Lanes] = hash_block) -> Lanes:
    """Hash each value's length and bytes into two lanes; nulls as empty.

    Args:
        column: string or binary.
        seed: changes every hash.
        block: hashes so many values, as `hash_block` does.

    Returns:
        Two words a row.
    """
    view = column.cast(pa.large_binary())
    if view.null_count:
        view = pc.fill_null(view, b"")
    if len(view) == 0:
        return np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.uint64)
    offsets = np.frombuffer(view.buffers()[1], dtype=np.int64)[view.offset : view.offset + len(view) + 1]
    sizes = np.diff(offsets)
    if int(sizes.max()) > LONG:
        return _hash_mixed(view, sizes, seed, block)
    data = view.buffers()[2]
    parts = [block(data, offsets[at : at + BLOCK + 1], seed) for at in range(0, len(view), BLOCK)]
    return np.concatenate([high for high, _ in parts]), np.concatenate([low for _, low in parts])


def _words_at(data: pa.Buffer | None, offsets: Longs) -> Lane:
    """Show the eight bytes at every byte of a block as a word; beyond the end stand zeros."""
    start, stop = int(offsets[0]), int(offsets[-1])
    padded = np.zeros(stop - start + 8, dtype=np.uint8)
    if data is not None:
        padded[: stop - start] = np.frombuffer(data, dtype=np.uint8)[start:stop]
    words: Lane = np.ndarray((len(padded) - 7,), dtype="<u8", buffer=padded, strides=(1,))
    # Unaligned words are slow to pick from; where values are short, a copy of all of them costs less.
    return np.ascontiguousarray(words) if len(words) <= SHORT * len(offsets) else words


def _hash_block(words: Lane, offsets: Longs, seed: np.uint64) -> Lanes:
    starts, sizes = offsets[:-1] - offsets[0], np.diff(offsets)
    high = sizes.astype(np.uint64) * STEP + seed
    low = fold(high)
    rows: Longs | slice = slice(None) if sizes.all() else np.flatnonzero(sizes)
    done = 0
    while sizes[rows].size:
        unused = (np.uint64(8) - np.minimum(sizes[rows] - done, 8).astype(np.uint64)) << np.uint64(3)
        word = spread(((words[starts[rows] + done] << unused) >> unused) + seed)
        low[rows] = fold(low[rows] + word)
        high[rows] = spread(high[rows] ^ word) + STEP
        done += 8
        rows = slice(None) if (sizes > done).all() else np.flatnonzero(sizes > done)
    return high, low


def _hash_mixed(view: pa.Array, sizes: Longs, seed: np.uint64, block: Callable[..., Lanes]) -> Lanes:
    """Hash the few long values by BLAKE2b, so that one novel in a column of names costs no thousand passes."""
    is_long = sizes > LONG
    lanes = np.empty((len(view), 2), dtype=np.uint64)
    lanes[~is_long] = np.column_stack(hash_bytes(view.filter(pa.array(~is_long)), seed, block))
    key = int(seed).to_bytes(8, "little")
    novels = view.filter(pa.array(is_long))
    digests = b"".join(hashlib.blake2b(novel.as_buffer(), digest_size=16, key=key).digest() for novel in novels)
    lanes[is_long] = np.frombuffer(digests, dtype="<u8").reshape(-1, 2)
    return np.ascontiguousarray(lanes[:, 0]), np.ascontiguousarray(lanes[:, 1])
