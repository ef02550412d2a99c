"""Closed sequences on disk: a manifest is written last and in one step, and read back.

A folder is written under a name of its own and gets the sequence's in one step; what is left of one whose writer died
is cleared by the next landing. The first that is closed decides what a sequence is; its files never change. In history,
sequences may stand together in a segment (`compaction`): they are the same sequences then, with their rows in the
segment's files.
"""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
import shutil
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, TypeVar

from pipelines.engine.files import durable
from pipelines.engine.files.packed import in_segment, is_segment, segment_folder, segments_in
from pipelines.engine.files.stored import StoreFailedError, StorePath, each_at_once, is_stored, path_of
from pipelines.engine.files.sums import with_sum, without_sum
from pipelines.engine.landing.errors import RecordBrokenError, SequenceBrokenError, SequenceClosedError
from pipelines.engine.landing.references import digest_of
from pipelines.engine.landing.segments import segment_of
from pipelines.engine.landing.sequence import FORMAT, READABLE, LandedFile, LandedSequence, from_json, to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

LOGGER = logging.getLogger(__name__)
Found = TypeVar("Found")
MANIFEST = "manifest.json"
BUFFERS_FILE = "buffers.json"
"""Beside the sequences of a landing's history: where its three buffers stand, where it has any."""
LEDGER = "ledger"
"""What the file of a sequence's ledger lines is called, up to its end."""


def sequence_folder(landing: Path, number: int) -> Path:
    """Name the folder of a sequence: where it is closed, in history or a buffer, else where it would be."""
    shelf = next((shelf for shelf in shelves(landing) if _has(landing, shelf, number)), landing)
    return segment_folder(shelf, number) if in_segment(shelf, number) else shelf / f"{number:08}"


def shelves(landing: Path) -> tuple[Path, ...]:
    """Give the folders in which sequences of a landing may lie: its own, and buffers that are not quarantined.

    Raises:
        OSError: the disk does not say whether there are buffers.
    """
    try:
        changed = (landing / BUFFERS_FILE).stat().st_mtime_ns
    except (FileNotFoundError, NotADirectoryError):
        return (landing,)
    return (landing, *_buffers(landing, changed))


@lru_cache(maxsize=64)
def _buffers(landing: Path, changed: int) -> tuple[Path, ...]:  # noqa: ARG001 - another time of change is another file
    path = landing / BUFFERS_FILE
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        health = said["health"]
        speaks = (text for name, text in said["places"].items() if health.get(name, {}).get("rebuilt", True))
        return tuple(path_of(text) for text in speaks)
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise RecordBrokenError(str(path), f"it cannot be read ({type(problem).__name__}: {problem})") from None


def held_in(shelf: Path, number: int) -> bool:
    """Say whether a buffer has a sequence, and says so: one on a disk that does not answer has none."""
    try:
        return closed_in(shelf, number)
    except OSError:
        return False


def _has(landing: Path, shelf: Path, number: int) -> bool:
    """Say whether a sequence is closed in a folder; the landing's own must answer, a buffer need not."""
    return closed_in(shelf, number) if shelf == landing else held_in(shelf, number)


def closed_in(shelf: Path, number: int) -> bool:
    """Say whether a sequence is closed in this very folder, by itself or in a segment."""
    return stands_alone(shelf, number) or in_segment(shelf, number)


def stands_alone(shelf: Path, number: int) -> bool:
    """Say whether a sequence is closed in this very folder, in a folder of its own."""
    return (shelf / f"{number:08}" / MANIFEST).exists()


def numbers_in(shelf: Path) -> list[int]:
    """Give the ids of sequences that are closed in this very folder, ascending; none where it cannot be read."""
    together = {number for numbers in segments_in(shelf) for number in numbers}
    if isinstance(shelf, StorePath):
        return sorted(together.union(int(path.parent.name) for path in shelf.rglob(MANIFEST)))
    return sorted(together.union(number for number in alone_in(shelf) if stands_alone(shelf, number)))


def numbers_held(shelf: Path) -> list[int]:
    """Give the ids of the sequences of a buffer, ascending; one on a disk that does not answer has none."""
    try:
        return numbers_in(shelf)
    except OSError:
        return []


def alone_in(shelf: Path) -> set[int]:
    """Give the ids of which a folder of their own is there, whatever is in it; none where it cannot be read."""
    try:
        return {int(folder.name) for folder in shelf.glob("[0-9]*") if folder.name.isdigit()}
    except StoreFailedError:
        raise
    except OSError:
        return set()


def closed_ns(landing: Path, number: int) -> int:
    """Give when a sequence was closed, wall time in nanoseconds.

    Raises:
        SequenceBrokenError: it is not closed, or its manifest cannot be read.
    """
    return _first_whole(landing, number, lambda shelf: _closed_ns(shelf, number))


def _closed_ns(shelf: Path, number: int) -> int:
    segment = segment_of(shelf, number)
    return (shelf / f"{number:08}" / MANIFEST).stat().st_mtime_ns if segment is None else segment.closed_ns(number)


def manifest_bytes(landing: Path, number: int) -> bytes:
    """Read the manifest of a sequence that stands in a folder of its own, as it is.

    Raises:
        SequenceBrokenError: it is not closed.
    """
    return _first_whole(landing, number, lambda shelf: (shelf / f"{number:08}" / MANIFEST).read_bytes())


def sequences(landing: Path) -> list[LandedSequence]:
    """Read the manifests of all closed sequences of a landing, by id; `check_files` sees to the files of one.

    Raises:
        SequenceBrokenError: a sequence is missing, or its manifest cannot be read.
    """
    return each_at_once(partial(load_manifest, landing), closed_ids(landing), stored=is_stored(landing))


def closed_ids(landing: Path, since: int = 0) -> Sequence[int]:
    """Give the ids of all closed sequences, ascending.

    Args:
        landing: the folder of the sequences.
        since: behind which none may be missing.

    Raises:
        SequenceBrokenError: one is missing.
    """
    closed, gone = _closed(landing)
    for number in (each for each in gone if each > since):
        raise SequenceBrokenError(str(sequence_folder(landing, number)), "no manifest, though a later one is closed")
    return sorted(closed) if gone else range(1, len(closed) + 1)


def ids_gone(landing: Path) -> list[int]:
    """Give the ids of sequences that are not there though a later one is closed, ascending."""
    return _closed(landing)[1]


def _closed(landing: Path) -> tuple[set[int], list[int]]:
    """Give the ids of all closed sequences, and those between them that have none."""
    buffers = (number for shelf in shelves(landing)[1:] for number in numbers_held(shelf))
    closed = {*numbers_in(landing), *buffers}
    return closed, [number for number in range(1, max(closed, default=0)) if number not in closed]


def is_closed(landing: Path, number: int) -> bool:
    """Say whether a sequence is closed."""
    return any(_has(landing, shelf, number) for shelf in shelves(landing))


def read_sequence(landing: Path, number: int) -> LandedSequence:
    """Read one closed sequence; its files are seen to be there with their sizes, and not read.

    Raises:
        SequenceBrokenError: there is no manifest, or a file is missing or of another size.
        RowsRemovedError: its rows are no longer kept.
    """
    return _first_whole(landing, number, lambda shelf: check_files(load_from(shelf, number)))


def check_files(sequence: LandedSequence) -> LandedSequence:
    """See that the files of a sequence are there with their sizes; `verify` reads them too.

    Files of feeds that it refers to are read where their size and times leave open whether they changed.

    Raises:
        SequenceBrokenError: a file is missing or of another size, or one of a feed has changed.
        RowsRemovedError: its rows are no longer kept.
    """
    for landed in sequence.files:
        _check_file(sequence.path(landed), landed)
    for file in sequence.referenced:
        file.check()
    return sequence


def load_manifest(landing: Path, number: int) -> LandedSequence:
    """Read a manifest, and look at no other file.

    Raises:
        SequenceBrokenError: there is none, or it cannot be read.
    """
    return _first_whole(landing, number, lambda shelf: load_from(shelf, number))


def load_from(shelf: Path, number: int) -> LandedSequence:
    """Read a manifest out of this very folder, and look at no other file.

    Raises:
        SequenceBrokenError: there is none, or it cannot be read.
    """
    # A segment goes before folders of their own: those are removed when it has stood for a while.
    segment = segment_of(shelf, number)
    if segment is not None:
        return segment.sequence(number)
    found = _manifest(shelf / f"{number:08}")
    if found.id != number:
        raise SequenceBrokenError(str(found.folder), f"the manifest of sequence {found.id}")
    return found


def _first_whole(landing: Path, number: int, read: Callable[[Path], Found]) -> Found:
    """Read a sequence where it is closed; where it is damaged or its disk fails, from the next place that has it."""
    broken: SequenceBrokenError | OSError | None = None
    for shelf in shelves(landing):
        if _has(landing, shelf, number):
            try:
                return read(shelf)
            except (SequenceBrokenError, OSError) as error:
                if shelf == landing and isinstance(error, OSError):
                    raise
                broken = broken or error
    raise broken or SequenceBrokenError(str(sequence_folder(landing, number)), "no manifest")


def _manifest(folder: Path) -> LandedSequence:
    try:
        changed = (folder / MANIFEST).stat().st_mtime_ns
    except FileNotFoundError as error:
        raise SequenceBrokenError(str(folder), "no manifest") from error
    return _read(folder, changed)


@lru_cache(maxsize=4_096)
def _read(folder: Path, changed: int) -> LandedSequence:  # noqa: ARG001 - another time of change is another manifest
    try:
        said = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if not isinstance(said, dict):
            raise SequenceBrokenError(str(folder), "a manifest that is no object of JSON")
        said = without_sum(said)
    except ValueError as error:
        raise SequenceBrokenError(str(folder), f"a manifest that cannot be read ({error})") from error
    if said.get("format") not in READABLE:
        raise SequenceBrokenError(str(folder), f"a manifest of format {said.get('format')}, not {FORMAT} or before")
    return from_json(folder, said)


def _check_file(path: Path, landed: LandedFile) -> None:
    if not path.exists():
        raise SequenceBrokenError(str(path.parent), f"no {landed.file}, which its manifest names")
    if path.stat().st_size != landed.size:
        problem = f"a {landed.file} of {path.stat().st_size} bytes, not the {landed.size} of its manifest"
        raise SequenceBrokenError(str(path.parent), problem)


def verify(sequence: LandedSequence) -> None:
    """Read a sequence's files and see that they hold the very bytes that landed.

    A segment's are read once a process, as long as their size and times stay what they are.

    Raises:
        SequenceBrokenError: one does not.
        RowsRemovedError: they are no longer kept.
    """
    for landed in sequence.files:
        if _digest(sequence.path(landed)) != landed.sha256:
            raise SequenceBrokenError(str(sequence.folder), f"a {landed.file} with other bytes than landed")
    for file in sequence.referenced:
        file.verify()


def _digest(path: Path) -> str:
    if not is_segment(path.parent):
        return file_digest(path)
    seen = path.stat()
    return digest_of(str(path), seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)


def new_folder(landing: Path, number: int) -> Path:
    """Make a folder to write the next sequence into.

    Its name is its own, for a driver that was overtaken while it landed may wake and go on writing. Drafts of sequences
    that are not closed stay: whose they are, and whether he lives, cannot be told from here.

    Raises:
        SequenceClosedError: the sequence is closed already.
    """
    if closed_in(landing, number):
        raise SequenceClosedError(str(sequence_folder(landing, number)))
    durable.make_folder(landing)
    if is_stored(landing):
        # Its files have names of their own there, and the manifest decides whose they are.
        return landing / f"{number:08}"
    folder = landing / f"{number:08}.{secrets.token_hex(4)}{durable.DRAFT}"
    folder.mkdir()
    return folder


def file_in(folder: Path, stem: str) -> Path:
    """Name a Parquet file of a sequence that is being written; in a store, whoever else writes it uses other names."""
    return folder / (f"{stem}.{secrets.token_hex(4)}.parquet" if is_stored(folder) else f"{stem}.parquet")


@contextmanager
def new_sequence(landing: Path, number: int) -> Iterator[Path]:
    """Give a folder to write the next sequence into, which the block closes.

    Raises:
        SequenceClosedError: another closed it, before or meanwhile, and so cleared this folder away.
    """
    folder = new_folder(landing, number)
    try:
        yield folder
    except FileNotFoundError as error:
        if closed_in(landing, number):
            raise SequenceClosedError(str(sequence_folder(landing, number))) from error
        raise


def close_sequence(sequence: LandedSequence) -> LandedSequence:
    """Write the manifest and give the folder its name: from then on, and not before, the sequence is there.

    Returns:
        The sequence where it stands now.

    Raises:
        SequenceClosedError: another closed it meanwhile.
    """
    manifest = json.dumps(with_sum(to_json(sequence)), indent=1, ensure_ascii=False).encode()
    done = replace(sequence, folder=name_once(sequence.folder, sequence.id, manifest))
    LOGGER.debug("sequence %d closed in %s, up to reading %d", done.id, done.folder, done.end)
    return done


def name_once(draft: Path, number: int, manifest: bytes | None = None) -> Path:
    """Give a written folder its manifest and its sequence's name, on disk, unless another has it: the first decides.

    Of a folder of this machine the manifest may have been written before. What others began of this sequence, or of
    one before, can never be closed then, and is cleared away.

    Raises:
        SequenceClosedError: another has it, also one who was overtaken.
    """
    if is_stored(draft) and manifest is not None:
        try:
            durable.write_new(draft / MANIFEST, manifest)
        except FileExistsError:
            raise SequenceClosedError(str(draft)) from None
        return draft
    if manifest is not None:
        durable.replace(draft / MANIFEST, manifest)
    folder = draft.with_name(f"{number:08}")
    if not durable.name_folder(draft, folder, MANIFEST):
        shutil.rmtree(draft, ignore_errors=True)
        raise SequenceClosedError(str(folder))
    for left in draft.parent.glob(f"[0-9]*{durable.DRAFT}"):
        begun = left.name.partition(".")[0]
        if begun.isdigit() and int(begun) <= number:
            shutil.rmtree(left, ignore_errors=True)
    return folder


def file_digest(path: Path) -> str:
    """Give the SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
