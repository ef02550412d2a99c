"""The flights' times are the instants they were, on the days of the changes too."""

from __future__ import annotations

import csv
import datetime as dt
import io
import zipfile
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pipelines.engine import flights
from pipelines.engine.columns import ticks
from pipelines.engine.localtime import local_from_utc, utc_from_local
from pipelines.operators.rows import NULL

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
