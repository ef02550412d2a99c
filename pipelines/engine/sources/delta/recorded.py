"""A Delta table as a recorded feed: the rows of one version, or those that a span of commits added."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from pipelines.engine.columnar.columns import TIME
from pipelines.engine.landing.file_rows import with_unreadable
from pipelines.engine.landing.told_rows import alone, in_file
from pipelines.engine.sources.delta.columns import declared, with_committed
from pipelines.engine.sources.delta.errors import (
    DeltaTableMissingError,
    FileGoneError,
    VersionAheadError,
    VersionsGoneError,
)
from pipelines.engine.sources.delta.log import Log
from pipelines.engine.sources.delta.removals import taken_away, told_commit
from pipelines.engine.sources.delta.rows import rows_of
from pipelines.engine.sources.files import bytes_of
from pipelines.engine.sources.recorded_feed import recorded
from pipelines.engine.sources.rows_feed import Feed
from pipelines.flows.feeds.delta import Changes, DeltaSpec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from deltalake import DeltaTable

    from pipelines.engine.landing.file_rows import Line
    from pipelines.engine.landing.source_feed import SourceFeed
    from pipelines.engine.sources.delta.log import DataFile
    from pipelines.engine.sources.opening import Opening
    from pipelines.flows.model import Source


class _Part(NamedTuple):
    """A file that is read, or a commit that is told of in place of its files."""

    version: int
    at: int
    """When it was committed, in ticks."""
    file: DataFile | None
    told: Line | None = None


class DeltaFeed(Feed):
    """The rows of a Delta table, as it was when this was opened: a recorded feed.

    A version never changes, so nothing that lands here can change while it is read. Rows of a version come in the order
    in which its files were written, those of a span by commit and file.

    Args:
        source: what the flow says of it.
        base: the folder that the path begins in: the flow file's own.

    Raises:
        LandingError: there is no such table or version, its rows cannot be read as they stand, or it does not have
            what the source says of it.
    """

    def __init__(self, source: Source, base: Path) -> None:
        """Read the table's log."""
        self._source, self._spec = source, DeltaSpec.of(source.feed).table
        self._log = Log(source.name, base / source.feed.paths[0])
        table = self._log.opened()
        newest = table.version()
        wanted = (self._spec.version,) if self._spec.version is not None else self._spec.versions
        if max(wanted, default=0) > newest:
            raise VersionAheadError(source.name, str(self._log.path), max(wanted), newest)
        asked = newest if wanted == self._spec.versions[:1] else wanted[-1]
        self._version = asked
        table = table if asked == newest else self._opened(asked)
        self._shape = self._log.shape(table)
        self.schema = with_committed(source, declared(source, self._shape), self._spec.committed)
        """The columns that land, by the table's own names."""
        if self._spec.versions:
            self._parts = list(self._span(self._spec.versions[0]))
        else:
            self._parts = [_Part(asked, 0, file) for file in self._log.files(table)]

    def fingerprint(self) -> str:
        """Give digits that change with the table, its version, and with how it is read."""
        read = [self._shape.id, self._version, self._spec.versions, self._spec.committed, int(self._spec.changes)]
        return hashlib.sha256(json.dumps([*read, dict(self._source.feed.types)]).encode()).hexdigest()

    def size(self) -> int:
        """Give the bytes of the files of the version, or of the span."""
        return bytes_of(part.file.path for part in self._parts if part.file is not None)

    def read(self, where: pa.compute.Expression | None = None) -> Iterator[pa.RecordBatch]:
        """Give the rows that `where` allows, file by file.

        Raises:
            FileGoneError: VACUUM took a file of the version.
        """
        name = self._spec.committed
        for part in self._parts:
            if part.file is None:
                yield self._told(part)
                continue
            committed = (name, part.at) if name else None
            try:
                for batch in rows_of(part.file, self._shape, self.schema, committed, where):
                    yield in_file(batch, part.file.name)
            except FileNotFoundError:
                table = str(self._log.path)
                raise FileGoneError(self._source.name, table, part.version, part.file.name, is_live=False) from None

    def _opened(self, version: int) -> DeltaTable:
        try:
            return self._log.opened(version)
        except DeltaTableMissingError:
            last = min(self._log.versions(), default=version + 1) - 1
            first = self._spec.versions[0] if self._spec.versions else version
            raise VersionsGoneError(
                self._source.name, str(self._log.path), first, max(version, last), is_live=False
            ) from None

    def _span(self, first: int) -> Iterator[_Part]:
        latest = 0
        for version in range(first, self._version + 1):
            try:
                commit = self._log.commit(version)
            except FileNotFoundError:
                there = [each for each in self._log.versions() if each > version]
                last = min(there, default=self._version + 1) - 1
                raise VersionsGoneError(self._source.name, str(self._log.path), version, last, is_live=False) from None
            # Clocks of writers differ; a later commit is not an earlier one.
            latest = max(latest, commit.at)
            if commit.removed and self._spec.changes is Changes.STOP:
                raise taken_away(self._source.name, self._log.path, commit, self._shape, recorded=True)
            if commit.removed:
                yield _Part(version, latest, None, told_commit(commit))
            else:
                yield from (_Part(version, latest, file) for file in commit.adds)

    def _told(self, part: _Part) -> pa.RecordBatch:
        assert part.told is not None  # noqa: S101 - a part has a file or is told
        batch = alone(with_unreadable(self.schema), part.told)
        if self._spec.committed:
            place = batch.schema.get_field_index(self._spec.committed)
            at = pa.array([part.at], pa.int64()).cast(TIME)
            batch = batch.set_column(place, batch.schema.field(place), at)
        return in_file(batch, f"version {part.version}")


def open_source(source: Source, opening: Opening) -> SourceFeed:
    """Open a table at a version, or over a span of its commits."""
    return recorded(source, DeltaFeed(source, opening.base))
