"""Metronome: a source of timer rows at each multiple of an interval of the clock, whatever data does.

The unvarying sibling of the Heartbeat that the vendor's page names (TIBCO StreamBase, *Using the Heartbeat Operator*,
"See Also: Metronome"). The page says no more than that its tuples come at a fixed rate, so its meaning is ours [D]:

1. It has no input. It reads the clock of its flow: the readings that close what the flow's sources landed.
2. For every multiple m of the interval, counted from 1970-01-01 UTC, with *first reading <= m < newest reading* one
   timer has left: `event_time`, `due_at` and `arrival` are m, `place` is 1, the payload is null. The first reading is
   where the run begins. A reading is exclusive, so a multiple at the very instant of a reading belongs to what follows.
3. Where readings stand changes nothing: the timers of two adjacent spans are those of the whole.
4. Blind spans: the clock was not listened to where *all* sources were blind at once. A multiple inside such a span
   [a, b) leaves at its end: `arrival` is b, `due_at` stays m, in order, `place` counting up; a multiple at b comes
   last. Where only some sources were blind, somebody read the clock, and the timers are on time.
5. At the final punctuation the multiples up to its arrival leave, and none after it.

The stream is stream-wide, so it merges as a port with stream-wide or keyed streams and is hashed like any other.

Rules of docs/semantics.md: N1, N2, N3, N4, N5
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from pipelines.operators.compiled import compiled
from pipelines.operators.heartbeat import DAY, FINEST, LONGEST
from pipelines.operators.leaving import write
from pipelines.operators.plain_words import spoken
from pipelines.operators.rows import (
    CLOCK,
    INFINITY,
    MAX_TIME,
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

STATE = np.dtype([("due", "i8"), *NUMBERING])
"""`due` is the next multiple to send: NULL before the first reading, INFINITY behind the end."""
INSTANTS = frozenset({"due", "last_arrival"})

TIMER, READING, FINAL = int(Kind.TIMER), int(Kind.READING), int(Kind.FINAL)
MAIN, NONE = int(Fate.MAIN), int(Reason.NONE)


@dataclass(frozen=True, kw_only=True)
class MetronomePolicy(Policy):
    """What a person chose for one metronome; the interval in ticks (µs).

    >>> MetronomePolicy(interval=10_000_000).warnings()
    ()

    Raises:
        PolicyError: an interval of 0 or less, or one longer than all readable time.
    """

    interval: int

    def __post_init__(self) -> None:
        if not 0 < self.interval <= LONGEST:
            raise PolicyError("interval", "greater than zero and no longer than all readable time", self.interval)

    def warnings(self) -> tuple[str, ...]:
        """Warn of an interval so short that most timers come late."""
        if self.interval >= FINEST:
            return ()
        return (f"interval is under 10 ms: {DAY // self.interval:,} timers a day, most of them late",)

    def words(self, stream: Described) -> list[str]:  # noqa: ARG002 - as every policy is asked
        """Say at which instants the timers stand."""
        return [f"a timer at each multiple of {spoken(self.interval)} of the clock"]


@compiled
def following(interval: int, instant: int) -> int:
    """Give the first multiple at or after an instant; INFINITY where it lies beyond readable time."""
    # Divided as a negative number it is rounded up, and stays exact where a float would not.
    whole = -(-instant // interval)
    return INFINITY if whole > MAX_TIME // interval else whole * interval


@compiled
def scan(interval: int, blind: Blind, rows: Rows, i, state, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Run the metronome from row `i` on until rows or buffer end; give (next row, rows written)."""
    n, s = 0, state[0]
    while i < len(rows.kind):
        kind, arrival = rows.kind[i], rows.arrival[i]
        # A reading is exclusive (S13); at the end what falls on its instant leaves (N5).
        last = arrival - 1 if kind == READING else arrival
        while n < len(out) and s["due"] != NULL and s["due"] != INFINITY:
            leaves = sighted(blind, s["due"])
            if leaves > last:
                break
            place = place_main(state, 0, leaves)
            write(out[n], -1, 0, TIMER, MAIN, NONE, leaves, place, s["due"], NULL, s["due"], CLOCK)
            n += 1
            s["due"] = following(interval, s["due"] + 1)
        if n == len(out):
            return i, n
        if kind == FINAL:
            # Not NULL: a metronome that has ended must not begin again with the next reading.
            s["due"] = INFINITY
        elif s["due"] == NULL:
            s["due"] = following(interval, arrival)
        i += 1
    return i, n


class Metronome:
    """Send a timer at each multiple of the interval that the clock passes, from its first reading on.

    Safe on any division of time into readings: the state holds the next multiple. The edge: where nobody listened,
    multiples wait for the end of the blind span and leave together.

    Laws: timers strictly increase and are multiples; each multiple between the first reading and the last leaves
    once; cuts do not matter; readings do not matter.

    Args:
        policy: the settings.
        carry: part "state", one record; empty at the beginning of a run.
        blind: spans in which none of the flow's sources was listened to.
        capacity: rows of the output buffer.
    """

    name = "metronome"
    smallest = MetronomePolicy(interval=1)
    parts = (CarryPart("state", Per.KEY, STATE, INSTANTS),)
    held = NOTHING_HELD

    def __init__(
        self,
        policy: MetronomePolicy,
        carry: Mapping[str, Records] = MappingProxyType({}),
        blind: Blind = NO_BLIND,
        capacity: int = OUT_CAPACITY,
    ) -> None:
        self.records = taken_up(self.parts, carry)
        self._interval, self._blind, self._capacity = policy.interval, blind, capacity
        self.grow(1)

    def grow(self, keys: int, events: int = 0) -> None:  # noqa: ARG002 - a metronome knows no event ids
        """Make room for the one key of a stream-wide operator."""
        grow(self.parts, self.records, keys)

    def listen(self, blind: Blind) -> None:
        """From now on know these spans in which nobody listened."""
        self._blind = blind

    def next_due(self) -> int:
        """Give the instant at which the next timer leaves; one that has not heard the clock knows none."""
        due = int(self.records["state"]["due"][0])
        return INFINITY if due in {NULL, INFINITY} else int(sighted(self._blind, due))

    def timers(self, since: int, until: int, begun: int) -> float:  # noqa: ARG002 - it has no keys
        """Estimate how many timers come before `until`."""
        due = self.next_due()
        return 0.0 if due >= until else 1.0 + (until - int(self.records["state"]["due"][0])) / self._interval

    def feed(self, rows: Rows, held: int = 0) -> Iterator[Records]:
        """Take in readings, which are all that a metronome has for rows; give the timers that they bring."""
        state, out = self.records["state"], out_buffer(self._capacity)
        return drain(lambda i: scan(self._interval, self._blind, rows, i, state, out), held, len(rows.kind), out)
