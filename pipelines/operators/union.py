"""Union: the events of several streams as one, under the older of their promises.

Source: Microsoft StreamInsight, *Union*.

Rules of docs/semantics.md: U1, U2, U3, U4, U5, U6, U7
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pipelines.operators.compiled import compiled
from pipelines.operators.meeting import (
    CTI,
    DATA,
    DROPPED,
    EMPTY,
    END,
    LATE_CTI,
    MAIN,
    NONE,
    RELEASED,
    START,
    TIMER,
    Meeting,
    MeetingRow,
    advance,
    desk,
    fault,
    known_end,
    let_go,
    let_out,
    longer,
    melded,
    oldest,
    promise,
    put_back,
    refuse,
    take_in,
    taken_together,
    written,
)
from pipelines.operators.rows import NULL, Policy, PolicyError, Records, Rows, Shape
from pipelines.operators.scan import next_place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipelines.operators.rows import Described


@dataclass(frozen=True, kw_only=True)
class UnionPolicy(Policy):
    """What a union must know of its sides: the shape of the events of each, in their order.

    Raises:
        PolicyError: fewer than two sides.
    """

    shapes: tuple[Shape, ...]

    def __post_init__(self) -> None:
        if len(self.shapes) < 2:  # noqa: PLR2004 - one side is no union
            raise PolicyError("union", "at least two streams", len(self.shapes))

    def words(self, stream: Described) -> list[str]:  # noqa: ARG002 - as every policy is asked
        """Say when an event leaves, and in which order."""
        return [f"an event leaves {RELEASED} its start, in order of starts"]


@compiled
def _release(row: MeetingRow, points, width, s, ports, event, top, out, n):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Let go what the sides have promised, up to the first event whose end nobody knows, and promise it.

    Give the waiting event that starts first, what leaves, and how many rows that is. `points` says that no event of any
    side needs its end told.
    """
    until = oldest(ports, row.key, width)
    while until > s["cti"] and top >= 0 and event[top]["at"] < until:
        first, top = taken_together(event, top)
        x = first
        while x >= 0 and known_end(event[x], ports) != NULL:
            x = event[x]["less"]
        # One unknown end holds back all that start with it: a part of them would leave out of order (U3).
        if x >= 0:
            until = event[x]["at"]
            top = put_back(event, first, top)
            break
        x = first
        while x >= 0:
            # An event that turned out empty is let go where it stands, and comes to the top like any other.
            if event[x]["alive"]:
                if n + 2 > len(out):
                    out = longer(out, n, 2)
                n += _leave(row, x, event[x], points, s, ports, out[n])
                let_go(event, x)
            x = event[x]["less"]
    if until > s["cti"]:
        if n == len(out):
            out = longer(out, n, 1)
        n += promise(row, s, until, out[n])
        s["cti"] = until
    return top, out, n


@compiled
def _leave(row: MeetingRow, x, e, points, s, ports, out) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Let the event of row `x` leave, because of `row`; give how many rows that is."""
    timer = e["kind"] == TIMER
    end = NULL if timer or (points and e["kind"] == DATA) else known_end(e, ports)
    let_out(row, x, TIMER if timer else DATA, MAIN, NONE, next_place(s, row.arrival), e["at"], end, out)
    return 1


@compiled
def scan(rows: Rows, held, is_point, state, ports, event, opened, root, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Take the held rows (the first `held`) up and the others in; give what leaves and how many rows that is."""
    n, width, points = 0, len(is_point), True
    for point in is_point:
        points = points and point
    for i in range(len(rows.kind)):
        if rows.kind[i] > CTI:
            continue
        kind, k, p = np.int64(rows.kind[i]), rows.key[i], rows.port[i]
        time, end, name = rows.event_time[i], rows.event_end[i], rows.event_id[i]
        row = MeetingRow(i, kind, k, k * width + p, rows.arrival[i], rows.place[i], time, end, name, is_point[p])
        if i < held:
            take_in(row, event, opened)
            if kind != END:
                root[k] = melded(event, root[k], i)
            continue
        if n + 2 > len(out):
            out = longer(out, n, 2)
        port, start, moved = ports[row.side], opened[name], False
        if kind == CTI:
            moved = advance(row, port)
            if not moved:
                n += refuse(row, LATE_CTI, port, out[n])
        elif kind == TIMER:
            take_in(row, event, opened)
            # A timer is no event, so it may leave behind a promise; waiting would not make it earlier (U7).
            if time < state[k]["cti"]:
                n += _leave(row, i, event[i], points, state[k], ports, out[n])
                let_go(event, i)
            else:
                root[k] = melded(event, root[k], i)
        else:
            reason = fault(row, port["cti"], event[start]["at"] if start >= 0 else NULL)
            moved = kind == END and (reason == NONE or reason == EMPTY)
            if moved or reason == NONE:
                take_in(row, event, opened)
            if reason != NONE:
                n += refuse(row, reason, port, out[n])
            elif kind != END:
                root[k] = melded(event, root[k], i)
            # The start has left nowhere, so it needs a line of its own (S17).
            if moved and reason == EMPTY:
                let_go(event, start)
                time, end = rows.event_time[start], rows.event_end[start]
                let_out(row, start, START, DROPPED, reason, rows.place[start], time, end, out[n])
                n += 1
        if moved:
            root[k], out, n = _release(row, points, width, state[k], ports, event, root[k], out, n)
    return out, n


class Union(Meeting):
    """Let the events of all sides leave in the order of their starts, once the older of the sides' CTIs is past them.

    Safe on any division of the input into blocks, and for any interleaving of the sides: the set of events is the same.
    The edge: an open event (a start edge without its end) holds the output's time at its start, for a result leaves
    whole. Timers leave with the events.

    Laws: CTIs strictly increase; no event leaves with a start before the CTI already sent; every input leaves, is held
    or is in the ledger; the set of results is the same for every interleaving; cuts do not matter.

    Args:
        policy: the shapes of the sides.
        carry: part "state", the output's time of each scope, and part "ports", that of each side (scope-major).
        blind: not looked at; a union judges no silence.
        capacity: not looked at; what leaves in a block grows as it must.
    """

    name = "union"
    smallest = UnionPolicy(shapes=(Shape.POINT, Shape.POINT))

    def feed(self, rows: Rows, held: int = 0) -> Iterator[Records]:
        """Take in the held rows (the first `held`) and then new ones in order; give what leaves."""
        state, ports = self.records["state"], self.records["ports"]
        at_work = desk(len(state), len(rows.kind), self._events)
        is_point = np.array([shape is Shape.POINT for shape in self.policy.shapes])
        out, n = scan(rows, held, is_point, state, ports, *at_work, written())
        self.held = np.flatnonzero(at_work.event["alive"])
        if n:
            yield out[:n]
