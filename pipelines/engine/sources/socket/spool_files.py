"""The segments of a spool on disk: each is a file of appends, of which the first says what happened where it begins.

A connection was made, was broken, or goes on in a new file; the appends behind it are received bytes, each with its
instant and its checksums. A segment ends where the next one says that it begins. Bytes behind that are of a process
that was overtaken, and were never announced.

Segments of before had one line of JSON and the bare bytes behind it. They are read as they are: their bytes count as
received when the file was last written.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from pipelines.engine.files.durable import sync_folder
from pipelines.engine.sources.socket.appends import MAGIC, AppendState, FoundAppend, found_at, packed
from pipelines.engine.sources.socket.errors import SpoolBrokenError, SpoolDamagedError, SpoolTakenError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

ENDING = ".spool"
DAMAGED = ".damaged"
"""Added to the name of a segment that somebody went on without: it stays for whoever mends it."""
NANOS_PER_TICK = 1_000
TOLD = ("offset", "event", "at", "since", "why")
HEADER = -1
"""In the place of the offset: the append that says what happened."""


class Event(Enum):
    """What happened where a segment begins."""

    CONNECTED = "connected"
    """A connection was made; its bytes follow."""
    GOES_ON = "goes on"
    """The segment before is large enough; the bytes of the same connection go on here."""
    BROKEN = "broken"
    """The connection ended; no bytes follow."""


class SpoolMark(NamedTuple):
    """Where an append begins."""

    number: int
    """Of its segment."""
    offset: int
    """Of its first byte among all bytes that the spool ever took."""
    position: int
    """In the segment's file."""


class Append(NamedTuple):
    """Bytes that were received at once."""

    mark: SpoolMark
    at: int
    """When, in ticks of the wall clock; never before those that stand before it."""
    data: bytes


@dataclass(frozen=True, kw_only=True)
class SpoolFile:
    """A segment, without its bytes."""

    number: int
    """1, 2, … without gaps."""
    offset: int
    """Of its first byte among all bytes that the spool ever took."""
    event: Event
    at: int
    """When that happened, in ticks of the wall clock."""
    since: int | None = None
    """CONNECTED: when the connection before was broken; None where there was none."""
    why: str = ""
    """BROKEN: what ended the connection; CONNECTED: what ended the one before."""
    head: int = 0
    """Length of its header, in bytes."""
    bare: bool = False
    """Whether its bytes stand there without instants and checksums, as they did before."""

    def path(self, folder: Path) -> Path:
        """Name its file."""
        return folder / f"{self.number:010}{ENDING}"

    def header(self) -> bytes:
        """Spell the append that says what happened."""
        said = (self.offset, self.event.value, self.at, self.since, self.why)
        return packed((self.number, HEADER), self.at, json.dumps(dict(zip(TOLD, said, strict=True))).encode())

    def begin(self) -> SpoolMark:
        """Give where its first append begins."""
        return SpoolMark(self.number, self.offset, self.head)

    def appends(self, folder: Path, upto: int | None = None, begin: SpoolMark | None = None) -> Iterator[Append]:
        """Give its appends, up to where it ends or to the first that was never finished.

        Args:
            folder: of the spool.
            upto: offset up to which they are wanted.
            begin: of the first that is wanted.

        Raises:
            SpoolBrokenError: its file is gone.
            SpoolDamagedError: something in it is not what was written; what stands before that has been given.
        """
        begin = begin or self.begin()
        try:
            with self.path(folder).open("rb") as file:
                file.seek(begin.position)
                data = file.read()
                changed = os.fstat(file.fileno()).st_mtime_ns // NANOS_PER_TICK
        except FileNotFoundError as error:
            raise SpoolBrokenError(str(folder), begin.offset, upto or begin.offset) from error
        if self.bare:
            size = len(data) if upto is None else upto - begin.offset
            yield Append(begin, max(self.at, changed), data[: max(0, size)])
            return
        yield from self._checked(folder, data, begin, upto)

    def _checked(self, folder: Path, data: bytes, begin: SpoolMark, upto: int | None) -> Iterator[Append]:
        mark, start = begin, 0
        while start < len(data) and (upto is None or mark.offset < upto):
            found = found_at(data, start, (mark.number, mark.offset))
            if found.state is AppendState.UNFINISHED:
                return
            if found.state is not AppendState.WHOLE:
                raise self._damage(folder, found, mark, len(data) - start)
            yield Append(mark, found.at, found.data)
            start += found.length
            mark = SpoolMark(mark.number, mark.offset + len(found.data), mark.position + found.length)

    def _damage(self, folder: Path, found: FoundAppend, mark: SpoolMark, rest: int) -> SpoolDamagedError:
        file = str(self.path(folder))
        if found.state is AppendState.HEAD_DAMAGED:
            return SpoolDamagedError(file, mark.offset, mark.offset + rest)
        behind = SpoolMark(mark.number, mark.offset + len(found.data), mark.position + found.length)
        return SpoolDamagedError(file, mark.offset, behind.offset, behind.position)


def write_segment(folder: Path, segment: SpoolFile) -> tuple[SpoolFile, BinaryIO]:
    """Begin a segment: its header is on disk when this returns; give it, and its file to append to.

    Raises:
        SpoolTakenError: another process has begun one of that number.
        OSError: the storage does not take it.
    """
    header = segment.header()
    try:
        file = segment.path(folder).open("xb", buffering=0)
    except FileExistsError as error:
        raise SpoolTakenError(str(folder), segment.number) from error
    write_all(file, header)
    os.fsync(file.fileno())
    sync_folder(folder)
    return replace(segment, head=len(header)), file


def write_all(file: BinaryIO, data: bytes) -> None:
    """Write bytes to a file without a buffer, however few of them it takes at once."""
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


def read_segments(folder: Path) -> tuple[list[SpoolFile], list[SpoolDamagedError]]:
    """Read the headers of a spool's segments; give those that can be read, and what is wrong with the others.

    The newest one is removed where its header was never finished: nobody was told of anything in it.

    Raises:
        OSError: the disk does not say which there are.
    """
    segments, problems, paths = [], [], []
    # A pattern would find none in a folder that may not be read for a moment, and the spool would begin anew.
    with suppress(FileNotFoundError):
        paths = sorted(path for path in folder.iterdir() if path.suffix == ENDING)
    for path in paths:
        try:
            segments.append(_read(path))
        except _UnfinishedError:
            if path == paths[-1]:
                with suppress(FileNotFoundError):
                    path.unlink()
            else:
                problems.append(_unreadable(path))
        except SpoolDamagedError as problem:
            problems.append(problem)
    return segments, problems


class _UnfinishedError(Exception):
    """A header whose writer died before all of it was in the file."""


def _read(path: Path) -> SpoolFile:
    data = path.read_bytes()
    number = int(path.stem)
    if data.startswith(b"{"):
        return _read_bare(path, number, data)
    if MAGIC.startswith(data) or not any(data):
        raise _UnfinishedError
    found = found_at(data, 0, (number, HEADER))
    if found.state is AppendState.UNFINISHED and data.startswith(MAGIC):
        raise _UnfinishedError
    if found.state is not AppendState.WHOLE:
        raise _unreadable(path)
    said = json.loads(found.data)
    return _segment(number, said, found.length, bare=False)


def _read_bare(path: Path, number: int, data: bytes) -> SpoolFile:
    """Read a header of before: a line of JSON, of exactly these names, since nothing else guards it."""
    line, newline, _ = data.partition(b"\n")
    try:
        said, end = json.JSONDecoder().raw_decode(line.decode())
        if newline and end == len(line) and isinstance(said, dict) and set(said) == set(TOLD):
            return _segment(number, said, len(line) + 1, bare=True)
    except ValueError:
        if newline:
            raise _unreadable(path) from None
        raise _UnfinishedError from None
    if newline or end < len(line):
        raise _unreadable(path)
    raise _UnfinishedError


def _segment(number: int, said: dict[str, object], head: int, *, bare: bool) -> SpoolFile:
    known: dict[str, object] = {name: said[name] for name in TOLD}
    return SpoolFile(number=number, head=head, bare=bare, **known | {"event": Event(said["event"])})  # type: ignore[arg-type]


def _unreadable(path: Path) -> SpoolDamagedError:
    return SpoolDamagedError(str(path), None, None)
