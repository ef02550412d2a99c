"""Values out of text: times with and without a zone, and all other declared types, one by one where one is wrong."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import TIME, ticks, times
from pipelines.engine.columnar.local_times import utc_from_local
from pipelines.operators.rows import MAX_TIME, MIN_TIME, NULL

Longs = np.ndarray[tuple[int], np.dtype[np.int64]]

ZONED = r"[0-9][T ][0-9:.]+(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"
FACE = pa.timestamp("us")
WORDS = {True: ("1", "true", "True", "TRUE"), False: ("0", "false", "False", "FALSE")}


def read_times(texts: pa.Array, timezone: str | None) -> tuple[pa.Array, str | None]:
    """Read times with a zone as instants and those without as clock faces of a timezone.

    Args:
        texts: ISO 8601; what is none becomes null.
        timezone: of times that carry none; None where there must be no such times.

    Returns:
        The instants; and, where `timezone` is missing, an example of the times that need it, which are null.
    """
    zoned = pc.fill_null(pc.match_substring_regex(texts, ZONED), False)  # noqa: FBT003 - a value of a column
    instants = _cast(pc.if_else(zoned, texts, pa.scalar(None, pa.string())), TIME)
    faces = _cast(pc.if_else(zoned, pa.scalar(None, pa.string()), texts), FACE)
    local, example = _readable(ticks(faces)), None
    if timezone is not None:
        local = _readable(utc_from_local(local, timezone))
    elif (local != NULL).any():
        example = texts[int(np.flatnonzero(local != NULL)[0])].as_py()
        local = np.full(len(local), NULL, dtype=np.int64)
    return times(np.where(np.asarray(zoned), _readable(ticks(instants)), local)), example


@dataclass(eq=False)
class ZonelessError(Exception):
    """A column's first time has no zone, and the feed names none; caught where it is known which file it stands in."""

    column: str
    example: str


def zoned_times(texts: pa.Array, column: str, timezone: str | None, zones: set[str]) -> pa.Array:
    """Read a part of a feed's column of times.

    A time without zone, where the feed names none, is one that cannot be read. Where the column's first has none,
    nobody said whose times they are.

    Args:
        texts: the next rows.
        column: its name.
        timezone: of times that carry none.
        zones: columns of which a time with a zone was read before; this one joins them.

    Raises:
        ZonelessError: the column's first time has no zone.
    """
    found, example = read_times(texts, timezone)
    if column in zones:
        return found
    zoned = np.flatnonzero(np.asarray(found.is_valid()))
    if example is not None and not (len(zoned) and zoned[0] < pc.index(texts, example).as_py()):
        raise ZonelessError(column, example)
    if len(zoned):
        zones.add(column)
    return found


def read_values(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Read values of a plain type that is no time; what cannot be read becomes null.

    >>> read_values(pa.array(["1", " 2", "300", None]), pa.int8()).to_pylist()
    [1, 2, None, None]
    """
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return texts.cast(kind)
    trimmed = pc.utf8_trim_whitespace(texts)
    if pa.types.is_boolean(kind):
        yes, no = (pc.is_in(trimmed, pa.array(words)) for words in (WORDS[True], WORDS[False]))
        return pc.if_else(pc.or_(yes, no), yes, pa.scalar(None, pa.bool_()))
    return _cast(trimmed, kind)


def _readable(found: Longs) -> Longs:
    return np.where((found > MAX_TIME) | (found < MIN_TIME), NULL, found)


def _cast(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return texts.cast(kind)
    except pa.ArrowInvalid:
        encoded = texts.dictionary_encode()
        distinct = encoded.dictionary
        read = pa.concat_arrays([_cast_one(distinct.slice(place, 1), kind) for place in range(len(distinct))])
        return read.take(encoded.indices)


def _cast_one(text: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return text.cast(kind)
    except pa.ArrowInvalid:
        return pa.nulls(1, kind)


def remember_unread(lost: dict[int, dict[str, str]], name: str, texts: pa.Array, read: pa.Array) -> None:
    """Note, by row and column, the texts that could not be read."""
    if read.null_count == texts.null_count:
        return
    for row in np.flatnonzero(np.asarray(pc.and_(read.is_null(), texts.is_valid()))):
        lost.setdefault(int(row), {})[name] = texts[int(row)].as_py()


def told_texts(lost: dict[int, dict[str, str]], rows: int) -> pa.Array:
    """Spell what `remember_unread` noted, one JSON object a row; null where all could be read."""
    if not lost:
        return pa.nulls(rows, pa.string())
    told = {row: json.dumps(texts, sort_keys=True, ensure_ascii=False) for row, texts in lost.items()}
    return pa.array([told.get(row) for row in range(rows)], pa.string())
