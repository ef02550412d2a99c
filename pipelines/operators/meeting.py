"""Where streams with promises meet: what union and join share, from the sides' time to the events that wait.

An event waits until the output's time has passed its start. The output's time is the older of the sides' newest CTIs,
held back to the start of the earliest result whose end nobody knows yet, so that no result ever comes behind a promise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipelines.operators.compiled import compiled
from pipelines.operators.rows import INFINITY, MAX_TIME, NULL, OUT, Fate, Kind, Longs, Reason, Records, Rows, Shape
from pipelines.operators.scan import NUMBERING, Part, Per, place_main

if TYPE_CHECKING:
    from collections.abc import Sequence

STATE = np.dtype([("cti", "i8"), *NUMBERING])
PORT = np.dtype([("cti", "i8"), ("cti_arrival", "i8"), ("cti_place", "i8")])
INSTANTS = frozenset({"cti", "cti_arrival", "last_arrival"})
PARTS = (Part("state", Per.KEY, STATE, INSTANTS), Part("ports", Per.PORT, PORT, INSTANTS))

DATA, START, END, TIMER, CTI = (int(kind) for kind in (Kind.DATA, Kind.START, Kind.END, Kind.TIMER, Kind.CTI))
MAIN, DROPPED = int(Fate.MAIN), int(Fate.DROPPED)
NONE, LATE, LATE_END, EMPTY = int(Reason.NONE), int(Reason.LATE), int(Reason.LATE_END), int(Reason.EMPTY)
ORPHAN, REUSED, NULL_TIME = int(Reason.ORPHAN_END), int(Reason.ID_REUSED), int(Reason.NULL_TIME)
LATE_CTI = int(Reason.LATE_CTI)
POINT = int(Shape.POINT)
NOBODY = -1


EVENT = np.dtype([("end", "i8"), ("closed_by", "i8"), ("alive", "i8"), ("less", "i8"), ("more", "i8")])
"""What is known of a row that is an event: its end, NULL while nobody knows it; the row of its end edge, or NOBODY; 1
while it must be kept; and the two heaps of waiting events below it."""


class Desk(NamedTuple):
    """Working state of one block: what is known of its events, and which of them wait."""

    shapes: Longs
    """Shape of the events of each side."""
    event: Records
    """By row: an `EVENT`."""
    opened: Longs
    """By event id: row of the start edge that is open, or NOBODY."""
    root: Longs
    """By scope: the waiting event that starts first, or NOBODY."""


class Clocks(NamedTuple):
    """Time per scope and side; both are carry."""

    state: Records
    ports: Records


def desk(shapes: Sequence[int], scopes: int, rows: int, events: int) -> Desk:
    """Lay out a block of `rows` rows of `scopes` scopes with event ids below `events`."""
    event = np.zeros(rows, dtype=EVENT)
    event["end"] = NULL
    for name in ("closed_by", "less", "more"):
        event[name] = NOBODY
    nobody = [np.full(size, NOBODY, dtype=np.int64) for size in (events, scopes)]
    return Desk(np.array(shapes, dtype=np.int64), event, *nobody)


@compiled
def room(out, n, more):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201 - Numba infers records
    """Give the rows written so far with room for `more`."""
    if n + more <= len(out):
        return out
    longer = np.empty(2 * (n + more), out.dtype)
    for i in range(n):
        longer[i] = out[i]
    return longer


@compiled
def write(rows: Rows, i, src, fate, reason, place, time, end, out, n):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Write one row that row `i` lets out; what a CTI or a promise adds is for the caller."""
    row = out[n]
    row["src"] = src
    row["key"] = rows.key[i]
    row["kind"] = rows.kind[i] if src < 0 else rows.kind[src]
    row["fate"] = fate
    row["reason"] = reason
    row["arrival"] = rows.arrival[i]
    row["place"] = place
    row["event_time"] = time
    row["event_end"] = end
    row["due_at"] = NULL
    row["cti"] = NULL
    row["cti_arrival"] = NULL
    row["cti_place"] = NULL
    return n + 1


@compiled
def refuse(rows: Rows, i, reason, port, out, n):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Write row `i` for the ledger, with the promise of its side where that was broken."""
    n = write(rows, i, i, DROPPED, reason, rows.place[i], rows.event_time[i], rows.event_end[i], out, n)
    if reason == LATE or reason == LATE_END or reason == LATE_CTI:
        out[n - 1]["cti"] = port["cti"]
        out[n - 1]["cti_arrival"] = port["cti_arrival"]
        out[n - 1]["cti_place"] = port["cti_place"]
    return n


@compiled
def promise(rows: Rows, i, state, k, time, out, n):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Emit a CTI at `time`, which moves the output's time forward."""
    place = place_main(state, k, rows.arrival[i])
    n = write(rows, i, -1, MAIN, NONE, place, time, NULL, out, n)
    out[n - 1]["kind"] = CTI
    state[k]["cti"] = time
    return n


@compiled
def before(rows: Rows, i, j) -> bool:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Say whether event `i` starts before event `j`, among equals whether it came before."""
    return rows.event_time[i] < rows.event_time[j] or (rows.event_time[i] == rows.event_time[j] and i < j)


@compiled
def melded(rows: Rows, desk: Desk, one, other) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Make one heap of two, the row that starts first on top (a skew heap)."""
    if one < 0 or other < 0:
        return max(one, other)
    if before(rows, other, one):
        one, other = other, one
    top = one
    while True:
        rest = desk.event[one]["more"]
        desk.event[one]["more"] = desk.event[one]["less"]
        if rest < 0:
            desk.event[one]["less"] = other
            return top
        if before(rows, other, rest):
            rest, other = other, rest
        desk.event[one]["less"] = rest
        one = rest


@compiled
def wait(rows: Rows, desk: Desk, k, i) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Put an event among those of its scope that wait."""
    desk.event[i]["less"] = NOBODY
    desk.event[i]["more"] = NOBODY
    desk.root[k] = melded(rows, desk, desk.root[k], i)


@compiled
def take_first(rows: Rows, desk: Desk, k) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Take the event of a scope out that starts first."""
    first = desk.root[k]
    desk.root[k] = melded(rows, desk, desk.event[first]["less"], desk.event[first]["more"])
    return first


@compiled
def fault(rows: Rows, i, port, desk: Desk) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001, PLR0911 - a reason each
    """Say why a row that is or ends an event cannot be taken in; NONE where it can.

    Behind infinity every edge is late, whether its event is still known or has left.
    """
    kind, time, end = rows.kind[i], rows.event_time[i], rows.event_end[i]
    interval = kind == DATA and desk.shapes[rows.port[i]] != POINT
    if (time == NULL and kind != END) or (end == NULL and (interval or kind == END)):
        return NULL_TIME
    if port["cti"] == INFINITY and kind != DATA:
        return LATE if kind == START else LATE_END
    if kind == END:
        start = desk.opened[rows.event_id[i]]
        if start < 0:
            return ORPHAN
        if end < port["cti"]:
            return LATE_END
        return EMPTY if end <= rows.event_time[start] else NONE
    if interval and end <= time:
        return EMPTY
    if kind == START and desk.opened[rows.event_id[i]] >= 0:
        return REUSED
    return LATE if time < port["cti"] else NONE


@compiled
def behind(instant) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Give the end of a point: a tick later, which is infinity behind the last readable instant, as in tables."""
    return instant + 1 if instant < MAX_TIME else INFINITY


@compiled
def take_in(rows: Rows, i, desk: Desk) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Know an event from its row, new or held; an end edge gives its start its end."""
    kind = rows.kind[i]
    desk.event[i]["alive"] = 1
    if kind == END:
        start = desk.opened[rows.event_id[i]]
        desk.opened[rows.event_id[i]] = NOBODY
        desk.event[start]["closed_by"] = i
        desk.event[start]["end"] = rows.event_end[i]
    elif kind == START:
        desk.opened[rows.event_id[i]] = i
    elif kind == TIMER:
        desk.event[i]["end"] = rows.event_time[i]
    else:
        desk.event[i]["end"] = behind(rows.event_time[i]) if desk.shapes[rows.port[i]] == POINT else rows.event_end[i]


@compiled
def let_go(desk: Desk, i) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Keep an event, and the row of its end edge, no longer."""
    desk.event[i]["alive"] = 0
    if desk.event[i]["closed_by"] >= 0:
        desk.event[desk.event[i]["closed_by"]]["alive"] = 0


@compiled
def known_end(rows: Rows, ports, desk: Desk, i) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Give the end of an event, INFINITY where no end can come any more, NULL while nobody knows."""
    if desk.event[i]["end"] != NULL:
        return desk.event[i]["end"]
    side = ports[rows.key[i] * len(desk.shapes) + rows.port[i]]
    return INFINITY if side["cti"] == INFINITY else NULL


@compiled
def vanish(rows: Rows, i, reason, port, desk: Desk, out, n):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Write both edges of an event for the ledger that ends with row `i` and cannot be taken, and forget it."""
    start = desk.opened[rows.event_id[i]]
    take_in(rows, i, desk)
    let_go(desk, start)
    n = refuse(rows, i, reason, port, out, n)
    time, end = rows.event_time[start], rows.event_end[start]
    return write(rows, i, start, DROPPED, reason, rows.place[start], time, end, out, n)


@compiled
def oldest(ports, k, width) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Give the older of the sides' newest CTIs; NULL while a side has none."""
    found = INFINITY
    for p in range(k * width, (k + 1) * width):
        found = min(found, ports[p]["cti"])
    return found


@compiled
def advance(rows: Rows, i, port) -> bool:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Let a CTI move the time of its side; say whether it did."""
    if rows.event_time[i] <= port["cti"]:
        return False
    port["cti"] = rows.event_time[i]
    port["cti_arrival"] = rows.arrival[i]
    port["cti_place"] = rows.place[i]
    return True


def fresh_state() -> Records:
    """Give the output's time of a scope that has not been seen."""
    state = np.zeros(1, dtype=STATE)
    for name in ("cti", "last_arrival"):
        state[name] = NULL
    return state


def fresh_port() -> Records:
    """Give the time of a side that never had a CTI."""
    port = np.zeros(1, dtype=PORT)
    for name in ("cti", "cti_arrival"):
        port[name] = NULL
    return port


def written() -> Records:
    """Give the buffer that a block's rows go into; it grows as it must."""
    return np.empty(4096, dtype=OUT)
