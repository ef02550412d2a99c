"""The engine `batch`: Spark hands the tasks out; no row goes through the JVM, nothing is shuffled.

A task's worker must see the root's files and read its whole input iterator, or Spark throws the worker away and the
next one pays for its imports again.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from pipelines.engine.tasks import run_task

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from pipelines.engine.tasks import Done, Task


def spark_session(master: str = "local[2]") -> SparkSession:
    """Give the process's Spark session, started on first use; times are UTC.

    Args:
        master: where tasks run; `local[2]` is two threads of this machine.
    """
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession  # noqa: PLC0415 - only who runs Spark pays for it

    builder = SparkSession.builder.appName("pulseline").master(master)
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "ERROR",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


class SparkEngine:
    """Let Spark hand tasks out, one partition a task.

    Args:
        master: where tasks run.
    """

    name = "batch"

    def __init__(self, master: str = "local[2]") -> None:
        """Start nothing yet."""
        self._master = master
        self._spark: SparkSession | None = None

    def run(self, tasks: Sequence[Task]) -> list[Done]:
        """Run tasks on Spark's workers."""
        if not tasks:
            return []
        self._spark = self._spark or spark_session(self._master)
        handed_out = self._spark.sparkContext.parallelize(list(tasks), len(tasks))
        return handed_out.map(run_task).collect()

    def close(self) -> None:
        """Stop Spark, where it was started."""
        if self._spark is not None:
            self._spark.stop()
            self._spark = None
