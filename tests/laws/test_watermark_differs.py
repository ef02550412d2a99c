"""What the pages of the operators say of Spark's own watermark holds: Spark runs here, over the rows of their cases."""

from __future__ import annotations

import csv
import datetime as dt
import json
import time
from io import StringIO
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from docs.diagrams.cases import FOLDER, read
from tests.laws.trials import trial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from tests.conftest import LentSpark

Row = tuple[str, str]
"""A pump, and when it measured."""
SILENCE = 1.5
"""Seconds of wall time: some fifteen triggers."""


@pytest.fixture
def session(spark: LentSpark) -> Iterator[SparkSession]:
    """Give Spark with one partition of state: rows are few."""
    found = spark.session()
    before = found.conf.get("spark.sql.shuffle.partitions", "4") or "4"
    found.conf.set("spark.sql.shuffle.partitions", "1")
    yield found
    found.conf.set("spark.sql.shuffle.partitions", before)


class Minutes:
    """A query that counts rows by minute and pump, behind a watermark of ten seconds; it runs every 100 ms."""

    def __init__(self, session: SparkSession, base: Path, folders: Sequence[str]) -> None:
        """Start it over folders, each with a watermark of its own."""
        from pyspark.sql import functions as sql

        self._base, self._files = base, 0
        self.closed: set[tuple[str, str, int]] = set()
        """Minute, pump and count of what was emitted."""
        rows = self._rows(session, folders[0])
        for folder in folders[1:]:
            rows = rows.union(self._rows(session, folder))
        counted = rows.groupBy(sql.window("measured", "1 minute"), "pump").count()
        counted = counted.select(sql.date_format("window.start", "HH:mm").alias("minute"), "pump", "count")
        writer = counted.writeStream.outputMode("append").option("checkpointLocation", str(base / "checkpoint"))
        self.query: StreamingQuery = writer.foreachBatch(self._take).trigger(processingTime="100 milliseconds").start()

    def _rows(self, session: SparkSession, folder: str) -> DataFrame:
        (self._base / folder).mkdir()
        read = session.readStream.schema("pump string, measured timestamp")
        return read.csv(str(self._base / folder)).withWatermark("measured", "10 seconds")

    def _take(self, frame: DataFrame, _: int) -> None:
        self.closed |= {(row["minute"], row["pump"], row["count"]) for row in frame.collect()}

    def give(self, folder: str, rows: Sequence[Row]) -> None:
        """Let rows arrive together, and wait until Spark has nothing left to do."""
        self._files += 1
        hidden = self._base / f"{self._files}.csv"
        hidden.write_text("".join(f"{pump},{measured}\n" for pump, measured in rows))
        hidden.rename(self._base / folder / hidden.name)
        self.query.processAllAvailable()

    @property
    def progress(self) -> list[dict[str, Any]]:
        """Give what Spark says of each micro-batch that looked at the watermark."""
        found = [json.loads(each.json) for each in self.query.recentProgress]
        return [each for each in found if "eventTime" in each]

    @property
    def watermark(self) -> str:
        """Give the newest watermark."""
        return str(self.progress[-1]["eventTime"]["watermark"])

    @property
    def dropped(self) -> int:
        """Count the rows that were dropped as late."""
        return sum(state["numRowsDroppedByWatermark"] for each in self.progress for state in each["stateOperators"])


@pytest.fixture
def counting(session: SparkSession, tmp_path: Path) -> Iterator[Callable[..., Minutes]]:
    """Start queries, and stop them behind the test."""
    started: list[Minutes] = []

    def start(*folders: str) -> Minutes:
        started.append(Minutes(session, tmp_path, folders))
        return started[-1]

    yield start
    for each in started:
        each.query.stop()


def rows_of(case: str) -> list[Row]:
    """Give the rows of a case that have a readable time, in order of arrival."""
    rows = list(csv.DictReader(StringIO(read(FOLDER / f"{case}.yaml").files["readings.csv"])))
    rows.sort(key=lambda row: row["received"])
    return [(row["pump"], row["measured"]) for row in rows if row["measured"][:1].isdigit()]


@pytest.mark.exhaustive
def test_a_watermark_waits_for_rows_is_one_for_all_keys_and_believes_every_year(
    counting: Callable[..., Minutes],
) -> None:
    rows = rows_of("heartbeat-silence")
    (poison,) = (row for row in rows_of("heartbeat-bad-input") if row[1].startswith("9999"))
    minutes = counting("in")

    minutes.give("in", rows[:3])
    time.sleep(SILENCE)
    assert (minutes.watermark, minutes.closed) == ("2026-03-02T08:00:40.000Z", set())

    assert rows[3] == ("north", "2026-03-02 08:01:40")
    minutes.give("in", rows[3:4])
    assert minutes.watermark == "2026-03-02T08:01:30.000Z"
    assert minutes.closed == {("08:00", "south", 2), ("08:00", "north", 1)}

    minutes.give("in", [poison])
    minutes.give("in", rows[4:])
    assert minutes.watermark == "9999-12-31T23:59:49.000Z"
    assert minutes.dropped == len(rows[4:]) == 2


def test_the_watermark_of_a_union_waits_for_the_silent_side(counting: Callable[..., Minutes]) -> None:
    rows = rows_of("merge-silent-port")
    back = rows.index(("south", "2026-03-02 08:01:15"))
    minutes = counting("north", "south")

    minutes.give("south", [row for row in rows[:back] if row[0] == "south"])
    minutes.give("north", [row for row in rows[:back] if row[0] == "north"])
    time.sleep(SILENCE)
    assert (minutes.watermark, minutes.closed) == ("2026-03-02T08:00:10.000Z", set())

    minutes.give("south", rows[back : back + 1])
    assert minutes.watermark == "2026-03-02T08:01:05.000Z"
    assert minutes.closed == {("08:00", "south", 1), ("08:00", "north", 2)}


COUNTED = """\
flow: counted
sources:
  readings: {feed: {parquet: readings.parquet}, key: pump, time: measured, arrival: received}
streams:
  punctual: {advance_time: readings, every: {events: 1}, delay: 10s, late: drop}
  minutes: {window: punctual, size: 1m, group: pump, measures: {count: count}}
"""
EIGHT = dt.datetime(2026, 3, 2, 8, tzinfo=dt.UTC)
GIVEN = ((5, 50), (20,), (80,), (30, 140))
"""Seconds past eight, in the order in which they arrive, those together that may: 20 and 30 are late."""
LATE = tuple(at for together in GIVEN for at in together)


def counted(folder: Path) -> tuple[set[tuple[str, str, int]], list[int]]:
    """Give what our windows count, as `Minutes` has it, and the seconds of the rows that were dropped."""
    measured = [EIGHT + dt.timedelta(seconds=at) for at in LATE]
    received = [EIGHT + dt.timedelta(minutes=10, seconds=place) for place in range(len(LATE))]
    columns = {"pump": pa.array(["north"] * len(LATE)), "measured": measured, "received": received}
    here = trial(folder, COUNTED, {"readings": pa.table(columns)})
    here.ran("run", [(microseconds(EIGHT), microseconds(EIGHT + dt.timedelta(hours=1)))])
    rows = [row for row in here.table("run", "minutes").to_pylist() if row["kind"] == "data"]
    dropped = [line["event_time"] for line in here.table("run", "ledger").to_pylist() if line["reason"] == "late"]
    told = {(row["event_time"].strftime("%H:%M"), row["pump"], row["count"]) for row in rows}
    return told, [int((at - EIGHT).total_seconds()) for at in dropped]


def microseconds(moment: dt.datetime) -> int:
    return int(moment.timestamp()) * 1_000_000


def test_a_watermark_counts_late_rows_while_their_window_is_open_where_a_promise_binds_each_event(
    counting: Callable[..., Minutes], tmp_path: Path
) -> None:
    minutes = counting("in")
    for together in GIVEN:
        measured = [EIGHT + dt.timedelta(seconds=at) for at in together]
        minutes.give("in", [("north", at.strftime("%Y-%m-%d %H:%M:%S")) for at in measured])
    assert minutes.closed == {("08:00", "north", 3), ("08:01", "north", 1)}
    assert minutes.dropped == 1

    ours, dropped = counted(tmp_path / "ours")
    assert ours == {("08:00", "north", 2), ("08:01", "north", 1)}
    assert dropped == [20, 30]
