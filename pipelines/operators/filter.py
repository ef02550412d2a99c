"""Filter: let the rows through of which a condition is true.

Source: Microsoft StreamInsight, *Filtering*.

Rules of docs/semantics.md: P1, P2
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipelines.operators.pass_through import Passing
from pipelines.operators.rows import Policy, Shape

if TYPE_CHECKING:
    from pipelines.operators.rows import Described


@dataclass(frozen=True, kw_only=True)
class FilterPolicy(Policy):
    """What a person chose for one filter."""

    where: str
    """The condition, an expression over the columns of the row."""
    shape: Shape = Shape.POINT

    def warnings(self) -> tuple[str, ...]:
        """Warn of edges, of which a condition may keep one and drop the other."""
        if self.shape is not Shape.EDGE:
            return ()
        edges = "each edge is judged by its own row: where the condition does not say the same of a start and its end, "
        return (edges + "the event loses one of them",)

    def words(self, stream: Described) -> list[str]:  # noqa: ARG002 - as every policy is asked
        """Name the condition, and say where events go that it does not let through."""
        return [f"lets events through of which `{self.where}` is true; the others go to the ledger"]


class Filter(Passing):
    """Let events through of which the condition is true; where it is false or null they stand in the ledger.

    CTIs and timers always pass, so time goes on even if every event vanishes. The engine judges the condition and gives
    the others the port -1.

    Laws: every input leaves or is in the ledger; order is unchanged; cuts do not matter.
    """

    name = "filter"
    smallest = FilterPolicy(where="true")
