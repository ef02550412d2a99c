"""Shift time: move events, and the promises about them, by a fixed span.

Source: Microsoft StreamInsight, *ShiftEventTime*.

Rules of docs/semantics.md: P3
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipelines.operators.pass_through import Passing, TimeChange
from pipelines.operators.plain_words import spoken
from pipelines.operators.rows import MAX_TIME, MIN_TIME, Policy, PolicyError

if TYPE_CHECKING:
    from pipelines.operators.rows import Described


@dataclass(frozen=True, kw_only=True)
class ShiftTimePolicy(Policy):
    """What a person chose for one shift, in ticks (µs); less than zero moves into the past.

    Raises:
        PolicyError: longer than all readable time.
    """

    shift: int

    def __post_init__(self) -> None:
        if abs(self.shift) > MAX_TIME - MIN_TIME:
            raise PolicyError("shift", "no longer than all readable time", self.shift)

    def warnings(self) -> tuple[str, ...]:
        """Warn of a shift of zero."""
        return ("a shift of zero changes nothing",) if not self.shift else ()

    def words(self, stream: Described) -> list[str]:  # noqa: ARG002 - as every policy is asked
        """Say how far events and promises move, and which way."""
        where = "later" if self.shift >= 0 else "earlier"
        return [f"events and promises are {spoken(abs(self.shift))} {where}"]


class ShiftTime(Passing):
    """Move starts, ends, timers and CTIs by the same span; a CTI at infinity stays.

    The edge: an event that would leave the years 1 to 9999 stands in the ledger; a CTI stands at their edge.

    Laws: durations are unchanged; CTIs strictly increase; every input leaves or is in the ledger; cuts do not matter.
    """

    name = "shift_time"

    def change(self) -> TimeChange:
        """Say what is done to the times of a row."""
        return TimeChange(self.policy.shift, 0)
