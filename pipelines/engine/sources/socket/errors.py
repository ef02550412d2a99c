"""What a spool refuses, each with its sentence: what is required, what came, what to do."""

from __future__ import annotations

from pipelines.engine.landing.errors import LandingError


class SpoolBrokenError(LandingError):
    """Bytes that reached a spool and have not landed are not there."""

    def __init__(self, folder: str, start: int, end: int) -> None:
        """Keep the folder, and the range of bytes that is lost, as attributes."""
        super().__init__(folder, start, end)
        self.folder, self.start, self.end = folder, start, end

    def __str__(self) -> str:
        """Say what to do."""
        lost = f"its bytes {self.start} to {self.end - 1}" if self.start < self.end else f"a file at byte {self.end}"
        return (
            f"what a spool took must be there until it has landed; {self.folder} lacks {lost}: restore its files, or "
            "go on with what it still holds: pulseline stream FLOW --accept-loss, which the ledger keeps"
        )


class SpoolDamagedError(LandingError):
    """A file of a spool is there, with other bits than were written."""

    def __init__(self, file: str, start: int | None, end: int | None, behind: int | None = None) -> None:
        """Keep the facts as attributes.

        Args:
            file: of the segment.
            start: offset of the first byte that cannot be believed; None where the file's own header cannot.
            end: the offset behind the last of them, where that is known, else as far as it may reach.
            behind: the byte of the file at which it goes on, where that is known.
        """
        super().__init__(file, start, end, behind)
        self.file, self.start, self.end, self.behind = file, start, end, behind

    @property
    def number(self) -> int:
        """Give the number of the segment."""
        return int(self.file.rpartition("/")[2].partition(".")[0])

    def __str__(self) -> str:
        """Say what to do."""
        what = "in its header" if self.start is None or self.end is None else f"in bytes {self.start} to {self.end - 1}"
        return (
            f"what a spool took must stay as it was until it has landed; {self.file} has other bits than were written, "
            f"{what}: put a copy of it back, or go on with what can still be read: pulseline stream FLOW "
            "--accept-loss, which the ledger keeps; the file stays beside the others, as `.damaged`"
        )


class SpoolTakenError(LandingError):
    """Another process goes on with the spool."""

    def __init__(self, folder: str, number: int) -> None:
        """Keep the folder, and the segment that the other one began, as attributes."""
        super().__init__(folder, number)
        self.folder, self.number = folder, number

    def __str__(self) -> str:
        """Say what to do."""
        return (
            f"one process receives into a spool; another one began segment {self.number} of {self.folder}: this one "
            "was overtaken and has stopped; see `pulseline status` for who runs the stream"
        )


class SpoolWriteError(LandingError):
    """A spool could not be written."""

    def __init__(self, folder: str, problem: str) -> None:
        """Keep the facts as attributes."""
        super().__init__(folder, problem)
        self.folder, self.problem = folder, problem

    def __str__(self) -> str:
        """Say what to do."""
        return (
            f"what a socket sends must reach {self.folder} before it counts; writing failed: {self.problem}; what was "
            "spooled before is safe: make room or mend the storage, and start the stream again"
        )
