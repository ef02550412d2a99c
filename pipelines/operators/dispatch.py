"""Dispatch: the rows of a stream that one of several instances of a module gets.

Source: TIBCO StreamBase, *StreamBase Execution Order and Concurrency*, dispatch styles.

Rules of docs/semantics.md: X13
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from pipelines.operators.compiled import compiled
from pipelines.operators.leaving import write
from pipelines.operators.rows import (
    NULL,
    OUT_CAPACITY,
    Fate,
    Kind,
    Policy,
    PolicyError,
    Reason,
    Records,
    Rows,
    Shape,
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
    taken_up,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipelines.operators.rows import Described

STATE = np.dtype([("taken", "i8"), *NUMBERING])
TIMER, CTI = int(Kind.TIMER), int(Kind.CTI)
MAIN, NONE, NULL_DISPATCH = int(Fate.MAIN), int(Reason.NONE), int(Reason.NULL_DISPATCH)
EVERY, NOWHERE = -1, -2
"""The port of a row that every instance gets, and of one of which the value is null."""


class DispatchStyle(IntEnum):
    """To which instance a row goes."""

    BROADCAST = 0
    """To all."""
    IN_TURN = 1
    """To one after the other, from the first on, whatever the row says."""
    NUMERIC = 2
    """To the remainder of a whole number by how many there are."""
    OF = 3
    """To one by a fixed hash of columns."""


BROADCAST, IN_TURN = int(DispatchStyle.BROADCAST), int(DispatchStyle.IN_TURN)


@dataclass(frozen=True, kw_only=True)
class DispatchPolicy(Policy):
    """What one instance gets of one input.

    Raises:
        PolicyError: no instance, an instance that is none of them, or a style without what it goes by.
    """

    style: DispatchStyle
    instances: int
    """How many there are."""
    instance: int
    """Which one this is, from 0."""
    numeric: str = ""
    """A whole number, as an expression over the columns of the row."""
    of: tuple[str, ...] = ()
    shape: Shape = Shape.POINT

    def __post_init__(self) -> None:
        if self.instances < 1:
            raise PolicyError("instances", "1 or more", self.instances)
        if not 0 <= self.instance < self.instances:
            raise PolicyError("instance", f"0 to {self.instances - 1}", self.instance)
        if bool(self.numeric) != (self.style is DispatchStyle.NUMERIC):
            raise PolicyError("numeric", "an expression, under that style alone", self.numeric)
        if bool(self.of) != (self.style is DispatchStyle.OF):
            raise PolicyError("of", "at least one column, under that style alone", self.of)
        if self.style is DispatchStyle.IN_TURN and self.shape is Shape.EDGE:
            raise PolicyError("dispatch", "by the key or the event_id of edges, or broadcast", "in_turn")

    def words(self, stream: Described) -> list[str]:  # noqa: ARG002 - as every policy is asked
        """Say which rows this instance gets: all, those whose turn it is, or its part of the keys or numbers."""
        which = f"instance {self.instance} of {self.instances}"
        told = {
            DispatchStyle.BROADCAST: "all rows",
            DispatchStyle.IN_TURN: f"every row whose turn it is, one in {self.instances}",
            DispatchStyle.NUMERIC: f"rows of which `{self.numeric}` mod {self.instances} is {self.instance}",
            DispatchStyle.OF: f"rows of its part of {', '.join(self.of)}, by a fixed hash",
        }
        return [f"what goes to {which}: {told[self.style]}"]


@compiled
def scan(instances, instance, style, rows: Rows, i, state, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Run from row `i` on until the rows or the buffer end; give (next row, rows written)."""
    n = 0
    while i < len(rows.kind):
        if rows.kind[i] > CTI:
            i += 1
            continue
        if n == len(out):
            return i, n
        kind, k, arrival = rows.kind[i], rows.key[i], rows.arrival[i]
        s, to, reason = state[k], rows.port[i], NONE
        if kind == CTI or style == BROADCAST or (style == IN_TURN and kind == TIMER):
            to = EVERY
        elif style == IN_TURN:
            to = s["taken"] % instances
            s["taken"] += 1
        elif to == NOWHERE:
            to, reason = 0, NULL_DISPATCH
        if to == EVERY or to == instance:
            time, end, place = rows.event_time[i], rows.event_end[i], next_place(s, arrival)
            write(out[n], i, k, kind, MAIN, reason, arrival, place, time, end, NULL, i)
            n += 1
        i += 1
    return i, n


class Dispatch(Timeless):
    """Let the rows leave that one instance gets; the others leave nothing here, for another instance has them.

    Laws: each row of data goes to one instance or to all, and CTIs go to all; order is unchanged; cuts do not matter.

    Args:
        policy: the settings.
        carry: part "state", the numbering of each key, and how many rows were dealt out in turn.
        blind: not looked at; silence is not judged here.
        capacity: rows of the output buffer.
    """

    name = "dispatch"
    smallest = DispatchPolicy(style=DispatchStyle.BROADCAST, instances=1, instance=0)
    parts = (CarryPart("state", Per.KEY, STATE, frozenset({"last_arrival"})),)

    def __init__(
        self,
        policy: DispatchPolicy,
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
        """Take in rows in order; give what the instance gets."""
        policy, state, out = self.policy, self.records["state"], out_buffer(max(1, self._capacity))
        of, style = (policy.instances, policy.instance), int(policy.style)
        return drain(lambda i: scan(*of, style, rows, i, state, out), held, len(rows.kind), out)
