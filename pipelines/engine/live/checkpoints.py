"""Spark's checkpoints of a run's queries: a cache, which is made anew wherever it cannot be gone on from.

Spark never syncs what it notes there, so a power cut may leave any file of it empty, torn or missing, and Spark ends a
query that meets such a file with a Java trace. So all of it is read before a query starts. Nothing is lost with a
checkpoint: the tables say how far the run has come.
"""

from __future__ import annotations

import json
import shutil
import struct
import zlib
from typing import TYPE_CHECKING

from pipelines.engine.files.durable import of_this_machine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CHECKPOINTS = "checkpoints"
PLANNED, ENDED = "offsets", "commits"
"""Where Spark notes the batches that it has planned, and those that have ended."""
SOURCES = "sources"
METADATA = "metadata"
CHECKED = b"crc\0"
"""How Hadoop's file of checksums begins; then a size, and the CRC-32 of each block of that size."""


def checkpoint(root: Path, name: str, since: int, tell: Callable[[str], object], overtaken: int = 0) -> Path:
    """Give the folder of a query's checkpoint, and remove those that must not be met again.

    Spark plans what comes behind the newest offset of a checkpoint, so one that a reset has left ahead of the tables
    goes, whenever the process that did the reset died. Spark refuses one that it began and where no batch has ended,
    when it finds something in it ("should be empty on batch 0"); there is nothing in it to go on from. One with a file
    that cannot be read goes too, and that is told.

    Args:
        root: the run's folder.
        name: of the query.
        since: number of the newest reset, 0 for none.
        tell: told of a checkpoint that cannot be read.
        overtaken: number of the lease that was taken from a driver that lived, 0 for none: Spark of that one may still
            plan batches, where its driver was stopped, and must do so elsewhere.
    """
    folder = of_this_machine(root) / CHECKPOINTS
    wanted = folder / "-".join([name, *([str(since)] if since else []), *([f"lease{overtaken}"] if overtaken else [])])
    for other in folder.glob(f"{name}*"):
        # Of a home in a store, another machine may have gone on meanwhile, or begun it anew.
        if folder.parent != root or other != wanted or not any((other / ENDED).glob("[0-9]*")):
            shutil.rmtree(other)
    if problem := torn(wanted):
        tell(
            f"Spark's checkpoint of the {name} query cannot be read, as after a power cut: {problem}; it is made anew "
            "from where the tables stand, and nothing is lost"
        )
        shutil.rmtree(wanted)
    return wanted


def forget_checkpoints(root: Path) -> None:
    """Have Spark plan anew from where the tables stand: its checkpoints are a cache."""
    shutil.rmtree(of_this_machine(root) / CHECKPOINTS, ignore_errors=True)


def torn(folder: Path) -> str:
    """Say what of a checkpoint Spark could not go on from; nothing where it can."""
    if not folder.exists():
        return ""
    if not (folder / METADATA).is_file():
        return f"{METADATA} is missing"
    return next(_problems(folder), "")


def _problems(folder: Path) -> Iterator[str]:
    noted = [path for log in (PLANNED, ENDED, SOURCES) for path in sorted((folder / log).rglob("*"))]
    for path in [folder / METADATA, *noted]:
        # Spark writes beside, under names with a dot, and renames.
        if path.is_file() and not path.name.startswith(".") and (problem := _problem(path)):
            yield f"{path.relative_to(folder)} {problem}"
        if _is_left(path):
            # Spark would not put its own in its place.
            yield f"{path.relative_to(folder)} has no file"
    planned, ended = _batches(folder / PLANNED), _batches(folder / ENDED)
    for log, batches in ((PLANNED, planned), (ENDED, ended)):
        if batches and len(batches) <= batches[-1] - batches[0]:
            yield f"{log} has a gap between {batches[0]} and {batches[-1]}"
    if ended and (not planned or not 0 <= planned[-1] - ended[-1] <= 1):
        yield f"{PLANNED} ends at {planned[-1] if planned else 'none'} and {ENDED} at {ended[-1]}"


def _is_left(path: Path) -> bool:
    """Say whether a file holds the checksums of a batch that is not there."""
    batch = path.name.removeprefix(".").removesuffix(".crc")
    return path.name == f".{batch}.crc" and batch.isdigit() and not path.with_name(batch).exists()


def _batches(log: Path) -> list[int]:
    return sorted(int(path.name) for path in log.glob("[0-9]*") if path.name.isdigit())


def _problem(path: Path) -> str:
    """Say what is wrong with a file of a checkpoint; nothing where Spark can read it."""
    try:
        content = path.read_bytes()
        if not content:
            return "is empty"
        if not _is_checked(path, content):
            return "does not have its checksum"
        _read(path.name, content.decode())
    except (OSError, ValueError) as error:
        return f"cannot be read ({error})"
    return ""


def _read(name: str, content: str) -> None:
    """Read a file as Spark does: JSON, in all but the metadata behind a line with a version.

    Raises:
        ValueError: it is something else.
    """
    if name == METADATA:
        json.loads(content)
        return
    version, *lines = content.splitlines()
    if not (version.startswith("v") and version[1:].isdigit()) or not lines:
        raise ValueError(f"it must begin with a version, and it begins with {version[:20]!r}")
    for line in lines:
        # A source that has nothing yet.
        if line != "-":
            json.loads(line)


def _is_checked(path: Path, content: bytes) -> bool:
    """Say whether a file is what its checksums say; one without any is."""
    beside = path.with_name(f".{path.name}.crc")
    if not beside.exists():
        return True
    sums = beside.read_bytes()
    if not sums.startswith(CHECKED) or len(sums) < len(CHECKED) + 4:
        return False
    (size,) = struct.unpack(">i", sums[4:8])
    blocks = (content[at : at + size] for at in range(0, len(content), size)) if size > 0 else ()
    return sums[8:] == b"".join(struct.pack(">I", zlib.crc32(block)) for block in blocks)
