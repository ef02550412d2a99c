"""Loop: rows go through a module in rounds, and what it gives back goes round again.

Source: TIBCO StreamBase, *StreamBase Execution Order and Concurrency*, loops.

Rules of docs/semantics.md: X5
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipelines.operators.pass_through import Passing
from pipelines.operators.rows import Policy, PolicyError

if TYPE_CHECKING:
    from pipelines.operators.rows import Described


@dataclass(frozen=True, kw_only=True)
class LoopPolicy(Policy):
    """What goes round in one loop.

    Raises:
        PolicyError: no round at all.
    """

    entry: str
    """What its module calls its input."""
    out: str
    """The stream of the module whose rows leave."""
    back: str
    """The stream of the module whose rows go round again."""
    most_rounds: int = 100
    """How often a row may go through the module."""

    def __post_init__(self) -> None:
        if self.most_rounds < 1:
            raise PolicyError("most_rounds", "1 or more", self.most_rounds)

    def words(self, stream: Described) -> list[str]:  # noqa: ARG002 - as every policy is asked
        """Say what leaves the loop, what goes round again, and how often at most."""
        again = f"what `{self.back}` gives goes round again as `{self.entry}`, at most {self.most_rounds} times in all"
        return [f"what `{self.out}` gives leaves; {again}"]


class Loop(Passing):
    """Let rows leave in the order of their turns and rounds; the engine has brought them there.

    CTIs and timers pass in their turn. The engine gives rows that would go round too often the port -2.

    Laws: every row leaves or is in the ledger; a row that went round too often is told of; cuts do not matter.
    """

    name = "loop"
    smallest = LoopPolicy(entry="x", out="out", back="back")
