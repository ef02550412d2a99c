"""What filter, project, shift_time, alter_duration and loop share: a row passes, changed or not, or is dropped.

Source: Microsoft StreamInsight, *Filtering*, *Projection*, *Timestamp Modification*.

Rules of docs/semantics.md: P1, P2, P3, P4
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from pipelines.operators.compiled import compiled
from pipelines.operators.leaving import write
from pipelines.operators.rows import (
    INFINITY,
    MAX_TIME,
    MIN_TIME,
    NULL,
    OUT_CAPACITY,
    Fate,
    Kind,
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
    place_main,
    taken_up,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

STATE = np.dtype([("cti", "i8"), *NUMBERING])
INSTANTS = frozenset({"cti", "last_arrival"})
DATA, START, END, TIMER, CTI = (int(kind) for kind in (Kind.DATA, Kind.START, Kind.END, Kind.TIMER, Kind.CTI))
MAIN, DROPPED = int(Fate.MAIN), int(Fate.DROPPED)
NONE, FILTERED, OUT_OF_TIME = int(Reason.NONE), int(Reason.FILTERED), int(Reason.OUT_OF_TIME)
LATE_CTI, DURATION_SET, LOOP_LIMIT = int(Reason.LATE_CTI), int(Reason.DURATION_SET), int(Reason.LOOP_LIMIT)
REFUSED, TOO_OFTEN = -1, -2
"""The port of a row that is not let through, and of one that went round a loop as often as it may."""


class TimeChange(NamedTuple):
    """What is done to the times of a row, in ticks."""

    shift: int
    """Added to starts, ends, timers and CTIs."""
    duration: int
    """What every event lasts from its start on; 0 leaves it as it is."""


@compiled
def _moved(instant, shift) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Move an instant; no instant and infinity stay."""
    return instant if instant == NULL or instant == INFINITY else instant + shift


@compiled
def _readable(instant) -> bool:  # type: ignore[no-untyped-def]  # noqa: ANN001
    return instant == NULL or instant == INFINITY or MIN_TIME <= instant <= MAX_TIME


@compiled
def _judged(c: TimeChange, rows: Rows, i, s):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Say what becomes of a row: (reason it is dropped for, kind, start, end)."""
    kind, time, end = rows.kind[i], _moved(rows.event_time[i], c.shift), _moved(rows.event_end[i], c.shift)
    if kind == CTI:
        # A promise that would leave readable time stays one, at its edge: beyond lies infinity, the end (P3).
        time = time if time == INFINITY else min(max(time, MIN_TIME), MAX_TIME)
        if time <= s["cti"]:
            return LATE_CTI, kind, rows.event_time[i], rows.event_end[i]
        s["cti"] = time
        return NONE, kind, time, NULL
    if rows.port[i] < 0:
        reason = FILTERED if rows.port[i] == REFUSED else LOOP_LIMIT
        return reason, kind, rows.event_time[i], rows.event_end[i]
    if c.duration and kind == END:
        return DURATION_SET, kind, rows.event_time[i], rows.event_end[i]
    if c.duration and kind != TIMER and time != NULL:
        kind, end = DATA, time + c.duration
    if not (_readable(time) and _readable(end)):
        # The ledger has it as it came: no table can hold the new times.
        return OUT_OF_TIME, rows.kind[i], rows.event_time[i], rows.event_end[i]
    return NONE, kind, time, end


@compiled
def scan(c: TimeChange, rows: Rows, i, state, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Run from row `i` on until the rows or the buffer end; give (next row, rows written)."""
    n = 0
    while i < len(rows.kind):
        if rows.kind[i] > CTI:
            i += 1
            continue
        # Before the row is judged: a CTI moves its key's time, and a full buffer brings the same row again.
        if n == len(out):
            return i, n
        reason, kind, time, end = _judged(c, rows, i, state[rows.key[i]])
        key, arrival, fate, place = rows.key[i], rows.arrival[i], DROPPED, rows.place[i]
        if reason == NONE:
            fate, place = MAIN, place_main(state, key, arrival)
        write(out[n], i, key, kind, fate, reason, arrival, place, time, end, NULL, i)
        n += 1
        i += 1
    return i, n


class Passing(Timeless):
    """An operator that looks at one row at a time; those of this kind say what it changes.

    Args:
        policy: the settings.
        carry: part "state", the numbering of each key.
        blind: not looked at; silence is not judged here.
        capacity: rows of the output buffer.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    parts = (CarryPart("state", Per.KEY, STATE, INSTANTS),)

    def __init__(
        self,
        policy: Any,  # noqa: ANN401 - each operator has its own
        carry: Mapping[str, Records] = MappingProxyType({}),
        blind: Blind = NO_BLIND,  # noqa: ARG002 - every operator is built alike
        capacity: int = OUT_CAPACITY,
    ) -> None:
        self.policy = policy
        self.records = taken_up(self.parts, carry)
        self._capacity, self._change = capacity, self.change()

    def change(self) -> TimeChange:
        """Say what is done to the times of a row."""
        return TimeChange(0, 0)

    def grow(self, keys: int, events: int = 0) -> None:  # noqa: ARG002 - no event is remembered
        """Make room for `keys` keys."""
        grow(self.parts, self.records, keys)

    def feed(self, rows: Rows, held: int = 0) -> Iterator[Records]:
        """Take in rows in order; give what leaves or is dropped, each with its fate."""
        state, out = self.records["state"], out_buffer(max(1, self._capacity))
        return drain(lambda i: scan(self._change, rows, i, state, out), held, len(rows.kind), out)
