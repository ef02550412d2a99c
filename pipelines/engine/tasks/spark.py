"""The engine `batch`: Spark hands the tasks out; no row goes through the JVM, nothing is shuffled.

A task's worker must see the root's files and read its whole input iterator, or Spark throws the worker away and the
next one pays for its imports again.
"""

from __future__ import annotations

import gc
import os
import sys
from contextlib import contextmanager
from functools import cache
from threading import Thread
from typing import TYPE_CHECKING

from pipelines.engine.tasks.task import run_task
from pipelines.operators.registry import warm_up

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from pipelines.engine.tasks.task import Done, Task


SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "ERROR",
    "spark.sql.streaming.stopTimeout": "60s",
    "spark.sql.streaming.metricsEnabled": "false",
    # Workers keep the memory of their blocks between two of them (glibc): asking for it anew costs a fifth of a task.
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": str(64 << 20),
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": str(256 << 20),
}


def spark_session(master: str = "local[2]", log: Path | None = None) -> SparkSession:
    """Give the process's Spark session, started on first use; times are UTC.

    Args:
        master: where tasks run; `local[2]` is two threads of this machine.
        log: file that takes what Spark's own process writes; None leaves it on standard error.
    """
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("pulseline").master(master)
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    with _standard_error_into(log):
        return builder.getOrCreate()


@contextmanager
def _standard_error_into(log: Path | None) -> Iterator[None]:
    """Have processes that are started meanwhile write their standard error into a file."""
    if log is None:
        yield
        return
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    kept = os.dup(2)
    with log.open("a") as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def run_in_worker(task: Task) -> Done:
    """Run one task in a worker of Spark's, which collects its garbage behind every task.

    What the first task loaded stays as long as the worker, and is left out of that: it would cost a tenth of a second.
    """
    done = run_task(task)
    leave_out_of_collection()
    return done


@cache
def leave_out_of_collection() -> None:
    """Take what is loaded by now, once a process, out of all garbage collection to come."""
    gc.collect()
    gc.freeze()


class SparkEngine:
    """Let Spark hand tasks out, one partition a task.

    Args:
        master: where tasks run.
        log: file that takes what Spark's own process writes; None leaves it on standard error.
    """

    name = "batch"

    def __init__(self, master: str = "local[2]", log: Path | None = None) -> None:
        self._master, self._log = master, log
        self._spark: SparkSession | None = None

    def run(self, tasks: Sequence[Task]) -> list[Done]:
        """Run tasks on Spark's workers."""
        if not tasks:
            return []
        handed_out = self.session().sparkContext.parallelize(list(tasks), len(tasks))
        return handed_out.map(run_in_worker).collect()

    def session(self) -> SparkSession:
        """Give the session, started on first use."""
        if self._spark is None:
            # Workers that start together would each compile every scan: one does it for all, while the JVM starts.
            compiling = Thread(target=warm_up)
            compiling.start()
            self._spark = spark_session(self._master, self._log)
            compiling.join()
        return self._spark

    def close(self) -> None:
        """Stop Spark, where it was started."""
        if self._spark is not None:
            self._spark.stop()
            self._spark = None
