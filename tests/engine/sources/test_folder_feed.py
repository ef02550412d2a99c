"""A folder under the real clock: each file lands once, and whatever cannot land is told with its bytes."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import os
import pickle
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.engine.files.sums import with_sum, without_sum
from pipelines.engine.landing.errors import (
    ColumnMissingError,
    ColumnsUnknownError,
    FeedMissingError,
    NotRecordedError,
    SequenceBrokenError,
    TimezoneMissingError,
)
from pipelines.engine.landing.index import Landing, joined, land_reading
from pipelines.engine.landing.manifest import MANIFEST, read_sequence, verify
from pipelines.engine.sources.catalog import open_recorded
from pipelines.engine.sources.folder.inbox import Inbox
from tests.engine.sources.folders import Stand, flow_of, lines_of, rows_of

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.engine.landing.sequence import LandedSequence

HEAD = "key,time,v\n"
AT = "2013-01-01T00:00:00Z"


def csv_of(*values: object, key: str = "a") -> str:
    return HEAD + "".join(f"{key},{AT},{value}\n" for value in values)


def values_of(sequence: LandedSequence) -> list[tuple[int, int]]:
    return [(row["place"], row["v"]) for row in rows_of(sequence)]


def test_rows_arrive_one_tick_before_their_reading_in_the_order_of_file_and_row(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    stand.put("b.csv", csv_of(3, key="b"))
    stand.put("a.csv", csv_of(1, 2))
    stand.put("a/c.csv", csv_of(4, key="c"))
    sequence = stand.land()
    assert values_of(sequence) == [(1, 1), (2, 2), (3, 4), (4, 3)]
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    assert {row["arrival"] - epoch for row in rows_of(sequence)} == {dt.timedelta(microseconds=sequence.end - 1)}
    assert (sequence.kind, sequence.id, sequence.start, sequence.end) == ("reading", 2, 10, 20)
    files = sequence.sources["rows"].files
    assert [(file.path, file.rows) for file in files] == [("a.csv", 2), ("a/c.csv", 1), ("b.csv", 1)]
    assert read_sequence(tmp_path / "landing", 2) == sequence
    verify(sequence)


def test_each_file_lands_once_also_after_a_restart(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    stand.put("a.csv", csv_of(1))
    assert values_of(stand.land()) == [(1, 1)]
    stand.put("b.csv", csv_of(2))
    stand.start()
    assert values_of(stand.land()) == [(1, 2)]
    stand.start()
    os.utime(stand.folder / "a.csv", (1, 1))
    idle = stand.land()
    assert (idle.sources["rows"].rows, idle.sources["rows"].files, idle.ledger.rows) == (0, (), 0)


def test_a_folder_that_rests_is_listed_and_no_file_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand = Stand(tmp_path)
    stand.put("a.csv", csv_of(1))
    stand.land()
    os.utime(stand.folder / "a.csv", (1, 1))
    stand.land()
    monkeypatch.setattr("pathlib.Path.read_bytes", lambda _: pytest.fail("a file was read again"))
    assert stand.land().sources["rows"].rows == 0


def test_an_idle_second_costs_one_small_file(tmp_path: Path) -> None:
    sequence = Stand(tmp_path).look()
    assert [path.name for path in sequence.folder.iterdir()] == [MANIFEST]
    assert (sequence.folder / MANIFEST).stat().st_size < 2_000
    assert sequence.inputs("rows", 0) == []
    assert list(sequence.open("rows")) == []
    assert sequence.payload("rows") == pa.schema(
        [("key", pa.string()), ("time", pa.timestamp("us", tz="UTC")), ("v", pa.int64())]
    )
    assert sequence.ledger_rows().num_rows == 0
    verify(read_sequence(tmp_path / "landing", 1))


def test_a_file_waits_until_two_looks_see_the_same(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    stand.put("a.csv", csv_of(1))
    assert stand.look().sources["rows"].rows == 0
    stand.put("a.csv", csv_of(1, 2))
    assert stand.look().sources["rows"].rows == 0
    assert stand.waiting == {"rows": (0, ("a.csv",))}
    assert values_of(stand.look()) == [(1, 1), (2, 2)]
    for name in (".a.csv", "_a.csv", "a.csv.tmp", "a.csv.part", "_done/a.csv"):
        stand.put(name, csv_of(9))
    stand.look()
    assert stand.waiting == {"rows": (0, ())}


def test_the_same_content_under_a_new_name_is_reported_and_not_landed_again(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    stand.put("b.csv", csv_of(1))
    stand.land()
    stand.put("a.csv", csv_of(1))
    stand.put("c.csv", csv_of(2))
    stand.put("d.csv", csv_of(2))
    sequence = stand.land()
    assert values_of(sequence) == [(2, 2)]
    told = [(reason, action, place, json.loads(raw)) for reason, action, place, raw in lines_of(sequence)]
    assert [(*line[:3], line[3]["file"], line[3]["same_as"]) for line in told] == [
        ("same_content", "noted", 1, "a.csv", "b.csv"),
        ("same_content", "noted", 3, "d.csv", "c.csv"),
    ]
    stand.start()
    assert stand.land().ledger.rows == 0


def test_a_file_that_changed_after_it_landed_is_reported_once_and_not_landed_again(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    stand.put("a.csv", csv_of(1))
    stand.land()
    stand.put("a.csv", csv_of(1, 2))
    sequence = stand.land()
    ((reason, action, _, raw),) = lines_of(sequence)
    assert (reason, action, json.loads(raw)["landed"]["size"]) == ("file_changed", "dropped", len(csv_of(1)))
    assert sequence.sources["rows"].rows == 0
    stand.start()
    assert stand.land().ledger.rows == 0
    stand.put("a.csv", csv_of(1))
    assert stand.land().ledger.rows == 0
    stand.put("a.csv", csv_of(7))
    assert [line[0] for line in lines_of(stand.land())] == ["file_changed"]


def test_an_empty_file_lacks_no_column_it_is_empty(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    stand.put("a.csv", "")
    assert [line[0] for line in lines_of(stand.land())] == ["unreadable_file"]


def test_an_unreadable_file_is_told_with_its_bytes_and_lands_once_it_is_mended(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    stand.put("a.csv", "key,time\n")
    stand.put("b.csv", csv_of(1))
    sequence = stand.land()
    assert lines_of(sequence) == [("missing_column", "dropped", 1, b"key,time\n")]
    assert "key, time, v" in sequence.ledger_rows()["row"][0].as_py()
    assert values_of(sequence) == [(2, 1)]
    stand.start()
    assert stand.land().ledger.rows == 0
    stand.put("a.csv", csv_of(5))
    assert values_of(stand.land()) == [(1, 5)]


def test_csv_records_that_are_none_are_told_with_their_bytes(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    wrong = [f"a,{AT}\n".encode(), f"a,{AT},x\n".encode(), b"\xff,,1\n", f"a,{AT},1,2\n".encode()]
    right = [f'"x\n""y""",{AT}, 2\n'.encode(), b"a,soon,3\n", f",{AT},4\n".encode()]
    stand.put("a.csv", HEAD.encode() + b"".join([*wrong[:2], right[0], b"\n", *wrong[2:], *right[1:]]))
    sequence = stand.land()
    assert [(row["place"], row["key"], row["event_time"] is None, row["v"]) for row in rows_of(sequence)] == [
        (3, 'x\n"y"', False, 2),
        (6, "a", True, 3),
    ]
    assert lines_of(sequence) == [
        *[("unreadable_row", "dropped", place, raw) for place, raw in zip((1, 2, 4, 5), wrong, strict=True)],
        ("unreadable_time", "noted", 6, b'{"time": "soon"}'),
        ("null_key", "dropped", 7, None),
    ]
    (file,) = sequence.sources["rows"].files
    dropped = [line for line in lines_of(sequence) if line[1] == "dropped"]
    assert file.rows == 7 == sequence.sources["rows"].rows + len(dropped)


def test_json_lines_that_are_no_objects_are_told_with_their_bytes(tmp_path: Path) -> None:
    stand = Stand(tmp_path, flow_of("json", {"key": "string", "time": "timestamp", "d": "date", "n": "decimal(5, 2)"}))
    good = [
        {"key": "a", "time": AT, "d": "2013-01-01", "n": "1.25"},
        {"n": 2.5, "key": "b"},
        {"key": "c", "time": "soon"},
        {"key": "d", "more": 1},
    ]
    lines = [json.dumps(each).encode() for each in good]
    wrong = [b"null", b'{"key": 5}', b'{"key":"a"}{"key":"b"}', b'{"key":"a"} null {}', b'{"key":', b"\xff", b"[]"]
    wrong += [b'{"n": 1.255}', b'{"key": "a", "d": "no day"}', b'{"key":"a","key":"b"}']
    stand.put("a.jsonl", b"\n".join([*wrong[:3], lines[0], b"", *wrong[3:], *lines[1:]]) + b"\n")
    sequence = stand.land()
    assert [(row["place"], row["key"], str(row["n"]), str(row["d"])) for row in rows_of(sequence)] == [
        (4, "a", "1.25", "2013-01-01"),
        (12, "b", "2.50", "None"),
        (13, "c", "None", "None"),
        (14, "d", "None", "None"),
    ]
    assert lines_of(sequence) == [
        *[
            ("unreadable_row", "dropped", place, raw)
            for place, raw in zip([1, 2, 3, *range(5, 12)], wrong, strict=True)
        ],
        ("unreadable_time", "noted", 13, b'{"time": "soon"}'),
        ("new_column", "noted", 15, b'{"column":"more","rows":1,"type":"int64"}'),
    ]


def test_packed_files_land_and_broken_ones_are_told(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    stand.put("a.csv.gz", gzip.compress(csv_of(1).encode()))
    stand.put("b.csv.gz", gzip.compress(csv_of(2).encode())[:-9])
    sequence = stand.land()
    assert values_of(sequence) == [(1, 1)]
    assert [line[0] for line in lines_of(sequence)] == ["unreadable_file"]


def parquet(stand: Stand, name: str, **columns: object) -> None:
    pq.write_table(pa.table(columns), stand.folder / name)


def test_parquet_files_have_the_columns_of_the_first_also_when_it_is_gone(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    flow = flow_of("parquet", {}, rename={"k": "key"})
    with pytest.raises(ColumnsUnknownError, match="put the first file there"):
        Stand(tmp_path, flow)
    time = pa.array([5]).cast(pa.timestamp("ns", tz="UTC"))
    pq.write_table(pa.table({"k": ["a"], "time": time, "v": pa.array([1], pa.int16())}), tmp_path / "in/a.parquet")
    stand = Stand(tmp_path, flow)
    assert values_of(stand.land()) == [(1, 1)]
    (stand.folder / "a.parquet").unlink()
    stand.start()
    parquet(stand, "b.parquet", v=[2], k=["b"], time=time)
    parquet(stand, "c.parquet", v=[70_000], k=["b"], time=time)
    parquet(stand, "d.parquet", v=[3], k=["b"])
    stand.put("e.parquet", b"PAR1 is a beginning")
    sequence = stand.land()
    assert values_of(sequence) == [(1, 2)]
    assert [line[0] for line in lines_of(sequence)] == ["unreadable_file", "missing_column", "unreadable_file"]


def test_parquet_times_without_zone_stop_the_landing(tmp_path: Path) -> None:
    stand = Stand(tmp_path, flow_of("parquet"))
    parquet(stand, "a.parquet", key=["a"], time=pa.array([5]).cast(pa.timestamp("us")), v=[1])
    with pytest.raises(TimezoneMissingError):
        stand.land()


def test_a_backlog_lands_file_by_file_and_says_what_waits(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    for number in range(4):
        stand.put(f"{number}.csv", csv_of(number, -number - 1))
    stand.look()
    assert values_of(stand.look(limit_rows=3)) == [(1, 0), (2, -1), (3, 1), (4, -2)]
    assert stand.waiting == {"rows": (2, ())}
    assert values_of(stand.look(limit_rows=1)) == [(1, 2), (2, -3)]
    assert values_of(stand.look(limit_rows=1)) == [(1, 3), (2, -4)]
    assert stand.waiting == {"rows": (0, ())}


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FeedMissingError):
        Inbox(flow_of().sources["rows"], tmp_path)
    stand = Stand(tmp_path)
    with pytest.raises(ColumnMissingError, match="`key: kay` of source `rows`"):
        Stand(tmp_path, flow_of(key=("kay",)))
    with pytest.raises(NotRecordedError, match="land it with `pulseline stream`") as refused:
        open_recorded(stand.flow, tmp_path)
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)


def test_a_reading_that_is_closed_stays_as_it_is(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    stand.put("a.csv", csv_of(1))
    first, second = stand.look(), stand.look()
    assert land_reading(tmp_path / "landing", 2, stand.flow, 10, 20, {}, {}) == second
    assert land_reading(tmp_path / "landing", 1, stand.flow, 10, 20, {}, {}) == first
    with pytest.raises(ValueError, match="readings must increase; 20 does not come after 20"):
        land_reading(tmp_path / "landing", 3, stand.flow, 20, 20, {}, {})
    with pytest.raises(SequenceBrokenError, match="no manifest, though the next is to land"):
        land_reading(tmp_path / "landing", 4, stand.flow, 20, 30, {}, {})


def test_a_landing_knows_all_that_its_sequences_say(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    assert (stand.landing.last_id, stand.landing.last_reading(), stand.landing.payload("rows")) == (0, None, None)
    stand.put("a.csv", csv_of(1))
    watcher = Landing(tmp_path / "landing")
    made = [stand.land(), stand.look()]
    assert watcher.refresh() == stand.landing.sequences
    assert watcher.after(1) == tuple(made)
    assert (watcher.last_id, watcher.last_reading(), watcher.last_reading("interval")) == (3, 30, None)
    assert watcher.sequence(2) == made[0]
    assert len(watcher.known("rows").files) == 1
    assert watcher.final is None
    with pytest.raises(SequenceBrokenError):
        watcher.sequence(4)
    stand.landing.land(stand.flow, 30, 40, {"rows": stand.inbox}, final=39)
    watcher.refresh()
    assert watcher.final == 39


BLIND = [
    ((0, 10), ((0, 10),), ((0, 10),)),
    ((10, 20), ((10, 20),), ((0, 20),)),
    ((20, 30), (), ((0, 20),)),
    ((30, 40), (), ()),
    ((40, 50), ((42, 45),), ((42, 45),)),
    ((50, 60), ((50, 52), (58, 60)), ((50, 52), (58, 60))),
    ((60, 70), ((60, 61),), ((58, 61),)),
    ((75, 80), ((75, 80),), ((75, 80),)),
]
"""Readings, the blind spans recorded, and those that matter to whoever runs the sequence."""


def test_blind_spans_reach_as_far_back_as_they_have_no_gap(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    for (start, end), spans, _ in BLIND:
        stand.landing.land(stand.flow, start, end, {"rows": stand.inbox}, blind={"rows": spans})
    for landing in (stand.landing, Landing(tmp_path / "landing")):
        for number, (_, _, wanted) in enumerate(BLIND, start=1):
            assert landing.blind_before("rows", number) == wanted
            assert landing.blind_before("others", number) == ()
    assert joined([(5, 7), (0, 3), (2, 5)]) == ((0, 7),)


def test_the_landing_of_ten_thousand_idle_seconds_is_read(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    told = without_sum(json.loads((stand.look().folder / MANIFEST).read_text()))
    for number in range(2, 10_001):
        folder = tmp_path / f"landing/{number:08}"
        folder.mkdir()
        (folder / MANIFEST).write_text(json.dumps(with_sum(told | {"sequence": number})))
    assert Landing(tmp_path / "landing").last_id == 10_000


def test_no_row_arrives_before_its_file_was_seen_as_it_landed(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    stand.put("a.csv", csv_of(1))
    stand.now = 35
    assert [values_of(stand.look()) for _ in range(3)] == [[], [], []], "readings up to 30, planned before it was seen"
    assert stand.waiting == {"rows": (0, ("a.csv",))}
    stand.put("b.csv", csv_of(2))
    assert values_of(stand.look()) == [(1, 1)], "seen at 35, landed at 40"
    stand.now = 45
    stand.put("b.csv", csv_of(2, 3))
    assert values_of(stand.look()) == [], "it is another since 45"
    stand.now = 55
    assert values_of(stand.look()) == [(1, 2), (2, 3)]
