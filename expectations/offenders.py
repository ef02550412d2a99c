"""The rows that break a law, with the rows around them in stream order and the timer or promise that governed."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from expectations.laws import BOUND, GOVERNED, JUDGED, columns_of, quoted
from expectations.views import ROWS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from expectations.laws import Law
    from expectations.views import View

IDENTITY = ("commit", "arrival", "place", "kind", "event_time")
"""Columns that, with the key, tell a row from all others."""
MOST = 20
KEPT = 1_000_000
"""Rows of `every_offender`: nobody reads more."""
AT_ONCE = 20_000
"""Instants that are looked up by one query."""
HELD_AGAINST = "held_against"
"""Time of the governor, in the file of all rows."""
BEFORE, AFTER = 3, 1
CONTEXT = ("governed_by", "around")
"""What a row is told with, beside its columns."""
BAD, NEAR, POSITION = "__pulseline_bad", "__pulseline_near", "__pulseline_position"
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def offenders(law: Law, view: View, key: Sequence[str]) -> tuple[dict[str, Any], ...]:
    """Find the first rows that break a law, in stream order.

    Args:
        law: one that has a governor.
        view: the rows, and what went before.
        key: columns by which the stream is numbered; () is stream-wide.

    Returns:
        At most 20, plain values by column, times as ISO 8601 in UTC; under `governed_by` the timer or promise that the
        row is held against, under `around` up to three rows `before` and one `after`.
    """
    columns = tuple(dict.fromkeys((*columns_of([law]), *key)))
    found = view.ask(_query(law, columns, key), columns)
    whole = _whole(view, found, key)
    rows = [{**whole[_identity(row, key)], **row} for row in plain_rows(found)]
    places = {_place(row, key): row for row in rows}
    return tuple(_with_context(row, places, key) for row in [row for row in rows if row[BAD]][:MOST])


def every_offender(law: Law, view: View, key: Sequence[str]) -> pa.Table:
    """Find all rows that break a law, in stream order, with all their columns and the time they are held against.

    Args:
        law: one that has a governor.
        view: the rows, and what went before.
        key: columns by which the stream is numbered; () is stream-wide.
    """
    columns = tuple(view.schema.names)
    against = HELD_AGAINST if HELD_AGAINST not in columns else f"{HELD_AGAINST}_"
    bound = f"{law.newest_of(law.value)} AS `{BOUND}`"
    bad = f"SELECT * FROM (SELECT *, {bound} FROM {ROWS}) WHERE `{JUDGED}` AND {law.is_broken()}"  # noqa: S608 - names are quoted
    names = ", ".join([*(quoted(name) for name in columns), f"`{BOUND}` AS {quoted(against)}"])
    ranks = ", ".join(["`arrival`", *(quoted(name) for name in key), "`place`"])
    return view.ask(f"SELECT {names} FROM ({bad}) ORDER BY {ranks} LIMIT {KEPT}", columns)  # noqa: S608 - as above


def all_of(view: View, key: Sequence[str], found: Sequence[tuple[Any, ...]]) -> pa.Table:
    """Give some rows with all their columns, in stream order; `found` as `shown` has it."""
    wanted = {_as_told(each) for each in found}
    arrivals = sorted({int(at) for at, *_ in found})
    parts = [view.whole(arrivals[place : place + AT_ONCE]) for place in range(0, len(arrivals), AT_ONCE)]
    rows = pa.concat_tables(parts, promote_options="permissive")
    told = plain_rows(rows.select(list(dict.fromkeys(("arrival", "place", *key)))))
    kept = rows.filter(pa.array([_told_apart(row, key) in wanted for row in told], pa.bool_()))
    return kept.sort_by([(name, "ascending") for name in ("arrival", *key, "place")])


def _query(law: Law, columns: Sequence[str], key: Sequence[str]) -> str:
    """Number the rows in stream order, and keep those that break the law and the ones around them."""
    bound = f"{law.newest_of(law.value)} AS `{BOUND}`, {law.newest_of(law.governor)} AS `{GOVERNED}`"
    bad = f"SELECT *, `{JUDGED}` AND {law.is_broken()} AS `{BAD}` FROM (SELECT *, {bound} FROM {ROWS})"  # noqa: S608 - names are quoted
    return _numbered(bad, (*columns, GOVERNED), key)


def _numbered(bad: str, columns: Sequence[str], key: Sequence[str]) -> str:
    """Number rows of which some are bad in stream order, and keep those and the ones around them."""
    by = f"PARTITION BY {', '.join(quoted(name) for name in key)} " if key else ""
    order = f"{by}ORDER BY `arrival`, `place`"
    near = f"MAX(`{BAD}`) OVER ({order} ROWS BETWEEN {AFTER} PRECEDING AND {BEFORE} FOLLOWING) AS `{NEAR}`"
    numbered = f"SELECT *, ROW_NUMBER() OVER ({order}) AS `{POSITION}`, {near} FROM ({bad})"  # noqa: S608 - as above
    shown = ", ".join(quoted(name) for name in (*columns, BAD, POSITION))
    ranks = ", ".join(["`arrival`", *(quoted(name) for name in key), f"`{POSITION}`"])
    most = MOST * (BEFORE + 1 + AFTER)
    return f"SELECT {shown} FROM ({numbered}) WHERE `{NEAR}` ORDER BY {ranks} LIMIT {most}"  # noqa: S608 - as above


def shown(view: View, key: Sequence[str], found: Sequence[tuple[Any, ...]]) -> tuple[dict[str, Any], ...]:
    """Give the first of some rows among those around them, as `offenders` gives them, held against nothing.

    Args:
        view: the rows.
        key: columns by which the table is numbered.
        found: of each row its arrival in ticks, its place and its key.
    """
    wanted = set(found[:MOST])
    # What landed has no commit.
    there = set(view.schema.names)
    columns = tuple(name for name in dict.fromkeys((*IDENTITY, *key)) if name in there)
    near = view.ask(_near(wanted, columns, key), columns)
    whole = _whole(view, near, key)
    rows = [{**whole[_identity(row, key)], **row} for row in plain_rows(near)]
    places = {_place(row, key): row for row in rows}
    bad = [row for row in rows if row[BAD] and _told_apart(row, key) in {_as_told(each) for each in wanted}]
    return tuple(_with_context(row, places, key) for row in bad[:MOST])


def _near(wanted: Iterable[tuple[Any, ...]], columns: Sequence[str], key: Sequence[str]) -> str:
    is_wanted = " OR ".join(
        f"(UNIX_MICROS(`arrival`) = {int(at)} AND `place` = {int(place)})" for at, place, *_ in sorted(wanted, key=str)
    )
    return _numbered(f"SELECT *, `{JUDGED}` AND ({is_wanted}) AS `{BAD}` FROM {ROWS}", columns, key)  # noqa: S608 - numbers


def _told_apart(row: Mapping[str, Any], key: Sequence[str]) -> tuple[Any, ...]:
    return (row["arrival"], row["place"], *(row[name] for name in key))


def _as_told(found: tuple[Any, ...]) -> tuple[Any, ...]:
    at, place, *key = found
    return (instant(at), place, *key)


def _whole(view: View, found: pa.Table, key: Sequence[str]) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Look up all columns of rows, by what tells them apart."""
    ticks = found["arrival"].cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    rows = view.whole(ticks.unique().to_pylist())
    # Of rows before the span nothing is known but what binds.
    before = [] if view.before is None else plain_rows(view.before)
    return {_identity(row, key): row for row in (*plain_rows(rows), *before)}


def _identity(row: Mapping[str, Any], key: Sequence[str]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in (*IDENTITY, *key))


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
    return _told(row) | {"governed_by": row.get(GOVERNED), "around": around}


def _told(row: Mapping[str, Any]) -> dict[str, Any]:
    """Give a row's columns; one that is called as what stands beside them is told under another name."""
    told = {name: value for name, value in row.items() if name not in {GOVERNED, BAD, POSITION, JUDGED}}
    return {f"{name}_" if name in CONTEXT else name: value for name, value in told.items()}


def plain_rows(rows: pa.Table) -> list[dict[str, Any]]:
    """Turn rows into what JSON holds: instants and days as text, nested values as JSON in a text; a governor stays."""
    columns = {name: _plain(rows[name]) for name in rows.column_names if name != GOVERNED}
    if GOVERNED in rows.column_names:
        columns[GOVERNED] = _governors(rows[GOVERNED].combine_chunks())
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _governors(found: pa.StructArray) -> list[dict[str, Any] | None]:
    kind = found.type
    fields = {field.name: _plain(pc.struct_field(found, field.name)) for field in kind}
    rows = [dict(zip(fields, values, strict=True)) for values in zip(*fields.values(), strict=True)]
    return [row if is_there else None for row, is_there in zip(rows, found.is_valid().to_pylist(), strict=True)]


def _plain(values: pa.ChunkedArray | pa.Array) -> list[Any]:
    kind = values.type
    if pa.types.is_timestamp(kind) and kind.tz:
        ticks = values.cast(pa.timestamp("us", "UTC"), safe=False).cast(pa.int64())
        return [instant(tick) for tick in ticks.to_pylist()]
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_time(kind):
        # As text: Python has no years beyond 9999.
        return values.cast(pa.string()).to_pylist()  # type: ignore[no-any-return]
    if pa.types.is_nested(kind):
        return [None if value is None else json.dumps(value, default=str) for value in values.to_pylist()]
    return [_value(value) for value in values.to_pylist()]


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
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dt.timedelta | Decimal):
        return str(value)
    return value
