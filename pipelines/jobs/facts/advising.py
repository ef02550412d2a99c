"""What each delay of an advance_time stream would have cost and bought, exactly, from the rows that it took in.

Which row causes a CTI does not depend on the delay: generation looks at every event received, those that are dropped
too. So the operator runs once over the history, with no delay, and a CTI that it gives at t stands at t - d under the
delay d. From there all else follows for every delay at once: an event is late when the newest t before it, less d, lies
beyond its start, so the delay it needs is that t less its start.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipelines.flows.durations import UNITS
from pipelines.operators.advance_time import AdvanceTime, AdvanceTimePolicy, PromiseAtEnd
from pipelines.operators.compiled import as_written
from pipelines.operators.rows import INFINITY, NULL, Kind, Rows, Shape

if TYPE_CHECKING:
    import numpy.typing as npt

    from pipelines.operators.rows import Bytes, Longs

HALF, MOST = 0.5, 0.99
FEW = 20_000
"""Rows of a history up to which the operator runs as it is written: loading its machine code takes longer."""
MARKS = (Fraction(1, 2), Fraction(9, 10), Fraction(95, 100), Fraction(99, 100), Fraction(999, 1000), Fraction(1))
"""Shares of events on time whose delays are worth a line."""
_SECOND, _MINUTE, _HOUR, _DAY = (UNITS[name] for name in ("s", "m", "h", "d"))
STEPS = (
    *((10**power, 10 ** (power - 1)) for power in range(1, 7)),
    (10 * _SECOND, _SECOND),
    (_MINUTE, 5 * _SECOND),
    (10 * _MINUTE, _MINUTE),
    (_HOUR, 5 * _MINUTE),
    (4 * _HOUR, 15 * _MINUTE),
    (_DAY, _HOUR),
)
"""Spans up to which people write multiples of the second one; beyond the last they write days."""


def written_up(ticks: int) -> int:
    """Round a delay up to what a person would write; what is below zero to zero.

    >>> written_up(6_061_000_000) // _MINUTE, written_up(-5), written_up(3), written_up(41_000_000) // _SECOND
    (105, 0, 3, 45)
    """
    if ticks <= 0:
        return 0
    step = next((step for most, step in STEPS if ticks <= most), _DAY)
    return -(-ticks // step) * step


@dataclass(frozen=True, kw_only=True)
class History:
    """The rows that an advance_time stream took in, in its order; one value a row."""

    kind: Bytes
    timeline: Longs
    """Dense id of the key that has a timeline of its own; 0 throughout where the stream has one for all."""
    arrival: Longs
    event_time: Longs
    event_end: Longs
    timelines: int = 1

    def __len__(self) -> int:
        return len(self.kind)


class Wait(NamedTuple):
    """How long the events that are on time under a delay wait for the CTI that releases them, in ticks."""

    half: int | None
    """Half of those that were released waited at most so long; None where none was."""
    most: int | None
    """99 % of them did."""
    left: int
    """Events on time that no CTI of the history released."""


class Promises:
    """CTIs by timeline, in the order in which they left; those that do not move their time forward are left out.

    Args:
        rows: number of the row that each stands behind, rising.
        timelines: whose promise it is.
        times: what it promises.
        arrivals: when it left.
        length: rows of the history; no row has a number above it.
    """

    def __init__(self, rows: Longs, timelines: Longs, times: Longs, arrivals: Longs, length: int) -> None:
        """Sort them by timeline, and rank their times so that a timeline and a time make one number."""
        self._length = length + 1
        self._ladder = np.unique(times)
        order = np.argsort(timelines, kind="stable")
        ranked = self._ranked(timelines, np.searchsorted(self._ladder, times))[order]
        newest = np.maximum.accumulate(ranked)
        kept = order[np.append(np.ones(min(len(newest), 1), dtype=np.bool_), newest[1:] > newest[:-1])]
        self._timelines, self._times, self._arrivals = timelines[kept], times[kept], arrivals[kept]
        self._by_row = timelines[kept] * self._length + rows[kept]
        self._by_time = self._ranked(self._timelines, np.searchsorted(self._ladder, self._times))

    def _ranked(self, timelines: Longs, ranks: Longs) -> Longs:
        return timelines * (len(self._ladder) + 1) + ranks

    def newest(self, timelines: Longs, rows: Longs) -> Longs:
        """Give the newest promise behind an earlier row than each of `rows`; NULL where there is none."""
        at = np.searchsorted(self._by_row, timelines * self._length + rows) - 1
        return np.where(self._are_of(at, timelines), self._at(self._times, at), NULL)

    def first_past(self, timelines: Longs, instants: Longs) -> Longs:
        """Give when the first promise left that lies past each instant; INFINITY where none did."""
        ranks = np.searchsorted(self._ladder, instants, side="right")
        at = np.searchsorted(self._by_time, self._ranked(timelines, ranks))
        return np.where(self._are_of(at, timelines), self._at(self._arrivals, at), INFINITY)

    def _are_of(self, at: Longs, timelines: Longs) -> npt.NDArray[np.bool_]:
        found: npt.NDArray[np.bool_] = (
            (at >= 0) & (at < len(self._times)) & (self._at(self._timelines, at) == timelines)
        )
        return found

    @staticmethod
    def _at(values: Longs, at: Longs) -> Longs:
        return values[np.clip(at, 0, len(values) - 1)] if len(values) else np.zeros_like(at)


class Delays:
    """What every delay would have done with the events of a history.

    Exact, and compared with the operator under each delay in tests/jobs/facts/test_advising.py. Of edges, start and end
    count each, by their own time. An event that the CTIs of the input leave behind is late whatever the delay.

    Args:
        policy: of the stream; its delay, and what it does to late events, do not matter.
        history: all rows that it took in.
        since: only events that arrive at this instant or after it are counted; the others make CTIs all the same.
        until: only events that arrive before it.
        final: when the stream ended, where it promises infinity at its end.
    """

    def __init__(
        self,
        policy: AdvanceTimePolicy,
        history: History,
        since: int = NULL,
        until: int = INFINITY,
        final: int | None = None,
    ) -> None:
        """Run the operator once, and find what delay each event needs."""
        self._own, self._given = _generated(policy, history), _imported(history, final)
        instants, untimed, endless = _instants(policy, history)
        inside = (history.arrival >= since) & (history.arrival < until)
        rows = np.flatnonzero((instants != NULL) & inside)
        self._untimed, self._endless = int((untimed & inside).sum()), endless[rows]
        self._instants, self._arrivals, self._timelines = instants[rows], history.arrival[rows], history.timeline[rows]
        own, given = (made.newest(self._timelines, rows) for made in (self._own, self._given))
        needs = np.where(own == NULL, NULL, np.where(own == NULL, 0, own) - self._instants)
        self.needs: Longs = np.where(given > self._instants, INFINITY, needs)
        """By event the smallest delay under which it is on time: NULL if any does, INFINITY if none."""

    @cached_property
    def _sorted(self) -> Longs:
        return np.sort(self.needs)

    @property
    def events(self) -> int:
        """Count the events."""
        return len(self.needs)

    @cached_property
    def hopeless(self) -> int:
        """Count the events that are late whatever the delay."""
        return int((self.needs == INFINITY).sum())

    @property
    def longest(self) -> int:
        """Give the smallest delay under which only the hopeless are late; 0 where that is none."""
        helped = self._sorted[: self.events - self.hopeless]
        return max(int(helped[-1]), 0) if len(helped) else 0

    def untimed(self, delay: int) -> int:
        """Count the events without a time, and the lasting ones without an end that are not late under a delay."""
        return self._untimed + int((self._endless & (self.needs <= delay)).sum())

    def late(self, delay: int) -> int:
        """Count the events that are late under a delay."""
        return self.events - int(np.searchsorted(self._sorted, delay, side="right"))

    def smallest(self, share: Fraction) -> int | None:
        """Give the smallest delay under which a share of the events is on time.

        Args:
            share: above 0, at most 1.

        Returns:
            Ticks; below zero where even promises ahead of the events leave enough on time, NULL where any delay does,
            None where none does.
        """
        needed = int(self._sorted[max(ceil(share * self.events), 1) - 1])
        return None if needed == INFINITY else needed

    def wait(self, delay: int) -> Wait:
        """Say how long the events that are on time wait: from their arrival to that of the first CTI past them."""
        on_time = (self.needs <= delay) & ~self._endless
        instants, timelines = self._instants[on_time], self._timelines[on_time]
        own = self._own.first_past(timelines, instants + delay)
        left_at = np.minimum(own, self._given.first_past(timelines, instants))
        released = left_at != INFINITY
        waits = (left_at - self._arrivals[on_time])[released]
        left = int(len(released) - released.sum())
        if not len(waits):
            return Wait(None, None, left)
        half, most = np.percentile(waits, [100 * HALF, 100 * MOST], method="inverted_cdf")
        return Wait(int(half), int(most), left)

    def ladder(self, current: int, *more: int) -> list[int]:
        """Give delays worth a line, ascending: none, around the current one, and what gets the usual shares on time.

        Args:
            current: the flow's delay.
            more: delays that are to be among them.
        """
        around = [written_up(current * quarters // 4) for quarters in (1, 2, 8, 16)] if current > 0 else []
        asked = [needed for share in MARKS if (needed := self.smallest(share)) is not None] if self.events else []
        rungs = sorted({0, *around, *map(written_up, asked)})
        enough = next((rung for rung in rungs if self.late(rung) == self.hopeless), rungs[-1])
        return sorted({*(rung for rung in rungs if rung <= enough), current, *more})


def _generated(policy: AdvanceTimePolicy, history: History) -> Promises:
    """Have the operator make its CTIs without a delay; those of the input, which are no cause, are kept from it."""
    taken = np.flatnonzero(history.kind != Kind.CTI)
    zero = np.zeros(len(taken), dtype=np.int64)
    columns = (history.timeline, history.arrival, history.event_time, history.event_end)
    timeline, arrival, time, end = (column[taken] for column in columns)
    laid = Rows(history.kind[taken], timeline, zero, arrival, zero, time, end, zero)
    for column in laid:
        column.setflags(write=False)
    operator = AdvanceTime(replace(policy, delay=0, at_end=PromiseAtEnd.SILENT))
    operator.grow(history.timelines)
    causes, times = [zero[:0]], [zero[:0]]
    with as_written() if len(laid.kind) < FEW else nullcontext():
        for out in operator.feed(laid):
            made = np.flatnonzero(out["kind"] == Kind.CTI)
            causes.append(out["src"][made - 1])
            times.append(out["event_time"][made])
    rows = taken[np.concatenate(causes)]
    return Promises(rows, history.timeline[rows], np.concatenate(times), history.arrival[rows], len(history))


def _imported(history: History, final: int | None) -> Promises:
    """Give the CTIs that come whatever the delay: those of the input, and the one at the end."""
    rows = np.flatnonzero((history.kind == Kind.CTI) & (history.event_time != NULL))
    timelines, times, arrivals = (each[rows] for each in (history.timeline, history.event_time, history.arrival))
    if final is not None:
        ends = np.arange(history.timelines)
        rows = np.append(rows, np.full(len(ends), len(history)))
        timelines, times = np.append(timelines, ends), np.append(times, np.full(len(ends), INFINITY))
        arrivals = np.append(arrivals, np.full(len(ends), final))
    return Promises(rows, timelines, times, arrivals, len(history))


def _instants(
    policy: AdvanceTimePolicy, history: History
) -> tuple[Longs, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Give the time by which each row is judged, NULL for what is never late.

    Beside it, which events have none, and which lasting ones have one but no end: those may be late, and do not wait.
    """
    kind, time, end = history.kind, history.event_time, history.event_end
    starts, ends = (kind == Kind.DATA) | (kind == Kind.START), kind == Kind.END
    lasting = (kind == Kind.DATA) & (policy.shape == Shape.INTERVAL)
    untimed = (starts & (time == NULL)) | (ends & (end == NULL))
    endless = lasting & ~untimed & (end == NULL)
    judged = (starts | ends) & ~untimed & ~(lasting & ~endless & (end <= time))
    return np.where(judged, np.where(ends, end, time), NULL), untimed, endless
