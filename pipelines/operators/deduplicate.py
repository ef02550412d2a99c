"""Deduplicate: of rows that are the same the first stands, and those that come again are dropped.

Sources that deliver at least once send rows again.

Rules of docs/semantics.md: D1, D2, D3, D4, D5, D6, D7
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipelines.operators.compiled import compiled
from pipelines.operators.leaving import write
from pipelines.operators.meeting import melded
from pipelines.operators.plain_words import counted, spoken
from pipelines.operators.rows import (
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
    out_buffer,
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

    from pipelines.operators.rows import Described, Longs

DAY = 86_400_000_000
LONGEST = MAX_TIME - MIN_TIME
NOBODY = -1
NOT_CARRIED = 5

STATE = np.dtype([("time", "i8"), ("heard", "i8"), ("cti", "i8"), ("kept", "i8"), ("made", "i8"), *NUMBERING])
"""Of one key: the newest event time heard, the newest arrival and the newest CTI; how many rows are remembered, and
how many ever were."""
INSTANTS = frozenset({"time", "heard", "cti", "last_arrival"})

STANDING = np.dtype(
    [
        *(("age", "i8"), ("time", "i8"), ("arrival", "i8"), ("at", "i8")),
        *(("by_arrival", "i8"), ("stands", "i8"), ("named", "i8"), ("open", "i8"), ("passed", "i8")),
        *(("landed_at", "i8"), ("landed_place", "i8")),
        *(("key", "i8"), ("same", "i8"), ("event", "i8"), ("less", "i8"), ("more", "i8")),
    ]
)
"""One remembered row.

`age` numbers those of its key. Its `time`, NULL where it goes by its arrival, and `arrival` are held against those of a
row that is the same. It is forgotten when its key's time (`by_arrival`: its key's newest arrival) is past `at` by more
than `within`. `stands` says that later rows are compared with it, `named` that it is the newest start of its event id,
`open` that its end has not come, `passed` that it left and was not dropped. `landed_*` name the row that stands: its
own, or that of which it is a duplicate. The other fields are of the process: `key`, NOBODY once it is forgotten, the
dense ids of the values that make rows the same and of its event, and the heaps below it.
"""
CARRIED = (STANDING.names or ())[:-NOT_CARRIED]
"""The fields that the carry has of a remembered row."""
STANDING_INSTANTS = frozenset({"time", "arrival", "at", "landed_at"})

DATA, START, END, TIMER, CTI = (int(kind) for kind in (Kind.DATA, Kind.START, Kind.END, Kind.TIMER, Kind.CTI))
MAIN, DROPPED = int(Fate.MAIN), int(Fate.DROPPED)
NONE, DUPLICATE = int(Reason.NONE), int(Reason.DUPLICATE)


@dataclass(eq=False)
class KeptFull(FullError):  # noqa: N818 - a state of the stream, not a mistake
    """More rows of one key are remembered than `max_kept` allows."""

    allowed: int
    stream: str = ""

    def __str__(self) -> str:
        where = f"`{self.stream}`" if self.stream else "deduplicate"
        return (
            f"{where} would remember more rows of one key than the {self.allowed:,} that max_kept allows: shorten "
            "`within`, or raise max_kept, then give up the commit begun under the old flow: "
            "pulseline abandon FLOW --commit N"
        )


@dataclass(frozen=True, kw_only=True)
class DeduplicatePolicy(Policy):
    """What a person chose for one deduplicate; all times in ticks (µs).

    >>> DeduplicatePolicy(within=3_600_000_000, on=("id",)).warnings()
    ()

    Raises:
        PolicyError: a span that is not longer than zero, a negative bound, or a count below one.
    """

    within: int
    """How far apart two rows that are the same may be for the later one to be a duplicate, and how long one is
    remembered."""
    on: tuple[str, ...] = ()
    """Columns that must be equal; without them event time, end and all payload columns."""
    max_ahead: int | None = DAY
    max_kept: int = 1_000_000
    """How many rows of one key may be remembered."""

    def __post_init__(self) -> None:
        if not 0 < self.within <= LONGEST:
            raise PolicyError("within", "greater than zero and no longer than all readable time", self.within)
        if self.max_ahead is not None and not 0 <= self.max_ahead <= LONGEST:
            raise PolicyError("max_ahead", "zero or more", self.max_ahead)
        if self.max_kept < 1:
            raise PolicyError("max_kept", "at least 1", self.max_kept)

    def words(self, stream: Described) -> list[str]:  # noqa: ARG002 - as every policy is asked
        """Say which rows count as equal, how long one is remembered, and how many may be."""
        equal = f"of rows whose {', '.join(self.on)} {'is' if len(self.on) == 1 else 'are'} equal"
        same = equal if self.on else "of rows that are equal in every column"
        words = [f"{same} the first leaves; one that comes again within {spoken(self.within)} goes to the ledger"]
        words.append(f"a row is forgotten once time is past it by more than {spoken(self.within)}")
        words.append(f"at most {counted(self.max_kept, 'row')} of a key may be remembered, or the run stops")
        if self.max_ahead is not None:
            words.append(f"a row more than {spoken(self.max_ahead)} ahead of its arrival is compared by arrival")
        return words


class DeduplicateNumbers(NamedTuple):
    """The policy as the compiled scan takes it."""

    within: int
    max_ahead: int
    max_kept: int


class Named(NamedTuple):
    """What the engine lays beside the rows of a block, by row."""

    same: Longs
    """Dense id of the key and the values by which rows are the same."""
    landed_at: Longs
    landed_place: Longs


class KeyedRow(NamedTuple):
    """One row of the input, and what it is compared by."""

    number: int
    kind: int
    key: int
    arrival: int
    place: int
    time: int
    end: int
    clock: int
    """Its event time, of an end edge its end; its arrival where `by_arrival`."""
    by_arrival: bool


@compiled
def _row(p: DeduplicateNumbers, number, kind, key, arrival, place, time, end):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - Numba infers records
    """Lay out one row; one without a time, or too far ahead, goes by its arrival (rule 4)."""
    clock = end if kind == END else time
    # Timers and CTIs are believed however far ahead: they were judged where they were made.
    by_arrival = clock == NULL or (kind <= END and clock - arrival > p.max_ahead)
    return KeyedRow(number, kind, key, arrival, place, time, end, arrival if by_arrival else clock, by_arrival)


@compiled
def _forget(known, x, s, standing_of, event_of) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    r = known[x]
    s["kept"] -= 1
    r["key"] = NOBODY
    if r["stands"]:
        standing_of[r["same"]] = NOBODY
    if r["named"]:
        event_of[r["event"]] = NOBODY


@compiled
def _forget_past(p: DeduplicateNumbers, s, known, root, now, standing_of, event_of) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Forget the rows of one heap that lie further back than `within`; give the heap that is left (rule 3)."""
    # What was forgotten otherwise stays in the heap until it is on top: out of the middle would need links upwards.
    while root >= 0 and (known[root]["key"] < 0 or known[root]["at"] + p.within < now):
        x = root
        root = melded(known, known[x]["less"], known[x]["more"])
        if known[x]["key"] >= 0:
            _forget(known, x, s, standing_of, event_of)
    return root


@compiled
def _hear(p: DeduplicateNumbers, row: KeyedRow, s, known, roots, standing_of, event_of) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Move the time of a row's key, and forget what is too far back by it."""
    s["heard"] = max(s["heard"], row.arrival)
    if not row.by_arrival:
        s["time"] = max(s["time"], row.clock)
    # Two heaps, for a row is forgotten by the clock it is compared by: event time or arrival (D4).
    roots[0] = _forget_past(p, s, known, roots[0], s["time"], standing_of, event_of)
    roots[1] = _forget_past(p, s, known, roots[1], s["heard"], standing_of, event_of)


@compiled
def _date(p: DeduplicateNumbers, x, at, by_arrival, s, known, roots, standing_of, event_of) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Say from when on a row is forgotten; at once where that has passed."""
    r = known[x]
    r["at"] = at
    r["by_arrival"] = by_arrival
    r["open"] = 0
    # Its span may be over already; left to the next row of its key it would still count towards `max_kept`.
    if at + p.within < (s["heard"] if by_arrival else s["time"]):
        _forget(known, x, s, standing_of, event_of)
        return
    heap = 1 if by_arrival else 0
    roots[heap] = melded(known, roots[heap], x)


@compiled
def _remember(row: KeyedRow, x, same, landed_at, landed_place, s, known) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Know a row; whether it stands, has an event and when it is forgotten is for the caller."""
    r = known[x]
    s["made"] += 1
    s["kept"] += 1
    r["age"] = s["made"]
    r["time"] = NULL if row.by_arrival else row.time
    r["arrival"] = row.arrival
    r["at"] = row.clock
    r["by_arrival"] = row.by_arrival
    r["landed_at"] = landed_at
    r["landed_place"] = landed_place
    r["key"] = row.key
    r["same"] = same
    r["less"] = NOBODY
    r["more"] = NOBODY
    r["stands"] = 0
    r["named"] = 0
    r["open"] = 0
    r["passed"] = 1
    r["event"] = 0


@compiled
def _apart(row: KeyedRow, r):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Say how far a row is behind the one that stands: by arrival where one of them goes by it."""
    if row.by_arrival or r["time"] == NULL:
        return row.arrival - r["arrival"]
    return row.time - r["time"]


@compiled
def _open(p: DeduplicateNumbers, x, event, passed, s, known, roots, standing_of, event_of) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Remember an event until its end; the one of its id before it, whose end nobody can tell now, no longer."""
    before = event_of[event]
    # The next end of this id is the newer start's; the older event has no end to wait for, so its span runs from its
    # start.
    if before >= 0:
        known[before]["named"] = 0
        if known[before]["open"]:
            b = known[before]
            _date(p, before, b["at"], b["by_arrival"], s, known, roots, standing_of, event_of)
    r = known[x]
    r["event"] = event
    r["named"] = 1
    r["open"] = 1
    r["passed"] = passed
    event_of[event] = x


@compiled
def _end(p: DeduplicateNumbers, row: KeyedRow, event, s, known, roots, standing_of, event_of) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Judge an end edge; give the row that stands where it is a duplicate, or NOBODY (rule 6)."""
    x = event_of[event]
    if x < 0:
        return NOBODY
    goes = known[x]["open"] and known[x]["passed"]
    if known[x]["open"]:
        _date(p, x, row.clock, row.by_arrival, s, known, roots, standing_of, event_of)
    # Known and no longer open: a second end, which is a duplicate of the first (D6).
    return NOBODY if goes else x


@compiled
def scan(p: DeduplicateNumbers, rows: Rows, v: Named, i, state, known, count, roots, standing_of, event_of, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Run from row `i` on until rows or buffer end; give (next row, rows written, how many `known` has).

    The last is NOBODY where more is remembered of a key than may be.
    """
    n = 0
    while i < len(rows.kind):
        if rows.kind[i] > CTI:
            i += 1
            continue
        if n == len(out):
            return i, n, count
        kind, k, event, same = rows.kind[i], rows.key[i], rows.event_id[i], v.same[i]
        row = _row(p, i, kind, k, rows.arrival[i], rows.place[i], rows.event_time[i], rows.event_end[i])
        s, heaps = state[k], roots[k]
        _hear(p, row, s, known, heaps, standing_of, event_of)
        stood, of = NOBODY, NOBODY
        if kind == CTI:
            s["cti"] = max(s["cti"], row.time)
        elif kind == END:
            of = _end(p, row, event, s, known, heaps, standing_of, event_of)
        elif kind != TIMER:
            stood = standing_of[same]
            apart = _apart(row, known[stood]) if stood >= 0 else 0
            if stood >= 0 and -p.within <= apart <= p.within:
                of = stood
            stands = stood < 0 or apart > p.within
            opens = kind == START and (of < 0 or event_of[event] < 0 or not known[event_of[event]]["open"])
            if stands and stood >= 0:
                known[stood]["stands"] = 0
                standing_of[same] = NOBODY
                # Nothing is compared with it any more, but its end may still come and must find it.
                if not known[stood]["named"]:
                    _forget(known, stood, s, standing_of, event_of)
            if stands or opens:
                x = count
                count += 1
                landed_at, landed_place = v.landed_at[i], v.landed_place[i]
                # The end of a dropped start is dropped too, and names the row that stands.
                if of >= 0:
                    landed_at, landed_place = known[of]["landed_at"], known[of]["landed_place"]
                _remember(row, x, same, landed_at, landed_place, s, known)
                if stands:
                    known[x]["stands"] = 1
                    standing_of[same] = x
                if opens:
                    _open(p, x, event, of < 0, s, known, heaps, standing_of, event_of)
                else:
                    _date(p, x, row.clock, row.by_arrival, s, known, heaps, standing_of, event_of)
                if s["kept"] > p.max_kept:
                    return i, n, NOBODY
        if of >= 0:
            write(out[n], i, k, kind, DROPPED, DUPLICATE, row.arrival, row.place, row.time, row.end, of, i)
        else:
            place = next_place(s, row.arrival)
            write(out[n], i, k, kind, MAIN, NONE, row.arrival, place, row.time, row.end, NULL, i)
        n += 1
        i += 1
    return i, n, count


@compiled
def _indexed(known, count, roots, standing_of, event_of) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Lay the heaps of remembered rows, and the way to them by what makes them the same and by their event."""
    for x in range(count):
        r = known[x]
        r["less"] = NOBODY
        r["more"] = NOBODY
        if r["stands"]:
            standing_of[r["same"]] = x
        if r["named"]:
            event_of[r["event"]] = x
        if not r["open"]:
            heap = 1 if r["by_arrival"] else 0
            roots[r["key"], heap] = melded(known, roots[r["key"], heap], x)


class Deduplicate(Timeless):
    """Let the first of rows that are the same leave, and drop those that come again within a span of event time.

    Safe on any division of the input into blocks: what is remembered is all that a row is compared with. The edges: a
    row that is behind its key's time by more than `within` passes, duplicate or not; a row without a readable time, or
    too far ahead of its arrival, is compared by arrival. Behind an event of edges that was dropped its end is dropped.

    Laws: what leaves is unchanged and in order; every input leaves or is in the ledger; no two rows that are the same
    leave within the span while the first is remembered; cuts do not matter.

    Args:
        policy: the settings.
        carry: part "state", one record a key; the remembered rows are for `resume`.
        blind: not looked at; silence is not judged here.
        capacity: rows of the output buffer.
    """

    name = "deduplicate"
    smallest = DeduplicatePolicy(within=1)
    parts = (CarryPart("state", Per.KEY, STATE, INSTANTS),)

    def __init__(
        self,
        policy: DeduplicatePolicy,
        carry: Mapping[str, Records] = MappingProxyType({}),
        blind: Blind = NO_BLIND,  # noqa: ARG002 - every operator is built alike
        capacity: int = OUT_CAPACITY,
    ) -> None:
        """Take up the carry; the remembered rows are for `resume`."""
        self.policy = policy
        self.records = taken_up(self.parts, carry)
        self.known = np.zeros(0, dtype=STANDING)
        self.named: Named | None = None
        """What names the rows of the next block; the engine lays it."""
        self._capacity, self._events, self._count = max(1, capacity), 1, 0
        ahead = 2 * LONGEST if policy.max_ahead is None else policy.max_ahead
        self._numbers = DeduplicateNumbers(policy.within, ahead, policy.max_kept)

    def resume(self, known: Records) -> None:
        """Take up remembered rows, those of each key in the order of their age."""
        self.known, self._count = known, len(known)

    def remembered(self) -> Records:
        """Give the rows that are remembered, in the order in which they came."""
        known = self.known[: self._count]
        return known[known["key"] >= 0]

    def grow(self, keys: int, events: int = 1) -> None:
        """Make room for `keys` keys and event ids below `events`."""
        grow(self.parts, self.records, keys)
        self._events = max(1, events)

    def feed(self, rows: Rows, held: int = 0) -> Iterator[Records]:
        """Take in rows in order; give what leaves or is dropped, a duplicate with what it is one of under `due_at`.

        Raises:
            KeptFull: after some row more of its key are remembered than `max_kept` allows.
        """
        named = self.named or Named(rows.event_id, rows.arrival, rows.place)
        self._pack(len(rows.kind))
        roots = np.full((len(self.records["state"]), 2), NOBODY, dtype=np.int64)
        same = 1 + max(named.same.max(initial=0), self.known["same"].max(initial=0))
        events = max(self._events, 1 + self.known["event"].max(initial=0))
        standing_of, event_of = (np.full(size, NOBODY, dtype=np.int64) for size in (same, events))
        # Dense ids change from block to block, so what hangs on them is no carry and is laid anew.
        _indexed(self.known, self._count, roots, standing_of, event_of)
        out, i = out_buffer(self._capacity), held
        while i < len(rows.kind):
            i, written, self._count = scan(
                *(self._numbers, rows, named, i, self.records["state"], self.known, self._count),
                *(roots, standing_of, event_of, out),
            )
            if self._count == NOBODY:
                raise KeptFull(self.policy.max_kept)
            if written:
                yield out[:written]

    def _pack(self, more: int) -> None:
        """Keep the remembered rows alone, with room for others."""
        alive = self.remembered()
        # Room for every row of the block: the scan never moves what its heaps point into.
        self.known = np.zeros(len(alive) + more, dtype=STANDING)
        self.known["key"] = NOBODY
        self.known[: len(alive)] = alive
        self._count = len(alive)
