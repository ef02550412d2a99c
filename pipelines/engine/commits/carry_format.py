"""In which format a carry is written, and how one of an older format is read.

The format is the meaning of the carry's tables: which fields a part has and what they stand for. It is no part of a
flow, and changes with the code alone. Whoever changes it raises `CURRENT` and adds the upgrade from the one before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from pipelines.engine.commits.errors import CommitError
from pipelines.engine.commits.plan import carry_format
from pipelines.errors import Exit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

    from pipelines.engine.commits.history import LogState
    from pipelines.flows.model import Stream

    Upgrade = Callable[[Stream, str, pa.Table], pa.Table]
    """Gives the rows of a part of a stream's carry, such as `state`, as the next format has them."""

CURRENT = 1
"""The format that this code writes and goes on from."""


@dataclass
class Upgrades:
    """The ways from one format to the next."""

    current: int = CURRENT
    steps: Mapping[int, Upgrade] = field(default_factory=lambda: MappingProxyType({}))
    """By the format that a step begins from."""

    @property
    def oldest(self) -> int:
        """Give the oldest format from which steps lead to the current one without a gap."""
        found = self.current
        while found - 1 in self.steps:
            found -= 1
        return found

    def upgraded(self, stream: Stream, part: str, rows: pa.Table, written: int) -> pa.Table:
        """Give rows of a carry as the current format has them.

        Args:
            stream: whose carry it is.
            part: the table of the carry, such as `state`.
            rows: without `commit` and `change`.
            written: the format that they are of.

        Raises:
            UnknownCarryError: no steps lead from there.
        """
        if not self.oldest <= written <= self.current:
            raise UnknownCarryError(0, written, self.oldest, self.current)
        for format_ in range(written, self.current):
            rows = self.steps[format_](stream, part, rows)
        return rows


UPGRADES = Upgrades()


@dataclass(eq=False)
class UnknownCarryError(CommitError):
    """A carry is written in a format that this code does not know.

    Facts: the commit, its format, and the oldest and newest that are known.
    """

    commit: int
    came: int
    oldest: int
    current: int

    def __str__(self) -> str:
        known = f"{self.oldest} to {self.current}" if self.oldest < self.current else str(self.current)
        return (
            f"a carry must be of format {known}; that of commit {self.commit} is of format {self.came}: go on with the "
            "version that wrote it, or begin a run of its own (--run NAME)"
        )


@dataclass(eq=False)
class OldCarryError(CommitError):
    """A carry is written in an older format, and nobody asked for it to be written anew.

    Facts: the commit, its format, and the one that is gone on from.
    """

    commit: int
    came: int
    current: int
    code = Exit.WRONG_USE
    says = (
        "a run goes on from a carry of format {current}; that of commit {commit} is of format {came}, which can be "
        "written anew: pulseline apply FLOW"
    )


def require_current(state: LogState, commit: int) -> None:
    """See that what begins from the carry at a commit can read it as it is.

    Raises:
        OldCarryError: it is of an older format that can be upgraded.
        UnknownCarryError: it is of no format that is known here.
    """
    written = carry_format(state, commit)
    if written is None or written == UPGRADES.current:
        return
    if UPGRADES.oldest <= written < UPGRADES.current:
        raise OldCarryError(commit, written, UPGRADES.current)
    raise UnknownCarryError(commit, written, UPGRADES.oldest, UPGRADES.current)
