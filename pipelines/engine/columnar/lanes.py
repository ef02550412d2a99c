"""The lanes of a content hash, filled a column at a time in one pass: what `spread` and `fold` say, compiled.

`NUMBA_DISABLE_JIT=1`, under which machine words do not wrap, leaves it to those two and to `hash_bytes`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pipelines.engine.columnar.byte_hash import (
    FIRST,
    SECOND,
    SHIFT_27,
    SHIFT_30,
    SHIFT_31,
    SHIFT_32,
    STEP,
    fold,
    hash_bytes,
    spread,
)
from pipelines.operators.compiled import PLAIN, compiled

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from pipelines.engine.columnar.byte_hash import Lane, Lanes
    from pipelines.operators.rows import Longs

    Flags = npt.NDArray[np.bool_]


def stir(lanes: Lanes, words: Lane, tag: np.uint64, missing: tuple[Flags, np.uint64] | None) -> None:
    """Add to each row's two lanes what one of its values says.

    Args:
        lanes: one word a row each; changed in place.
        words: the value of each row.
        tag: says of which column and type the values are.
        missing: rows whose value is null, and what a null adds to the first lane; None where there are none.
    """
    if PLAIN:
        said = spread(words ^ tag) if missing is None else np.where(*missing, spread(words ^ tag))
        np.add(lanes[0], said, out=lanes[0])
        np.add(lanes[1], fold(said), out=lanes[1])
    elif missing is None:
        _stir(*lanes, words, tag)
    else:
        _stir_some(*lanes, words, tag, *missing)


def hash_texts(column: pa.Array, seed: np.uint64) -> Lanes:
    """Hash each value's length and bytes as `hash_bytes` does, row by row: of few rows in a tenth of its time.

    Args:
        column: string or binary.
        seed: changes every hash.

    Returns:
        Two words a row.
    """
    return hash_bytes(column, seed) if PLAIN else hash_bytes(column, seed, _hash_block)


def _hash_block(data: pa.Buffer | None, offsets: Longs, seed: np.uint64) -> Lanes:
    high, low = np.empty(len(offsets) - 1, dtype=np.uint64), np.empty(len(offsets) - 1, dtype=np.uint64)
    _hash_rows(high, low, np.frombuffer(data or b"", dtype=np.uint8), offsets, seed)
    return high, low


@compiled
def _hash_rows(high, low, data, offsets, seed) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    for i in range(len(high)):
        at, end = offsets[i], offsets[i + 1]
        first = np.uint64(end - at) * STEP + seed
        second = _fold(first)  # type: ignore[no-untyped-call]
        while at < end:
            word = np.uint64(0)
            for place in range(min(8, end - at)):
                word |= np.uint64(data[at + place]) << np.uint64(8 * place)
            word = _spread(word + seed)  # type: ignore[no-untyped-call]
            second = _fold(second + word)  # type: ignore[no-untyped-call]
            first = _spread(first ^ word) + STEP  # type: ignore[no-untyped-call]
            at += 8
        high[i] = first
        low[i] = second


@compiled
def _spread(word):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - Numba infers words
    word = (word ^ (word >> SHIFT_30)) * FIRST
    word = (word ^ (word >> SHIFT_27)) * SECOND
    return word ^ (word >> SHIFT_31)


@compiled
def _fold(word):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    return (word ^ (word >> SHIFT_32)) * STEP


@compiled
def _stir(high, low, words, tag) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    for i in range(len(words)):
        said = _spread(words[i] ^ tag)  # type: ignore[no-untyped-call]
        high[i] += said
        low[i] += _fold(said)  # type: ignore[no-untyped-call]


@compiled
def _stir_some(high, low, words, tag, missing, null) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001, PLR0913
    for i in range(len(words)):
        said = null if missing[i] else _spread(words[i] ^ tag)  # type: ignore[no-untyped-call]
        high[i] += said
        low[i] += _fold(said)  # type: ignore[no-untyped-call]
