"""Temporal join: pairs of events of two sides whose keys are equal and whose lifetimes overlap.

Source: Microsoft StreamInsight, *Joins*; the project's semantics, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipelines.operators.compiled import compiled
from pipelines.operators.meeting import (
    CTI,
    DATA,
    EMPTY,
    END,
    LATE_CTI,
    MAIN,
    NOBODY,
    NONE,
    PARTS,
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
from pipelines.operators.rows import INFINITY, NULL, OUT_CAPACITY, Longs, PolicyError, Records, Rows, Shape
from pipelines.operators.scan import NO_BLIND, NOTHING_HELD, Blind, grown, place_main, taken_up

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SIDES = 2


@dataclass(frozen=True, kw_only=True)
class JoinPolicy:
    """What a person chose for one join: the columns that must be equal, none for every pair that overlaps.

    Raises:
        PolicyError: not two sides.
    """

    shapes: tuple[Shape, ...]
    on: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        if len(self.shapes) != SIDES:
            raise PolicyError("join", "two streams", len(self.shapes))

    def warnings(self) -> tuple[str, ...]:
        """Say what is allowed but costs more than it gives."""
        return () if self.on else ("a join without `on` pairs every event with all that overlap it",)


class Chains(NamedTuple):
    """The events that can still be joined, by what they are matched by and side."""

    match: Longs
    """By row: dense id of scope and `on` columns; -1 where one of these is null, which equals nothing."""
    head: Longs
    """By match and side: an event, or NOBODY."""
    following: Longs
    """By row: the next event of its chain."""


class Pairs(NamedTuple):
    """Results that start at one instant."""

    left: Longs
    right: Longs
    end: Longs


@compiled
def _chain(rows: Rows, i, chains: Chains) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    if chains.match[i] >= 0:
        place = chains.match[i] * SIDES + rows.port[i]
        chains.following[i] = chains.head[place]
        chains.head[place] = i


@compiled
def _pair_end(rows: Rows, clock: Clocks, desk: Desk, x, y) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Give the end of the overlap of two events; NULL while nobody knows it.

    An end that nobody knows lies not before the newest CTI of its side.
    """
    one, other = known_end(rows, clock.ports, desk, x), known_end(rows, clock.ports, desk, y)
    if one != NULL and other != NULL:
        return min(one, other)
    if one == NULL and other == NULL:
        return NULL
    end, open_event = (other, x) if one == NULL else (one, y)
    side = clock.ports[rows.key[open_event] * SIDES + rows.port[open_event]]
    return end if end <= side["cti"] else NULL


@compiled
def _longer(pairs: Pairs) -> Pairs:
    size = len(pairs.left)
    more = Pairs(np.empty(2 * size, np.int64), np.empty(2 * size, np.int64), np.empty(2 * size, np.int64))
    more.left[:size] = pairs.left
    more.right[:size] = pairs.right
    more.end[:size] = pairs.end
    return more


@compiled
def _pairs_of(rows: Rows, clock: Clocks, desk: Desk, chains: Chains, x, pairs: Pairs, count):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Pair event `x` with those of the other side that are alive at its start; a count of -1 says an end is unknown.

    Of two that start together only the left one finds the other. Events whose time is over leave their chain.
    """
    if chains.match[x] < 0:
        return pairs, count
    start, side = rows.event_time[x], rows.port[x]
    place = chains.match[x] * SIDES + (1 - side)
    last = NOBODY
    y = chains.head[place]
    while y >= 0:
        following = chains.following[y]
        time, end = rows.event_time[y], known_end(rows, clock.ports, desk, y)
        if not desk.event[y]["alive"] or (end != NULL and end <= clock.state[rows.key[x]]["cti"]):
            if last < 0:
                chains.head[place] = following
            else:
                chains.following[last] = following
            y = following
            continue
        last = y
        earlier = time < start or (time == start and side == 0)
        if earlier and (end == NULL or end > start):
            if count == len(pairs.left):
                pairs = _longer(pairs)
            overlap = _pair_end(rows, clock, desk, x, y)
            if overlap == NULL:
                return pairs, -1
            pairs.left[count] = x if side == 0 else y
            pairs.right[count] = y if side == 0 else x
            pairs.end[count] = overlap
            count += 1
        y = following
    return pairs, count


@compiled
def _first_together(rows: Rows, desk: Desk, k, group):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Take the waiting events that start first, all at one instant; give them and how many they are."""
    count = 0
    start = rows.event_time[desk.root[k]]
    while desk.root[k] >= 0 and rows.event_time[desk.root[k]] == start:
        if count == len(group):
            longer = np.empty(2 * count, np.int64)
            longer[:count] = group
            group = longer
        group[count] = take_first(rows, desk, k)
        count += 1
    return group, count


@compiled
def _write_pairs(rows: Rows, i, start, clock: Clocks, pairs: Pairs, count, out, n):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Let results leave that start together, in the order of their left rows, then of their right ones."""
    order = np.argsort(pairs.left[:count] * len(rows.kind) + pairs.right[:count])
    for j in order:
        place = place_main(clock.state, rows.key[i], rows.arrival[i])
        n = write(rows, i, pairs.left[j], MAIN, NONE, place, start, pairs.end[j], out, n)
        out[n - 1]["kind"] = DATA
        out[n - 1]["due_at"] = pairs.right[j]
    return n


@compiled
def _release(rows: Rows, i, clock: Clocks, desk: Desk, chains: Chains, out, n):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Let results go that start before what both sides have promised, up to one whose end nobody knows."""
    k = rows.key[i]
    until = oldest(clock.ports, k, SIDES)
    if until <= clock.state[k]["cti"]:
        return out, n
    pairs = Pairs(np.empty(16, np.int64), np.empty(16, np.int64), np.empty(16, np.int64))
    group = np.empty(16, np.int64)
    while desk.root[k] >= 0 and rows.event_time[desk.root[k]] < until:
        start = rows.event_time[desk.root[k]]
        group, together = _first_together(rows, desk, k, group)
        count = 0
        for j in range(together):
            if count >= 0 and desk.event[group[j]]["alive"]:
                pairs, count = _pairs_of(rows, clock, desk, chains, group[j], pairs, count)
        if count < 0:
            for j in range(together):
                wait(rows, desk, k, group[j])
            until = start
            break
        if count:
            out = room(out, n, count)
            n = _write_pairs(rows, i, start, clock, pairs, count, out, n)
    if until > clock.state[k]["cti"]:
        out = room(out, n, 1)
        n = promise(rows, i, clock.state, k, until, out, n)
    return out, n


@compiled
def _received(rows: Rows, i, clock: Clocks, desk: Desk, chains: Chains, out, n):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    kind, k = rows.kind[i], rows.key[i]
    port = clock.ports[k * SIDES + rows.port[i]]
    if kind == CTI:
        if not advance(rows, i, port):
            return out, refuse(rows, i, LATE_CTI, port, out, n)
        return _release(rows, i, clock, desk, chains, out, n)
    reason = fault(rows, i, port, desk)
    if reason == EMPTY and kind == END:
        n = vanish(rows, i, reason, port, desk, out, n)
        return _release(rows, i, clock, desk, chains, out, n)
    if reason != NONE:
        return out, refuse(rows, i, reason, port, out, n)
    take_in(rows, i, desk)
    if kind == END:
        return _release(rows, i, clock, desk, chains, out, n)
    _chain(rows, i, chains)
    wait(rows, desk, k, i)
    return out, n


@compiled
def _forget(rows: Rows, clock: Clocks, desk: Desk) -> None:
    """Let go the events whose time is over: nothing that comes can overlap them."""
    for i in range(len(rows.kind)):
        if desk.event[i]["alive"] and rows.kind[i] != END:
            end = known_end(rows, clock.ports, desk, i)
            if end != NULL and end <= clock.state[rows.key[i]]["cti"]:
                let_go(desk, i)


@compiled
def scan(rows: Rows, held, clock: Clocks, desk: Desk, chains: Chains, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Take the held rows up and the others in; give what leaves and how many rows that is."""
    n = 0
    for i in range(held):
        take_in(rows, i, desk)
        if rows.kind[i] != END:
            _chain(rows, i, chains)
            if rows.event_time[i] >= clock.state[rows.key[i]]["cti"]:
                wait(rows, desk, rows.key[i], i)
    for i in range(held, len(rows.kind)):
        if rows.kind[i] <= CTI and rows.kind[i] != TIMER:
            out = room(out, n, 2)
            out, n = _received(rows, i, clock, desk, chains, out, n)
    _forget(rows, clock, desk)
    return out, n


class Join:
    """Pair events of two sides that are alive together, once the older of the sides' CTIs is past the pair's start.

    A result lives where both lifetimes overlap. Safe on any division of the input into blocks, and for any interleaving
    of the sides: the set of results is the same. An event is kept until the output's time has passed its end. The edge:
    where the end of a result is not known, the output's time waits at its start. Timers are ignored.

    Laws: CTIs strictly increase; no event leaves with a start before the CTI already sent; no interval event leaves
    empty; the set of results is the same for every interleaving; cuts do not matter.

    Args:
        policy: the settings.
        carry: part "state", the output's time of each scope, and part "ports", that of each side (scope-major).
        blind: not looked at; a join judges no silence.
        capacity: not looked at; what leaves in a block grows as it must.
    """

    name = "join"
    version = 1
    parts = PARTS

    def __init__(
        self,
        policy: JoinPolicy,
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
        self.match = NOTHING_HELD
        """By row of the next block: dense id of scope and `on` columns, -1 for null; the engine lays it."""
        self._events = 1

    def grow(self, keys: int, events: int = 1) -> None:
        """Make room for `keys` scopes and event ids below `events`."""
        self.records["state"] = grown(self.records["state"], keys, fresh_state())
        self.records["ports"] = grown(self.records["ports"], keys * SIDES, fresh_port())
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
        matches = int(self.match.max(initial=-1)) + 1
        nobody = [np.full(size, NOBODY, dtype=np.int64) for size in (matches * SIDES, len(rows.kind))]
        out, n = scan(rows, held, clock, at_work, Chains(self.match, *nobody), written())
        self.held = np.flatnonzero(at_work.event["alive"])
        if n:
            yield out[:n]
