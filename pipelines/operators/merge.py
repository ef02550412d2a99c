"""Ordered Merge: rows of several ports in one order of event time, each port waiting for all others.

Source: TIBCO StreamBase, *Using the Merge Operator*.

Rules of docs/semantics.md: M1, M2, M3, M4, M5, M6, M7, M8, M9, M11
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipelines.operators.compiled import compiled
from pipelines.operators.leaving import write
from pipelines.operators.plain_words import counted, spoken
from pipelines.operators.rows import (
    INFINITY,
    NULL,
    OUT_CAPACITY,
    Fate,
    FullError,
    Kind,
    Longs,
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
    drain,
    grow,
    next_place,
    place_main,
    taken_up,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipelines.operators.rows import Described

STATE = np.dtype(NUMBERING)
PORT = np.dtype([(name, "i8") for name in ("left", "cti", "highest", "head", "tail", "waiting")])
"""`left` is the value as compared of the port's last row that left, `cti` what it has promised, NULL where there was
none; these are carried. The other fields are rebuilt from the held rows."""
CARRIED_PORT = np.dtype([("left", "i8")])
CARRIED_PROMISE = np.dtype([("cti", "i8")])
INSTANTS = frozenset({"last_arrival", "left", "cti"})
PROMISE, PROMISES = "promise", "promises"
"""The parts of the carry that say what each group and each port has promised; only of a merge that promises."""
ASIDE = "aside"
"""The part of the carry that numbers what is set aside; a merge that sets nothing aside has none."""

END, TIMER, CTI = int(Kind.END), int(Kind.TIMER), int(Kind.CTI)
READING, FINAL = int(Kind.READING), int(Kind.FINAL)
MAIN, SIDE, DROPPED = int(Fate.MAIN), int(Fate.SIDE), int(Fate.DROPPED)
NONE, UNKNOWN_PORT, MAX_AHEAD = int(Reason.NONE), int(Reason.UNKNOWN_PORT), int(Reason.MAX_AHEAD)
NOBODY = -1


class MergeAtEnd(IntEnum):
    """What becomes of held rows when the stream ends."""

    HOLD = 0
    """They stay held (the vendor's way)."""
    FLUSH = 1
    """They leave in order."""


class Ahead(IntEnum):
    """What becomes of a row of data that is past its arrival by more than `max_ahead`."""

    DROP = 0
    """It stands in the ledger alone."""
    DIVERT = 1
    """It leaves unchanged in the side stream."""


class MergedCtis(IntEnum):
    """What becomes of the CTIs that come in; it follows from the flow."""

    PASS = 0
    """None come; or the plan is older than this, and they leave in order as timers do."""
    OLDEST = 1
    """Each binds all rows of a port and group: the oldest of the ports' leaves."""
    OF_PARTS = 2
    """Each binds one of several keys that meet at a port, so none leaves."""
    OF_SOME = 3
    """A port has none, so none leaves."""


CTIS_LEAVE, CTIS_MEET = int(MergedCtis.PASS), int(MergedCtis.OLDEST)


@dataclass(eq=False)
class MergeFull(FullError):  # noqa: N818 - a state of the merge, not a mistake
    """More rows of a group wait than `max_held` allows."""

    held: int
    allowed: int
    stream: str = ""

    def __str__(self) -> str:
        merge = f"merge `{self.stream}`" if self.stream else "merge"
        return (
            f"the {merge} holds {self.held:,} rows and max_held allows {self.allowed:,} for each group: a port is "
            "silent; put a heartbeat before it, or raise max_held, then give up the commit that was begun under the "
            "old flow: pulseline abandon FLOW --commit N (pulseline status FLOW names it)"
        )


@dataclass(frozen=True, kw_only=True)
class MergePolicy(Policy):
    """What a person chose for one merge.

    Raises:
        PolicyError: fewer than one port, a bound below one, or a negative one of time.
    """

    ports: int
    at_end: MergeAtEnd = MergeAtEnd.HOLD
    max_held: int | None = None
    """How many rows of one group may wait; each group is a merge of its own, however the groups are bucketed."""
    max_ahead: int | None = None
    """How far past its arrival a row of data may be, in ticks; None: however far. Timers are never judged."""
    ahead: Ahead = Ahead.DROP
    ctis: MergedCtis = MergedCtis.PASS

    def __post_init__(self) -> None:
        if self.ports < 1:
            raise PolicyError("ports", "at least one", self.ports)
        if self.max_held is not None and self.max_held < 1:
            raise PolicyError("max_held", "at least 1", self.max_held)
        if self.max_ahead is not None and self.max_ahead < 0:
            raise PolicyError("max_ahead", "zero or more", self.max_ahead)
        if self.max_ahead is None and self.ahead is Ahead.DIVERT:
            raise PolicyError("ahead", "drop where max_ahead is off, for nothing is too far ahead then", "divert")

    @property
    def promises(self) -> bool | None:
        """Say whether it makes CTIs of those that come in; None where none come."""
        return None if self.ctis is MergedCtis.PASS else self.ctis is MergedCtis.OLDEST

    @property
    def without(self) -> tuple[str, ...]:
        """Name the parts of the carry that a merge of this policy does not have."""
        aside = () if self.ahead is Ahead.DIVERT else (ASIDE,)
        return aside if self.promises else (*aside, PROMISE, PROMISES)

    def warnings(self) -> tuple[str, ...]:
        """Warn of a merge that orders nothing."""
        return ("a merge of one port orders nothing",) if self.ports == 1 else ()

    def words(self, stream: Described) -> list[str]:
        """Name the ports, and say how long a row waits for them, how many may wait, and which rows move none."""
        named = f"the ports are {', '.join(stream.inputs)}"
        if stream.ports is not None and stream.ports.column is not None:
            named = f"the ports are {stream.ports.column} {', '.join(str(value) for value in stream.ports.values)}"
        held = "waits on" if self.at_end.name == "HOLD" else "leaves in order"
        words = [
            f"rows leave in order of event time; {named}",
            f"a row waits until every port has shown that it has nothing earlier; what waits at the end {held}",
        ]
        if self.max_held is not None:
            each = " of each " + ", ".join(stream.by) if stream.by else ""
            words.append(f"at most {counted(self.max_held, 'row')}{each} may wait, or the run stops")
        if self.max_ahead is not None:
            gone = f"is kept unchanged in {', '.join(stream.sides)}" if stream.sides else "goes to the ledger alone"
            words.append(f"a row more than {spoken(self.max_ahead)} ahead of its arrival {gone}, and moves no port")
        promised = PROMISED.get(self.ctis)
        return words if promised is None else [*words, promised]


PROMISED = {
    MergedCtis.OLDEST: "the oldest of the ports' promises (CTIs) is its own; a port holds nothing up that it has "
    "promised to be past",
    MergedCtis.OF_PARTS: "it promises nothing: the CTIs of its inputs each bind one of several keys at a port",
    MergedCtis.OF_SOME: "it promises nothing: not every port has CTIs",
}
"""What a merge says of its CTIs, where some come in."""


class MergeTerms(NamedTuple):
    """The settings as the scan reads them."""

    width: int
    ctis: int
    flush: int
    limit: int
    max_ahead: int
    fate: int
    """Of a row that is too far ahead."""
    since: int
    """The reading from which the block goes on; held rows that are set aside leave then."""


class MergeDesk(NamedTuple):
    """Working state of one block: numbering per group, queues per group and port, links and values per row."""

    state: Records
    aside: Records
    """Numbering of what is set aside, per group; none where nothing is."""
    ports: Records
    waiting: Longs
    """Rows of each group that wait."""
    following: Longs
    value: Longs
    cursor: Longs
    """The group that may release now, or NOBODY, and the arrival of the row that released."""
    promised: Longs
    """What each group has promised."""


@compiled
def _value(rows: Rows, i):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    return rows.event_end[i] if rows.kind[i] == END else rows.event_time[i]


@compiled
def _is_ahead(terms: MergeTerms, rows: Rows, i):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Say whether a row of data is past its arrival by more than is believed."""
    if rows.kind[i] == TIMER or rows.kind[i] == CTI:
        return False
    value = _value(rows, i)
    # In this order: a null is the smallest number, and less an arrival it would wrap.
    return value > rows.arrival[i] and value - rows.arrival[i] > terms.max_ahead


@compiled
def _refuse(terms: MergeTerms, rows: Rows, i, desk: MergeDesk, out, n):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Let a row that is too far ahead leave, into the ledger or to the side; it moves no port."""
    # A held row arrived long before this block, and what leaves may not go back behind what has left (S9).
    arrival, place = max(rows.arrival[i], terms.since), rows.place[i]
    if terms.fate == SIDE:
        place = next_place(desk.aside[rows.key[i]], arrival)
    return _write(rows, i, i, rows.key[i], terms.fate, MAX_AHEAD, arrival, place, out, n)


@compiled
def _enqueue(width, rows: Rows, i, desk: MergeDesk) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    port = desk.ports[rows.key[i] * width + rows.port[i]]
    # A null is the smallest number, so it is compared as its port's highest like any that goes back (M2).
    value = max(_value(rows, i), port["highest"])
    port["highest"] = value
    desk.value[i] = value
    desk.following[i] = NOBODY
    # Queues are chains through `following`: one number a row, however the rows fall to groups and ports.
    if port["waiting"]:
        desk.following[port["tail"]] = i
    else:
        port["head"] = i
    port["tail"] = i
    port["waiting"] += 1
    desk.waiting[rows.key[i]] += 1


@compiled
def _next_port(width, group, every, desk: MergeDesk) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Give the port whose head leaves next, or NOBODY; `every` port must hold something, unless it is 0."""
    best, bound = NOBODY, INFINITY
    # Ports are few, for somebody wrote them down: to look at every head needs no structure that a cut would have to
    # keep.
    for p in range(group * width, (group + 1) * width):
        if desk.ports[p]["waiting"]:
            head = desk.ports[p]["head"]
            if best == NOBODY:
                best = p
                continue
            other = desk.ports[best]["head"]
            # Rows are numbered as they came, held ones first: among equals the smaller number has waited longest (M1).
            if desk.value[head] < desk.value[other] or (desk.value[head] == desk.value[other] and head < other):
                best = p
        elif every:
            # What comes into it yet is compared as its promise at least, and has waited less.
            bound = min(bound, desk.ports[p]["cti"])
            if bound == NULL:
                return NOBODY
    if best != NOBODY and desk.value[desk.ports[best]["head"]] > bound:
        return NOBODY
    return best


@compiled
def _write(rows: Rows, src, by, group, fate, reason, arrival, place, out, n):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    kind, time, end = rows.kind[src], rows.event_time[src], rows.event_end[src]
    write(out[n], src, group, kind, fate, reason, arrival, place, time, end, NULL, by)
    return n + 1


@compiled
def _taken(group, p, desk: MergeDesk) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Take the head off a port; what follows itself is not held: a row that left, as one that was never in a queue."""
    port = desk.ports[p]
    src = port["head"]
    port["head"] = desk.following[src]
    port["waiting"] -= 1
    desk.waiting[group] -= 1
    desk.following[src] = src
    return src


@compiled
def _promise(width, rows: Rows, group, arrival, by, desk: MergeDesk, out, n):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Take in the CTIs that nothing waits before at their port, and send the oldest of the ports' where it moved."""
    oldest = INFINITY
    for p in range(group * width, (group + 1) * width):
        port = desk.ports[p]
        while port["waiting"] and rows.kind[port["head"]] == CTI:
            src = _taken(group, p, desk)
            port["cti"] = max(port["cti"], rows.event_time[src])
        oldest = min(oldest, port["cti"])
    if oldest > desk.promised[group]:
        desk.promised[group] = oldest
        write(
            out[n], -1, group, CTI, MAIN, NONE, arrival, place_main(desk.state, group, arrival), oldest, NULL, NULL, by
        )
        n += 1
    return n


@compiled
def _release(terms: MergeTerms, rows: Rows, group, every, arrival, by, desk: MergeDesk, out, n):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Let rows of one group leave while they may; the buffer full means: call again."""
    while n < len(out):
        if terms.ctis == CTIS_MEET:
            n = _promise(terms.width, rows, group, arrival, by, desk, out, n)
            if n == len(out):
                return n
        p = _next_port(terms.width, group, every, desk)
        if p == NOBODY:
            return n
        src = _taken(group, p, desk)
        desk.ports[p]["left"] = desk.value[src]
        if rows.kind[src] != CTI or terms.ctis == CTIS_LEAVE:
            n = _write(rows, src, by, group, MAIN, NONE, arrival, place_main(desk.state, group, arrival), out, n)
    return n


@compiled
def scan(terms: MergeTerms, rows: Rows, held, i, desk: MergeDesk, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Run the merge from row `i` on until rows or buffer end, or too many of a group wait; give (next row, written).

    The first `held` rows are those of the carry: they go back into their queues, and let nothing leave, for a port of
    their group is silent. One that is too far ahead was taken in under another bound, and goes now.
    """
    n = 0
    while True:
        # The buffer may be full in the middle of a release: the cursor outlives the call, and the next one goes on with
        # it.
        if desk.cursor[0] != NOBODY:
            n = _release(terms, rows, desk.cursor[0], 1, desk.cursor[1], i - 1, desk, out, n)
            # The bound is judged behind the release: the row that comes may let all others go.
            if n == len(out) or desk.waiting[desk.cursor[0]] > terms.limit:
                return i, n
            desk.cursor[0] = NOBODY
        if i == len(rows.kind):
            return i, n
        if rows.kind[i] == READING:
            i += 1
        elif rows.kind[i] == FINAL:
            for group in range(len(desk.state)):
                if terms.flush:
                    n = _release(terms, rows, group, 0, rows.arrival[i], i, desk, out, n)
            if n == len(out):
                return i, n
            i += 1
        elif rows.port[i] < 0:
            if n == len(out):
                return i, n
            n = _write(rows, i, i, rows.key[i], DROPPED, UNKNOWN_PORT, rows.arrival[i], rows.place[i], out, n)
            i += 1
        elif _is_ahead(terms, rows, i):
            if n == len(out):
                return i, n
            n = _refuse(terms, rows, i, desk, out, n)
            i += 1
        else:
            _enqueue(terms.width, rows, i, desk)
            if i >= held:
                desk.cursor[0] = rows.key[i]
                desk.cursor[1] = rows.arrival[i]
            i += 1


@compiled
def _still_held(rows: Rows, desk: MergeDesk):  # type: ignore[no-untyped-def]  # noqa: ANN202
    kept = np.empty(len(rows.kind), dtype=np.int64)
    n = 0
    for i in range(len(rows.kind)):
        if desk.following[i] != i:
            kept[n] = i
            n += 1
    return kept[:n]


class Merge(Timeless):
    """Let the smallest head leave once every port holds something, among equals the one that waited longest.

    A value below its own port's maximum is compared as that maximum, and so is a null one; fields do not change.
    Where a port is silent everything waits: put a heartbeat before it. A row of data that is past its arrival by more
    than `max_ahead` goes into the ledger, or to the side, and moves nothing. A CTI waits only for what came before it
    at its port; the oldest of the ports' newest leaves when it moves.

    Laws: rows in = rows out + rows set aside + rows held + ledger; without the rows that are too far ahead all others
    leave as they do; each port keeps its order; rows leave in the order of the values they are compared by; cuts do
    not matter; CTIs strictly increase; no event leaves behind a CTI if none comes behind one at its port.

    Args:
        policy: the settings.
        carry: part "state", the numbering of each group, part "ports", one record a group and port (group-major), and,
            where rows are set aside, part "aside", the numbering of those; where it promises, parts "promise" and
            "promises", the newest CTI of each group and of each port.
        blind: not looked at; a merge judges no silence.
        capacity: rows of the output buffer.
    """

    name = "merge"
    smallest = MergePolicy(ports=1)
    parts: tuple[CarryPart, ...] = (
        CarryPart("state", Per.KEY, STATE, INSTANTS),
        CarryPart("ports", Per.PORT, CARRIED_PORT, INSTANTS),
        CarryPart(ASIDE, Per.KEY, STATE, INSTANTS),
        CarryPart(PROMISE, Per.KEY, CARRIED_PROMISE, INSTANTS),
        CarryPart(PROMISES, Per.PORT, CARRIED_PROMISE, INSTANTS),
    )
    since = NULL
    """The reading from which the carry goes on, in ticks."""

    def __init__(
        self,
        policy: MergePolicy,
        carry: Mapping[str, Records] = MappingProxyType({}),
        blind: Blind = NO_BLIND,  # noqa: ARG002 - every operator is built alike
        capacity: int = OUT_CAPACITY,
    ) -> None:
        self.policy = policy
        self.parts = tuple(part for part in Merge.parts if part.name not in policy.without)
        self.records = taken_up(self.parts, carry)
        self._limit = INFINITY if policy.max_held is None else policy.max_held
        self._capacity = capacity

    def grow(self, keys: int, events: int = 0) -> None:  # noqa: ARG002 - a merge knows no event ids
        """Make room for `keys` groups."""
        grow(self.parts, self.records, keys, self.policy.ports)

    def feed(self, rows: Rows, held: int = 0) -> Iterator[Records]:
        """Take in the held rows (the first `held`) and then new ones in order; give what leaves.

        Raises:
            MergeFull: after some row more of its group wait than `max_held` allows, however rows are cut or bucketed.
        """
        desk = self._desk(len(rows.kind))
        out, terms = out_buffer(self._capacity), self._terms()
        yield from drain(lambda i: self._step(terms, rows, held, i, desk, out), 0, len(rows.kind), out)
        self.records["ports"]["left"] = desk.ports["left"]
        if self.policy.ctis is MergedCtis.OLDEST:
            self.records[PROMISE]["cti"], self.records[PROMISES]["cti"] = desk.promised, desk.ports["cti"]
        self.held = _still_held(rows, desk)

    def _step(self, terms: MergeTerms, rows: Rows, held: int, i: int, desk: MergeDesk, out: Records) -> tuple[int, int]:
        i, written = scan(terms, rows, held, i, desk, out)
        if desk.cursor[0] != NOBODY and written < len(out):
            raise MergeFull(int(desk.waiting[desk.cursor[0]]), terms.limit)
        return i, written

    def _terms(self) -> MergeTerms:
        policy = self.policy
        return MergeTerms(
            width=policy.ports,
            ctis=int(policy.ctis),
            flush=int(policy.at_end),
            limit=self._limit,
            max_ahead=INFINITY if policy.max_ahead is None else policy.max_ahead,
            fate=SIDE if policy.ahead is Ahead.DIVERT else DROPPED,
            since=self.since,
        )

    def _desk(self, rows: int) -> MergeDesk:
        ports = np.zeros(len(self.records["ports"]), dtype=PORT)
        # Held rows are put into their queues anew and raise `highest` again, so the carry needs only what left last.
        ports["left"] = ports["highest"] = self.records["ports"]["left"]
        promised = np.full(len(self.records["state"]), NULL, dtype=np.int64)
        ports["cti"] = NULL
        if self.policy.ctis is MergedCtis.OLDEST:
            promised, ports["cti"] = self.records[PROMISE]["cti"].copy(), self.records[PROMISES]["cti"]
            # A promise raises the port as a row would, but leads it nowhere: it is no row that left.
            ports["highest"] = np.maximum(ports["left"], ports["cti"])
        return MergeDesk(
            self.records["state"],
            self.records.get(ASIDE, self.records["state"][:0]),
            ports,
            np.zeros(len(self.records["state"]), dtype=np.int64),
            np.arange(rows, dtype=np.int64),
            np.zeros(rows, dtype=np.int64),
            np.array([NOBODY, NULL], dtype=np.int64),
            promised,
        )
