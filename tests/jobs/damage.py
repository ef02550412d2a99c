"""What a disk does to files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

MICROSECONDS, NANOSECONDS = b"\x8c\x11\x1c\x2c\x00", b"\x8c\x11\x1c\x3c\x00"
"""How a footer spells that a column has instants of UTC in that unit."""


def flipped(file: Path) -> None:
    """Have other bits in the pages of a file, and its footer as it was."""
    whole = bytearray(file.read_bytes())
    for place in range(4, len(whole) // 3):
        whole[place] ^= 0xFF
    file.write_bytes(whole)


def with_another_name(file: Path, column: str) -> None:
    """Have one bit of a column's name flipped wherever the footer of a file spells it."""
    _instead(file, column.encode(), bytes([ord(column[0]) ^ 4, *column[1:].encode()]))


def with_another_unit(file: Path) -> None:
    """Have one bit flipped by which a footer says in which unit times are."""
    _instead(file, MICROSECONDS, NANOSECONDS)


def _instead(file: Path, known: bytes, other: bytes) -> None:
    whole = file.read_bytes()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    assert known in whole[footer:]
    file.write_bytes(whole[:footer] + whole[footer:].replace(known, other))


def with_another_page_header(file: Path) -> None:
    """Have one bit flipped by which the first page says how many values it has."""
    whole = bytearray(file.read_bytes())
    whole[5] ^= 0x10
    file.write_bytes(whole)


def as_older_code_wrote(patch: pytest.MonkeyPatch) -> None:
    """Have no name of a file tell the sum of its bytes."""
    patch.setattr("pipelines.engine.files.checksums.SUMMED", re.compile("$^"))
