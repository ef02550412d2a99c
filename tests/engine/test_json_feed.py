"""Recorded JSON lines have their declared columns, and nothing else passes unseen."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pipelines.engine.csv_feed import UNREADABLE
from pipelines.engine.feeds import open_feed
from pipelines.engine.landing_errors import FeedUnreadableError, TimezoneMissingError
from pipelines.flows.model import FeedSpec

if TYPE_CHECKING:
    from pathlib import Path

TYPES = {"k": "string", "t": "timestamp", "s": "struct<a: int8, b: list<float32>>", "d": "decimal(4, 1)"}
SPEC = FeedSpec(kind="json", paths=("in",), types=TYPES)


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


def test_a_line_that_is_something_else_is_refused(tmp_path: Path) -> None:
    put(tmp_path, "a.json", '{"k": "a"}\nnull\n')
    feed = open_feed(SPEC, tmp_path)
    with pytest.raises(FeedUnreadableError, match="row 2: not one object a line"):
        list(feed.read())
    put(tmp_path, "a.json", '{"k": "a", "s": {"z": 1}}\n')
    with pytest.raises(FeedUnreadableError, match=r"row 1: `s\.z` is no declared column"):
        list(feed.read())
    put(tmp_path, "a.json", '{"t": "2013-01-01 10:00:00"}\n')
    with pytest.raises(TimezoneMissingError, match="`t` has none"):
        list(feed.read())
