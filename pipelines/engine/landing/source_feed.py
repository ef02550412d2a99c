"""What every source is to the landing, recorded or live: one that says what arrived until a reading."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from pipelines.engine.landing.arrived import Standing

if TYPE_CHECKING:
    import pyarrow as pa

    from pipelines.engine.landing.arrived import Arrived
    from pipelines.engine.landing.file_rows import Line
    from pipelines.engine.landing.progress import SourceProgress
    from pipelines.flows.model import Source


class Reading(NamedTuple):
    """Which rows are asked for."""

    start: int
    """The reading before, in ticks."""
    end: int
    """The closing reading, in ticks; exclusive."""
    buckets: int = 0
    """Of the landing; files of a feed can stand for one, and rows are copied for another number."""
    standing: Standing = Standing.LATER
    """Of the span in its run: rows of a source's history land with the first."""
    limit_rows: int | None = None
    """Of a live source: about how many rows are read at most; what waits then is told in `left`."""


class SourceFeed(Protocol):
    """A source's rows, as the landing asks for them."""

    source: Source
    schema: pa.Schema
    """The payload as it lands."""

    def fingerprint(self) -> str:
        """Give digits that change when rows that can be read again may have; empty where rows come once."""

    def told(self, most: int) -> list[tuple[str, Line]]:
        """Give what the ledger will be told of the first rows, with the file of each; nothing where rows come once.

        Args:
            most: how many rows are read.
        """

    def arrivals(self, most: int, within: tuple[int, int] | None = None) -> tuple[int, int] | None:
        """Give the first and the last arrival, in ticks; None where rows come once, have none, or are too many.

        Args:
            most: how many rows are read.
            within: the span that is looked at, in ticks, its end exclusive; all of time unless given.
        """

    def size(self) -> int | None:
        """Give the bytes of all rows as they lie in the feed; None where rows come once."""

    def listen(self, known: SourceProgress) -> None:
        """Begin to hear what comes in between readings; a source that waits to be asked does nothing."""

    def look(self, known: SourceProgress) -> int:
        """See what is there now; give an instant, in ticks, at which all of that had come.

        A reading behind that instant may land it. Whoever only calls `arrive` has it looked there, and what is seen
        too late for the reading lands with the next. A recorded feed, whose rows have their own arrivals, gives the
        beginning of time.

        Args:
            known: what closed sequences have dealt with.

        Raises:
            LandingError: the source cannot be read.
        """

    def arrive(self, reading: Reading, known: SourceProgress) -> Arrived:
        """Give what lands in the sequence that closes at a reading.

        Rows of a recorded feed arrive when they say. All others arrive one tick before the reading, and are nothing of
        which it is not known that it had come by then: no row arrives before it came.

        Args:
            reading: the span, and what bounds it.
            known: what closed sequences have dealt with.

        Raises:
            LandingError: the source cannot be read.
        """

    def close(self) -> None:
        """End what `listen` began; nothing that was heard is lost."""
