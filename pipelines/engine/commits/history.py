"""What the rows of `commits` say: which commits are published, what hangs on what, what is pending, stale, superseded.

All of it is a function of the rows, whatever order they are read in: `entry` numbers them. No table, no clock, no
file here. A row of a commit is complete (only `plan` stands in the intent alone), so a commit is its newest row.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from pipelines.engine.commits.entry import ASIDE, NO_SPAN, OPEN_STATES, START_OF_RUN, CommitKind, Entry, Span, State
from pipelines.engine.commits.errors import (
    BeforeFirstError,
    GapError,
    MissingPredecessorError,
    PartialOverlapError,
    StreamedSpanError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = [
    "NO_SPAN",
    "OPEN_STATES",
    "START_OF_RUN",
    "CarryLine",
    "CommitKind",
    "Entry",
    "LogState",
    "Span",
    "State",
]


class Settled(NamedTuple):
    """One instant over all tables."""

    commit: int
    """The newest commit that every table has; 0 for none."""
    versions: Mapping[str, int]
    """Of each table, named by its folder below the root, the version that it had then."""
    milliseconds: int = 0
    """How long the tables took to follow the commit."""


def settled_of(row: Entry | None) -> Settled:
    """Read what a row says of the tables."""
    if row is None or not row.settled:
        return Settled(START_OF_RUN, {})
    facts = json.loads(row.settled)
    return Settled(facts["commit"], facts["tables"], facts["ms"])


def settled_text(commit: int, versions: Mapping[str, int], milliseconds: int) -> str:
    """Spell what a row says of the tables; see `Settled`."""
    facts = {"commit": commit, "tables": dict(versions), "ms": milliseconds}
    return json.dumps(facts, separators=(",", ":"), sort_keys=True)


def grouped_compactions(rows: Iterable[Entry]) -> dict[str, list[Entry]]:
    """Group the rows that say which files hold what other files held, by the table that they are about."""
    found: dict[str, list[Entry]] = {}
    for row in rows:
        if row.state is State.COMPACTED:
            found.setdefault(str(row.detail["table"]), []).append(row)
    return found


def format_of(row: Entry | None, entries: Sequence[Entry]) -> int:
    """Give the format that the newest row about it tells; see `LogState.format`."""
    if row is None:
        return 1 if entries else 0
    return int(str(row.detail["format"]))


BASES = frozenset({CommitKind.INTERVAL, CommitKind.ADOPT})
"""Commits that always write their whole carry."""


class CarryLine(NamedTuple):
    """Which commits make up the carry at a commit: a base, then the deltas after it, oldest first."""

    base: int
    """Commit whose whole carry is the ground; `START_OF_RUN` where the carry begins empty."""
    deltas: tuple[int, ...]
    """Idle epochs and resets, which changed nothing, are left out."""


@dataclass(frozen=True)
class LogState:
    """What a set of rows of `commits` says.

    Laws (tests/engine/commits/test_commits.py): the order of rows does not matter · published intervals follow one
    another without gap or overlap · only a published row changes what readers see · a stale commit's parent was
    superseded by another carry · the carry at a commit has one line.
    """

    entries: Sequence[Entry]
    """In the order of the log."""

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> LogState:
        """Read rows in whatever order they come.

        >>> LogState.of([]).next_number
        1
        """
        return cls(tuple(sorted(entries, key=lambda row: row.entry)))

    @property
    def newest_entry(self) -> int:
        """Place of the newest row, 0 for an empty log."""
        return self.entries[-1].entry if self.entries else 0

    @property
    def lease(self) -> Entry | None:
        """The newest lease row."""
        return next((row for row in reversed(self.entries) if row.state is State.LEASE), None)

    @property
    def token(self) -> int:
        """Token of the newest lease, 0 before the first."""
        return self.lease.token if self.lease else 0

    @property
    def commits(self) -> Mapping[int, Entry]:
        """Each commit as its newest row tells it, with the plan of its intent."""
        return self._commits

    @cached_property
    def _commits(self) -> Mapping[int, Entry]:
        steps = [row for row in self.entries if row.state not in ASIDE]
        plans = {row.commit: row.plan for row in steps if row.plan is not None}
        newest = {row.commit: row for row in steps}
        return {
            number: replace(row, plan=plans[number]) if row.plan is None and number in plans else row
            for number, row in newest.items()
        }

    def is_folded(self, commit: int) -> bool:
        """Say whether a commit has a base beside its deltas."""
        return commit in self._folded

    @cached_property
    def _folded(self) -> frozenset[int]:
        return frozenset(row.commit for row in self.entries if row.folds)

    @property
    def format(self) -> int:
        """The format of the run's folder: 1 where no row says so, for older code wrote none; 0 for an empty log."""
        return format_of(next((row for row in reversed(self.entries) if row.state is State.FORMAT), None), self.entries)

    @property
    def compactions(self) -> Mapping[str, Sequence[Entry]]:
        """By table, the rows that say which files hold what other files held, in the order of the log."""
        return grouped_compactions(self.entries)

    @property
    def newest_published(self) -> Entry | None:
        """The commit that was published last, whatever its span and whether readers still see it."""
        newest = next((row for row in reversed(self.entries) if row.state is State.PUBLISHED), None)
        return None if newest is None else self.commits[newest.commit]

    @property
    def recorded(self) -> Settled:
        """What was settled last, as far as a row says."""
        return settled_of(next((row for row in reversed(self.entries) if row.settled), None))

    def is_older(self, table: str, version: int) -> bool:
        """Say whether a table is an older copy of itself, or has lost its newest versions: it was further once.

        Args:
            table: named by its folder below the root.
            version: its newest one, as its log is now.
        """
        if version < 0 and not self.published:
            # It has no log, and no rows of it that anybody could miss: it is made anew.
            return False
        known = self.recorded.versions.get(table, 0)
        return version < known and not self._voided(table, known)

    def _voided(self, table: str, version: int) -> bool:
        """Say whether a recorded version means nothing any more, for the table's log was made anew since."""
        made_anew = (row for row in reversed(self.entries) if row.state is State.REBUILT)
        return any(row.detail["table"] == table and int(str(row.detail["past"])) >= version for row in made_anew)

    @property
    def next_number(self) -> int:
        """The smallest number that no commit ever had or will have had."""
        return max(self.commits, default=0) + 1

    def last_sequence(self, *states: State) -> int:
        """Give the last landed sequence that commits of these states ran over, counted or not; 0 for none."""
        taken = (row.sequences for row in self.commits.values() if row.state in states)
        return max((max(sequences, default=0) for sequences in taken), default=0)

    @property
    def pending(self) -> Entry | None:
        """The commit that was begun and neither published, rejected nor abandoned."""
        return next((row for row in reversed(list(self.commits.values())) if row.state in OPEN_STATES), None)

    @property
    def successors(self) -> Mapping[int, int]:
        """For each superseded commit the published one that took its place."""
        return self._successors

    @cached_property
    def _successors(self) -> Mapping[int, int]:
        published = (row for row in self.commits.values() if row.state is State.PUBLISHED)
        return {old: row.commit for row in published for old in row.supersedes}

    @cached_property
    def published(self) -> tuple[Entry, ...]:
        """The commits that readers see, in the order of their spans."""
        seen = (row for row in self.commits.values() if row.state is State.PUBLISHED)
        return tuple(sorted((row for row in seen if row.commit not in self.successors), key=by_span))

    @property
    def in_order(self) -> Sequence[Entry]:
        """The commits that readers see, as `published` has them, to look at now and not to keep."""
        return self.published

    @cached_property
    def visible(self) -> frozenset[int]:
        """Numbers of the commits that readers see."""
        return frozenset(row.commit for row in self.published)

    @property
    def streams(self) -> bool:
        """Whether a stream made some of what readers see."""
        return any(row.kind is CommitKind.EPOCH for row in self.published)

    @property
    def tip(self) -> Entry | None:
        """The last published commit: the parent of the next epoch."""
        return self.in_order[-1] if self.in_order else None

    def at(self, span: Span) -> Entry | None:
        """Give the published commit of exactly this span."""
        rows = self.in_order
        place = bisect_left(rows, span, key=_span)
        return rows[place] if place < len(rows) and rows[place].span == span else None

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
        """Published commits that began from a carry which has since been superseded by another one, in order.

        The one that a run began with is among them once an earlier interval was published.
        """
        return tuple(row for place, row in enumerate(self.published) if not self._has_ground(row, place))

    def _has_ground(self, row: Entry, place: int) -> bool:
        parent = self.parent_of(row.commit)
        if parent == START_OF_RUN:
            return place == 0 or row.kind is not CommitKind.INTERVAL
        return parent in self.visible

    def carry_line(self, commit: int) -> CarryLine:
        """Say which commits make up the carry at `commit`: the newest base on its line of parents, and deltas after it.

        Args:
            commit: a commit's number, or `START_OF_RUN`, whose carry is empty.
        """
        deltas: list[int] = []
        while commit != START_OF_RUN and not self.has_base(commit):
            if not self.commits[commit].leaves_carry:
                deltas.append(commit)
            commit = self.parent_of(self.first_idle(commit))
        return CarryLine(commit, tuple(reversed(deltas)))

    def first_idle(self, commit: int) -> int:
        """Give the first of the idle epochs in a row that end in `commit`, or any between: a way to skip them."""
        return commit

    def has_base(self, commit: int) -> bool:
        """Say whether the whole carry was written at `commit`."""
        return self.is_folded(commit) or self.commits[commit].kind in BASES

    @cached_property
    def carried(self) -> frozenset[int]:
        """Commits whose carry something still stands on: those on the lines of visible and pending commits."""
        found: set[int] = set()
        for root in (*self.visible, *([self.pending.parent] if self.pending else [])):
            commit = root
            while commit != START_OF_RUN and commit not in found:
                found.add(commit)
                commit = START_OF_RUN if self.has_base(commit) else self.parent_of(commit)
        return frozenset(found)

    def parent_for(self, start: int) -> int:
        """Give the commit that an interval from `start` on continues, 0 for one that none comes before.

        An interval before the first extends the run backwards: what follows it becomes stale. A stale predecessor is a
        predecessor: what follows it becomes stale in turn once it has been run again.

        Args:
            start: first instant of the interval, in ticks.

        Raises:
            MissingPredecessorError: nothing published ends at `start`; names what to run first.
            BeforeFirstError: a stream began the run, later than `start`.
            PartialOverlapError: `start` lies inside a published commit.
        """
        rows = self.in_order
        place = bisect_right(rows, start, key=_end)
        if place and rows[place - 1].span.end == start:
            return rows[place - 1].commit
        if place < len(rows) and rows[place].span.start < start:
            raise PartialOverlapError(start, rows[place].commit, *rows[place].span)
        if not rows or start == rows[0].span.start:
            return START_OF_RUN
        if start > rows[0].span.start:
            raise MissingPredecessorError(start, rows[-1].span.end, start)
        if rows[0].kind is not CommitKind.INTERVAL:
            raise BeforeFirstError(start, rows[0].span.start)
        return START_OF_RUN

    @property
    def newest_plan(self) -> str | None:
        """Give the newest plan, also where a reset took its commit back; None where there is none."""
        planned = {row.commit: row.plan for row in self.commits.values() if row.plan}
        return planned[max(planned)] if planned else None

    def superseded_by(self, span: Span) -> tuple[int, ...]:
        """Give the published intervals that a new commit of `span` replaces, in order.

        Raises:
            PartialOverlapError: it would replace a part of one.
            StreamedSpanError: it would replace an epoch of a stream, or span a reset.
            GapError: it lies before the first one and does not reach it.
        """
        rows = self.in_order
        if rows and span.end < rows[0].span.start:
            raise GapError(span.end, rows[0].span.start)
        later = (rows[place] for place in range(bisect_right(rows, span.start, key=_end), len(rows)))
        met = list(takewhile(lambda row: row.span.start < span.end, later))
        for row in met:
            if row.kind is not CommitKind.INTERVAL:
                raise StreamedSpanError(*span, row.commit, *row.span)
            for edge in span:
                if row.span.start < edge < row.span.end:
                    raise PartialOverlapError(edge, row.commit, *row.span)
        return tuple(row.commit for row in (*met, *(self._adopted_at(span.end) if met else ())))

    def _adopted_at(self, end: int) -> Iterator[Entry]:
        """Give the carries that were taken over where an interval ends: they go with it."""
        rows = self.in_order
        place = bisect_left(rows, (end, end), key=_span)
        return takewhile(_is_adopted, (row for row in rows[place:] if row.span == (end, end)))


def _is_adopted(row: Entry) -> bool:
    return row.kind is CommitKind.ADOPT


def by_span(row: Entry) -> tuple[int, int, int]:
    """Order published commits."""
    return (*row.span, row.commit)


def _span(row: Entry) -> Span:
    return row.span


def _end(row: Entry) -> int:
    return row.span.end
