"""Take a run's folder over from the format in which files entered the tables' logs before their commit was published.

What is published stays as it is: every number, row and hash. Tables lose the files of commits that do not count, and
`commits` gets one row that names the files of all that do. That row is the step over: before it the folder is an older
one that can still be taken over, behind it older code finds a state that it does not know and stops.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pipelines.engine.commits.delta_log import SETTLED, active_files, checkpoint, mend, open_table
from pipelines.engine.commits.entry import FORMAT, START_OF_RUN, CommitKind, Entry, State
from pipelines.engine.commits.errors import CommitError
from pipelines.engine.commits.file_lists import long_list
from pipelines.engine.commits.history import settled_text
from pipelines.engine.commits.paths import (
    LOG,
    ActiveFile,
    NewFile,
    TableLostError,
    carry_folders,
    data_tables,
    table_name,
)
from pipelines.engine.commits.settling import commits_in, held_in, write_together
from pipelines.engine.commits.table_log import TableChange, TableLog
from pipelines.engine.files.durable import sync_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pipelines.engine.commits.history import LogState

OLDER = 1


@dataclass(eq=False)
class UnfinishedHomeError(CommitError):
    """A folder of the older format has a commit that waits.

    Facts: the folder, the commit's number, and how far it has come.
    """

    root: str
    commit: int
    state: State
    says = (
        "{root} must have nothing unfinished to be taken over; commit {commit} is at {state}: let the version that "
        "began it finish, publish or abandon it (pulseline status FLOW there says how), then upgrade again"
    )


@dataclass(frozen=True, kw_only=True)
class TablePlan:
    """What becomes of one table."""

    path: Path
    keeps: tuple[ActiveFile, ...]
    """Files of commits that count, and of nothing else."""
    drops: tuple[ActiveFile, ...]
    """Files of commits that do not count."""
    splits: tuple[tuple[ActiveFile, frozenset[int]], ...]
    """Files of both kinds, each with the commits in it that count."""


@dataclass(frozen=True, kw_only=True)
class UpgradePlan:
    """What taking a folder over would do."""

    tables: tuple[TablePlan, ...]
    carry: Mapping[str, tuple[ActiveFile, ...]] = field(default_factory=dict)
    """By part, the files that something may still begin from."""

    @property
    def dropped(self) -> int:
        """Count the files that leave a table's log."""
        return sum(len(plan.drops) + len(plan.splits) for plan in self.tables)


def upgrade_plan(root: Path, state: LogState) -> UpgradePlan:
    """Find out what taking a folder over takes; nothing is written.

    Args:
        root: the run's folder.
        state: of its log.

    Raises:
        UnfinishedHomeError: a commit is pending.
        TableLostError: rows of a published commit are in no table.
    """
    if state.pending:
        raise UnfinishedHomeError(str(root), state.pending.commit, state.pending.state)
    tables = tuple(_table_plan(path, state) for path in data_tables(root))
    for plan in tables:
        _require_rows(root, plan, state)
    carry = {table_name(root, path): tuple(_carried(path, state)) for path in carry_folders(root)}
    return UpgradePlan(tables=tables, carry=carry)


def _table_plan(path: Path, state: LogState) -> TablePlan:
    table = open_table(path)
    keeps, drops, splits = [], [], []
    for file in active_files(table, path) if table else []:
        held = held_in(file)
        counts = frozenset(held & state.visible)
        if counts == held:
            keeps.append(file)
        elif counts:
            splits.append((file, counts))
        else:
            drops.append(file)
    return TablePlan(path=path, keeps=tuple(keeps), drops=tuple(drops), splits=tuple(splits))


def _require_rows(root: Path, plan: TablePlan, state: LogState) -> None:
    name = table_name(root, plan.path).removeprefix("streams/")
    rows = sum(file.rows for file in plan.keeps) + sum(file.rows for file, _ in plan.splits)
    if rows < sum(entry.rows_of(name) for entry in state.published):
        last = next(entry.commit for entry in reversed(state.published) if entry.rows_of(name))
        raise TableLostError(str(plan.path), last)


def _carried(path: Path, state: LogState) -> Iterator[ActiveFile]:
    table = open_table(path)
    for file in active_files(table, path) if table else []:
        if any(commit in state.carried for commit in range(file.first, min(file.last, state.next_number) + 1)):
            yield file


def upgrade(root: Path, state: LogState, token: int, at: int) -> Entry:
    """Take a folder over; gives the row that ends it. Killed anywhere before that row, it can be done again.

    Args:
        root: the run's folder, under the caller's lease.
        state: of its log.
        token: of the lease.
        at: wall time, in ticks.

    Returns:
        The row to append.
    """
    plan = upgrade_plan(root, state)
    number = state.newest_published.commit if state.newest_published else START_OF_RUN
    files: dict[int, dict[str, list[NewFile]]] = defaultdict(lambda: defaultdict(list))
    versions = {}
    for table in plan.tables:
        name = table_name(root, table.path)
        mend(table.path)
        for file in _carry_out(root, table, number):
            for commit in {file.first} if file.first == file.last else commits_in(table.path / file.name):
                files[commit][name].append(file)
        checkpoint(table.path)
        log = TableLog(table.path)
        log.look()
        versions[name] = log.version
    for name, parts in plan.carry.items():
        for active in parts:
            held = held_in(active)
            for commit in held & state.carried:
                files[commit][name].append(_listed(root / name, active))
    sync_files(root, [active.path for parts in plan.carry.values() for active in parts])
    listed = (
        (commit, name, file) for commit in sorted(files) for name in files[commit] for file in files[commit][name]
    )
    return Entry(
        state=State.FORMAT,
        kind=CommitKind.HOUSE,
        token=token,
        detail={"format": FORMAT, "from": OLDER},
        files=long_list(root, "upgrade", listed),
        settled=settled_text(number, versions, 0),
        at=at,
    )


def _listed(path: Path, file: ActiveFile) -> NewFile:
    name, size = file.path.relative_to(path).as_posix(), file.path.stat().st_size
    return NewFile(name=name, rows=file.rows, size=size, first=file.first, last=file.last)


def _carry_out(root: Path, plan: TablePlan, number: int) -> list[NewFile]:
    """Bring one table to the commits that count; give its files."""
    made = [write_together(plan.path, [file], counts) for file, counts in plan.splits]
    kept = [_listed(plan.path, file) for file in plan.keeps]
    sync_files(root, [plan.path / file.name for file in (*made, *kept)])
    log = TableLog(plan.path)
    if log.look() and (log.settled() != number or plan.drops or made):
        gone = [*plan.drops, *(file for file, _ in plan.splits)]
        log.commit(TableChange(adds=made, removes=gone, says="UPGRADE"), {SETTLED: number})
    return [*kept, *made]


def clear_carry_logs(root: Path) -> None:
    """Remove the logs that parts of the carry had in the older format, once nothing reads them any more."""
    for path in carry_folders(root):
        shutil.rmtree(path / LOG, ignore_errors=True)
