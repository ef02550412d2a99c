"""A log after a power cut: what cannot be read counts as absent, the holder of the lease removes it, no row is lost."""

from __future__ import annotations

import datetime as dt
import errno
import json
import os
import resource
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import duckdb
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from pipelines.engine.commits import delta_log
from pipelines.engine.commits.delta_log import HINT, SETTLED, LogFiles, checkpoint, clean_log, mend, open_table
from pipelines.engine.commits.driver import CommitLog, open_driver
from pipelines.engine.commits.paths import (
    ConcurrentAddError,
    NewFile,
    TornLogError,
    commits_path,
    stream_path,
    version_path,
)
from pipelines.engine.commits.table_log import TableChange, TableLog
from pipelines.engine.files import durable
from pipelines.engine.files.stored import StoreFailedError
from tests.engine.commits.test_table_log import SCHEMA, new_file, publish

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipelines.engine.files.stored import StorePath

AT_ONCE = dt.timedelta(0)


class Cut(BaseException):
    """The power went here."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give the folder of a table with versions 0 to 5 and a checkpoint of version 3."""
    path = stream_path(tmp_path, "s")
    delta_log.create(path, SCHEMA)
    for commit in range(1, 6):
        append(path, commit)
        if commit == 3:
            checkpoint(path)
    return path


def append(path: Path, commit: int) -> None:
    """Settle a commit of one row."""
    log = TableLog(path)
    log.look()
    log.commit(TableChange(adds=[new_file(path, commit, commit)]), {SETTLED: commit})


def rows(path: Path) -> list[int]:
    """Read a table as this engine does."""
    log = TableLog(path)
    assert log.look()
    files = [str(file.path) for file in log.files.values()]
    return sorted(ds.dataset(files, schema=SCHEMA, format="parquet").to_table()["value"].to_pylist())


def plain(path: Path) -> list[int]:
    """Read a table as anybody would."""
    files = DeltaTable(str(path)).file_uris()
    return sorted(value for _, value in duckdb.read_parquet(files).fetchall())


def checkpoint_path(path: Path, version: int) -> Path:
    """Give the path of a checkpoint."""
    return path / "_delta_log" / f"{version:020d}.checkpoint.parquet"


def hint_path(path: Path) -> Path:
    """Give the path of the hint."""
    return path / "_delta_log" / HINT


TORN: dict[str, Callable[[Path], object]] = {
    "empty": lambda file: file.write_bytes(b""),
    "half": lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2] if file.exists() else b'{"a'),
    "zeros": lambda file: file.write_bytes(bytes(4_096)),
    "no object": lambda file: file.write_text("1\n"),
}


@pytest.mark.parametrize("torn", TORN)
def test_a_torn_newest_version_counts_as_not_written(folder: Path, torn: str) -> None:
    TORN[torn](version_path(folder, 6))
    log = TableLog(folder)
    assert log.look()
    assert (log.version, log.settled(), rows(folder)) == (5, 5, [1, 2, 3, 4, 5])
    with pytest.raises(ConcurrentAddError):
        log.commit(TableChange(), {SETTLED: 6})
    assert mend(folder) == [version_path(folder, 6).name]
    assert mend(folder) == []
    append(folder, 6)
    assert rows(folder) == plain(folder) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("torn", TORN)
@pytest.mark.parametrize("hint", ["with a hint", "without"])
def test_a_torn_checkpoint_counts_as_absent(folder: Path, torn: str, hint: str) -> None:
    TORN[torn](checkpoint_path(folder, 3))
    if hint == "without":
        hint_path(folder).unlink()
    assert rows(folder) == [1, 2, 3, 4, 5]
    gone = [checkpoint_path(folder, 3).name, *([HINT] if hint == "with a hint" else [])]
    assert mend(folder) == gone
    assert plain(folder) == [1, 2, 3, 4, 5]
    assert clean_log(folder, AT_ONCE) == 0, "nothing goes where no checkpoint stands"
    assert checkpoint(folder) == 5
    assert clean_log(folder, AT_ONCE) == 5
    assert rows(folder) == plain(folder) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("hint", ["", '{"versi', "[]", '{"version":2,"size":9}', '{"version":99,"size":9}'])
def test_a_hint_that_leads_nowhere_counts_as_absent(folder: Path, hint: str) -> None:
    hint_path(folder).write_text(hint)
    assert rows(folder) == [1, 2, 3, 4, 5]
    assert mend(folder) == [HINT]
    assert rows(folder) == plain(folder) == [1, 2, 3, 4, 5]


def test_a_torn_checkpoint_and_a_torn_version_at_once(folder: Path) -> None:
    checkpoint(folder)
    checkpoint_path(folder, 5).write_bytes(b"")
    version_path(folder, 6).touch()
    assert rows(folder) == [1, 2, 3, 4, 5]
    assert mend(folder) == [checkpoint_path(folder, 5).name, version_path(folder, 6).name, HINT]
    assert LogFiles.of(folder).checkpoints == (3,)
    assert rows(folder) == plain(folder) == [1, 2, 3, 4, 5]


def test_a_torn_checkpoint_behind_which_the_log_was_cleaned_is_told(folder: Path) -> None:
    checkpoint(folder)
    assert clean_log(folder, AT_ONCE) == 6
    checkpoint_path(folder, 5).write_bytes(b"")
    version_path(folder, 5).unlink()
    with pytest.raises(TornLogError, match="pulseline doctor FLOW says what stands"):
        open_table(folder)


def test_a_torn_version_in_the_middle_is_not_removed(folder: Path) -> None:
    version_path(folder, 4).write_bytes(b"")
    assert mend(folder) == []
    assert version_path(folder, 5).exists()


STEPS = (
    "durable.sync_file",
    "Path.replace",
    "durable.sync_folder",
    "Path.replace.hint",
    "DeltaTable.create_checkpoint",
)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_a_checkpoint_that_was_cut_off_harms_nobody(
    folder: Path, monkeypatch: pytest.MonkeyPatch, step: str, *, after: bool
) -> None:
    owner, name, *hint = step.split(".")
    place: Any = {"durable": durable, "Path": Path, "DeltaTable": DeltaTable}[owner]
    whole = getattr(place, name)

    def cut(*given: Any, **named: Any) -> None:  # noqa: ANN401 - whatever the step takes
        is_meant = not hint or Path(given[-1]).name == HINT
        if after or not is_meant:
            whole(*given, **named)
        if is_meant:
            raise Cut

    with monkeypatch.context() as patch:
        patch.setattr(place, name, cut)
        with pytest.raises(Cut):
            checkpoint(folder)
    assert rows(folder) == plain(folder) == [1, 2, 3, 4, 5]
    clean_log(folder, AT_ONCE)
    assert rows(folder) == [1, 2, 3, 4, 5]
    mend(folder)
    assert rows(folder) == plain(folder) == [1, 2, 3, 4, 5]
    append(folder, 6)
    assert checkpoint(folder) == 6
    clean_log(folder, AT_ONCE)
    assert json.loads(hint_path(folder).read_text())["version"] == 6
    assert rows(folder) == plain(folder) == [1, 2, 3, 4, 5, 6]
    assert [file.name for file in folder.iterdir() if file.name.startswith("_checkpoint")] == []


def test_a_checkpoint_that_cannot_be_read_back_is_not_counted_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(file: Path) -> None:
        if file.name.endswith(".checkpoint.parquet"):
            file.write_bytes(b"PAR1")

    with monkeypatch.context() as patch:
        patch.setattr(durable, "sync_file", half)
        with pytest.raises(TornLogError, match="cannot be read back"):
            checkpoint(folder)
    assert delta_log.checkpoint_version(folder) == 3
    assert rows(folder) == plain(folder) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("table", ["streams/s", "commits"])
@pytest.mark.parametrize("torn", ["version", "checkpoint", "hint"])
def test_a_driver_mends_what_a_power_cut_left_and_goes_on(tmp_path: Path, table: str, torn: str) -> None:
    path = tmp_path / table
    delta_log.create(stream_path(tmp_path, "s"), SCHEMA)
    with open_driver(tmp_path, flow="f") as driver:
        publish(driver, 1)
        publish(driver, 2)
    before = CommitLog(tmp_path).rows()
    newest = DeltaTable(str(path)).version()
    if torn == "version":
        version_path(path, newest + 1).touch()
    else:
        checkpoint(path)
        (checkpoint_path(path, newest) if torn == "checkpoint" else hint_path(path)).write_bytes(b"")
    assert CommitLog(tmp_path).rows() == before
    with open_driver(tmp_path, flow="f") as driver:
        assert mend(path) == mend(commits_path(tmp_path)) == []
        publish(driver, 3)
        driver.keep_house(every=1, keep=AT_ONCE)
        publish(driver, 4)
    assert rows(stream_path(tmp_path, "s")) == plain(stream_path(tmp_path, "s")) == [1, 2, 3, 4]
    assert CommitLog(tmp_path).rows()[: len(before)] == before


def test_a_disk_that_fails_while_a_log_is_read_again_is_not_told_as_a_torn_log(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As under a power cut: delta-rs says no more than that its file system failed, and then our own copy says why."""

    def fails(*_: object) -> NoReturn:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    def kernel(*_: object) -> NoReturn:
        raise DeltaError("Kernel error -> Generic LocalFileSystem error")

    monkeypatch.setattr(delta_log, "DeltaTable", kernel)
    with pytest.raises(TornLogError):
        delta_log.open_table(folder)
    monkeypatch.setattr(delta_log, "_link", fails)
    with pytest.raises(OSError, match="Input/output error") as told:
        delta_log.open_table(folder)
    assert told.value.errno == errno.EIO


def test_too_few_open_files_are_told_as_that_and_not_as_a_torn_log(folder: Path) -> None:
    for commit in range(6, 60):
        append(folder, commit)
    kept = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/proc/self/fd").iterdir())) + 8, kept[1]))
    try:
        with pytest.raises(OSError, match="Too many open files") as refused:
            open_table(folder)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, kept)
    assert refused.value.errno == errno.EMFILE
    assert rows(folder) == list(range(1, 60))


@pytest.mark.parametrize("harm", [b"", b'{"commitInfo": {"opera'], ids=["emptied", "cut"])
@pytest.mark.parametrize("where", ["folder", "store"])
def test_a_harmed_version_behind_which_others_stand_is_told_by_its_name(
    where: str, harm: bytes, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """delta-rs takes an empty one for a transaction that does nothing: the rows that it added would be gone unsaid."""
    root: Path = tmp_path if where == "folder" else request.getfixturevalue("store")
    path = stream_path(root, "s")
    delta_log.create(path, SCHEMA)
    log = TableLog(path)
    for commit in range(1, 6):
        log.look()
        log.commit(TableChange(adds=[NewFile(f"c{commit}.parquet", 1, 9, "", commit, commit)]), {SETTLED: commit})
    version_path(path, 2).write_bytes(harm)
    with pytest.raises(TornLogError, match=f"{2:020d}.json cannot"):
        TableLog(path).look()


def test_the_newest_version_in_a_store_that_is_empty_is_told(store: StorePath) -> None:
    """No power cut leaves one there: somebody wrote it."""
    path = stream_path(store, "s")
    delta_log.create(path, SCHEMA)
    version_path(path, 1).write_bytes(b"")
    with pytest.raises(TornLogError, match=f"{1:020d}.json cannot"):
        TableLog(path).look()
    assert mend(path, harmed=True) == []


def without_versions(*versions: int) -> Callable[[Path], None]:
    """Give what takes versions out of a log."""

    def lose(path: Path) -> None:
        for version in versions:
            version_path(path, version).unlink()

    return lose


def without_a_checkpoint(path: Path) -> None:
    """Have a log that is read from its first version on."""
    checkpoint_path(path, 3).unlink()
    hint_path(path).unlink()


def without_the_first(path: Path) -> None:
    """Lose the version that tells a table's columns."""
    without_a_checkpoint(path)
    version_path(path, 0).unlink()


def without_columns(path: Path) -> None:
    """Have a first version that tells none."""
    without_a_checkpoint(path)
    version_path(path, 0).write_bytes(b"{}\n")


def with_a_strange_type(path: Path) -> None:
    """Have a first version that tells one of a type that there is not."""
    without_a_checkpoint(path)
    first = version_path(path, 0)
    first.write_bytes(first.read_bytes().replace(b'\\"long\\"', b'\\"odd\\"'))


def without_what_the_hint_names(path: Path) -> None:
    """Lose the checkpoint behind which a log was cleaned."""
    without_versions(0, 1, 2)(path)
    checkpoint_path(path, 3).unlink()


def with_a_torn_ground(path: Path) -> None:
    """Have other bytes in that checkpoint."""
    without_versions(0, 1, 2)(path)
    checkpoint_path(path, 3).write_bytes(b"PAR1")


HARMS = (
    without_the_first,
    without_columns,
    with_a_strange_type,
    without_what_the_hint_names,
    with_a_torn_ground,
    without_versions(4),
)


@pytest.fixture
def twins(folder: Path, store: StorePath) -> tuple[Path, Path]:
    """Give such a table, and the same log in a store."""
    path = stream_path(store, "s")
    for file in (folder / "_delta_log").iterdir():
        (path / "_delta_log" / file.name).write_bytes(file.read_bytes())
    return folder, path


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__)
def test_what_a_log_lacks_is_told_of_one_in_a_store_as_of_one_in_a_folder(
    twins: tuple[Path, Path], harm: Callable[[Path], None]
) -> None:
    said = []
    for path in twins:
        harm(path)
        with pytest.raises(TornLogError) as refused:
            TableLog(path).look()
        said.append(str(refused.value).replace(str(path), "TABLE"))
    assert said[0] == said[1]


@pytest.mark.parametrize("torn", ["checkpoint", "hint"])
def test_a_torn_checkpoint_in_a_store_counts_as_absent_until_a_repair(twins: tuple[Path, Path], torn: str) -> None:
    _, path = twins
    if torn == "checkpoint":
        checkpoint_path(path, 3).write_bytes(b"PAR1")
    else:
        hint_path(path).write_text('{"version":99,"size":9}')
    log = TableLog(path)
    assert log.look()
    assert (log.version, log.settled(), len(log.files)) == (5, 5, 5)
    assert mend(path) == [], "no power cut leaves one there"
    with pytest.raises(TornLogError, match="with --repair it mends it"):
        checkpoint(path)
    assert mend(path, harmed=True)[-1] == HINT
    assert mend(path, harmed=True) == []
    assert checkpoint(path) == 5
    assert len(DeltaTable(str(path)).file_uris()) == 5


def test_a_store_that_fails_is_not_told_as_a_torn_log(
    twins: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """delta-rs met what our own look no longer does: whose fault it was, the log shows."""
    _, path = twins

    def kernel(table: str) -> DeltaTable:
        if table == str(path):
            raise DeltaError("Kernel error: Error interacting with object store: Generic S3 error: 503")
        return DeltaTable(table)

    monkeypatch.setattr(delta_log, "DeltaTable", kernel)
    with pytest.raises(StoreFailedError, match="503"):
        open_table(path)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(StoreFailedError, match=r"127\.0\.0\.1:9"):
        open_table(path)
    with pytest.raises(StoreFailedError, match=r"127\.0\.0\.1:9"):
        mend(path, harmed=True)
