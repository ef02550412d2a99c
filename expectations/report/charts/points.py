"""Rows as the charts see them: arrays of instants, and one colour a key."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from expectations.report.facts import STREAM_COLUMNS
from pipelines.operators.rows import MAX_TIME, NULL

if TYPE_CHECKING:
    from expectations.report.charts.scales import Floats
    from expectations.report.facts import Picture, ReportFacts
    from pipelines.operators.rows import Longs

COLOURS = 8
OTHER = COLOURS


@dataclass(frozen=True, kw_only=True)
class Points:
    """Rows of one sort, in stream order."""

    arrival: Longs
    event_time: Longs
    landed_at: Longs
    key: Longs
    """Place of the row's key among the coloured ones; `OTHER` for the rest."""
    table: pa.Table

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.arrival)

    @property
    def lateness(self) -> Longs:
        """Give how long after its event time a row came in here."""
        return self.arrival - self.event_time

    def where(self, chosen: npt.NDArray[np.bool_] | Longs) -> Points:
        """Keep the chosen rows, by mask or by index."""
        index = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
        columns = (self.arrival, self.event_time, self.landed_at, self.key)
        arrival, event_time, landed_at, key = (column[index] for column in columns)
        table = self.table.take(pa.array(index))
        return Points(arrival=arrival, event_time=event_time, landed_at=landed_at, key=key, table=table)


@dataclass(frozen=True, kw_only=True)
class ChartScene:
    """Everything that the charts draw, sorted by what it is."""

    keys: tuple[str, ...]
    """Names of the coloured keys, in their order; one nameless key where nothing colours the rows."""
    others: int
    """How many keys share the colour of the rest."""
    came: Points
    """Events of the stream, those without an event time too."""
    data: Points
    side: Points
    """Events that the stream set aside, and those that it dropped as late."""
    gone: str
    """What became of these: `set aside`, `dropped`, or either."""
    timers: Points
    ctis: Points
    untimed: int
    """Rows that have no event time and cannot be drawn."""


def scene(facts: ReportFacts, picture: Picture) -> ChartScene:
    """Sort the rows of the pictured stream, of what was set aside from it, and of what it dropped as late."""
    main = facts.stream(picture.stream).rows
    aside = facts.stream(picture.side).rows if picture.side else main.slice(0, 0)
    dropped = _dropped(facts, picture)
    side = pa.concat_tables([_drawn(aside, picture), dropped])
    keys, others = _coloured(main, side, picture.key)
    kinds = main["kind"]
    data, gone = (_events(rows, keys, picture.key) for rows in (main, side))
    timed = [points.where(points.event_time != NULL) for points in (data, gone)]
    ctis = _points(main.filter(pc.equal(kinds, "cti")), keys, picture.key)
    return ChartScene(
        keys=keys,
        others=others,
        came=data,
        data=timed[0],
        side=timed[1],
        gone=_what_became(aside, dropped),
        timers=_points(main.filter(pc.equal(kinds, "timer")), keys, picture.key),
        ctis=ctis.where(ctis.event_time <= MAX_TIME),
        untimed=len(data) + len(gone) - len(timed[0]) - len(timed[1]),
    )


def _what_became(aside: pa.Table, dropped: pa.Table) -> str:
    words = [word for word, rows in (("set aside", aside), ("dropped", dropped)) if rows.num_rows]
    return " or ".join(words) or "set aside"


def _drawn(rows: pa.Table, picture: Picture) -> pa.Table:
    """Give what is drawn and told of rows, the key and the payload as texts."""
    told = {name: _names(rows, name) for name in _told(picture)}
    return pa.table({**{name: rows[name] for name in STREAM_COLUMNS}, **told})


def _dropped(facts: ReportFacts, picture: Picture) -> pa.Table:
    """Give the same of the rows that the pictured stream dropped as late: the ledger has them."""
    lines = facts.late_and_dropped.filter(pc.field("stream") == picture.stream)
    rows = [json.loads(row) for row in lines["row"].to_pylist()]
    told = {name: pa.array([_text(row.get(name)) for row in rows], pa.string()) for name in _told(picture)}
    return pa.table({**{name: lines[name] for name in STREAM_COLUMNS}, **told})


def _told(picture: Picture) -> list[str]:
    return list(dict.fromkeys([*([picture.key] if picture.key else []), *picture.tell]))


def _text(value: object) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _events(rows: pa.Table, keys: tuple[str, ...], key: str | None) -> Points:
    return _points(rows.filter(pc.is_in(rows["kind"], pa.array(["data", "start"]))), keys, key)


def _names(rows: pa.Table, key: str | None) -> pa.ChunkedArray | pa.Array:
    if key is None or key not in rows.column_names:
        return pa.array([""] * rows.num_rows, pa.string())
    column = rows[key]
    return column if pa.types.is_string(column.type) else column.cast(pa.string())


def _coloured(main: pa.Table, side: pa.Table, key: str | None) -> tuple[tuple[str, ...], int]:
    """Choose the keys with a colour of their own: those with the most rows, then in the order of their names."""
    totals: dict[str, int] = {}
    for rows in (main, side):
        for pair in _names(rows, key).value_counts().to_pylist():
            if pair["values"] is not None:
                totals[pair["values"]] = totals.get(pair["values"], 0) + pair["counts"]
    ranked = sorted(totals, key=lambda name: (-totals[name], name))
    return tuple(sorted(ranked[:COLOURS])), max(0, len(ranked) - COLOURS)


def _points(rows: pa.Table, keys: tuple[str, ...], key: str | None) -> Points:
    place = pc.index_in(_names(rows, key), pa.array(keys, pa.string()))
    return Points(
        arrival=_ticks(rows["arrival"]),
        event_time=_ticks(rows["event_time"]),
        landed_at=_ticks(rows["landed_at"]),
        key=np.asarray(pc.fill_null(place, OTHER), dtype=np.int64),
        table=rows,
    )


def _ticks(column: pa.ChunkedArray) -> Longs:
    return np.asarray(pc.fill_null(column.cast(pa.int64()), NULL), dtype=np.int64)


CELL = 14.0
POWERS = tuple(step / 40 for step in range(40, -1, -1))


def thinned(x: Floats, y: Floats, most: int) -> Longs:
    """Give the rows to draw: all, or, where there are more than `most`, fewer of the crowded ones.

    The plot is cut into cells, and of n rows in a cell the power of n that fits is kept, evenly taken in stream order:
    lone rows stay, and what was denser still looks denser. Safe because the choice depends on positions alone.

    Args:
        x: positions across, in pixels.
        y: positions down, in pixels.
        most: rows to keep at most, above 0; when more cells than that are occupied, cells grow.

    Returns:
        Indexes in rising order.
    """
    if len(x) <= most:
        return np.arange(len(x), dtype=np.int64)
    size, (cell, counts) = CELL, _cells(x, y, CELL)
    while len(counts) > most:
        size *= 1.5
        cell, counts = _cells(x, y, size)
    kept = next(fit for power in POWERS if (fit := _fitting(counts, power)).sum() <= most)
    order = np.argsort(cell, kind="stable")
    rank = np.arange(len(x)) - np.repeat(np.cumsum(counts) - counts, counts)
    share, whole = kept[cell[order]], counts[cell[order]]
    return np.sort(order[rank * share // whole != (rank - 1) * share // whole]).astype(np.int64)


def _fitting(counts: Longs, power: float) -> Longs:
    kept: Longs = np.ceil(counts**power - 1e-9).astype(np.int64)
    return kept


def _cells(x: Floats, y: Floats, size: float) -> tuple[Longs, Longs]:
    """Number the occupied cells; give the cell of each row and the rows of each cell."""
    place = np.floor(y / size).astype(np.int64) * 1_000_000 + np.floor(x / size).astype(np.int64)
    _, cell, counts = np.unique(place, return_inverse=True, return_counts=True)
    return cell.astype(np.int64), counts.astype(np.int64)
