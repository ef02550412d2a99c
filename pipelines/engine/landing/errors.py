"""Everything that feeds and landing refuse, each with its sentence: what is required, what came, what to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pipelines.errors import Exit, PulselineError
from pipelines.flows.durations import spell

if TYPE_CHECKING:
    from collections.abc import Mapping

LANDED_TYPES = (
    "bool, int8, int16, int32, int64, float32, float64, decimal up to 38 digits, string, binary, date, timestamp, and "
    "structs and lists of these"
)


class LandingError(PulselineError, ValueError):
    """What was to land cannot; every error about feeds, sequences and manifests is one of these."""

    code = Exit.WRONG_USE


@dataclass(eq=False)
class FeedMissingError(LandingError):
    """There is nothing where a feed should be."""

    feed: str
    looked_in: str
    says = "a feed must be there; nothing is {feed} in {looked_in}: correct the path or name"

    def __str__(self) -> str:
        """Say of an address that none is read."""
        if "://" in self.feed:
            return f"a feed must be a file or folder of this machine; {self.feed} is an address: copy it here first"
        return super().__str__()


@dataclass(eq=False)
class FolderEmptyError(FeedMissingError):
    """A feed's folder has no file of its kind, so nothing says which columns it has."""

    says = (
        "a folder must hold a file of its feed's kind; nothing is {feed} in {looked_in}: correct the path, bring its "
        "files back, or, where it has no rows any more, put a file there that has the columns and no rows"
    )


@dataclass(eq=False)
class FeedUnreadableError(LandingError):
    """A feed's file cannot be read as what it was declared to be."""

    file: str
    declared: str
    problem: str
    """In our own words: they stand in the ledger, whose content hash no other version of a library may change."""
    says = "{file} must be {declared}; {problem}: correct the file or the feed's declaration"

    def __str__(self) -> str:
        """Say also what the library said that could not read it."""
        return f"{self.in_ledger} ({self.__cause__})" if self.__cause__ else self.in_ledger

    @property
    def in_ledger(self) -> str:
        """Say what the ledger says of the file."""
        return super().__str__()


def in_ledger(error: Exception) -> str:
    """Say of an error what the ledger says: no words of a library."""
    return error.in_ledger if isinstance(error, FeedUnreadableError) else str(error)


@dataclass(eq=False)
class ColumnsUnknownError(LandingError):
    """A folder of Parquet that is empty, and nobody declared its columns."""

    folder: str
    says = (
        "the columns of {folder} must be known before it lands; it has no readable Parquet file yet: write `types:` "
        "under the feed, or put the first file there"
    )


@dataclass(eq=False)
class NotRecordedError(LandingError):
    """A source under the real clock where recorded arrivals are needed."""

    source: str
    says = (
        "source `{source}` must have recorded arrivals to be landed by intervals; it lives under the real clock: land "
        "it with `pulseline stream`"
    )


@dataclass(eq=False)
class FeedChangedError(LandingError):
    """A feed's files changed while they were read."""

    source: str
    problem: str = "they changed"
    code = Exit.RUN_FAILED
    says = (
        "the files of source `{source}` must stand still while they land; {problem}: nothing more was landed, and what "
        "is published stands; run it again when whoever writes them is done"
    )


@dataclass(eq=False)
class ColumnMissingError(LandingError):
    """A source names a column that its feed does not have."""

    source: str
    setting: str
    column: str
    there: tuple[str, ...]
    nearest: str | None

    def __str__(self) -> str:
        hint = f"; did you mean `{self.nearest}`?" if self.nearest else ""
        return (
            f"`{self.setting}: {self.column}` of source `{self.source}` must be a column of its feed, which has "
            f"{', '.join(self.there)}{hint}"
        )


@dataclass(eq=False)
class ColumnTypeError(LandingError):
    """A column has a type that its use, or landing at all, does not allow."""

    source: str
    column: str
    came: str
    allowed: str

    def __str__(self) -> str:
        where = f"column `{self.column}` of source `{self.source}`"
        return f"{where} must be {self.allowed}; it is {self.came}: cast it where the feed is written"


@dataclass(eq=False)
class ReservedColumnError(LandingError):
    """A feed has a column with a name that every stream needs itself."""

    source: str
    column: str
    says = (
        "column `{column}` of source `{source}` has a name that every stream needs itself: write `rename: {{{column}: "
        "{source}_{column}}}`"
    )


@dataclass(eq=False)
class DuplicateColumnError(LandingError):
    """A feed has two columns of one name."""

    source: str
    column: str
    says = "columns of source `{source}` must have names of their own; two are `{column}`: rename one"


@dataclass(eq=False)
class TimezoneMissingError(LandingError):
    """Times without timezone, and nobody said whose they are."""

    source: str
    column: str
    example: str
    says = (
        "times of source `{source}` must have a timezone; `{column}` has none ({example}): write `timezone: UTC`, or "
        "whichever it is, under the feed"
    )


@dataclass(eq=False)
class NoTimeError(LandingError):
    """A feed in which no row has an arrival or an event time."""

    source: str
    rows: int
    unread: str = ""
    """What stood there in the first row of which a time could not be read, as JSON; nothing where all are null."""
    lost: str = ""
    """What is told of the first row or file that cannot land at all."""

    def __str__(self) -> str:
        """Say what came, and how times are written."""
        came = f"; the first that could not be read has {self.unread}" if self.unread else ""
        todo = "see whether the columns are the right ones"
        if self.lost and not self.unread:
            came, todo = f"; {self.lost}", "see whether the file is whole, and as its feed says"
        if self.unread:
            todo += ", and write times as ISO 8601, such as 2013-01-31 17:05:00 (beside `timezone:` under the feed) or "
            todo += "2013-01-31T17:05:00Z"
        return (
            f"a row of source `{self.source}` must have an arrival or an event time; none of its {self.rows} rows has"
            f"{came}: {todo}"
        )


@dataclass(eq=False)
class SequenceBrokenError(LandingError):
    """A closed sequence of the landing is not what its manifest says."""

    folder: str
    problem: str
    code = Exit.RUN_FAILED
    says = (
        "a landed sequence never changes; {folder} has {problem}: restore it, or use a run of another name; pulseline "
        "doctor FLOW says whether it can be had again"
    )


@dataclass(eq=False)
class SequenceClosedError(SequenceBrokenError):
    """A sequence that is to land is closed already: another driver was faster."""

    problem: str = field(default="a manifest already", init=False)


class ReferenceBrokenError(SequenceBrokenError):
    """A feed's file that landed by reference is not what it was."""

    says = (
        "files that landed by reference never change; {folder} must be what it was, and {problem}: restore it, or run "
        "its interval again, which lands what is there now; files that change need `landing: copy` under the feed"
    )


@dataclass(eq=False)
class RowsRemovedError(SequenceBrokenError):
    """The rows of a sequence were removed, because the environment wants them kept only so long.

    Instant and duration in ticks.
    """

    problem: str = field(default="rows that were removed", init=False)
    number: int
    at: int
    keep: int

    def __str__(self) -> str:
        from pipelines.engine.columnar.columns import instant_text

        return (
            f"what landed must still be kept to be read; the rows of sequence {self.number} were removed at "
            f"{instant_text(self.at)}, under `landed: {{keep: {spell(self.keep)}}}` of the environment: put a copy of "
            f"{self.folder} from before that in its place, and keep longer from now on"
        )


@dataclass(eq=False)
class ReferenceTypeError(LandingError):
    """A column whose values do not land as they stand in the feed's files, so that these cannot stand for them."""

    source: str
    column: str
    came: str
    lands: str
    says = (
        "column `{column}` of source `{source}` must be {lands} in its files to be landed by reference; it is {came}: "
        "write it so, or write `landing: copy` under the feed"
    )


@dataclass(eq=False)
class BuffersLostError(LandingError):
    """No buffer may speak for sequences that no consistent state covers."""

    code = Exit.RUN_FAILED
    first: int
    """The first sequence that is lost."""
    last: int
    """The last one that was known to have closed."""
    consistent: int
    """The newest published commit."""
    why: Mapping[str, str]
    """What was found of each buffer."""

    def __str__(self) -> str:
        """Say what is lost, what is not, and what to do."""
        found = "; ".join(f"{name}: {why}" for name, why in self.why.items())
        lost = f"sequence {self.first}" if self.first == self.last else f"sequences {self.first} to {self.last}"
        return (
            f"one of three buffers must hold what no consistent state covers; none can be trusted ({found}). "
            f"Lost: {lost}. Safe: all up to commit {self.consistent}, the last consistent state. Bring one buffer's "
            "storage back, or go on without them: pulseline stream FLOW --accept-loss, which the ledger keeps for ever"
        )


@dataclass(eq=False)
class NoRoomError(LandingError):
    """No buffer takes a sequence now; nothing is lost, and the source waits.

    Keep what the storage said.
    """

    why: str
    says = "a buffer must have room; {why}: the source waits, and the landing goes on when there is room"


@dataclass(eq=False)
class AllMovedError(LandingError):
    """The environment names three new places at once, so nothing is left to fill them from."""

    before: tuple[str, ...]
    now: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"at least one buffer must stay where it is when others move; they stood in {', '.join(self.before)} and "
            f"are to stand in {', '.join(self.now)}: move one or two, start, and the rest when the new ones count"
        )


@dataclass(eq=False)
class RecordBrokenError(LandingError):
    """The record of the buffers cannot be read."""

    path: str
    problem: str
    says = (
        "{path} must say where the buffers stand, in format 1; {problem}: put it back, or remove it to have the "
        "buffers found again where the environment says they are"
    )
