"""Remove what no reader will ever see again: files of attempts that never counted, and what no version needs any more.

Only under the lease. A file is removed once it is in no table and named by nothing that may still be settled or read,
and only when it has lain like that for the retention: a transaction that takes a file out of a table sets its time.
"""

from __future__ import annotations

import logging
import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipelines.engine.columnar.clock import wall_now
from pipelines.engine.commits.delta_log import COPIED_LOG
from pipelines.engine.commits.entry import State
from pipelines.engine.commits.file_lists import LISTS, FileLists
from pipelines.engine.commits.leg_roots import held_from
from pipelines.engine.commits.paths import LOG, carry_folders, commits_path, data_tables, table_name
from pipelines.engine.commits.table_log import TableLog
from pipelines.engine.files.durable import DRAFT, changed_ns, remove
from pipelines.engine.files.folders import UNNAMED
from pipelines.operators.rows import TICKS_PER_SECOND

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from pipelines.engine.commits.history import LogState

LOGGER = logging.getLogger(__name__)
FILE_NAME = re.compile(r"c(\d{8,})-.*\.parquet")
HELD_NAME = re.compile(r"[ck](\d{8,})-(?:(\d{8,})-)?.*\.parquet")
"""Name of a file of the carry: of one commit, or of several from the first to the last."""
FAILED = frozenset({State.REJECTED, State.ABANDONED})
NANOS_PER_TICK = 1_000


@dataclass(frozen=True)
class Swept:
    """What a sweep removed."""

    files: int = 0
    size: int = 0
    """Bytes."""

    def __add__(self, other: Swept) -> Swept:
        return Swept(self.files + other.files, self.size + other.size)


def outlived(state: LogState, before: int) -> frozenset[int]:
    """Give the commits that were superseded, rejected or abandoned before an instant and carry nothing that counts.

    Args:
        state: the log.
        before: wall time, in ticks.
    """
    ends = {old: state.commits[new].at for old, new in state.successors.items()}
    ends |= {row.commit: row.at for row in state.commits.values() if row.state in FAILED}
    return frozenset(commit for commit, at in ends.items() if at <= before and commit not in state.carried)


def opened(path: Path) -> TableLog:
    """Open the log of a table as it is now."""
    log = TableLog(path)
    log.look()
    return log


def sweep(root: Path, keep: dt.timedelta, state: LogState, log_of: Callable[[Path], TableLog] = opened) -> Swept:
    """Remove files that nothing names, and that nothing has named for a while.

    Args:
        root: the run's folder, under the caller's lease, its last commit settled.
        keep: how long a file stays once no version needs it.
        state: the log.
        log_of: gives the log of a table, as it is now.
    """
    age = (keep.days * 86_400 + keep.seconds) * TICKS_PER_SECOND + keep.microseconds
    before = wall_now() - age
    lists = FileLists(root, state)
    swept, held = Swept(), held_from(root, state)
    for path in data_tables(root):
        swept += _sweep_table(root, log_of(path), state, lists, before, held) + _sweep_drafts(path, before)
    for path in carry_folders(root):
        swept += _sweep_carry(root, path, state, lists, before)
    swept += _sweep_drafts(commits_path(root), before) + _sweep_lists(root, state, before)
    LOGGER.info("swept %s: %d files, %d bytes", root, swept.files, swept.size)
    return swept


def _is_open(state: LogState, commit: int) -> bool:
    """Say whether a commit may still come to be named: it is pending, or began after the log was read."""
    return commit >= state.next_number or bool(state.pending and state.pending.commit == commit)


def _old(files: Iterable[Path], before: int) -> list[Path]:
    return [file for file in files if file.is_file() and changed_ns(file) <= before * NANOS_PER_TICK]


def _sweep_table(  # noqa: PLR0913 - one table, and all that may still need a file of it
    root: Path, log: TableLog, state: LogState, lists: FileLists, before: int, held: int | None
) -> Swept:
    path = log.path
    found = [*_old((path / UNNAMED).glob("*.parquet"), before), *_old(path.glob("*.parquet"), before)]
    idle = {file.relative_to(path).as_posix(): file for file in found}
    idle = {name: file for name, file in idle.items() if name not in log.files}
    if not idle:
        return Swept()
    named = _named(state, lists, table_name(root, path))
    return _unlink(file for name, file in idle.items() if name not in named and not _begun(state, file, held))


def _named(state: LogState, lists: FileLists, table: str) -> set[str]:
    """Name the files from which a table's log would be made anew."""
    newest = state.newest_published
    return set(lists.held(table, newest.commit)) if newest else set()


def _begun(state: LogState, file: Path, held: int | None) -> bool:
    """Say whether a file may still come to be named, or is one that another leg of the run has not read yet."""
    match = FILE_NAME.fullmatch(file.name)
    if not match:
        return False
    commit = int(match.group(1))
    return _is_open(state, commit) or (held is not None and commit >= held)


def _sweep_carry(root: Path, path: Path, state: LogState, lists: FileLists, before: int) -> Swept:
    gone, table, carried = outlived(state, before), table_name(root, path), state.carried
    idle = []
    for file in _old(path.glob("*.parquet"), before):
        match = HELD_NAME.fullmatch(file.name)
        first, last = (int(match.group(1)), int(match.group(2) or match.group(1))) if match else (0, -1)
        if not match or _is_open(state, last):
            continue
        stands = (each for each in range(first, last + 1) if each in carried or _stays(state, each, gone))
        if not any(file.name == each.name for commit in stands for each in lists.holder(table, commit)):
            idle.append(file)
    return _unlink(idle)


def _stays(state: LogState, commit: int, gone: frozenset[int]) -> bool:
    """Say whether somebody may still be reading the carry of a commit."""
    return commit in state.commits and commit not in gone


def _sweep_lists(root: Path, state: LogState, before: int) -> Swept:
    """Remove lists that no row names: of attempts that were killed before their row."""
    said = {row.files for row in state.entries if row.files}
    idle = [
        file for file in _old((root / LISTS).glob("*.parquet"), before) if not any(file.name in each for each in said)
    ]
    return _unlink(idle)


def _sweep_drafts(path: Path, before: int) -> Swept:
    """Remove what writers that were killed had not named yet: drafts of versions, and copies of a log."""
    copies = [folder for folder in path.glob(f"{COPIED_LOG}*") if folder.stat().st_mtime_ns <= before * NANOS_PER_TICK]
    swept = _unlink(_old((path / LOG).glob(f".*{DRAFT}"), before))
    for folder in copies:
        swept += _unlink(file for file in folder.rglob("*") if file.is_file())
        shutil.rmtree(folder, ignore_errors=True)
    return swept


def _unlink(files: Iterable[Path]) -> Swept:
    swept = Swept()
    for file in files:
        size = file.stat().st_size
        remove(file)
        swept += Swept(1, size)
    return swept
