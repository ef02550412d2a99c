"""Compaction: sequences of history that follow one another become one segment, a few files instead of many.

Each keeps its row groups, its order and its content; a file a source holds them all, one more for each other schema.
A segment is made beside history and gets its name in one step, so it is there wholly or not at all. The sequences'
own folders stay until nobody can be at them any more, and until the segment has been read back and is what landed.
"""

from __future__ import annotations

import secrets
import shutil
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from pipelines.engine.columnar.content import ContentHash, content_hash
from pipelines.engine.files import durable
from pipelines.engine.files.hashed import HashedFile
from pipelines.engine.files.packed import SEGMENT_FILE, opened, segment_folder, span_of
from pipelines.engine.files.stored import is_stored
from pipelines.engine.files.writing import MANY, open_writer
from pipelines.engine.landing.errors import SequenceBrokenError
from pipelines.engine.landing.manifest import MANIFEST, check_files, file_in, load_manifest, stands_alone
from pipelines.engine.landing.manifest import verify as verify_bytes
from pipelines.engine.landing.segments import json_bytes, segment_of, spelled_segment
from pipelines.engine.landing.sequence import NO_FILE, LandedFile, LandedSource

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    import pyarrow as pa
    import pyarrow.parquet as pq

    from pipelines.engine.landing.sequence import LandedSequence

READING = "reading"
LEDGER = "ledger"
DRAFT = ".draft"
File = TypeVar("File", bound=LandedFile)


@dataclass
class Shared:
    """A file of a segment while it is written."""

    name: str
    file: HashedFile
    writer: pq.ParquetWriter
    groups: int = 0
    """Row groups that it has."""

    def add(self, rows: pa.Table) -> None:
        """Write rows as one row group."""
        self.writer.write_table(rows, row_group_size=rows.num_rows)
        self.groups += 1


@dataclass
class Making:
    """A segment while it is made.

    Args:
        folder: what is written into.
        open: what is open until all is written.
    """

    folder: Path
    open: ExitStack
    files: dict[tuple[str, bytes], Shared] = field(default_factory=dict)
    """By source, or LEDGER, and schema."""

    def shared(self, name: str, schema: pa.Schema) -> Shared:
        """Give the file for the rows of a source that have a schema."""
        key = name, schema.serialize().to_pybytes()
        if key not in self.files:
            count = sum(other == name for other, _ in self.files)
            path = file_in(self.folder, f"{name}.{count + 1}" if count else name)
            file = self.open.enter_context(HashedFile(path))
            writer = self.open.enter_context(open_writer(file, schema, store_schema=True, statistics=False))
            self.files[key] = Shared(path.name, file, writer)
        return self.files[key]

    def take(self, sequence: LandedSequence) -> LandedSequence:
        """Copy what a sequence has; give it as it is to be in the segment, without what is known of whole files.

        Raises:
            SequenceBrokenError: a file does not hold the bytes that landed.
        """
        verify_bytes(check_files(sequence))
        sources = {name: self._taken(sequence, name, each) for name, each in sequence.sources.items()}
        return replace(sequence, sources=sources, ledger=self._taken(sequence, LEDGER, sequence.ledger))

    def _taken(self, sequence: LandedSequence, name: str, landed: File) -> File:
        if landed.file == NO_FILE:
            return landed
        with opened(sequence.path(landed)) as file:
            shared = self.shared(name, file.schema_arrow.remove_metadata())
            first = shared.groups
            for rows in _row_groups(file, landed):
                shared.add(rows)
        return replace(landed, file=shared.name, first_group=first)


def _row_groups(file: pq.ParquetFile, landed: LandedFile) -> Iterator[pa.Table]:
    """Read row group by row group; few rows at once, for that is quicker. The ledger of a sequence becomes one."""
    if not isinstance(landed, LandedSource):
        yield file.read()
    elif landed.rows > MANY:
        yield from (file.read_row_group(at) for at in range(file.num_row_groups))
    else:
        rows, at = file.read(use_threads=False), 0
        for group in landed.row_groups:
            yield rows.slice(at, group.rows)
            at += group.rows


def compact(landed: Path, number: int) -> bool:
    """Make the segment in which a sequence is to stand; say whether all that belongs in it are closed readings.

    Killed anywhere, history reads the same. Whoever is faster makes it; what another left half done is cleared.

    Args:
        landed: the folder of history.
        number: of any of its sequences, all of which a published commit covers.

    Raises:
        SequenceBrokenError: a file of a sequence does not hold the bytes that landed.
        OSError: the storage does not do its part.
    """
    folder = segment_folder(landed, number)
    for left in landed.glob(f"{folder.name}.*{DRAFT}"):
        durable.remove_folder(left, ignore_errors=True)
    numbers = span_of(number)
    if not all(stands_alone(landed, each) for each in numbers):
        return False
    sequences = [load_manifest(landed, each) for each in numbers]
    if any(each.kind != READING for each in sequences):
        return False
    if is_stored(landed):
        with suppress(FileExistsError):
            durable.write_new(folder / SEGMENT_FILE, _written(folder, sequences))
        return True
    draft = landed / f"{folder.name}.{secrets.token_hex(4)}{DRAFT}"
    draft.mkdir()
    try:
        durable.replace(draft / SEGMENT_FILE, _written(draft, sequences))
        durable.name_folder(draft, folder, SEGMENT_FILE)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return True


def _written(draft: Path, sequences: list[LandedSequence]) -> bytes:
    """Write the files of a segment; give its manifest."""
    with ExitStack() as stack:
        making = Making(draft, stack)
        taken = [making.take(sequence) for sequence in sequences]
    known = {shared.name: (shared.file.size, shared.file.sha256) for shared in making.files.values()}
    whole = [_with_files(sequence, known) for sequence in taken]
    closed = [(each.folder / MANIFEST).stat().st_mtime_ns for each in sequences]
    return json_bytes(spelled_segment(zip(whole, closed, strict=True)))


def _with_files(sequence: LandedSequence, known: Mapping[str, tuple[int, str]]) -> LandedSequence:
    """Say of a sequence's files how to know them again, once they are written."""
    there = partial(_with_file, known=known)
    sources = {name: there(landed) for name, landed in sequence.sources.items()}
    return replace(sequence, sources=sources, ledger=there(sequence.ledger))


def _with_file(landed: File, known: Mapping[str, tuple[int, str]]) -> File:
    if landed.first_group is None:
        return landed
    size, sha256 = known[landed.file]
    return replace(landed, size=size, sha256=sha256)


def verify_segment(landed: Path, number: int) -> None:
    """Read a segment back, and see that it holds what landed: the bytes, and the content of every source.

    Raises:
        SequenceBrokenError: it does not.
    """
    segment = segment_of(landed, number)
    if segment is None:
        raise SequenceBrokenError(str(segment_folder(landed, number)), "no manifest")
    wanted: dict[str, ContentHash] = {}
    for sequence in segment.sequences:
        verify_bytes(check_files(sequence))
        for file in sequence.files:
            wanted[file.file] = wanted.get(file.file, ContentHash()) + (file.stored or ContentHash())
    for name, content in wanted.items():
        if _content(segment.folder / name) != content:
            raise SequenceBrokenError(str(segment.folder), f"a {name} with other rows than landed")


def _content(path: Path) -> ContentHash:
    with opened(path) as file:
        return sum((content_hash(batch) for batch in file.iter_batches()), ContentHash())
