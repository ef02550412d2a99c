"""Everything that feeds and landing refuse, each with its sentence: what is required, what came, what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.flows.durations import spell

if TYPE_CHECKING:
    from collections.abc import Mapping

LANDED_TYPES = (
    "bool, int8, int16, int32, int64, float32, float64, decimal up to 38 digits, string, binary, date, timestamp, and "
    "structs and lists of these"
)


class LandingError(ValueError):
    """What was to land cannot; every error about feeds, sequences and manifests is one of these."""


class FeedMissingError(LandingError):
    """There is nothing where a feed should be."""

    def __init__(self, feed: str, looked_in: str) -> None:
        """Keep the facts as attributes."""
        super().__init__(feed, looked_in)
        self.feed, self.looked_in = feed, looked_in

    def __str__(self) -> str:
        """Say it in one sentence."""
        return f"a feed must be there; nothing is {self.feed} in {self.looked_in}: correct the path or name"


class FeedUnreadableError(LandingError):
    """A feed's file cannot be read as what it was declared to be."""

    def __init__(self, file: str, declared: str, problem: str) -> None:
        """Keep the facts as attributes."""
        super().__init__(file, declared, problem)
        self.file, self.declared, self.problem = file, declared, problem

    def __str__(self) -> str:
        """Say it in one sentence."""
        return f"{self.file} must be {self.declared}; {self.problem}: correct the file or the feed's declaration"


class ColumnsUnknownError(LandingError):
    """A folder of Parquet that is empty, and nobody declared its columns."""

    def __init__(self, folder: str) -> None:
        """Keep the facts as attributes."""
        super().__init__(folder)
        self.folder = folder

    def __str__(self) -> str:
        """Say it in one sentence."""
        return (
            f"the columns of {self.folder} must be known before it lands; it has no readable Parquet file yet: write "
            "`types:` under the feed, or put the first file there"
        )


class NotRecordedError(LandingError):
    """A source under the real clock where recorded arrivals are needed."""

    def __init__(self, source: str) -> None:
        """Keep the facts as attributes."""
        super().__init__(source)
        self.source = source

    def __str__(self) -> str:
        """Say it in one sentence."""
        return (
            f"source `{self.source}` must have recorded arrivals to be landed by intervals; it lives under the real "
            "clock: land it with `pulseline stream`"
        )


class FeedChangedError(LandingError):
    """A feed's files changed while they were read."""

    def __init__(self, source: str) -> None:
        """Keep the facts as attributes."""
        super().__init__(source)
        self.source = source

    def __str__(self) -> str:
        """Say it in one sentence."""
        return (
            f"the files of source `{self.source}` must stand still while they land; they changed: nothing was landed, "
            "run it again when whoever writes them is done"
        )


class ColumnMissingError(LandingError):
    """A source names a column that its feed does not have."""

    def __init__(self, source: str, setting: str, column: str, there: tuple[str, ...], nearest: str | None) -> None:
        """Keep the facts as attributes."""
        super().__init__(source, setting, column, there, nearest)
        self.source, self.setting, self.column, self.there, self.nearest = source, setting, column, there, nearest

    def __str__(self) -> str:
        """Say it in one sentence."""
        hint = f"; did you mean `{self.nearest}`?" if self.nearest else ""
        return (
            f"`{self.setting}: {self.column}` of source `{self.source}` must be a column of its feed, which has "
            f"{', '.join(self.there)}{hint}"
        )


class ColumnTypeError(LandingError):
    """A column has a type that its use, or landing at all, does not allow."""

    def __init__(self, source: str, column: str, came: str, allowed: str) -> None:
        """Keep the facts as attributes."""
        super().__init__(source, column, came, allowed)
        self.source, self.column, self.came, self.allowed = source, column, came, allowed

    def __str__(self) -> str:
        """Say it in one sentence."""
        where = f"column `{self.column}` of source `{self.source}`"
        return f"{where} must be {self.allowed}; it is {self.came}: cast it in the feed"


class ReservedColumnError(LandingError):
    """A feed has a column with a name that every stream needs itself."""

    def __init__(self, source: str, column: str) -> None:
        """Keep the facts as attributes."""
        super().__init__(source, column)
        self.source, self.column = source, column

    def __str__(self) -> str:
        """Say it in one sentence."""
        return (
            f"column `{self.column}` of source `{self.source}` has a name that every stream needs itself: write "
            f"`rename: {{{self.column}: {self.source}_{self.column}}}`"
        )


class DuplicateColumnError(LandingError):
    """A feed has two columns of one name."""

    def __init__(self, source: str, column: str) -> None:
        """Keep the facts as attributes."""
        super().__init__(source, column)
        self.source, self.column = source, column

    def __str__(self) -> str:
        """Say it in one sentence."""
        return f"columns of source `{self.source}` must have names of their own; two are `{self.column}`: rename one"


class TimezoneMissingError(LandingError):
    """Times without timezone, and nobody said whose they are."""

    def __init__(self, source: str, column: str, example: str) -> None:
        """Keep the facts as attributes."""
        super().__init__(source, column, example)
        self.source, self.column, self.example = source, column, example

    def __str__(self) -> str:
        """Say it in one sentence."""
        return (
            f"times of source `{self.source}` must have a timezone; `{self.column}` has none ({self.example}): write "
            "`timezone: UTC`, or whichever it is, under the feed"
        )


class NoTimeError(LandingError):
    """A feed in which no row has an arrival or an event time."""

    def __init__(self, source: str, rows: int) -> None:
        """Keep the facts as attributes."""
        super().__init__(source, rows)
        self.source, self.rows = source, rows

    def __str__(self) -> str:
        """Say it in one sentence."""
        return (
            f"a row of source `{self.source}` must have an arrival or an event time; none of its {self.rows} rows has: "
            "see whether the columns are the right ones"
        )


class SequenceBrokenError(LandingError):
    """A closed sequence of the landing is not what its manifest says."""

    def __init__(self, folder: str, problem: str) -> None:
        """Keep the facts as attributes."""
        super().__init__(folder, problem)
        self.folder, self.problem = folder, problem

    def __str__(self) -> str:
        """Say it in one sentence."""
        advice = "restore it, or use a run of another name"
        return f"a landed sequence never changes; {self.folder} has {self.problem}: {advice}"


class SequenceClosedError(SequenceBrokenError):
    """A sequence that is to land is closed already: another driver was faster."""

    def __init__(self, folder: str) -> None:
        """Keep the folder as an attribute."""
        super().__init__(folder, "a manifest already")
        self.args = (folder,)


class ReferenceBrokenError(SequenceBrokenError):
    """A feed's file that landed by reference is not what it was."""

    def __str__(self) -> str:
        """Say it in one sentence."""
        return (
            f"files that landed by reference never change; {self.folder} must be what it was, and {self.problem}: "
            "restore it, or run its interval again, which lands what is there now; files that change need "
            "`landing: copy` under the feed"
        )


class RowsRemovedError(SequenceBrokenError):
    """The rows of a sequence were removed, because the environment wants them kept only so long."""

    def __init__(self, folder: str, number: int, at: int, keep: int) -> None:
        """Keep the facts as attributes; instant and duration in ticks."""
        super().__init__(folder, "rows that were removed")
        self.args = (folder, number, at, keep)
        self.number, self.at, self.keep = number, at, keep

    def __str__(self) -> str:
        """Say what to do."""
        from pipelines.engine.columnar.columns import instant_text

        return (
            f"what landed must still be kept to be read; the rows of sequence {self.number} were removed at "
            f"{instant_text(self.at)}, under `landed: {{keep: {spell(self.keep)}}}` of the environment: put a copy of "
            f"{self.folder} from before that in its place, and keep longer from now on"
        )


class ReferenceTypeError(LandingError):
    """A column whose values do not land as they stand in the feed's files, so that these cannot stand for them."""

    def __init__(self, source: str, column: str, came: str, lands: str) -> None:
        """Keep the facts as attributes."""
        super().__init__(source, column, came, lands)
        self.source, self.column, self.came, self.lands = source, column, came, lands

    def __str__(self) -> str:
        """Say it in one sentence."""
        return (
            f"column `{self.column}` of source `{self.source}` must be {self.lands} in its files to be landed by "
            f"reference; it is {self.came}: write it so, or write `landing: copy` under the feed"
        )


class BuffersLostError(LandingError):
    """No buffer may speak for sequences that no consistent state covers."""

    def __init__(self, first: int, last: int, consistent: int, why: Mapping[str, str]) -> None:
        """Keep the facts as attributes.

        Args:
            first: the first sequence that is lost.
            last: the last one that was known to have closed.
            consistent: the newest published commit.
            why: what was found of each buffer.
        """
        super().__init__(first, last, consistent, why)
        self.first, self.last, self.consistent, self.why = first, last, consistent, why

    def __str__(self) -> str:
        """Say what is lost, what is not, and what to do."""
        found = "; ".join(f"{name}: {why}" for name, why in self.why.items())
        lost = f"sequence {self.first}" if self.first == self.last else f"sequences {self.first} to {self.last}"
        return (
            f"one of three buffers must hold what no consistent state covers; none can be trusted ({found}). "
            f"Lost: {lost}. Safe: all up to commit {self.consistent}, the last consistent state. Bring one buffer's "
            "storage back, or go on without them: pulseline stream FLOW --accept-loss, which the ledger keeps for ever"
        )


class NoRoomError(LandingError):
    """No buffer takes a sequence now; nothing is lost, and the source waits."""

    def __init__(self, why: str) -> None:
        """Keep what the storage said."""
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        """Say what happens meanwhile."""
        return f"a buffer must have room; {self.why}: the source waits, and the landing goes on when there is room"


class AllMovedError(LandingError):
    """The environment names three new places at once, so nothing is left to fill them from."""

    def __init__(self, before: tuple[str, ...], now: tuple[str, ...]) -> None:
        """Keep the facts as attributes."""
        super().__init__(before, now)
        self.before, self.now = before, now

    def __str__(self) -> str:
        """Say what to do."""
        return (
            f"at least one buffer must stay where it is when others move; they stood in {', '.join(self.before)} and "
            f"are to stand in {', '.join(self.now)}: move one or two, start, and the rest when the new ones count"
        )
