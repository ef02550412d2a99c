"""The flights' times are the instants they were, on the days of the changes too."""

from __future__ import annotations

import csv
import datetime as dt
import io
import zipfile
from collections import Counter
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pipelines.engine.columnar.columns import ticks
from pipelines.engine.columnar.local_times import local_from_utc, utc_from_local
from pipelines.engine.landing.index import land_interval
from pipelines.engine.sources import nycflights as flights
from pipelines.engine.sources.catalog import open_recorded
from pipelines.flows.reading import read_flow
from pipelines.operators.rows import NULL

if TYPE_CHECKING:
    from pathlib import Path

NEW_YORK = ZoneInfo("America/New_York")
MINUTE = 60_000_000


def instant(*parts: int) -> int:
    return (dt.datetime(*parts, tzinfo=dt.UTC) - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)  # type: ignore[misc,arg-type]


def day(month: int, number: int, days: int = 1) -> tuple[int, int]:
    first = dt.datetime(2013, month, number, tzinfo=NEW_YORK)
    last = (dt.datetime(2013, month, number) + dt.timedelta(days=days)).replace(tzinfo=NEW_YORK)  # noqa: DTZ001
    return instant(*first.astimezone(dt.UTC).timetuple()[:6]), instant(*last.astimezone(dt.UTC).timetuple()[:6])


def within(table: pa.Table, column: str, span: tuple[int, int]) -> pa.Table:
    values = ticks(table[column].combine_chunks())
    return table.filter(pa.array((values >= span[0]) & (values < span[1])))


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return flights.departures()


@pytest.fixture(scope="module")
def weather() -> pa.Table:
    return flights.weather_edges()


@pytest.fixture(scope="module")
def moves() -> pa.Table:
    return flights.movements()


def test_columns_are_known_before_anything_is_read_and_are_those_that_are_read(
    table: pa.Table, weather: pa.Table, moves: pa.Table
) -> None:
    read = {"nycflights13.departures": table, "nycflights13.weather": weather, "nycflights13.movements": moves}
    assert {name: rows.schema for name, rows in read.items()} == flights.SCHEMAS
    assert set(flights.SCHEMAS) == set(flights.BUILT_IN)


def test_the_week_has_its_known_figures(table: pa.Table) -> None:
    scheduled = within(table, "scheduled", day(1, 1, 7))
    assert table.num_rows == 336_776
    assert within(table, "departed", day(1, 1, 7)).num_rows == 6_063
    assert scheduled.num_rows == 6_099
    assert scheduled["departed"].null_count == 35
    assert table["departed"].null_count == 336_776 - 328_521


@pytest.mark.parametrize(("month", "number", "hours"), [(3, 10, 23), (11, 3, 25), (3, 11, 24)])
def test_days_of_a_change_hold_their_own_flights(table: pa.Table, month: int, number: int, hours: int) -> None:
    span = day(month, number)
    assert (span[1] - span[0]) // (60 * MINUTE) == hours
    with zipfile.ZipFile(flights.data_folder() / "flights.csv.zip") as archive, archive.open("flights.csv") as file:
        rows = [
            row
            for row in csv.DictReader(io.TextIOWrapper(file))
            if (row["month"], row["day"]) == (str(month), str(number))
        ]
    assert within(table, "scheduled", span).num_rows == len(rows)


def test_every_departure_shows_the_packages_own_clock(table: pa.Table) -> None:
    with zipfile.ZipFile(flights.data_folder() / "flights.csv.zip") as archive, archive.open("flights.csv") as file:
        rows = list(csv.DictReader(io.TextIOWrapper(file)))
    for column, digits in (("scheduled", "sched_dep_time"), ("departed", "dep_time")):
        shown = local_from_utc(ticks(table[column].combine_chunks()), "America/New_York") // MINUTE % (24 * 60)
        wanted = np.array([-1 if row[digits] in {"", "NA"} else int(row[digits]) for row in rows])
        left = wanted >= 0
        assert left.sum() == table.num_rows - table[column].null_count
        assert (shown[left] == (wanted[left] // 100 * 60 + wanted[left] % 100) % (24 * 60)).all()


def test_flights_that_left_at_2400_left_at_midnight(table: pa.Table) -> None:
    shown = local_from_utc(ticks(table["departed"].combine_chunks()), "America/New_York")
    assert ((shown != NULL) & (shown % (24 * 60 * MINUTE) == 0)).sum() == 29


def test_arrivals_are_told_on_the_destinations_clock(table: pa.Table) -> None:
    first = table.slice(0, 1).to_pylist()[0]
    assert (first["dest"], first["scheduled"]) == ("IAH", dt.datetime(2013, 1, 1, 10, 15, tzinfo=dt.UTC))
    assert first["scheduled_arrival"] == dt.datetime(2013, 1, 1, 14, 19, tzinfo=dt.UTC)
    assert first["arrived"] == dt.datetime(2013, 1, 1, 14, 30, tzinfo=dt.UTC)
    minutes = pc.minutes_between(table["scheduled"], table["scheduled_arrival"])
    assert pc.min_max(minutes).as_py() == {"min": 50, "max": 700}


def test_the_weather_is_hourly() -> None:
    table = flights.weather()
    assert table.num_rows == 26_115
    assert table.column_names[:3] == ["origin", "measured", "temp"]
    assert table["measured"][0].as_py() == dt.datetime(2013, 1, 1, 6, tzinfo=dt.UTC)


def edges_of(feed: pa.Table, name: str, start: str) -> tuple[pa.Table, pa.Table]:
    """Give the rows that open events and those that close them, the latter beside the former's by `name`."""
    opening, closing = (feed.filter(pc.equal(feed["edge"], word)) for word in ("start", "end"))
    assert opening[name].value_counts().field("counts").unique().to_pylist() == [1]
    assert opening["until"].null_count == opening.num_rows
    assert closing["until"].equals(closing["heard"])
    where = pc.index_in(closing[name], value_set=opening[name])
    assert where.null_count == 0
    same = [column for column in feed.column_names if column not in {"edge", "until", "heard"}]
    assert closing.select(same).equals(opening.select(same).take(where))
    assert (ticks(closing["until"]) > ticks(closing[start])).all()
    return opening, closing


def test_a_reading_of_the_weather_holds_until_the_next(weather: pa.Table) -> None:
    opening, closing = edges_of(weather, "reading", "measured")
    measures = ["origin", "measured", *flights.weather().column_names[2:]]
    assert opening.sort_by("reading").select(measures).equals(flights.weather().combine_chunks())
    assert opening["heard"].equals(opening["measured"])
    for origin, readings in (("EWR", 8_703), ("JFK", 8_706), ("LGA", 8_706)):
        opens, closes = (rows.filter(pc.equal(rows["origin"], origin)) for rows in (opening, closing))
        assert (opens.num_rows, closes.num_rows) == (readings, readings - 1)
        assert closes["until"].combine_chunks().equals(opens["measured"].combine_chunks()[1:])
        assert closes["reading"].combine_chunks().equals(opens["reading"].combine_chunks()[:-1])


def test_the_weather_stands_by_instant_and_airport_the_end_of_one_reading_before_the_next(weather: pa.Table) -> None:
    assert weather.num_rows == 26_115 + 26_112
    heard, airports = ticks(weather["heard"]), weather["origin"].combine_chunks().dictionary_encode()
    assert airports.dictionary.to_pylist() == ["EWR", "JFK", "LGA"]
    opens = np.asarray(pc.equal(weather["edge"], "start"))
    order = np.lexsort((opens, np.asarray(airports.indices), heard))
    assert (order == np.arange(weather.num_rows)).all()
    assert weather["edge"].to_pylist()[:9] == ["start"] * 3 + ["end", "start"] * 3


def test_the_hour_that_comes_twice_has_two_readings(weather: pa.Table) -> None:
    span = instant(2013, 11, 3, 5), instant(2013, 11, 3, 7)
    opening = weather.filter(pc.equal(weather["edge"], "start"))
    shown = local_from_utc(ticks(within(opening, "measured", span)["measured"]), "America/New_York")
    assert (shown // MINUTE % (24 * 60)).tolist() == [60] * 6


def test_a_flight_is_a_movement_from_its_departure_to_its_arrival(table: pa.Table, moves: pa.Table) -> None:
    opening, closing = edges_of(moves, "trip", "opened")
    assert (opening.num_rows, closing.num_rows) == (336_776, 327_346)
    opening = opening.sort_by("trip")
    told = ["origin", "carrier", "flight", "tailnum", "dest", "scheduled"]
    assert opening.select(told).equals(table.select(told).combine_chunks())
    assert opening["heard"].equals(table["departed"])
    assert opening["opened"].equals(pc.coalesce(table["departed"], table["scheduled"]))
    arrived = table["arrived"].take(pc.subtract(closing["trip"], 1))
    assert closing["until"].equals(arrived)
    left_open = opening.num_rows - opening["heard"].null_count - closing.num_rows
    assert (opening["heard"].null_count, left_open) == (8_255, 458 + 717)


def test_movements_stand_by_instant_then_by_flight(moves: pa.Table) -> None:
    closes = np.asarray(pc.equal(moves["edge"], "end"))
    instants = np.where(closes, ticks(moves["until"]), ticks(moves["opened"]))
    order = np.lexsort((closes, ticks(moves["trip"]), instants))
    assert (order == np.arange(moves.num_rows)).all()


def test_the_edges_of_the_week_have_their_known_figures(weather: pa.Table, moves: pa.Table) -> None:
    week = day(1, 1, 7)
    counts = [Counter(within(feed, "heard", week)["edge"].to_pylist()) for feed in (weather, moves)]
    assert counts == [{"start": 498, "end": 495}, {"start": 6_063, "end": 5_988}]
    never = moves.filter(moves["heard"].is_null())
    assert set(never["edge"].to_pylist()) == {"start"}
    assert never["opened"].equals(never["scheduled"])
    assert within(never, "opened", week).num_rows == 35


EDGES = """
flow: edges
timezone: America/New_York
sources:
  weather:
    {feed: nycflights13.weather, key: origin, shape: edge, time: measured, end: until, arrival: heard, edge: edge,
     event_id: reading}
  movements:
    {feed: nycflights13.movements, key: origin, shape: edge, time: opened, end: until, arrival: heard, edge: edge,
     event_id: trip}
  departures:
    {feed: nycflights13.departures, key: origin, shape: interval, time: scheduled, end: scheduled_arrival,
     arrival: departed}
streams:
  promised: {advance_time: weather, every: {events: 3}, late: drop}
"""


def test_the_feeds_land_as_edges_and_as_intervals_in_their_order(
    tmp_path: Path, weather: pa.Table, moves: pa.Table
) -> None:
    (tmp_path / "edges.yaml").write_text(EDGES)
    flow = read_flow(tmp_path / "edges.yaml")
    span = day(1, 1, 2)
    sequence = land_interval(tmp_path / "landing", flow, *span, open_recorded(flow, tmp_path))
    for name, feed, start, figures in (
        ("weather", weather, "measured", {"start": 139, "end": 136}),
        ("movements", moves, "opened", {"start": 1_771, "end": 1_686}),
    ):
        came = within(feed, "heard", span)
        rows = pa.Table.from_batches(sequence.open(name)).sort_by([("arrival", "ascending"), ("place", "ascending")])
        assert Counter(rows["kind"].to_pylist()) == figures
        assert rows.select(came.column_names).equals(came.combine_chunks())
        for column, role in (("kind", "edge"), ("arrival", "heard"), ("event_time", start), ("event_end", "until")):
            assert rows[column].equals(came[role])
    lasting = pa.Table.from_batches(sequence.open("departures"))
    assert set(lasting["kind"].to_pylist()) == {"data"}
    assert (lasting.num_rows, lasting["event_end"].null_count) == (1_771, 0)
    lines = sequence.ledger_rows().to_pylist()
    assert Counter((line["source"], line["reason"], line["kind"]) for line in lines) == {
        ("movements", "no_arrival", "start"): 12,
        ("departures", "no_arrival", "data"): 12,
    }
    assert all(line["landed_at"] == line["event_time"] for line in lines)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flights, "PACKAGE", "no_such_package_of_flights")
    with pytest.raises(flights.PackageMissingError, match="no_such_package_of_flights"):
        flights.data_folder()


@pytest.mark.parametrize(
    "zone", ["America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Kathmandu", "UTC"]
)
def test_clock_faces_become_the_instants_python_gives(zone: str) -> None:
    minutes = np.arange(instant(2013, 1, 1), instant(2014, 1, 1), 30 * MINUTE)
    epoch = dt.datetime(1970, 1, 1, tzinfo=ZoneInfo(zone))
    shown = [epoch + dt.timedelta(microseconds=int(face)) for face in minutes]
    wanted = [instant(*moment.astimezone(dt.UTC).timetuple()[:6]) for moment in shown]
    assert utc_from_local(minutes, zone).tolist() == wanted
    assert utc_from_local(np.array([NULL]), zone).tolist() == [NULL]
