"""Rows as the scans see them: columns of integers, in order, with no engine behind them.

Time is a plain int64 count of ticks (1 tick is 1 µs, from 1970-01-01 UTC). A null time is `NULL`; `INFINITY` is the
instant of a CTI that closes a stream. Readable times are the years 1 to 9999, so neither can be an event's.

Rules of docs/semantics.md: S1, S3
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from pipelines.errors import Exit, PulselineError

TICKS_PER_SECOND = 1_000_000
NULL = -(2**63)
INFINITY = 2**63 - 1
MIN_TIME = -62_135_596_800_000_000
MAX_TIME = 253_402_300_799_999_998

Longs = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.int8]
Records = npt.NDArray[np.void]


class Kind(IntEnum):
    """What a row is; rows of the first five kinds stand in streams, the last two only steer a scan."""

    DATA = 0
    """A point or an interval event."""
    START = 1
    """The start edge of an event whose end is not known yet."""
    END = 2
    """The end edge of an event."""
    TIMER = 3
    """A timer tuple of a heartbeat: time moved while data was silent."""
    CTI = 4
    """A promise that no event before its time will come."""
    READING = 5
    """It is now `arrival`, exclusive: every deadline before it is judged, for all keys."""
    FINAL = 6
    """The stream ends here; what happens at an end happens now."""


KIND_NAMES = ("data", "start", "end", "timer", "cti")


class Fate(IntEnum):
    """Where a row goes; main stream, side stream and ledger are filters of it, so nothing can get lost."""

    MAIN = 0
    """Leaves in the operator's main stream."""
    SIDE = 1
    """Leaves in the operator's side stream (`<stream>.diverted`, `<stream>.quarantined`)."""
    DROPPED = 2
    """Leaves in the ledger alone."""
    NOTE = 3
    """Stands for no row of the input: a line in the ledger and nothing else."""


class Reason(IntEnum):
    """Why a row has a line in the ledger; `NONE` has none."""

    NONE = 0
    LATE = 1
    """The event starts before the newest CTI."""
    LATE_END = 2
    """The end edge ends before the newest CTI."""
    START_DROPPED = 3
    """The start edge of this end edge was dropped."""
    START_MOVED = 4
    """The start edge of this end edge was moved, and the end edge carries the moved start."""
    START_DIVERTED = 5
    """The start edge of this end edge was diverted, and takes its end along."""
    ORPHAN_END = 6
    """An end edge whose start was never seen."""
    ID_REUSED = 7
    """A start edge whose id is open already."""
    MAX_AHEAD = 8
    """The timestamp runs further ahead of the row's arrival than `max_ahead` allows, and counts for nothing."""
    MAX_CATCH_UP = 9
    """The timestamp would announce more timers at once than `max_catch_up` allows, and does not count."""
    UNKNOWN_PORT = 10
    """The row names no declared port."""
    EXPIRED = 11
    """The key was silent for `expire` and its timers stop."""
    EMPTY = 12
    """The event's lifetime is empty: its end is not after its start."""
    NULL_TIME = 13
    """The event has no time, so no promise can be held against it."""
    AFTER_END = 14
    """The row came in after the stream had ended."""
    LATE_CTI = 15
    """The enqueued CTI would not move time forward."""
    FILTERED = 16
    """The condition of a filter is not true of the row."""
    MAX_WINDOWS = 17
    """The event is in more windows than `max_windows` allows, and is counted in none."""
    OUT_OF_TIME = 18
    """The event's new times would lie outside the years 1 to 9999."""
    DURATION_SET = 19
    """The end edge of an event whose duration was set when it started."""
    DUPLICATE = 20
    """The row is the same as one that stands, and comes within the span."""
    NULL_DISPATCH = 21
    """The value by which instances are told apart is null, so the row goes to the first."""
    LOOP_LIMIT = 22
    """The row would go round a loop once more than it may."""
    QUARANTINED = 23
    """The row breaks a check of each row."""


OUT = np.dtype(
    [
        ("src", "i8"),
        ("key", "i8"),
        ("kind", "i1"),
        ("fate", "i1"),
        ("reason", "i1"),
        ("arrival", "i8"),
        ("place", "i8"),
        ("event_time", "i8"),
        ("event_end", "i8"),
        ("due_at", "i8"),
        ("cti", "i8"),
        ("cti_arrival", "i8"),
        ("cti_place", "i8"),
        ("by", "i8"),
    ],
    align=True,
)
"""One row that a scan gives. `src` is the row of the input block (held rows first) that the payload comes from, -1 for
timers and generated CTIs; `event_time` and `event_end` are the times with which the row leaves (the input's own where
it does not leave); `due_at` is of a timer when it was due, of a join's result its right row, of a window's row its
accumulator, of a duplicate the remembered row, else NULL; `cti*` name the CTI that governed a violation; `by` is the
row of the input block that let it go, steering rows behind those of data, -1 for what the clock let go."""


class Rows(NamedTuple):
    """One block of input, in the operator's order; every column has one value a row and is read-only."""

    kind: Bytes
    key: Longs
    """Dense id of the row's key; 0 for all rows of a stream-wide operator."""
    port: Longs
    """Place of the row's port among the declared ones; -1 for a port nobody declared."""
    arrival: Longs
    place: Longs
    event_time: Longs
    event_end: Longs
    event_id: Longs
    """Dense id of the event that an edge belongs to; 0 where shapes need none."""


CLOCK = -1
"""`by` of what the clock let go: no row did."""
OUT_CAPACITY = 65_536


def out_buffer(capacity: int = OUT_CAPACITY) -> Records:
    """Give a buffer that a scan fills again and again while it takes in one block."""
    return np.zeros(capacity, dtype=OUT)


class Shape(IntEnum):
    """What kind of lifetime the events of a source have."""

    POINT = 0
    """An event lasts one tick from its time on."""
    INTERVAL = 1
    """An event lasts from its time to its end, both known at once."""
    EDGE = 2
    """An event comes as a start edge and, later, an end edge."""


class DescribedPorts(Protocol):
    """What of an operator's ports its words name."""

    @property
    def column(self) -> str | None:
        """Name the column whose values they are; None where they are streams."""

    @property
    def values(self) -> tuple[str | int | bool, ...]:
        """Give those values."""


class Described(Protocol):
    """What of a stream its operator's words name beside its policy."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """Name the streams and sources that it reads."""

    @property
    def by(self) -> tuple[str, ...]:
        """Name the columns along which it works."""

    @property
    def sides(self) -> tuple[str, ...]:
        """Name the streams that it sets aside."""

    @property
    def ports(self) -> DescribedPorts | None:
        """Give its ports, where it has any."""


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What a person chose for one operator, checked."""

    def words(self, stream: Described) -> list[str]:
        """Say in words what the operator does, a sentence an item."""
        raise NotImplementedError

    @property
    def promises(self) -> bool | None:
        """Say whether it makes CTIs of those that come in; None where that is the same for all of its operator."""
        return None

    def warnings(self) -> tuple[str, ...]:
        """Say what is allowed but costs more than it gives."""
        return ()


@dataclass(eq=False)
class PolicyError(PulselineError, ValueError):
    """A policy that makes no sense: says what is required, what came and what to do."""

    setting: str
    required: str
    came: object
    code = Exit.WRONG_USE
    says = "{setting} must be {required}; it is {came!r}"


class FullError(PulselineError, RuntimeError):
    """An operator was to hold more than its policy allows; nothing was dropped, reading stops."""

    stream: str
    """What it makes; empty until whoever runs it says so, for the operator itself does not know."""
