"""What a spool refuses, each with its sentence: what is required, what came, what to do."""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.engine.landing.errors import LandingError


@dataclass(eq=False)
class SpoolBrokenError(LandingError):
    """Bytes that reached a spool and have not landed are not there.

    Keep the folder, and the range of bytes that is lost, as attributes.
    """

    folder: str
    start: int
    end: int

    def __str__(self) -> str:
        lost = f"its bytes {self.start} to {self.end - 1}" if self.start < self.end else f"a file at byte {self.end}"
        return (
            f"what a spool took must be there until it has landed; {self.folder} lacks {lost}: restore its files, or "
            "go on with what it still holds: pulseline stream FLOW --accept-loss, which the ledger keeps"
        )


@dataclass(eq=False)
class SpoolDamagedError(LandingError):
    """A file of a spool is there, with other bits than were written."""

    file: str
    """Of the segment."""
    start: int | None
    """Offset of the first byte that cannot be believed; None where the file's own header cannot."""
    end: int | None
    """The offset behind the last of them, where that is known, else as far as it may reach."""
    behind: int | None = None
    """The byte of the file at which it goes on, where that is known."""

    @property
    def number(self) -> int:
        """Give the number of the segment."""
        return int(self.file.rpartition("/")[2].partition(".")[0])

    def __str__(self) -> str:
        what = "in its header" if self.start is None or self.end is None else f"in bytes {self.start} to {self.end - 1}"
        return (
            f"what a spool took must stay as it was until it has landed; {self.file} has other bits than were written, "
            f"{what}: put a copy of it back, or go on with what can still be read: pulseline stream FLOW "
            "--accept-loss, which the ledger keeps; the file stays beside the others, as `.damaged`"
        )


@dataclass(eq=False)
class SpoolTakenError(LandingError):
    """Another process goes on with the spool.

    Keep the folder, and the segment that the other one began, as attributes.
    """

    folder: str
    number: int
    says = (
        "one process receives into a spool; another one began segment {number} of {folder}: this one was overtaken "
        "and has stopped; see `pulseline status` for who runs the stream"
    )


@dataclass(eq=False)
class SpoolWriteError(LandingError):
    """A spool could not be written."""

    folder: str
    problem: str
    says = (
        "what a socket sends must reach {folder} before it counts; writing failed: {problem}; what was spooled before "
        "is safe: make room or mend the storage, and start the stream again"
    )
