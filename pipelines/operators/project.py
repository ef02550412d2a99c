"""Project: other columns, computed from those of each row.

Source: Microsoft StreamInsight, *Projection*.

Rules of docs/semantics.md: P1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipelines.operators.pass_through import Passing
from pipelines.operators.rows import Policy, PolicyError

if TYPE_CHECKING:
    from pipelines.operators.rows import Described


@dataclass(frozen=True, kw_only=True)
class ProjectPolicy(Policy):
    """What a person chose for one projection.

    Raises:
        PolicyError: no column.
    """

    columns: tuple[str, ...]
    """By column of the result, in order: `name=expression`."""

    def __post_init__(self) -> None:
        if not self.columns:
            raise PolicyError("columns", "at least one, such as {late: dep_delay > 15}", "none")

    def parsed(self) -> tuple[tuple[str, str], ...]:
        """Give (column, expression) for each column."""
        pairs = (text.partition("=") for text in self.columns)
        return tuple((name, told) for name, _, told in pairs)

    def words(self, stream: Described) -> list[str]:  # noqa: ARG002 - as every policy is asked
        """Say of each column of the result what it is made of."""
        return [f"{name} is {told}" for name, told in self.parsed()]


class Project(Passing):
    """Give every event the columns that are asked for, its key, and what tells one open event from another.

    Times, CTIs and timers stay as they are.

    Laws: rows in = rows out; order is unchanged; cuts do not matter.
    """

    name = "project"
