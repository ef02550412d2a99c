"""What somebody else's Delta table is refused for, each with its sentence: what is required, what came, what to do."""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.engine.landing.errors import LandingError

ANEW = "read the table anew into a run of its own (--run NAME)"


@dataclass(eq=False)
class DeltaTableMissingError(LandingError):
    """No Delta table lies where one should."""

    source: str
    table: str
    why: str
    says = "source `{source}` must have a Delta table; {table} is none that can be opened ({why}): correct `delta:`"


@dataclass(eq=False)
class TableFeatureError(LandingError):
    """A table has a feature under which its rows are not what stands in its files, or that nobody here knows."""

    source: str
    table: str
    feature: str
    remedy: str
    says = (
        "the table of source `{source}` must be one whose files can be read as they stand; {table} has {feature}: "
        "{remedy}"
    )


@dataclass(eq=False)
class VersionAheadError(LandingError):
    """A version is asked for that the table does not have yet."""

    source: str
    table: str
    version: int
    newest: int
    says = (
        "source `{source}` must name versions that {table} has; it is at version {newest}, and {version} is asked for: "
        "correct the number under the feed, or wait until it is written"
    )


@dataclass(eq=False)
class VersionsGoneError(LandingError):
    """The table's log does not hold commits any more that are to be read.

    Facts: the first and the last of them.
    """

    source: str
    table: str
    first: int
    last: int
    is_live: bool

    def __str__(self) -> str:
        go_on = (
            f"nothing was landed; go on without them with --accept-loss (the ledger keeps the range), or {ANEW}"
            if self.is_live
            else "name a version that is still there, or land the table into a run of its own (--run NAME)"
        )
        return (
            f"the log of {self.table} must hold the commits that source `{self.source}` reads; versions {self.first} "
            f"to {self.last} were cleaned away (`delta.logRetentionDuration`): {go_on}"
        )


@dataclass(eq=False)
class FileGoneError(LandingError):
    """A file that a version of the table names is not there any more: VACUUM took it."""

    source: str
    table: str
    version: int
    file: str
    is_live: bool

    def __str__(self) -> str:
        go_on = (
            f"nothing was landed; go on without it with --accept-loss (the ledger keeps its name), or {ANEW}"
            if self.is_live
            else "name a newer version, whose files are there, and keep files longer "
            "(`delta.deletedFileRetentionDuration`)"
        )
        return (
            f"version {self.version} of {self.table}, which source `{self.source}` reads, must have its files; "
            f"{self.file} is gone, as VACUUM leaves it: {go_on}"
        )


@dataclass(eq=False)
class TableReplacedError(LandingError):
    """The table is another one than the one that landed."""

    source: str
    table: str
    problem: str
    says = (
        "the table of source `{source}` must be the one that landed; {table} {problem}, so it was made anew: read it "
        "into a run of its own (--run NAME)"
    )


@dataclass(eq=False)
class RowsTakenAwayError(LandingError):
    """A commit takes rows away that were read before, and a stream cannot take them back."""

    source: str
    table: str
    version: int
    operation: str
    files: int
    flow: bool
    """Whether a flow of Pulseline writes the table."""
    recorded: bool = False
    """Whether a span of commits is read, from a version that the flow names."""

    def __str__(self) -> str:
        what = f"version {self.version} ({self.operation}) takes rows of {self.files} of its files away"
        why = "; a run of its flow was reset or run again there" if self.flow else ""
        return (
            f"{self.table} must only grow while source `{self.source}` reads its commits; {what}{why}: nothing was "
            "landed; write `changes: ledger` under the feed to go on without the rows of such commits, or "
            f"{self._or_else()}"
        )

    def _or_else(self) -> str:
        if self.recorded:
            behind = f"`versions: [{self.version + 1}]` for those behind it"
            return f"name other commits: {behind}, or `version: N` for what the table held at one"
        return f"{ANEW}, which begins with what it holds now"


@dataclass(eq=False)
class DeclaredTypeError(LandingError):
    """A flow declares a column with another type than the table has."""

    source: str
    column: str
    declared: str
    came: str
    says = (
        "`types` of source `{source}` must say of `{column}` what the table does; it says {declared}, and the table "
        "{came}: write `{column}: {came}`, or leave `types` out, and cast it in a `project`"
    )


@dataclass(eq=False)
class CommitUnreadableError(LandingError):
    """A version of the table's log makes no sense."""

    source: str
    table: str
    version: int
    problem: str
    says = (
        "version {version} in the log of {table}, which source `{source}` reads, must be one JSON object a line; "
        "{problem}: restore it, or read the table anew into a run of its own (--run NAME)"
    )
