"""Alter duration: let every event last a fixed span from its start on.

Source: Microsoft StreamInsight, *AlterEventDuration*.

Rules of docs/semantics.md: P4
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
class AlterDurationPolicy(Policy):
    """What a person chose for one duration, in ticks (µs).

    Raises:
        PolicyError: not longer than zero, or longer than all readable time.
    """

    duration: int

    def __post_init__(self) -> None:
        if not 0 < self.duration <= MAX_TIME - MIN_TIME:
            raise PolicyError("duration", "greater than zero", self.duration)

    def words(self, stream: Described) -> list[str]:  # noqa: ARG002 - as every policy is asked
        """Say how long every event lasts."""
        return [f"every event lasts {spoken(self.duration)} from its start on"]


class AlterDuration(Passing):
    """Make every event an interval of one length; CTIs, which speak of starts, stay.

    An open event need not wait for its end any more: its start edge leaves as a whole event, and its end edge, which
    says nothing now, stands in the ledger.

    Laws: starts and CTIs are unchanged; every input leaves or is in the ledger; cuts do not matter.
    """

    name = "alter_duration"

    def change(self) -> TimeChange:
        """Say what is done to the times of a row."""
        return TimeChange(0, self.policy.duration)
