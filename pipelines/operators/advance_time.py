"""Advancing application time: CTIs, the promises that no event before an instant will come.

Source: Microsoft StreamInsight, *Advancing Application Time*. The policy Divert and the ledger of every violation
are ours.

Rules of docs/semantics.md: A1, A2, A3, A4, A5, A6, A7, A8, A9, A10, A11, A12, A13, A14, A15, A16, A17, A18, A19, A20
Rules of docs/semantics.md: A21, A22
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipelines.operators.compiled import compiled
from pipelines.operators.leaving import write
from pipelines.operators.plain_words import counted, spoken
from pipelines.operators.rows import (
    INFINITY,
    MAX_TIME,
    MIN_TIME,
    NULL,
    OUT_CAPACITY,
    Fate,
    FullError,
    Kind,
    Policy,
    PolicyError,
    Reason,
    Records,
    Rows,
    Shape,
    out_buffer,
)
from pipelines.operators.scan import (
    NO_BLIND,
    NUMBERING,
    Blind,
    CarryPart,
    Per,
    Timeless,
    drain,
    grow,
    next_place,
    taken_up,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipelines.operators.rows import Described

LONGEST = MAX_TIME - MIN_TIME

STATE = np.dtype(
    [
        ("cti", "i8"),
        ("cti_arrival", "i8"),
        ("cti_place", "i8"),
        ("received", "i8"),
        ("open", "i8"),
        ("seen", "i8"),
        ("base", "i8"),
        ("side_arrival", "i8"),
        ("side_place", "i8"),
        *NUMBERING,
    ]
)
INSTANTS = frozenset({"cti", "cti_arrival", "base", "side_arrival", "last_arrival", "start"})
OPEN = np.dtype([("status", "i8"), ("start", "i8")])
"""One event of edges: whether and how its start edge left, and the start it left with."""

DATA, START, END, TIMER, CTI = (int(kind) for kind in (Kind.DATA, Kind.START, Kind.END, Kind.TIMER, Kind.CTI))
READING, FINAL = int(Kind.READING), int(Kind.FINAL)
MAIN, SIDE, GONE = int(Fate.MAIN), int(Fate.SIDE), int(Fate.DROPPED)
NONE, LATE, LATE_END = int(Reason.NONE), int(Reason.LATE), int(Reason.LATE_END)
START_DROPPED, START_MOVED = int(Reason.START_DROPPED), int(Reason.START_MOVED)
START_DIVERTED, ORPHAN, REUSED = int(Reason.START_DIVERTED), int(Reason.ORPHAN_END), int(Reason.ID_REUSED)
AHEAD, EMPTY, NULL_TIME, LATE_CTI = (
    int(Reason.MAX_AHEAD),
    int(Reason.EMPTY),
    int(Reason.NULL_TIME),
    int(Reason.LATE_CTI),
)
CLOSED, OPENED, MOVED, DROPPED_START, DIVERTED_START = range(5)
IMPORTED = 1


class Late(IntEnum):
    """What is done to an event that breaks a promise."""

    DROP = 0
    """It does not get through."""
    ADJUST = 1
    """Its start is moved to the newest CTI where its lifetime reaches past it; else it is dropped."""
    DIVERT = 2
    """It leaves unchanged in the side stream, which carries no CTIs."""


class LateEnd(IntEnum):
    """What becomes of an event whose end edge lies before the newest CTI."""

    STAY_OPEN = 0
    """The end edge is set aside and the event stays open (the vendor's way)."""
    CLOSE_AT_CTI = 1
    """The event ends at the newest CTI."""


class PromiseAtEnd(IntEnum):
    """What is promised when the stream ends."""

    SILENT = 0
    """Nothing."""
    INFINITY = 1
    """Everything: a last CTI at infinity."""


@dataclass(eq=False)
class OpenFull(FullError):  # noqa: N818 - a state of the stream, not a mistake
    """More events of one timeline are open than `max_open` allows."""

    allowed: int
    stream: str = ""

    def __str__(self) -> str:
        where = f"`{self.stream}`" if self.stream else "advance_time"
        return (
            f"{where} would keep more open events of one timeline than the {self.allowed:,} that max_open allows: end "
            "edges do not come, or `event_id` does not tell them apart; correct the source, or "
            "raise max_open, then give up the commit begun under the old flow: pulseline abandon FLOW --commit N"
        )


@dataclass(frozen=True, kw_only=True)
class AdvanceTimePolicy(Policy):
    """What a person chose for one stream's CTIs; all times in ticks (µs).

    Without `events` and `duration` CTIs come with the input or from another stream.

    Raises:
        PolicyError: a count or duration below one, a delay beyond all readable time.
    """

    shape: Shape
    late: Late
    events: int | None = None
    duration: int | None = None
    delay: int = 0
    late_end: LateEnd = LateEnd.STAY_OPEN
    at_end: PromiseAtEnd = PromiseAtEnd.SILENT
    max_ahead: int | None = None
    max_open: int | None = None
    """How many events of one timeline may be open, each a start edge whose end edge has not come."""

    def __post_init__(self) -> None:
        if self.events is not None and self.events < 1:
            raise PolicyError("every.events", "at least 1", self.events)
        if self.duration is not None and not 0 < self.duration <= LONGEST:
            raise PolicyError("every.duration", "greater than zero", self.duration)
        if abs(self.delay) > LONGEST:
            raise PolicyError("delay", "no longer than all readable time", self.delay)
        if self.max_ahead is not None and not 0 <= self.max_ahead <= LONGEST:
            raise PolicyError("max_ahead", "zero or more", self.max_ahead)
        if self.max_open is not None and self.max_open < 1:
            raise PolicyError("max_open", "at least 1", self.max_open)

    def words(self, stream: Described) -> list[str]:
        """Say after how many events or how much time a promise comes, at which instant, and where late rows go."""
        after = [
            *([f"after every {counted(self.events, 'event')}"] if self.events is not None else []),
            *([f"each {spoken(self.duration)} of event time"] if self.duration is not None else []),
        ]
        shift = f"{spoken(abs(self.delay))} {'before' if self.delay > 0 else 'past'} " if self.delay else "at "
        delay = f"{shift}the time of the event that causes it"
        promise = f"a promise (CTI) {' and '.join(after)}, {delay}" if after else "promises (CTIs) come with its input"
        late = {
            "DROP": "goes to the ledger alone",
            "ADJUST": "is moved to the promise where it reaches past it, else it goes to the ledger alone",
            "DIVERT": f"is kept unchanged in {', '.join(stream.sides)}",
        }[self.late.name]
        if len(stream.inputs) > 1:
            taken = f"each promise of {stream.inputs[1]} is taken over"
            promise = f"{promise}; {taken}" if after else taken
        words = [promise, f"what starts before the newest promise {late}"]
        if self.shape.name == "EDGE":
            closes = self.late_end.name == "CLOSE_AT_CTI"
            words.append(f"an event whose end is too late {'ends at the newest promise' if closes else 'stays open'}")
        if self.max_ahead is not None:
            words.append(f"an event more than {spoken(self.max_ahead)} ahead of its arrival causes no promise")
        if self.at_end.name == "INFINITY":
            words.append("when the stream ends, a last promise: everything")
        return words


class AdvanceTimeNumbers(NamedTuple):
    """The policy as the compiled scan takes it; 0 stands for "not asked for" in `events` and `duration`."""

    shape: int
    late: int
    events: int
    duration: int
    delay: int
    late_end: int
    at_end: int
    max_ahead: int
    max_open: int


class AdvancingRow(NamedTuple):
    """One row of the input: the helpers of the scan take numbers and records alone.

    An array that is handed on is counted again and again, which costs several times what judging a row does.
    """

    number: int
    kind: int
    key: int
    arrival: int
    place: int
    time: int
    end: int


@compiled
def _write(row: AdvancingRow, s, src, kind, key, fate, reason, place, time, end, out) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    write(out, src, key, kind, fate, reason, row.arrival, place, time, end, NULL, row.number)
    # Only a promise that was broken governs; a fault of the row itself names none.
    if s["cti"] != NULL and reason not in (NONE, AHEAD, ORPHAN, REUSED, EMPTY, NULL_TIME):
        out["cti"] = s["cti"]
        out["cti_arrival"] = s["cti_arrival"]
        out["cti_place"] = s["cti_place"] if s["cti_arrival"] != NULL else NULL


@compiled
def _place_side(s, arrival):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    if s["side_arrival"] == arrival:
        s["side_place"] += 1
    else:
        s["side_arrival"] = arrival
        s["side_place"] = 1
    return s["side_place"]


@compiled
def _leave(row: AdvancingRow, s, fate, reason, time, end, out) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    # What is dropped leaves in no stream, so it keeps the place it came with.
    place = row.place
    if fate == MAIN:
        place = next_place(s, row.arrival)
    elif fate == SIDE:
        place = _place_side(s, row.arrival)
    _write(row, s, row.number, row.kind, row.key, fate, reason, place, time, end, out)


@compiled
def _promise(row: AdvancingRow, src, s, key, time, out) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Emit a CTI at `time`, if it moves time forward; give how many rows that is."""
    # NULL is the smallest number: a first promise always moves time.
    if time <= s["cti"]:
        return 0
    place = next_place(s, row.arrival)
    _write(row, s, src, CTI, key, MAIN, NONE, place, time, NULL, out)
    s["cti"] = time
    s["cti_arrival"] = row.arrival
    s["cti_place"] = place
    return 1


@compiled
def _event(p: AdvanceTimeNumbers, row: AdvancingRow, s, event):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Judge a point, an interval or a start edge: (fate, reason, start with which it leaves)."""
    time, edge = row.time, row.kind == START
    # Ids before promises: a reused id is wrong whatever its time, and must not disturb the event that is open (A15).
    if edge and event["status"] != CLOSED:
        return GONE, REUSED, time
    if p.shape == Shape.INTERVAL and not edge and row.end <= time:
        return GONE, EMPTY, time
    if time >= s["cti"]:
        return MAIN, NONE, time
    if p.late == Late.DIVERT:
        return SIDE, LATE, time
    # The end of an edge is not known yet, so it reaches past every promise but the last.
    reaches = s["cti"] != INFINITY if edge else p.shape == Shape.INTERVAL and row.end > s["cti"]
    if p.late == Late.ADJUST and reaches:
        return MAIN, LATE, s["cti"]
    return GONE, LATE, time


@compiled
def _remember_start(row: AdvancingRow, s, fate, reason, start, event) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    if row.kind != START or reason == REUSED:
        return
    # A start that was dropped or diverted is remembered too: its end must go the same way (A13).
    s["open"] += 1
    event["start"] = start
    if fate == SIDE:
        event["status"] = DIVERTED_START
    elif fate == GONE:
        event["status"] = DROPPED_START
    else:
        event["status"] = OPENED if reason == NONE else MOVED


@compiled
def _forget(s, event) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    event["status"] = CLOSED
    s["open"] -= 1


@compiled
def _end_edge(p: AdvanceTimeNumbers, row: AdvancingRow, s, event):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Judge an end edge: (fate, reason, start, end with which it leaves)."""
    status, start, end = event["status"], row.time, row.end
    if end == NULL:
        return MAIN, NULL_TIME, start, end
    if status == CLOSED:
        return GONE, ORPHAN, start, end
    if status == DROPPED_START or status == DIVERTED_START:
        _forget(s, event)
        return (GONE, START_DROPPED, start, end) if status == DROPPED_START else (SIDE, START_DIVERTED, start, end)
    reason = NONE
    if status == MOVED:
        start, reason = event["start"], START_MOVED
    if end >= s["cti"]:
        _forget(s, event)
        return MAIN, reason, start, end
    if p.late_end == LateEnd.CLOSE_AT_CTI and s["cti"] != INFINITY:
        _forget(s, event)
        return MAIN, LATE_END, start, s["cti"]
    # It stays out with the start it came with; the event itself goes on with the moved one.
    return (SIDE if p.late == Late.DIVERT else GONE), LATE_END, row.time, end


@compiled
def _passes(p: AdvanceTimeNumbers, s, kind, time, counted) -> bool:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Let a received event or a timer pass time, and say whether a CTI is due."""
    due = False
    if kind != TIMER and p.events:
        s["received"] += 1
        if s["received"] == p.events:
            # Anew also where no CTI comes of it (A4, A7).
            s["received"] = 0
            due = counted
    if p.duration and counted:
        first = s["base"] == NULL
        # A timer is no event, so time is never counted from one before the first event (A11).
        if (first and kind != TIMER) or (not first and time - s["base"] >= p.duration):
            s["base"] = time
            due = True
    return due


@compiled
def _received(p: AdvanceTimeNumbers, row: AdvancingRow, s, event, out, behind) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Take in one row of the operator's own input, with the CTI that it causes `behind` it; give how many leave."""
    kind, time = row.kind, row.time
    if kind == CTI:
        if time > s["cti"]:
            return _promise(row, row.number, s, row.key, time, out)
        _leave(row, s, GONE, LATE_CTI, time, NULL, out)
        return 1
    if kind == END:
        fate, reason, start, end = _end_edge(p, row, s, event)
        _leave(row, s, fate, reason, start, end, out)
        return 1
    if time == NULL or (kind == DATA and p.shape == Shape.INTERVAL and row.end == NULL):
        late = time != NULL and time < s["cti"]
        fate = MAIN if not late else SIDE if p.late == Late.DIVERT else GONE
        _leave(row, s, fate, LATE if late else NULL_TIME, time, row.end, out)
        return 1
    fate, reason, start = MAIN, NONE, time
    counted = time - row.arrival <= p.max_ahead
    if kind != TIMER:
        fate, reason, start = _event(p, row, s, event)
        _remember_start(row, s, fate, reason, start, event)
        if reason == NONE and not counted:
            reason = AHEAD
    _leave(row, s, fate, reason, start, row.end, out)
    if not _passes(p, s, kind, time, counted):
        return 1
    # At the edges of readable time a promise stays a promise: beyond them lies infinity, the end (A22).
    return 1 + _promise(row, -1, s, row.key, min(max(time - p.delay, MIN_TIME), MAX_TIME), behind)


@compiled
def _heard(s, bound) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Bind a key that is heard for the first time by what was imported for all keys before; it has no row of it."""
    s["seen"] = 1
    s["cti"] = max(s["cti"], bound)


@compiled
def scan(p: AdvanceTimeNumbers, rows: Rows, i, state, opens, bound, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Run from row `i` on until rows or buffer end, or too many events are open; give (next row, rows written)."""
    n = 0
    while i < len(rows.kind):
        kind, k, time = rows.kind[i], rows.key[i], rows.event_time[i]
        # A row gives at most itself and a CTI; room is asked for before any state changes, so a full buffer is only a
        # cut.
        if n + 2 > len(out) or (kind == START and state[k]["open"] >= p.max_open):
            return i, n
        if kind <= CTI and rows.port[i] != IMPORTED and not state[k]["seen"]:
            _heard(state[k], bound[0])
        row = AdvancingRow(i, kind, k, rows.arrival[i], rows.place[i], time, rows.event_end[i])
        if kind == FINAL and p.at_end == PromiseAtEnd.INFINITY:
            # After a full buffer all keys are asked again: those that have their promise give none, as it moves
            # nothing.
            for every in range(len(state)):
                if n < len(out):
                    n += _promise(row, -1, state[every], every, INFINITY, out[n])
            if n == len(out):
                return i, n
        elif kind == CTI and rows.port[i] == IMPORTED and k >= 0:
            n += _promise(row, -1, state[k], k, time, out[n])
        elif kind == CTI and rows.port[i] == IMPORTED:
            for every in range(len(state)):
                if n < len(out) and state[every]["seen"]:
                    n += _promise(row, -1, state[every], every, time, out[n])
            if n == len(out):
                return i, n
            # Not before every key has it: a full buffer brings this row again.
            bound[0] = time
        elif kind != READING and kind != FINAL:
            n += _received(p, row, state[k], opens[rows.event_id[i]], out[n], out[n + 1])
        i += 1
    return i, n


class AdvanceTime(Timeless):
    """Put CTIs into a stream and hold every later event to them.

    Safe on any division of the input into blocks. The edge: an event beyond `max_ahead` is kept and counted but moves
    no time; an event without a time passes, and the ledger says so.

    Laws: CTIs strictly increase; no event leaves with a start (end edge: an end) before the CTI already sent; every
    input leaves or is in the ledger; no interval event leaves empty; cuts do not matter.

    Args:
        policy: the settings.
        carry: part "state", one record a timeline, and part "open", one record an event of edges that was opened.
        blind: not looked at; CTIs judge no silence.
        capacity: rows of the output buffer, at least 2.
    """

    name = "advance_time"
    smallest = AdvanceTimePolicy(shape=Shape.POINT, late=Late.DROP)
    parts = (CarryPart("state", Per.KEY, STATE, INSTANTS), CarryPart("open", Per.EVENT, OPEN, INSTANTS))

    def __init__(
        self,
        policy: AdvanceTimePolicy,
        carry: Mapping[str, Records] = MappingProxyType({}),
        blind: Blind = NO_BLIND,  # noqa: ARG002 - every operator is built alike
        capacity: int = OUT_CAPACITY,
    ) -> None:
        p = policy
        self.bound = np.full(1, NULL)
        """The newest CTI that was imported for all keys; the engine takes it from the stream that sent it."""
        self.records = taken_up(self.parts, carry)
        self._capacity = max(2, capacity)
        self._numbers = AdvanceTimeNumbers(
            int(p.shape),
            int(p.late),
            p.events or 0,
            p.duration or 0,
            p.delay,
            int(p.late_end),
            int(p.at_end),
            2 * LONGEST if p.max_ahead is None else p.max_ahead,
            INFINITY if p.max_open is None else p.max_open,
        )

    def grow(self, keys: int, events: int = 1) -> None:
        """Make room for `keys` timelines and event ids below `events`."""
        grow(self.parts, self.records, keys, events=max(1, events))

    def feed(self, rows: Rows, held: int = 0) -> Iterator[Records]:
        """Take in rows in order; give what leaves, is set aside or dropped, each with its fate.

        Raises:
            OpenFull: a start edge comes while as many events of its timeline are open as may be.
        """
        out = out_buffer(self._capacity)
        return drain(lambda i: self._step(rows, i, out), held, len(rows.kind), out)

    def _step(self, rows: Rows, i: int, out: Records) -> tuple[int, int]:
        i, written = scan(self._numbers, rows, i, self.records["state"], self.records["open"], self.bound, out)
        # A scan that stops although there is room was stopped by `max_open`.
        if i < len(rows.kind) and written + 2 <= len(out):
            raise OpenFull(self._numbers.max_open)
        return i, written
