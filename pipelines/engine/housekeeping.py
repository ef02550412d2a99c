"""Keep a run's tables young between commits: few files, few versions to read, nothing that nobody will read again.

Readers go on with what they have opened: rows stay the same rows in larger files, and what was replaced stays for a
time. Every change of a table is one transaction, so a kill leaves files that nobody knows and that are removed later.
Only epochs are put together, so a superseded interval can be dropped by whole files. Epochs are superseded by a reset
alone, a whole tail of them: a file that holds some of before and some of behind it is written anew without the latter.
"""

from __future__ import annotations

import datetime as dt
import secrets
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake.transaction import AddAction, RemoveAction

from pipelines.engine.entries import CommitKind, State
from pipelines.engine.handles import LOG, Handle
from pipelines.engine.lease import wall_ticks
from pipelines.engine.sweep import outlived, sweep
from pipelines.engine.tables import (
    COMMIT,
    ActiveFile,
    ConcurrentAddError,
    NewFile,
    active_files,
    application,
    commits_path,
    data_tables,
    newest_version,
    schema_of,
    stats,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from deltalake import DeltaTable

    from pipelines.engine.history import LogState
    from pipelines.engine.log import CommitLog

EVERY = 200
KEEP = dt.timedelta(hours=1)
KEEP_LOG = dt.timedelta(minutes=2)
"""A reader takes a moment from finding a checkpoint to reading the versions after it; nobody travels in these logs."""
FULL_FILE = 16_000_000
"""Bytes from which on a file is left as it is; also about how much is put together at a time, in memory."""
FEW = 8
"""Fewer small files than this stay as they are."""
ROW_GROUP = 131_072
HOUR = dt.timedelta(hours=1)
TICK = dt.timedelta(microseconds=1)
AT_A_TIME = 600
"""Files of one log that are removed at a time, more than come between two times: a removal takes up to 2 ms."""


class House:
    """What a driver does to its tables between commits.

    Its first act on a table is a transaction with its token under a name of its own, as is every compaction: a driver
    that was stopped inside a compaction, overtaken and woken is refused by it, whatever files are gone by then.
    """

    def __init__(self, root: Path, flow: str, token: int) -> None:
        """Take the run's folder, the flow's name and the token of the driver's lease."""
        self._root, self._flow, self._token = root, flow, token
        self._done = 0

    def is_due(self, state: LogState, every: int) -> bool:
        """Say whether so many commits were begun since the last time, or since ever for a new driver."""
        return state.next_number - 1 - self._done >= every

    def keep(self, log: CommitLog, state: LogState, age: dt.timedelta) -> None:
        """Put every table in order.

        Args:
            log: the driver's.
            state: of the log, with no commit open.
            age: how long what was replaced stays.

        Raises:
            ConcurrentAddError: another driver keeps house here.
        """
        handles = [Handle(path) for path in data_tables(self._root)]
        behind = Behind.of(state, age)
        for handle in handles:
            self._compact(handle, state, behind)
        sweep(self._root, age, state)
        log.compact()
        for handle in (*handles, Handle(commits_path(self._root))):
            self._forget(handle, age)
        self._done = state.next_number - 1

    def _compact(self, handle: Handle, state: LogState, behind: Behind) -> None:
        name = f"{application(self._root, self._flow, handle.path)}/house"
        table = handle.look()
        if table is None:
            return
        if newest_version(table, name) > self._token:
            raise ConcurrentAddError(str(handle.path), self._token, "a later driver keeps house here")
        if newest_version(table, name) < self._token:
            handle.commit([], name, self._token)
            table = handle.look()
        for files in heaps(active_files(table, handle.path) if table else [], state, behind):
            merged = _merge(table, handle.path, files, behind.gone)
            try:
                handle.commit([_added(handle.path, merged), *_removed(files)], name, self._token)
            except ConcurrentAddError:
                (handle.path / merged.name).unlink(missing_ok=True)
                raise
            table = handle.look()

    def _forget(self, handle: Handle, age: dt.timedelta) -> None:
        """Remove files that were replaced a while ago, and versions of the log that a checkpoint stands for."""
        table = handle.look()
        if table is None:
            return
        # An append to `commits` by somebody who asks for the lease is a file before it is a row of the log.
        strays_too = handle.path != commits_path(self._root)
        hours = -(-age // HOUR)
        if table.vacuum(hours, dry_run=True, enforce_retention_duration=False, full=strays_too):
            table.vacuum(hours, dry_run=False, enforce_retention_duration=False, full=strays_too)
        handle.checkpoint()
        clean_log(handle.path, KEEP_LOG)


@dataclass(frozen=True)
class Behind:
    """The epochs that resets superseded."""

    taken: tuple[int, ...]
    """All of them, smallest first. No file is put together across one, so the bounds of a file say whether it may hold
    rows of any."""
    gone: frozenset[int]
    """Those of which nobody reads any more."""

    @classmethod
    def of(cls, state: LogState, age: dt.timedelta) -> Behind:
        """Ask the log.

        Args:
            state: of the log.
            age: how long what was superseded stays readable.
        """
        taken = sorted(old for old in state.successors if state.commits[old].kind is CommitKind.EPOCH)
        return cls(tuple(taken), outlived(state, wall_ticks() - age // TICK).intersection(taken))

    def place(self, file: ActiveFile) -> int:
        """Give between which of them the file's commits lie."""
        return bisect_left(self.taken, file.first)

    def inside(self, file: ActiveFile) -> tuple[int, ...]:
        """Give those of which the file may hold rows."""
        return self.taken[self.place(file) : bisect_right(self.taken, file.last)]

    def splits(self, file: ActiveFile) -> bool:
        """Say whether the file holds rows that count and rows of which nobody reads any more."""
        inside = self.inside(file)
        return bool(inside) and file.first not in self.gone and self.gone.issuperset(inside)


NOTHING_BEHIND = Behind((), frozenset())


def heaps(files: Iterable[ActiveFile], state: LogState, behind: Behind = NOTHING_BEHIND) -> list[list[ActiveFile]]:
    """Choose which files of published epochs are to become one: small ones, and each that a reset has split, alone.

    Args:
        files: of one table.
        state: of the log.
        behind: what resets took back.
    """
    epochs = sorted((file for file in files if _of_epochs(file, state)), key=lambda file: (file.first, file.path.name))
    small = [file for file in epochs if file.size < FULL_FILE // 2 and not behind.inside(file)]
    sizes, total = [], 0
    for file in small:
        total += file.size
        sizes.append((behind.place(file), total // FULL_FILE))
    chosen = (
        [file for file, _ in heap] for _, heap in groupby(zip(small, sizes, strict=True), key=lambda pair: pair[1])
    )
    return [*([file] for file in epochs if behind.splits(file)), *(heap for heap in chosen if len(heap) >= FEW)]


def _of_epochs(file: ActiveFile, state: LogState) -> bool:
    ends = [state.commits.get(commit) for commit in (file.first, file.last)]
    return all(row and row.kind is CommitKind.EPOCH and row.state is State.PUBLISHED for row in ends)


def _merge(table: DeltaTable | None, path: Path, files: list[ActiveFile], gone: frozenset[int]) -> NewFile:
    schema = schema_of(table) if table else None
    data = ds.dataset([str(file.path) for file in files], schema=schema, format="parquet")
    rows = data.to_table(filter=~pc.field(COMMIT).isin(pa.array(sorted(gone), pa.int64())) if gone else None)
    first, last = (limit(rows[COMMIT]).as_py() for limit in (pc.min, pc.max))
    target = path / f"k{first:08d}-{last:08d}-{secrets.token_hex(4)}.parquet"
    pq.write_table(rows, target, compression="zstd", compression_level=1, row_group_size=ROW_GROUP, store_schema=False)
    bounds = {COMMIT: (first, last)}
    return NewFile(name=target.name, rows=rows.num_rows, size=target.stat().st_size, stats=bounds)


def _added(path: Path, file: NewFile) -> AddAction:
    # The same rows lie elsewhere: who streams from the table is to see nothing new.
    changed, written = False, (path / file.name).stat().st_mtime_ns // 1_000_000
    return AddAction(file.name, file.size, {}, written, changed, stats(file, None))


def _removed(files: Iterable[ActiveFile]) -> list[RemoveAction]:
    changed, now = False, wall_ticks() // 1_000
    return [RemoveAction(file.path.name, changed, now, file.size, {}) for file in files]


def clean_log(path: Path, age: dt.timedelta) -> int:
    """Remove what a table's log has before the newest checkpoint that is old enough, from the oldest version on.

    Args:
        path: the table's folder.
        age: a checkpoint younger than this does not count, nor what came after the one before it.

    Returns:
        How many files were removed.
    """
    log = sorted(file for file in (path / LOG).iterdir() if file.name[:20].isdigit())
    limit = (wall_ticks() - age // dt.timedelta(microseconds=1)) * 1_000
    grounds = [file for file in log if file.name.endswith(".checkpoint.parquet")]
    old = [_version(file) for file in grounds if file.stat().st_mtime_ns <= limit]
    gone = [file for file in log if old and _version(file) < old[-1]][:AT_A_TIME]
    for file in gone:
        file.unlink(missing_ok=True)
    return len(gone)


def _version(file: Path) -> int:
    return int(file.name[:20])
