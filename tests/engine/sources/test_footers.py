"""Flipped bits in the footer of a feed's Parquet file end in one sentence, never in an abort or a wait."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.engine.columnar.columns import times
from pipelines.engine.landing.errors import FeedUnreadableError
from pipelines.engine.landing.file_rows import ColumnTerms, read_parquet
from pipelines.engine.landing.index import land_interval
from pipelines.engine.sources import footers
from pipelines.engine.sources.catalog import open_recorded
from pipelines.engine.sources.footers import footer_of
from pipelines.engine.sources.formats.parquet_feed import ParquetFeed
from pipelines.flows.feeds.parquet import ParquetSpec
from pipelines.flows.feeds.placing import Placing
from pipelines.flows.model import Flow, Source
from pipelines.jobs.drill.processes import answer

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.engine.sources.footers import Footer

TAIL = 8
"""Bytes behind a footer: how long it is, and four letters."""
PATIENCE = 60.0
KINDS = {
    "a histogram of another size": "histogram size mismatch",
    "a column of another type": "has columns of",
}


def written(file: Path) -> bytes:
    """Write a feed's file of one row group, in order, and give its bytes."""
    at = times(np.arange(40, dtype=np.int64))
    pq.write_table(pa.table({"seen": at, "key": pa.array(["k"] * 40), "time": at, "v": np.arange(40)}), file)
    return file.read_bytes()


def flipped(file: Path, said: str) -> None:
    """Flip the first bit of a file's footer of which the check says so, and that leaves the file's schema as it is."""
    data, columns = written(file), pq.read_schema(file)
    for bit in range((len(data) - TAIL - int.from_bytes(data[-8:-4], "little")) * 8, (len(data) - TAIL) * 8):
        bent = bytearray(data)
        bent[bit // 8] ^= 1 << bit % 8
        file.write_bytes(bent)
        if said in refusal(file) and pq.read_schema(file).equals(columns):
            return
    raise AssertionError(said)


def refusal(file: Path) -> str:
    """Say what is wrong with a footer; nothing where it is whole."""
    try:
        footer_of(file)
    except FeedUnreadableError as problem:
        return str(problem)
    return ""


def landed(base: Path, placing: Placing) -> str:
    """Land the feed, in a process of its own; give what it was refused with."""
    feed = ParquetSpec(paths=("feed.parquet",), landing=placing)
    source = Source(name="rows", feed=feed, key=("key",), time="time", arrival="seen")
    flow = Flow(name="f", sources={"rows": source}, streams={}, buckets=1)
    try:
        land_interval(base / "landed", flow, 0, 100, open_recorded(flow, base))
    except FeedUnreadableError as problem:
        return str(problem)
    return ""


def failing(_: str) -> None:
    """Fail as a disk does."""
    raise OSError(errno.EIO, "the disk fails")


@pytest.mark.parametrize("placing", [pytest.param(each, id=each.name.lower()) for each in Placing])
@pytest.mark.parametrize("said", [pytest.param(said, id=kind) for kind, said in KINDS.items()])
def test_a_damaged_footer_is_one_sentence(tmp_path: Path, placing: Placing, said: str) -> None:
    flipped(tmp_path / "feed.parquet", said)

    problem = answer(tmp_path / "log", PATIENCE, landed, tmp_path, placing)

    assert problem.startswith(f"{tmp_path / 'feed.parquet'} must be Parquet whose footer can be read; ")
    assert said in problem


@pytest.mark.parametrize("placing", [pytest.param(each, id=each.name.lower()) for each in Placing])
def test_a_whole_footer_lands(tmp_path: Path, placing: Placing) -> None:
    written(tmp_path / "feed.parquet")

    assert answer(tmp_path / "log", PATIENCE, landed, tmp_path, placing) == ""


def test_a_footer_is_checked_again_when_its_file_has_changed(tmp_path: Path) -> None:
    file = tmp_path / "feed.parquet"
    written(file)
    seen: Footer = footer_of(file)

    assert footer_of(file) is seen
    flipped(file, next(iter(KINDS.values())))
    assert refusal(file)


def test_no_page_is_read_by_the_check(tmp_path: Path) -> None:
    """A file whose pages are all noise has a whole footer: pages are judged by whoever reads them."""
    file = tmp_path / "feed.parquet"
    data = written(file)
    pages = len(data) - TAIL - int.from_bytes(data[-8:-4], "little")
    file.write_bytes(data[:4] + bytes(pages - 4) + data[pages:])

    assert footer_of(file).said.num_rows == 40


def test_storage_that_fails_is_not_taken_for_a_damaged_footer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is made up: no disk that fails can be had here."""
    file = tmp_path / "feed.parquet"
    written(file)
    monkeypatch.setattr(footers, "_checked", failing)

    with pytest.raises(OSError, match="the disk fails") as found:
        footer_of(file)
    assert found.value.errno == errno.EIO


def test_a_file_whose_columns_have_names_that_are_no_text_is_told_of_alone(tmp_path: Path) -> None:
    written(tmp_path / "1.parquet")
    bent = written(tmp_path / "2.parquet").replace(b"\x18\x01v", b"\x18\x01\xf3")
    (tmp_path / "2.parquet").write_bytes(bent)
    feed = ParquetFeed([tmp_path / "1.parquet", tmp_path / "2.parquet"], ParquetSpec(), ColumnTerms(), tmp_path)

    assert [batch.num_rows for batch in feed.read()] == [40, 1]
    with pytest.raises(FeedUnreadableError, match="utf-8"):
        read_parquet("2.parquet", bent, pq.read_schema(tmp_path / "1.parquet"), None, ColumnTerms())


def test_a_file_whose_columns_cannot_be_told_is_told_of_alone_and_storage_that_fails_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path / "1.parquet")
    data = written(tmp_path / "2.parquet")
    # A footer that ends too early: Arrow says so as it says that a disk fails, without the number of an error.
    length = int.from_bytes(data[-8:-4], "little")
    (tmp_path / "2.parquet").write_bytes(data[:-TAIL] + (length - 20).to_bytes(4, "little") + data[-4:])
    with pytest.raises(OSError, match="thrift") as came:
        pq.read_schema(tmp_path / "2.parquet")
    assert came.value.errno is None
    files = [tmp_path / "1.parquet", tmp_path / "2.parquet"]
    spec = ParquetSpec(paths=("*.parquet",))
    assert ParquetFeed(files, spec, ColumnTerms(), tmp_path).files == (files[0],)

    monkeypatch.setattr(pq, "read_schema", failing)
    with pytest.raises(OSError, match="the disk fails"):
        ParquetFeed(files, spec, ColumnTerms(), tmp_path)
