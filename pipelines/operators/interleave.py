"""Interleave: rows of several streams at once, in the order in which a row would have been worked on to its end.

Source: TIBCO StreamBase, *StreamBase Execution Order and Concurrency*; its Union.

Rules of docs/semantics.md: X1, X2, X3, X10
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from pipelines.operators.compiled import compiled
from pipelines.operators.leaving import write
from pipelines.operators.meeting import oldest
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

STATE = np.dtype([("cti", "i8"), *NUMBERING])
SIDES = np.dtype([("cti", "i8")])
CTI, MAIN, NONE = int(Kind.CTI), int(Fate.MAIN), int(Reason.NONE)


@dataclass(frozen=True, kw_only=True)
class InterleavePolicy(Policy):
    """What follows for one interleave from the flow that it stands in.

    Raises:
        PolicyError: fewer than two sides.
    """

    ports: int
    """How many streams meet."""
    declared: tuple[str, ...] = ()
    """The streams that its rows come from, and itself, in the order in which the file has them: that of branches."""

    alone: bool = False
    """Each key comes by one side alone, as where instances of a module share out the keys: its CTIs wait for nobody,
    and those that the other sides send are left out."""
    dealt_of: tuple[str, ...] = ()
    """Of sides that share out the keys: the columns that say, by a hash, which side a key comes by."""
    dealt_numeric: str = ""
    """Or the expression that says it."""
    rounds: str = ""
    """The stream whose rows go round in a loop: its inputs are the rounds, the first one first; empty where none do."""

    def __post_init__(self) -> None:
        if self.ports < 2:  # noqa: PLR2004 - one stream has an order
            raise PolicyError("interleave", "at least two streams", self.ports)
        if (self.dealt_of or self.dealt_numeric) and not self.alone:
            raise PolicyError("interleave", "sides that share out keys", "sides that have all of them")

    def words(self, stream: Described) -> list[str]:  # noqa: ARG002 - as every policy is asked
        """Say that nothing waits, and by what rows of several branches keep their order."""
        turns = "rows leave at once, what one row brought about before what the next one did, branch by branch"
        return [f"{turns}; those that come from no stream in common by arrival and time"]


@compiled
def scan(width, alone, rows: Rows, i, state, ports, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Run from row `i` on until the rows or the buffer end; give (next row, rows written)."""
    n = 0
    while i < len(rows.kind):
        if rows.kind[i] > CTI:
            i += 1
            continue
        if n == len(out):
            return i, n
        kind, k, arrival, time = rows.kind[i], rows.key[i], rows.arrival[i], rows.event_time[i]
        s = state[k]
        if kind != CTI:
            end, place = rows.event_end[i], next_place(s, arrival)
            write(out[n], i, k, kind, MAIN, NONE, arrival, place, time, end, NULL, i)
            n += 1
        else:
            port = ports[k * width + rows.port[i]]
            port["cti"] = max(port["cti"], time)
            older = port["cti"] if alone else oldest(ports, k, width)
            if older > s["cti"]:
                s["cti"] = older
                write(out[n], -1, k, CTI, MAIN, NONE, arrival, next_place(s, arrival), older, NULL, NULL, i)
                n += 1
        i += 1
    return i, n


class Interleave(Timeless):
    """Let the rows of all sides leave at once and in order; the engine has put them there, by the turns of their fork.

    A CTI leaves when the older of the sides' newest moves: no event leaves behind it, as each side keeps its own. Where
    each key comes by one side alone, it leaves as it comes.

    Laws: every row of data and every timer leaves, each side's in its order; CTIs strictly increase; cuts do not
    matter.

    Args:
        policy: how many sides there are.
        carry: part "state", the CTI and the numbering of each key, and part "ports", the CTI of each side (key-major).
        blind: not looked at; silence is not judged here.
        capacity: rows of the output buffer.
    """

    name = "interleave"
    smallest = InterleavePolicy(ports=2)
    parts = (
        CarryPart("state", Per.KEY, STATE, frozenset({"cti", "last_arrival"})),
        CarryPart("ports", Per.PORT, SIDES, frozenset({"cti"})),
    )

    def __init__(
        self,
        policy: InterleavePolicy,
        carry: Mapping[str, Records] = MappingProxyType({}),
        blind: Blind = NO_BLIND,  # noqa: ARG002 - every operator is built alike
        capacity: int = OUT_CAPACITY,
    ) -> None:
        self.policy = policy
        self.records = taken_up(self.parts, carry)
        self._capacity = capacity

    def grow(self, keys: int, events: int = 0) -> None:  # noqa: ARG002 - no event is remembered
        """Make room for `keys` keys."""
        grow(self.parts, self.records, keys, self.policy.ports)

    def feed(self, rows: Rows, held: int = 0) -> Iterator[Records]:
        """Take in rows in order; give what leaves."""
        state, ports, out = self.records["state"], self.records["ports"], out_buffer(max(1, self._capacity))
        width, alone = self.policy.ports, self.policy.alone
        return drain(lambda i: scan(width, alone, rows, i, state, ports, out), held, len(rows.kind), out)
