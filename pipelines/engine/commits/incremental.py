"""What the log says, kept while it grows: a row more costs the same in a log of ten rows and of a million.

`LogState.of(rows)` stays the definition; `Following` answers the questions of every step from an index that the rows
are added to, and all others as `LogState` does. The index moves on to the newest state: an older one that is asked
again builds its own, so a state never changes under its holder. States of one log belong to one thread.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, overload

from pipelines.engine.commits.entry import ASIDE, OPEN_STATES, Entry, State
from pipelines.engine.commits.history import LogState, Settled, by_span, format_of, settled_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Prefix(Sequence[Entry]):
    """The first rows of a list that only ever grows."""

    def __init__(self, rows: list[Entry], length: int) -> None:
        """Take the list and how much of it counts."""
        self._rows, self._length = rows, length

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, place: int) -> Entry: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Entry]: ...
    def __getitem__(self, place: int | slice) -> Entry | Sequence[Entry]:
        inside = range(self._length)[place]
        return self._rows[inside] if isinstance(inside, int) else tuple(self._rows[i] for i in inside)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(self._length)


class Index:
    """What rows say that came in the order of the log, in structures that one more row changes in one place."""

    def __init__(self, rows: Iterable[Entry] = ()) -> None:
        """Take the rows so far."""
        self.entries: list[Entry] = []
        self.lease: Entry | None = None
        self.commits: dict[int, Entry] = {}
        self.newest = 0
        self.open: dict[int, Entry] = {}
        self.folded: set[int] = set()
        self.successors: dict[int, int] = {}
        self.published: list[Entry] = []
        self.format: Entry | None = None
        self.compactions: dict[str, list[Entry]] = {}
        self.newest_published: Entry | None = None
        self.recorded: Entry | None = None
        self.idle_from: dict[int, int] = {}
        """For each idle epoch the first of those that follow one another up to it."""
        for row in rows:
            self.add(row)

    def add(self, row: Entry) -> None:
        """Take in the next row."""
        self.entries.append(row)
        if row.settled:
            self.recorded = row
        if row.folds:
            self.folded.add(row.commit)
        if row.state in ASIDE:
            self._take_aside(row)
        else:
            self._step(row)

    def _take_aside(self, row: Entry) -> None:
        if row.state is State.LEASE:
            self.lease = row
        elif row.state is State.FORMAT:
            self.format = row
        elif row.state is State.COMPACTED:
            self.compactions.setdefault(str(row.detail["table"]), []).append(row)

    def _step(self, row: Entry) -> None:
        before = self.commits.get(row.commit)
        if before and row.plan is None and before.plan is not None:
            row = replace(row, plan=before.plan)
        self.commits[row.commit] = row
        self.newest = max(self.newest, row.commit)
        if row.state in OPEN_STATES:
            self.open[row.commit] = row
        else:
            self.open.pop(row.commit, None)
        if row.idle:
            self.idle_from[row.commit] = self.idle_from.get(row.parent, row.commit)
        if row.state is State.PUBLISHED:
            self.newest_published = row
            self._publish(row)

    def _publish(self, row: Entry) -> None:
        # From the last on: a reset takes a whole tail, and what stands at the end of a list is taken off at once.
        for old in reversed(row.supersedes):
            self.successors[old] = row.commit
            gone = self.commits[old]
            place = bisect_left(self.published, by_span(gone), key=by_span)
            if self.published[place : place + 1] == [gone]:
                del self.published[place]
        insort(self.published, row, key=by_span)


class Following(LogState):
    """A state of the log that the next one is made from in constant time."""

    def __init__(self, index: Index | None = None) -> None:
        """Take the index at its state of now; an empty log unless given."""
        index = index or Index()
        super().__init__(Prefix(index.entries, len(index.entries)))
        self.__dict__["_index"] = index

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Following:
        """Read rows in whatever order they come."""
        return cls(Index(sorted(entries, key=lambda row: row.entry)))

    def then(self, rows: Iterable[Entry]) -> Following:
        """Give the state after more rows, which come after all of this one's, in the order of the log."""
        index = self._now
        for row in rows:
            index.add(row)
        return Following(index)

    @property
    def _now(self) -> Index:
        index: Index = self.__dict__["_index"]
        if len(index.entries) != len(self.entries):
            index = self.__dict__["_index"] = Index(self.entries)
        return index

    @property
    def newest_entry(self) -> int:
        """Place of the newest row, 0 for an empty log."""
        return self.entries[-1].entry if self.entries else 0

    @property
    def lease(self) -> Entry | None:
        """The newest lease row."""
        return self._now.lease

    @property
    def commits(self) -> Mapping[int, Entry]:
        """Each commit as its newest row tells it; to look at now and not to keep."""
        return self._now.commits

    @property
    def format(self) -> int:
        """The format of the run's folder."""
        return format_of(self._now.format, self.entries)

    @property
    def compactions(self) -> Mapping[str, Sequence[Entry]]:
        """By table, the rows that say which files hold what other files held; to look at now and not to keep."""
        return self._now.compactions

    @property
    def newest_published(self) -> Entry | None:
        """The commit that was published last."""
        return self._now.newest_published

    @property
    def recorded(self) -> Settled:
        """What was settled last, as far as a row says."""
        return settled_of(self._now.recorded)

    @property
    def next_number(self) -> int:
        """The smallest number that no commit ever had or will have had."""
        return self._now.newest + 1

    @property
    def pending(self) -> Entry | None:
        """The commit that was begun and neither published, rejected nor abandoned."""
        return next(reversed(self._now.open.values()), None)

    @property
    def successors(self) -> Mapping[int, int]:
        """For each superseded commit the published one that took its place; to look at now and not to keep."""
        return self._now.successors

    @property
    def in_order(self) -> Sequence[Entry]:
        """The commits that readers see, in the order of their spans; to look at now and not to keep."""
        return self._now.published

    @cached_property
    def published(self) -> tuple[Entry, ...]:
        """The commits that readers see, in the order of their spans."""
        return tuple(self._now.published)

    def is_folded(self, commit: int) -> bool:
        """Say whether a commit has a base beside its deltas."""
        return commit in self._now.folded

    def first_idle(self, commit: int) -> int:
        """Give the first of the idle epochs in a row that end in `commit`."""
        return self._now.idle_from.get(commit, commit)
