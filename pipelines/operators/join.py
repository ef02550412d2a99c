"""Temporal join: pairs of events of two sides whose keys are equal and whose lifetimes overlap.

Source: Microsoft StreamInsight, *Joins*.

Rules of docs/semantics.md: J1, J2, J3, J4, J5, J6
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
    NOBODY,
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
from pipelines.operators.rows import NULL, Longs, Policy, PolicyError, Records, Rows, Shape
from pipelines.operators.scan import NOTHING_HELD, next_place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipelines.operators.rows import Described

SIDES = 2


@dataclass(frozen=True, kw_only=True)
class JoinPolicy(Policy):
    """What a person chose for one join: the columns that must be equal, none for every pair that overlaps.

    Raises:
        PolicyError: not two sides.
    """

    shapes: tuple[Shape, ...]
    on: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.shapes) != SIDES:
            raise PolicyError("join", "two streams", len(self.shapes))

    def warnings(self) -> tuple[str, ...]:
        """Warn of a join that pairs all that overlap."""
        return () if self.on else ("a join without `on` pairs every event with all that overlap it",)

    def words(self, stream: Described) -> list[str]:  # noqa: ARG002 - as every policy is asked
        """Say which events pair, and when a pair leaves."""
        equal = f" whose {', '.join(self.on)} {'is' if len(self.on) == 1 else 'are'} equal" if self.on else ""
        return [f"pairs events{equal} while both last; a pair leaves {RELEASED} its start"]


@compiled
def _overlap(one, other, ports) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Give the end of the overlap of two events; NULL while nobody knows it.

    An end that nobody knows lies not before the newest CTI of its side.
    """
    first, second = known_end(one, ports), known_end(other, ports)
    if first != NULL and second != NULL:
        return min(first, second)
    if first == NULL and second == NULL:
        return NULL
    if first == NULL:
        return second if second <= ports[one["side"]]["cti"] else NULL
    return first if first <= ports[other["side"]]["cti"] else NULL


@compiled
def _pairs_of(x, place, cti, event, ports, head, pairs, count):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Pair event `x` with those of the other side that are alive at its start; a count of -1 says an end is unknown.

    A pair is a number: left row times rows, plus right row. Of two that start together only the left one finds the
    other. Events whose time is over leave their chain, which begins at `place`.
    """
    e = event[x]
    start, side = e["at"], e["side"] % SIDES
    last, y = NOBODY, head[place]
    while y >= 0:
        other = event[y]
        following, end = other["next"], known_end(other, ports)
        # Whoever walks a chain takes out what is over, so each event costs that once, and no pass is made for it.
        if not other["alive"] or (end != NULL and end <= cti):
            if last < 0:
                head[place] = following
            else:
                event[last]["next"] = following
            y = following
            continue
        last = y
        if (other["at"] < start or (other["at"] == start and side == 0)) and (end == NULL or end > start):
            if _overlap(e, other, ports) == NULL:
                return pairs, -1
            if count == len(pairs):
                pairs = longer(pairs, count, 1)
            # One number a pair sorts by left row, then right row, without moving two columns (J4).
            pairs[count] = x * len(event) + y if side == 0 else y * len(event) + x
            count += 1
        y = following
    return pairs, count


@compiled
def _sort(pairs, count) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Put pairs in the order of their left rows, then of their right ones (a shell sort: they are few)."""
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, count):
            pair, at = pairs[i], i
            while at >= gap and pairs[at - gap] > pair:
                pairs[at] = pairs[at - gap]
                at -= gap
            pairs[at] = pair
        gap //= 3


@compiled
def _release(row: MeetingRow, s, ports, event, top, match, head, pairs, out, n):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Let results go that start before what both sides have promised, up to one whose end nobody knows.

    Give the waiting event that starts first, room for pairs, what leaves, and how many rows that is.
    """
    until = oldest(ports, row.key, SIDES)
    while until > s["cti"] and top >= 0 and event[top]["at"] < until:
        first, top = taken_together(event, top)
        x, count = first, 0
        while x >= 0 and count >= 0:
            if event[x]["alive"] and match[x] >= 0:
                place = match[x] * SIDES + 1 - event[x]["side"] % SIDES
                pairs, count = _pairs_of(x, place, s["cti"], event, ports, head, pairs, count)
            x = event[x]["less"]
        # One unknown end holds back all results of its start, for they leave in the order of their rows (J4).
        if count < 0:
            until = event[first]["at"]
            top = put_back(event, first, top)
            break
        _sort(pairs, count)
        if n + count > len(out):
            out = longer(out, n, count)
        for j in range(count):
            left, right = pairs[j] // len(event), pairs[j] % len(event)
            end = _overlap(event[left], event[right], ports)
            let_out(row, left, DATA, MAIN, NONE, next_place(s, row.arrival), event[first]["at"], end, out[n])
            out[n]["due_at"] = right
            n += 1
    if until > s["cti"]:
        if n == len(out):
            out = longer(out, n, 1)
        n += promise(row, s, until, out[n])
        s["cti"] = until
    return top, pairs, out, n


@compiled
def _forget(event, state, ports) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Let go the events whose time is over: nothing that comes can overlap them."""
    for x in range(len(event)):
        if event[x]["alive"] and event[x]["kind"] != END:
            end = known_end(event[x], ports)
            if end != NULL and end <= state[event[x]["side"] // SIDES]["cti"]:
                let_go(event, x)


@compiled
def scan(rows: Rows, held, is_point, state, ports, event, opened, root, match, head, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Take the held rows (the first `held`) up and the others in; give what leaves and how many rows that is.

    `match` numbers rows by scope and what they are matched by, -1 where that is null, which equals nothing; `head` is
    by match and side an event that can still be joined, the first of a chain, or NOBODY.
    """
    n, pairs = 0, np.empty(16, np.int64)
    for i in range(len(rows.kind)):
        if rows.kind[i] > CTI or rows.kind[i] == TIMER:
            continue
        kind, k, p = np.int64(rows.kind[i]), rows.key[i], rows.port[i]
        time, end, name = rows.event_time[i], rows.event_end[i], rows.event_id[i]
        row = MeetingRow(i, kind, k, k * SIDES + p, rows.arrival[i], rows.place[i], time, end, name, is_point[p])
        if n + 2 > len(out):
            out = longer(out, n, 2)
        port, start, moved, waits = ports[row.side], opened[name], False, False
        if i < held:
            take_in(row, event, opened)
            waits = kind != END
        elif kind == CTI:
            moved = advance(row, port)
            if not moved:
                n += refuse(row, LATE_CTI, port, out[n])
        else:
            reason = fault(row, port["cti"], event[start]["at"] if start >= 0 else NULL)
            moved = kind == END and (reason == NONE or reason == EMPTY)
            waits = kind != END and reason == NONE
            if moved or waits:
                take_in(row, event, opened)
            if reason != NONE:
                n += refuse(row, reason, port, out[n])
            # The start has left nowhere, so it needs a line of its own (S17).
            if moved and reason == EMPTY:
                let_go(event, start)
                time, end = rows.event_time[start], rows.event_end[start]
                let_out(row, start, START, DROPPED, reason, rows.place[start], time, end, out[n])
                n += 1
        if waits and match[i] >= 0:
            event[i]["next"] = head[match[i] * SIDES + p]
            # Newest first, as a chain without a tail must: pairs are sorted before they leave.
            head[match[i] * SIDES + p] = i
        # A held row that starts before the output's time has looked for its partners; it is kept to be found by others.
        if waits and (i >= held or time >= state[k]["cti"]):
            root[k] = melded(event, root[k], i)
        if moved:
            root[k], pairs, out, n = _release(row, state[k], ports, event, root[k], match, head, pairs, out, n)
    _forget(event, state, ports)
    return out, n


class Join(Meeting):
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
    smallest = JoinPolicy(shapes=(Shape.POINT, Shape.POINT))
    match: Longs = NOTHING_HELD
    """By row of the next block: dense id of scope and `on` columns, -1 for null; the engine lays it."""

    def feed(self, rows: Rows, held: int = 0) -> Iterator[Records]:
        """Take in the held rows (the first `held`) and then new ones in order; give what leaves."""
        state, ports = self.records["state"], self.records["ports"]
        at_work = desk(len(state), len(rows.kind), self._events)
        is_point = np.array([shape is Shape.POINT for shape in self.policy.shapes])
        head = np.full((int(self.match.max(initial=-1)) + 1) * SIDES, NOBODY, dtype=np.int64)
        out, n = scan(rows, held, is_point, state, ports, *at_work, self.match, head, written())
        self.held = np.flatnonzero(at_work.event["alive"])
        if n:
            yield out[:n]
