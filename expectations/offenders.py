"""The rows that break a law, with the rows around them in stream order and the timer or promise that governed."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from expectations.laws import GOVERNED, JUDGED, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from expectations.laws import Law

MOST = 20
BEFORE, AFTER = 3, 1
BAD, NEAR, POSITION = "__bad", "__near", "__position"
TIMES = ("event_time", "arrival")
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
VIEW = "pulseline_offenders"


def offenders(spark: SparkSession, law: Law, rows: DataFrame, key: Sequence[str]) -> tuple[dict[str, Any], ...]:
    """Find the first rows that break a law, in stream order.

    Args:
        spark: the session of `rows`.
        law: one that has a governor.
        rows: all columns of the stream, `__judged`, and what went before.
        key: columns by which the stream is numbered; () is stream-wide.

    Returns:
        At most 20, plain values by column, times as ISO 8601 in UTC; under `governed_by` the timer or promise that the
        row is held against, under `around` up to three rows `before` and one `after`.
    """
    rows.createOrReplaceTempView(VIEW)
    try:
        found = spark.sql(_query(law, rows, key)).collect()
    finally:
        spark.catalog.dropTempView(VIEW)
    instants = frozenset(name for name, kind in rows.dtypes if kind == "timestamp")
    plain = [_plain(row.asDict(recursive=True), instants) for row in found]
    places = {_place(row, key): row for row in plain}
    return tuple(_with_context(row, places, key) for row in [row for row in plain if row[BAD]][:MOST])


def _query(law: Law, rows: DataFrame, key: Sequence[str]) -> str:
    """Number the rows in stream order, and keep those that break the law and the ones around them."""
    order = f"{_by(key)}ORDER BY `arrival`, `place`"
    bad = f"SELECT *, ({law.bad}) AS {BAD} FROM ({law.marked(VIEW, slim=False)})"  # noqa: S608 - names are quoted
    near = f"MAX({BAD}) OVER ({order} ROWS BETWEEN {AFTER} PRECEDING AND {BEFORE} FOLLOWING) AS {NEAR}"
    numbered = f"SELECT *, ROW_NUMBER() OVER ({order}) AS {POSITION}, {near} FROM ({bad})"  # noqa: S608 - as above
    shown = [*(_shown(name, kind) for name, kind in rows.dtypes if name != JUDGED), _governor(law), BAD, POSITION]
    whole = ", ".join(["`arrival`", *(quoted(name) for name in key), POSITION])
    most = MOST * (BEFORE + 1 + AFTER)
    return f"SELECT {', '.join(shown)} FROM ({numbered}) WHERE {NEAR} ORDER BY {whole} LIMIT {most}"  # noqa: S608 - as above


def _by(key: Sequence[str]) -> str:
    return f"PARTITION BY {', '.join(quoted(name) for name in key)} " if key else ""


def _shown(name: str, kind: str) -> str:
    """Spell a column so that Python can hold its values: times as ticks, nested values as text."""
    column = quoted(name)
    if kind == "timestamp":
        return f"UNIX_MICROS({column}) AS {column}"
    nested = kind.startswith(("array", "map", "struct")) or kind in {"timestamp_ntz", "variant"}
    return f"CAST({column} AS STRING) AS {column}" if nested else column


def _governor(law: Law) -> str:
    ticks = ", ".join(f"'{name}', UNIX_MICROS({GOVERNED}.`{name}`)" for name in TIMES)
    rest = f"'place', {GOVERNED}.`place`, 'commit', {GOVERNED}.`commit`"
    made = f"NAMED_STRUCT('kind', '{law.governor}', {ticks}, {rest})"
    return f"CASE WHEN {GOVERNED} IS NOT NULL THEN {made} END AS {GOVERNED}"


def _place(row: Mapping[str, Any], key: Sequence[str]) -> tuple[Any, ...]:
    return (*(row[name] for name in key), row[POSITION])


def _with_context(
    row: Mapping[str, Any], places: Mapping[tuple[Any, ...], Mapping[str, Any]], key: Sequence[str]
) -> dict[str, Any]:
    *values, position = _place(row, key)

    def at(steps: Iterable[int]) -> list[dict[str, Any]]:
        found = (places.get((*values, position + step)) for step in steps)
        return [_told(each) for each in found if each is not None]

    around = {"before": at(range(-BEFORE, 0)), "after": at(range(1, AFTER + 1))}
    return _told(row) | {"governed_by": row[GOVERNED], "around": around}


def _told(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in {GOVERNED, BAD, POSITION}}


def _plain(row: Mapping[str, Any], instants: frozenset[str]) -> dict[str, Any]:
    """Turn collected values into what JSON holds; `instants` were collected as ticks."""
    made = {name: instant(value) if name in instants else _value(value) for name, value in row.items()}
    if row[GOVERNED] is not None:
        governor = row[GOVERNED]
        made[GOVERNED] = {**governor, **{name: instant(governor[name]) for name in TIMES}}
    return made


def instant(tick: int | None) -> str | None:
    """Spell an instant as tables' readers do.

    >>> instant(0)
    '1970-01-01T00:00:00.000000Z'
    """
    if tick is None:
        return None
    moment = EPOCH + dt.timedelta(microseconds=tick)
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z".rjust(27, "0")


def _value(value: Any) -> Any:  # noqa: ANN401 - whatever a column holds
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, dt.date | dt.time | dt.timedelta | Decimal):
        return str(value)
    return value
