"""Tables: made once, files added once for each commit number, whoever else writes."""

from __future__ import annotations

import pickle
import uuid
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from pipelines.engine import tables
from pipelines.engine.tables import NewFile

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = pa.schema([pa.field("commit", pa.int64()), pa.field("value", pa.string())])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a table's folder, the table made."""
    tables.create(tmp_path / "table", SCHEMA)
    return tmp_path / "table"


def written(folder: Path, commit: int, values: list[str]) -> NewFile:
    """Write a file as a task does."""
    name = f"c{commit:08d}-0-0-{uuid.uuid4().hex[:8]}.parquet"
    pq.write_table(pa.table({"commit": [commit] * len(values), "value": values}, schema=SCHEMA), folder / name)
    return NewFile(name=name, rows=len(values), size=(folder / name).stat().st_size, stats={"value": ("a", "z")})


def test_creating_twice_is_creating_once(folder: Path) -> None:
    tables.create(folder, SCHEMA)
    assert DeltaTable(str(folder)).version() == 0
    table = tables.open_table(folder)
    assert table is not None
    assert tables.schema_of(table).equals(SCHEMA)


def test_a_table_may_be_created_over_files_that_tasks_wrote_before(tmp_path: Path) -> None:
    file = written(tmp_path, 1, ["a"])
    tables.create(tmp_path, SCHEMA)
    assert tables.add_files(tmp_path, "f/t", 1, [file])


def test_other_columns_are_refused(folder: Path) -> None:
    with pytest.raises(tables.SchemaChangedError, match="run of its own"):
        tables.create(folder, SCHEMA.append(pa.field("more", pa.int64())))


def test_a_number_is_added_once(folder: Path) -> None:
    assert tables.add_files(folder, "f/t", 1, [written(folder, 1, ["a", "b"])])
    assert not tables.add_files(folder, "f/t", 1, [written(folder, 1, ["a", "b"])])
    table = tables.open_table(folder)
    assert table is not None
    assert [(file.rows, file.first, file.last) for file in tables.active_files(table, folder)] == [(2, 1, 1)]


def test_a_table_ahead_of_the_commits_is_refused(folder: Path) -> None:
    tables.add_files(folder, "f/t", 7, [written(folder, 7, ["a"])])
    with pytest.raises(tables.TableAheadError, match="commit 7 already"):
        tables.add_files(folder, "f/t", 6, [written(folder, 6, ["a"])])


def test_adding_nothing_leaves_the_number_free(folder: Path) -> None:
    assert not tables.add_files(folder, "f/t", 1, [])
    assert tables.add_files(folder, "f/t", 1, [written(folder, 1, ["a"])])


def test_a_table_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(tables.TableMissingError, match="create it"):
        tables.add_files(tmp_path / "none", "f/t", 1, [])


def test_a_file_that_is_not_there_is_refused(folder: Path) -> None:
    with pytest.raises(tables.FileMissingError, match="run the task again"):
        tables.add_files(folder, "f/t", 1, [NewFile(name="c1.parquet", rows=1, size=1)])


def test_of_two_writers_from_handles_of_one_age_the_second_is_refused(folder: Path) -> None:
    first, second = (DeltaTable(str(folder)) for _ in range(2))
    tables.append(first, folder, [written(folder, 1, ["a"])], "f/t", 1)
    with pytest.raises(tables.ConcurrentAddError, match="one writer"):
        tables.append(second, folder, [written(folder, 1, ["a"])], "f/t", 1)
    with pytest.raises(tables.ConcurrentAddError):
        tables.append(second, folder, [written(folder, 2, ["a"])], "f/t", 2)
    assert len(DeltaTable(str(folder)).file_uris()) == 1


def test_what_delta_rs_lets_pass_is_as_was_measured(folder: Path) -> None:
    """A number seen before and a smaller one pass: if this ever fails, `add_files` may stop comparing."""
    for version in (2, 2, 1):
        tables.append(DeltaTable(str(folder)), folder, [written(folder, 2, ["a"])], "f/t", version)
    assert len(DeltaTable(str(folder)).file_uris()) == 3
    assert DeltaTable(str(folder)).transaction_version("f/t") == 1


def test_compaction_keeps_the_number_and_does_not_refuse_an_older_handle(folder: Path) -> None:
    for commit in (1, 2):
        tables.add_files(folder, "f/t", commit, [written(folder, commit, ["a"])])
    old = DeltaTable(str(folder))
    DeltaTable(str(folder)).optimize.compact()
    assert not tables.add_files(folder, "f/t", 2, [written(folder, 2, ["a"])])
    tables.append(old, folder, [written(folder, 3, ["a"])], "f/t", 3)
    table = tables.open_table(folder)
    assert table is not None
    bounds = sorted((file.first, file.last) for file in tables.active_files(table, folder))
    assert bounds == [(0, 2**63 - 1), (1, 2)]


@pytest.mark.parametrize(
    "error",
    [
        tables.TableMissingError("t"),
        tables.SchemaChangedError("t", "a", "b"),
        tables.TableAheadError("t", 1, 2),
        tables.FileMissingError("t", "f"),
        tables.ConcurrentAddError("t", 1, "why"),
    ],
)
def test_errors_survive_pickling(error: tables.TableError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
