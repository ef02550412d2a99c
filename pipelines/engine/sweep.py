"""Remove what no reader will ever see again: files of attempts that never counted, and commits long superseded.

Safe beside a running driver, without the lease: the log is read before the tables, and a file is touched only when its
commit was begun before that and is finished. Reading a superseded commit for longer than `keep` is the edge.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltalake.transaction import RemoveAction

from pipelines.engine.entries import State
from pipelines.engine.lease import wall_ticks
from pipelines.engine.readers import holds, log_state
from pipelines.engine.tables import ActiveFile, active_files, data_tables, open_table
from pipelines.operators.rows import TICKS_PER_SECOND

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence
    from pathlib import Path

    from deltalake import DeltaTable

    from pipelines.engine.history import LogState

FILE_NAME = re.compile(r"c(\d{8,})-.*\.parquet")
FAILED = frozenset({State.REJECTED, State.ABANDONED})
HOUR = 3_600 * TICKS_PER_SECOND


@dataclass(frozen=True)
class Swept:
    """What a sweep removed."""

    strays: int = 0
    """Files that were never committed to their table."""
    superseded: int = 0
    """Files of superseded, rejected and abandoned commits."""
    size: int = 0
    """Bytes of both."""

    def __add__(self, other: Swept) -> Swept:
        """Add two tables' figures."""
        return Swept(self.strays + other.strays, self.superseded + other.superseded, self.size + other.size)


def outlived(state: LogState, before: int) -> frozenset[int]:
    """Give the commits that were superseded, rejected or abandoned before an instant and carry nothing that counts.

    Args:
        state: the log.
        before: wall time, in ticks.
    """
    ends = {old: state.commits[new].at for old, new in state.successors.items()}
    ends |= {row.commit: row.at for row in state.commits.values() if row.state in FAILED}
    return frozenset(commit for commit, at in ends.items() if at <= before and commit not in state.carried)


def sweep(root: Path, keep: dt.timedelta, state: LogState | None = None) -> Swept:
    """Remove files that were never committed, and those of commits superseded longer ago than `keep`.

    Files of the pending intent and of commits begun meanwhile stay, and so do those on which a visible commit's carry
    still stands.

    Args:
        root: the run's folder.
        keep: how long what was superseded, rejected or abandoned stays readable.
        state: the log, where the caller has read it.
    """
    age = (keep.days * 86_400 + keep.seconds) * TICKS_PER_SECOND + keep.microseconds
    state = state or log_state(root)
    gone = outlived(state, wall_ticks() - age)
    kept = sorted(number for number in state.commits if number not in gone)
    swept = Swept()
    for path in data_tables(root):
        swept += _sweep_table(path, state, gone, kept, age)
    return swept


def _is_of(file: ActiveFile, gone: frozenset[int], kept: Sequence[int]) -> bool:
    """Say whether a file holds rows of such commits alone."""
    return file.first in gone and file.last in gone and not holds(file, kept)


def _sweep_table(path: Path, state: LogState, gone: frozenset[int], kept: Sequence[int], age: int) -> Swept:
    table = open_table(path)
    active = active_files(table, path) if table else []
    dropped = [file for file in active if _is_of(file, gone, kept)]
    strays = _strays(path, state, {file.path.name for file in active} | (_tombstones(table, age) if table else set()))
    if table and dropped:
        _drop(table, path, dropped)
    return _unlink(strays, [file.path for file in dropped])


def _strays(path: Path, state: LogState, known: set[str]) -> list[Path]:
    kept = state.pending.commit if state.pending else None
    named = ((file, FILE_NAME.fullmatch(file.name)) for file in sorted(path.glob("c*.parquet")))
    numbered = [(file, int(match.group(1))) for file, match in named if match and file.name not in known]
    return [file for file, commit in numbered if commit != kept and commit < state.next_number]


def _tombstones(table: DeltaTable, age: int) -> set[str]:
    """Name files that the table has removed lately and that a reader of an older version may still open."""
    every = set(table.vacuum(retention_hours=0, dry_run=True, enforce_retention_duration=False))
    hours = -(-age // HOUR)
    return every - set(table.vacuum(retention_hours=hours, dry_run=True, enforce_retention_duration=False))


def _drop(table: DeltaTable, path: Path, files: list[ActiveFile]) -> None:
    # No reader saw these rows, so no data changes; delta-rs would refuse a driver's append beside a change of data.
    unseen, now = False, wall_ticks() // 1_000
    actions = [RemoveAction(file.path.relative_to(path).as_posix(), unseen, now, file.size, {}) for file in files]
    table.create_write_transaction(list(actions), mode="append", schema=table.schema())


def _unlink(strays: list[Path], superseded: list[Path]) -> Swept:
    size = 0
    for file in (*strays, *superseded):
        size += file.stat().st_size if file.exists() else 0
        file.unlink(missing_ok=True)
    return Swept(len(strays), len(superseded), size)
