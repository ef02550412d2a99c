"""The closed list of types that land, and the way from whatever a feed has to them.

Times become `timestamp[us, UTC]`; those outside the years 1 to 9999 cannot be read and become null, and what they were
goes along as raw text. All else keeps its type, but for dictionaries and other layouts of the same values.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import TIME, times
from pipelines.engine.columnar.local_times import utc_from_local
from pipelines.engine.landing.errors import LANDED_TYPES, ColumnTypeError, TimezoneMissingError
from pipelines.flows.type_names import TypeName, read_type
from pipelines.operators.rows import MAX_TIME, MIN_TIME, NULL

if TYPE_CHECKING:
    from collections.abc import Mapping

PLAIN = (
    pa.types.is_boolean,
    pa.types.is_float32,
    pa.types.is_float64,
    pa.types.is_decimal128,
    *(getattr(pa.types, f"is_int{width}") for width in (8, 16, 32, 64)),
)
DECLARED = {
    "bool": pa.bool_(),
    **{f"int{width}": getattr(pa, f"int{width}")() for width in (8, 16, 32, 64)},
    "float32": pa.float32(),
    "float64": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": TIME,
}
PER_TICK = {"s": 1_000_000, "ms": 1_000, "us": 1}
NANOSECONDS = 1_000


def declared_type(spelled: str) -> pa.DataType:
    """Give the type that a flow file spells.

    >>> declared_type("struct<a: int8, b: list<decimal(10, 2)>>")
    StructType(struct<a: int8, b: list<element: decimal128(10, 2)>>)

    Raises:
        ValueError: it spells none; `reading` refuses such a flow.
    """
    read = read_type(spelled)
    if read is None:
        raise ValueError(spelled)
    return _declared(read)


def _declared(read: TypeName) -> pa.DataType:
    if read.name == "decimal":
        return pa.decimal128(*read.digits)
    if read.name == "list":
        return _list(_declared(read.inner[0][1]))
    if read.name == "struct":
        return pa.struct([(name, _declared(part)) for name, part in read.inner])
    return DECLARED[read.name]


def spelled_type(kind: pa.DataType) -> str:
    """Spell a type that lands as a flow file does.

    >>> spelled_type(declared_type("struct<a: timestamp, b: list<decimal(10, 2)>>"))
    'struct<a: timestamp, b: list<decimal(10, 2)>>'
    """
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    if pa.types.is_list(kind):
        return f"list<{spelled_type(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'{field.name}: {spelled_type(field.type)}' for field in kind)}>"
    return next(name for name, plain in DECLARED.items() if plain == kind)


def landed_type(source: str, column: str, came: pa.DataType) -> pa.DataType:  # noqa: PLR0911 - one line a type
    """Give the type with which a column lands.

    Raises:
        ColumnTypeError: values of this type do not land; names source and column.
    """
    if pa.types.is_dictionary(came):
        return landed_type(source, column, came.value_type)
    if pa.types.is_timestamp(came):
        return TIME
    if pa.types.is_date(came):
        return pa.date32()
    if _is_text(came):
        return pa.string()
    if _is_binary(came):
        return pa.binary()
    if any(is_kind(came) for is_kind in PLAIN):
        return came
    if pa.types.is_list(came) or pa.types.is_large_list(came):
        return _list(landed_type(source, f"{column}[]", came.value_type))
    if pa.types.is_struct(came):
        return pa.struct([(field.name, landed_type(source, f"{column}.{field.name}", field.type)) for field in came])
    raise ColumnTypeError(source, column, str(came), LANDED_TYPES)


def _list(element: pa.DataType) -> pa.DataType:
    """Give a list type as Delta and Parquet spell it: they call an element `element`, Arrow calls it `item`."""
    return pa.list_(pa.field("element", element))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_binary(kind: pa.DataType) -> bool:
    is_sized = pa.types.is_fixed_size_binary(kind) and not pa.types.is_decimal(kind)
    is_open = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind)
    return bool(is_sized or is_open)


def check_timezones(source: str, column: str, came: pa.DataType, timezone: str | None) -> None:
    """Refuse times without timezone where the feed names none.

    Raises:
        TimezoneMissingError: nobody says whose times they are.
    """
    if timezone is None and pa.types.is_timestamp(came) and came.tz is None:
        raise TimezoneMissingError(source, column, str(came))


def landed_column(column: pa.Array, kind: pa.DataType, timezone: str | None) -> pa.Array:
    """Turn a feed's column into the one that lands.

    A time that cannot be read becomes null here; `unreadable` says which.

    Args:
        column: as the feed has it.
        kind: what `landed_type` gave for it.
        timezone: of times that carry none.
    """
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_timestamp(column.type):
        return times(instants(column, timezone))
    if pa.types.is_struct(column.type):
        parts = [landed_column(part, field.type, timezone) for part, field in zip(column.flatten(), kind, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=column.is_null())
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        return _landed_list(column, kind, timezone)
    return column.cast(kind)


def _landed_list(column: pa.Array, kind: pa.DataType, timezone: str | None) -> pa.Array:
    values = landed_column(column.flatten(), kind.value_type, timezone)
    sizes = np.asarray(pc.fill_null(pc.list_value_length(column), 0), dtype=np.int32)
    offsets = np.concatenate([np.zeros(1, dtype=np.int32), np.cumsum(sizes, dtype=np.int32)])
    return pa.ListArray.from_arrays(pa.array(offsets), values, type=kind, mask=column.is_null())


def instants(column: pa.Array, timezone: str | None) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Give a timestamp column of any unit and zone as ticks; NULL for null and outside the readable years.

    Nanoseconds are cut down to the microsecond they lie in, also before 1970.

    Args:
        column: `timestamp` of any unit; without zone its values are clock faces of `timezone`.
        timezone: an IANA name; None stands for UTC.
    """
    missing = np.asarray(column.is_null())
    whole = np.asarray(pc.fill_null(column.cast(pa.int64()), 0), dtype=np.int64)
    if column.type.unit == "ns":
        found = whole // NANOSECONDS
    else:
        factor = PER_TICK[column.type.unit]
        missing = missing | (whole > MAX_TIME // factor) | (whole < -(-MIN_TIME // factor))
        found = np.where(missing, 0, whole) * factor
    found = np.where(missing, NULL, found)
    if column.type.tz is None and timezone is not None:
        found = utc_from_local(found, timezone)
        found = np.where((found > MAX_TIME) | (found < MIN_TIME), NULL, found)
    return found


def told_unreadable(lost: Mapping[str, pa.Array], rows: int) -> pa.Array:
    """Spell as JSON what could not be read in each row, null where all could.

    Args:
        lost: by column what `unreadable` gave.
        rows: how many.
    """
    if not lost:
        return pa.nulls(rows, pa.string())
    texts: list[str | None] = [None] * rows
    for row in np.flatnonzero(np.any([np.asarray(text.is_valid()) for text in lost.values()], axis=0)):
        there = {name: text[int(row)].as_py() for name, text in lost.items() if text[int(row)].is_valid}
        texts[int(row)] = json.dumps(there, sort_keys=True, ensure_ascii=False)
    return pa.array(texts, pa.string())


def unreadable(column: pa.Array, landed: pa.Array) -> pa.Array | None:
    """Give what stood where a time could not be read, as text, null elsewhere; None where all could."""
    if not pa.types.is_timestamp(column.type) or landed.null_count == column.null_count:
        return None
    lost = pc.and_(landed.is_null(), column.is_valid())
    return pc.if_else(lost, column.cast(pa.int64()).cast(pa.string()), pa.scalar(None, pa.string()))
