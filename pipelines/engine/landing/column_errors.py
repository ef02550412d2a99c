"""What is refused of columns that are not what a flow declares: as they come in, and as they landed before."""

from __future__ import annotations

from typing import NamedTuple

from pipelines.engine.landing.errors import FeedUnreadableError, LandingError


class Breach(NamedTuple):
    """How a row, or a file, is not what was declared."""

    setting: str
    """The feed's setting that says what becomes of it: `missing` or `retyped`."""
    column: str
    required: str
    came: str


class OtherColumnsError(FeedUnreadableError):
    """A file lacks a declared column, or has one of another type."""

    def __init__(self, file: str, declared: str, problem: str, breach: Breach) -> None:
        """Keep the facts as attributes."""
        super().__init__(file, declared, problem)
        self.args = (file, declared, problem, breach)
        self.breach = breach


class ColumnBrokenError(LandingError):
    """Rows came whose columns are not the declared ones, and the flow says that the landing stops there."""

    def __init__(self, source: str, where: str, breach: Breach) -> None:
        """Keep the facts as attributes."""
        super().__init__(source, where, breach)
        self.source, self.where, self.breach = source, where, breach

    def __str__(self) -> str:
        """Say where, what, and what to do."""
        setting, column, required, came = self.breach
        return (
            f"column `{column}` of source `{self.source}` must be {required}; {self.where}: {came}. Nothing of this "
            f"reading landed: mend the sender, or write `{setting}: ledger` under the feed, and start again"
        )


class LandedColumnError(LandingError):
    """A column landed with a type whose values are none of the type that the flow declares now."""

    def __init__(self, sequence: int, source: str, column: str, landed: str, declared: str) -> None:
        """Keep the facts as attributes."""
        super().__init__(sequence, source, column, landed, declared)
        self.sequence, self.source, self.column = sequence, source, column
        self.landed, self.declared = landed, declared

    def __str__(self) -> str:
        """Say it in one sentence."""
        return (
            f"column `{self.column}` of source `{self.source}` must have landed as {self.declared}, or as a type that "
            f"becomes it; in sequence {self.sequence} it landed as {self.landed}: declare it so, or as string and cast "
            "it in a `project`, or begin with what comes from now on (--run NAME)"
        )
