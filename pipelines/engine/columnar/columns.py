"""The columns that every stream and the ledger have in tables, and the way between them and the core's integers."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.operators.rows import INFINITY, KIND_NAMES, MAX_TIME, MIN_TIME, NULL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.operators.rows import Bytes, Longs

TIME = pa.timestamp("us", tz="UTC")
EPOCH, TICK = dt.datetime(1970, 1, 1, tzinfo=dt.UTC), dt.timedelta(microseconds=1)
TABLE_INFINITY = MAX_TIME + 1
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode
UNREADABLE = "<unreadable>"
"""The column beside a feed's own that keeps, as JSON, the times of a row that could not be read."""

ORDER_FIELDS = (
    pa.field("kind", pa.string()),
    pa.field("arrival", TIME),
    pa.field("place", pa.int64()),
    pa.field("event_time", TIME),
    pa.field("event_end", TIME),
    pa.field("due_at", TIME),
    pa.field("landed_at", TIME),
    pa.field("landed_place", pa.int64()),
    pa.field("commit", pa.int64()),
)

RESERVED = frozenset(field.name for field in ORDER_FIELDS)

LEDGER_SCHEMA = pa.schema(
    [
        pa.field("commit", pa.int64()),
        pa.field("stream", pa.string()),
        pa.field("operator", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("action", pa.string()),
        pa.field("source", pa.string()),
        pa.field("landed_at", TIME),
        pa.field("landed_place", pa.int64()),
        pa.field("key", pa.string()),
        pa.field("kind", pa.string()),
        pa.field("arrival", TIME),
        pa.field("place", pa.int64()),
        pa.field("event_time", TIME),
        pa.field("event_end", TIME),
        pa.field("new_time", TIME),
        pa.field("new_end", TIME),
        pa.field("cti", TIME),
        pa.field("cti_arrival", TIME),
        pa.field("cti_place", pa.int64()),
        pa.field("row", pa.string()),
        pa.field("raw", pa.binary()),
    ]
)
NOT_HASHED = frozenset({"commit"})
FEW = 4_096
"""Rows below which nothing compiled is worth loading."""
KIND_BY_LETTER, LENGTH_BY_LETTER = np.zeros(256, dtype=np.int8), np.zeros(256, dtype=np.int32)
for _kind, _word in enumerate(KIND_NAMES):
    KIND_BY_LETTER[ord(_word[0])], LENGTH_BY_LETTER[ord(_word[0])] = _kind, len(_word)


def stream_schema(payload: pa.Schema) -> pa.Schema:
    """Give the schema of a stream's table whose payload columns are `payload`."""
    return pa.schema([*ORDER_FIELDS, *payload])


def ticks(column: pa.Array) -> Longs:
    """Turn a timestamp column into int64 ticks, null into NULL and the table's infinity into INFINITY.

    Args:
        column: `timestamp[us]`, any length, or int64 already in ticks.

    Returns:
        One int64 a value.
    """
    values = longs(column)
    if (values == TABLE_INFINITY).any():
        values = np.where(values == TABLE_INFINITY, INFINITY, values)
    return values


def longs(column: pa.Array) -> Longs:
    """Turn an integer column into int64, null into NULL."""
    whole = column.cast(pa.int64())
    return np.asarray(pc.fill_null(whole, NULL) if whole.null_count else whole, dtype=np.int64)


def times(values: Longs) -> pa.Array:
    """Turn int64 ticks into `timestamp[us, UTC]`: NULL into null, INFINITY into the table's infinity."""
    if (values == INFINITY).any():
        values = np.where(values == INFINITY, TABLE_INFINITY, values)
    absent = values == NULL
    return pa.array(values, mask=absent if absent.any() else None).view(TIME)


def arrived_within(start: int, end: int) -> pc.Expression:
    """Choose the rows whose arrival lies in [start, end), in ticks."""
    first, last = (pa.scalar(tick, pa.int64()).cast(TIME) for tick in (start, end))
    return (pc.field("arrival") >= first) & (pc.field("arrival") < last)


def spelled_as(values: Sequence[object], kind: pa.DataType) -> pa.Array:
    """Give values that a flow spells, each for itself, as the values of a column: `"1"` and 2 among whole numbers."""
    return pa.concat_arrays([pa.array([value]).cast(kind) for value in values])


def kind_names(kinds: Bytes) -> pa.Array:
    """Spell kinds as tables do: data, start, end, timer, cti."""
    return pa.DictionaryArray.from_arrays(pa.array(kinds, pa.int8()), pa.array(KIND_NAMES)).cast(pa.string())


def kinds(column: pa.Array) -> Bytes:
    """Read kinds back into the core's numbers."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    found = [_kinds(chunk) for chunk in chunks]
    return found[0] if len(found) == 1 else np.concatenate([np.zeros(0, dtype=np.int8), *found])


def _kinds(column: pa.Array) -> Bytes:
    """Tell words apart by their first letter, which is another for each kind."""
    if pa.types.is_dictionary(column.type) and column.dictionary.equals(pa.array(KIND_NAMES)):
        return np.asarray(column.indices, dtype=np.int8)
    found = None
    if pa.types.is_string(column.type) and not column.null_count and len(column) >= FEW:
        from pipelines.engine.columnar.letters import numbers

        _, offsets, data = column.buffers()
        ends = np.frombuffer(offsets, dtype=np.int32)[column.offset : column.offset + len(column) + 1]
        found = numbers(ends, np.frombuffer(data, dtype=np.uint8), KIND_BY_LETTER, LENGTH_BY_LETTER)
    return np.asarray(pc.index_in(column, pa.array(KIND_NAMES)), dtype=np.int8) if found is None else found


def with_kinds_encoded(rows: pa.Table) -> pa.Table:
    """Give rows whose column `kind`, where they have one of text, holds each word once; they say the same."""
    place = rows.schema.get_field_index("kind")
    if place < 0 or not pa.types.is_string(rows.schema.field(place).type) or rows["kind"].null_count:
        return rows
    encoded = pa.DictionaryArray.from_arrays(pa.array(kinds(rows["kind"])), pa.array(KIND_NAMES))
    return rows.set_column(place, "kind", encoded)


Instant = Annotated[int, "instant"]
"""Ticks that records on disk say as `instant_text` does."""


def instant_text(tick: int) -> str:
    """Spell an instant as ISO 8601 in UTC with six digits, such as 2013-01-01T10:15:00.000000Z."""
    shown = min(max(tick, MIN_TIME), TABLE_INFINITY)
    moment = EPOCH + dt.timedelta(microseconds=shown)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def instant_tick(text: str) -> int:
    """Read what `instant_text` spelt.

    >>> instant_tick(instant_text(-1))
    -1
    """
    return (dt.datetime.fromisoformat(text) - EPOCH) // TICK


def _plain(value: object) -> object:  # noqa: PLR0911 - one line a type
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, dt.datetime):
        moment = value.astimezone(dt.UTC) if value.tzinfo else value.replace(tzinfo=dt.UTC)
        return f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z".rjust(27, "0")
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value


def canonical_json(value: object) -> str:
    """Spell a value as the ledger does: keys sorted, no spaces, times in UTC, NaN as a word.

    >>> canonical_json({"b": 1, "a": None})
    '{"a":null,"b":1}'
    """
    return _CANONICAL(_plain(value))
