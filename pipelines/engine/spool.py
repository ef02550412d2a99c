"""What a socket sent, kept on disk before it counts as received: a bounded log of bytes, with what befell its source.

One thread appends, another lands; both may look at any moment. What was appended is on disk (fsync) before its offset
is announced. Landed segments are removed; what sequences have landed is what the landing's manifests say.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import zip_longest
from threading import Condition
from typing import TYPE_CHECKING

from pipelines.engine.segments import Event, Segment, read_segments, write_segment
from pipelines.engine.spool_errors import SpoolWriteError
from pipelines.operators.rows import MAX_TIME, MIN_TIME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import BinaryIO

SEGMENT_BYTES = 8 << 20
UNTOLD = "the process that received ended without a word"
GONE = "the spool was gone: what it held and had not landed is lost"


@dataclass(frozen=True)
class Part:
    """What lies in one segment behind what has landed."""

    segment: Segment
    is_new: bool
    """Whether what happened at its beginning is not told yet."""
    start: int
    """Offset of the first of the bytes."""
    data: bytes


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

    Raises:
        SpoolBrokenError: bytes that have not landed are not there.
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
    ) -> None:
        """Find what is there, and close what a process left open."""
        self.folder, self.max_bytes, self._now = folder, max_bytes, now
        self._segment_bytes = max(1, min(segment_bytes, max_bytes // 4))
        self._changed = Condition()
        self._file: BinaryIO | None = None
        folder.mkdir(parents=True, exist_ok=True)
        self._segments = read_segments(folder)
        self._landed = offset
        self._gaps = [_gap(segment) for segment in self._segments if segment.event is Event.CONNECTED]
        last = self._segments[-1] if self._segments else None
        self.end = last.offset + last.size(folder) if last else 0
        """Offset up to which bytes are on disk."""
        if self.end < offset or (last.number if last else 0) < number:
            self._begin_anew(offset, number)
        elif last is not None and last.event is not Event.BROKEN:
            self._add(Event.BROKEN, last.changed(folder), UNTOLD)

    def _begin_anew(self, offset: int, number: int) -> None:
        """Go on behind what has landed, where there is less than that."""
        highest = max([number, *(segment.number for segment in self._segments)])
        for segment in self._segments:
            segment.path(self.folder).unlink(missing_ok=True)
        self._segments, self.end = [], offset
        lost = Segment(number=highest + 1, offset=offset, event=Event.BROKEN, at=self._now(), why=GONE)
        self._open(lost)

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
        self._add(Event.CONNECTED, self._now(), why, since)

    def append(self, data: bytes) -> None:
        """Have received bytes on disk, and announce them.

        Raises:
            SpoolTakenError: another process goes on with this spool.
            SpoolWriteError: the storage does not take them; nothing of them counts.
        """
        if self.end - self._segments[-1].offset >= self._segment_bytes:
            self._add(Event.GOES_ON, self._now())
        try:
            self._write(data)
        except OSError as error:
            raise SpoolWriteError(str(self.folder), str(error)) from error
        with self._changed:
            self.end += len(data)
            self._changed.notify_all()

    def _write(self, data: bytes) -> None:
        if self._file is None:
            raise OSError("no connection has begun")
        left = memoryview(data)
        while left:
            left = left[self._file.write(left) :]
        os.fsync(self._file.fileno())

    def broken(self, why: str) -> None:
        """End the bytes of a connection.

        Args:
            why: what ended it, for people.

        Raises:
            SpoolTakenError: another process goes on with this spool.
            SpoolWriteError: the storage does not take it.
        """
        self._add(Event.BROKEN, self._now(), why)

    def _add(self, event: Event, at: int, why: str = "", since: int | None = None) -> None:
        number = self._segments[-1].number + 1 if self._segments else 1
        self._open(Segment(number=number, offset=self.end, event=event, at=at, since=since, why=why))

    def _open(self, segment: Segment) -> None:
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

    def parts(self, offset: int, number: int) -> Iterator[Part]:
        """Give what lies behind what has landed, segment by segment, up to what is announced now.

        Args:
            offset: of the first byte that has not landed.
            number: of the last segment whose beginning has been told.

        Raises:
            SpoolBrokenError: bytes are not there.
        """
        with self._changed:
            segments, end = list(self._segments), self.end
        for segment, after in zip_longest(segments, segments[1:]):
            upto = end if after is None else after.offset
            start = max(offset, segment.offset)
            is_new = segment.number > number
            if is_new or start < upto:
                yield Part(segment, is_new, start, segment.read(self.folder, start, max(start, upto)))

    def release(self, offset: int, number: int) -> None:
        """Take note of what has landed: remove the segments that it covers, and make room.

        Args:
            offset: of the first byte that has not landed.
            number: of the last segment whose beginning has been told.
        """
        with self._changed:
            while len(self._segments) > 1 and self._segments[1].offset <= offset and self._segments[0].number <= number:
                self._segments.pop(0).path(self.folder).unlink(missing_ok=True)
            self._landed = max(self._landed, offset)
            self._changed.notify_all()


def _gap(segment: Segment) -> tuple[int, int]:
    """Give the span before a connection in which there was none."""
    return (MIN_TIME if segment.since is None else segment.since, segment.at)
