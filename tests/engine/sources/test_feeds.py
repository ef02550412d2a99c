"""Feeds give every row, in an order that never changes, and refuse by name what they cannot read."""

from __future__ import annotations

import datetime as dt
import os
import pickle
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pipelines.engine.columnar.columns import UNREADABLE, ticks
from pipelines.engine.landing.errors import (
    ColumnTypeError,
    FeedMissingError,
    FeedUnreadableError,
    LandingError,
    TimezoneMissingError,
)
from pipelines.engine.landing.types import instants, landed_column, landed_type
from pipelines.engine.sources.builtin import BuiltInFeed
from pipelines.engine.sources.files import find_files
from pipelines.flows.feeds.csv import CsvSpec
from pipelines.flows.feeds.parquet import ParquetSpec
from pipelines.operators.rows import NULL
from tests.engine.sources.feeds import open_feed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipelines.engine.sources.rows_feed import Feed

HEADER = "k,at,n,x,d,b\n"
TYPES = {"at": "timestamp", "n": "int64", "x": "float64", "d": "date", "b": "bool"}


def all_of(feed: Feed) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = pa.Table.from_batches(feed.read()).to_pylist()
    return rows


def csv_feed(folder: Path, text: str, **options: object) -> Feed:
    (folder / "f.csv").write_text(text)
    spec = CsvSpec(**{"paths": ("f.csv",), "types": TYPES, **options})  # type: ignore[arg-type]
    return open_feed(spec, folder)


def test_parquet_rows_come_file_by_file_as_they_stand(tmp_path: Path) -> None:
    for name, first in (("b.parquet", 0), ("a.parquet", 1_000), ("c.parquet", 2_000)):
        pq.write_table(pa.table({"v": np.arange(first, first + 1_000)[::-1]}), tmp_path / name, row_group_size=7)
    feed = open_feed(ParquetSpec(paths=("c.parquet", "*.parquet")), tmp_path)
    wanted = [value for first in (2_000, 1_000, 0) for value in range(first + 999, first - 1, -1)]
    assert [row["v"] for row in all_of(feed)] == wanted
    read = pa.Table.from_batches(feed.read(pc.field("v") >= 500), feed.schema)
    assert read["v"].to_pylist() == [value for value in wanted if value >= 500]
    assert all_of(open_feed(ParquetSpec(paths=(".",)), tmp_path)) == [
        {"v": v} for v in [*wanted[1000:2000], *wanted[2000:], *wanted[:1000]]
    ]


def test_a_feed_without_one_readable_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "b.parquet").write_text("no parquet at all")
    with pytest.raises(FeedUnreadableError, match=r"b\.parquet must be Parquet"):
        open_feed(ParquetSpec(paths=("*.parquet",)), tmp_path)


def test_a_feed_that_is_not_there_is_refused(tmp_path: Path) -> None:
    openings: list[Callable[[], Feed]] = [
        lambda: open_feed(CsvSpec(paths=("no*.csv",)), tmp_path),
        lambda: BuiltInFeed("flights.of.birds"),
    ]
    for opened in openings:
        with pytest.raises(FeedMissingError) as refused:
            opened()
        assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)
        assert isinstance(refused.value, LandingError)


def test_csv_has_its_declared_types(tmp_path: Path) -> None:
    text = HEADER + 'EWR,2013-01-01T10:00:00Z,1,0.5,2013-01-01,true\n"",2013-07-01 06:00:00.25-04:00,,NA,,\n'
    feed = csv_feed(tmp_path, text, nulls=("", "NA"))
    assert all_of(feed) == [
        {
            "k": "EWR",
            "at": dt.datetime(2013, 1, 1, 10, tzinfo=dt.UTC),
            "n": 1,
            "x": 0.5,
            "d": dt.date(2013, 1, 1),
            "b": True,
            UNREADABLE: None,
        },
        {
            "k": "",
            "at": dt.datetime(2013, 7, 1, 10, 0, 0, 250_000, tzinfo=dt.UTC),
            "n": None,
            "x": None,
            "d": None,
            "b": None,
            UNREADABLE: None,
        },
    ]


def test_csv_times_without_zone_are_those_of_the_feeds_timezone(tmp_path: Path) -> None:
    text = (
        HEADER
        + "a,2013-03-10 01:59:59,,,,\nb,2013-03-10 03:00:00,,,,\nc,2013-03-10T07:00:01Z,,,,\nd,2013-11-03 01:30,,,,\n"
    )
    feed = csv_feed(tmp_path, text, timezone="America/New_York")
    shown = [f"{row['at']:%d %H:%M:%S}" for row in all_of(feed)]
    assert shown == ["10 06:59:59", "10 07:00:00", "10 07:00:01", "03 05:30:00"]
    with pytest.raises(TimezoneMissingError, match=r"`at` has none \(2013-03-10 01:59:59\)"):
        all_of(csv_feed(tmp_path, text))


def test_csv_times_that_are_none_are_kept_as_text(tmp_path: Path) -> None:
    texts = [
        "soon",
        "2013-13-01T00:00:00Z",
        "",
        "2013-01-01T00:00:00Z",
        "99999-01-01",
        "2013-01-01",
        "0000-01-01T00:00:00Z",
    ]
    rows = all_of(csv_feed(tmp_path, HEADER + "".join(f"k,{text},,,,\n" for text in texts), timezone="UTC"))
    assert [row["at"] is None for row in rows] == [True, True, True, False, True, False, True]
    assert rows[0][UNREADABLE] == '{"at": "soon"}'
    assert [row[UNREADABLE] is None for row in rows] == [False, False, True, True, False, True, False]


def test_csv_that_is_not_as_declared_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FeedUnreadableError, match="declared column `at`"):
        csv_feed(tmp_path, "k,n\n")
    with pytest.raises(FeedUnreadableError, match="two columns are `k`"):
        csv_feed(tmp_path, "k,k,at\n")
    with pytest.raises(FeedUnreadableError, match="it is empty"):
        csv_feed(tmp_path, "", types={})


def test_a_changed_file_is_read_anew_and_has_another_fingerprint(tmp_path: Path) -> None:
    feed = csv_feed(tmp_path, HEADER + "a,,,,,\n")
    before = feed.fingerprint()
    assert feed.fingerprint() == before
    assert len(all_of(feed)) == 1
    (tmp_path / "f.csv").write_text(HEADER + "a,,,,,\nb,,,,,\n")
    assert feed.fingerprint() != before
    assert len(all_of(feed)) == 2


def test_large_csv_files_are_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.engine.sources.formats.csv_feed.HELD_BYTES", 0)
    feed = csv_feed(tmp_path, HEADER + "a,,1,,,\nb,,2,,,\n")
    assert [row["k"] for row in pa.Table.from_batches(feed.read(pc.field("n") > 1)).to_pylist()] == ["b"]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_of_any_unit_become_microseconds(unit: str) -> None:
    column = pa.array([0, -1, None], pa.int64()).cast(pa.timestamp(unit, tz="America/New_York"))
    per = {"s": 1_000_000, "ms": 1_000, "us": 1}.get(unit)
    assert instants(column, None).tolist() == [0, -(per or 1), NULL]
    assert (
        ticks(
            landed_column(column.cast(pa.timestamp(unit)), landed_type("s", "c", column.type), "America/New_York")
        ).tolist()[0]
        == 5 * 3_600_000_000
    )


def test_times_outside_the_readable_years_become_null() -> None:
    column = pa.array(
        [-62_135_596_801, -62_135_596_800, 253_402_300_799, 253_402_300_800, 2**62], pa.timestamp("s", tz="UTC")
    )
    assert [tick == NULL for tick in instants(column, None)] == [True, False, False, True, True]
    infinity = pa.array([253_402_300_799_999_998, 253_402_300_799_999_999], pa.timestamp("us", tz="UTC"))
    assert [tick == NULL for tick in instants(infinity, None)] == [False, True]


@pytest.mark.parametrize(
    "kind", [pa.uint8(), pa.time64("us"), pa.duration("s"), pa.float16(), pa.map_(pa.string(), pa.int8()), pa.null()]
)
def test_types_that_do_not_land_are_refused_by_name(kind: pa.DataType) -> None:
    for came in (kind, pa.list_(kind), pa.struct([("inner", kind)])):
        with pytest.raises(ColumnTypeError, match=r"column `c.*` of source `s` must be bool, int8.*cast it"):
            landed_type("s", "c", came)


def test_other_layouts_land_as_the_plain_ones() -> None:
    nested = pa.array([[{"t": 1}], None, []], pa.large_list(pa.struct([("t", pa.timestamp("s"))])))
    columns = {
        pa.string(): pa.array(["a", None]).dictionary_encode(),
        pa.binary(): pa.array([b"ab", None], pa.binary(2)),
        pa.date32(): pa.array([dt.date(2013, 1, 1), None], pa.date64()),
        pa.decimal128(5, 2): pa.array([Decimal("1.50"), None], pa.decimal128(5, 2)),
        pa.list_(pa.struct([("t", pa.timestamp("us", tz="UTC"))])): nested,
    }
    for kind, column in columns.items():
        assert landed_type("s", "c", column.type) == kind
        landed = landed_column(column, kind, "UTC")
        assert landed.type == kind
        assert landed.null_count == 1
    assert landed_column(nested, landed_type("s", "c", nested.type), None).to_pylist()[0][0]["t"] == dt.datetime(
        1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC
    )


def test_a_file_that_links_lead_to_more_than_once_is_read_once(tmp_path: Path) -> None:
    day = tmp_path / "day"
    day.mkdir()
    (day / "a.csv").write_text("x")
    (day / "latest.csv").symlink_to("a.csv")
    (day / "up").symlink_to("..")
    for path in ("day/*.csv", "day", "day/**/*.csv", "**/*.csv"):
        assert find_files([path], tmp_path, "csv") == [day / "a.csv"], path
    assert find_files(["day/latest.csv", "day/a.csv"], tmp_path, "csv") == [day / "latest.csv"]


@pytest.mark.parametrize("path", ["day/*.csv", "day"])
def test_what_is_found_and_is_no_file_is_refused_by_name(tmp_path: Path, path: str) -> None:
    day = tmp_path / "day"
    (day / "folder.csv").mkdir(parents=True)
    (day / "a.csv").write_text("x")
    assert find_files([path], tmp_path, "csv") == [day / "a.csv"]
    (day / "gone.csv").symlink_to("nowhere.csv")
    with pytest.raises(FeedMissingError, match=r"what the link gone.csv leads to in .*/day"):
        find_files([path], tmp_path, "csv")
    (day / "gone.csv").unlink()
    os.mkfifo(day / "pipe.csv")
    for found in (path, "day/pipe.csv"):
        with pytest.raises(FeedUnreadableError, match=r"pipe.csv must be a file; it is a pipe"):
            find_files([found], tmp_path, "csv")
