"""A table's log under its one writer: what others do is found, refused or survived, never written over."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from pipelines.engine.commits import readers
from pipelines.engine.commits.delta_log import HOUSE, SETTLED, create, mend
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.entry import Span, State
from pipelines.engine.commits.paths import (
    ConcurrentAddError,
    ForeignWriteError,
    NewFile,
    TableLostError,
    TornLogError,
    commits_path,
    stream_path,
    version_path,
)
from pipelines.engine.commits.table_log import TableChange, TableLog
from pipelines.engine.commits.young_log import read_young
from pipelines.engine.files.folders import UNNAMED

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipelines.engine.commits.driver import Driver

SCHEMA = pa.schema([pa.field("commit", pa.int64()), pa.field("value", pa.int64())])


def new_file(folder: Path, commit: int, *values: int) -> NewFile:
    """Write a file as a task does."""
    name = f"{UNNAMED}/c{commit:08d}-0-0-{uuid.uuid4().hex[:8]}.parquet"
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"commit": [commit] * len(values), "value": values}, schema=SCHEMA), folder / name)
    size = (folder / name).stat().st_size
    return NewFile(name=name, rows=len(values), size=size, first=commit, last=commit)


def publish(driver: Driver, *values: int, start: int | None = None) -> int:
    """Take a commit of the stream `s` to its end; one from `start` is run again."""
    number, state = driver.next_number(), driver.state()
    first = start if start is not None else state.tip.span.end if state.tip else 0
    driver.intent(number, Span(first, first + 1), state.parent_for(first), [], {}, "print")
    driver.written(number, {"streams/s": [new_file(stream_path(driver.root, "s"), number, *values)]}, {}, {}, "h", {})
    driver.publish(number)
    return number


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give the folder of the table `s` of a run with two settled commits of values 1, 2 and 3."""
    path = stream_path(tmp_path, "s")
    create(path, SCHEMA)
    with open_driver(tmp_path, flow="f") as driver:
        publish(driver, 1, 2)
        publish(driver, 3)
    return path


def values(folder: Path) -> list[int]:
    """Read a table as anybody would."""
    files = DeltaTable(str(folder)).file_uris()
    rows = ds.dataset(files, schema=SCHEMA, format="parquet").to_table() if files else SCHEMA.empty_table()
    return sorted(rows["value"].to_pylist())


def log_of(folder: Path) -> TableLog:
    """Look at a table's log."""
    log = TableLog(folder)
    assert log.look()
    return log


# --- what is written is what others read


def test_what_is_written_here_is_what_delta_rs_reads(folder: Path) -> None:
    table, log = DeltaTable(str(folder)), log_of(folder)
    assert (table.version(), table.transaction_version(SETTLED)) == (log.version, log.settled()) == (2, 2)
    assert sorted(pa.table(table.get_add_actions())["path"].to_pylist()) == sorted(log.files)
    assert [entry["operation"] for entry in table.history()] == ["WRITE", "WRITE", "CREATE TABLE"]
    (first, second) = sorted(log.files.values(), key=lambda file: file.first)
    assert (first.rows, first.first, first.last, second.first) == (2, 1, 1, 2)
    assert first.size == first.path.stat().st_size
    table.create_checkpoint()
    assert values(folder) == [1, 2, 3]
    assert log_of(folder).files == log.files


def test_a_name_with_signs_that_a_path_in_a_log_must_spell_otherwise_is_found_again(tmp_path: Path) -> None:
    folder = tmp_path / "a 100% {x}[1]*"
    create(folder, SCHEMA)
    file = new_file(folder, 1, 7)
    named = file._replace(name=f"{UNNAMED}/c00000001 100% ü.parquet")
    (folder / file.name).rename(folder / named.name)
    log = log_of(folder)
    log.commit(TableChange(adds=[named]), {SETTLED: 1})
    assert log_of(folder).files == log.files
    (uri,) = DeltaTable(str(folder)).file_uris()
    assert uri.endswith(named.name)
    log.commit(TableChange(removes=list(log.files.values())), {SETTLED: 2})
    assert log_of(folder).files == log.files == {}


# --- two writers


def test_of_two_writers_the_slower_is_refused_and_goes_on_from_a_new_look(folder: Path) -> None:
    faster, slower = log_of(folder), log_of(folder)
    faster.commit(TableChange(adds=[new_file(folder, 3, 4)]), {SETTLED: 3})
    with pytest.raises(ConcurrentAddError, match="another was faster than version 3"):
        slower.commit(TableChange(adds=[new_file(folder, 3, 5)]), {SETTLED: 3})
    assert values(folder) == [1, 2, 3, 4]
    assert slower.look()
    assert (slower.settled(), slower.foreign) == (3, []), "it is one of ours"
    slower.commit(TableChange(adds=[new_file(folder, 4, 5)]), {SETTLED: 4})
    assert faster.look()
    assert faster.files == slower.files
    assert values(folder) == [1, 2, 3, 4, 5]


def test_a_refused_transaction_leaves_no_draft(folder: Path) -> None:
    faster, slower = log_of(folder), log_of(folder)
    faster.commit(TableChange(), {SETTLED: 3})
    with pytest.raises(ConcurrentAddError):
        slower.commit(TableChange(), {SETTLED: 3})
    assert sorted(file.name for file in (folder / "_delta_log").iterdir()) == [
        f"{version:020d}.json" for version in range(4)
    ]


def test_a_compaction_that_looked_before_a_removal_brings_nothing_back(tmp_path: Path, folder: Path) -> None:
    slower = log_of(folder)
    removed = list(slower.files.values())
    with open_driver(tmp_path, flow="f") as driver:
        publish(driver, 8, start=0)
        assert values(folder) == [3, 8]
    with pytest.raises(ConcurrentAddError):
        slower.commit(TableChange(adds=[new_file(folder, 2, 1, 2, 3)], removes=removed, moves_rows=False), {HOUSE: 1})
    assert values(folder) == [3, 8]


def test_a_settlement_that_somebody_overtakes_looks_again_and_is_done_once(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, came = TableLog.commit, list[int]()

    def overtaken(log: TableLog, change: TableChange, numbers: dict[str, int]) -> int:
        if log.path == folder and not came:
            came.append(1)
            DeltaTable(str(folder)).optimize.compact()
        return commit(log, change, numbers)

    monkeypatch.setattr(TableLog, "commit", overtaken)
    with open_driver(tmp_path, flow="f") as driver:
        publish(driver, 8, start=0)
    assert values(folder) == [3, 8]
    assert log_of(folder).version == 4


# --- somebody else's transactions


def delta_append(folder: Path) -> None:
    write_deltalake(str(folder), pa.table({"commit": [9], "value": [9]}, schema=SCHEMA), mode="append")


def delta_overwrite(folder: Path) -> None:
    write_deltalake(str(folder), pa.table({"commit": [9], "value": [9]}, schema=SCHEMA), mode="overwrite")


def delta_delete(folder: Path) -> None:
    DeltaTable(str(folder)).delete("value = 1")


def delta_delete_all(folder: Path) -> None:
    DeltaTable(str(folder)).delete()


def delta_update(folder: Path) -> None:
    DeltaTable(str(folder)).update(updates={"value": "9"}, predicate="value = 1")


def delta_merge(folder: Path) -> None:
    source = pa.table({"commit": [1], "value": [1]}, schema=SCHEMA)
    merge = DeltaTable(str(folder)).merge(source, "t.value = s.value", source_alias="s", target_alias="t")
    merge.when_matched_delete().execute()


def delta_restore(folder: Path) -> None:
    DeltaTable(str(folder)).restore(1)


def delta_column(folder: Path) -> None:
    from deltalake.schema import Field, PrimitiveType

    DeltaTable(str(folder)).alter.add_columns([Field("more", PrimitiveType("long"))])


def delta_constraint(folder: Path) -> None:
    DeltaTable(str(folder)).alter.add_constraint({"positive": "value > 0"})


HARMS: list[Callable[[Path], None]] = [
    delta_append,
    delta_overwrite,
    delta_delete,
    delta_delete_all,
    delta_update,
    delta_merge,
    delta_restore,
    delta_column,
    delta_constraint,
]


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__)
def test_rows_or_columns_that_others_changed_are_found_and_refused_before_anything_is_begun(
    tmp_path: Path, folder: Path, harm: Callable[[Path], None]
) -> None:
    harm(folder)
    found = values(folder)
    for _ in range(2):
        with open_driver(tmp_path, flow="f") as driver:
            with pytest.raises(ForeignWriteError, match="pulseline doctor FLOW --repair") as refused:
                publish(driver, 4)
            assert refused.value.version == 3
            assert driver.pending() is None
    assert values(folder) == found, "nothing was added, and nothing put right by itself"


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__)
def test_rows_that_others_changed_under_a_living_driver_are_found_at_its_next_step(
    tmp_path: Path, folder: Path, harm: Callable[[Path], None]
) -> None:
    with open_driver(tmp_path, flow="f") as driver:
        number = publish(driver, 4)
        driver.intent(4, Span(3, 4), number, [], {}, "print")
        driver.written(4, {"streams/s": [new_file(folder, 4, 5)]}, {}, {}, "h", {})
        harm(folder)
        with pytest.raises(ForeignWriteError):
            driver.publish(4)
        assert driver.state().commits[4].state is State.WRITTEN


REPAIRED = [harm for harm in HARMS if harm not in {delta_column, delta_constraint}]


@pytest.mark.parametrize("harm", REPAIRED, ids=lambda harm: harm.__name__)
def test_a_repair_puts_the_rows_of_the_run_back(tmp_path: Path, folder: Path, harm: Callable[[Path], None]) -> None:
    harm(folder)
    with open_driver(tmp_path, flow="f") as driver:
        driver.tables.restore(folder, 2)
        assert values(folder) == [1, 2, 3]
        publish(driver, 4)
        assert values(folder) == [1, 2, 3, 4]
    with open_driver(tmp_path, flow="f") as driver:
        publish(driver, 5, start=0)
    assert values(folder) == [3, 4, 5]


def delta_optimize(folder: Path) -> None:
    DeltaTable(str(folder)).optimize.compact()


def delta_z_order(folder: Path) -> None:
    DeltaTable(str(folder)).optimize.z_order(["value"])


def delta_checkpoint(folder: Path) -> None:
    DeltaTable(str(folder)).create_checkpoint()


def delta_vacuum(folder: Path) -> None:
    DeltaTable(str(folder)).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False, full=True)


def delta_cleanup(folder: Path) -> None:
    table = DeltaTable(str(folder))
    table.create_checkpoint()
    table.cleanup_metadata()


SURVIVED: list[Callable[[Path], None]] = [delta_optimize, delta_z_order, delta_checkpoint, delta_vacuum, delta_cleanup]


@pytest.mark.parametrize("deed", SURVIVED, ids=lambda deed: deed.__name__)
@pytest.mark.parametrize("living", [True, False], ids=["under a driver", "between drivers"])
def test_what_others_may_do_is_survived_and_rows_that_go_then_go_alone(
    tmp_path: Path, folder: Path, deed: Callable[[Path], None], *, living: bool
) -> None:
    if not living:
        deed(folder)
    with open_driver(tmp_path, flow="f") as driver:
        publish(driver, 4)
        if living:
            deed(folder)
        assert values(folder) == [1, 2, 3, 4]
        publish(driver, 5, start=0)
        assert values(folder) == [3, 4, 5]
        driver.keep_house(every=1)
        assert values(folder) == [3, 4, 5]
    assert sorted(readers.published(tmp_path, "s").scan()["value"].to_pylist()) == [3, 4, 5]


def test_a_vacuum_by_others_leaves_what_a_commit_that_waits_has_written(tmp_path: Path, folder: Path) -> None:
    with open_driver(tmp_path, flow="f") as driver:
        driver.intent(3, Span(2, 3), 2, [], {}, "print")
        file = new_file(folder, 3, 4)
        driver.written(3, {"streams/s": [file]}, {}, {}, "h", {})
        (folder / "stray.parquet").write_bytes((folder / file.name).read_bytes())
        delta_vacuum(folder)
        assert not (folder / "stray.parquet").exists(), "it would have been taken"
        driver.publish(3)
    assert values(folder) == [1, 2, 3, 4]


def test_a_foreign_transaction_is_named_with_its_version_and_what_its_log_calls_it(folder: Path) -> None:
    delta_delete(folder)
    delta_append(folder)
    log = TableLog(folder)
    assert log.look(since=2)
    assert [(each.version, each.operation) for each in log.foreign] == [(3, "DELETE"), (4, "WRITE")]
    assert log.foreign[1].harm == "added rows"
    assert log.foreign[0].gone
    again = TableLog(folder)
    again.look(since=4)
    assert again.foreign == []


# --- a table that is another one


def test_an_older_copy_in_place_of_a_table_is_refused(tmp_path: Path, folder: Path) -> None:
    version_path(folder, 2).unlink()
    with open_driver(tmp_path, flow="f") as driver, pytest.raises(TableLostError, match="must hold what commit 2"):
        publish(driver, 4)


def test_a_version_in_the_middle_that_cannot_be_read_is_told_and_not_passed_over(folder: Path) -> None:
    log = log_of(folder)
    other = log_of(folder)
    for commit in (3, 4):
        other.commit(TableChange(adds=[new_file(folder, commit, commit)]), {SETTLED: commit})
    version_path(folder, 3).write_text('{"add": ')
    with pytest.raises(TornLogError, match=r"00003\.json cannot \("):
        log.look()


def test_a_state_that_was_given_does_not_move_on(tmp_path: Path) -> None:
    with open_driver(tmp_path, flow="f") as driver:
        create(stream_path(tmp_path, "s"), SCHEMA)
        publish(driver, 1)
        state = readers.log_state(tmp_path)
        seen = state.in_order, state.commits
        before = list(seen[0]), dict(seen[1])
        assert readers.log_state(tmp_path) is state
        publish(driver, 2)

        assert len(readers.log_state(tmp_path).in_order) == 2
        assert (list(seen[0]), dict(seen[1])) == before


def test_what_is_kept_of_commits_is_given_again_beside_a_torn_version(tmp_path: Path) -> None:
    with open_driver(tmp_path, flow="f") as driver:
        create(stream_path(tmp_path, "s"), SCHEMA)
        publish(driver, 1)
    commits = commits_path(tmp_path)
    newest = DeltaTable(str(commits)).version()
    before = readers.log_state(tmp_path).entries
    version_path(commits, newest + 1).touch()

    assert list(readers.log_state(tmp_path).entries) == list(readers.log_state(tmp_path).entries) == list(before)


@pytest.mark.parametrize("end", ["\u2028", "\u2029", "\x85"])
def test_a_version_of_somebody_else_may_hold_line_ends_of_unicode(folder: Path, end: str) -> None:
    log = TableLog(folder)
    assert log.look()
    stats = json.dumps({"numRecords": 1, "maxValues": {"text": f"a{end}b"}}, ensure_ascii=False)
    add = {"path": "theirs.parquet", "size": 1, "partitionValues": {}, "modificationTime": 0, "dataChange": False}
    head = {"commitInfo": {"operation": "OPTIMIZE"}}
    lines = [json.dumps(each, ensure_ascii=False) for each in (head, {"add": {**add, "stats": stats}})]
    version_path(folder, log.version + 1).write_text("\n".join(lines), encoding="utf-8")

    assert mend(folder) == []
    assert log.look()
    assert "theirs.parquet" in log.files
    assert log.version == DeltaTable(str(folder)).version()
    found = read_young(folder)
    assert found is not None
    assert found.version == log.version
