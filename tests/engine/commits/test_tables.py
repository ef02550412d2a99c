"""Tables: made once, each commit settled once and whole, whoever else writes."""

from __future__ import annotations

import pickle
import uuid
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from pipelines.engine.commits import delta_log
from pipelines.engine.commits import paths as tables
from pipelines.engine.commits.delta_log import SETTLED
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.entry import Span
from pipelines.engine.commits.paths import NewFile, stream_path
from pipelines.engine.commits.table_log import TableChange, TableLog
from pipelines.engine.files.folders import UNNAMED

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.engine.commits.driver import Driver

SCHEMA = pa.schema([pa.field("commit", pa.int64()), pa.field("value", pa.string())])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give the folder of the table of a run's stream `s`, made."""
    path = stream_path(tmp_path, "s")
    delta_log.create(path, SCHEMA)
    return path


def written(folder: Path, commit: int, values: list[str]) -> NewFile:
    """Write a file as a task does."""
    name = f"{UNNAMED}/c{commit:08d}-0-0-{uuid.uuid4().hex[:8]}.parquet"
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"commit": [commit] * len(values), "value": values}, schema=SCHEMA), folder / name)
    size = (folder / name).stat().st_size
    return NewFile(name=name, rows=len(values), size=size, first=commit, last=commit)


def publish(driver: Driver, values: list[str]) -> int:
    """Take the next commit of the stream to its end."""
    number, tip = driver.next_number(), driver.state().tip
    driver.intent(number, Span(number, number + 1), tip.commit if tip else 0, [number], {}, "print")
    driver.written(number, {"streams/s": [written(stream_path(driver.root, "s"), number, values)]}, {}, {}, "h", {})
    driver.publish(number)
    return number


def log_of(folder: Path) -> TableLog:
    """Look at a table's log."""
    log = TableLog(folder)
    assert log.look()
    return log


def append(folder: Path, commit: int, values: list[str]) -> None:
    """Settle a commit in a table by itself."""
    log_of(folder).commit(TableChange(adds=[written(folder, commit, values)]), {SETTLED: commit})


def test_creating_twice_is_creating_once(folder: Path) -> None:
    delta_log.create(folder, SCHEMA)
    assert DeltaTable(str(folder)).version() == 0
    table = delta_log.open_table(folder)
    assert table is not None
    assert delta_log.schema_of(table).equals(SCHEMA)


def test_a_table_says_that_others_only_read_it(folder: Path) -> None:
    configuration = DeltaTable(str(folder)).metadata().configuration
    assert configuration["pulseline.writer"].startswith("written by its run alone")
    assert configuration["delta.logRetentionDuration"] == "interval 7 days"


def test_a_table_may_be_created_over_files_that_tasks_wrote_before(tmp_path: Path) -> None:
    file = written(tmp_path, 1, ["a"])
    delta_log.create(tmp_path, SCHEMA)
    assert DeltaTable(str(tmp_path)).file_uris() == []
    log_of(tmp_path).commit(TableChange(adds=[file]), {SETTLED: 1})
    assert len(DeltaTable(str(tmp_path)).file_uris()) == 1


def test_other_columns_are_refused(folder: Path) -> None:
    with pytest.raises(tables.SchemaChangedError, match="run of its own"):
        delta_log.create(folder, SCHEMA.append(pa.field("more", pa.int64())))


def test_a_number_is_settled_once(tmp_path: Path, folder: Path) -> None:
    with open_driver(tmp_path, flow="f") as driver:
        publish(driver, ["a", "b"])
        before = driver.tables.versions()
        assert driver.tables.settle(1) == before
    with open_driver(tmp_path, flow="f") as again:
        assert again.tables.settle(1) == before
    table = delta_log.open_table(folder)
    assert table is not None
    assert [(file.rows, file.first, file.last) for file in delta_log.active_files(table, folder)] == [(2, 1, 1)]


def test_a_table_ahead_of_the_commits_is_refused(tmp_path: Path, folder: Path) -> None:
    append(folder, 7, ["a"])
    with open_driver(tmp_path, flow="f") as driver, pytest.raises(tables.TableAheadError, match="commit 7 already"):
        publish(driver, ["a"])
    assert len(DeltaTable(str(folder)).file_uris()) == 1


def test_settling_nothing_leaves_the_number_free(tmp_path: Path, folder: Path) -> None:
    with open_driver(tmp_path, flow="f") as driver:
        driver.intent(1, Span(1, 2), 0, [1], {}, "print")
        driver.written(1, {}, {}, {}, "h", {})
        driver.publish(1)
        assert (log_of(folder).version, log_of(folder).settled()) == (0, 0)
        assert publish(driver, ["a"]) == 2
    assert (log_of(folder).version, log_of(folder).settled()) == (1, 2)


def test_a_table_that_is_not_there_is_refused(tmp_path: Path) -> None:
    log = TableLog(tmp_path / "none")
    assert not log.look()
    with pytest.raises(tables.TableMissingError, match="there is none: whoever writes makes it first"):
        log.commit(TableChange(), {SETTLED: 1})


def test_of_two_writers_from_looks_of_one_age_the_second_is_refused(folder: Path) -> None:
    first, second = (log_of(folder) for _ in range(2))
    first.commit(TableChange(adds=[written(folder, 1, ["a"])]), {SETTLED: 1})
    with pytest.raises(tables.ConcurrentAddError, match="one writer"):
        second.commit(TableChange(adds=[written(folder, 1, ["a"])]), {SETTLED: 1})
    with pytest.raises(tables.ConcurrentAddError):
        second.commit(TableChange(adds=[written(folder, 2, ["a"])]), {SETTLED: 2})
    assert (second.version, second.settled(), second.files) == (0, 0, {})
    assert len(DeltaTable(str(folder)).file_uris()) == 1
    assert second.look()
    assert (second.version, second.settled(), second.files) == (first.version, 1, first.files)


def test_compaction_by_others_keeps_the_number_and_refuses_an_older_look(folder: Path) -> None:
    for commit in (1, 2):
        append(folder, commit, ["a"])
    old = log_of(folder)
    DeltaTable(str(folder)).optimize.compact()
    assert log_of(folder).settled() == 2
    with pytest.raises(tables.ConcurrentAddError):
        old.commit(TableChange(adds=[written(folder, 3, ["a"])]), {SETTLED: 3})
    append(folder, 3, ["a"])
    table = delta_log.open_table(folder)
    assert table is not None
    bounds = sorted((file.first, file.last) for file in delta_log.active_files(table, folder))
    assert bounds == [(1, 2), (3, 3)]


@pytest.mark.parametrize(
    "error",
    [
        tables.TableMissingError("t"),
        tables.SchemaChangedError("t", "a", "b"),
        tables.TableAheadError("t", 1, 2),
        tables.FileMissingError("t", "f"),
        tables.ConcurrentAddError("t", 1, "why"),
        tables.TableLostError("t", 1),
        tables.ForeignWriteError("t", 1, "DELETE", "took rows away"),
        tables.TornLogError("t", "f", "why"),
    ],
)
def test_errors_survive_pickling(error: tables.TableError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
