"""The two queries of a live flow on Spark Structured Streaming: the landing, and the flow over what it closed.

Both hold the run's lease through one driver. A query that is stopped finishes what it is at; what it never began it
leaves to the next start, which finds it in the tables.
"""

from __future__ import annotations

import re
import threading
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from pipelines.engine.commits.lease import say
from pipelines.engine.live.checkpoints import checkpoint
from pipelines.engine.live.spark_sources import CLOCK, SEQUENCES, register
from pipelines.engine.live.why_ended import why_ended
from pipelines.errors import PulselineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

FLOW = "flow"
"""Name of the query that runs the flow."""
STOPPED = "pulseline was asked to stop; nothing of this epoch was begun"

SLOW_WORKER = re.compile(r"Python worker (failed )?to connect back")
"""Spark gives a Python process 10 s to begin, which no setting changes; a machine full of work may take longer."""
REGISTERING = threading.Lock()
"""Held from the registration of a source to the query that is made of it: Spark notes settings with a source's Python
as its query begins, and two queries with one and the same would note them at once."""
MOST_STARTS = 20
"""How often a query is started before a worker that is slow to begin ends it for good."""


@dataclass(eq=False)
class QueryFailedError(PulselineError, RuntimeError):
    """Spark ended a query by itself, in no epoch of ours."""

    query: str
    why: str
    says = "the {query} query must run until it is stopped; Spark ended it: {why} (start it again to go on)"


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

    def is_shut(self, name: str) -> bool:
        """Say whether a query is to stop."""
        return name in self._shut

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
        since: number of the reset that the query goes on from, 0 for none: each has a checkpoint of its own.
        overtaken: number of the lease that was taken from a driver that lived, 0 for none: as well.
        watched: around each job of the query's own, which workers have to take however small an epoch is.
    """

    spark: SparkSession
    name: str
    source: str
    options: Mapping[str, str]
    root: Path
    epoch: Callable[[int, int], object]
    gate: Gate
    since: int = 0
    overtaken: int = 0
    watched: Callable[[], AbstractContextManager[object]] = nullcontext
    error: BaseException | None = None
    query: StreamingQuery | None = None
    _starts: int = 0
    _again: Callable[[], object] = field(default=lambda: None, repr=False)

    def start(self, trigger: str | None, tell: Callable[[str], object] = say) -> None:
        """Start the query.

        Args:
            trigger: time between two epochs, such as `500 milliseconds`; None takes what is there and ends.
            tell: told when its checkpoint cannot be read and is made anew.
        """
        self._again = partial(self.start, trigger, tell)
        self._starts += 1
        with REGISTERING:
            register(self.spark)
            rows = self.spark.readStream.format(self.source).options(**self.options).load()
        writer = rows.writeStream.foreachBatch(self._run).queryName(f"{self.name}-{self.root.name}")
        folder = checkpoint(self.root, self.name, self.since, tell, self.overtaken)
        writer = writer.option("checkpointLocation", str(folder))
        writer = writer.trigger(availableNow=True) if trigger is None else writer.trigger(processingTime=trigger)
        self.query = writer.start()

    def _run(self, rows: DataFrame, _: int) -> None:
        try:
            spans = self._spans(rows)
            with self.gate.through(self.name):
                for span in spans:
                    self.epoch(span["after"], span["upto"])
        except BaseException as error:
            self.error = self.error or error
            raise

    def _spans(self, rows: DataFrame) -> list[Row]:
        try:
            with self.watched():
                return rows.collect()
        except Exception as error:
            # Spark ends a query that is to stop in the middle of its job.
            if self.gate.is_shut(self.name):
                raise StreamStopped(STOPPED) from error
            raise

    @property
    def running(self) -> bool:
        """Say whether the query still runs."""
        return self.query is not None and (self.query.isActive or self._is_begun_again())

    def _is_begun_again(self) -> bool:
        """Start a query again that had begun nothing, for its Python process did not begin in time."""
        ended = self.query.exception() if self.query is not None else None
        slow = ended is not None and self.error is None and SLOW_WORKER.search(why_ended(ended))
        if not slow or self._starts >= MOST_STARTS or self.gate.is_shut(self.name):
            return False
        say(
            f"the {self.name} query is started again ({self._starts} of {MOST_STARTS} starts so far): its Python "
            "process was not up within Spark's 10 s, for this machine has more to do than it can"
        )
        self._again()
        return True

    def wait(self) -> None:
        """Wait for a query that takes what is there and ends.

        Raises:
            BaseException: what an epoch raised.
            QueryFailedError: Spark ended it for a reason of its own.
        """
        from pyspark.errors import StreamingQueryException

        while self.query is not None:
            try:
                self.query.awaitTermination()
                break
            except StreamingQueryException as error:
                if not self._is_begun_again():
                    raise self.error or QueryFailedError(self.name, self._why(error)) from error
        self.failed()

    def failed(self) -> None:
        """Raise what ended the query, unless it was asked to end.

        Raises:
            BaseException: what an epoch raised.
            QueryFailedError: Spark ended it for a reason of its own.
        """
        if self.error is not None and not isinstance(self.error, StreamStopped):
            raise self.error
        found = None if self.query is None or self.query.isActive else self.query.exception()
        if found is not None and self.error is None:
            raise QueryFailedError(self.name, self._why(found)) from found

    def _why(self, ended: BaseException) -> str:
        why = why_ended(ended)
        if not SLOW_WORKER.search(why):
            return why
        return (
            f"its Python process was not up within Spark's 10 s, {self._starts} times in a row, for this machine has "
            "more to do than it can: nothing is lost, and it begins once there is less"
        )

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
    since: int = 0,
    drains: Mapping[str, str] = MappingProxyType({}),
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
        since: number of the run's newest reset, 0 for none: what was planned before it counts no more.
        drains: what `drains.to_options` gave, where the region says when it drains; `most` bounds nothing then.
    """
    options = {"landing": str(landing), "after": str(after), "most": str(most), **drains}
    return LiveQuery(spark, FLOW, SEQUENCES, options, root, advance, gate, since)
