"""Recorded feeds: rows out of Parquet and CSV files and built-in data, in an order that never changes.

The order of a feed is the order of its paths, a pattern's files by name, and inside a file its rows. A feed knows
nothing of keys, arrivals or time zones of keys; it gives what it has, and says when it may have changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from pipelines.engine import flights
from pipelines.engine.csv_feed import CsvFeed
from pipelines.engine.feed_files import files_fingerprint, find_files
from pipelines.engine.json_feed import JsonFeed
from pipelines.engine.landing_errors import FeedMissingError, FeedUnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pipelines.flows.model import FeedSpec

BATCH = 131_072


class Feed(Protocol):
    """Rows that can be read again and again, in one order."""

    schema: pa.Schema
    """The columns as the feed has them."""

    def fingerprint(self) -> str:
        """Give digits that change when the rows may have; cheap, nothing is read."""

    def read(self, where: pa.compute.Expression | None = None) -> Iterator[pa.RecordBatch]:
        """Give the rows in the feed's order; those that `where` refuses may be left out, or not.

        A feed out of text may give one column more, `UNREADABLE`: JSON of what could not be read in a row, null where
        all could.
        """


def open_feed(spec: FeedSpec, base: Path) -> Feed:
    """Open the feed that a source declares; no row is read yet.

    Args:
        spec: what the flow says.
        base: the folder that relative paths begin in: the flow file's own.

    Raises:
        FeedMissingError: no file, or no built-in feed, of that name.
        FeedUnreadableError: a file is not what it was declared to be.
    """
    if spec.kind == "builtin":
        return BuiltInFeed(spec.name or "")
    files = find_files(spec.paths, base, spec.kind)
    if spec.kind == "json":
        return JsonFeed(files, spec)
    return ParquetFeed(files) if spec.kind == "parquet" else CsvFeed(files, spec)


class BuiltInFeed:
    """Data that comes with a package."""

    def __init__(self, name: str) -> None:
        """Find the feed; its data is read now, once a process."""
        if name not in flights.BUILT_IN:
            raise FeedMissingError(f"`{name}`", "the built-in feeds: " + ", ".join(flights.BUILT_IN))
        self._table = flights.BUILT_IN[name]()
        self.schema = self._table.schema

    def fingerprint(self) -> str:
        """Give digits that change with the package's data."""
        return flights.data_fingerprint()

    def read(self, where: pa.compute.Expression | None = None) -> Iterator[pa.RecordBatch]:
        """Give the rows that `where` allows, in the package's order."""
        table = self._table if where is None else self._table.filter(where)
        yield from table.to_batches(max_chunksize=BATCH)


class ParquetFeed:
    """Parquet files of one schema; row groups that `where` rules out are not read."""

    def __init__(self, files: Sequence[Path]) -> None:
        """Read the files' footers, and see that all have the first one's columns."""
        self.files = tuple(files)
        """In the order of their rows."""
        self.schema = _schema(self.files[0]).remove_metadata()
        for file in self.files[1:]:
            came = _schema(file).remove_metadata()
            if not came.equals(self.schema):
                columns = ", ".join(f"{field.name} {field.type}" for field in self.schema)
                declared = f"Parquet with the columns of {self.files[0]} ({columns})"
                raise FeedUnreadableError(str(file), declared, _difference(self.schema, came))

    def fingerprint(self) -> str:
        """Give digits that change with the files."""
        return files_fingerprint(self.files, "parquet")

    def read(self, where: pa.compute.Expression | None = None) -> Iterator[pa.RecordBatch]:
        """Give the rows that `where` allows, file by file, as they stand in them."""
        recorded = ds.dataset([str(file) for file in self.files], schema=self.schema, format="parquet")
        for fragment in recorded.get_fragments():
            yield from fragment.to_batches(schema=self.schema, filter=where, batch_size=BATCH)


def _schema(file: Path) -> pa.Schema:
    try:
        return pq.read_schema(file)
    except pa.ArrowInvalid as error:
        raise FeedUnreadableError(str(file), "Parquet", str(error)) from error


def _difference(wanted: pa.Schema, came: pa.Schema) -> str:
    differ = [f"`{field.name}` is {field.type}" for field in came if field not in list(wanted)]
    missing = [f"`{name}` is missing" for name in wanted.names if name not in came.names]
    return "; ".join([*differ, *missing]) or "its columns stand in another order"
