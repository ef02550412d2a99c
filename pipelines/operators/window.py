"""Tumbling and hopping windows over lifetimes, with count, sum, min, max and mean by group.

Source: Microsoft StreamInsight, *Hopping Windows* and *Tumbling Windows*.

Rules of docs/semantics.md: W1, W2, W3, W4, W5, W6, W7, W8, W9
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
    PORT,
    START,
    TIMER,
    MeetingRow,
    advance,
    desk,
    fault,
    let_go,
    let_out,
    longer,
    melded,
    refuse,
    take_in,
    written,
)
from pipelines.operators.plain_words import spoken
from pipelines.operators.rows import (
    INFINITY,
    MAX_TIME,
    MIN_TIME,
    NULL,
    OUT_CAPACITY,
    Policy,
    PolicyError,
    Reason,
    Records,
    Rows,
    Shape,
)
from pipelines.operators.scan import (
    NO_BLIND,
    NUMBERING,
    Blind,
    CarryPart,
    Per,
    Timeless,
    grow,
    next_place,
    taken_up,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from pipelines.operators.rows import Described, Longs

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
class WindowPolicy(Policy):
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
        for name, value in (("size", self.size), ("hop", self.hop)):
            if not 0 < value <= LONGEST:
                raise PolicyError(name, "greater than zero", value)
        if not self.measures:
            raise PolicyError("measures", "at least one, such as {events: count}", "none")
        if self.max_windows < 1:
            raise PolicyError("max_windows", "at least 1", self.max_windows)

    def warnings(self) -> tuple[str, ...]:
        """Warn of a hop that is longer than the windows."""
        return ("between two windows there is a gap whose events are in none",) if self.hop > self.size else ()

    def parsed(self) -> tuple[tuple[str, Measure, str | None], ...]:
        """Give (column of the result, measure, column that it is of) for each measure."""
        return tuple(_parsed(text) for text in self.measures)

    def words(self, stream: Described) -> list[str]:  # noqa: ARG002 - as every policy is asked
        """Say how long windows are, when the row of one leaves, and how each measure is reckoned."""
        hop = "" if self.hop == self.size else f", a new one each {spoken(self.hop)}"
        group = f" for each {', '.join(self.group)}" if self.group else ""
        leaves = f"a window's row{group} leaves with the first promise at or past its end"
        measures = ", ".join(text.replace("=", " is ", 1) for text in self.measures)
        return [f"windows of {spoken(self.size)}{hop}, counted from 1970 UTC; {leaves}", measures]


def _parsed(text: str) -> tuple[str, Measure, str | None]:
    name, _, told = text.partition("=")
    function, _, column = told.removesuffix(")").partition("(")
    return name, Measure[function.upper()], column or None


class WindowNumbers(NamedTuple):
    """The policy as the compiled scan takes it."""

    size: int
    hop: int
    most: int
    point: bool
    """Whether events are points."""


class Measured(NamedTuple):
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


SUM = np.dtype([("scope", "i8"), ("group", "i8"), ("at", "i8"), ("age", "i8"), ("less", "i8"), ("more", "i8")])
"""One accumulator: scope (NOBODY once its window has left), group, number of its window, how many of the scope were
made before it, and the two heaps of accumulators below it, by window and then by age."""
VALUE = np.dtype([("counted", "i8"), ("whole", "i8"), ("real", "f8")])
"""What an accumulator knows of one measure: values taken in, -1 where whole numbers no longer fit, and what they make,
as its measure counts in whole numbers or in floats."""
BOOK = np.dtype([("root", "i8"), ("opens", "i8"), ("last_open", "i8")])
"""Of one scope the accumulator whose window comes first, the first open event, and the one that came last; or NOBODY.
Open events are chained by `next`."""


class Sums(NamedTuple):
    """Accumulators, one for each scope, group and window that has events; arrays of equal length."""

    of: Records
    """By accumulator: a `SUM`."""
    counted: Longs
    """By accumulator and measure, as the other two: fields of a `VALUE`."""
    whole: Longs
    real: Floats


def sums(length: int, measures: int) -> Sums:
    """Give room for `length` accumulators."""
    return _viewed(*_room(length, measures))


def _room(length: int, measures: int) -> tuple[Records, Records]:
    of = np.zeros(length, dtype=SUM)
    for name in ("scope", "less", "more"):
        of[name] = NOBODY
    return of, np.zeros((length, measures), dtype=VALUE)


def _viewed(of: Records, value: Records) -> Sums:
    return Sums(of, value["counted"], value["whole"], value["real"])


@compiled
def _wider(of, value):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - Numba infers records
    """Give accumulators with room for as many again."""
    size, wide = value.shape
    more, further = np.empty(2 * size, of.dtype), np.zeros((2 * size, wide), value.dtype)
    for a in range(size):
        more[a] = of[a]
        for m in range(wide):
            further[a, m] = value[a, m]
    return more, further


@compiled
def _hashed(group, window) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001
    # Groups and windows are small numbers in a row, which unscattered would fill one run of slots. The remainder keeps
    # Knuth's multiplier within 64 bits.
    return ((group * 1_000_003 + window) % 2147483648) * 2654435761 >> 20


@compiled
def _slot(slots, of, group, window) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Find the slot of an accumulator, or the free one it would take."""
    mask = len(slots) - 1
    at = _hashed(group, window) & mask
    # At most a quarter of the slots are taken, so walks are short.
    while slots[at] >= 0 and (of[slots[at]]["group"] != group or of[slots[at]]["at"] != window):
        at = (at + 1) & mask
    return at


@compiled
def _slots(of, count):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Lay a power of two of slots, those of the accumulators taken; windows that have left are forgotten."""
    size = FIRST
    while size < 4 * len(of):
        size *= 2
    slots = np.empty(size, np.int64)
    for at in range(size):
        slots[at] = NOBODY
    for a in range(count):
        if of[a]["scope"] >= 0:
            slots[_slot(slots, of, of[a]["group"], of[a]["at"])] = a
    return slots


@compiled
def _accumulator(of, slots, count, s, b, scope, group, window):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Give the accumulator of a window and group, a fresh one where there is none, for which there is room."""
    at = _slot(slots, of, group, window)
    if slots[at] >= 0:
        return slots[at], count
    slots[at] = count
    fresh = of[count]
    fresh["scope"] = scope
    fresh["group"] = group
    fresh["at"] = window
    fresh["age"] = s["made"]
    fresh["less"] = NOBODY
    fresh["more"] = NOBODY
    s["made"] += 1
    b["root"] = melded(of, b["root"], count)
    return count, count + 1


@compiled
def _fits(one, other) -> bool:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Say whether a sum of two whole numbers fits 64 bits."""
    # Asked before adding: compiled int64 wraps without a word.
    if other > 0:
        return one <= 9223372036854775807 - other
    return one >= -9223372036854775807 - 1 - other


@compiled
def _add(known, kind, is_real, whole, real) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Take a value into what is known of a measure."""
    if kind == Measure.COUNT:
        known["counted"] += 1
    elif known["counted"] == 0:
        known["counted"] = 1
        known["whole"] = whole
        known["real"] = real
    elif not is_real and known["counted"] != OVERFLOWN:
        known["counted"] += 1
        if kind == Measure.MIN:
            known["whole"] = min(known["whole"], whole)
        elif kind == Measure.MAX:
            known["whole"] = max(known["whole"], whole)
        elif _fits(known["whole"], whole):
            known["whole"] += whole
        else:
            known["counted"] = OVERFLOWN
    elif is_real:
        known["counted"] += 1
        if kind == Measure.MIN:
            # NaN is the largest value, as in Spark: it is the smallest only where nothing else is.
            if np.isnan(known["real"]) or real < known["real"]:
                known["real"] = real
        elif kind == Measure.MAX:
            if np.isnan(real) or real > known["real"]:
                known["real"] = real
        else:
            known["real"] += real


@compiled
def _first_window(p: WindowNumbers, instant) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Give the first window whose end lies past an instant."""
    return (instant - p.size) // p.hop + 1


@compiled
def _open(b, event, x) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Put a start edge behind the open events of its scope."""
    if b["opens"] < 0:
        b["opens"] = x
    else:
        event[b["last_open"]]["next"] = x
    b["last_open"] = x


@compiled
def _known_span(p: WindowNumbers, k, cti, b, event, of, count):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Give the first start of a scope's open events, and the last instant that is known of it; forget closed events."""
    earliest, latest, last = INFINITY, NULL, NOBODY
    x = b["opens"]
    while x >= 0:
        # Closed events leave the chain here, by whoever walks it: no end edge has to find its neighbours.
        if event[x]["alive"]:
            earliest, latest = min(earliest, event[x]["at"]), max(latest, event[x]["at"])
            last = x
        elif last >= 0:
            event[last]["next"] = event[x]["next"]
        else:
            b["opens"] = event[x]["next"]
        x = event[x]["next"]
    b["last_open"] = last
    if cti == INFINITY:
        for a in range(count):
            if of[a]["scope"] == k:
                latest = max(latest, of[a]["at"] * p.hop)
    return earliest, latest


@compiled
def _set_aside(p: WindowNumbers, row: MeetingRow, rows: Rows, before, b, event, opened, of, count, out, n):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Write open events for the ledger, and forget them, that a CTI puts into more windows than an event may be in."""
    _, latest = _known_span(p, row.key, row.time, b, event, of, count)
    last = latest // p.hop if row.time == INFINITY else (row.time - p.size) // p.hop
    x = b["opens"]
    while x >= 0:
        if last - _first_window(p, max(event[x]["at"], before)) >= p.most:
            opened[rows.event_id[x]] = NOBODY
            let_go(event, x)
            if n + 2 > len(out):
                out = longer(out, n, 2)
            let_out(row, x, START, DROPPED, MAX_WINDOWS, rows.place[x], rows.event_time[x], rows.event_end[x], out[n])
            n += 1
        x = event[x]["next"]
    return out, n


@compiled
def _enter_open(p: WindowNumbers, row: MeetingRow, v: Measured, before, s, b, event, of, value, slots, count):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Take the events that are open into every window that a CTI closes: none of them can end before it.

    At infinity, where they never end, they are in the windows up to the last instant that is known of their scope.
    """
    earliest, latest = _known_span(p, row.key, row.time, b, event, of, count)
    window = _first_window(p, max(earliest, before)) if earliest != INFINITY else 0
    # Window by window, and in each by the order of the chain, which is that of the stream: so floats are added (S20).
    while earliest != INFINITY and (
        (window * p.hop <= latest) if row.time == INFINITY else (window * p.hop + p.size <= row.time)
    ):
        x = b["opens"]
        while x >= 0:
            if event[x]["at"] < window * p.hop + p.size:
                if count == len(of):
                    of, value = _wider(of, value)
                    slots = _slots(of, count)
                a, count = _accumulator(of, slots, count, s, b, row.key, v.group[x], window)
                for m in range(len(v.kind)):
                    if v.given[m, x]:
                        _add(value[a, m], v.kind[m], v.is_real[m], v.whole[m, x], v.real[m, x])
            x = event[x]["next"]
        window += 1
    return of, value, slots, count


@compiled
def _close(p: WindowNumbers, row: MeetingRow, s, b, of, out, n):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Let the windows of a scope leave that its newest CTI has closed, and promise what can no longer change."""
    cti, a = row.time, b["root"]
    while a >= 0 and (cti == INFINITY or of[a]["at"] * p.hop + p.size <= cti):
        b["root"] = melded(of, of[a]["less"], of[a]["more"])
        # Its slot stays taken: to free it would cut walks short, and nothing can come for a window that has left.
        of[a]["scope"] = NOBODY
        if n + 2 > len(out):
            out = longer(out, n, 2)
        start = of[a]["at"] * p.hop
        time, end = max(start, MIN_TIME), start + p.size if start + p.size <= MAX_TIME else INFINITY
        let_out(row, -1, DATA, MAIN, NONE, next_place(s, row.arrival), time, end, out[n])
        out[n]["due_at"] = a
        n += 1
        a = b["root"]
    # Between windows the next one starts behind the CTI, which then passes as it is (W2).
    promised = cti if cti == INFINITY else max(MIN_TIME, min(cti, _first_window(p, cti) * p.hop))
    if promised > s["promised"]:
        if n == len(out):
            out = longer(out, n, 1)
        let_out(row, -1, CTI, MAIN, NONE, next_place(s, row.arrival), promised, NULL, out[n])
        n += 1
        s["promised"] = promised
    return out, n


@compiled
def scan(p: WindowNumbers, rows: Rows, held, v: Measured, state, side, event, opened, book, of, value, count, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Take in a block; give the accumulators and how many they are, what leaves, and how many rows that is."""
    groups, given, kinds, reals, whole, real = v.group, v.given, v.kind, v.is_real, v.whole, v.real
    slots, n = _slots(of, count), 0
    # Heaps are not carried. Accumulators come by age, so equals leave as if there had been no cut (W6).
    for a in range(count):
        b = book[of[a]["scope"]]
        b["root"] = melded(of, b["root"], a)
    for i in range(len(rows.kind)):
        if rows.kind[i] > CTI or rows.kind[i] == TIMER:
            continue
        kind, k, name = np.int64(rows.kind[i]), rows.key[i], rows.event_id[i]
        time, end = rows.event_time[i], rows.event_end[i]
        row = MeetingRow(i, kind, k, k, rows.arrival[i], rows.place[i], time, end, name, p.point)
        s, b, port, start = state[k], book[k], side[k], opened[name]
        if n + 2 > len(out):
            out = longer(out, n, 2)
        if i < held:
            take_in(row, event, opened)
            _open(b, event, i)
            continue
        if kind == CTI:
            before = port["cti"]
            if not advance(row, port):
                n += refuse(row, LATE_CTI, port, out[n])
                continue
            s["cti"] = time
            # Set aside first: a CTI far ahead would make accumulators by the million before anyone counted them (W8).
            if b["opens"] >= 0:
                out, n = _set_aside(p, row, rows, before, b, event, opened, of, count, out, n)
                of, value, slots, count = _enter_open(p, row, v, before, s, b, event, of, value, slots, count)
            out, n = _close(p, row, s, b, of, out, n)
            continue
        began = event[start]["at"] if start >= 0 else NULL
        reason = fault(row, port["cti"], began)
        if reason == NONE and kind == START:
            take_in(row, event, opened)
            _open(b, event, i)
            continue
        x, first, last = i, 0, -1
        if kind == END:
            x, time = start, began
        if reason == NONE:
            # What the CTI has closed has left, and an open event was counted there when it did (W7).
            first = _first_window(p, max(time, port["cti"]))
            last = ((time + 1 if p.point and kind != END else end) - 1) // p.hop
            reason = MAX_WINDOWS if last - first >= p.most else NONE
        if reason != NONE:
            n += refuse(row, reason, port, out[n])
        else:
            group = groups[x]
            for window in range(first, last + 1):
                # Nearly always the first slot is right; to look here hands no array to a helper, which costs more than
                # the look.
                a = slots[_hashed(group, window) & (len(slots) - 1)]
                if a < 0 or of[a]["group"] != group or of[a]["at"] != window:
                    if count == len(of):
                        of, value = _wider(of, value)
                        slots = _slots(of, count)
                    a, count = _accumulator(of, slots, count, s, b, k, group, window)
                for m in range(len(kinds)):
                    if given[m, x]:
                        _add(value[a, m], kinds[m], reals[m], whole[m, x], real[m, x])
        if kind == END and (reason == NONE or reason == EMPTY or reason == MAX_WINDOWS):
            take_in(row, event, opened)
            let_go(event, x)
            if reason != NONE:
                let_out(row, x, START, DROPPED, reason, rows.place[x], rows.event_time[x], rows.event_end[x], out[n])
                n += 1
    return of, value, count, out, n


def nothing_measured(rows: int, measures: int) -> Measured:
    """Give values of a block in which every row is of one group and nothing is given."""
    zero = np.zeros((measures, rows), dtype=np.int64)
    flags = np.zeros((measures, rows), dtype=np.bool_)
    kinds = np.zeros(measures, dtype=np.int64)
    return Measured(np.zeros(rows, dtype=np.int64), kinds, kinds.astype(np.bool_), zero, zero.astype(np.float64), flags)


class Window(Timeless):
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
    smallest = WindowPolicy(shape=Shape.POINT, size=1, hop=1, measures=("events=count",))
    parts = (CarryPart("state", Per.KEY, STATE, INSTANTS),)

    def __init__(
        self,
        policy: WindowPolicy,
        carry: Mapping[str, Records] = MappingProxyType({}),
        blind: Blind = NO_BLIND,  # noqa: ARG002 - every operator is built alike
        capacity: int = OUT_CAPACITY,  # noqa: ARG002 - every operator is built alike
    ) -> None:
        """Take up the carry; the accumulators are for `resume`."""
        self.policy = policy
        self.records = taken_up(self.parts, carry)
        self.sums, self.count = sums(FIRST, len(policy.measures)), 0
        self.values: Measured | None = None
        """What is measured of the next block; the engine lays it."""
        self._events = 1

    def resume(self, carried: Sums) -> None:
        """Take up accumulators, of each scope in the order of their age."""
        self.sums, self.count = carried, len(carried.of)

    def grow(self, keys: int, events: int = 1) -> None:
        """Make room for `keys` scopes and event ids below `events`."""
        grow(self.parts, self.records, keys)
        self._events = max(1, events)

    def open_windows(self) -> Longs:
        """Give the accumulators whose windows have not left, in the order in which they were made."""
        return np.flatnonzero(self.sums.of["scope"][: self.count] >= 0)

    def feed(self, rows: Rows, held: int = 0) -> Iterator[Records]:
        """Take in the held rows (the first `held`) and then new ones in order; give what leaves."""
        p, state = self.policy, self.records["state"]
        values = self.values or nothing_measured(len(rows.kind), len(p.measures))
        at_work = desk(len(state), len(rows.kind), self._events)
        side, book = np.zeros(len(state), dtype=PORT), np.full(3 * len(state), NOBODY, dtype=np.int64).view(BOOK)
        for name in FROM_SIDE:
            side[name] = state[name]
        numbers = WindowNumbers(p.size, p.hop, p.max_windows, p.shape is Shape.POINT)
        of, value, count = self._packed()
        of, value, self.count, out, n = scan(
            numbers, rows, held, values, state, side, at_work.event, at_work.opened, book, of, value, count, written()
        )
        self.sums = _viewed(of, value)
        for name in FROM_SIDE:
            state[name] = side[name]
        self.held = np.flatnonzero(at_work.event["alive"])
        if n:
            yield out[:n]

    def _packed(self) -> tuple[Records, Records, int]:
        """Give the accumulators of open windows alone, with room for more, and how many they are."""
        which, wide = self.open_windows(), len(self.policy.measures)
        of, value = _room(max(FIRST, 2 * len(which)), wide)
        for column, known in zip(_viewed(of, value), self.sums, strict=True):
            column[: len(which)] = known[which]
        for links in ("less", "more"):
            of[links] = NOBODY
        return of, value, len(which)
