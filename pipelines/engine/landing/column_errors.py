"""What is refused of columns that are not what a flow declares: as they come in, and as they landed before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from pipelines.engine.landing.errors import FeedUnreadableError, LandingError


class Breach(NamedTuple):
    """How a row, or a file, is not what was declared."""

    setting: str
    """The feed's setting that says what becomes of it: `missing` or `retyped`."""
    column: str
    required: str
    came: str


@dataclass(eq=False)
class OtherColumnsError(FeedUnreadableError):
    """A file lacks a declared column, or has one of another type."""

    breach: Breach


@dataclass(eq=False)
class ColumnBrokenError(LandingError):
    """Rows came whose columns are not the declared ones, and the flow says that the landing stops there."""

    source: str
    where: str
    breach: Breach

    def __str__(self) -> str:
        """Say where, what, and what to do."""
        setting, column, required, came = self.breach
        return (
            f"column `{column}` of source `{self.source}` must be {required}; {self.where}: {came}. Nothing of this "
            f"reading landed: mend the sender, or write `{setting}: ledger` under the feed, and start again"
        )


@dataclass(eq=False)
class LandedColumnError(LandingError):
    """A column landed with a type whose values are none of the type that the flow declares now."""

    sequence: int
    source: str
    column: str
    landed: str
    declared: str
    says = (
        "column `{column}` of source `{source}` must have landed as {declared}, or as a type that becomes it; in "
        "sequence {sequence} it landed as {landed}: declare it so, or as string and cast it in a `project`, or begin "
        "with what comes from now on (--run NAME)"
    )
