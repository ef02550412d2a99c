"""A row of `commits`: which commit, how far it has come, and what was known of it then."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from pipelines.engine.commits.errors import PlanChangedError
from pipelines.operators.rows import KIND_NAMES

if TYPE_CHECKING:
    from collections.abc import Mapping


class Span(NamedTuple):
    """The arrivals that a commit covers, [start, end), in ticks."""

    start: int
    end: int

    def holds(self, at: int) -> bool:
        """Say whether what arrived at an instant, in ticks, is covered."""
        return self.start <= at < self.end

    def meets(self, other: Span) -> bool:
        """Say whether both cover some instant."""
        return self.start < other.end and other.start < self.end


NO_SPAN = Span(0, 0)
NOTHING: Mapping[str, object] = MappingProxyType({})
LEDGER = "ledger"
"""How counts name the ledger."""
START_OF_RUN = 0
"""The parent of a run's first commit; no commit has this number."""


class CommitKind(StrEnum):
    """What a row of `commits` belongs to."""

    LEASE = "lease"
    """The lease changed hands; the row has no commit number."""
    INTERVAL = "interval"
    """A backfilled interval: writes its whole carry, may be superseded."""
    EPOCH = "epoch"
    """An epoch of a stream: writes what changed in the carry."""
    RESET = "reset"
    """The run went back to the state of its parent; what came behind that is superseded."""
    ADOPT = "adopt"
    """The carry was taken over, from under another flow or out of another run: a base, and no row."""
    HOUSE = "house"
    """No commit: a row about the tables themselves."""


class State(StrEnum):
    """How far a commit has come; one row of `commits` for each step."""

    LEASE = "lease"
    """A driver raised the token; no commit's step."""
    INTENT = "intent"
    """What will be done is fixed; tasks may run."""
    WRITTEN = "written"
    """Every file is on disk and named by the row; no table knows of it yet."""
    PUBLISHED = "published"
    """It counts, and no longer what it supersedes; the tables follow (`engine/commits/settling.py`)."""
    REJECTED = "rejected"
    """The gate said no; readers never see it."""
    ABANDONED = "abandoned"
    """Given up before it was published; its number stays used."""
    FOLDED = "folded"
    """The whole carry at this commit was written beside its deltas; changes nothing else."""
    FORMAT = "format"
    """Which format the run's folder has; the first row, or the one that took an older folder over."""
    COMPACTED = "compacted"
    """Files of a table hold from now on what other files held; changes no row."""
    SETTLED = "settled"
    """Nothing happened but that the tables followed the last published commit."""
    REBUILT = "rebuilt"
    """A table's log was made anew; versions of it that were recorded before mean nothing."""


FORMAT = 2
"""The format of a run's folder that this code writes: files enter a table's log when their commit is settled."""
ASIDE = frozenset({State.LEASE, State.FOLDED, State.FORMAT, State.COMPACTED, State.SETTLED, State.REBUILT})
"""States of rows that are no step of a commit."""
TOGETHER = "together"
"""In the detail of commits that were worked on in one go and share their files: the first and the last of them."""
OPEN_STATES = frozenset({State.INTENT, State.WRITTEN})


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One row of `commits`: a step of a commit, or a lease."""

    entry: int = 0
    """Place of the row in the log, from 1, without gaps."""
    commit: int = 0
    state: State
    kind: CommitKind
    parent: int = START_OF_RUN
    span: Span = NO_SPAN
    sequences: tuple[int, ...] = ()
    plan: str | None = None
    """JSON of flow definition and versions; in the intent, and put back onto later rows by `LogState`."""
    fingerprint: str | None = None
    token: int = 0
    """Token of the lease under which the row was written."""
    counts: Mapping[str, object] = field(default_factory=dict)
    hashes: Mapping[str, str] = field(default_factory=dict)
    """Text of the content hash of each stream and the ledger."""
    carry_hash: str | None = None
    verdict: str | None = None
    supersedes: tuple[int, ...] = ()
    durations: Mapping[str, object] = field(default_factory=dict)
    detail: Mapping[str, object] = field(default_factory=dict)
    files: str | None = None
    """JSON of the files that the commit wrote, by table, from written on; see `engine/file_lists.py`."""
    settled: str | None = None
    """JSON of the newest settled commit and each table's version then, as they were when the row was appended."""
    at: int = 0
    """Wall time of the row, in ticks."""

    @property
    def idle(self) -> bool:
        """Say whether the row is of an epoch without rows, which was published without an intent and so has no plan."""
        return self.kind is CommitKind.EPOCH and self.state is State.PUBLISHED and self.fingerprint is None

    @property
    def folds(self) -> bool:
        """Say whether the row says that the whole carry at its commit stands beside the deltas."""
        return self.state is State.FOLDED or bool(self.detail.get("folded"))

    @property
    def leaves_carry(self) -> bool:
        """Say whether the carry at this commit is its parent's, so that no table has anything of it."""
        return self.idle or self.kind is CommitKind.RESET

    @property
    def first_together(self) -> int:
        """The first of the commits that share their files with this one; itself where it shares none."""
        together = self.detail.get(TOGETHER)
        return int(together[0]) if isinstance(together, list) else self.commit

    @property
    def upto(self) -> int:
        """The last sequence of the landing that is covered once this commit is published; 0 for none."""
        known = self.detail.get("sequence", 0)
        return max(self.sequences, default=known if isinstance(known, int) else 0)

    def rows_of(self, table: str) -> int:
        """Say how many rows the commit counted in a stream or the ledger; 0 where it counted none."""
        count = self.counts.get(table)
        if not isinstance(count, dict):
            return 0
        return sum(rows for kind, rows in count.items() if table == LEDGER or kind in KIND_NAMES)

    def under(self, fingerprint: str) -> Entry:
        """Give this pending commit to a driver whose plan is the commit's own.

        Raises:
            PlanChangedError: the plan has another fingerprint.
        """
        if fingerprint != self.fingerprint:
            raise PlanChangedError(self.commit, str(self.fingerprint), fingerprint)
        return self
