"""The two streaming sources of a flow on Spark: the clock, whose offset is the reading, and the closed sequences.

Spark keeps a source's offsets in its log before an epoch runs, so an epoch that is run again after a crash sees the
same reading and the same sequences. Neither source hands out rows of data.

Spark unpickles a source in half a dozen processes as a stream starts, most of which only ask its name and its columns:
what reads a clock or a landing is imported where that is done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from pipelines.engine.columnar.clock import Readings

CLOCK, SEQUENCES = "pulseline_clock", "pulseline_sequences"
ALL = 2**31 - 1


class EpochPartition(InputPartition):
    """What one epoch takes: all after `after`, up to and with `upto`."""

    def __init__(self, after: int, upto: int) -> None:
        """Keep both ends."""
        self.after, self.upto = after, upto


class SpanReader(DataSourceStreamReader):
    """Give each epoch one row: where it begins and where it ends."""

    name = "offset"

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Give the epoch as one partition; none where nothing moved."""
        after, upto = start[self.name], end[self.name]
        return [EpochPartition(after, upto)] if after < upto else []

    def read(self, partition: InputPartition) -> Iterator[tuple[int, int]]:
        """Give the one row."""
        if isinstance(partition, EpochPartition):
            yield partition.after, partition.upto

    def __reduce__(self) -> tuple[type[SpanReader], tuple[()]]:
        """Send tasks what reads a partition, without the clock or the landing that planned it."""
        return SpanReader, ()


class ClockReader(SpanReader, SupportsTriggerAvailableNow):
    """Give a reading each time Spark asks how far the source is."""

    name = "reading"

    def __init__(self, options: dict[str, str]) -> None:
        """Take the clock that the options name."""
        self._start = int(options["start"])
        self._clock = clock_of(options)
        self._target: int | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Give the reading that the landing goes on from."""
        return {self.name: self._start}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: ARG002, N802
        """Give a new reading, or `start` where time has not moved."""
        last = max(int(start[self.name]), self._start)
        if self._target is not None:
            return {self.name: max(last, self._target)}
        return {self.name: self._clock.read(last)}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Take one reading, and no other."""
        self._target = self._clock.read(self._start)


def clock_of(options: dict[str, str]) -> Readings:
    """Give the clock that a source's options name."""
    from pipelines.engine.columnar.clock import SimulatedClock, WallClock

    if options["clock"] == "simulated":
        return SimulatedClock(int(options["end"]), float(options["speed"]))
    return WallClock(int(options["max_jump"]))


class SequenceReader(SpanReader, SupportsTriggerAvailableNow):
    """Give the ids of closed sequences; the sequences themselves are opened by the epoch's tasks."""

    name = "sequence"

    def __init__(self, options: dict[str, str]) -> None:
        """Look at the landing that the options name."""
        from pipelines.engine.files.stored import path_of
        from pipelines.engine.landing.manifest import is_closed
        from pipelines.engine.live import drains

        self._landing, self._after = path_of(options["landing"]), int(options["after"])
        self._most, self._drains = int(options["most"]), drains.from_options(options, self._landing)
        self._known, self._target = self._after, ALL
        self._is_closed = is_closed

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Give the last sequence that the tables hold already."""
        return {self.name: self._after}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Take at most so many sequences in one epoch."""
        return ReadMaxRows(self._most)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        """Give the last closed sequence, or as far as the limit allows; where the region says when it drains, that."""
        begun = int(start[self.name])
        most = self._most if isinstance(limit, ReadAllAvailable) else min(self._most, limit.max_rows)  # type: ignore[attr-defined]
        self._known = max(self._known, begun)
        while self._known < self._target and self._is_closed(self._landing, self._known + 1):
            self._known += 1
        if self._drains is not None:
            return {self.name: self._drains.next(begun, self._known)}
        return {self.name: min(self._known, begun + most)}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Take what is closed now, and no more."""
        known = self._after
        while self._is_closed(self._landing, known + 1):
            known += 1
        self._target = known


class ClockSource(DataSource):
    """`spark.readStream.format("pulseline_clock")`: one row an epoch, the previous reading and this one."""

    @classmethod
    def name(cls) -> str:
        """Give the word for `format`."""
        return CLOCK

    def schema(self) -> str:
        """Give the columns."""
        return "after bigint, upto bigint"

    def streamReader(self, schema: StructType) -> Any:  # noqa: ANN401, ARG002, N802 - Spark's interface
        """Give the reader."""
        return ClockReader(dict(self.options))


class SequenceSource(ClockSource):
    """`spark.readStream.format("pulseline_sequences")`: one row an epoch, ids of sequences after and up to."""

    @classmethod
    def name(cls) -> str:
        """Give the word for `format`."""
        return SEQUENCES

    def streamReader(self, schema: StructType) -> Any:  # noqa: ANN401, ARG002, N802 - Spark's interface
        """Give the reader."""
        return SequenceReader(dict(self.options))


def register(spark: SparkSession) -> None:
    """Make both sources known to a session."""
    spark.dataSource.register(ClockSource)
    spark.dataSource.register(SequenceSource)
