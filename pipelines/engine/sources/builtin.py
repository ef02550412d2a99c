"""Data that comes with a package, as a recorded feed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.engine.landing.errors import FeedMissingError
from pipelines.engine.sources import nycflights as flights
from pipelines.engine.sources.recorded_feed import recorded
from pipelines.engine.sources.rows_feed import BATCH, Feed
from pipelines.flows.feeds.builtin import BuiltInSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from pipelines.engine.landing.source_feed import SourceFeed
    from pipelines.engine.sources.opening import Opening
    from pipelines.flows.model import Source


class BuiltInFeed(Feed):
    """Data that comes with a package."""

    def __init__(self, name: str) -> None:
        """Find the feed; its data is read when it is asked for, once a process."""
        if name not in flights.BUILT_IN:
            raise FeedMissingError(f"`{name}`", "the built-in feeds: " + ", ".join(flights.BUILT_IN))
        flights.data_folder()
        self._rows, self.schema = flights.BUILT_IN[name], flights.SCHEMAS[name]

    def fingerprint(self) -> str:
        """Give digits that change with the package's data."""
        return flights.data_fingerprint()

    def size(self) -> int:
        """Give the bytes of the rows in memory."""
        return int(self._rows().nbytes)

    def read(self, where: pa.compute.Expression | None = None) -> Iterator[pa.RecordBatch]:
        """Give the rows that `where` allows, in the package's order."""
        table = self._rows() if where is None else self._rows().filter(where)
        yield from table.to_batches(max_chunksize=BATCH)

    def read_doubtful(self) -> Iterator[pa.RecordBatch]:
        """Give nothing: there is no row of the package's that could not be read."""
        yield from ()


def open_source(source: Source, _: Opening) -> SourceFeed:
    """Open a built-in feed."""
    return recorded(source, BuiltInFeed(BuiltInSpec.of(source.feed).name))
