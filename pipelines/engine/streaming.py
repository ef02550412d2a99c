"""The two queries of a live flow on Spark Structured Streaming: the landing, and the flow over what it closed.

Both hold the run's lease through one driver. A query that is stopped finishes what it is at; what it never began it
leaves to the next start, which finds it in the tables.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pipelines.engine.spark_sources import CLOCK, SEQUENCES, register

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

CHECKPOINTS = "checkpoints"
STOPPED = "pulseline was asked to stop; nothing of this epoch was begun"


class StreamStopped(Exception):  # noqa: N818 - not a mistake: it ends a query that was asked to stop
    """The query was asked to stop before this epoch began."""


@dataclass
class Gate:
    """Lets one epoch of each query through at a time, and none once it is shut.

    Safe to shut at any moment: `shut` returns when whatever was under way has ended.
    """

    _locks: dict[str, threading.Lock] = field(default_factory=dict)
    _shut: set[str] = field(default_factory=set)

    @contextmanager
    def through(self, name: str) -> Iterator[None]:
        """Let one epoch of a query through.

        Raises:
            StreamStopped: the query is to stop.
        """
        with self._locks.setdefault(name, threading.Lock()):
            if name in self._shut:
                raise StreamStopped(STOPPED)
            yield

    def shut(self, name: str) -> None:
        """Let nothing of a query through any more, and wait for what is under way."""
        self._shut.add(name)
        with self._locks.setdefault(name, threading.Lock()):
            return


@dataclass
class LiveQuery:
    """One streaming query whose epochs are spans of a source's offsets.

    Args:
        spark: the session.
        name: `landing` or `flow`.
        source: format of the source.
        options: of the source.
        root: the run's folder; the checkpoint lies in it.
        epoch: what an epoch does with (after, up to).
        gate: through which its epochs go.
    """

    spark: SparkSession
    name: str
    source: str
    options: Mapping[str, str]
    root: Path
    epoch: Callable[[int, int], object]
    gate: Gate
    error: BaseException | None = None
    query: StreamingQuery | None = None

    def start(self, trigger: str | None) -> None:
        """Start the query.

        Args:
            trigger: time between two epochs, such as `500 milliseconds`; None takes what is there and ends.
        """
        register(self.spark)
        rows = self.spark.readStream.format(self.source).options(**self.options).load()
        writer = rows.writeStream.foreachBatch(self._run).queryName(f"{self.name}-{self.root.name}")
        writer = writer.option("checkpointLocation", str(self.root / CHECKPOINTS / self.name))
        writer = writer.trigger(availableNow=True) if trigger is None else writer.trigger(processingTime=trigger)
        self.query = writer.start()

    def _run(self, rows: DataFrame, _: int) -> None:
        spans = rows.collect()
        try:
            with self.gate.through(self.name):
                for span in spans:
                    self.epoch(span["after"], span["upto"])
        except BaseException as error:
            self.error = self.error or error
            raise

    @property
    def running(self) -> bool:
        """Say whether the query still runs."""
        return self.query is not None and self.query.isActive

    def wait(self) -> None:
        """Wait for a query that takes what is there and ends.

        Raises:
            BaseException: what ended it early.
        """
        from pyspark.errors import StreamingQueryException

        try:
            if self.query is not None:
                self.query.awaitTermination()
        except StreamingQueryException as error:
            raise self.error or error from error
        self.failed()

    def failed(self) -> None:
        """Raise what ended the query, unless it was asked to end.

        Raises:
            BaseException: what an epoch raised, or Spark's own error.
        """
        if self.error is not None and not isinstance(self.error, StreamStopped):
            raise self.error
        found = None if self.query is None or self.query.isActive else self.query.exception()
        if found is not None and self.error is None:
            raise found

    def stop(self) -> None:
        """Let the epoch under way end, and begin no other."""
        self.gate.shut(self.name)
        if self.query is not None:
            self.query.stop()


def landing_query(  # noqa: PLR0913 - what a query is made of
    spark: SparkSession,
    root: Path,
    clock: Mapping[str, str],
    start: int,
    land: Callable[[int, int], object],
    gate: Gate,
) -> LiveQuery:
    """Give the query that lands: each reading of the clock closes a sequence.

    Args:
        spark: the session.
        root: the run's folder.
        clock: options of the clock source: `clock`, and `end` and `speed`, or `max_jump`.
        start: the reading to go on from, in ticks.
        land: lands everything before a reading; given the reading before and this one.
        gate: through which epochs go.
    """
    options = {**clock, "start": str(start)}
    return LiveQuery(spark, "landing", CLOCK, options, root, land, gate)


def flow_query(  # noqa: PLR0913 - what a query is made of
    spark: SparkSession,
    root: Path,
    landing: Path,
    after: int,
    most: int,
    advance: Callable[[int, int], object],
    gate: Gate,
) -> LiveQuery:
    """Give the query that runs the flow over closed sequences.

    Args:
        spark: the session.
        root: the run's folder.
        landing: folder of the sequences.
        after: the last sequence that the tables hold.
        most: sequences in one epoch at most.
        advance: runs one epoch over the sequences after one id up to another.
        gate: through which epochs go.
    """
    options = {"landing": str(landing), "after": str(after), "most": str(most)}
    return LiveQuery(spark, "flow", SEQUENCES, options, root, advance, gate)
