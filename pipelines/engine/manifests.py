"""Closed sequences of a landing: what a manifest says, written last and in one step, and read back.

A folder without manifest is no sequence: whoever was to close it died, and the next landing clears it. The first closed
manifest decides what a sequence is; its files never change.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.engine.columns import instant_text
from pipelines.engine.content import ContentHash
from pipelines.engine.landing_errors import SequenceBrokenError
from pipelines.engine.stamping import STAMPS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

MANIFEST = "manifest.json"
LEDGER_FILE = "ledger.parquet"
FORMAT = 1
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


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
    rows: int
    size: int
    """In bytes."""
    sha256: str
    content: ContentHash


@dataclass(frozen=True, kw_only=True)
class LandedSource(LandedFile):
    """What of a source landed in a sequence."""

    feed: str
    """Fingerprint of the feed that was read."""
    declared: str
    """Digest of what the flow said of the source."""
    columns: tuple[tuple[str, str], ...]
    """Name and type of each payload column."""
    row_groups: tuple[RowGroup, ...]
    blind_spans: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Sequence:
    """A closed sequence: all that came in before its closing reading and after the one before."""

    folder: Path
    id: int
    kind: str
    """`interval`."""
    start: int
    end: int
    """The closing reading, in ticks; exclusive."""
    version: int
    """1, 2, … of the same interval."""
    buckets: int
    sources: Mapping[str, LandedSource]
    ledger: LandedFile
    final: bool = False

    def inputs(self, source: str, bucket: int) -> list[tuple[str, tuple[int, ...]]]:
        """Give the file and row groups that hold a bucket of a source; none where it has no rows."""
        landed = self.sources[source]
        groups = tuple(at for at, group in enumerate(landed.row_groups) if group.bucket == bucket)
        return [(str(self.folder / landed.file), groups)] if groups else []

    def open(self, source: str, buckets: Collection[int] | None = None) -> Iterator[pa.RecordBatch]:
        """Read a source's rows bucket by bucket, each in the order (arrival, place).

        Args:
            source: its name.
            buckets: which; None for all.
        """
        landed = self.sources[source]
        wanted = [at for at, group in enumerate(landed.row_groups) if buckets is None or group.bucket in buckets]
        with pq.ParquetFile(self.folder / landed.file) as file:
            yield from file.iter_batches(row_groups=wanted)

    def payload(self, source: str) -> pa.Schema:
        """Give the payload columns with which a source landed."""
        schema = pq.read_schema(self.folder / self.sources[source].file)
        return pa.schema([each for each in schema if each.name not in STAMPS.names])

    @property
    def ledger_path(self) -> Path:
        """Where the ledger lines of the landing lie."""
        return self.folder / self.ledger.file


def sequence_folder(landing: Path, number: int) -> Path:
    """Name the folder of a sequence."""
    return landing / f"{number:08}"


def sequences(landing: Path) -> list[Sequence]:
    """Read the manifests of all closed sequences of a landing, by id; `check_files` sees to the files of one.

    Raises:
        SequenceBrokenError: a sequence is missing, or its manifest cannot be read.
    """
    closed = [int(path.parent.name) for path in landing.glob(f"[0-9]*/{MANIFEST}")]
    for expected, number in enumerate(sorted(closed), start=1):
        if number != expected:
            raise SequenceBrokenError(
                str(sequence_folder(landing, expected)), "no manifest, though a later one is closed"
            )
    return [_manifest(sequence_folder(landing, number)) for number in sorted(closed)]


def read_sequence(landing: Path, number: int) -> Sequence:
    """Read one closed sequence; its files are seen to be there with their sizes, and not read.

    Raises:
        SequenceBrokenError: there is no manifest, or a file is missing or of another size.
    """
    return check_files(_manifest(sequence_folder(landing, number)))


def check_files(sequence: Sequence) -> Sequence:
    """See that the files of a sequence are there with their sizes; `verify` reads them too.

    Raises:
        SequenceBrokenError: a file is missing or of another size.
    """
    for landed in (*sequence.sources.values(), sequence.ledger):
        _check_file(sequence.folder, landed)
    return sequence


def _manifest(folder: Path) -> Sequence:
    try:
        changed = (folder / MANIFEST).stat().st_mtime_ns
    except FileNotFoundError as error:
        raise SequenceBrokenError(str(folder), "no manifest") from error
    return _read(folder, changed)


@lru_cache(maxsize=4_096)
def _read(folder: Path, changed: int) -> Sequence:  # noqa: ARG001 - another time of change is another manifest
    try:
        told = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except ValueError as error:
        raise SequenceBrokenError(str(folder), f"a manifest that cannot be read ({error})") from error
    if told.get("format") != FORMAT:
        raise SequenceBrokenError(str(folder), f"a manifest of format {told.get('format')}, not {FORMAT}")
    return _sequence(folder, told)


def _check_file(folder: Path, landed: LandedFile) -> None:
    path = folder / landed.file
    if not path.exists():
        raise SequenceBrokenError(str(folder), f"no {landed.file}, which its manifest names")
    if path.stat().st_size != landed.size:
        problem = f"a {landed.file} of {path.stat().st_size} bytes, not the {landed.size} of its manifest"
        raise SequenceBrokenError(str(folder), problem)


def verify(sequence: Sequence) -> None:
    """Read a sequence's files and see that they hold the very bytes that landed.

    Raises:
        SequenceBrokenError: one does not.
    """
    for landed in (*sequence.sources.values(), sequence.ledger):
        if file_digest(sequence.folder / landed.file) != landed.sha256:
            raise SequenceBrokenError(str(sequence.folder), f"a {landed.file} with other bytes than landed")


def new_folder(landing: Path, number: int) -> Path:
    """Make the folder of the next sequence; what somebody began there and never closed is cleared away.

    Safe because only the holder of the run's lease lands, and a folder with a manifest is refused.

    Raises:
        SequenceBrokenError: the sequence is closed already.
    """
    folder = sequence_folder(landing, number)
    if (folder / MANIFEST).exists():
        raise SequenceBrokenError(str(folder), "a manifest already")
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    return folder


def close_sequence(sequence: Sequence) -> None:
    """Write the manifest, on disk before it gets its name: from then on, and not before, the sequence is there."""
    path = sequence.folder / MANIFEST
    draft = path.with_suffix(".draft")
    with draft.open("w", encoding="utf-8") as file:
        json.dump(_told(sequence), file, indent=1, ensure_ascii=False)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(sequence.folder)
    draft.rename(path)
    sync_folder(sequence.folder)
    sync_folder(sequence.folder.parent)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def file_digest(path: Path) -> str:
    """Give the SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _told(sequence: Sequence) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "sequence": sequence.id,
        "kind": sequence.kind,
        "start": instant_text(sequence.start),
        "end": instant_text(sequence.end),
        "version": sequence.version,
        "buckets": sequence.buckets,
        "final": sequence.final,
        "sources": {name: _source_told(landed) for name, landed in sequence.sources.items()},
        "ledger": _file_told(sequence.ledger),
    }


def _file_told(landed: LandedFile) -> dict[str, Any]:
    return {
        "file": landed.file,
        "rows": landed.rows,
        "bytes": landed.size,
        "sha256": landed.sha256,
        "content": landed.content.text,
    }


def _source_told(landed: LandedSource) -> dict[str, Any]:
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
        **_file_told(landed),
        "feed": landed.feed,
        "declared": landed.declared,
        "schema": [list(column) for column in landed.columns],
        "row_groups": groups,
        "blind_spans": [[instant_text(start), instant_text(end)] for start, end in landed.blind_spans],
    }


def _sequence(folder: Path, told: dict[str, Any]) -> Sequence:
    return Sequence(
        folder=folder,
        id=told["sequence"],
        kind=told["kind"],
        start=_tick(told["start"]),
        end=_tick(told["end"]),
        version=told["version"],
        buckets=told["buckets"],
        final=told["final"],
        sources={name: _source(each) for name, each in told["sources"].items()},
        ledger=LandedFile(**_file(told["ledger"])),
    )


def _file(told: dict[str, Any]) -> dict[str, Any]:
    return {
        "file": told["file"],
        "rows": told["rows"],
        "size": told["bytes"],
        "sha256": told["sha256"],
        "content": ContentHash.from_text(told["content"]),
    }


def _source(told: dict[str, Any]) -> LandedSource:
    groups = [
        RowGroup(bucket=each["bucket"], rows=each["rows"], first=_tick(each["first"]), last=_tick(each["last"]))
        for each in told["row_groups"]
    ]
    return LandedSource(
        **_file(told),
        feed=told["feed"],
        declared=told["declared"],
        columns=tuple((name, kind) for name, kind in told["schema"]),
        row_groups=tuple(groups),
        blind_spans=tuple((_tick(start), _tick(end)) for start, end in told["blind_spans"]),
    )


def _tick(text: str) -> int:
    return (dt.datetime.fromisoformat(text) - EPOCH) // dt.timedelta(microseconds=1)
