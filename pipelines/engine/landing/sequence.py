"""What a closed sequence of the landing is: its span, its files and buckets, and how a manifest says so."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.engine.columnar.columns import instant_text, instant_tick
from pipelines.engine.columnar.content import ContentHash
from pipelines.engine.files.packed import opened
from pipelines.engine.landing import references
from pipelines.engine.landing.errors import RowsRemovedError
from pipelines.engine.landing.progress import Position
from pipelines.engine.landing.references import ReferencedRows
from pipelines.engine.landing.seen_files import FileFate, FileLanded
from pipelines.engine.landing.stamp import LANDED_LEDGER, landed_row_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from pathlib import Path

    from pipelines.engine.landing.references import Reference

FORMAT = 3
READABLE = (2, FORMAT)
"""Formats of manifests that can be read; 2 knew no references."""
NO_FILE = ""
"""Name of the file of a source without rows of its own, and of a ledger without lines: there is none."""


@dataclass(frozen=True, kw_only=True)
class RowGroup:
    """A row group of a source's file: rows of one bucket, in their order."""

    bucket: int
    rows: int
    first: int
    """Arrival of its first row, in ticks."""
    last: int
    """Arrival of its last row, in ticks."""


@dataclass(frozen=True, kw_only=True)
class LandedFile:
    """A file of a sequence, and how to know it again."""

    file: str
    """NO_FILE where there are no rows, or they lie in files of the feed."""
    rows: int
    size: int
    """In bytes."""
    sha256: str
    content: ContentHash | None
    """None where rows lie in files of the feed, which are known by their bytes."""
    first_group: int | None = None
    """Its first row group in the file of a segment, which holds other sequences too; None in a file of its own."""

    @property
    def stored(self) -> ContentHash | None:
        """Give the content hash of all columns that its file has."""
        return self.content


@dataclass(frozen=True, kw_only=True)
class LandedSource(LandedFile):
    """What of a source landed in a sequence."""

    feed: str
    """Fingerprint of the feed that was read."""
    declared: str
    """Digest of what the flow said of the source."""
    columns: tuple[tuple[str, str], ...]
    """Name and type of each payload column."""
    schema: str
    """The payload's Arrow schema, serialised, in base64."""
    row_groups: tuple[RowGroup, ...]
    blind_spans: tuple[tuple[int, int], ...] = ()
    """Spans [a, b) in which nobody listened to the source, in ticks."""
    files: tuple[FileLanded, ...] = ()
    """Of a folder: the files that this sequence dealt with."""
    positions: tuple[Position, ...] = ()
    """Of a source that is read along: how far this sequence came, in each of its parts."""
    referenced: ReferencedRows | None = None
    """The rows, where they lie in files of the feed; there are no row groups then."""
    copied: str = ""
    """Why rows that were to be landed by reference were copied."""
    added: tuple[tuple[str, str], ...] = ()
    """Name and kind of each column that rows brought and nobody declared; those with values stand in the file too."""
    whole: ContentHash | None = None
    """Of the rows with these columns; None where the file has none of them, and `content` is all that it holds."""
    punctuations: int = 0
    """How many window punctuations came; each is a line of the ledger."""

    @property
    def stored(self) -> ContentHash | None:
        """Give the content hash of all columns that its file has."""
        return self.content if self.whole is None else self.whole

    def groups(self, wanted: Callable[[int], bool]) -> tuple[int, ...]:
        """Number the row groups, in its file, of the buckets that are wanted."""
        numbered = enumerate(self.row_groups, self.first_group or 0)
        return tuple(at for at, group in numbered if wanted(group.bucket))


Piece = tuple[str, tuple[int, ...]] | ReferencedRows
"""A file with some of its row groups, or the rows of a sequence that lie in files of the feed."""
Chain = tuple[Piece, ...]
"""Pieces whose rows are in order from the first to the last."""


class Removed(NamedTuple):
    """That rows are no longer kept."""

    at: int
    """When they were removed, wall time in ticks."""
    keep: int
    """How long the environment wanted rows kept, in ticks."""


@dataclass(frozen=True, kw_only=True)
class LandedSequence:
    """A closed sequence: all that came in before its closing reading and after the one before."""

    folder: Path
    id: int
    kind: str
    """`interval`, or `reading` where a stream landed it."""
    start: int
    end: int
    """The closing reading, in ticks; exclusive."""
    version: int
    """1, 2, … of the same interval."""
    buckets: int
    sources: Mapping[str, LandedSource]
    ledger: LandedFile
    final: int | None = None
    """Arrival of the final punctuation, in ticks; None where the stream goes on."""
    removed: Removed | None = None
    """Set where its own rows and ledger lines are no longer kept."""

    def path(self, landed: LandedFile) -> Path:
        """Give where a file of its own lies.

        Raises:
            RowsRemovedError: it is no longer kept.
        """
        if self.removed is not None:
            raise RowsRemovedError(str(self.folder), self.id, *self.removed)
        return self.folder / landed.file

    def inputs(self, source: str, bucket: int) -> list[Chain]:
        """Give what holds the rows of a bucket of a source, a chain of one piece; none where it has no rows."""
        landed = self.sources[source]
        if landed.referenced is not None:
            return [(landed.referenced,)] if bucket == 0 else []
        groups = landed.groups(lambda of: of == bucket)
        return [((str(self.path(landed)), groups),)] if groups else []

    def open(
        self, source: str, buckets: Collection[int] | None = None, *, others: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Read a source's rows bucket by bucket, each in the order (arrival, place).

        Args:
            source: its name.
            buckets: which; None for all.
            others: give the columns that nobody declared, too.
        """
        landed = self.sources[source]
        if landed.referenced is not None and (buckets is None or 0 in buckets):
            yield from chain.from_iterable(block.to_batches() for block in landed.referenced.blocks())
        wanted = landed.groups(lambda of: buckets is None or of in buckets)
        if not wanted:
            return
        with opened(self.path(landed)) as file:
            rows = file.iter_batches(row_groups=list(wanted))
            if others or not landed.added:
                yield from rows
                return
            declared = landed_row_schema(self.payload(source)).names
            yield from (batch.select(declared) for batch in rows)

    def payload(self, source: str) -> pa.Schema:
        """Give the payload columns with which a source landed; no file is opened."""
        return _schema(self.sources[source].schema)

    def ledger_rows(self) -> pa.Table:
        """Read what the landing had to tell of rows and files; an empty table where it was nothing."""
        if self.ledger.file == NO_FILE:
            return LANDED_LEDGER.empty_table()
        path, group = self.path(self.ledger), self.ledger.first_group
        if group is None:
            return pq.read_table(path, schema=LANDED_LEDGER)
        with opened(path) as file:
            return file.read_row_group(group)

    @property
    def punctuations(self) -> int:
        """Count the window punctuations of all sources."""
        return sum(landed.punctuations for landed in self.sources.values())

    @property
    def files(self) -> tuple[LandedFile, ...]:
        """Its own files: none of a source without rows, or whose rows lie in files of the feed."""
        there = (*self.sources.values(), self.ledger)
        return tuple(landed for landed in there if landed.file != NO_FILE)

    @property
    def referenced(self) -> tuple[Reference, ...]:
        """The files of feeds that it refers to."""
        found = (landed.referenced for landed in self.sources.values() if landed.referenced is not None)
        return tuple(chain.from_iterable(rows.files for rows in found))


def spelled_schema(schema: pa.Schema) -> str:
    """Spell a schema as manifests do."""
    return base64.b64encode(schema.remove_metadata().serialize().to_pybytes()).decode()


@lru_cache(maxsize=256)
def _schema(spelled: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.BufferReader(base64.b64decode(spelled)))


def to_json(sequence: LandedSequence) -> dict[str, Any]:
    """Give a sequence as its manifest has it, instants as ISO 8601; `from_json` reads it back."""
    return {
        "format": FORMAT,
        "sequence": sequence.id,
        "kind": sequence.kind,
        "start": instant_text(sequence.start),
        "end": instant_text(sequence.end),
        "version": sequence.version,
        "buckets": sequence.buckets,
        "final": None if sequence.final is None else instant_text(sequence.final),
        "sources": {name: _source_to_json(landed) for name, landed in sequence.sources.items()},
        "ledger": _file_to_json(sequence.ledger),
    }


def _file_to_json(landed: LandedFile) -> dict[str, Any]:
    return {
        "file": landed.file,
        "rows": landed.rows,
        "bytes": landed.size,
        "sha256": landed.sha256,
        "content": None if landed.content is None else landed.content.text,
        **({} if landed.first_group is None else {"first_group": landed.first_group}),
    }


def _source_to_json(landed: LandedSource) -> dict[str, Any]:
    groups = [
        {
            "bucket": group.bucket,
            "rows": group.rows,
            "first": instant_text(group.first),
            "last": instant_text(group.last),
        }
        for group in landed.row_groups
    ]
    return {
        **_file_to_json(landed),
        "feed": landed.feed,
        "declared": landed.declared,
        "columns": [list(column) for column in landed.columns],
        "schema": landed.schema,
        "row_groups": groups,
        "blind_spans": [[instant_text(start), instant_text(end)] for start, end in landed.blind_spans],
        "files": [_landed_to_json(file) for file in landed.files],
        **({"positions": [position._asdict() for position in landed.positions]} if landed.positions else {}),
        "referenced": None if landed.referenced is None else references.to_json(landed.referenced),
        "copied": landed.copied,
        **({"added": [list(column) for column in landed.added]} if landed.added else {}),
        **({"whole": landed.whole.text} if landed.whole is not None else {}),
        **({"punctuations": landed.punctuations} if landed.punctuations else {}),
    }


def _landed_to_json(file: FileLanded) -> dict[str, Any]:
    return {
        "path": file.path,
        "bytes": file.size,
        "sha256": file.sha256,
        "rows": file.rows,
        "changed_ns": file.changed,
        "fate": file.fate.value,
    }


def from_json(folder: Path, said: dict[str, Any]) -> LandedSequence:
    """Read what `to_json` gave."""
    return LandedSequence(
        folder=folder,
        id=said["sequence"],
        kind=said["kind"],
        start=instant_tick(said["start"]),
        end=instant_tick(said["end"]),
        version=said["version"],
        buckets=said["buckets"],
        final=None if said["final"] is None else instant_tick(said["final"]),
        sources={name: _source(name, each) for name, each in said["sources"].items()},
        ledger=LandedFile(**_file(said["ledger"])),
    )


def _file(said: dict[str, Any]) -> dict[str, Any]:
    return {
        "file": said["file"],
        "rows": said["rows"],
        "size": said["bytes"],
        "sha256": said["sha256"],
        "content": None if said["content"] is None else ContentHash.from_text(said["content"]),
        "first_group": said.get("first_group"),
    }


def _source(name: str, said: dict[str, Any]) -> LandedSource:
    referenced = said.get("referenced")
    ends = [{end: instant_tick(each[end]) for end in ("first", "last")} for each in said["row_groups"]]
    groups = [
        RowGroup(bucket=each["bucket"], rows=each["rows"], **between)
        for each, between in zip(said["row_groups"], ends, strict=True)
    ]
    return LandedSource(
        **_file(said),
        feed=said["feed"],
        declared=said["declared"],
        columns=tuple((name, kind) for name, kind in said["columns"]),
        schema=said["schema"],
        row_groups=tuple(groups),
        blind_spans=tuple((instant_tick(start), instant_tick(end)) for start, end in said["blind_spans"]),
        files=tuple(_landed(each) for each in said["files"]),
        positions=tuple(Position(**each) for each in said.get("positions", ())),
        referenced=None if referenced is None else references.from_json(name, referenced),
        copied=said.get("copied", ""),
        added=tuple((name, kind) for name, kind in said.get("added", ())),
        whole=ContentHash.from_text(said["whole"]) if "whole" in said else None,
        punctuations=said.get("punctuations", 0),
    )


def _landed(said: dict[str, Any]) -> FileLanded:
    return FileLanded(
        path=said["path"],
        size=said["bytes"],
        sha256=said["sha256"],
        rows=said["rows"],
        changed=said["changed_ns"],
        fate=FileFate(said["fate"]),
    )
