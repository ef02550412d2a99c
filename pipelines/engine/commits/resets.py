"""Going back: which states a run can go back to, and what that takes away.

A consistent state is a published commit. All here are questions to the log; `steps.reset` gives the row that answers.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from pipelines.engine.columnar.columns import instant_text
from pipelines.engine.commits.entry import START_OF_RUN, CommitKind, State
from pipelines.engine.commits.errors import BeforeStatesError, NoStateError, SealedIntervalError
from pipelines.engine.commits.history import by_span

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipelines.engine.commits.entry import Entry
    from pipelines.engine.commits.history import LogState

BEGINNING = START_OF_RUN
"""How one asks for the state before a run's first commit."""


@dataclass(frozen=True, kw_only=True)
class WayBack:
    """The way from where a run stands to an earlier state of it."""

    ground: Entry | None
    """The commit to go back to; None for the beginning of the run."""
    superseded: tuple[Entry, ...]
    """What readers see now and would no longer, in order: epochs, resets among them, what was adopted, and intervals
    that were run behind the stream."""
    start: int
    """Where the stream goes on from, in ticks."""

    @property
    def target(self) -> int:
        """Give the number of the state to go back to."""
        return self.ground.commit if self.ground else BEGINNING

    @property
    def sequence(self) -> int:
        """Give the last sequence of the landing that is not played again.

        An interval that was run again, and landed anew for it, has a sequence behind those of the stream that goes on
        from it, and stands before them.
        """
        behind = (min(row.sequences) - 1 for row in self.superseded if row.sequences)
        return min((self.ground.upto, *behind)) if self.ground else 0

    @property
    def streamed(self) -> tuple[Entry, ...]:
        """Give what a stream makes again; an interval behind it has to be run again."""
        return tuple(row for row in self.superseded if row.kind is not CommitKind.INTERVAL)

    @property
    def end(self) -> int:
        """Give up to where the run had come, in ticks."""
        return self.superseded[-1].span.end if self.superseded else self.start

    @property
    def upto(self) -> int:
        """Give the last sequence that the run had covered."""
        return max((self.sequence, *(row.upto for row in self.superseded)))


def way_back(state: LogState, target: int, beginning: int | None = None) -> WayBack:
    """Find the way back to a state; a reset stands for the state that it went back to.

    Args:
        state: the log.
        target: number of a commit that readers see, or `BEGINNING`.
        beginning: where a run begins that never began a commit, in ticks, where somebody knows.

    Raises:
        NoStateError: the run has no such commit, or readers do not see it.
        SealedIntervalError: an interval of a backfill lies behind the state, and does not stand on the stream.
    """
    rows = state.in_order
    place = -1 if target == BEGINNING else place_of(state, target)
    while place >= 0 and rows[place].kind is CommitKind.RESET:
        place -= 1
    superseded = tuple(rows[place + 1 :])
    before = takewhile(lambda row: row.kind is not CommitKind.EPOCH, superseded)
    sealed = [row for row in before if row.kind is CommitKind.INTERVAL]
    if sealed:
        raise SealedIntervalError(target, sealed[-1].commit, *sealed[-1].span)
    ground = rows[place] if place >= 0 else None
    start = ground.span.end if ground else _beginning(state, superseded, beginning)
    return WayBack(ground=ground, superseded=superseded, start=start)


def place_of(state: LogState, number: int) -> int:
    """Give the place of a commit among those that readers see.

    Raises:
        NoStateError: readers do not see it.
    """
    row = state.commits.get(number)
    if row is None:
        raise NoStateError(number, "was never begun")
    if row.state is not State.PUBLISHED:
        raise NoStateError(number, f"is at {row.state}, so nobody ever saw it")
    if number in state.successors:
        raise NoStateError(number, f"was superseded by commit {state.successors[number]}")
    return bisect_left(state.in_order, by_span(row), key=by_span)


def _beginning(state: LogState, seen: tuple[Entry, ...], known: int | None) -> int:
    """Give where a run begins that has no interval: with the first epoch that anybody saw, or ever began."""
    if seen and seen[0].kind is CommitKind.ADOPT:
        raise NoStateError(BEGINNING, f"is no state of a run that begins with a carry it took over ({seen[0].commit})")
    epochs = seen or tuple(row for row in state.commits.values() if row.kind is CommitKind.EPOCH)
    if not epochs and known is not None:
        return known
    if not epochs:
        raise NoStateError(BEGINNING, "is where this run stands: nothing was ever streamed")
    return min(row.span.start for row in epochs)


def newest_state(state: LogState) -> int:
    """Give the newest consistent state; `BEGINNING` where nothing is published."""
    return state.tip.commit if state.tip else BEGINNING


def state_at_sequence(state: LogState, sequence: int) -> int:
    """Give the newest state that covers no sequence after one.

    Raises:
        BeforeStatesError: the first one covers more.
    """
    return _newest(state, f"sequence {sequence}", lambda row: row.upto <= sequence)


def state_at(state: LogState, tick: int) -> int:
    """Give the newest state that covers no arrival at or past an instant, in ticks.

    Raises:
        BeforeStatesError: the first one covers more.
    """
    return _newest(state, instant_text(tick), lambda row: row.span.end <= tick)


def _newest(state: LogState, asked: str, covers_no_more: Callable[[Entry], bool]) -> int:
    rows = state.in_order
    found = next((row for row in reversed(rows) if covers_no_more(row)), None)
    if found is not None:
        return found.commit
    if not rows:
        raise NoStateError(BEGINNING, f"is all that there is; nothing is published that could cover {asked}")
    raise BeforeStatesError(asked, rows[0].commit, rows[0].span.end, rows[0].upto)


def newest_drain(state: LogState, commit: int) -> int:
    """Give the newest commit up to one that took sequences in, whether readers still see it or a reset took it back.

    Args:
        state: the log.
        commit: the newest published one; 0 for none.
    """
    row = state.commits.get(commit)
    if row is None or row.kind in {CommitKind.INTERVAL, CommitKind.EPOCH}:
        return row.commit if row else BEGINNING
    return max(newest_drain(state, each) for each in (row.parent, *row.supersedes))


def newest_reset(state: LogState) -> int:
    """Give the number of the last reset, 0 for none: what Spark planned before it counts no more."""
    return max((row.commit for row in state.commits.values() if _is_reset(row)), default=0)


def _is_reset(row: Entry) -> bool:
    return row.kind is CommitKind.RESET and row.state is State.PUBLISHED
