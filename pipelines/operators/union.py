"""Union: the events of several streams as one, under the older of their promises.

Source: Microsoft StreamInsight, *Union*; the project's semantics, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from pipelines.operators.compiled import compiled
from pipelines.operators.meeting import (
    CTI,
    DATA,
    EMPTY,
    END,
    LATE_CTI,
    MAIN,
    NONE,
    PARTS,
    POINT,
    TIMER,
    Clocks,
    Desk,
    advance,
    desk,
    fault,
    fresh_port,
    fresh_state,
    known_end,
    let_go,
    oldest,
    promise,
    refuse,
    room,
    take_first,
    take_in,
    vanish,
    wait,
    write,
    written,
)
from pipelines.operators.rows import INFINITY, NULL, OUT_CAPACITY, PolicyError, Records, Rows, Shape
from pipelines.operators.scan import NO_BLIND, NOTHING_HELD, Blind, grown, place_main, taken_up

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True, kw_only=True)
class UnionPolicy:
    """What a union must know of its sides: the shape of the events of each, in their order.

    Raises:
        PolicyError: fewer than two sides.
    """

    shapes: tuple[Shape, ...]

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        if len(self.shapes) < 2:  # noqa: PLR2004 - one side is no union
            raise PolicyError("union", "at least two streams", len(self.shapes))

    def warnings(self) -> tuple[str, ...]:
        """Say what is allowed but costs more than it gives."""
        return ()


@compiled
def _leave(rows: Rows, i, x, clock: Clocks, desk: Desk, out, n):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Let the event of row `x` leave, because of row `i`."""
    place = place_main(clock.state, rows.key[i], rows.arrival[i])
    timer = rows.kind[x] == TIMER
    whole = timer or (rows.kind[x] == DATA and desk.shapes[rows.port[x]] == POINT and _all_points(desk))
    n = write(
        rows,
        i,
        x,
        MAIN,
        NONE,
        place,
        rows.event_time[x],
        NULL if whole else known_end(rows, clock.ports, desk, x),
        out,
        n,
    )
    out[n - 1]["kind"] = TIMER if timer else DATA
    let_go(desk, x)
    return n


@compiled
def _all_points(desk: Desk) -> bool:
    return (desk.shapes == POINT).all()


@compiled
def _release(rows: Rows, i, clock: Clocks, desk: Desk, out, n):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Let go what the sides have promised, up to the first event whose end nobody knows, and promise it."""
    k, width = rows.key[i], len(desk.shapes)
    until = oldest(clock.ports, k, width)
    if until <= clock.state[k]["cti"]:
        return out, n
    until = _held_back(rows, clock, desk, k, until)
    while desk.root[k] >= 0 and rows.event_time[desk.root[k]] < until:
        x = take_first(rows, desk, k)
        out = room(out, n, 1)
        if desk.event[x]["alive"]:
            n = _leave(rows, i, x, clock, desk, out, n)
    if until > clock.state[k]["cti"]:
        out = room(out, n, 1)
        n = promise(rows, i, clock.state, k, until, out, n)
    return out, n


@compiled
def _held_back(rows: Rows, clock: Clocks, desk: Desk, k, until):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Find the start of the first waiting event of a scope whose end nobody knows, if that is before `until`."""
    pending = np.empty(16, np.int64)
    count = 0
    if desk.root[k] >= 0:
        pending[0] = desk.root[k]
        count = 1
    while count > 0:
        count -= 1
        x = pending[count]
        if rows.event_time[x] >= until:
            continue
        if known_end(rows, clock.ports, desk, x) == NULL:
            until = rows.event_time[x]
            continue
        if count + 2 > len(pending):
            longer = np.empty(2 * len(pending), np.int64)
            longer[:count] = pending[:count]
            pending = longer
        for below in (desk.event[x]["less"], desk.event[x]["more"]):
            if below >= 0:
                pending[count] = below
                count += 1
    return until


@compiled
def _received(rows: Rows, i, clock: Clocks, desk: Desk, out, n):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, PLR0911 - a kind each
    kind, k = rows.kind[i], rows.key[i]
    port = clock.ports[k * len(desk.shapes) + rows.port[i]]
    if kind == CTI:
        if not advance(rows, i, port):
            return out, refuse(rows, i, LATE_CTI, port, out, n)
        return _release(rows, i, clock, desk, out, n)
    if kind == TIMER:
        take_in(rows, i, desk)
        if rows.event_time[i] < clock.state[k]["cti"]:
            return out, _leave(rows, i, i, clock, desk, out, n)
        wait(rows, desk, k, i)
        return out, n
    reason = fault(rows, i, port, desk)
    if reason == EMPTY and kind == END:
        n = vanish(rows, i, reason, port, desk, out, n)
        return _release(rows, i, clock, desk, out, n)
    if reason != NONE:
        return out, refuse(rows, i, reason, port, out, n)
    take_in(rows, i, desk)
    if kind == END:
        return _release(rows, i, clock, desk, out, n)
    wait(rows, desk, k, i)
    return out, n


@compiled
def scan(rows: Rows, held, clock: Clocks, desk: Desk, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Take the held rows up and the others in; give what leaves and how many rows that is."""
    n = 0
    for i in range(held):
        take_in(rows, i, desk)
        if rows.kind[i] != END:
            wait(rows, desk, rows.key[i], i)
    for i in range(held, len(rows.kind)):
        if rows.kind[i] <= CTI:
            out = room(out, n, 2)
            out, n = _received(rows, i, clock, desk, out, n)
    return out, n


class Union:
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
    version = 1
    parts = PARTS

    def __init__(
        self,
        policy: UnionPolicy,
        carry: Mapping[str, Records] = MappingProxyType({}),
        blind: Blind = NO_BLIND,  # noqa: ARG002 - every operator is built alike
        capacity: int = OUT_CAPACITY,  # noqa: ARG002 - every operator is built alike
    ) -> None:
        """Take up the carry."""
        self.policy = policy
        self.records = {
            "state": taken_up(carry, "state", fresh_state()),
            "ports": taken_up(carry, "ports", fresh_port()),
        }
        self.held = NOTHING_HELD
        self._events = 1

    def grow(self, keys: int, events: int = 1) -> None:
        """Make room for `keys` scopes and event ids below `events`."""
        self.records["state"] = grown(self.records["state"], keys, fresh_state())
        self.records["ports"] = grown(self.records["ports"], keys * len(self.policy.shapes), fresh_port())
        self._events = max(1, events)

    def listen(self, blind: Blind) -> None:
        """Take no notice: silence is not judged here."""

    def next_due(self) -> int:
        """Say that silence alone makes nothing leave."""
        return INFINITY

    def timers(self, since: int, until: int, begun: int) -> float:  # noqa: ARG002 - as every operator is asked
        """Say that no timer is made here."""
        return 0.0

    def feed(self, rows: Rows, held: int = 0) -> Iterator[Records]:
        """Take in the held rows (the first `held`) and then new ones in order; give what leaves."""
        shapes = [int(shape) for shape in self.policy.shapes]
        at_work = desk(shapes, len(self.records["state"]), len(rows.kind), self._events)
        clock = Clocks(self.records["state"], self.records["ports"])
        out, n = scan(rows, held, clock, at_work, written())
        self.held = np.flatnonzero(at_work.event["alive"])
        if n:
            yield out[:n]
