"""Rows as the ledger has them: each one canonical JSON object, spelt a column at a time.

A filter puts every row that it refuses into the ledger, so this is done for millions of them: Arrow spells what it
spells as `canonical_json` does, and of the rest each value is spelt once.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import canonical_json

if TYPE_CHECKING:
    from collections.abc import Sequence

TEXT = pa.large_string()
MOST_BYTES = 1 << 28
"""Bytes of rows that are spelt in one go: an array of text holds 2 GiB, and JSON is longer than what it says."""
ESCAPED = r'["\\\x00-\x1f]'
"""What JSON says otherwise within a text."""


def json_rows(table: pa.Table, columns: Sequence[str]) -> pa.ChunkedArray:
    """Spell the named columns of each row as one canonical JSON object.

    Returns:
        One text a row, none of them null.
    """
    rows = table.num_rows
    chosen = table.select(sorted(columns))
    step = max(1, rows * MOST_BYTES // max(MOST_BYTES, chosen.nbytes))
    return pa.chunked_array([_objects(chosen.slice(at, step)) for at in range(0, rows, step)], pa.string())


def _objects(table: pa.Table) -> pa.Array:
    if not table.num_columns:
        return pa.repeat("{}", table.num_rows)
    parts: list[pa.Array | str] = []
    for name in table.column_names:
        parts += [f"{',' if parts else '{'}{canonical_json(name)}:", _values(table[name])]
    return _joined(*parts, "}").cast(pa.string())


def _values(column: pa.ChunkedArray) -> pa.Array:
    """Spell each value of a column as canonical JSON."""
    kind, values = column.type, column.combine_chunks()
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        texts = values.cast(TEXT)
    elif pa.types.is_timestamp(kind) and kind.unit == "us":
        shown = pc.utf8_replace_slice(values.cast(pa.timestamp("us")).cast(TEXT), 10, 11, "T")
        texts = _joined('"', shown, 'Z"')
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        plain = values.cast(TEXT)
        texts = _joined('"', plain, '"')
        odd = pc.fill_null(pc.match_substring_regex(plain, ESCAPED), False)  # noqa: FBT003 - the value of a column
        if pc.any(odd).as_py():
            texts = pc.replace_with_mask(texts, odd, pa.array(map(canonical_json, plain.filter(odd).to_pylist()), TEXT))
    elif pa.types.is_float64(kind):
        texts = pa.array(
            [
                repr(value) if value is not None and isfinite(value) else canonical_json(value)
                for value in values.to_pylist()
            ],
            TEXT,
        )
    else:
        texts = pa.array([canonical_json(value) for value in values.to_pylist()], TEXT)
    return pc.fill_null(texts, "null")


def _joined(*parts: pa.Array | str) -> pa.Array:
    """Put texts one behind the other, row by row."""
    # The last argument stands between the others.
    return pc.binary_join_element_wise(
        *(pa.scalar(each, TEXT) if isinstance(each, str) else each for each in (*parts, ""))
    )
