"""Recorded JSON lines have their declared columns, and nothing else passes unseen."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pipelines.engine.columnar.columns import UNREADABLE
from pipelines.engine.landing.errors import TimezoneMissingError
from pipelines.flows.feeds.json import JsonSpec
from tests.engine.sources.feeds import open_feed

if TYPE_CHECKING:
    from pathlib import Path

TYPES = {"k": "string", "t": "timestamp", "s": "struct<a: int8, b: list<float32>>", "d": "decimal(4, 1)"}
SPEC = JsonSpec(paths=("in",), types=TYPES)


def put(folder: Path, name: str, text: str) -> None:
    path = folder / "in" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())


def test_rows_come_file_by_file_line_by_line(tmp_path: Path) -> None:
    put(tmp_path, "b.jsonl", '{"k": "c", "t": "soon"}')
    put(tmp_path, "a.json.gz", '\ufeff{"k": "a", "s": {"a": 1, "b": [0.5, null]}}\n\n{"d": "1.5", "k": "b"}\r\n')
    put(tmp_path, "c.txt", "no JSON")
    feed = open_feed(SPEC, tmp_path)
    rows = pa.Table.from_batches(feed.read()).to_pylist()
    assert [row["k"] for row in rows] == ["a", "b", "c"]
    assert rows[0]["s"] == {"a": 1, "b": [0.5, None]}
    assert (str(rows[1]["d"]), rows[2]["t"], rows[2][UNREADABLE]) == ("1.5", None, '{"t": "soon"}')
    assert pa.Table.from_batches(feed.read(pc.field("k") == "b"))["k"].to_pylist() == ["b"]


def test_times_without_zone_are_refused_where_the_first_has_none(tmp_path: Path) -> None:
    put(tmp_path, "a.json", '{"t": "2013-01-01 10:00:00"}\n')
    with pytest.raises(TimezoneMissingError, match="`t` has none"):
        list(open_feed(SPEC, tmp_path).read())
    put(tmp_path, "a.json", '{"t": "2013-01-01 10:00:00Z"}\n{"t": "2013-01-01 10:00:00"}\n')
    rows = pa.Table.from_batches(open_feed(SPEC, tmp_path).read()).to_pylist()
    assert (rows[1]["t"], rows[1][UNREADABLE]) == (None, '{"t": "2013-01-01 10:00:00"}')
