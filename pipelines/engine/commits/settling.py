"""Let the tables follow what is published: one transaction a table, from a log that was just looked at.

A table stands wholly before a commit or wholly after it, and holds nothing else, so whoever opens it counts right. All
here can be done again: a table that has the commit's number is passed over, and what it needs stands in `commits`.
"""

from __future__ import annotations

import logging
import re
import secrets
from bisect import bisect_left
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.engine.commits.delta_log import HOUSE, SETTLED, exists, mend
from pipelines.engine.commits.entry import CommitKind, Entry, State
from pipelines.engine.commits.file_lists import FileLists, lists_to_json, named_in, ranges_of, strangers, visible_at
from pipelines.engine.commits.paths import (
    COMMIT,
    ActiveFile,
    ConcurrentAddError,
    NewFile,
    TableAheadError,
    TableLostError,
    data_tables,
    require_file,
    require_files,
    table_name,
    version_path,
)
from pipelines.engine.commits.table_log import NO_VERSION, TableChange, TableLog
from pipelines.engine.files.durable import sync_files, touch
from pipelines.engine.files.folders import CARRY, UNNAMED
from pipelines.engine.files.parquet import dataset, naming_the_damaged, read_rows, write_table
from pipelines.engine.files.small import write_summed
from pipelines.engine.files.stored import for_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from pipelines.engine.commits.history import LogState

LOGGER = logging.getLogger(__name__)
ROW_GROUP = 131_072
SHARED = re.compile(r"c\d{8,}-\d{8,}-")
"""Begins the name of a file that several commits wrote together."""


class Rewritten(NamedTuple):
    """A file that took the place of others, and the row of `commits` that says so."""

    file: NewFile
    entry: int


@dataclass
class Tables:
    """The tables of a run, under the lease of one driver.

    Args:
        root: the run's folder.
        state: reads the log of commits, and refuses where the lease was lost.
        note: appends a row about tables to that log.
    """

    root: Path
    state: Callable[[], LogState]
    note: Callable[[Entry], Entry]
    _logs: dict[Path, TableLog] = field(default_factory=dict)
    _kept: dict[Path, int] = field(default_factory=dict)
    """By table, the newest version of somebody else whose files have been kept for readers of older ones."""
    _seen: set[Path] = field(default_factory=set)
    """Tables that were seen to be what their folder says."""

    def mend(self) -> dict[str, list[str]]:
        """Remove what a power cut left unreadable in the tables' logs; give what was removed, by table."""
        found = {table_name(self.root, path): mend(path) for path in data_tables(self.root)}
        return {name: gone for name, gone in found.items() if gone}

    def log(self, path: Path) -> TableLog:
        """Give the log of a table as it is now.

        Raises:
            TableLostError: it is older than it was at a commit that is settled.
            TornLogError: it cannot be read.
        """
        recorded = self.state().recorded
        known = recorded.versions.get(table_name(self.root, path))
        found = self._logs.setdefault(path, TableLog(path))
        found.look(known)
        # A table that never got a file may be made anew.
        if self.state().is_older(table_name(self.root, path), found.version):
            raise TableLostError(str(path), recorded.commit)
        self._keep_others(path, found)
        return found

    def _keep_others(self, path: Path, log: TableLog) -> None:
        """Have on disk what others did, before a version that stands on it is recorded: they do not sync.

        What they took out of a table stays as long as what goes by a transaction of ours.
        """
        for each in log.foreign:
            if each.version > self._kept.get(path, NO_VERSION):
                came = [path / name for name in each.came]
                sync_files(self.root, [file for file in (version_path(path, each.version), *came) if file.exists()])
                self._kept[path] = each.version
                _touch(path / name for name in each.gone)

    def versions(self) -> dict[str, int]:
        """Give the version of each table as it was last seen here, or recorded."""
        seen = {table_name(self.root, path): log.version for path, log in self._logs.items() if log.version >= 0}
        return {**self.state().recorded.versions, **seen}

    def agree(self, number: int) -> None:
        """See that no table has commit `number` or a later one, and that nobody else changed its rows.

        Raises:
            TableAheadError: one has; its files would count as this commit's.
            ForeignWriteError: somebody else wrote to one.
        """
        unseen = []
        for path in data_tables(self.root):
            log = self.log(path)
            log.refuse_foreign()
            if log.settled() >= number:
                raise TableAheadError(str(path), number - 1, log.settled())
            if path not in self._seen:
                unseen.append(log)
        if unseen:
            self._refuse_anothers(unseen)

    def _refuse_anothers(self, logs: Sequence[TableLog]) -> None:
        """See once that each table is the one: a copy of another in its place has versions and commits like it.

        Raises:
            TableLostError: one names files that no commit wrote there, or that are gone.
        """
        state = self.state()
        newest = state.newest_published
        if newest is None:
            return
        lists = FileLists(self.root, state)
        for log in logs:
            held = lists.held(table_name(self.root, log.path), log.settled())
            others = (file for name, file in log.files.items() if name not in held)
            if strangers(log.files, held) or not all(_is_there(file) for file in others):
                raise TableLostError(str(log.path), newest.commit)
            self._seen.add(log.path)

    def settle(self, number: int) -> dict[str, int]:
        """Bring every table to a published commit.

        Args:
            number: of the commit that was published last; those that share its files were published with it.

        Returns:
            Each table's version.

        Raises:
            ForeignWriteError: somebody else wrote to a table.
            FileMissingError: a file of the commit is gone.
            LeaseLostError: another driver has taken the lease.
        """
        state = self.state()
        lists = FileLists(self.root, state)
        first = state.commits[number].first_together
        together = [state.commits[each] for each in range(first, number + 1)]
        missed = [each for each in range(state.recorded.commit + 1, first) if _is_published(state, each)]
        for path in data_tables(self.root):
            self._settle_table(path, together, lists, missed)
        return self.versions()

    def _settle_table(self, path: Path, together: Sequence[Entry], lists: FileLists, missed: Sequence[int]) -> None:
        """Let a table follow commits that share their files."""
        entry = together[-1]
        superseded = frozenset(old for each in together for old in each.supersedes)
        name = table_name(self.root, path)
        files = lists.of(entry.commit).get(name, ())
        while True:
            log = self.log(path)
            log.refuse_foreign()
            if log.settled() >= entry.commit:
                return
            if any(each > log.settled() and self._touches(each, name, lists) for each in missed):
                self.restore(path, entry.commit)
                return
            gone, instead = self._without(log, superseded, entry)
            if not (files or gone):
                return
            require_files(path, files)
            change = TableChange(adds=[*files, *(each.file for each in instead)], removes=gone)
            if self._done(log, change, entry.commit, instead):
                return

    def _done(self, log: TableLog, change: TableChange, number: int, instead: Sequence[Rewritten]) -> bool:
        """Commit a change unless another transaction came in between; keep what it removes for readers."""
        _touch(file.path for file in change.removes)
        self.state()
        numbers = {SETTLED: number, **({HOUSE: max(each.entry for each in instead)} if instead else {})}
        try:
            log.commit(change, numbers)
        except ConcurrentAddError:
            return False
        return True

    def _touches(self, number: int, name: str, lists: FileLists) -> bool:
        row = self.state().commits[number]
        return any(lists.of(each).get(name) for each in (number, *row.supersedes))

    def _without(self, log: TableLog, gone: frozenset[int], entry: Entry) -> tuple[list[ActiveFile], list[Rewritten]]:
        """Choose the files that go with superseded commits; one that holds other rows too is written without theirs."""
        ordered, removes, instead = sorted(gone), list[ActiveFile](), list[Rewritten]()
        for file in log.files.values():
            place = bisect_left(ordered, file.first)
            if place == len(ordered) or ordered[place] > file.last:
                continue
            if self._seen_in(file, log.settled()) <= gone:
                # Whichever of them it holds: it goes, and need not be there.
                removes.append(file)
                continue
            held = held_in(file)
            if held & gone:
                removes.append(file)
            if held & gone and held - gone:
                instead.append(
                    self._known_rewrite(log.path, file, entry) or self.rewrite(log.path, [file], held - gone)
                )
        return removes, instead

    def _seen_in(self, file: ActiveFile, settled: int) -> set[int]:
        """Give the commits of which a file of a table may hold rows, by its name; no other has any there."""
        if file.first == file.last:
            return {file.first}
        return {number for number in visible_at(self.state(), settled) if file.first <= number <= file.last}

    def _known_rewrite(self, path: Path, file: ActiveFile, entry: Entry) -> Rewritten | None:
        """Give what an earlier attempt to settle this commit wrote in place of a file."""
        name = table_name(self.root, path)
        for row in reversed(self.state().compactions.get(name, ())):
            if row.entry < entry.entry:
                break
            if row.detail["out"] == [file.path.relative_to(path).as_posix()]:
                return Rewritten(named_in(self.root, row)[name][0], row.entry)
        return None

    def rewrite(self, path: Path, files: Sequence[ActiveFile], keep: Collection[int]) -> Rewritten:
        """Write rows of files into one, on disk and noted in `commits`; the table does not know of it yet.

        Args:
            path: the table's folder.
            files: which.
            keep: the commits whose rows are kept.
        """
        file = write_together(path, files, keep)
        sync_files(self.root, [path / file.name])
        name = table_name(self.root, path)
        row = self.note(
            Entry(
                state=State.COMPACTED,
                kind=CommitKind.HOUSE,
                files=lists_to_json(self.root, 0, {name: [file]}),
                detail={
                    "table": name,
                    "covers": ranges_of(keep),
                    "out": [each.path.relative_to(path).as_posix() for each in files],
                },
            )
        )
        return Rewritten(file, row.entry)

    def compact_carry(self, path: Path, few: int) -> None:
        """Put the files of one part of the carry into one, once there are so many that each commit left alone.

        They are found by name, for a carry has no log; the files stay until the sweep takes them.

        Args:
            path: the part's folder.
            few: fewer files than this stay as they are.
        """
        name, lists = table_name(self.root, path), FileLists(self.root, self.state())
        carried = self.state().carried
        alone = []
        for file in sorted(path.glob("c*.parquet")):
            if SHARED.match(file.name):
                continue
            commit = int(file.name[1:].partition("-")[0])
            if commit in carried and any(each.name == file.name for each in lists.holder(name, commit)):
                alone.append(ActiveFile(file, 0, 0, commit, commit))
        if len(alone) < few:
            return
        with naming_the_damaged([file.path for file in alone]):
            schemas = {dataset([file.path]).schema for file in alone}
        if len(schemas) == 1:
            self.rewrite(path, alone, {file.first for file in alone})

    def compact(self, path: Path, files: Sequence[ActiveFile]) -> None:
        """Put the rows of files that hold nothing but rows that count into one.

        Raises:
            ConcurrentAddError: somebody else wrote to the table meanwhile; its files stay as they are.
        """
        log = self.log(path)
        held = {commit for file in files for commit in held_in(file)}
        made = self.rewrite(path, files, held)
        self.state()
        self._swap(log, made, files)
        LOGGER.info("compacted %s: %d files into one", path, len(files))

    def _swap(self, log: TableLog, made: Rewritten, files: Sequence[ActiveFile]) -> None:
        _touch(file.path for file in files)
        log.commit(TableChange(adds=[made.file], removes=files, moves_rows=False, says="OPTIMIZE"), {HOUSE: made.entry})

    def finish_compactions(self) -> None:
        """Carry out what an earlier driver noted and did not come to do, where the table is as it was then."""
        for path in data_tables(self.root):
            rows = self.state().compactions.get(table_name(self.root, path), ())
            if not rows or rows[-1].entry <= self.log(path).applications.get(HOUSE, 0):
                continue
            row, log = rows[-1], self.log(path)
            names: list[str] = row.detail["out"]  # type: ignore[assignment]
            unsettled = self.state().newest_published
            if (
                not names
                or not set(names) <= set(log.files)
                or (unsettled and unsettled.entry < row.entry and self._waits(unsettled))
            ):
                continue
            made = Rewritten(named_in(self.root, row)[table_name(self.root, path)][0], row.entry)
            require_file(path, made.file)
            self._swap(log, made, [log.files[name] for name in names])

    def _waits(self, published: Entry) -> bool:
        """Say whether a commit may not be settled yet."""
        return self.state().recorded.commit < published.commit

    def restore(self, path: Path, number: int) -> None:
        """Make a table hold what `commits` says, whatever it holds: rows of others go, what was taken away comes back.

        Args:
            path: the table's folder; it has a log.
            number: of the commit that was published last.

        Raises:
            FileMissingError: a file that `commits` names is gone.
        """
        name, state = table_name(self.root, path), self.state()
        lists, held, shared = FileLists(self.root, state), dict[str, NewFile](), defaultdict[str, set[int]](set)
        for commit in visible_at(state, number):
            for file in lists.holder(name, commit):
                held[file.name] = file
                shared[file.name].add(commit)
        instead = []
        for file in list(held.values()):
            require_file(path, file)
            there = {file.first} if file.first == file.last else commits_in(path / file.name)
            # Others of them may have been made again, into files of their own.
            wanted = shared[file.name]
            if not there <= wanted:
                held.pop(file.name)
                if not there & wanted:
                    # A commit that shares it has no row in it.
                    continue
                active = ActiveFile(path / file.name, file.rows, file.size, file.first, file.last)
                instead.append(self.rewrite(path, [active], there & wanted))
                held[instead[-1].file.name] = instead[-1].file
        log = self.log(path)
        adds = [file for file in held.values() if file.name not in log.files]
        removes = [file for known, file in log.files.items() if known not in held]
        if not self._done(log, TableChange(adds=adds, removes=removes, says="RESTORE"), number, instead):
            raise ConcurrentAddError(str(path), log.version + 1, "somebody wrote while it was restored")
        log.foreign.clear()


def _is_there(file: ActiveFile) -> bool:
    """Say whether a file that somebody else put together is there in its size."""
    try:
        return file.path.stat().st_size == file.size
    except FileNotFoundError:
        return False


def _touch(files: Iterable[Path]) -> None:
    """Set the time from which the sweep reckons how long files stay that no version needs any more."""
    for file in files:
        with suppress(FileNotFoundError):
            touch(file)


def _is_published(state: LogState, number: int) -> bool:
    row = state.commits.get(number)
    return row is not None and row.state is State.PUBLISHED


def held_in(file: ActiveFile) -> set[int]:
    """Give the numbers of the commits whose rows a file holds; one of a single commit is not opened."""
    return {file.first} if file.first == file.last else commits_in(file.path)


def commits_in(file: Path) -> set[int]:
    """Give the numbers of the commits whose rows a file holds."""
    with naming_the_damaged([file]), pq.ParquetFile(for_arrow(file)) as opened:
        return set(pc.unique(opened.read(columns=[COMMIT])[COMMIT]).to_pylist())


def write_together(path: Path, files: Sequence[ActiveFile], keep: Collection[int]) -> NewFile:
    """Write the rows of some commits, of files of one table, into one file; nothing is synced or noted.

    Args:
        path: the table's folder.
        files: which.
        keep: the commits whose rows are kept.
    """
    where = pc.field(COMMIT).isin(pa.array(sorted(keep), pa.int64()))
    rows = read_rows([file.path for file in files], where=where)
    first, last = (limit(rows[COMMIT]).as_py() for limit in (pc.min, pc.max))
    stem = f"k{first:08d}-{last:08d}"
    how = {"compression": "zstd", "compression_level": 1, "row_group_size": ROW_GROUP, "store_schema": False}
    if path.parent.name == CARRY:
        target, size = write_summed(rows, path, stem, **how)
    else:
        target = path / (UNNAMED if exists(path) else "") / f"{stem}-{secrets.token_hex(4)}.parquet"
        target.parent.mkdir(exist_ok=True)
        size = write_table(rows, target, **how)
    name = target.relative_to(path).as_posix()
    return NewFile(name=name, rows=rows.num_rows, size=size, first=first, last=last)


def is_settled(state: LogState, root: Path) -> bool:
    """Say whether every table has followed the commit that was published last, as far as can be told without a lease.

    Args:
        state: the log.
        root: the run's folder.
    """
    newest = state.newest_published
    if newest is None or newest.commit <= state.recorded.commit:
        return True
    lists = FileLists(root, state)
    touched: Mapping[str, object] = {name: 0 for each in (newest.commit, *newest.supersedes) for name in lists.of(each)}
    logs = (TableLog(path) for path in data_tables(root) if table_name(root, path) in touched)
    return all(log.look() and log.settled() >= newest.commit for log in logs)
