"""Heartbeat: timer tuples in a stream, so that time moves while data is silent.

Source: TIBCO StreamBase, *Using the Heartbeat Operator*.

Rules of docs/semantics.md: H1, H2, H3, H4, H5, H6, H7, H8, H9, H10, H11, H12, H13, H14
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipelines.operators.compiled import compiled
from pipelines.operators.leaving import write
from pipelines.operators.plain_words import spoken
from pipelines.operators.rows import (
    CLOCK,
    INFINITY,
    MAX_TIME,
    MIN_TIME,
    NULL,
    OUT_CAPACITY,
    Fate,
    Kind,
    Policy,
    PolicyError,
    Reason,
    Records,
    Rows,
    out_buffer,
)
from pipelines.operators.scan import (
    NO_BLIND,
    NOTHING_HELD,
    NUMBERING,
    Blind,
    CarryPart,
    Per,
    drain,
    grow,
    place_main,
    sighted,
    taken_up,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipelines.operators.rows import Described

DAY = 86_400_000_000
FINEST = 10_000
LONGEST = MAX_TIME - MIN_TIME
FAR = 4 * 10**18
RATIO_LIMIT = 10**9

STATE = np.dtype(
    [
        ("newest", "i8"),
        ("anchor_arrival", "i8"),
        ("anchor_time", "i8"),
        ("due", "i8"),
        ("sent", "i8"),
        ("seen", "i8"),
        ("retired", "i8"),
        *NUMBERING,
    ]
)
"""`due` is the next multiple to announce, INFINITY when there is none; `sent` the last one announced, INFINITY once the
stream has ended; `seen` the last arrival of data."""
INSTANTS = frozenset({"newest", "anchor_arrival", "anchor_time", "due", "sent", "seen", "last_arrival"})
REFUSED = np.dtype([("refused_arrival", "i8"), ("refused_time", "i8")])
"""The row that `max_catch_up` refused last; null where none was since a row counted."""

DATA, START, END, TIMER = int(Kind.DATA), int(Kind.START), int(Kind.END), int(Kind.TIMER)
READING, FINAL = int(Kind.READING), int(Kind.FINAL)
MAIN, NOTE = int(Fate.MAIN), int(Fate.NOTE)
NONE, AHEAD, CATCH_UP, EXPIRED = (
    int(Reason.NONE),
    int(Reason.MAX_AHEAD),
    int(Reason.MAX_CATCH_UP),
    int(Reason.EXPIRED),
)


@dataclass(frozen=True, kw_only=True)
class HeartbeatPolicy(Policy):
    """What a person chose for one heartbeat; all times in ticks (µs).

    >>> HeartbeatPolicy(interval=60_000_000, slack=10_000_000).warnings()
    ()

    Raises:
        PolicyError: an interval of 0 or less, a negative slack or bound, a ratio that is not positive.
    """

    interval: int
    slack: int = 0
    acceleration: tuple[int, int] = (1, 1)
    """Event time per wall-clock time, as a ratio (numerator, denominator)."""
    max_ahead: int | None = DAY
    max_catch_up: int = 100_000
    expire: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.interval <= LONGEST:
            raise PolicyError("interval", "greater than zero and no longer than all readable time", self.interval)
        if not 0 <= self.slack <= LONGEST:
            raise PolicyError("slack", "zero or more", self.slack)
        if not all(0 < part <= RATIO_LIMIT for part in self.acceleration):
            raise PolicyError("acceleration", "a ratio greater than zero", self.acceleration)
        if self.max_ahead is not None and not 0 <= self.max_ahead <= LONGEST:
            raise PolicyError("max_ahead", "zero or more", self.max_ahead)
        if self.max_catch_up < 0:
            raise PolicyError("max_catch_up", "zero or more", self.max_catch_up)
        if self.expire is not None and not 0 < self.expire <= LONGEST:
            raise PolicyError("expire", "greater than zero", self.expire)

    def warnings(self) -> tuple[str, ...]:
        """Warn of an interval so short that most timers come late."""
        if self.interval >= FINEST:
            return ()
        a_day = DAY // self.interval
        return (f"interval is under 10 ms: {a_day:,} timers a day for each key, most of them late",)

    def words(self, stream: Described) -> list[str]:  # noqa: ARG002 - as every policy is asked
        """Say which timers come, what brings them where no row does, and which times do not count."""
        when = f"{spoken(self.slack)} after its time" if self.slack else "at its time"
        every = f"passes every row on, with a timer at each multiple of {spoken(self.interval)} of event time"
        words = [f"{every}; where no row comes, the clock brings the timer, {when}"]
        if self.acceleration != (1, 1):
            words.append(f"event time runs {self.acceleration[0]}/{self.acceleration[1]} times as fast as the clock")
        if self.max_ahead is None:
            words.append("a time counts however far it runs ahead of its row's arrival")
        else:
            words.append(f"a time more than {spoken(self.max_ahead)} ahead of its row's arrival does not count")
        words.append(f"a row that would give more than {self.max_catch_up:,} timers does not count")
        if self.expire is not None:
            words.append(f"the timers of a key stop after {spoken(self.expire)} of silence")
        return words


class HeartbeatNumbers(NamedTuple):
    """The policy as the compiled scan takes it."""

    interval: int
    slack: int
    numerator: int
    denominator: int
    max_ahead: int
    max_catch_up: int
    expire: int


@compiled
def _deadline(p: HeartbeatNumbers, s) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001 - Numba infers records
    if s["retired"] or s["newest"] == NULL or s["due"] == INFINITY:
        return INFINITY
    ahead = s["due"] - s["anchor_time"] + p.slack
    # Whole and rest apart: a ratio stays exact where floats would round and one product would not fit.
    whole = ahead // p.numerator
    rest = ahead - whole * p.numerator
    # Compiled int64 wraps without a word, so the bound is asked before the product is made.
    if whole > FAR // p.denominator:
        return INFINITY
    return s["anchor_arrival"] + whole * p.denominator + (rest * p.denominator + p.numerator - 1) // p.numerator


@compiled
def _announce(p: HeartbeatNumbers, state, k, arrival, due_at, by, out, n):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    s = state[k]
    time = s["due"]
    s["sent"] = time
    s["due"] = INFINITY if time > MAX_TIME - p.interval else time + p.interval
    write(out[n], -1, k, TIMER, MAIN, NONE, arrival, place_main(state, k, arrival), time, NULL, due_at, by)
    return n + 1


@compiled
def _judge(p: HeartbeatNumbers, blind: Blind, state, k, last, out, n):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Let every timer of key `k` leave whose instant is at or before `last` (rules 4, 10, 11)."""
    s = state[k]
    while n < len(out):
        due_at = _deadline(p, s)
        ticking = s["newest"] != NULL and s["sent"] != INFINITY and not s["retired"]
        # At a tie the key retires and the timer stays out (H11); timers due before have left in earlier turns of the
        # loop.
        if p.expire and ticking and due_at >= s["seen"] + p.expire:
            gone = sighted(blind, s["seen"] + p.expire)
            if gone <= last:
                s["retired"] = 1
                write(out[n], -1, k, TIMER, NOTE, EXPIRED, gone, NULL, NULL, NULL, NULL, CLOCK)
                n += 1
            return n
        if due_at == INFINITY:
            return n
        leaves = sighted(blind, due_at)
        if leaves > last:
            return n
        n = _announce(p, state, k, leaves, due_at, CLOCK, out, n)
    return n


@compiled
def _too_many(p: HeartbeatNumbers, since, stamp, due, arrival, time) -> bool:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Say whether `time` would announce more than is believed, `stamp` having come at `since`, without the overdue."""
    waited = arrival - since
    whole = waited // p.denominator
    rest = waited - whole * p.denominator
    if whole > FAR // p.numerator:
        return False
    passed = stamp - p.slack + whole * p.numerator + (rest * p.numerator) // p.denominator
    first = due
    # What the clock would have announced by itself until now is no flood, blind span or not (H9).
    if passed >= first:
        first += ((passed - first) // p.interval + 1) * p.interval
    return time >= first and (time - first) // p.interval + 1 > p.max_catch_up


@compiled
def _doubt(p: HeartbeatNumbers, s, arrival, time) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Say why a timestamp must not count (rule 9), or NONE."""
    if time - arrival > p.max_ahead:
        return AHEAD
    if s["newest"] == NULL or s["retired"] or s["due"] == INFINITY or time < s["due"]:
        return NONE
    return CATCH_UP if _too_many(p, s["anchor_arrival"], s["anchor_time"], s["due"], arrival, time) else NONE


@compiled
def _agrees(p: HeartbeatNumbers, r, arrival, time) -> bool:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Say whether a row that `max_catch_up` refuses is near the one that it refused before."""
    if r["refused_arrival"] == NULL:
        return False
    earlier, later = r["refused_time"], time
    since = r["refused_arrival"]
    # Either row may be the earlier one: a clock that is set right goes back.
    if later < earlier:
        earlier, later, since = time, r["refused_time"], arrival
    return not _too_many(p, since, earlier, (earlier // p.interval + 1) * p.interval, arrival, later)


@compiled
def _accept(p: HeartbeatNumbers, s, arrival, time) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    if s["newest"] == NULL or s["retired"]:
        # Not before `sent`: a key that comes back stamped earlier must announce no multiple twice (H5).
        last = max(time // p.interval * p.interval, s["sent"])
        s["due"] = last + p.interval if last <= MAX_TIME - p.interval else INFINITY
        s["retired"] = 0
    s["newest"] = time
    s["anchor_arrival"] = arrival
    s["anchor_time"] = time


@compiled
def scan(p: HeartbeatNumbers, blind: Blind, rows: Rows, i, state, refused, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Run the heartbeat from row `i` on until the rows or the buffer end; give (next row, rows written)."""
    n = 0
    while i < len(rows.kind):
        kind, k, arrival, time = rows.kind[i], rows.key[i], rows.arrival[i], rows.event_time[i]
        if kind == READING or kind == FINAL:
            # A reading is exclusive (S13); the end is a row, and what is due in its instant still leaves (H12).
            last = arrival - 1 if kind == READING else arrival
            for key in range(len(state)):
                n = _judge(p, blind, state, key, last, out, n)
            if n == len(out):
                return i, n
            if kind == FINAL:
                state["due"][:] = INFINITY
                # `sent` too, or a retired key that comes back would begin anew behind the end.
                state["sent"][:] = INFINITY
            i += 1
            continue
        # Deadlines before the row (S14). Each timer moves `due` as it leaves, so after a full buffer the same row goes
        # on behind it.
        n = _judge(p, blind, state, k, arrival, out, n)
        if n == len(out):
            return i, n
        s = state[k]
        reason = NONE
        if (kind == DATA or kind == START) and time != NULL:  # noqa: SIM102 - what counts, then whether it is in order
            if s["retired"] or s["newest"] == NULL or time >= s["newest"]:
                reason = _doubt(p, s, arrival, time)
                if reason == CATCH_UP and _agrees(p, refused[k], arrival, time):
                    # As one never heard: no timer then tells of the years between the two rows (H13).
                    s["newest"] = NULL
                    reason = NONE
                if reason == CATCH_UP:
                    refused[k]["refused_arrival"] = arrival
                    refused[k]["refused_time"] = time
                if reason == NONE:
                    while not s["retired"] and s["newest"] != NULL and s["due"] <= time and n < len(out):
                        n = _announce(p, state, k, arrival, arrival, i, out, n)
                    if n == len(out):
                        return i, n
                    _accept(p, s, arrival, time)
                    refused[k]["refused_arrival"] = NULL
                    refused[k]["refused_time"] = NULL
        if kind == DATA or kind == START or kind == END:
            # Also where the time did not count: whoever sends is alive (H11).
            s["seen"] = arrival
        place = place_main(state, k, arrival)
        write(out[n], i, k, kind, MAIN, reason, arrival, place, time, rows.event_end[i], NULL, i)
        n += 1
        i += 1
    return i, n


@compiled
def first_due(p: HeartbeatNumbers, blind: Blind, state) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Give the first instant at which silence makes something leave, over all keys."""
    first = INFINITY
    for k in range(len(state)):
        s = state[k]
        due = _deadline(p, s)
        if p.expire and s["newest"] != NULL and s["sent"] != INFINITY and not s["retired"]:
            due = min(due, s["seen"] + p.expire)
        if due != INFINITY:
            first = min(first, sighted(blind, due))
    return first


@compiled
def coming(p: HeartbeatNumbers, blind: Blind, state, until) -> float:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Estimate from above how many timers leave before `until` if no row comes, over all keys."""
    total, pace = 0.0, float(p.interval) * p.denominator / p.numerator
    for k in range(len(state)):
        s = state[k]
        due = _deadline(p, s)
        if due != INFINITY and sighted(blind, due) < until:
            last = min(until, sighted(blind, s["seen"] + p.expire)) if p.expire else until
            total += 1.0 + max(last - due + 1, 0) / pace
    return total


class Heartbeat:
    """Add timers to each key of a stream, under the policy's contract of when each one leaves.

    Safe on any division of the input into blocks: the state holds all that the rules look back on. Where the landing
    was blind, deadlines wait for the end of the span. The edges: under `expire` any row of data shows that its key is
    alive, counted or not. Of two rows that `max_catch_up` refuses, none that counts between them, the second is
    believed if each is near the other: the key begins anew with it, as one that was never heard, so a first time far
    in the past, or a clock that was set right, hides its honest rows no longer than one row.

    Laws: data order and content unchanged; timers strictly increase and are multiples; no timer is followed by an
    in-order row with a smaller timestamp unless the slack ran out; removing null and out-of-order rows changes no
    timer; two successive rows that max_catch_up refuses never agree within it; cuts do not matter; readings do not
    matter.

    Args:
        policy: the settings.
        carry: part "state", one record a key, and part "refused", one for each key that has something in doubt; empty
            at the beginning of a run.
        blind: spans in which nobody listened.
        capacity: rows of the output buffer.
    """

    name = "heartbeat"
    smallest = HeartbeatPolicy(interval=1)
    parts = (
        CarryPart("state", Per.KEY, STATE, INSTANTS),
        CarryPart("refused", Per.SOME_KEY, REFUSED, frozenset(REFUSED.names or ())),
    )
    held = NOTHING_HELD

    def __init__(
        self,
        policy: HeartbeatPolicy,
        carry: Mapping[str, Records] = MappingProxyType({}),
        blind: Blind = NO_BLIND,
        capacity: int = OUT_CAPACITY,
    ) -> None:
        p = policy
        self.records = taken_up(self.parts, carry)
        self._blind = blind
        self._capacity = capacity
        self._numbers = HeartbeatNumbers(
            p.interval,
            p.slack,
            *p.acceleration,
            LONGEST if p.max_ahead is None else p.max_ahead,
            p.max_catch_up,
            p.expire or 0,
        )

    def grow(self, keys: int, events: int = 0) -> None:  # noqa: ARG002 - a heartbeat knows no event ids
        """Make room for `keys` keys."""
        grow(self.parts, self.records, keys)

    def listen(self, blind: Blind) -> None:
        """From now on know these spans in which nobody listened."""
        self._blind = blind

    def next_due(self) -> int:
        """Give the instant at which the next timer leaves, or the next key retires, if no row comes before."""
        return int(first_due(self._numbers, self._blind, self.records["state"]))

    def timers(self, since: int, until: int, begun: int) -> float:
        """Estimate how many timers silence brings: of keys that beat, and of those that begin."""
        p = self._numbers
        fresh_ones = begun * (until - since) * p.numerator / (p.interval * p.denominator)
        return float(coming(p, self._blind, self.records["state"], until)) + fresh_ones

    def feed(self, rows: Rows, held: int = 0) -> Iterator[Records]:
        """Take in rows in order of arrival and place; give what leaves, each key in its order."""
        state, refused, out = self.records["state"], self.records["refused"], out_buffer(self._capacity)
        return drain(
            lambda i: scan(self._numbers, self._blind, rows, i, state, refused, out), held, len(rows.kind), out
        )
