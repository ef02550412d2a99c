"""What a closed sequence of the landing is: its span, its files and buckets, and how a manifest says so."""

from __future__ import annotations

import base64
from collections.abc import Mapping  # noqa: TC003 - the codec reads the types of fields
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path  # noqa: TC003 - as above
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.engine.columnar.columns import Instant, instant_text, instant_tick
from pipelines.engine.columnar.content import SPELLED, ContentHash
from pipelines.engine.files.packed import opened
from pipelines.engine.files.parquet import naming_the_damaged
from pipelines.engine.files.stored import for_arrow
from pipelines.engine.landing.errors import RowsRemovedError, SequenceBrokenError
from pipelines.engine.landing.progress import Position  # noqa: TC001 - as above
from pipelines.engine.landing.references import STAMPS, ReferencedRows
from pipelines.engine.landing.seen_files import FileCame, FileLanded  # noqa: TC001 - as above
from pipelines.engine.landing.stamp import LANDED_LEDGER, landed_row_schema
from pipelines.flows.codec import Codec, Spelling
from pipelines.flows.model import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

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
    first: Instant
    """Arrival of its first row."""
    last: Instant
    """Arrival of its last row."""


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
    blind_spans: tuple[tuple[Instant, Instant], ...] = ()
    """Spans [a, b) in which nobody listened to the source."""
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
    came: tuple[FileCame, ...] = ()
    """Of recorded files whose rows are copied: those that the rows came from."""

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
    """A closed sequence: all that came in before its closing reading and after the one before.

    A manifest says the fields of this and of all that it holds in their order.
    """

    folder: Path
    id: int
    kind: str
    """`interval`, or `reading` where a stream landed it."""
    start: Instant
    end: Instant
    """The closing reading; exclusive."""
    version: int
    """1, 2, … of the same interval."""
    buckets: int
    final: Instant | None = None
    """Arrival of the final punctuation; None where the stream goes on."""
    sources: Mapping[str, LandedSource]
    ledger: LandedFile
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
        with naming_the_damaged([self.path(landed)]), opened(self.path(landed)) as file:
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
            return pq.read_table(for_arrow(path), schema=LANDED_LEDGER)
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


CODEC = Codec(
    called={
        "id": "sequence",
        "size": "bytes",
        "changed": "changed_ns",
        "touched": "touched_ns",
        "groups": "row_groups",
        "source": "stamps",
    },
    unsaid={"first_group", "positions", "added", "whole", "punctuations", "came"},
    beside={"folder", "removed"},
    needed={"final", "blind_spans", "files", "fate"},
    lenient=True,
    spelled={
        Instant: Spelling(instant_text, instant_tick),
        ContentHash: SPELLED,
        Source: STAMPS,
    },
)
"""How manifests say what sequences are."""


def to_json(sequence: LandedSequence) -> dict[str, Any]:
    """Give a sequence as its manifest has it, instants as ISO 8601; `from_json` reads it back."""
    return {"format": FORMAT, **CODEC.to_json(sequence)}


def from_json(folder: Path, said: dict[str, Any]) -> LandedSequence:
    """Read what `to_json` gave.

    Raises:
        SequenceBrokenError: a part is missing, or says something else.
    """
    try:
        sources = {name: _named(name, each) for name, each in said["sources"].items()}
        found = CODEC.from_json(LandedSequence, said | {"folder": folder, "sources": sources})
        for landed in (found.ledger, *found.sources.values()):
            _require_counts(landed)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SequenceBrokenError(str(folder), f"a manifest that cannot be read ({error})") from error
    return found


def _require_counts(landed: LandedFile) -> None:
    counts: tuple[object, ...] = (landed.rows, landed.size)
    if not all(isinstance(count, int) and count >= 0 for count in counts):
        raise ValueError(f"rows and bytes must be whole numbers; they are {counts}")


def _named(name: str, said: dict[str, Any]) -> dict[str, Any]:
    """Tell references whose they are, for that stands above them."""
    if not (referenced := said.get("referenced")):
        return said
    return said | {"referenced": referenced | {"stamps": {"name": name, **referenced["stamps"]}}}
