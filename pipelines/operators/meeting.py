"""Where streams with promises meet: what union and join share, from the sides' time to the events that wait.

An event waits until the output's time has passed its start. The output's time is the older of the sides' newest CTIs,
held back to the start of the earliest result whose end nobody knows yet, so that no result ever comes behind a promise.

Helpers take numbers, single records and at most a few arrays: Numba counts every array of a named tuple that is handed
on, again and again, and compiles such a helper for seconds.

Rules of docs/semantics.md: S9, U1, U2, U5, J1
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pipelines.operators.compiled import compiled
from pipelines.operators.leaving import write
from pipelines.operators.rows import (
    INFINITY,
    MAX_TIME,
    NULL,
    OUT,
    OUT_CAPACITY,
    Fate,
    Kind,
    Longs,
    Reason,
    Records,
)
from pipelines.operators.scan import NO_BLIND, NUMBERING, Blind, CarryPart, Per, Timeless, grow, next_place, taken_up

if TYPE_CHECKING:
    from collections.abc import Mapping

STATE = np.dtype([("cti", "i8"), *NUMBERING])
PORT = np.dtype([("cti", "i8"), ("cti_arrival", "i8"), ("cti_place", "i8")])
INSTANTS = frozenset({"cti", "cti_arrival", "last_arrival"})

DATA, START, END, TIMER, CTI = (int(kind) for kind in (Kind.DATA, Kind.START, Kind.END, Kind.TIMER, Kind.CTI))
MAIN, DROPPED = int(Fate.MAIN), int(Fate.DROPPED)
NONE, LATE, LATE_END, EMPTY = int(Reason.NONE), int(Reason.LATE), int(Reason.LATE_END), int(Reason.EMPTY)
ORPHAN, REUSED, NULL_TIME = int(Reason.ORPHAN_END), int(Reason.ID_REUSED), int(Reason.NULL_TIME)
LATE_CTI = int(Reason.LATE_CTI)
NOBODY = -1
RELEASED = "once the older of its sides' promises is past"
"""When a row of a union or a join leaves, in words."""


EVENT = np.dtype(
    [
        *(("at", "i8"), ("end", "i8"), ("side", "i8"), ("kind", "i8")),
        *(("closed_by", "i8"), ("alive", "i8"), ("less", "i8"), ("more", "i8"), ("next", "i8")),
    ]
)
"""What is known of a row that is an event: its start; its end, NULL while nobody knows it; the place of its side among
those of all scopes; its kind; the row of its end edge, or NOBODY; 1 while it must be kept; the two heaps of waiting
events below it; and the event behind it in the chain that an operator keeps."""


class MeetingRow(NamedTuple):
    """One row of the input."""

    number: int
    kind: np.int64
    key: int
    side: int
    """Place of its side among those of all scopes."""
    arrival: int
    place: int
    time: int
    end: int
    id: int
    point: bool
    """Whether events of its side are points."""


class MeetingDesk(NamedTuple):
    """Working state of one block: what is known of its events, and which of them wait."""

    event: Records
    """By row: an `EVENT`."""
    opened: Longs
    """By event id: row of the start edge that is open, or NOBODY."""
    root: Longs
    """By scope: the waiting event that starts first, or NOBODY."""


def desk(scopes: int, rows: int, events: int) -> MeetingDesk:
    """Lay out a block of `rows` rows of `scopes` scopes with event ids below `events`."""
    nobody = [np.full(size, NOBODY, dtype=np.int64) for size in (events, scopes)]
    return MeetingDesk(np.zeros(rows, dtype=EVENT), *nobody)


@compiled
def longer(out, n, more):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201 - Numba infers records
    """Give what was written so far with room for `more`, and as much again."""
    wider = np.empty(2 * (n + more), out.dtype)
    for i in range(n):
        wider[i] = out[i]
    return wider


@compiled
def let_out(row: MeetingRow, src, kind, fate, reason, place, time, end, out) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Write one row that `row` lets out; what a promise or a result adds is for the caller."""
    write(out, src, row.key, kind, fate, reason, row.arrival, place, time, end, NULL, row.number)


@compiled
def refuse(row: MeetingRow, reason, port, out) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Write a row for the ledger, with the promise of its side where that was broken; give how many rows that is."""
    let_out(row, row.number, row.kind, DROPPED, reason, row.place, row.time, row.end, out)
    if reason == LATE or reason == LATE_END or reason == LATE_CTI:
        out["cti"] = port["cti"]
        out["cti_arrival"] = port["cti_arrival"]
        out["cti_place"] = port["cti_place"]
    return 1


@compiled
def promise(row: MeetingRow, s, time, out) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Emit a CTI; give how many rows that is."""
    let_out(row, -1, CTI, MAIN, NONE, next_place(s, row.arrival), time, NULL, out)
    return 1


@compiled
def melded(heap, one, other) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Make one heap of two, on top what is `at` the first place and came before its equals (a skew heap)."""
    if one < 0 or other < 0:
        return max(one, other)
    # A loop, for a skew heap may be as deep as it has rows. It keeps no ranks, and to meld is all it must be able to
    # do.
    top = NOBODY
    last = NOBODY
    while other >= 0:
        # Rows are numbered as they came, so of one instant the first that came is on top (U3).
        if heap[other]["at"] < heap[one]["at"] or (heap[other]["at"] == heap[one]["at"] and other < one):
            one, other = other, one
        if top < 0:
            top = one
        else:
            heap[last]["less"] = one
        rest = heap[one]["more"]
        # The children change places at every step: that alone keeps melding short on average.
        heap[one]["more"] = heap[one]["less"]
        heap[one]["less"] = NOBODY
        last = one
        one, other = other, rest
    heap[last]["less"] = one
    return top


@compiled
def taken_together(event, top):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Take the events that start first, all at one instant; give the first, chained by `less`, and what still waits."""
    first, last, start = top, NOBODY, event[top]["at"]
    while top >= 0 and event[top]["at"] == start:
        x = top
        top = melded(event, event[x]["less"], event[x]["more"])
        # Out of the heap `less` is free, so the taken events are chained in place and no list grows in a compiled loop.
        if last >= 0:
            event[last]["less"] = x
        event[x]["less"] = NOBODY
        event[x]["more"] = NOBODY
        last = x
    return first, top


@compiled
def put_back(event, x, top) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Have events wait again that were taken together."""
    while x >= 0:
        following = event[x]["less"]
        event[x]["less"] = NOBODY
        top = melded(event, top, x)
        x = following
    return top


@compiled
def fault(row: MeetingRow, cti, started) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001, PLR0911 - a reason each
    """Say why a row that is or ends an event cannot be taken in; NONE where it can.

    Behind infinity every edge is late, whether its event is still known or has left. `cti` is the newest of its side,
    `started` when the event of its id was opened, NULL where none is open.
    """
    interval = row.kind == DATA and not row.point
    if (row.time == NULL and row.kind != END) or (row.end == NULL and (interval or row.kind == END)):
        return NULL_TIME
    if cti == INFINITY and row.kind != DATA:
        return LATE if row.kind == START else LATE_END
    if row.kind == END:
        if started == NULL:
            return ORPHAN
        if row.end < cti:
            return LATE_END
        return EMPTY if row.end <= started else NONE
    if interval and row.end <= row.time:
        return EMPTY
    if row.kind == START and started != NULL:
        return REUSED
    return LATE if row.time < cti else NONE


@compiled
def behind(instant) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Give the end of a point: a tick later, which is infinity behind the last readable instant, as in tables."""
    return instant + 1 if instant < MAX_TIME else INFINITY


@compiled
def take_in(row: MeetingRow, event, opened) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Know an event from its row, new or held; an end edge gives its start its end."""
    e = event[row.number]
    e["at"] = row.time
    e["end"] = NULL
    e["side"] = row.side
    e["kind"] = row.kind
    e["closed_by"] = NOBODY
    e["alive"] = 1
    e["less"] = NOBODY
    e["more"] = NOBODY
    e["next"] = NOBODY
    if row.kind == END:
        # The end's own row is kept beside its start: at a cut both are held, and the next block pairs them anew.
        start = opened[row.id]
        opened[row.id] = NOBODY
        event[start]["closed_by"] = row.number
        event[start]["end"] = row.end
    elif row.kind == START:
        opened[row.id] = row.number
    elif row.kind == TIMER:
        e["end"] = row.time
    else:
        e["end"] = behind(row.time) if row.point else row.end


@compiled
def let_go(event, x) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Keep an event, and the row of its end edge, no longer."""
    event[x]["alive"] = 0
    if event[x]["closed_by"] >= 0:
        event[event[x]["closed_by"]]["alive"] = 0


@compiled
def known_end(e, ports) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Give the end of an event, INFINITY where no end can come any more, NULL while nobody knows."""
    if e["end"] != NULL:
        return e["end"]
    return INFINITY if ports[e["side"]]["cti"] == INFINITY else NULL


@compiled
def oldest(ports, k, width) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Give the older of the sides' newest CTIs; NULL while a side has none."""
    found = INFINITY
    # NULL is the smallest number: a side that has promised nothing yet holds the output (U1).
    for p in range(k * width, (k + 1) * width):
        found = min(found, ports[p]["cti"])
    return found


@compiled
def advance(row: MeetingRow, port) -> bool:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Let a CTI move the time of its side; say whether it did."""
    if row.time <= port["cti"]:
        return False
    port["cti"] = row.time
    port["cti_arrival"] = row.arrival
    port["cti_place"] = row.place
    return True


def written() -> Records:
    """Give the buffer that a block's rows go into; it grows as it must."""
    return np.empty(4096, dtype=OUT)


class Meeting(Timeless):
    """An operator in which sides meet, each with promises of its own; those of this kind say what they make of it.

    Args:
        policy: the settings; `shapes` has one entry a side.
        carry: part "state", the output's time of each scope, and part "ports", that of each side (scope-major).
        blind: not looked at; silence is not judged here.
        capacity: not looked at; what leaves in a block grows as it must.
    """

    parts = (CarryPart("state", Per.KEY, STATE, INSTANTS), CarryPart("ports", Per.PORT, PORT, INSTANTS))

    def __init__(
        self,
        policy: Any,  # noqa: ANN401 - each operator has its own
        carry: Mapping[str, Records] = MappingProxyType({}),
        blind: Blind = NO_BLIND,  # noqa: ARG002 - every operator is built alike
        capacity: int = OUT_CAPACITY,  # noqa: ARG002 - every operator is built alike
    ) -> None:
        self.policy = policy
        self.records = taken_up(self.parts, carry)
        self._events = 1

    def grow(self, keys: int, events: int = 1) -> None:
        """Make room for `keys` scopes and event ids below `events`."""
        grow(self.parts, self.records, keys, len(self.policy.shapes))
        self._events = max(1, events)
