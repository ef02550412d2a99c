"""Tumbling and hopping windows over lifetimes, with count, sum, min, max and mean by group.

Source: Microsoft StreamInsight, *Hopping Windows* and *Tumbling Windows*; the project's semantics, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

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
    POINT,
    PORT,
    START,
    TIMER,
    Clocks,
    Desk,
    advance,
    desk,
    fault,
    let_go,
    refuse,
    room,
    take_in,
    vanish,
    write,
    written,
)
from pipelines.operators.rows import (
    INFINITY,
    MAX_TIME,
    MIN_TIME,
    NULL,
    OUT_CAPACITY,
    PolicyError,
    Reason,
    Records,
    Rows,
    Shape,
)
from pipelines.operators.scan import (
    NO_BLIND,
    NOTHING_HELD,
    NUMBERING,
    Blind,
    Part,
    Per,
    grown,
    place_main,
    taken_up,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from pipelines.operators.rows import Longs

    Floats = npt.NDArray[np.float64]

STATE = np.dtype(
    [("cti", "i8"), ("cti_arrival", "i8"), ("cti_place", "i8"), ("promised", "i8"), ("made", "i8"), *NUMBERING]
)
"""`cti` is the newest that came in, `promised` the newest that left; `made` counts the accumulators of the scope."""
FROM_SIDE = ("cti", "cti_arrival", "cti_place")
INSTANTS = frozenset({"cti", "cti_arrival", "promised", "last_arrival"})
MAX_WINDOWS = int(Reason.MAX_WINDOWS)
LONGEST = MAX_TIME - MIN_TIME
OVERFLOWN = -1
FIRST = 1024


class Measure(IntEnum):
    """What a window says of its events."""

    COUNT = 0
    """How many rows, or of a column how many values that are not null."""
    SUM = 1
    """The values added in stream order; null where no value was, or where whole numbers no longer fit 64 bits."""
    MIN = 2
    """The smallest; of floats NaN is the largest."""
    MAX = 3
    """The largest; of floats NaN is the largest."""
    MEAN = 4
    """Sum by count, a double."""


@dataclass(frozen=True, kw_only=True)
class WindowPolicy:
    """What a person chose for one stream of windows; times in ticks (µs).

    Window k is [k * hop, k * hop + size), counted from 1970-01-01 UTC.

    Raises:
        PolicyError: a size or hop below one tick, no measure, a bound below one.
    """

    shape: Shape
    size: int
    hop: int
    measures: tuple[str, ...]
    """By column of the result, in order: `name=count`, `name=sum(column)`."""
    group: tuple[str, ...] = ()
    max_windows: int = 10_000
    """Into how many windows at once one event may go; one that its row, or a CTI, would put into more is counted no
    further, and stands in the ledger."""

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        for name, value in (("size", self.size), ("hop", self.hop)):
            if not 0 < value <= LONGEST:
                raise PolicyError(name, "greater than zero", value)
        if not self.measures:
            raise PolicyError("measures", "at least one, such as {events: count}", "none")
        if self.max_windows < 1:
            raise PolicyError("max_windows", "at least 1", self.max_windows)

    def warnings(self) -> tuple[str, ...]:
        """Say what is allowed but costs more than it gives."""
        return ("between two windows there is a gap whose events are in none",) if self.hop > self.size else ()

    def parsed(self) -> tuple[tuple[str, Measure, str | None], ...]:
        """Give (column of the result, measure, column that it is of) for each measure."""
        return tuple(_parsed(text) for text in self.measures)


def _parsed(text: str) -> tuple[str, Measure, str | None]:
    name, _, told = text.partition("=")
    function, _, column = told.removesuffix(")").partition("(")
    return name, Measure[function.upper()], column or None


class Numbers(NamedTuple):
    """The policy as the compiled scan takes it."""

    size: int
    hop: int
    most: int


class Values(NamedTuple):
    """What is measured, by measure and row; whole numbers and instants stand in `whole`, floats in `real`."""

    group: Longs
    """By row: dense id of scope and group."""
    kind: Longs
    """By measure: the `Measure`."""
    is_real: npt.NDArray[np.bool_]
    """By measure: whether its values are floats."""
    whole: Longs
    real: Floats
    given: npt.NDArray[np.bool_]
    """Whether the value is not null."""


SUM = np.dtype([("scope", "i8"), ("group", "i8"), ("window", "i8"), ("age", "i8"), ("less", "i8"), ("more", "i8")])
"""One accumulator: scope (NOBODY once its window has left), group, window, how many of the scope were made before it,
and the two heaps of accumulators below it, by window and then by age."""


class Sums(NamedTuple):
    """Accumulators, one for each scope, group and window that has events; arrays of equal length."""

    of: Records
    """By accumulator: a `SUM`."""
    counted: Longs
    """By accumulator and measure: values taken in; -1 where whole numbers no longer fit."""
    whole: Longs
    real: Floats


class Book(NamedTuple):
    """Which windows and events of each scope are open."""

    root: Longs
    """By scope: the accumulator whose window comes first, or NOBODY."""
    opens: Longs
    """By scope: its first open event, or NOBODY."""
    last_open: Longs
    """By scope: the open event that came last."""
    following: Longs
    """By row: the next open event of its scope."""


class Work(NamedTuple):
    """What a scan of one block works with beside its rows and the accumulators."""

    numbers: Numbers
    values: Values
    clock: Clocks
    desk: Desk
    book: Book


def sums(length: int, measures: int) -> Sums:
    """Give room for `length` accumulators."""
    of = np.zeros(length, dtype=SUM)
    for name in ("scope", "less", "more"):
        of[name] = NOBODY
    laid = np.zeros((length, measures), dtype=np.int64)
    return Sums(of, laid, laid.copy(), np.zeros((length, measures)))


@compiled
def _longer(s: Sums) -> Sums:
    size, wide = s.counted.shape
    more = Sums(
        np.zeros(2 * size, s.of.dtype),
        np.zeros((2 * size, wide), np.int64),
        np.zeros((2 * size, wide), np.int64),
        np.zeros((2 * size, wide), np.float64),
    )
    for a in range(size):
        more.of[a] = s.of[a]
        for m in range(wide):
            more.counted[a, m] = s.counted[a, m]
            more.whole[a, m] = s.whole[a, m]
            more.real[a, m] = s.real[a, m]
    return more


@compiled
def _slot(slots, s: Sums, group, window) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Find the slot of an accumulator, or the free one it would take."""
    mask = len(slots) - 1
    at = (((group * 1_000_003 + window) % 2147483648) * 2654435761 >> 20) & mask
    while slots[at] >= 0 and (s.of[slots[at]]["group"] != group or s.of[slots[at]]["window"] != window):
        at = (at + 1) & mask
    return at


@compiled
def _slots(s: Sums, count):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Lay a power of two of slots, those of the accumulators taken; windows that have left are forgotten."""
    size = FIRST
    while size < 4 * len(s.of):
        size *= 2
    slots = np.full(size, NOBODY, np.int64)
    for a in range(count):
        if s.of[a]["scope"] >= 0:
            slots[_slot(slots, s, s.of[a]["group"], s.of[a]["window"])] = a
    return slots


@compiled
def _first_of(s: Sums, one, other) -> bool:  # type: ignore[no-untyped-def]  # noqa: ANN001
    return s.of[one]["window"] < s.of[other]["window"] or (s.of[one]["window"] == s.of[other]["window"] and one < other)


@compiled
def _melded(s: Sums, one, other) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Make one heap of two, the accumulator on top whose window comes first (a skew heap)."""
    if one < 0 or other < 0:
        return max(one, other)
    if _first_of(s, other, one):
        one, other = other, one
    top = one
    while True:
        rest = s.of[one]["more"]
        s.of[one]["more"] = s.of[one]["less"]
        if rest < 0:
            s.of[one]["less"] = other
            return top
        if _first_of(s, other, rest):
            rest, other = other, rest
        s.of[one]["less"] = rest
        one = rest


@compiled
def _accumulator(s: Sums, slots, count, state, book: Book, scope, group, window):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Give the accumulator of a window and group, a fresh one where there is none."""
    at = _slot(slots, s, group, window)
    if slots[at] >= 0:
        return s, slots, count, slots[at]
    if count == len(s.of):
        s = _longer(s)
        slots = _slots(s, count)
        at = _slot(slots, s, group, window)
    a = count
    s.of[a]["scope"] = scope
    s.of[a]["group"] = group
    s.of[a]["window"] = window
    s.of[a]["age"] = state[scope]["made"]
    state[scope]["made"] += 1
    s.of[a]["less"] = NOBODY
    s.of[a]["more"] = NOBODY
    slots[at] = a
    book.root[scope] = _melded(s, book.root[scope], a)
    return s, slots, count + 1, a


@compiled
def _fits(one, other) -> bool:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Say whether a sum of two whole numbers fits 64 bits."""
    if other > 0:
        return one <= 9223372036854775807 - other
    return one >= -9223372036854775807 - 1 - other


@compiled
def _add_whole(s: Sums, a, m, kind, value) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    if s.counted[a, m] == OVERFLOWN:
        return
    if s.counted[a, m] == 0:
        s.whole[a, m] = value
    elif kind == Measure.MIN:
        s.whole[a, m] = min(s.whole[a, m], value)
    elif kind == Measure.MAX:
        s.whole[a, m] = max(s.whole[a, m], value)
    elif _fits(s.whole[a, m], value):
        s.whole[a, m] += value
    else:
        s.counted[a, m] = OVERFLOWN
        return
    s.counted[a, m] += 1


@compiled
def _add_real(s: Sums, a, m, kind, value) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    known = s.real[a, m]
    if s.counted[a, m] == 0:
        s.real[a, m] = value
    elif kind == Measure.MIN:
        if np.isnan(known) or value < known:
            s.real[a, m] = value
    elif kind == Measure.MAX:
        if np.isnan(value) or value > known:
            s.real[a, m] = value
    else:
        s.real[a, m] += value
    s.counted[a, m] += 1


@compiled
def _add(v: Values, s: Sums, a, i) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Take the values of row `i` into an accumulator."""
    for m in range(len(v.kind)):
        if not v.given[m, i]:
            continue
        if v.kind[m] == Measure.COUNT:
            s.counted[a, m] += 1
        elif v.is_real[m]:
            _add_real(s, a, m, v.kind[m], v.real[m, i])
        else:
            _add_whole(s, a, m, v.kind[m], v.whole[m, i])


@compiled
def _first_window(p: Numbers, instant) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Give the first window whose end lies past an instant."""
    return (instant - p.size) // p.hop + 1


@compiled
def _last_window(p: Numbers, end) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Give the last window that begins before an instant."""
    return (end - 1) // p.hop


@compiled
def _enter(rows: Rows, v: Values, s: Sums, slots, count, state, book: Book, x, first, last):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Take event `x` into the windows from `first` to `last`, in which its lifetime is."""
    scope, group = rows.key[x], v.group[x]
    for window in range(first, last + 1):
        s, slots, count, a = _accumulator(s, slots, count, state, book, scope, group, window)
        _add(v, s, a, x)
    return s, slots, count


@compiled
def _known_span(rows: Rows, s: Sums, count, state, desk: Desk, book: Book, k, hop):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Give the first start of a scope's open events, and the last instant that is known of it; forget closed events."""
    earliest, latest, last = INFINITY, NULL, NOBODY
    x = book.opens[k]
    while x >= 0:
        if desk.event[x]["alive"]:
            earliest, latest = min(earliest, rows.event_time[x]), max(latest, rows.event_time[x])
            last = x
        elif last >= 0:
            book.following[last] = book.following[x]
        else:
            book.opens[k] = book.following[x]
        x = book.following[x]
    book.last_open[k] = last
    if state[k]["cti"] == INFINITY:
        for a in range(count):
            if s.of[a]["scope"] == k:
                latest = max(latest, s.of[a]["window"] * hop)
    return earliest, latest


@compiled
def _set_aside(w: Work, rows: Rows, i, s: Sums, count, before, out, n):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Write open events for the ledger, and forget them, that a CTI puts into more windows than an event may be in."""
    p, state, desk, book, k = w.numbers, w.clock.state, w.desk, w.book, rows.key[i]
    cti = state[k]["cti"]
    _, latest = _known_span(rows, s, count, state, desk, book, k, p.hop)
    last = latest // p.hop if cti == INFINITY else (cti - p.size) // p.hop
    x = book.opens[k]
    while x >= 0:
        if last - _first_window(p, max(rows.event_time[x], before)) >= p.most:
            desk.opened[rows.event_id[x]] = NOBODY
            let_go(desk, x)
            out = room(out, n, 1)
            time, end = rows.event_time[x], rows.event_end[x]
            n = write(rows, i, x, DROPPED, MAX_WINDOWS, rows.place[x], time, end, out, n)
        x = book.following[x]
    return out, n


@compiled
def _enter_open(w: Work, rows: Rows, s: Sums, slots, count, k, before):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Take the events that are open into every window that a CTI closes: none of them can end before it.

    At infinity, where they never end, they are in the windows up to the last instant that is known of their scope.
    """
    p, state, book = w.numbers, w.clock.state, w.book
    cti = state[k]["cti"]
    earliest, latest = _known_span(rows, s, count, state, w.desk, book, k, p.hop)
    if earliest == INFINITY:
        return s, slots, count
    window = _first_window(p, max(earliest, before))
    while (window * p.hop <= latest) if cti == INFINITY else (window * p.hop + p.size <= cti):
        x = book.opens[k]
        while x >= 0:
            if rows.event_time[x] < window * p.hop + p.size:
                s, slots, count = _enter(rows, w.values, s, slots, count, state, book, x, window, window)
            x = book.following[x]
        window += 1
    return s, slots, count


@compiled
def _leave(rows: Rows, i, state, a, kind, time, end, out, n):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Write a window's row, of accumulator `a`, or a CTI, of none."""
    out = room(out, n, 1)
    place = place_main(state, rows.key[i], rows.arrival[i])
    n = write(rows, i, -1, MAIN, NONE, place, time, end, out, n)
    out[n - 1]["kind"] = kind
    out[n - 1]["due_at"] = a
    return out, n


@compiled
def _close(p: Numbers, rows: Rows, i, s: Sums, state, book: Book, out, n):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Let the windows of a scope leave that its newest CTI has closed, and promise what can no longer change."""
    k = rows.key[i]
    cti = state[k]["cti"]
    while book.root[k] >= 0 and (cti == INFINITY or s.of[book.root[k]]["window"] * p.hop + p.size <= cti):
        a = book.root[k]
        book.root[k] = _melded(s, s.of[a]["less"], s.of[a]["more"])
        start = s.of[a]["window"] * p.hop
        time, end = max(start, MIN_TIME), start + p.size if start + p.size <= MAX_TIME else INFINITY
        out, n = _leave(rows, i, state, a, DATA, time, end, out, n)
        s.of[a]["scope"] = NOBODY
    promised = cti if cti == INFINITY else max(MIN_TIME, min(cti, _first_window(p, cti) * p.hop))
    if promised > state[k]["promised"]:
        out, n = _leave(rows, i, state, NULL, CTI, promised, NULL, out, n)
        state[k]["promised"] = promised
    return out, n


@compiled
def _open(rows: Rows, i, desk: Desk, book: Book) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Put a start edge behind the open events of its scope."""
    k = rows.key[i]
    take_in(rows, i, desk)
    if book.opens[k] < 0:
        book.opens[k] = i
    else:
        book.following[book.last_open[k]] = i
    book.last_open[k] = i


@compiled
def _promised(w: Work, rows: Rows, i, s: Sums, slots, count, out, n):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Take in a CTI: what it closes leaves, with the events that are still open in it."""
    k = rows.key[i]
    side = w.clock.ports[k]
    before = side["cti"]
    if not advance(rows, i, side):
        return s, slots, count, out, refuse(rows, i, LATE_CTI, side, out, n)
    w.clock.state[k]["cti"] = side["cti"]
    if w.book.opens[k] >= 0:
        out, n = _set_aside(w, rows, i, s, count, before, out, n)
        s, slots, count = _enter_open(w, rows, s, slots, count, k, before)
    out, n = _close(w.numbers, rows, i, s, w.clock.state, w.book, out, n)
    return s, slots, count, out, n


@compiled
def _received(w: Work, rows: Rows, i, s: Sums, slots, count, out, n):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Take in a row that is or ends an event: a start edge waits, all else enters the windows that it is in."""
    kind, side, desk = rows.kind[i], w.clock.ports[rows.key[i]], w.desk
    reason = fault(rows, i, side, desk)
    if reason == NONE and kind == START:
        _open(rows, i, desk, w.book)
        return s, slots, count, n
    x = desk.opened[rows.event_id[i]] if kind == END else i
    first, last = 0, -1
    if reason == NONE:
        end = rows.event_time[i] + 1 if kind != END and desk.shapes[0] == POINT else rows.event_end[i]
        first = _first_window(w.numbers, max(rows.event_time[x], side["cti"]))
        last = _last_window(w.numbers, end)
        reason = MAX_WINDOWS if last - first >= w.numbers.most else NONE
    if kind == END and (reason == EMPTY or reason == MAX_WINDOWS):
        return s, slots, count, vanish(rows, i, reason, side, desk, out, n)
    if reason != NONE:
        return s, slots, count, refuse(rows, i, reason, side, out, n)
    s, slots, count = _enter(rows, w.values, s, slots, count, w.clock.state, w.book, x, first, last)
    if kind == END:
        take_in(rows, i, desk)
        let_go(desk, x)
    return s, slots, count, n


@compiled
def scan(w: Work, rows: Rows, held, s: Sums, count, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Take in a block; give the accumulators and how many they are, what leaves, and how many rows that is."""
    slots = _slots(s, count)
    for a in range(count):
        scope = s.of[a]["scope"]
        w.book.root[scope] = _melded(s, w.book.root[scope], a)
    for i in range(held):
        _open(rows, i, w.desk, w.book)
    n = 0
    for i in range(held, len(rows.kind)):
        if rows.kind[i] > CTI or rows.kind[i] == TIMER:
            continue
        out = room(out, n, 2)
        if rows.kind[i] == CTI:
            s, slots, count, out, n = _promised(w, rows, i, s, slots, count, out, n)
        else:
            s, slots, count, n = _received(w, rows, i, s, slots, count, out, n)
    return s, count, out, n


def fresh_state() -> Records:
    """Give the time of a scope that has not been seen."""
    state = np.zeros(1, dtype=STATE)
    for name in ("cti", "cti_arrival", "promised", "last_arrival"):
        state[name] = NULL
    return state


def nothing_measured(rows: int, measures: int) -> Values:
    """Give values of a block in which every row is of one group and nothing is given."""
    zero = np.zeros((measures, rows), dtype=np.int64)
    flags = np.zeros((measures, rows), dtype=np.bool_)
    kinds = np.zeros(measures, dtype=np.int64)
    return Values(np.zeros(rows, dtype=np.int64), kinds, kinds.astype(np.bool_), zero, zero.astype(np.float64), flags)


class Window:
    """Say of every window what events are alive in it, once the CTI is at or past its end.

    An event is in every window that its lifetime overlaps; a window without events gives no row. Each window keeps one
    accumulator a group and adds in stream order, so floats have the same bytes however the input is cut. The edge: an
    open event (a start edge without its end) is in every window that a CTI closes, and enters the others when it ends.
    Timers are ignored.

    Laws: CTIs strictly increase; no event leaves with a start before the CTI already sent; every event is in each
    window that it overlaps exactly once, or is in the ledger; cuts do not matter.

    Args:
        policy: the settings.
        carry: part "state", the time of each scope.
        blind: not looked at; windows judge no silence.
        capacity: not looked at; what leaves in a block grows as it must.
    """

    name = "window"
    version = 1
    parts = (Part("state", Per.KEY, STATE, INSTANTS),)

    def __init__(
        self,
        policy: WindowPolicy,
        carry: Mapping[str, Records] = MappingProxyType({}),
        blind: Blind = NO_BLIND,  # noqa: ARG002 - every operator is built alike
        capacity: int = OUT_CAPACITY,  # noqa: ARG002 - every operator is built alike
    ) -> None:
        """Take up the carry; the accumulators are for `resume`."""
        self.policy = policy
        self.records = {"state": taken_up(carry, "state", fresh_state())}
        self.held = NOTHING_HELD
        self.sums, self.count = sums(FIRST, len(policy.measures)), 0
        self.values: Values | None = None
        """What is measured of the next block; the engine lays it."""
        self._events = 1

    def resume(self, carried: Sums) -> None:
        """Take up accumulators, of each scope in the order of their age."""
        self.sums, self.count = carried, len(carried.of)

    def grow(self, keys: int, events: int = 1) -> None:
        """Make room for `keys` scopes and event ids below `events`."""
        self.records["state"] = grown(self.records["state"], keys, fresh_state())
        self._events = max(1, events)

    def listen(self, blind: Blind) -> None:
        """Take no notice: silence is not judged here."""

    def next_due(self) -> int:
        """Say that silence alone makes nothing leave."""
        return INFINITY

    def timers(self, since: int, until: int, begun: int) -> float:  # noqa: ARG002 - as every operator is asked
        """Say that no timer is made here."""
        return 0.0

    def open_windows(self) -> Longs:
        """Give the accumulators whose windows have not left, in the order in which they were made."""
        return np.flatnonzero(self.sums.of["scope"][: self.count] >= 0)

    def feed(self, rows: Rows, held: int = 0) -> Iterator[Records]:
        """Take in the held rows (the first `held`) and then new ones in order; give what leaves."""
        p, state = self.policy, self.records["state"]
        values = self.values or nothing_measured(len(rows.kind), len(p.measures))
        at_work = desk([int(p.shape)], len(state), len(rows.kind), self._events)
        side = np.zeros(len(state), dtype=PORT)
        for name in FROM_SIDE:
            side[name] = state[name]
        nobody = [
            np.full(size, NOBODY, dtype=np.int64) for size in (len(state), len(state), len(state), len(rows.kind))
        ]
        work = Work(Numbers(p.size, p.hop, p.max_windows), values, Clocks(state, side), at_work, Book(*nobody))
        self.sums, self.count, out, n = scan(work, rows, held, *self._packed(), written())
        for name in FROM_SIDE:
            state[name] = side[name]
        self.held = np.flatnonzero(at_work.event["alive"])
        if n:
            yield out[:n]

    def _packed(self) -> tuple[Sums, int]:
        """Give the accumulators of open windows alone, with room for more."""
        open_windows = self.open_windows()
        packed = sums(max(FIRST, 2 * len(open_windows)), len(self.policy.measures))
        for column, known in zip(packed, self.sums, strict=True):
            column[: len(open_windows)] = known[open_windows]
        for links in ("less", "more"):
            packed.of[links] = NOBODY
        return packed, len(open_windows)
