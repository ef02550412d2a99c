"""What the rows of `commits` say: which commits are published, what hangs on what, what is pending, stale, superseded.

All of it is a function of the rows, whatever order they are read in: `entry` numbers them. No table, no clock, no
file here. A row of a commit is complete (only `plan` stands in the intent alone), so a commit is its newest row.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from pipelines.engine.refusals import (
    BeforeFirstError,
    MissingPredecessorError,
    PartialOverlapError,
    PlanChangedError,
    StreamedSpanError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Span(NamedTuple):
    """The arrivals that a commit covers, [start, end), in ticks."""

    start: int
    end: int


NO_SPAN = Span(0, 0)
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
    """The carry was set by hand: a base."""


class State(StrEnum):
    """How far a commit has come; one row of `commits` for each step."""

    LEASE = "lease"
    """A driver raised the token; no commit's step."""
    INTENT = "intent"
    """What will be done is fixed; tasks may run."""
    WRITTEN = "written"
    """Every file is in its table; nobody sees it yet."""
    PUBLISHED = "published"
    """Readers see it, and no longer what it supersedes."""
    REJECTED = "rejected"
    """The gate said no; readers never see it."""
    ABANDONED = "abandoned"
    """Given up before it was published; its number stays used."""
    FOLDED = "folded"
    """The whole carry at this commit was written beside its deltas; changes nothing else."""


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
    at: int = 0
    """Wall time of the row, in ticks."""

    def under(self, fingerprint: str) -> Entry:
        """Give this pending commit to a driver whose plan is the commit's own.

        Raises:
            PlanChangedError: the plan has another fingerprint.
        """
        if fingerprint != self.fingerprint:
            raise PlanChangedError(self.commit, str(self.fingerprint), fingerprint)
        return self


class CarryLine(NamedTuple):
    """Which commits make up the carry at a commit: a base, then the deltas after it, oldest first."""

    base: int
    """Commit whose whole carry is the ground; `START_OF_RUN` where the carry begins empty."""
    deltas: tuple[int, ...]


@dataclass(frozen=True)
class LogState:
    """What a set of rows of `commits` says.

    Laws (tests/engine/test_commits.py): the order of rows does not matter · published intervals follow one another
    without gap or overlap · only a published row changes what readers see · a stale commit's parent was superseded by
    another carry · the carry at a commit has one line.
    """

    entries: tuple[Entry, ...]
    """In the order of the log."""

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> LogState:
        """Read rows in whatever order they come.

        >>> LogState.of([]).next_number
        1
        """
        return cls(tuple(sorted(entries, key=lambda row: row.entry)))

    @cached_property
    def newest_entry(self) -> int:
        """Place of the newest row, 0 for an empty log."""
        return self.entries[-1].entry if self.entries else 0

    @cached_property
    def lease(self) -> Entry | None:
        """The newest lease row."""
        leases = [row for row in self.entries if row.state is State.LEASE]
        return leases[-1] if leases else None

    @property
    def token(self) -> int:
        """Token of the newest lease, 0 before the first."""
        return self.lease.token if self.lease else 0

    @cached_property
    def commits(self) -> dict[int, Entry]:
        """Each commit as its newest row tells it, with the plan of its intent."""
        steps = [row for row in self.entries if row.state is not State.LEASE and row.state is not State.FOLDED]
        plans = {row.commit: row.plan for row in steps if row.plan is not None}
        newest = {row.commit: row for row in steps}
        return {
            number: replace(row, plan=plans[number]) if row.plan is None and number in plans else row
            for number, row in newest.items()
        }

    @cached_property
    def folded(self) -> frozenset[int]:
        """Commits that have a base beside their deltas."""
        return frozenset(row.commit for row in self.entries if row.state is State.FOLDED)

    @property
    def next_number(self) -> int:
        """The smallest number that no commit ever had or will have had."""
        return max(self.commits, default=0) + 1

    @cached_property
    def pending(self) -> Entry | None:
        """The commit that was begun and neither published, rejected nor abandoned."""
        return next((row for row in reversed(self.commits.values()) if row.state in OPEN_STATES), None)

    @cached_property
    def successors(self) -> dict[int, int]:
        """For each superseded commit the published one that took its place."""
        published = (row for row in self.commits.values() if row.state is State.PUBLISHED)
        return {old: row.commit for row in published for old in row.supersedes}

    @cached_property
    def published(self) -> tuple[Entry, ...]:
        """The commits that readers see, in the order of their spans."""
        seen = (row for row in self.commits.values() if row.state is State.PUBLISHED)
        return tuple(sorted((row for row in seen if row.commit not in self.successors), key=_by_span))

    @cached_property
    def visible(self) -> frozenset[int]:
        """Numbers of the commits that readers see."""
        return frozenset(row.commit for row in self.published)

    @property
    def tip(self) -> Entry | None:
        """The last published commit: the parent of the next epoch."""
        return self.published[-1] if self.published else None

    def at(self, span: Span) -> Entry | None:
        """Give the published commit of exactly this span."""
        return next((row for row in self.published if row.span == span), None)

    def parent_of(self, commit: int) -> int:
        """Give the commit whose carry stands under `commit`: its parent, or what stands in for a superseded one.

        A successor stands in when it ends at the same instant with the same carry hash.
        """
        named = self.commits[commit].parent
        newest = named
        while newest in self.successors:
            newest = self.successors[newest]
        return newest if newest != named and self._same_carry(named, newest) else named

    def _same_carry(self, old: int, new: int) -> bool:
        before, after = self.commits[old], self.commits[new]
        known = before.carry_hash is not None
        return known and before.carry_hash == after.carry_hash and before.span.end == after.span.end

    @cached_property
    def stale(self) -> tuple[Entry, ...]:
        """Published commits that began from a carry which has since been superseded by another one, in order."""
        return tuple(row for row in self.published if self.parent_of(row.commit) not in self.visible | {START_OF_RUN})

    def carry_line(self, commit: int) -> CarryLine:
        """Say which commits make up the carry at `commit`: the newest base on its line of parents, and deltas after it.

        Args:
            commit: a commit's number, or `START_OF_RUN`, whose carry is empty.
        """
        deltas: list[int] = []
        while commit != START_OF_RUN and not self.has_base(commit):
            deltas.append(commit)
            commit = self.parent_of(commit)
        return CarryLine(commit, tuple(reversed(deltas)))

    def has_base(self, commit: int) -> bool:
        """Say whether the whole carry was written at `commit`."""
        return commit in self.folded or self.commits[commit].kind is not CommitKind.EPOCH

    @cached_property
    def carried(self) -> frozenset[int]:
        """Commits whose carry something still stands on: those on the lines of visible and pending commits."""
        roots = [*self.visible, *([self.pending.parent] if self.pending else [])]
        lines = (self.carry_line(root) for root in roots)
        return frozenset(number for line in lines for number in (line.base, *line.deltas)) - {START_OF_RUN}

    def parent_for(self, start: int) -> int:
        """Give the commit that an interval from `start` on continues, 0 for the first interval of a run.

        A stale predecessor is a predecessor: what follows it becomes stale in turn once it has been run again.

        Args:
            start: first instant of the interval, in ticks.

        Raises:
            MissingPredecessorError: nothing published ends at `start`; names what to run first.
            BeforeFirstError: the run begins later than `start`.
            PartialOverlapError: `start` lies inside a published commit.
        """
        for row in self.published:
            if row.span.end == start:
                return row.commit
            if row.span.start < start < row.span.end:
                raise PartialOverlapError(start, row.commit, *row.span)
        if not self.published or start == self.published[0].span.start:
            return START_OF_RUN
        if start < self.published[0].span.start:
            raise BeforeFirstError(start, self.published[0].span.start)
        raise MissingPredecessorError(start, self.published[-1].span.end, start)

    def superseded_by(self, span: Span) -> tuple[int, ...]:
        """Give the published intervals that a new commit of `span` replaces, in order.

        Raises:
            PartialOverlapError: it would replace a part of one.
            StreamedSpanError: it would replace an epoch of a stream.
        """
        met = [row for row in self.published if row.span.start < span.end and span.start < row.span.end]
        for row in met:
            if row.kind is CommitKind.EPOCH:
                raise StreamedSpanError(*span, row.commit, *row.span)
            for edge in span:
                if row.span.start < edge < row.span.end:
                    raise PartialOverlapError(edge, row.commit, *row.span)
        return tuple(row.commit for row in met)


def _by_span(row: Entry) -> tuple[int, int, int]:
    return (*row.span, row.commit)
