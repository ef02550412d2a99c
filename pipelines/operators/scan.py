"""What every scan has in common: blind spans, numbering, and the loop that empties a full buffer.

An operator is `(carry, rows in order) -> (rows out, carry')`. A scan that finds the output buffer full returns *before*
it changes the state of the row at hand and is called again with the same row: a full buffer is only a cut, and cuts do
not matter.

Rules of docs/semantics.md: S4, S9, S13, S21, H10
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from pipelines.operators.compiled import compiled
from pipelines.operators.rows import INFINITY, NULL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pipelines.operators.rows import Longs, Policy, Records, Rows

NUMBERING = [("last_arrival", "i8"), ("last_place", "i8")]
"""State fields of an operator that numbers its main stream."""


class Blind(NamedTuple):
    """Spans [start, end) in which nobody listened, ascending and disjoint; silence in them is not judged."""

    starts: Longs
    ends: Longs


NO_BLIND = Blind(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


class Per(Enum):
    """What one record of a carry part belongs to."""

    KEY = "key"
    """One key of the operator's scope; a stream-wide operator has one."""
    PORT = "port"
    """One key and one of the declared ports."""
    EVENT = "event"
    """One key and one event id of edges; closed ones are not kept."""
    SOME_KEY = "some key"
    """One key of those that have something to remember; fresh records are not kept."""


NOTHING_HELD = np.zeros(0, dtype=np.int64)
"""What `held` is of an operator that lets every row go at once."""


class CarryPart(NamedTuple):
    """One table of an operator's carry."""

    name: str
    per: Per
    record: np.dtype[np.void]
    instants: frozenset[str]
    """Fields that hold an instant in ticks; the others hold plain numbers."""

    def fresh(self, count: int) -> Records:
        """Give records of which nothing is known: no instant, and zero of everything that is counted."""
        records = np.zeros(count, dtype=self.record)
        for name in self.instants.intersection(self.record.names or ()):
            records[name] = NULL
        return records


def taken_up(parts: Iterable[CarryPart], carry: Mapping[str, Records]) -> dict[str, Records]:
    """Give a copy of the carried records of each part, none of one that the carry does not have."""
    # Scans write in place, and whoever handed the carry in may still read it.
    return {part.name: carry[part.name].copy() if part.name in carry else part.fresh(0) for part in parts}


def grow(parts: Iterable[CarryPart], records: dict[str, Records], keys: int, ports: int = 0, events: int = 0) -> None:
    """Lengthen the records of each part to what so many keys, of so many ports each, and event ids need."""
    needed = {Per.KEY: keys, Per.SOME_KEY: keys, Per.PORT: keys * ports, Per.EVENT: events}
    for part in parts:
        known = records[part.name]
        if len(known) < needed[part.per]:
            records[part.name] = np.concatenate([known, part.fresh(needed[part.per] - len(known))])


class Operator(Protocol):
    """A policy, its carry and its scan, as the engines drive them."""

    name: str
    smallest: Policy | None
    """A policy to have its scan compiled with; None where the scan is another's."""
    parts: tuple[CarryPart, ...]
    records: dict[str, Records]
    """The carry by part, always up to date between two calls of `feed`."""
    held: Longs
    """Rows of the last block (held ones first) that stay held, in the order they came; they are carry too."""

    def grow(self, keys: int, events: int) -> None:
        """Make room for `keys` keys and `events` event ids in all; new ones begin fresh."""

    def listen(self, blind: Blind) -> None:
        """From now on know these spans in which nobody listened."""

    def next_due(self) -> int:
        """Give the first instant at which silence alone would make something leave; INFINITY where it never would."""

    def timers(self, since: int, until: int, begun: int) -> float:
        """Estimate from above how many timers silence brings before `until`, if `begun` keys begin from `since` on."""

    def feed(self, rows: Rows, held: int) -> Iterator[Records]:
        """Take in one block, the first `held` rows of it the held ones, and give what leaves in a reused buffer."""


class Timeless:
    """An operator that judges no silence: only rows make something leave, the clock never."""

    smallest: Policy | None = None
    held: Longs = NOTHING_HELD

    def listen(self, blind: Blind) -> None:
        """Take no notice: silence is not judged here."""

    def next_due(self) -> int:
        """Say that silence alone makes nothing leave."""
        return INFINITY

    def timers(self, since: int, until: int, begun: int) -> float:  # noqa: ARG002 - as every operator is asked
        """Say that no timer is made here."""
        return 0.0


@compiled
def sighted(blind: Blind, instant: int) -> int:
    """Give the first instant at or after `instant` at which somebody listens."""
    # Spans ascend, so one that begins where this one ends is met next, and both are waited for.
    for j in range(len(blind.starts)):
        if blind.starts[j] <= instant < blind.ends[j]:
            instant = blind.ends[j]
    return instant


@compiled
def place_main(state, k, arrival):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201 - Numba infers records
    """Number the next row of key `k` in the main stream: places count from 1 within one arrival."""
    return next_place(state[k], arrival)


@compiled
def next_place(s, arrival):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Number the next row of the main stream whose state `s` is; who has an array of states hands on one record."""
    if s["last_arrival"] == arrival:
        s["last_place"] += 1
    else:
        s["last_arrival"] = arrival
        s["last_place"] = 1
    return s["last_place"]


def drain(step: Callable[[int], tuple[int, int]], first: int, length: int, out: Records) -> Iterator[Records]:
    """Call a scan until it has consumed rows `first` to `length`, giving what it wrote after each call.

    Args:
        step: from a row number to (next row, rows written into `out`).
        first: the row to begin with.
        length: rows in the block.
        out: the buffer that `step` fills.
    """
    i = first
    while True:
        i, written = step(i)
        if written:
            yield out[:written]
        # A full buffer may hide more that the last row lets go, so the scan is asked once more.
        if i >= length and written < len(out):
            return
