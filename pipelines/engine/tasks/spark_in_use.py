"""A program that has Spark load the classes that jobs and streams use, for `class_archive` to keep."""

from __future__ import annotations

import sys
import tempfile
from typing import TYPE_CHECKING

import psutil

from pipelines.engine.tasks.spark import spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def use_spark() -> None:
    """Load what jobs and streams load, and print the pid of Java, which ends behind this process."""
    with tempfile.TemporaryDirectory() as folder:
        spark = spark_session("local[2]")
        rows = spark.range(8)
        rows.mapInArrow(lambda batches: batches, rows.schema).groupBy("id").count().collect()
        ticks = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
        to = ticks.writeStream.option("checkpointLocation", folder).foreachBatch(_look)
        to.trigger(availableNow=True).start().awaitTermination()
        pids = [each.pid for each in psutil.Process().children(recursive=True) if "java" in each.name()]
        spark.stop()
    sys.stdout.write(" ".join(map(str, pids)))


def _look(rows: DataFrame, _: int) -> None:
    rows.collect()


if __name__ == "__main__":
    use_spark()
