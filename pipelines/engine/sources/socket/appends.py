"""What was appended to a file of a spool, with its checksums: `head`, then bytes, again and again.

An append is whole, damaged, or was never finished. The last can only be the end of a file whose writer died: the file
is shorter than the head says, and a head with other bits than were written is known by a checksum of its own. So no
flipped bit makes an append that was acknowledged look like one that was never finished.
"""

from __future__ import annotations

from enum import Enum
from struct import Struct
from typing import NamedTuple
from zlib import crc32

MAGIC = b"PLS2"
HEAD = Struct("<4sIqI")
"""MAGIC, length in bytes, instant in ticks, checksum of the bytes; behind it a checksum of that and of the place."""
SUM, PLACE = Struct("<I"), Struct("<qq")
HEAD_BYTES = HEAD.size + SUM.size


class AppendState(Enum):
    """How an append is found."""

    WHOLE = "whole"
    UNFINISHED = "unfinished"
    """Its writer died before all of it was in the file: nobody was told that it is there."""
    HEAD_DAMAGED = "head damaged"
    """Nobody can say where it ends."""
    DAMAGED = "damaged"
    """Its bytes are others than were written."""


class FoundAppend(NamedTuple):
    """An append as it stands in a file."""

    state: AppendState
    at: int = 0
    """When it was received, in ticks."""
    data: bytes = b""
    """As they stand there, where the head can be believed."""

    @property
    def length(self) -> int:
        """Give how many bytes of the file it takes."""
        return HEAD_BYTES + len(self.data)


def packed(place: tuple[int, int], at: int, data: bytes) -> bytes:
    """Spell an append.

    Args:
        place: numbers that say where it belongs; one that is found elsewhere is damaged.
        at: when it was received, in ticks.
        data: what was received.
    """
    head = HEAD.pack(MAGIC, len(data), at, crc32(data))
    return head + _sum(place, head) + data


def found_at(data: bytes, start: int, place: tuple[int, int]) -> FoundAppend:
    """Read the append that begins at a byte of a file.

    Args:
        data: the file's bytes.
        start: the byte.
        place: as it was written.
    """
    head = data[start : start + HEAD.size]
    rest = data[start + HEAD.size : start + HEAD_BYTES]
    if len(rest) < SUM.size or not any(memoryview(data)[start:]):
        # A power cut may leave room that was never written.
        return FoundAppend(AppendState.UNFINISHED)
    if rest != _sum(place, head):
        return FoundAppend(AppendState.HEAD_DAMAGED)
    _, length, at, checksum = HEAD.unpack(head)
    body = data[start + HEAD_BYTES : start + HEAD_BYTES + length]
    if len(body) < length:
        return FoundAppend(AppendState.UNFINISHED)
    return FoundAppend(AppendState.WHOLE if crc32(body) == checksum else AppendState.DAMAGED, at, body)


def _sum(place: tuple[int, int], head: bytes) -> bytes:
    return SUM.pack(crc32(head, crc32(PLACE.pack(*place))))
