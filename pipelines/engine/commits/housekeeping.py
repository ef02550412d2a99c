"""Keep a run's tables young between commits: few files, and nothing that nobody will read again.

Readers go on with what they have opened: rows stay the same rows in larger files, and what was replaced stays for as
long as a version that names it. Every change is noted in `commits` before it is one transaction of its table, so a kill
leaves files that are found again or removed later. Only epochs are put together, so a superseded interval goes by whole
files, and a reset takes whole files too unless it splits one.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_left
from itertools import groupby
from typing import TYPE_CHECKING

from pipelines.engine.commits.delta_log import checkpoint, checkpoint_version, clean_log
from pipelines.engine.commits.entry import CommitKind, State
from pipelines.engine.commits.paths import carry_folders, data_tables
from pipelines.engine.commits.sweep import sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from pipelines.engine.commits.history import LogState
    from pipelines.engine.commits.log import CommitLog
    from pipelines.engine.commits.paths import ActiveFile
    from pipelines.engine.commits.settling import Tables

EVERY = 200
KEEP = dt.timedelta(days=7)
KEEP_CARRY = dt.timedelta(hours=1)
"""How long a carry that nothing can begin from stays for those who are reading it."""
FULL_FILE = 16_000_000
"""Bytes from which on a file is left as it is; also about how much is put together at a time, in memory."""
YOUNG_FILE = FULL_FILE // 32
"""Bytes up to which a file is put together with what one time brings; larger ones wait for others of their size."""
FEW = 8
"""Fewer small files than this stay as they are."""


class House:
    """What a driver does to its tables between commits."""

    def __init__(self, root: Path, tables: Tables) -> None:
        """Take the run's folder, and its tables under the driver's lease."""
        self._root, self._tables = root, tables
        self._done = 0

    def is_due(self, state: LogState, every: int) -> bool:
        """Say whether so many commits were begun since the last time, or since ever for a new driver."""
        return state.next_number - 1 - self._done >= every

    def keep(self, log: CommitLog, state: Callable[[], LogState], age: dt.timedelta) -> None:
        """Put every table in order.

        Args:
            log: the driver's.
            state: reads it, with no commit open and the last one settled; refuses where the lease was lost.
            age: how long versions of tables stay readable.

        Raises:
            ConcurrentAddError: somebody else wrote to a table meanwhile.
        """
        for path in data_tables(self._root):
            for files in heaps(self._tables.log(path).files.values(), state()):
                self._tables.compact(path, files)
        for path in carry_folders(self._root):
            self._tables.compact_carry(path, FEW)
        sweep(self._root, age, state(), self._tables.log)
        log.compact()
        for path in data_tables(self._root):
            if checkpoint_version(path) < self._tables.log(path).version:
                checkpoint(path)
            clean_log(path, age)
        log.keep_young(KEEP_CARRY)
        self._done = state().next_number - 1


def heaps(files: Iterable[ActiveFile], state: LogState) -> list[list[ActiveFile]]:
    """Choose which files of published epochs are to become one: small ones, of about one size.

    No file is put together across an epoch that a reset took back, so that the bounds of a file stay close.

    Args:
        files: of one table.
        state: of the log.
    """
    taken = sorted(old for old in state.successors if state.commits[old].kind is CommitKind.EPOCH)
    epochs = sorted((file for file in files if _of_epochs(file, state)), key=lambda file: (file.first, file.path.name))
    young = [file for file in epochs if file.size < YOUNG_FILE]
    grown = [file for file in epochs if YOUNG_FILE <= file.size < FULL_FILE // 2]
    return [heap for small in (young, grown) for heap in _cut(small, taken) if len(heap) >= FEW]


def _cut(small: Sequence[ActiveFile], taken: Sequence[int]) -> list[list[ActiveFile]]:
    sizes, total = [], 0
    for file in small:
        total += file.size
        sizes.append((bisect_left(taken, file.first), total // FULL_FILE))
    pairs = groupby(zip(small, sizes, strict=True), key=lambda pair: pair[1])
    return [[file for file, _ in heap] for _, heap in pairs]


def _of_epochs(file: ActiveFile, state: LogState) -> bool:
    ends = [state.commits.get(commit) for commit in (file.first, file.last)]
    return all(row and row.kind is CommitKind.EPOCH and row.state is State.PUBLISHED for row in ends)
