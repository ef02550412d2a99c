"""Where sequences of history lie that stand together in a segment, and how its large files are opened.

A segment is one folder for `TOGETHER` sequences, from a multiple of that on: its name follows from the id of any of
them, so nobody lists a folder to find a sequence.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from pipelines.engine.files.stored import StoreFailedError, for_arrow, path_of

if TYPE_CHECKING:
    from pathlib import Path

TOGETHER = 256
"""Sequences of a segment. It is part of the format: segments of another number would not be found."""
SEGMENT = re.compile(r"(\d{8,})-(\d{8,})")
SEGMENT_FILE = "segment.json"
"""The manifest of a segment: it holds those of its sequences."""


def span_of(number: int) -> range:
    """Give the ids of the sequences that stand, or will stand, in one segment with this one.

    >>> span_of(1), span_of(512), span_of(513)
    (range(1, 257), range(257, 513), range(513, 769))
    """
    first = (number - 1) // TOGETHER * TOGETHER + 1
    return range(first, first + TOGETHER)


def segment_folder(shelf: Path, number: int) -> Path:
    """Name the folder of the segment in which a sequence stands, or would."""
    numbers = span_of(number)
    return shelf / f"{numbers[0]:08}-{numbers[-1]:08}"


def in_segment(shelf: Path, number: int) -> bool:
    """Say whether a sequence stands in a closed segment."""
    return (segment_folder(shelf, number) / SEGMENT_FILE).exists()


def closed_with(shelf: Path, number: int) -> int:
    """Give the last sequence that is closed because this one is: that of its segment, else itself."""
    return span_of(number)[-1] if in_segment(shelf, number) else number


def is_segment(folder: Path) -> bool:
    """Say whether a folder has the name of a segment."""
    return SEGMENT.fullmatch(folder.name) is not None


def segments_in(shelf: Path) -> list[range]:
    """Give the ids in each closed segment of a folder, ascending; none where it cannot be read."""
    try:
        found = sorted(folder for folder in shelf.glob("[0-9]*-[0-9]*") if is_segment(folder))
    except StoreFailedError:
        raise
    except OSError:
        return []
    return [span_of(int(folder.name.partition("-")[0])) for folder in found if (folder / SEGMENT_FILE).exists()]


def opened(path: str | Path) -> pq.ParquetFile:
    """Open a Parquet file whose pages are checked as they are read; the footer of a segment's is read once a process.

    Such a footer names the row groups of all its sequences: reading it takes longer than reading one of them.
    """
    file = path_of(path)
    if not is_segment(file.parent):
        return pq.ParquetFile(for_arrow(file), page_checksum_verification=True)
    seen = file.stat()
    footer = _footer(str(file), seen.st_size, seen.st_mtime_ns)
    return pq.ParquetFile(for_arrow(file), metadata=footer, page_checksum_verification=True)


@lru_cache(maxsize=8)
def _footer(path: str, size: int, changed: int) -> pq.FileMetaData:  # noqa: ARG001 - others are another file
    return pq.read_metadata(for_arrow(path))
