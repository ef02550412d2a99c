"""What a disk does to files."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def flipped(file: Path) -> None:
    """Have other bits in the pages of a file, and its footer as it was."""
    whole = bytearray(file.read_bytes())
    for place in range(4, len(whole) // 3):
        whole[place] ^= 0xFF
    file.write_bytes(whole)
