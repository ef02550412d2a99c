"""Paths in an object store: what a home in one rests on, against an emulator that is first seen to exclude."""

from __future__ import annotations

import os
import pickle
import threading
from functools import partial
from http import HTTPStatus
from http.client import HTTPConnection
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.engine.files import durable
from pipelines.engine.files.parquet import dataset, write_table
from pipelines.engine.files.stored import (
    AT_ONCE,
    ChangedError,
    NotOnStoreError,
    StoreFailedError,
    StorePath,
    for_arrow,
    path_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WRITERS, KEYS = 16, 12


def raced(act: Callable[[int], object]) -> list[int]:
    """Have writers act at once; give those that were not refused."""
    won: list[int] = []
    gate = threading.Barrier(WRITERS)

    def write(number: int) -> None:
        gate.wait()
        try:
            act(number)
        except OSError:
            return
        won.append(number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return won


def create(file: StorePath, number: int) -> None:
    file.create(str(number).encode())


def exchange(file: StorePath, tag: str, number: int) -> None:
    file.exchange(str(number).encode(), tag)


def test_of_many_that_create_one_object_one_succeeds(store: StorePath) -> None:
    for key in range(KEYS):
        file = store / f"{key}.json"
        won = raced(partial(create, file))
        assert won == [int(file.read_bytes())]


def test_of_many_that_exchange_one_object_one_succeeds(store: StorePath) -> None:
    for key in range(KEYS):
        file = store / f"{key}.json"
        file.create(b"first")
        _, tag = file.read_tagged()
        won = raced(partial(exchange, file, tag))
        assert won == [int(file.read_bytes())]


def test_an_own_write_is_no_strangers(store: StorePath) -> None:
    (store / "a.json").create(b"mine")
    (store / "a.json").create(b"mine")
    with pytest.raises(FileExistsError):
        (store / "a.json").create(b"another")
    tag = (store / "a.json").exchange(b"next", (store / "a.json").read_tagged()[1])
    assert (store / "a.json").exchange(b"next", "old") == tag
    with pytest.raises(ChangedError):
        (store / "a.json").exchange(b"other", "old")


def test_a_name_is_told_as_a_disk_tells_it(store: StorePath) -> None:
    (store / "in" / "deep").mkdir()
    assert not (store / "in").exists()
    (store / "in" / "deep" / "a.json").write_text("1")
    (store / "in" / "b.json").write_text("22")
    assert (store / "in").is_dir()
    assert (store / "in" / "b.json").stat().st_size == 2
    assert [each.name for each in (store / "in").iterdir()] == ["b.json", "deep"]
    assert [str(each) for each in store.glob("in/*.json")] == [f"{store}/in/b.json"]
    assert sorted(each.name for each in store.rglob("*.json")) == ["a.json", "b.json"]
    assert (store / "in" / "b.json").relative_to(store).as_posix() == "in/b.json"
    assert pickle.loads(pickle.dumps(store / "in")) == store / "in" == path_of(f"{store}/in")
    durable.remove_folder(store / "in")
    with pytest.raises(FileNotFoundError):
        list((store / "in").iterdir())


def test_what_would_need_a_folder_of_this_machine_is_refused(store: StorePath, tmp_path: Path) -> None:
    for act in (
        lambda: open(store),  # noqa: PTH123, SIM115 - as foreign code would
        lambda: store.rename(store),
        lambda: store.symlink_to(tmp_path),
        lambda: store.open("r+b"),
    ):
        with pytest.raises(NotOnStoreError, match="needs a home in a folder"):
            act()


def test_parquet_goes_there_and_comes_back(store: StorePath) -> None:
    rows = pa.table({"a": range(400_000), "b": [str(each * 7_919) for each in range(400_000)]})
    assert write_table(rows, store / "large.parquet", compression="none") > AT_ONCE
    assert write_table(rows.slice(0, 3), store / "small.parquet") < AT_ONCE
    files = [str(store / name) for name in ("large.parquet", "small.parquet")]
    assert pq.read_table(for_arrow(files[0])).equals(rows)
    assert dataset(files).to_table().num_rows == 400_003
    assert dataset(files, pa.schema([*rows.schema, pa.field("c", pa.int64())])).to_table()["c"].null_count == 400_003


def test_a_file_whose_writer_failed_is_never_there(store: StorePath) -> None:
    def fail() -> None:
        with (store / "a").open("wb") as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert not (store / "a").is_file()


def test_a_file_keeps_its_time_until_it_is_touched(store: StorePath) -> None:
    file = store / "a.parquet"
    file.write_bytes(b"1")
    before = durable.changed_ns(file)
    durable.beside_touched(file).touch()
    assert durable.changed_ns(file) > before - 1
    durable.remove(file)
    assert not store.exists()


def test_an_error_tells_neither_address_nor_key(store: StorePath, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.engine.files.stored.PAUSES", ())
    lost = StorePath("s3://no-such-bucket/a")
    with pytest.raises(StoreFailedError, match="404 Not Found, NoSuchBucket") as told:
        lost.write_bytes(b"1")
    assert "127.0.0.1" not in str(told.value)
    assert "emulated" not in str(told.value)
    assert store.store is store.store


def test_what_is_put_aside_stands_under_another_name_and_no_longer_under_its_own(store: StorePath) -> None:
    for name in ("a/1", "a/b/2", "ab"):
        (store / name).write_text(name)
    aside = durable.put_aside(store / "a")
    assert aside.name.startswith("a-aside-")
    assert [(aside / name).read_text() for name in ("1", "b/2")] == ["a/1", "a/b/2"]
    assert not (store / "a").is_dir()
    assert (store / "ab").read_text() == "ab"


def test_what_marks_a_folder_is_nothing(store: StorePath) -> None:
    """Tools that think in folders put an empty object called as the folder is, with a slash behind it."""
    (store / "a" / "1.json").write_text("a")
    (store / "a" / "b" / "empty").write_bytes(b"")
    for folder in ("a", "a/b", "a/ordered.held"):
        marked(store / folder)
    assert sorted(path.relative_to(store).as_posix() for path, _ in store.below()) == ["a/1.json", "a/b/empty"]
    assert not (store / "a" / "ordered.held").exists()
    assert sorted(path.name for path in (store / "a").iterdir()) == ["1.json", "b", "ordered.held"]
    assert [path.name for path in (store / "a" / "b").iterdir()] == ["empty"]
    with pytest.raises(FileNotFoundError):
        (store / "a" / "ordered.held").listed()
    aside = durable.put_aside(store / "a")
    assert isinstance(aside, StorePath)
    assert sorted(path.relative_to(aside).as_posix() for path, _ in aside.below()) == ["1.json", "b/empty"]
    durable.remove_folder(aside)
    assert not aside.is_dir()


def marked(folder: StorePath) -> None:
    """Mark a folder: the library that we go by leaves such a slash out, so this is put by hand."""
    at = HTTPConnection(os.environ["AWS_ENDPOINT_URL"].removeprefix("http://"))
    at.request("PUT", f"/{folder.parts[1]}/{folder.key}/", b"")
    assert at.getresponse().status == HTTPStatus.OK
    at.close()
