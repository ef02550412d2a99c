"""Everything that feeds and landing refuse, each with its sentence: what is required, what came, what to do."""

from __future__ import annotations

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
            f"source `{self.source}` must have recorded arrivals to be landed by intervals; it is a folder under the "
            "real clock: land it with `pulseline stream`"
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
