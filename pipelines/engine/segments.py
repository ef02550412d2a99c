"""The segments of a spool on disk: each is a file that begins with one line of JSON and goes on with received bytes.

The header says what happened where it begins: a connection was made, was broken, or goes on in a new file. A segment
ends where the next one says that it begins. Bytes behind that are of a process that was overtaken, and were never
announced.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING

from pipelines.engine.manifests import sync_folder
from pipelines.engine.spool_errors import SpoolBrokenError, SpoolTakenError

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

ENDING = ".spool"
NANOS_PER_TICK = 1_000


class Event(Enum):
    """What happened where a segment begins."""

    CONNECTED = "connected"
    """A connection was made; its bytes follow."""
    GOES_ON = "goes on"
    """The segment before is large enough; the bytes of the same connection go on here."""
    BROKEN = "broken"
    """The connection ended; no bytes follow."""


@dataclass(frozen=True, kw_only=True)
class Segment:
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

    def path(self, folder: Path) -> Path:
        """Name its file."""
        return folder / f"{self.number:010}{ENDING}"

    def header(self) -> bytes:
        """Spell the header."""
        told = {"offset": self.offset, "event": self.event.value, "at": self.at, "since": self.since, "why": self.why}
        return json.dumps(told).encode() + b"\n"

    def size(self, folder: Path) -> int:
        """Give how many bytes its file holds behind the header."""
        return self.path(folder).stat().st_size - self.head

    def changed(self, folder: Path) -> int:
        """Give when its file was last written, in ticks; not before it began."""
        return max(self.at, self.path(folder).stat().st_mtime_ns // NANOS_PER_TICK)

    def read(self, folder: Path, start: int, end: int) -> bytes:
        """Read the bytes [start, end), counted as offsets are.

        Raises:
            SpoolBrokenError: they are not all there.
        """
        try:
            with self.path(folder).open("rb") as file:
                file.seek(self.head + start - self.offset)
                data = file.read(end - start)
        except FileNotFoundError as error:
            raise SpoolBrokenError(str(folder), start, end) from error
        if len(data) != end - start:
            raise SpoolBrokenError(str(folder), start + len(data), end)
        return data


def write_segment(folder: Path, segment: Segment) -> tuple[Segment, BinaryIO]:
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
    file.write(header)
    os.fsync(file.fileno())
    sync_folder(folder)
    told = {name: value for name, value in vars(segment).items() if name != "head"}
    return Segment(**told, head=len(header)), file


def read_segments(folder: Path) -> list[Segment]:
    """Read the headers of a spool's segments; one at the end whose header is no whole line was never begun.

    Raises:
        SpoolBrokenError: a segment is missing, or has fewer bytes than the next one says.
    """
    paths = sorted(folder.glob(f"*{ENDING}"))
    found = [_read(path) for path in paths]
    if found and found[-1] is None:
        with suppress(FileNotFoundError):
            paths[-1].unlink()
        found.pop()
    segments = [segment for segment in found if segment is not None]
    for before, after in pairwise(segments):
        there = before.offset + before.size(folder)
        if there < after.offset or after.number != before.number + 1:
            raise SpoolBrokenError(str(folder), min(there, after.offset), after.offset)
    return segments


def _read(path: Path) -> Segment | None:
    with path.open("rb") as file:
        header = file.readline()
    try:
        said = json.loads(header)
        event, at, why = Event(said["event"]), said["at"], said["why"]
        known = {"offset": said["offset"], "event": event, "at": at, "since": said["since"], "why": why}
    except (ValueError, KeyError, TypeError):
        return None
    if not header.endswith(b"\n"):
        return None
    return Segment(number=int(path.stem), head=len(header), **known)
