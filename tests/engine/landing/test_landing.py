"""Landing closes one immutable sequence for each content of an interval, and nothing that came is lost.

Rules of docs/semantics.md: S4, S8, S19
"""

from __future__ import annotations

import datetime as dt
import json
import os
import pickle
import signal
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.engine.columnar.columns import UNREADABLE, times
from pipelines.engine.columnar.content import content_hash
from pipelines.engine.columnar.keys import KeyTypeError, bucket_of, canonical_keys
from pipelines.engine.landing.errors import (
    ColumnMissingError,
    ColumnTypeError,
    DuplicateColumnError,
    FeedChangedError,
    NoTimeError,
    ReservedColumnError,
    SequenceBrokenError,
    TimezoneMissingError,
)
from pipelines.engine.landing.index import land_interval, landed_content
from pipelines.engine.landing.manifest import MANIFEST, read_sequence, sequences, verify
from pipelines.engine.landing.stamp import Orphans, landed_row_schema, stamp
from pipelines.engine.sources.catalog import open_recorded
from pipelines.flows.feeds.csv import CsvSpec
from pipelines.flows.feeds.json import JsonSpec
from pipelines.flows.feeds.parquet import ParquetSpec
from pipelines.flows.feeds.placing import Placing
from pipelines.flows.grid import intervals
from pipelines.flows.model import Flow, Source
from pipelines.flows.reading import read_flow
from pipelines.operators.rows import NULL, Shape
from tests.wide import drawn as examples_of

if TYPE_CHECKING:
    from pipelines.engine.landing.sequence import LandedSequence
    from pipelines.flows.feeds.spec import FeedSpec

ROOT = Path(__file__).parents[3]
HOUR = 3_600_000_000
DAY = 24 * HOUR
TYPES = {"at": "timestamp", "time": "timestamp"}
DEPARTED = {"2013-03-10": 900, "2013-11-03": 899}
"""Flights that left on these New York days, counted with pandas from the package itself."""
HEADER = "key,at,time,v\n"


def moment(hour: int) -> str:
    return f"1970-01-{1 + hour // 24:02}T{hour % 24:02}:00:00Z"


def line(key: str, at: int | str | None, time: int | str | None, value: object = 0) -> str:
    shown = [moment(part) if isinstance(part, int) else part or "" for part in (at, time)]
    return ",".join([key, *shown, str(value)]) + "\n"


def flow_of(**changes: Any) -> Flow:  # noqa: ANN401 - fields of any type
    buckets = changes.pop("buckets", 4)
    feed = changes.pop("feed", CsvSpec(paths=("f.csv",), types=TYPES, nulls=("",)))
    source = Source(**{"name": "rows", "feed": feed, "key": ("key",), "time": "time", "arrival": "at", **changes})
    return Flow(name="f", sources={"rows": source}, streams={}, buckets=buckets)


def land(folder: Path, text: str | None = None, span: tuple[int, int] = (0, DAY), **changes: Any) -> LandedSequence:  # noqa: ANN401
    if text is not None:
        (folder / "f.csv").write_text(HEADER + text)
    flow = flow_of(**changes)
    return land_interval(folder / "landing", flow, *span, open_recorded(flow, folder))


def landed(sequence: LandedSequence, buckets: list[int] | None = None) -> pa.Table:
    batches = list(sequence.open("rows", buckets))
    return pa.Table.from_batches(batches, landed_row_schema(sequence.payload("rows")))


def ledger(sequence: LandedSequence) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = sequence.ledger_rows().to_pylist()
    return rows


@pytest.fixture(scope="module")
def flights() -> tuple[Flow, Any]:
    flow = read_flow(ROOT / "config/flows/flights.yaml")
    return flow, open_recorded(flow, ROOT / "config/flows")


def days(flow: Flow, start: str, end: str) -> list[tuple[int, int]]:
    return intervals(flow, dt.date.fromisoformat(start), dt.date.fromisoformat(end))


def test_the_week_of_flights_lands_with_its_known_figures(tmp_path: Path, flights: tuple[Flow, Any]) -> None:
    flow, feeds = flights
    closed = [land_interval(tmp_path, flow, *span, feeds) for span in days(flow, "2013-01-01", "2013-01-08")]
    assert [sequence.id for sequence in closed] == [1, 2, 3, 4, 5, 6, 7]
    assert sum(sequence.sources["departures"].rows for sequence in closed) == 6_063
    lines = [row for sequence in closed for row in sequence.ledger_rows().to_pylist()]
    assert Counter((row["reason"], row["action"]) for row in lines) == {("no_arrival", "dropped"): 35}
    assert all(row["landed_at"] == row["event_time"] for row in lines)
    together = land_interval(tmp_path / "week", flow, closed[0].start, closed[-1].end, feeds)
    first, *others = (landed_content(sequence)["departures"] for sequence in closed)
    assert landed_content(together)["departures"] == sum(others, first)


@pytest.mark.parametrize(
    ("day", "after", "hours"), [("2013-03-10", "2013-03-11", 23), ("2013-11-03", "2013-11-04", 25)]
)
def test_days_of_a_change_land_whole(
    tmp_path: Path, flights: tuple[Flow, Any], day: str, after: str, hours: int
) -> None:
    flow, feeds = flights
    ((start, end),) = days(flow, day, after)
    assert end - start == hours * HOUR
    sequence = land_interval(tmp_path, flow, start, end, feeds)
    rows = pa.Table.from_batches(sequence.open("departures")).to_pylist()
    assert len(rows) == DEPARTED[day]
    assert {
        f"{row['departed'].astimezone(dt.timezone(dt.timedelta(hours=-4 if hours == 23 else -5))):%Y-%m-%d}"
        for row in rows
    } == {day}
    assert all(
        start <= (row["arrival"] - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1) < end
        for row in rows
    )


def test_rows_stand_in_buckets_in_the_order_of_arrival_and_place(tmp_path: Path) -> None:
    text = (
        line("b", 5, 1, 0)
        + line("a", 3, 1, 1)
        + line("b", 3, 1, 2)
        + line("a", 5, 2, 3)
        + line("c", 3, 9, 4)
        + line("a", 24, 1, 5)
    )
    sequence = land(tmp_path, text)
    rows = sorted(landed(sequence).to_pylist(), key=lambda row: (row["arrival"], row["place"]))
    assert [(row["arrival"].hour, row["place"], row["key"], row["v"]) for row in rows] == [
        (3, 1, "a", "1"), (3, 2, "b", "2"), (3, 3, "c", "4"), (5, 1, "b", "0"), (5, 2, "a", "3"),
    ]  # fmt: skip
    assert {row["kind"] for row in rows} == {"data"}
    for bucket in range(4):
        mine = landed(sequence, [bucket])
        order = list(zip(mine["arrival"].to_pylist(), mine["place"].to_pylist(), strict=True))
        assert order == sorted(order)
        assert set(bucket_of(canonical_keys([mine["key"]]), 4).tolist()) <= {bucket}
        for ((path, groups),) in sequence.inputs("rows", bucket):  # type: ignore[misc]
            assert pq.ParquetFile(path).read_row_groups(list(groups)).equals(mine)
    cut = sequence.sources["rows"].row_groups
    assert sum(group.rows for group in cut) == 5
    assert all(group.first <= group.last for group in cut)


def test_row_groups_are_cut_and_a_bucket_may_have_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.engine.landing.write.GROUP_ROWS", 2)
    sequence = land(tmp_path, "".join(line("a", hour, 0, hour) for hour in range(5)), buckets=1)
    assert sequence.inputs("rows", 0) == [((str(sequence.folder / "rows.parquet"), (0, 1, 2)),)]
    assert landed(sequence)["v"].to_pylist() == ["0", "1", "2", "3", "4"]


def test_a_row_without_arrival_stands_in_the_ledger_behind_those_of_its_instant(tmp_path: Path) -> None:
    sequence = land(
        tmp_path,
        line("a", None, 3, "x") + line("a", 3, 1) + line("b", 3, 1) + line("c", None, 3, "y") + line("d", None, 25),
    )
    assert [
        (row["reason"], row["action"], row["landed_at"].hour, row["landed_place"], row["key"])
        for row in ledger(sequence)
    ] == [
        ("no_arrival", "dropped", 3, 3, '{"key":"a"}'),
        ("no_arrival", "dropped", 3, 4, '{"key":"c"}'),
    ]
    first = ledger(sequence)[0]
    assert first["row"] == '{"at":null,"key":"a","time":"1970-01-01T03:00:00.000000Z","v":"x"}'
    assert (first["stream"], first["operator"], first["source"], first["arrival"], first["place"]) == (
        "rows",
        "landing",
        "rows",
        None,
        None,
    )


def test_a_row_without_key_has_its_place_and_stands_in_the_ledger(tmp_path: Path) -> None:
    sequence = land(tmp_path, line("a", 3, 1) + line("", 3, 2) + line("b", 3, 1))
    assert sorted(landed(sequence)["place"].to_pylist()) == [1, 3]
    (row,) = ledger(sequence)
    assert (row["reason"], row["action"], row["place"], row["landed_place"], row["key"]) == (
        "null_key",
        "dropped",
        2,
        2,
        '{"key":null}',
    )


def test_a_row_whose_time_cannot_be_read_passes_without_and_is_noted(tmp_path: Path) -> None:
    sequence = land(tmp_path, line("a", 3, "once") + line("b", 4, None))
    assert landed(sequence)["event_time"].to_pylist() == [None, None]
    (row,) = ledger(sequence)
    assert (row["reason"], row["action"], row["raw"]) == ("unreadable_time", "noted", b'{"time": "once"}')


def test_a_row_without_any_time_lands_with_its_neighbour(tmp_path: Path) -> None:
    text = line("a", None, None) + line("b", 3, 1) + line("c", "never", None) + line("d", 30, 1) + line("e", None, "no")
    first, second = land(tmp_path, text), land(tmp_path, span=(DAY, 2 * DAY))
    assert [(row["key"], row["landed_at"].hour, row["landed_place"]) for row in ledger(first)] == [
        ('{"key":"a"}', 3, 2), ('{"key":"c"}', 3, 3),
    ]  # fmt: skip
    assert [(row["key"], row["landed_at"].hour, row["raw"]) for row in ledger(second)] == [
        ('{"key":"e"}', 6, b'{"time": "no"}')
    ]
    with pytest.raises(NoTimeError, match=r"none of its 1 rows has: see whether the columns are the right ones$"):
        land(tmp_path, line("a", None, None))
    with pytest.raises(NoTimeError, match=r"has; .*row 1: .*: see whether the file is whole, and as its feed says$"):
        land(tmp_path, "a,b,c,d,e,f,g,h,i,j\n")
    with pytest.raises(NoTimeError, match=r'has \{"at": "31.1.", "time": "noon"\}: .* write times as ISO 8601, such'):
        land(tmp_path, line("a", "31.1.", "noon"))


def test_parquet_times_of_any_unit_and_zone_land_exactly(tmp_path: Path) -> None:
    stamps = pa.array([0, DAY * 1_000 - 1, DAY * 1_000, -1, None])
    table = pa.table({
        "key": pa.array(["a", "b", "c", "d", "e"]).dictionary_encode(),
        "at": stamps.cast(pa.timestamp("ns", tz="Asia/Tokyo")),
        "time": pa.array([1, 2**60, None, 4, 5]).cast(pa.timestamp("ms", tz="UTC")),
    })  # fmt: skip
    pq.write_table(table, tmp_path / "f.parquet")
    sequence = land(tmp_path, feed=ParquetSpec(paths=("f.parquet",)))
    assert sorted(landed(sequence)["key"].to_pylist()) == ["a", "b"]
    assert [(row["reason"], row["raw"]) for row in ledger(sequence)] == [
        ("no_arrival", None), ("unreadable_time", f'{{"time": "{2**60}"}}'.encode()),
    ]  # fmt: skip


def test_naive_parquet_times_need_a_timezone(tmp_path: Path) -> None:
    table = pa.table(
        {
            "key": ["a", "b"],
            "at": pa.array([-HOUR, 20 * HOUR]).cast(pa.timestamp("us")),
            "time": pa.array([0, 0]).cast(pa.timestamp("us")),
        }
    )
    pq.write_table(table, tmp_path / "f.parquet")
    with pytest.raises(TimezoneMissingError, match="`at` has none"):
        land(tmp_path, feed=ParquetSpec(paths=("f.parquet",)))
    sequence = land(tmp_path, feed=ParquetSpec(paths=("f.parquet",), timezone="America/New_York"))
    assert landed(sequence)["arrival"].to_pylist() == [dt.datetime(1970, 1, 1, 4, tzinfo=dt.UTC)]


@pytest.mark.parametrize("at", ["1970-01-01 01:00:00", "1970-01-01T01:00"])
def test_times_without_a_timezone_are_told_with_the_source(tmp_path: Path, at: str) -> None:
    with pytest.raises(TimezoneMissingError, match=rf"source `rows` must have .* `at` has none \({at}, in f\.csv\)"):
        land(tmp_path, line("a", at, 0))
    with pytest.raises(TimezoneMissingError, match="times of source `rows` must"):
        open_recorded(flow_of(), tmp_path)["rows"].told(9)


def test_edges_land_as_starts_and_ends(tmp_path: Path) -> None:
    sequence = land(
        tmp_path,
        line("a", 1, 1, "start") + line("a", 2, 2, "end") + line("a", 3, 3, "middle"),
        shape=Shape.EDGE,
        edge="v",
        event_id="key",
    )
    hour = {dt.datetime(1970, 1, 1, hour, tzinfo=dt.UTC): hour for hour in range(24)}
    rows = [
        (row["kind"], hour.get(row["event_time"]), hour.get(row["event_end"])) for row in landed(sequence).to_pylist()
    ]
    assert rows == [("start", 1, None), ("end", None, 2)]
    assert [row["reason"] for row in ledger(sequence)] == ["unknown_edge"]


PROMISES = """
flow: f
buckets: 1
sources:
  rows:
    {feed: {csv: f.csv, types: {at: timestamp, time: timestamp, until: timestamp}}, key: key, time: time, arrival: at,
     edge: says, shape: SHAPE}
streams:
  promised: {advance_time: rows, every: {events: 9}, late: drop}
"""


@pytest.mark.parametrize("shape", ["point", "interval, end: until"])
def test_promises_among_the_rows_of_a_csv_feed_land_as_such(tmp_path: Path, shape: str) -> None:
    (tmp_path / "f.yaml").write_text(PROMISES.replace("SHAPE", shape))
    said = [("a", "data"), ("a", "cti"), ("b", "data"), ("b", "start"), ("b", ""), ("", "cti")]
    lines = [
        f"{key},{word},{moment(6 + hour)},{moment(hour)},{moment(9) if word == 'data' else ''}\n"
        for hour, (key, word) in enumerate(said, start=1)
    ]
    (tmp_path / "f.csv").write_text("key,says,at,time,until\n" + "".join(lines))
    flow = read_flow(tmp_path / "f.yaml")
    sequence = land_interval(tmp_path / "landing", flow, 0, DAY, open_recorded(flow, tmp_path))

    rows = landed(sequence).to_pylist()
    assert [(row["kind"], row["key"], row["event_time"].hour) for row in rows] == [
        ("data", "a", 1), ("cti", "a", 2), ("data", "b", 3),
    ]  # fmt: skip
    assert [row["event_end"] is not None for row in rows] == ([False] * 3 if shape == "point" else [True, False, True])
    assert [row["reason"] for row in ledger(sequence)] == ["unknown_edge", "unknown_edge", "null_key"]
    assert [json.loads(row["row"])["says"] for row in ledger(sequence)] == ["start", None, "cti"]


def test_intervals_land_with_their_ends(tmp_path: Path) -> None:
    sequence = land(tmp_path, line("a", 1, 1), shape=Shape.INTERVAL, end="at")
    assert landed(sequence)["event_end"].to_pylist() == [dt.datetime(1970, 1, 1, 1, tzinfo=dt.UTC)]


def test_the_same_interval_twice_is_the_same_sequence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = land(tmp_path, line("a", 3, 1))
    monkeypatch.setattr(
        "pipelines.engine.sources.recorded_feed.RecordedFeed.arrive",
        lambda *_: pytest.fail("an untouched feed was read"),
    )
    assert land(tmp_path) == first
    monkeypatch.undo()
    os.utime(tmp_path / "f.csv", (1, 1))
    assert land(tmp_path) == first
    assert land(tmp_path, line("a", 3, 1) + line("a", 30, 1)) == first
    assert [sequence.id for sequence in sequences(tmp_path / "landing")] == [1]


def test_other_content_is_a_new_version_beside_the_old(tmp_path: Path) -> None:
    first = land(tmp_path, line("a", 3, 1))
    other = land(tmp_path, line("a", 30, 1), span=(DAY, 2 * DAY))
    second = land(tmp_path, line("a", 3, 1) + line("a", 4, 1))
    third = land(tmp_path, line("a", 3, 1) + line("a", 4, 1), buckets=2)
    fourth = land(tmp_path, line("a", 3, 1) + line("a", 4, 1) + line("b", None, 5), buckets=2)
    assert [(each.id, each.version) for each in (first, other, second, third, fourth)] == [
        (1, 1),
        (2, 1),
        (3, 2),
        (4, 3),
        (5, 4),
    ]
    assert read_sequence(tmp_path / "landing", 1) == first
    assert landed(first).num_rows == 1
    for sequence in sequences(tmp_path / "landing"):
        verify(sequence)


def test_the_manifest_says_what_the_files_hold(tmp_path: Path) -> None:
    sequence = land(tmp_path, line("a", 3, 1) + line("b", None, 2))
    told = json.loads((sequence.folder / MANIFEST).read_text())
    assert (told["sequence"], told["start"], told["end"]) == (
        1,
        "1970-01-01T00:00:00.000000Z",
        "1970-01-02T00:00:00.000000Z",
    )
    assert (told["kind"], told["version"], told["final"], told["sources"]["rows"]["blind_spans"]) == (
        "interval",
        1,
        None,
        [],
    )
    assert sequence.sources["rows"].content == content_hash(landed(sequence))
    assert sequence.ledger.content == content_hash(sequence.ledger_rows())
    assert sequence.payload("rows").names == ["key", "at", "time", "v"]
    assert sequences(tmp_path / "landing") == [sequence]


def test_an_interval_without_rows_lands_too(tmp_path: Path) -> None:
    sequence = land(tmp_path, line("a", 30, 1))
    assert sequence.inputs("rows", 0) == []
    assert list(sequence.open("rows")) == []
    assert sequence.ledger.rows == 0


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from pipelines.engine.landing import index as landing
from pipelines.engine.landing import write as landing_files
from pipelines.engine.landing import manifest as manifests
from pipelines.engine.sources.catalog import open_recorded
from pipelines.flows.feeds.csv import CsvSpec
from pipelines.flows.model import Flow, Source
def die(*_): os.kill(os.getpid(), signal.SIGKILL)
where, name = sys.argv[2].split(":")
setattr({"files": landing_files, "manifests": manifests, "os": os, "path": Path}[where], name, die)
feed = CsvSpec(paths=("f.csv",), types={"at": "timestamp", "time": "timestamp"})
source = Source(name="rows", feed=feed, key=("key",), time="time", arrival="at")
flow = Flow(name="f", sources={"rows": source}, streams={}, buckets=4)
base = Path(sys.argv[3])
landing.land_interval(base / "landing", flow, 0, 86_400_000_000, open_recorded(flow, base))
"""


POINTS = ("files:_write_source", "files:_write_ledger", "files:close_sequence", "manifests:name_once")


@pytest.mark.parametrize("point", POINTS)
def test_a_landing_killed_before_its_manifest_leaves_nothing_visible(tmp_path: Path, point: str) -> None:
    (tmp_path / "f.csv").write_text(HEADER + line("a", 3, 1) + line("b", None, 2))
    died = subprocess.run([sys.executable, "-c", KILLED, str(ROOT), point, str(tmp_path)], check=False)
    assert died.returncode == -signal.SIGKILL
    assert [path.name[:9] for path in (tmp_path / "landing").iterdir()] == ["00000001."]
    assert sequences(tmp_path / "landing") == []
    sequence = land(tmp_path)
    assert (sequence.id, sequence.version) == (1, 1)
    assert {path.name for path in sequence.folder.iterdir()} == {"rows.parquet", "ledger.parquet", MANIFEST}
    undisturbed = land_interval(tmp_path / "other", flow_of(), 0, DAY, open_recorded(flow_of(), tmp_path))
    assert undisturbed.sources == sequence.sources
    assert undisturbed.ledger == sequence.ledger


def test_a_broken_landing_is_refused(tmp_path: Path) -> None:
    first = land(tmp_path, line("a", 3, 1))
    land(tmp_path, span=(DAY, 2 * DAY))
    file = first.folder / "rows.parquet"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + b"?")
    with pytest.raises(SequenceBrokenError, match="other bytes than landed"):
        verify(first)
    file.write_bytes(whole[:-1])
    with pytest.raises(SequenceBrokenError, match=r"not the .* of its manifest"):
        land(tmp_path)
    file.unlink()
    with pytest.raises(SequenceBrokenError, match=r"no rows\.parquet") as refused:
        read_sequence(tmp_path / "landing", 1)
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)
    (first.folder / MANIFEST).unlink()
    with pytest.raises(SequenceBrokenError, match="no manifest, though a later one is closed"):
        land(tmp_path)


def test_a_feed_that_changes_while_it_lands_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text(HEADER + line("a", 3, 1))
    flow = flow_of()
    feeds = open_recorded(flow, tmp_path)
    seen = iter("abcdef")
    feeds["rows"].fingerprint = lambda: next(seen)  # type: ignore[method-assign]
    with pytest.raises(FeedChangedError, match="must stand still"):
        land_interval(tmp_path / "landing", flow, 0, DAY, feeds)
    assert sequences(tmp_path / "landing") == []


def lay_file(file: Path, landing: str) -> FeedSpec:
    """Write some rows, and give the feed of which the file is one."""
    if landing == "csv":
        file.write_text(HEADER + line("a", 3, 1) * 50)
        return CsvSpec(paths=("*.csv",), types=TYPES, nulls=("",))
    if landing == "json":
        file.write_text(json.dumps({"key": "a", "at": moment(3), "time": moment(1)}) + "\n")
        return JsonSpec(paths=("*.json",), types={"key": "string", **TYPES})
    moments = times(np.arange(50, dtype=np.int64))
    pq.write_table(pa.table({"key": ["a"] * 50, "at": moments, "time": moments}), file)
    return ParquetSpec(paths=("*.parquet",), landing=Placing[landing.upper()])


@pytest.mark.parametrize("act", ["gone", "cut", "folder"])
@pytest.mark.parametrize(
    ("kind", "landing"), [("csv", "csv"), ("json", "json"), ("parquet", "copy"), ("parquet", "reference")]
)
def test_a_file_that_is_lost_between_two_intervals_is_named(tmp_path: Path, kind: str, landing: str, act: str) -> None:
    lay_file(tmp_path / f"a.{kind}", landing)
    file = tmp_path / f"b.{kind}"
    flow = flow_of(feed=lay_file(file, landing), buckets=1)
    feeds = open_recorded(flow, tmp_path)
    land_interval(tmp_path / "landing", flow, 0, DAY, feeds)
    before = file.stat().st_size
    if act == "cut":
        os.truncate(file, before // 2)
    else:
        file.unlink()
    if act == "folder":
        file.mkdir()
    told = {"gone": "is gone", "cut": f"has {before // 2:,} bytes and had {before:,}", "folder": "is a file no more"}
    with pytest.raises(FeedChangedError, match=f"files of source `rows` must stand still .*; b.{kind} {told[act]}"):
        land_interval(tmp_path / "landing", flow, DAY, 2 * DAY, feeds)
    assert len(sequences(tmp_path / "landing")) == 1, "what landed stands"


def test_a_file_that_goes_while_it_is_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = flow_of(feed=lay_file(tmp_path / "a.parquet", "copy"))
    feeds = open_recorded(flow, tmp_path)

    def gone(path: Path) -> None:
        path.unlink()
        raise FileNotFoundError(path)

    monkeypatch.setattr("pipelines.engine.sources.formats.parquet_feed.footer_of", gone)
    with pytest.raises(FeedChangedError, match=r"`rows` must stand still .*; a\.parquet is gone"):
        land_interval(tmp_path / "landing", flow, 0, DAY, feeds)


@pytest.mark.parametrize(
    ("header", "changes", "error", "sentence"),
    [
        ("kind,key,at,time", {}, ReservedColumnError, r"write `rename: \{kind: rows_kind\}`"),
        ("keys,at,time", {}, ColumnMissingError, "`key: key` of source `rows` .* did you mean `keys`"),
        ("key,at,time,a,b", {"rename": {"a": "b"}}, DuplicateColumnError, "two are `b`"),
        ("key,at,time", {"arrival": "key"}, ColumnTypeError, "must be a timestamp as `arrival`; it is string"),
        ("key,at,time", {"rename": {"kee": "k"}}, ColumnMissingError, "`rename: kee`"),
    ],
)
def test_a_source_that_does_not_fit_its_feed_is_refused(
    tmp_path: Path, header: str, changes: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    (tmp_path / "f.csv").write_text(header + "\n")
    with pytest.raises(error, match=sentence):
        open_recorded(flow_of(**changes), tmp_path)


def test_a_float_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text(HEADER)
    feed = CsvSpec(paths=("f.csv",), types={**TYPES, "key": "float64"})
    with pytest.raises(KeyTypeError, match="key `key` is double"):
        open_recorded(flow_of(feed=feed), tmp_path)


INSTANTS = st.one_of(st.just(NULL), st.integers(0, 12))


@settings(max_examples=examples_of(60, 200), deadline=None)
@given(
    rows=st.lists(st.tuples(st.sampled_from(["a", "b", None]), INSTANTS, INSTANTS), max_size=20),
    cuts=st.sets(st.integers(1, 12)),
)
def test_every_row_lands_exactly_once_whatever_the_intervals(
    rows: list[tuple[str | None, int, int]], cuts: set[int]
) -> None:
    """Cuts do not matter: the intervals of any grid hold together what one interval holds, and nothing is lost."""
    source = flow_of().sources["rows"]
    columns = {
        "key": pa.array([key for key, _, _ in rows], pa.string()),
        "at": times(np.array([at for _, at, _ in rows], dtype=np.int64)),
        "time": times(np.array([time for _, _, time in rows], dtype=np.int64)),
        UNREADABLE: pa.nulls(len(rows), pa.string()),
    }
    table = pa.table(columns)
    nobody = np.array([at == NULL and time == NULL for _, at, time in rows], dtype=bool)
    orphans = Orphans(table.filter(pa.array(nobody)), np.full(int(nobody.sum()), 5))
    edges = [0, *sorted(cuts - {0}), 13]
    whole = stamp(source, table, orphans, 0, 13)
    parts = [stamp(source, table, orphans, start, end) for start, end in pairwise(edges)]
    assert pa.concat_tables([part.rows for part in parts]).equals(whole.rows)
    assert pa.concat_tables([part.ledger for part in parts]).equals(whole.ledger)
    assert whole.rows.num_rows + whole.ledger.num_rows == len(rows)
    both = [
        *whole.rows.select(["arrival", "place"]).to_pylist(),
        *whole.ledger.select(["landed_at", "landed_place"]).to_pylist(),
    ]
    assert len({tuple(row.values()) for row in both}) == len(rows)


def test_a_final_punctuation_makes_a_version_of_its_own(tmp_path: Path) -> None:
    first = land(tmp_path, line("a", 3, 1))
    feeds = open_recorded(flow_of(), tmp_path)
    ended = land_interval(tmp_path / "landing", flow_of(), 0, DAY, feeds, DAY - 1)
    assert (ended.id, ended.version, ended.final, ended.sources) == (2, 2, DAY - 1, first.sources)
    assert land_interval(tmp_path / "landing", flow_of(), 0, DAY, feeds, DAY - 1) == ended
    assert read_sequence(tmp_path / "landing", 2) == ended
