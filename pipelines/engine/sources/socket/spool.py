"""What a socket sent, kept on disk before it counts as received: a bounded log of bytes, with what befell its source.

One thread appends, another lands; both may look at any moment. What was appended is on disk (fsync) before its offset
is announced, with the instant at which it came; instants never decrease, whatever the machine's clock does. Landed
segments are removed; what sequences have landed is what the landing's manifests say. Nothing else is ever removed: what
cannot be read is told of by name, and stays.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from pathlib import Path
from threading import Condition
from typing import TYPE_CHECKING

from pipelines.engine.files.durable import make_folder
from pipelines.engine.sources.opening import Loss
from pipelines.engine.sources.socket.appends import packed
from pipelines.engine.sources.socket.errors import SpoolBrokenError, SpoolDamagedError, SpoolWriteError
from pipelines.engine.sources.socket.spool_files import (
    DAMAGED,
    Append,
    Event,
    SpoolFile,
    SpoolMark,
    read_segments,
    write_all,
    write_segment,
)
from pipelines.operators.rows import MAX_TIME, MIN_TIME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

SEGMENT_BYTES = 8 << 20
UNTOLD = "the process that received ended without a word"
GONE = "the spool was gone: what it held and had not landed is lost"
UNREADABLE = "what the spool took last cannot be read, and was given up"


@dataclass(frozen=True)
class SpoolPart:
    """What lies in one segment behind what has landed."""

    segment: SpoolFile
    is_new: bool
    """Whether what happened at its beginning is not told yet."""
    start: int
    """Offset of the first of the bytes."""
    data: bytes


@dataclass(frozen=True)
class _Came:
    runs: list[tuple[int, bytes]]
    """Where each run begins, and its bytes."""
    held: bool
    """Whether the rest came too late."""


class Spool:
    """The spool of one source.

    Safe to be killed at any point: bytes that were announced are there at the next start, each once.

    Args:
        folder: of its segments; made when it is not there.
        offset: up to where sequences have landed its bytes.
        number: up to which segment sequences have told what befell the source.
        max_bytes: how much may wait to be landed.
        now: reads the wall clock, in ticks.
        segment_bytes: after how many bytes a new segment is begun.
        loss: what is done where bytes that have not landed are gone, or others than were written.

    Raises:
        SpoolBrokenError: bytes that have not landed are not there.
        SpoolDamagedError: they are others than were written.
        SpoolWriteError: the storage does not take what must be written.
    """

    def __init__(  # noqa: PLR0913 - what a spool is
        self,
        folder: Path,
        offset: int,
        number: int,
        max_bytes: int,
        now: Callable[[], int],
        segment_bytes: int = SEGMENT_BYTES,
        loss: Loss = Loss.STOP,
    ) -> None:
        """Find what is there, and close what a process left open."""
        self.folder, self.max_bytes, self._now, self._loss = folder, max_bytes, now, loss
        self._segment_bytes = max(1, min(segment_bytes, max_bytes // 4))
        self._changed = Condition()
        self._file: BinaryIO | None = None
        self._landed, self._cursor = offset, SpoolMark(0, 0, 0)
        self._damaged: set[int] = set()
        """Segments that could not be read to their end; they are not removed."""
        make_folder(folder)
        self._segments, given_up = self._readable(number)
        self._gaps = [_gap(segment) for segment in self._segments if segment.event is Event.CONNECTED]
        last = self._segments[-1] if self._segments else None
        self.end, self.newest = self._last(last) if last else (0, MIN_TIME)
        """Offset up to which bytes are on disk; when the last thing happened that the spool knows of, in ticks."""
        if given_up and given_up[-1].number > (last.number if last else 0):
            self._go_on_without(given_up[-1], max(number, given_up[-1].number))
        elif self.end < offset or (last.number if last else 0) < number:
            self._begin_anew(offset, number)
        elif last is not None and last.event is not Event.BROKEN:
            self._add(Event.BROKEN, UNTOLD, at=self.newest)
        for problem in given_up:
            _put_aside(Path(problem.file))

    def _readable(self, number: int) -> tuple[list[SpoolFile], list[SpoolDamagedError]]:
        """Give the segments that can be read, and those that are given up because their header cannot.

        Raises:
            SpoolBrokenError: bytes are missing that have not landed, and nobody accepted that.
            SpoolDamagedError: they are others than were written.
        """
        segments, problems = read_segments(self.folder)
        for problem in problems:
            behind = next((each for each in segments if each.number > problem.number), None)
            if behind is None or behind.offset > self._landed or problem.number > number:
                self._accept(problem)
        for before, after in pairwise(segments):
            end, _ = self._last(before, after.offset)
            if (end < after.offset and after.offset > self._landed) or number < before.number + 1 < after.number:
                self._accept(SpoolBrokenError(str(self.folder), min(end, after.offset), after.offset))
        return segments, problems

    def _accept(self, problem: SpoolBrokenError | SpoolDamagedError) -> None:
        if self._loss is Loss.STOP:
            raise problem

    def _last(self, segment: SpoolFile, upto: int | None = None) -> tuple[int, int]:
        """Give the offset behind what a segment holds, and when the last of it came, in ticks."""
        end, at = segment.offset, segment.at
        for append in self._appends(segment, upto):
            end, at = append.mark.offset + len(append.data), append.at
        return end, at

    def _appends(self, segment: SpoolFile, upto: int | None, begin: SpoolMark | None = None) -> Iterator[Append]:
        """Give the appends of a segment; one without bytes stands behind some that cannot be read.

        Raises:
            SpoolBrokenError: its file is gone, and that matters.
            SpoolDamagedError: something in it is not what was written, and that matters.
        """
        at = segment.at
        while True:
            try:
                for append in segment.appends(self.folder, upto, begin):
                    at = append.at
                    yield append
            except (SpoolBrokenError, SpoolDamagedError) as problem:
                behind = problem.behind if isinstance(problem, SpoolDamagedError) else None
                end = (problem.end or 0) if behind is not None or upto is None else upto
                if end > self._landed:
                    self._accept(problem)
                self._damaged.add(segment.number)
                begin = SpoolMark(segment.number, end, behind or 0)
                yield Append(begin, at, b"")
                if behind is None:
                    return
            else:
                return

    def _begin_anew(self, offset: int, number: int) -> None:
        """Go on behind what has landed, where there is less than that."""
        highest = max([number, *(segment.number for segment in self._segments)])
        for segment in self._segments:
            segment.path(self.folder).unlink(missing_ok=True)
        self._segments, self.end = [], offset
        self._open(SpoolFile(number=highest + 1, offset=offset, event=Event.BROKEN, at=self._instant(), why=GONE))

    def _go_on_without(self, broken: SpoolDamagedError, number: int) -> None:
        """Go on behind a newest segment that cannot be read; it held no more than the size of its file."""
        self.end = max(self.end, self._landed) + Path(broken.file).stat().st_size
        at = self._instant()
        self._open(SpoolFile(number=number + 1, offset=self.end, event=Event.BROKEN, at=at, why=UNREADABLE))

    def _instant(self) -> int:
        """Give the instant that it is now: never one before those that the spool has."""
        self.newest = max(self.newest, self._now())
        return self.newest

    @property
    def waiting(self) -> int:
        """Count the bytes that are spooled and not landed."""
        return self.end - self._landed

    @property
    def begins(self) -> int:
        """Give the offset of the first byte that is still there."""
        return self._segments[0].offset if self._segments else self.end

    @property
    def is_connected(self) -> bool:
        """Say whether the bytes of a connection may follow."""
        return bool(self._segments) and self._segments[-1].event is not Event.BROKEN

    def gaps(self, until: int) -> tuple[tuple[int, int], ...]:
        """Give the spans of ticks without a connection that reach behind `until`; forget those before.

        The time before the first connection is one, and the time since the last one broke another.
        """
        with self._changed:
            self._gaps = [gap for gap in self._gaps if gap[1] > until]
            if self.is_connected:
                return tuple(self._gaps)
            return (*self._gaps, (self._segments[-1].at if self._segments else MIN_TIME, MAX_TIME))

    def room(self, timeout: float = 0.0) -> int:
        """Give how many bytes the spool takes now; 0 means that the source must wait.

        Args:
            timeout: how long to wait, in seconds, until there is some.
        """
        with self._changed:
            self._changed.wait_for(lambda: self.waiting < self.max_bytes, timeout)
            return max(0, self.max_bytes - self.waiting)

    def connected(self) -> None:
        """Begin the bytes of a new connection.

        Raises:
            SpoolTakenError: another process goes on with this spool.
            SpoolWriteError: the storage does not take it.
        """
        last = self._segments[-1] if self._segments else None
        since, why = (None, "") if last is None else (last.at, last.why)
        self._add(Event.CONNECTED, why, since=since)

    def append(self, data: bytes) -> None:
        """Have received bytes on disk, and announce them.

        Raises:
            SpoolTakenError: another process goes on with this spool.
            SpoolWriteError: the storage does not take them; nothing of them counts.
        """
        if self.end - self._segments[-1].offset >= self._segment_bytes:
            self._add(Event.GOES_ON)
        try:
            self._write(packed((self._segments[-1].number, self.end), self._instant(), data))
        except OSError as error:
            raise SpoolWriteError(str(self.folder), str(error)) from error
        with self._changed:
            self.end += len(data)
            self._changed.notify_all()

    def _write(self, data: bytes) -> None:
        if self._file is None:
            raise OSError("no connection has begun")
        write_all(self._file, data)
        os.fsync(self._file.fileno())

    def broken(self, why: str) -> None:
        """End the bytes of a connection.

        Args:
            why: what ended it, for people.

        Raises:
            SpoolTakenError: another process goes on with this spool.
            SpoolWriteError: the storage does not take it.
        """
        self._add(Event.BROKEN, why)

    def _add(self, event: Event, why: str = "", since: int | None = None, at: int | None = None) -> None:
        number = self._segments[-1].number + 1 if self._segments else 1
        at = self._instant() if at is None else at
        self._open(SpoolFile(number=number, offset=self.end, event=event, at=at, since=since, why=why))

    def _open(self, segment: SpoolFile) -> None:
        self.close()
        try:
            begun, file = write_segment(self.folder, segment)
        except OSError as error:
            raise SpoolWriteError(str(self.folder), str(error)) from error
        if segment.event is Event.BROKEN:
            file.close()
        else:
            self._file = file
        with self._changed:
            self._segments.append(begun)
            self._gaps += [_gap(begun)] if begun.event is Event.CONNECTED else []
            self._changed.notify_all()

    def close(self) -> None:
        """Close the file of the last segment."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def parts(self, offset: int, number: int, before: int = MAX_TIME) -> Iterator[SpoolPart]:
        """Give what lies behind what has landed, segment by segment, up to what is announced now.

        Args:
            offset: of the first byte that has not landed.
            number: of the last segment whose beginning has been told.
            before: only what came before this instant, in ticks.

        Raises:
            SpoolBrokenError: bytes are not there.
            SpoolDamagedError: bytes are others than were written.
        """
        with self._changed:
            segments, end = list(self._segments), self.end
        for segment, after in zip_longest(segments, segments[1:]):
            if segment.at >= before:
                return
            upto = end if after is None else after.offset
            start, is_new = max(offset, segment.offset), segment.number > number
            if not is_new and start >= upto:
                continue
            came = self._came(segment, start, upto, before)
            for at, (begin, data) in enumerate(came.runs):
                if data or at or is_new:
                    yield SpoolPart(segment, is_new and at == 0, begin, data)
            if came.held:
                return

    def _came(self, segment: SpoolFile, start: int, upto: int, before: int) -> _Came:
        """Read a segment from an offset on; where bytes in between cannot be read, it goes on in a run of its own."""
        runs: list[tuple[int, list[bytes]]] = [(start, [])]
        end = start
        begin = self._cursor if self._cursor.number == segment.number and self._cursor.offset <= start else None
        for append in self._appends(segment, upto, begin):
            if append.at >= before:
                return _Came([(at, b"".join(run)) for at, run in runs], held=True)
            at = append.mark.offset
            if at <= start and append.data and not segment.bare:
                self._cursor = append.mark
            if at > end:
                runs.append((at, []))
            runs[-1][1].append(append.data[max(0, start - at) :])
            end = max(end, at + len(append.data))
        if end < upto and self._loss is Loss.STOP:
            raise SpoolBrokenError(str(self.folder), end, upto)
        return _Came([(at, b"".join(run)) for at, run in runs], held=False)

    def release(self, offset: int, number: int) -> None:
        """Take note of what has landed: remove the segments that it covers, and make room.

        Args:
            offset: of the first byte that has not landed.
            number: of the last segment whose beginning has been told.
        """
        with self._changed:
            while len(self._segments) > 1 and self._segments[1].offset <= offset and self._segments[0].number <= number:
                self._remove(self._segments.pop(0))
            self._landed = max(self._landed, offset)
            self._changed.notify_all()

    def _remove(self, segment: SpoolFile) -> None:
        path = segment.path(self.folder)
        if segment.number in self._damaged:
            _put_aside(path)
        path.unlink(missing_ok=True)


def _gap(segment: SpoolFile) -> tuple[int, int]:
    """Give the span before a connection in which there was none."""
    return (MIN_TIME if segment.since is None else segment.since, segment.at)


def _put_aside(path: Path) -> None:
    """Keep a file that could not be read for whoever can mend it."""
    with suppress(FileNotFoundError):
        path.rename(path.with_name(path.name + DAMAGED))
