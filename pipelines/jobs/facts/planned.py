"""Where each interval of a run stands, and what running it would do: the plan of a backfill.

An interval stands as it is while three things do: what arrived for it, what the flow means, and the carry that it began
from. Whichever changed is its cause; what follows it in the run follows it in the plan, until a carry comes out as it
was. A run of it that was rejected replaced nothing: of itself that is no cause for what follows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING

from expectations.decided import REJECTED
from pipelines.engine.commits.history import OPEN_STATES, START_OF_RUN, CommitKind, Span, State
from pipelines.flows.definition import fingerprint_of
from pipelines.flows.grid import intervals
from pipelines.jobs.runs.counts import counted
from pipelines.jobs.runs.gate import is_accepted
from pipelines.jobs.text.moments import Moments
from pipelines.operators.plain_words import counted as number_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pipelines.engine.commits.history import Entry, LogState
    from pipelines.flows.model import Flow


FOLLOWS = "what comes before it is run again"
WAITS = "waits to be published, or rejected"


class PlanState(StrEnum):
    """Where an interval stands."""

    PUBLISHED = "published"
    STALE = "stale"
    """Published, and it would come out otherwise now, or might."""
    HELD = "held"
    """Written, and waits to be published, or rejected."""
    RED = "red"
    """Its last run was rejected."""
    MISSING = "missing"
    """Before what is published."""
    PLANNED = "planned"
    """Behind what is published."""


@dataclass(frozen=True, kw_only=True)
class PlannedInterval:
    """One interval of the plan."""

    span: Span
    state: PlanState
    cause: str | None = None
    """Why it is not as it should be."""
    commit: int | None = None
    """What readers see of it, or what waits."""
    rows: int | None = None
    """That landed, where it ran."""
    follows: bool = False
    """Whether only what comes before it makes it stale: it is left alone where the carry comes out as it was."""
    rejected: int | None = None
    """The commit of its last run, where that was rejected."""
    stands: bool = False
    """Whether what readers see of it would come out the same, though its last run was rejected."""

    @property
    def runs(self) -> bool:
        """Say whether running the plan runs it."""
        return self.state is not PlanState.PUBLISHED

    @property
    def why(self) -> str:
        """Say why it is not as it should be; nothing where it is, or nobody ran it yet."""
        return FOLLOWS if self.follows else self.cause or ""


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """All intervals of a run, in order."""

    found: tuple[PlannedInterval, ...]
    seconds_a_row: float
    """Measured over what is published."""
    usual_rows: float
    unread: str = ""
    """What its sources may hold otherwise was not read, and why; nothing where all was looked at."""
    is_unreadable: bool = False
    """Whether that is because it cannot be read."""
    damage: str = ""
    """Of that, what is wrong with what landed: files of the run, and not of its sources."""

    @cached_property
    def left(self) -> tuple[PlannedInterval, ...]:
        """Give what running would run."""
        return tuple(each for each in self.found if each.runs)

    @property
    def alike(self) -> Iterator[tuple[PlannedInterval, ...]]:
        """Give the intervals that follow one another and stand alike, together."""
        for _, group in groupby(self.found, key=lambda each: (each.state, each.why)):
            yield tuple(group)

    @property
    def seconds(self) -> float:
        """Say how long its operators would work, by what was measured; 0 where nothing was. Landing comes on top."""
        rows = (self.usual_rows if each.rows is None else each.rows for each in self.left)
        return sum(rows) * self.seconds_a_row


@dataclass(frozen=True, kw_only=True)
class Planning:
    """What a plan is made from."""

    flow: Flow
    state: LogState
    changed: Callable[[Entry], tuple[str, ...]]
    """Names the sources of which a published interval would land with other rows now."""
    edit: Callable[[Entry], str]
    """Says what of the flow has changed since a commit; nothing where no row depends on it."""
    gone: Callable[[Entry], tuple[str, ...]]
    """Names the files that a published interval landed from and that are no longer there."""
    start: int | None = None
    end: int | None = None
    """Where the plan begins and ends; what the sources hold, or what is published, unless given."""

    @cached_property
    def published(self) -> tuple[Entry, ...]:
        """Give the published intervals."""
        return tuple(entry for entry in self.state.published if entry.kind is CommitKind.INTERVAL)

    def plan(self) -> RunPlan:
        """Say where each interval stands."""
        chained = _chained([*self._before(), *map(self._of, self.published), *self._behind()])
        found = tuple(each for each in chained if self._asked(each.span))
        rows = [_rows(entry) for entry in self.published]
        every = sum(rows)
        return RunPlan(
            found=found,
            seconds_a_row=sum(map(_seconds, self.published)) / every if every else 0.0,
            usual_rows=every / len(rows) if rows else 0.0,
        )

    def _asked(self, span: Span) -> bool:
        return (self.start is None or self.start <= span.start) and (self.end is None or span.end <= self.end)

    def _before(self) -> list[PlannedInterval]:
        """Give what the sources hold, or somebody asks for, before the run's first instant."""
        first = self.published[0].span.start if self.published else None
        begin = self.flow.starts if self.start is None else self.start
        if first is None or begin is None or begin >= first:
            return []
        cause = "before the run's first instant"
        return [PlannedInterval(span=span, state=PlanState.MISSING, cause=cause) for span in self._grid(begin, first)]

    def _behind(self) -> list[PlannedInterval]:
        """Give what comes behind what is published."""
        begin = self.published[-1].span.end if self.published else self._first_asked()
        end = self._last_asked() if self.end is None else self.end
        return [] if begin is None or end is None or begin >= end else [self._next(s) for s in self._grid(begin, end)]

    def _first_asked(self) -> int | None:
        """Say where a run begins of which nothing is published, as `_last_asked` says where it ends."""
        if self.start is not None or self.flow.starts is not None:
            return self.flow.starts if self.start is None else self.start
        return min((span.start for span in self._unseen()), default=None)

    def _last_asked(self) -> int | None:
        """Say where the flow ends, or the last interval that was begun or rejected; None where nothing says so."""
        ends = [*(span.end for span in self._unseen()), *([] if self.flow.ends is None else [self.flow.ends])]
        return max(ends, default=None)

    def _unseen(self) -> Iterator[Span]:
        """Give the intervals that were begun or rejected."""
        for entry in self.state.commits.values():
            if entry.kind is CommitKind.INTERVAL and entry.state in {*OPEN_STATES, State.REJECTED}:
                yield entry.span

    def _grid(self, start: int, end: int) -> list[Span]:
        at = Moments(self.flow.timezone).at
        return [Span(*each) for each in intervals(self.flow, at(start), at(end))]

    def _next(self, span: Span) -> PlannedInterval:
        last = self._last(span)
        if last is not None and last.state is State.WRITTEN:
            return PlannedInterval(span=span, state=PlanState.HELD, cause=WAITS, commit=last.commit, rows=_rows(last))
        if last is not None and last.state is State.REJECTED:
            cause = _rejected(last)
            return PlannedInterval(span=span, state=PlanState.RED, cause=cause, rows=_rows(last), rejected=last.commit)
        return PlannedInterval(span=span, state=PlanState.PLANNED)

    def _last(self, span: Span) -> Entry | None:
        """Give the newest commit of exactly this span, whatever became of it."""
        of_span = (entry for entry in self.state.commits.values() if entry.span == span)
        return max(of_span, key=lambda entry: entry.commit, default=None)

    def _of(self, entry: Entry) -> PlannedInterval:
        """Say where a published interval stands by itself."""
        made = PlannedInterval(span=entry.span, state=PlanState.PUBLISHED, commit=entry.commit, rows=_rows(entry))
        rejected = self._rejected(entry)
        if rejected is not None:
            stale = self._stale(entry)
            # What stands although its rows were refused again has to be decided of once more where it is stale.
            if stale is not None or not let_pass(entry, rejected):
                return _attempted(made, entry, rejected, stale)
        pending = self.state.pending
        if pending is not None and pending.span == entry.span and pending.commit > entry.commit:
            if pending.state is State.WRITTEN:
                return replace(made, state=PlanState.HELD, cause=WAITS, commit=pending.commit)
            return replace(made, state=PlanState.STALE, cause=f"commit {pending.commit} in its place is not finished")
        stale = self._stale(entry)
        return made if stale is None else replace(made, state=PlanState.STALE, cause=stale)

    def _rejected(self, entry: Entry) -> Entry | None:
        """Give the last run of a published interval, where it was rejected."""
        last = self._last(entry.span)
        return last if last is not None and last.state is State.REJECTED and last.commit > entry.commit else None

    def _stale(self, entry: Entry) -> str | None:
        if entry in self.state.stale:
            return _superseded(self.state, entry)
        # Of buckets, the grid and zones no row depends: they change the fingerprint, and nothing has to be made anew.
        if entry.fingerprint != fingerprint_of(self.flow) and (edit := self.edit(entry)):
            return f"the flow has changed since: {edit}"
        sources = self.changed(entry)
        if not sources:
            return None
        return f"what arrives of {' and '.join(sources)} is not what landed: {_why(self.gone(entry))}"


def _attempted(made: PlannedInterval, entry: Entry, last: Entry, stale: str | None) -> PlannedInterval:
    """Say where a published interval stands whose last run was rejected: of the same rows nothing follows it."""
    cause = f"{_rejected(last)}; commit {entry.commit} stands{f', and {stale}' if stale else ''}"
    stands = stale is None and last.sequences == entry.sequences
    return replace(made, state=PlanState.RED, cause=cause, rejected=last.commit, stands=stands)


def _why(gone: Sequence[str]) -> str:
    if not gone:
        return "a late or changed file"
    more = f" and {number_of(len(gone) - 1, 'more file')} are" if gone[1:] else " is"
    return f"{gone[0]}{more} gone, and only --accept-loss replaces rows from there that no other file has"


def let_pass(entry: Entry, last: Entry) -> bool:
    """Say whether the same rows were rejected again for what a person had accepted of a published commit.

    Args:
        entry: the commit that readers see.
        last: the later one of its span, which was rejected.
    """
    return last.sequences == entry.sequences and is_accepted(entry.verdict, last.verdict)


def _superseded(state: LogState, entry: Entry) -> str:
    if entry.parent == START_OF_RUN:
        return "the run was extended backwards since"
    return f"commit {entry.parent}, which it went on from, was superseded by {state.successors.get(entry.parent)}"


def _chained(found: Sequence[PlannedInterval]) -> list[PlannedInterval]:
    """Let what follows an interval that would be run again follow it in the plan, the whole chain at once."""
    chained: list[PlannedInterval] = []
    root: PlannedInterval | None = None
    for each in found:
        if each.state is PlanState.PUBLISHED and root is not None:
            chained.append(replace(each, state=PlanState.STALE, cause=None, follows=True))
            continue
        root = each if root is None and each.runs and not each.stands else root
        chained.append(each)
    return chained


def _rows(entry: Entry) -> int:
    return sum(counted(entry, "landed").values())


def _seconds(entry: Entry) -> float:
    return sum(value for value in entry.durations.values() if isinstance(value, int | float)) / 1000


def _rejected(entry: Entry) -> str:
    """Say why a commit was rejected; a person's answer says itself that it was."""
    verdict = str(entry.verdict)
    return f"commit {entry.commit} was {verdict if verdict.startswith(REJECTED) else f'rejected: {verdict}'}"
