"""Recorded feeds: rows out of Parquet and CSV files and built-in data, in an order that never changes.

The order of a feed is the order of its paths, a pattern's files by name, and inside a file its rows. A feed knows
nothing of keys, arrivals or time zones of keys; it gives what it has, and says when it may have changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pipelines.engine.landing.errors import FeedMissingError
from pipelines.engine.landing.file_rows import ColumnTerms
from pipelines.engine.landing.undeclared import Names
from pipelines.engine.sources import nycflights as flights
from pipelines.engine.sources.files import find_files
from pipelines.engine.sources.formats.csv_feed import CsvFeed
from pipelines.engine.sources.formats.json_feed import JsonFeed
from pipelines.engine.sources.formats.parquet_feed import BATCH, ParquetFeed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pyarrow as pa

    from pipelines.flows.model import FeedSpec


class Feed(Protocol):
    """Rows that can be read again and again, in one order."""

    schema: pa.Schema
    """The columns as the feed has them."""

    def fingerprint(self) -> str:
        """Give digits that change when the rows may have; cheap, nothing is read."""

    def read(self, where: pa.compute.Expression | None = None) -> Iterator[pa.RecordBatch]:
        """Give the rows in the feed's order; those that `where` refuses may be left out, or not.

        A feed out of text may give one column more, `UNREADABLE`: JSON of what could not be read in a row, null where
        all could. One that has rows which cannot land, or columns that nobody declared, gives those of `told_rows`.
        """


def open_feed(spec: FeedSpec, base: Path, terms: ColumnTerms | None = None) -> Feed:
    """Open the feed that a source declares; no row is read yet.

    Args:
        spec: what the flow says.
        base: the folder that relative paths begin in: the flow file's own.
        terms: what becomes of rows with other columns; what the feed says, unless given.

    Raises:
        FeedMissingError: no file, or no built-in feed, of that name.
        FeedUnreadableError: no file is what the feed was declared to be.
    """
    if spec.kind == "builtin":
        return BuiltInFeed(spec.name or "")
    files = find_files(spec.paths, base, spec.kind)
    terms = terms or ColumnTerms(spec.lacking, spec.retyped, Names())
    feeds: dict[str, Callable[..., Feed]] = {"csv": CsvFeed, "parquet": ParquetFeed, "json": JsonFeed}
    return feeds[spec.kind](files, spec, terms, base)


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
