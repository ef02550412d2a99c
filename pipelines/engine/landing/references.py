"""Landed rows that lie in the feed's own files: which ones, how to know them again, and their stamps, made when read.

A reference holds what a copy would have: the same rows in the same order with the same stamps. What could differ is
refused when it lands (`sources.by_reference`); that the files still hold the very bytes is looked at each time they are
opened.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import closing
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import Instant, ticks
from pipelines.engine.files.ordered import BLOCK, batches
from pipelines.engine.files.stored import path_of
from pipelines.engine.landing.errors import ReferenceBrokenError
from pipelines.engine.landing.stamp import kind_of, landed_row_schema, places, times_of
from pipelines.flows.codec import Spelling
from pipelines.flows.feeds.spec import NOWHERE
from pipelines.flows.model import Source
from pipelines.operators.rows import MAX_TIME, MIN_TIME, NULL, Shape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipelines.operators.rows import Longs


@dataclass(frozen=True, kw_only=True)
class Reference:
    """Rows of one file that follow one another, and how to know the file again."""

    path: str
    """Absolute, so that a task finds it from anywhere."""
    size: int
    """In bytes."""
    sha256: str
    changed: int = field(compare=False)
    """Its time of change in nanoseconds: as long as size, this and `touched` are the same, it is not read again."""
    touched: int = field(compare=False)
    """When anything about it changed, its times among that, in nanoseconds; nobody can set it."""
    groups: tuple[int, ...]
    """Its row groups that hold the rows."""
    skip: int
    """Rows at the begin of the first of them that came in earlier."""
    rows: int
    first: Instant
    """Arrival of the first row."""
    last: Instant
    """Arrival of the last row."""

    def check(self) -> None:
        """See that the file is there with the bytes that landed.

        Bytes are read only where size and times leave it open, and then once a process.

        Raises:
            ReferenceBrokenError: it is gone, or has changed.
        """
        times = self._times()
        if times != (self.changed, self.touched):
            self._compare(*times)

    def verify(self) -> None:
        """See that the file holds the very bytes that landed; as it is now, they are read once a process.

        Raises:
            ReferenceBrokenError: it does not, or is gone.
        """
        self._compare(*self._times())

    def _times(self) -> tuple[int, int]:
        """Give the file's times of change as they are now, where it has the size that it had."""
        try:
            seen = os.stat(self.path)  # noqa: PTH116 - a path as text
        except FileNotFoundError:
            raise ReferenceBrokenError(self.path, "it is gone") from None
        if seen.st_size != self.size:
            raise ReferenceBrokenError(self.path, f"it has {seen.st_size} bytes and had {self.size}")
        return seen.st_mtime_ns, seen.st_ctime_ns

    def _compare(self, changed: int, touched: int) -> None:
        if digest_of(self.path, self.size, changed, touched) != self.sha256:
            raise ReferenceBrokenError(self.path, "it holds other bytes than landed")

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Open the file and give the rows, in blocks.

        Raises:
            ReferenceBrokenError: the file is gone or has changed.
        """
        self.check()
        skip, left = self.skip, self.rows
        with closing(batches(self.path, self.groups, BLOCK)) as read:
            for batch in read:
                part = batch.slice(skip, left)
                skip, left = max(skip - batch.num_rows, 0), left - part.num_rows
                if part.num_rows:
                    yield part
                if not left:
                    return


@dataclass(frozen=True, kw_only=True)
class ReferencedRows:
    """All rows of a source in one sequence, where they lie in files of the feed."""

    source: Source
    """What the flow said, when they landed, of the columns that stamps are made from."""
    files: tuple[Reference, ...]
    """In the order of their rows."""

    @property
    def rows(self) -> int:
        """Count the rows."""
        return sum(file.rows for file in self.files)

    def check(self) -> None:
        """See that all files are there with the bytes that landed.

        Raises:
            ReferenceBrokenError: one is gone, or has changed.
        """
        for file in self.files:
            file.check()

    def blocks(self) -> Iterator[pa.Table]:
        """Read the rows with their stamps, as a copy would have them, in their order and in blocks.

        `place` numbers the rows of one arrival across blocks and files; a sequence shares no arrival with another.

        Raises:
            ReferenceBrokenError: a file is gone, has changed, or its statistics were not true of its rows.
        """
        last, count = NULL, 0
        for file in self.files:
            for batch in file.batches():
                rows = batch.rename_columns([self.source.rename.get(name, name) for name in batch.schema.names])
                instants = self._guarded(file, rows, last)
                numbers = places(instants)
                numbers[: np.searchsorted(instants, last, side="right")] += count
                last, count = int(instants[-1]), int(numbers[-1])
                yield self._stamped(rows, numbers)

    def _guarded(self, file: Reference, rows: pa.RecordBatch, last: int) -> Longs:
        """Give the arrivals of rows that are what the landing took them for."""
        source = self.source
        named = [rows.column(name) for name in (source.arrival, *source.key)]
        instants = ticks(named[0])
        in_order = instants[0] >= last and (instants[1:] >= instants[:-1]).all()
        if not in_order or any(column.null_count for column in named) or not all(map(_readable, rows.columns)):
            raise ReferenceBrokenError(file.path, "its rows are not what its own statistics said of them")
        return instants

    def _stamped(self, rows: pa.RecordBatch, numbers: Longs) -> pa.Table:
        table = pa.Table.from_batches([rows])
        kind = kind_of(self.source, table)
        stamps = [kind, table[self.source.arrival], pa.array(numbers), *times_of(self.source, table, kind).values()]
        payload = pa.schema([(field.name, field.type) for field in table.schema])
        return pa.Table.from_arrays([*stamps, *table.columns], schema=landed_row_schema(payload))


def _readable(column: pa.Array) -> bool:
    if not pa.types.is_timestamp(column.type) or column.null_count == len(column):
        return True
    ends = pc.min_max(column.view(pa.int64()))
    return bool(ends["min"].as_py() >= MIN_TIME and ends["max"].as_py() <= MAX_TIME)


@lru_cache(maxsize=4_096)
def digest_of(path: str, size: int, changed: int, touched: int) -> str:  # noqa: ARG001 - others are another file
    """Give the SHA-256 of a file that has this size and these times, in hex; it is read once a process."""
    return _digest(path)


def _digest(path: str) -> str:
    with path_of(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _stamps_to_json(source: Source) -> dict[str, Any]:
    said = {name: getattr(source, name) for name in ("time", "arrival", "end", "edge")}
    return said | {"key": list(source.key), "shape": source.shape.name.lower(), "rename": dict(source.rename)}


def _stamps_from_json(said: dict[str, Any]) -> Source:
    known = {"key": tuple(said["key"]), "shape": Shape[said["shape"].upper()]}
    return Source(feed=NOWHERE, **said | known)


STAMPS = Spelling(_stamps_to_json, _stamps_from_json)
"""How manifests say what stamps are made from; the name of the source stands above."""
