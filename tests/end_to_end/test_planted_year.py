"""A year of flights with twelve faults of twelve kinds: each is found where it was planted, and nothing else is."""

from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from pipelines.engine.sources.nycflights import departures

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(3_600)]

CHECKOUT = Path(__file__).parents[2]

YEAR = """\
flow: year
every: 1d
buckets: 1
sources:
  flights:
    feed: {parquet: flights.parquet}
    key: origin
    time: scheduled
    arrival: departed
    expect:
      - expect_column_values_to_be_between: {column: dep_delay, max_value: 1500}
        severity: warning
      - expect_column_values_to_not_be_null: {column: carrier}
        severity: warning
      - expect_column_values_to_be_in_set: {column: dest, value_set: [DESTINATIONS]}
        severity: warning
      - expect_column_values_to_match_regex: {column: tailnum, regex: '^[A-Z0-9]{5,6}$'}
        severity: warning
      - expect_compound_columns_to_be_unique: {column_list: [carrier, flight, origin, scheduled]}
        severity: warning
      - expect_column_pair_values_a_to_be_greater_than_b: {column_A: scheduled_arrival, column_B: scheduled}
        severity: warning
streams:
  beating: {heartbeat: flights, interval: 1h}
  ordered: {merge: beating, ports_by: {origin: [EWR, JFK, LGA]}}
  punctual: {advance_time: ordered, every: {events: 50}, delay: 2h, late: divert}
"""
FIRST = dt.date(2013, 1, 1)
SHOWN = 20
"""Rows that a check tells of an expectation."""

VALUES: dict[str, tuple[dt.date, dict[str, Any]]] = {
    "expect_column_values_to_be_between(dep_delay)": (dt.date(2013, 2, 5), {"dep_delay": 99_999}),
    "expect_column_values_to_not_be_null(carrier)": (dt.date(2013, 3, 6), {"carrier": None}),
    "expect_column_values_to_be_in_set(dest)": (dt.date(2013, 4, 9), {"dest": "ZZZ"}),
    "expect_column_values_to_match_regex(tailnum)": (dt.date(2013, 5, 8), {"tailnum": "n-1"}),
    "expect_column_pair_values_a_to_be_greater_than_b(scheduled_arrival, scheduled)": (
        dt.date(2013, 6, 5),
        {"scheduled_arrival": dt.datetime(2013, 6, 4, 1, tzinfo=dt.UTC)},
    ),
}
"""Changes of one row, by the expectation that must find it."""
TWICE, NONE, THRICE, UNKNOWN, SILENT, LATE, CHANGED = (dt.date(2013, month, 13) for month in (7, 8, 9, 10, 11, 12, 4))
"""Days of one row twice, of no row, of three times the rows, of no flying times, of an airport without a row, of rows
that say that they are hours older, and of a value that was changed after it was published."""


def of_day(table: pa.Table, day: dt.date) -> np.ndarray:
    """Give the places of the rows that arrive on a day."""
    return np.flatnonzero(table["departed"].cast(pa.date32()).to_numpy() == np.datetime64(day))


def changed(table: pa.Table, places: np.ndarray, name: str, values: pa.Array) -> pa.Table:
    """Give a table with other values at some places of a column."""
    mask = np.zeros(table.num_rows, dtype=bool)
    mask[places] = True
    column = pc.replace_with_mask(table[name].combine_chunks(), pa.array(mask), values)
    return table.set_column(table.schema.get_field_index(name), table.schema.field(name), column)


def planted() -> tuple[pa.Table, dict[str, dict[str, Any]]]:
    """Give the year with its faults, and the row with each that is one row's, by the expectation that must find it."""
    table, rows = departures(), {}
    for expectation, (day, values) in VALUES.items():
        place = of_day(table, day)[[100]]
        for name, value in values.items():
            table = changed(table, place, name, pa.array([value], table.schema.field(name).type))
        rows[expectation] = table.take(place).to_pylist()[0]
    unknown = of_day(table, UNKNOWN)
    table = changed(table, unknown, "air_time", pa.nulls(len(unknown), pa.int64()))
    late = of_day(table, LATE)[::4]
    older = pc.subtract(table["scheduled"].take(late), pa.scalar(dt.timedelta(hours=9))).combine_chunks()
    table = changed(table, late, "scheduled", older)
    keep = np.ones(table.num_rows, dtype=bool)
    keep[of_day(table, NONE)] = False
    silent = of_day(table, SILENT)
    keep[silent[np.array(pc.equal(table["origin"].take(silent), "LGA"))]] = False
    more = table.take(np.tile(of_day(table, THRICE), 2))
    more = changed(more, np.arange(more.num_rows), "flight", pa.array(np.arange(more.num_rows) + 10_000))
    once = table.take(of_day(table, TWICE)[[100]])
    rows["expect_compound_columns_to_be_unique(carrier, flight, origin, scheduled)"] = once.to_pylist()[0]
    return pa.concat_tables([table.filter(pa.array(keep)), more, once]), rows


def number_of(day: dt.date) -> int:
    """Give the commit of a day."""
    return (day - FIRST).days + 1


def change_a_published_value(root: Path) -> None:
    """Write the file of a published day again, with one distance a mile longer."""
    rows = DeltaTable(root / "streams" / "punctual").to_pyarrow_dataset()
    day = pc.field("commit") == number_of(CHANGED)
    (found,) = (each for each in rows.get_fragments() if each.count_rows(filter=day))
    path = root / "streams" / "punctual" / found.path
    with pq.ParquetFile(path) as file:
        groups = [file.read_row_group(number) for number in range(file.num_row_groups)]
    with pq.ParquetWriter(path, groups[0].schema) as writer:
        for group in groups:
            mine = np.flatnonzero(group["commit"].to_numpy() == number_of(CHANGED))
            known = mine[np.array(pc.is_valid(group["distance"].take(mine)), dtype=bool)][:1]
            longer = pc.add(group["distance"].take(known), 1).combine_chunks()
            writer.write_table(changed(group, known, "distance", longer) if len(known) else group)


def breaches(folder: Path, table: pa.Table, *, change: bool = False) -> dict[str, list[dict[str, Any]]]:
    """Run a year and check it; give the rows that break each expectation which does not hold."""
    folder.mkdir()
    pq.write_table(table, folder / "flights.parquet")
    flow = folder / "year.yaml"
    destinations = sorted(set(departures()["dest"].to_pylist()))
    flow.write_text(YEAR.replace("DESTINATIONS", ", ".join(destinations)))
    settings = {"PULSELINE_HOME": str(folder / "home"), "PULSELINE_CONFIG": str(CHECKOUT / "config")}

    def said(*words: str) -> str:
        command = [sys.executable, "-m", "pipelines.cli", *words]
        done = subprocess.run(
            command, cwd=CHECKOUT, env={**os.environ, **settings}, capture_output=True, text=True, check=False
        )
        assert done.returncode in {0, 1}, done.stderr
        return done.stdout

    said("run", str(flow), "--engine", "core", "--start", "2013-01-01", "--end", "2014-01-01")
    if change:
        change_a_published_value(folder / "home" / "year" / "main")
    told = [json.loads(line) for line in said("check", str(flow), "--json").splitlines()]
    broken = {each["expectation"]: each for each in told if "expectation" in each and not each["held"]}
    assert all(len(each["rows"]) < SHOWN for each in broken.values()), "a check shows all of them"
    return {name: each["rows"] for name, each in broken.items()}


def test_each_fault_is_found_by_its_expectation_on_its_day_and_nothing_else_is(tmp_path: Path) -> None:
    """What the year breaks as it is, on holidays and in snow, it breaks in the copy too."""
    table, rows = planted()
    calm, found = breaches(tmp_path / "calm", departures()), breaches(tmp_path / "planted", table, change=True)

    assert not set(calm) - {"usual_volume", "usual_nulls", "usual_late", "usual_left_out", "usual_ledger", "usual_held"}
    for expectation, row in rows.items():
        faults = found.pop(expectation)
        assert len(faults) == (2 if "unique" in expectation else 1)
        for name, value in row.items():
            assert all(plain(fault[name]) == plain(value) for fault in faults), (expectation, name)
    more = {name: told(breaks) - told(calm.get(name, [])) for name, breaks in found.items()}
    assert {name: sorted(days) for name, days in more.items()} == {
        "rows_land": [(number_of(NONE), None)],
        "usual_volume": [(number_of(THRICE), None)],
        "usual_nulls": [(number_of(UNKNOWN), "air_time")],
        "keys_speak": [(number_of(SILENT), "LGA")],
        "usual_late": [(number_of(LATE), "late")],
        "as_published": [(number_of(CHANGED), None)],
    }


def told(breaks: list[dict[str, Any]]) -> set[tuple[int, str | None]]:
    """Give the commits that break an expectation, each with the key, the column or the reason that it is about."""
    return {(each["commit"], each.get("origin") or each.get("column") or each.get("reason")) for each in breaks}


def plain(value: object) -> object:
    """Give an instant as checks tell it."""
    return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ") if isinstance(value, dt.datetime) else value
