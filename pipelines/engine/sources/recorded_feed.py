"""A recorded feed as a source: what of it goes into one sequence, by its own account of when rows arrived."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pipelines.engine.columnar.columns import ticks
from pipelines.engine.columnar.content import ContentHash, content_hash
from pipelines.engine.landing.arrived import Arrived, Standing, declared
from pipelines.engine.landing.errors import FeedChangedError, LandingError
from pipelines.engine.landing.seen_files import FileCame
from pipelines.engine.landing.stamp import LANDED_LEDGER, Stamped, landed_row_schema, stamp
from pipelines.engine.landing.undeclared import table_of
from pipelines.engine.sources.by_reference import refer
from pipelines.engine.sources.recording import Recording, RowsRead
from pipelines.operators.rows import MIN_TIME

if TYPE_CHECKING:
    from pipelines.engine.landing.file_rows import Line
    from pipelines.engine.landing.progress import SourceProgress
    from pipelines.engine.landing.references import ReferencedRows
    from pipelines.engine.landing.source_feed import Reading
    from pipelines.engine.sources.rows_feed import Feed
    from pipelines.flows.model import Source

HISTORY = "rows that arrived before it land in it"


class RecordedFeed:
    """A feed whose rows say when they arrived, and that can be read again: a `SourceFeed`.

    Args:
        recording: its rows.
    """

    def __init__(self, recording: Recording) -> None:
        """Read nothing."""
        self.source, self.schema, self._recording = recording.source, recording.schema, recording

    def fingerprint(self) -> str:
        """Give digits that change when the feed's rows may have; see `Recording.fingerprint`."""
        return self._recording.fingerprint()

    def told(self, most: int) -> list[tuple[str, Line]]:
        """Give what the ledger will be told of the first rows, with the file of each; see `Recording.told`."""
        return self._recording.told(most)

    def arrivals(self, most: int, within: tuple[int, int] | None = None) -> tuple[int, int] | None:
        """Give the first and the last arrival; see `Recording.arrivals`."""
        return self._recording.arrivals(most, within)

    def size(self) -> int | None:
        """Give the bytes of the feed as it lies there."""
        return self._recording.size()

    def listen(self, known: SourceProgress) -> None:
        """Do nothing: rows are there already."""

    def look(self, known: SourceProgress) -> int:  # noqa: ARG002 - part of the protocol
        """Give the beginning of time: no reading has to wait for rows that say when they arrived."""
        return MIN_TIME

    def close(self) -> None:
        """Do nothing: nothing is open between two readings."""

    def arrive(self, reading: Reading, known: SourceProgress) -> Arrived:  # noqa: ARG002 - what landed before does not matter
        """Give what arrived in a span by the feed's own account; where its files can stand for it, nothing is read.

        Raises:
            FeedChangedError: the feed changed meanwhile.
        """
        feed = self.fingerprint()
        since = _since(self.source, reading.start) if reading.standing is Standing.FIRST else None
        try:
            arrived = _found(self._recording, reading.start, reading.end, reading.buckets, since)
        except (LandingError, OSError):
            self._require_still(feed)
            raise
        self._require_still(feed)
        return arrived._replace(feed=feed, declared=declared(self.source, reading.standing))

    def _require_still(self, feed: str) -> None:
        if self.fingerprint() != feed:
            raise FeedChangedError(self.source.name)


def recorded(source: Source, feed: Feed) -> RecordedFeed:
    """Give a feed as a source.

    Raises:
        LandingError: the feed does not have what the source says of it.
    """
    return RecordedFeed(Recording(source, feed))


def _since(source: Source, start: int) -> int | None:
    return None if source.history is None else max(start - source.history, MIN_TIME)


def _found(recording: Recording, start: int, end: int, buckets: int, since: int | None) -> Arrived:
    referenced: ReferencedRows | str = ""
    if recording.files:
        referenced = HISTORY if since is not None else _refer(recording, start, end, buckets)
    if isinstance(referenced, str):
        first = start if since is None else since
        read = recording.between(first, end)
        stamped = stamp(recording.source, read.rows, recording.orphans(), start, end, since)
        came = _came(recording, read, first, end)
        return _arrived(recording, stamped, content_hash(stamped.rows))._replace(copied=referenced, came=came)
    nothing = Stamped(landed_row_schema(recording.schema).empty_table(), LANDED_LEDGER.empty_table())
    if not referenced.files:
        return _arrived(recording, nothing, content_hash(nothing.rows))
    return _arrived(recording, nothing, None)._replace(referenced=referenced)


def _came(recording: Recording, read: RowsRead, first: int, end: int) -> tuple[FileCame, ...]:
    """Name the files of which rows arrived in [first, end), each with what these rows say."""
    arrival = ticks(read.rows[recording.source.arrival])
    mine = (arrival >= first) & (arrival < end)
    payload, at = read.rows.select(recording.schema.names), 0
    found: dict[str, ContentHash] = {}
    for file, count in read.files:
        inside = mine[at : at + count]
        if inside.any():
            rows = payload.slice(at, count).filter(pa.array(inside))
            found[file] = found.get(file, ContentHash()) + content_hash(rows)
        at += count
    return tuple(FileCame(path=file, content=content) for file, content in found.items())


def _refer(recording: Recording, start: int, end: int, buckets: int) -> ReferencedRows | str:
    if buckets != 1:
        return "rows are cut by their key, into several buckets"
    if recording.odd:
        odd, orphans = recording.odd_between(start, end), recording.orphans()
        if stamp(recording.source, odd, orphans, start, end).any:
            return "some come from files with other columns than the first one's, or from files that cannot be read"
    return refer(recording, start, end)


def _arrived(recording: Recording, stamped: Stamped, content: ContentHash | None) -> Arrived:
    found = Arrived(recording.schema, stamped.rows, stamped.ledger, content, "", declared(recording.source))
    return found._replace(
        punctuations=stamped.punctuations,
        added=tuple((name, column.kind) for name, column in stamped.undeclared.items()),
        others=table_of(stamped.undeclared),
    )
