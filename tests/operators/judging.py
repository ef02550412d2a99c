"""Brute-force judges of the operators that events go through under CTIs: loops over all events, pairs and windows.

Nothing here knows how an operator works. A judge takes the rows of one key and says what must have left, what must
stand in the ledger and what must be held.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from pipelines.operators.rows import INFINITY, MAX_TIME, MIN_TIME, NULL, Kind, Reason, Shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipelines.operators.window import WindowPolicy
    from tests.transcripts_model import Given, Value

FIT = 2**63


@dataclass
class Event:
    """An event that was taken in."""

    row: Given
    number: int
    """Place of the row that began it."""
    start: int
    end: int | None
    """None while nobody knows it."""
    closed_by: Given | None = None

    @property
    def rows(self) -> list[str]:
        """Name the rows that stand for it."""
        return [self.row.id, *([self.closed_by.id] if self.closed_by else [])]


@dataclass
class Side:
    """One side of a scope: its time, its events, and what it refused."""

    shape: Shape
    cti: int = NULL
    events: list[Event] = field(default_factory=list)
    opened: dict[str, Event] = field(default_factory=dict)
    ledger: list[tuple[str, Reason]] = field(default_factory=list)

    def promised(self, row: Given) -> bool:
        """Take in a CTI; say whether it moves time."""
        if row.time <= self.cti:
            self.ledger.append((row.id, Reason.LATE_CTI))
            return False
        self.cti = row.time
        return True

    def taken(self, row: Given, number: int) -> Event | None:
        """Take in a row of an event; give the event that it begins or ends."""
        reason = self._fault(row)
        if reason is not None:
            self.ledger.append((row.id, reason))
            return None
        if row.kind is Kind.END:
            event = self.opened.pop(row.event)
            if row.end <= event.start:
                self.forget(event, (row.id, event.row.id), Reason.EMPTY)
                return None
            event.end, event.closed_by = row.end, row
            return event
        end = row.end if self.shape is not Shape.POINT else row.time + 1 if row.time < MAX_TIME else INFINITY
        event = Event(row, number, row.time, None if row.kind is Kind.START else end)
        self.events.append(event)
        if row.kind is Kind.START:
            self.opened[row.event] = event
        return event

    def _fault(self, row: Given) -> Reason | None:
        lasts = row.kind is Kind.END or (row.kind is Kind.DATA and self.shape is not Shape.POINT)
        if (row.kind is not Kind.END and row.time == NULL) or (lasts and row.end == NULL):
            return Reason.NULL_TIME
        if row.kind is Kind.END:
            orphan = self.cti != INFINITY and row.event not in self.opened
            return Reason.ORPHAN_END if orphan else Reason.LATE_END if row.end < self.cti else None
        if row.kind is Kind.DATA and lasts and row.end <= row.time:
            return Reason.EMPTY
        if row.kind is Kind.START and self.cti != INFINITY and row.event in self.opened:
            return Reason.ID_REUSED
        return Reason.LATE if row.time < self.cti else None

    def forget(self, event: Event, rows: Iterable[str], reason: Reason) -> None:
        """Set an event aside."""
        self.events.remove(event)
        self.ledger += [(row, reason) for row in rows]

    def known_end(self, event: Event) -> int | None:
        """Give the end of an event; infinity where no end can come any more."""
        return INFINITY if event.end is None and self.cti == INFINITY else event.end


class Verdict(NamedTuple):
    """What must have come of the rows of one key."""

    results: Counter[tuple[object, ...]]
    ledger: Counter[tuple[str, Reason]]
    held: frozenset[str]
    cti: int
    """The newest that must have left."""


def sides_of(rows: Sequence[Given], shapes: Mapping[str, Shape]) -> dict[str, Side]:
    """Take in the rows of one key, side by side."""
    sides = {port: Side(shape) for port, shape in shapes.items()}
    for number, row in enumerate(rows):
        if row.kind is Kind.CTI:
            sides[row.port].promised(row)
        elif row.kind is not Kind.TIMER:
            sides[row.port].taken(row, number)
    return sides


def _ledger(sides: Mapping[str, Side]) -> Counter[tuple[str, Reason]]:
    return Counter(line for side in sides.values() for line in side.ledger)


def united(rows: Sequence[Given], shapes: Mapping[str, Shape]) -> Verdict:
    """Judge a union."""
    sides = sides_of(rows, shapes)
    until = min(side.cti for side in sides.values())
    whole = [(event, side.known_end(event)) for side in sides.values() for event in side.events]
    until = min([until, *(event.start for event, end in whole if end is None)])
    points = all(shape is Shape.POINT for shape in shapes.values())
    found = [(event.row.id, event.start, NULL if points else end) for event, end in whole if event.start < until]
    timers = [row for row in rows if row.kind is Kind.TIMER]
    found += [(row.id, row.time, NULL) for row in timers if row.time < until]
    held = [name for event, _ in whole if event.start >= until for name in event.rows]
    held += [row.id for row in timers if row.time >= until]
    return Verdict(Counter(found), _ledger(sides), frozenset(held), until)


def joined(rows: Sequence[Given], shapes: Mapping[str, Shape]) -> Verdict:
    """Judge a join."""
    sides = sides_of(rows, shapes)
    left, right = sides.values()
    until = min(left.cti, right.cti)
    pairs = []
    for one, other in product(left.events, right.events):
        if one.row.on is None or one.row.on != other.row.on:
            continue
        start, ends = max(one.start, other.start), (left.known_end(one), right.known_end(other))
        if all(end is None or end > start for end in ends):
            pairs.append((one.row.id, other.row.id, start, _overlap(ends, (left.cti, right.cti))))
    until = min([until, *(start for _, _, start, end in pairs if end is None)])
    found = [pair for pair in pairs if pair[2] < until]
    alive = [
        event
        for side in (left, right)
        for event in side.events
        if (end := side.known_end(event)) is None or end > until
    ]
    held = [name for event in alive for name in event.rows]
    return Verdict(Counter(found), _ledger(sides), frozenset(held), until)


def _overlap(ends: tuple[int | None, int | None], promised: tuple[int, int]) -> int | None:
    """Give the end of two events' overlap; an end that nobody knows lies not before what its side has promised."""
    one, other = ends
    if one is not None and other is not None:
        return min(one, other)
    known, behind = (one, promised[1]) if other is None else (other, promised[0])
    return known if known is not None and known <= behind else None


class Windows:
    """The judge of windows: every event against every window.

    Args:
        policy: of the windows, with the measures of the drawn jobs.
    """

    def __init__(self, policy: WindowPolicy) -> None:
        """Begin without rows."""
        self._policy, self._side = policy, Side(policy.shape)
        self.left: list[tuple[object, ...]] = []
        """What must have left, in order: (arrival, start, end, group, measures), or (arrival, CTI)."""
        self._inside: dict[int, dict[str | None, list[Value]]] = {}
        self._done: set[int] = set()
        self._promised = NULL

    def judge(self, rows: Sequence[Given]) -> Verdict:
        """Take in the rows of one key."""
        for number, row in enumerate(rows):
            if row.kind is Kind.CTI:
                before = self._side.cti
                if self._side.promised(row):
                    self._closed(before, row)
            elif row.kind is not Kind.TIMER:
                event = self._side.taken(row, number)
                if event is not None and event.end is not None:
                    self._whole(event, row)
        held = frozenset(event.row.id for event in self._side.events if event.end is None)
        return Verdict(Counter(), Counter(self._side.ledger), held, self._promised)

    def _around(self, start: int, end: int) -> list[int]:
        """Give the windows that overlap a lifetime; too many of them are as good as all."""
        size, hop = self._policy.size, self._policy.hop
        first, last = (start - size) // hop - 1, end // hop + 1
        near = range(first, min(last, first + self._policy.max_windows + 5) + 1)
        return [window for window in near if window * hop < end and window * hop + size > start]

    def _whole(self, event: Event, row: Given) -> None:
        """Put an event whose end is known into the windows that are not closed yet."""
        end = event.start + 1 if self._policy.shape is Shape.POINT else event.end
        assert end is not None
        windows = self._around(max(event.start, self._side.cti), end)
        windows = [window for window in windows if window * self._policy.hop + self._policy.size > self._side.cti]
        if len(windows) > self._policy.max_windows:
            rows = (row.id,) if event.closed_by is None else (row.id, event.row.id)
            self._side.forget(event, rows, Reason.MAX_WINDOWS)
            return
        for window in windows:
            self._put(event, window)

    def _put(self, event: Event, window: int) -> None:
        assert window not in self._done
        self._inside.setdefault(window, {}).setdefault(event.row.on, []).append(event.row.value)

    def _closed(self, before: int, row: Given) -> None:
        size, hop, cti = self._policy.size, self._policy.hop, self._side.cti
        self._still_open(before)
        ready = sorted(
            window
            for window in self._inside
            if window not in self._done and (cti == INFINITY or window * hop + size <= cti)
        )
        for window in ready:
            self._done.add(window)
            start, end = max(window * hop, MIN_TIME), window * hop + size
            end = end if end <= MAX_TIME else INFINITY
            self.left += [(row.at, start, end, on, _measured(values)) for on, values in self._inside[window].items()]
        earliest = (cti - size) // hop + 1
        promised = cti if cti == INFINITY else max(MIN_TIME, min(cti, earliest * hop))
        if promised > self._promised:
            self.left.append((row.at, promised))
            self._promised = promised

    def _still_open(self, before: int) -> None:
        """Put events that are open into the windows that this CTI closes."""
        latest = self._latest()
        for event in self._open():
            if len(self._closing(event, before, latest)) > self._policy.max_windows:
                del self._side.opened[event.row.event]
                self._side.forget(event, (event.row.id,), Reason.MAX_WINDOWS)
        latest = self._latest()
        placed = [(window, event) for event in self._open() for window in self._closing(event, before, latest)]
        for window, event in sorted(placed, key=lambda one: (one[0], one[1].number)):
            self._put(event, window)

    def _open(self) -> list[Event]:
        return [event for event in self._side.events if event.end is None]

    def _latest(self) -> int:
        known = [window * self._policy.hop for window in self._inside if window not in self._done]
        return max([NULL, *known, *(event.start for event in self._open())])

    def _closing(self, event: Event, before: int, latest: int) -> list[int]:
        """Give the windows that a CTI closes and an open event is in; at infinity those that begin by `latest`."""
        size, hop, cti = self._policy.size, self._policy.hop, self._side.cti
        upto = latest + 1 if cti == INFINITY else cti
        around = self._around(max(event.start, before), upto)
        return [window for window in around if cti == INFINITY or window * hop + size <= cti]


def _measured(values: Sequence[Value]) -> tuple[Value, ...]:
    known = [value for value in values if value is not None]
    total: int | None = None
    for value in known:
        total = int(value) if total is None else total + int(value)
        if not -FIT <= total < FIT:
            break
    fits = total is not None and -FIT <= total < FIT
    real = 0.0
    for value in known:
        real += float(value)
    return (
        len(values),
        len(known),
        total if fits else None,
        min(known, default=None),
        float(max(known)) if known else None,
        real / len(known) if known else None,
    )
