"""What the heartbeat is measured against: Spark's shuffle and sort, and a heartbeat in Spark's stateful operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from pipelines.jobs.bench.figures import Median, median_seconds
from pipelines.operators.rows import NULL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from typing import Any

    from pyspark.sql import DataFrame, SparkSession

PARTITIONS = 4
ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
INPUT = "device bigint, time timestamp, seen timestamp, value double"
OUTPUT = "kind string, device bigint, time bigint, seen bigint, value double"
STATE = "newest bigint, arrival bigint, time bigint, due bigint"


class Sorted(NamedTuple):
    """Seconds that Spark's shuffle and sort took: to nowhere, and into Parquet files."""

    noop: Median
    parquet: Median


def spark_sorts(spark: SparkSession, source: Path, scratch: Path, repeats: int, columns: Sequence[str] = ()) -> Sorted:
    """Have Spark shuffle and sort the rows of a Parquet file; medians, warm.

    Args:
        spark: the session.
        source: the file.
        scratch: a folder that it may overwrite.
        repeats: how often, after once for warmth.
        columns: shuffle by the first and sort by all in each part; none: one global order by `time`.
    """
    rows = spark.read.parquet(str(source))
    parted = rows.repartition(PARTITIONS, *columns[:1])
    laid = parted.sortWithinPartitions(*columns) if columns else rows.orderBy("time")
    noop = median_seconds(lambda: laid.write.format("noop").mode("overwrite").save(), repeats)
    return Sorted(noop, median_seconds(lambda: laid.write.mode("overwrite").parquet(str(scratch)), repeats))


class Beating(StatefulProcessor):
    """Rules 1 to 5 of the heartbeat as one would write them for Spark: a value of state a key, a loop over its rows.

    Args:
        interval: in ticks.
        slack: in ticks.
    """

    def __init__(self, interval: int, slack: int) -> None:
        self.interval, self.slack = interval, slack

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Ask Spark for the state."""
        self.state = handle.getValueState("state", STATE)

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,  # noqa: ANN401 - as Spark has it
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: ANN401, ARG002, N803
    ) -> Iterator[pd.DataFrame]:
        """Give the rows of one key with timers between them."""
        came = pd.concat(rows).sort_values("seen", kind="stable")
        seen, sent = (came[name].to_numpy("datetime64[us]").astype("int64") for name in ("seen", "time"))
        newest, arrival, anchor, due = self.state.get() or (NULL, 0, 0, 0)
        timers: list[tuple[int, int]] = []
        for at, stamp in zip(seen.tolist(), sent.tolist(), strict=True):
            while newest != NULL and arrival + due - anchor + self.slack <= at:
                timers.append((due, arrival + due - anchor + self.slack))
                due += self.interval
            if stamp < newest or stamp == NULL:
                continue
            if newest == NULL:
                due = stamp // self.interval * self.interval + self.interval
            while due <= stamp:
                timers.append((due, at))
                due += self.interval
            newest, arrival, anchor = stamp, at, stamp
        self.state.update((newest, arrival, anchor, due))
        made = pd.DataFrame(timers, columns=["time", "seen"]).assign(kind="timer", device=key[0], value=None)
        data = came.assign(kind="data", time=sent, seen=seen)
        columns = ["kind", "device", "time", "seen", "value"]
        yield pd.concat([data[columns], made[columns]]).sort_values("seen", kind="stable")

    def close(self) -> None:
        """Leave the state to Spark."""


def beating(spark: SparkSession, folder: Path, interval: int, slack: int) -> DataFrame:
    """Give the stream of a heartbeat by `transformWithStateInPandas` over a folder of Parquet files, a file a batch.

    Args:
        spark: the session; its state store and number of shuffle partitions are set.
        folder: of the files, taken by name.
        interval: in ticks.
        slack: in ticks.
    """
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKS)
    spark.conf.set("spark.sql.shuffle.partitions", str(PARTITIONS))
    rows = spark.readStream.schema(INPUT).option("maxFilesPerTrigger", 1).parquet(str(folder))
    return rows.groupBy("device").transformWithStateInPandas(Beating(interval, slack), OUTPUT, "Append", "None")


def rates(made: DataFrame, checkpoint: Path) -> list[float]:
    """Run a stream over all there is, to nowhere; give the rows a second of each micro-batch."""
    query = made.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    running = query.trigger(availableNow=True).start()
    running.awaitTermination()
    progress = [each for each in running.recentProgress if each["numInputRows"]]
    return [each["numInputRows"] / each["durationMs"]["triggerExecution"] * 1_000 for each in progress]
