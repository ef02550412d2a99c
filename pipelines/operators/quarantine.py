"""Quarantine: what breaks a check of each row goes aside, with the checks that it breaks; the others pass.

Great Expectations says what a check means; StreamInsight's filter, what becomes of CTIs and timers.

Rules of docs/semantics.md: P1, P5, P6
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pipelines.operators.compiled import compiled
from pipelines.operators.leaving import write
from pipelines.operators.rows import NULL, OUT_CAPACITY, Fate, Kind, Policy, PolicyError, Reason, Shape, out_buffer
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
    taken_up,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipelines.operators.rows import Described, Records, Rows

STATE = np.dtype([("cti", "i8"), *NUMBERING])
NUMBERED = np.dtype(NUMBERING)
INSTANTS = frozenset({"cti", "last_arrival"})
ASIDE = "aside"
"""The part of the carry that numbers what goes aside; fresh for a key of which nothing did."""
CTI, MAIN, SIDE, DROPPED = int(Kind.CTI), int(Fate.MAIN), int(Fate.SIDE), int(Fate.DROPPED)
NONE, LATE_CTI, QUARANTINED = int(Reason.NONE), int(Reason.LATE_CTI), int(Reason.QUARANTINED)
BROKEN = -1
"""The port of a row that breaks a check."""


class Rule(NamedTuple):
    """One check, as far as the operator needs it."""

    check: str
    """Its name among those of its stream, as quarantined rows and the ledger say it."""
    keeps: str
    """An expression over the columns of a row: not true of those that break the check."""
    equal: tuple[str, ...] = ()
    """Columns whose values it asks to be equal."""


@dataclass(frozen=True, kw_only=True)
class QuarantinePolicy(Policy):
    """What a person chose for one quarantine.

    >>> QuarantinePolicy(rules=(Rule("expect_column_values_to_not_be_null(id)", "`id` IS NOT NULL"),)).warnings()
    ()

    Raises:
        PolicyError: no check.
    """

    rules: tuple[Rule, ...]
    """In the order of the flow."""
    shape: Shape = Shape.POINT

    def __post_init__(self) -> None:
        if not self.rules:
            raise PolicyError("expect", "at least one blocking check of each row", "none")

    def warnings(self) -> tuple[str, ...]:
        """Warn of edges, of which one may break a check and the other not."""
        if self.shape is not Shape.EDGE:
            return ()
        edges = "each edge is judged by its own row: where a check does not say the same of a start and its end, "
        return (edges + "one of them goes into quarantine alone",)

    def words(self, stream: Described) -> list[str]:  # noqa: ARG002 - as every policy is asked
        """Say what happens to events that break a check, and name each check."""
        return ["lets events through that keep each of its checks; the others go aside", *(r.check for r in self.rules)]


@compiled
def scan(rows: Rows, i, state, aside, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Run from row `i` on until the rows or the buffer end; give (next row, rows written)."""
    n = 0
    while i < len(rows.kind):
        kind, key, arrival, time = rows.kind[i], rows.key[i], rows.arrival[i], rows.event_time[i]
        if kind > CTI:
            i += 1
            continue
        # Before the row is judged: a CTI moves its key's time, and a full buffer brings the same row again.
        if n == len(out):
            return i, n
        fate, reason, place = MAIN, NONE, rows.place[i]
        if kind == CTI and time <= state[key]["cti"]:
            fate, reason = DROPPED, LATE_CTI
        elif rows.port[i] == BROKEN:
            fate, reason = SIDE, QUARANTINED
            place = next_place(aside[key], arrival)
        else:
            if kind == CTI:
                state[key]["cti"] = time
            place = next_place(state[key], arrival)
        write(out[n], i, key, kind, fate, reason, arrival, place, time, rows.event_end[i], NULL, i)
        n += 1
        i += 1
    return i, n


class Quarantine(Timeless):
    """Let events through that keep every check; the others leave in `<stream>.quarantined`.

    CTIs and timers always pass, so time goes on even if every event goes aside. The engine judges the checks and gives
    what breaks one the port -1.

    Laws: every input leaves in one stream or the other; the order of both is that of the input; cuts do not matter.

    Args:
        policy: the settings.
        carry: part "state", the numbering of each key, and "aside", that of what went aside.
        blind: not looked at; silence is not judged here.
        capacity: rows of the output buffer.
    """

    name = "quarantine"
    smallest = QuarantinePolicy(rules=(Rule("any", "true"),))
    parts = (CarryPart("state", Per.KEY, STATE, INSTANTS), CarryPart(ASIDE, Per.KEY, NUMBERED, INSTANTS))

    def __init__(
        self,
        policy: Any,  # noqa: ANN401 - as every operator takes it
        carry: Mapping[str, Records] = MappingProxyType({}),
        blind: Blind = NO_BLIND,  # noqa: ARG002 - every operator is built alike
        capacity: int = OUT_CAPACITY,
    ) -> None:
        self.policy = policy
        self.records = taken_up(self.parts, carry)
        self._capacity = capacity

    def grow(self, keys: int, events: int = 0) -> None:  # noqa: ARG002 - no event is remembered
        """Make room for `keys` keys."""
        grow(self.parts, self.records, keys)

    def feed(self, rows: Rows, held: int = 0) -> Iterator[Records]:
        """Take in rows in order; give what leaves, in either stream, or is dropped, each with its fate."""
        state, aside, out = self.records["state"], self.records[ASIDE], out_buffer(max(1, self._capacity))
        return drain(lambda i: scan(rows, i, state, aside, out), held, len(rows.kind), out)
