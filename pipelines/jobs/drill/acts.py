"""What neighbours do to a table that is not theirs: delta-rs's and Spark's own upkeep, clones, and a second driver."""

from __future__ import annotations

import os
import sys
import threading
from functools import partial
from multiprocessing import get_context
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable, write_deltalake

from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.errors import LeaseHeldError
from pipelines.engine.commits.paths import COMMIT
from pipelines.jobs.commands.doctor import examine
from pipelines.jobs.drill.processes import killed, started

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from pathlib import Path

    from pyspark.sql import SparkSession

CONNECTOR = "io.delta:delta-spark_4.2_2.13:4.4.0"
SPARK_STARTS = 300.0
"""Seconds that Spark may take to start and to do each act once, its connector to be fetched the first time."""
SPARK_ANSWERS = 120.0


def optimize(table: Path) -> None:
    """Put files together, as delta-rs does it."""
    DeltaTable(str(table)).optimize.compact()


def order(table: Path) -> None:
    """Put files together in another order of rows."""
    DeltaTable(str(table)).optimize.z_order([COMMIT])


def vacuum(table: Path) -> None:
    """Remove at once what the log says was removed."""
    DeltaTable(str(table)).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)


def vacuum_all(table: Path) -> None:
    """Remove at once whatever the log does not name."""
    DeltaTable(str(table)).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False, full=True)


def checkpoint(table: Path) -> None:
    """Write a checkpoint of the log."""
    DeltaTable(str(table)).create_checkpoint()


def append(table: Path) -> None:
    """Add rows: the first ones again."""
    opened = DeltaTable(str(table))
    write_deltalake(opened, _some(opened), mode="append")


def delete(table: Path) -> None:
    """Delete the rows of a commit."""
    opened = DeltaTable(str(table))
    opened.delete(f"{COMMIT} = {_some(opened)[COMMIT][0].as_py()}")


def merge(table: Path) -> None:
    """Merge rows in, over those of one commit."""
    opened = DeltaTable(str(table))
    same = f"target.{COMMIT} = source.{COMMIT}"
    rows = _some(opened).slice(0, 1)
    opened.merge(rows, same, source_alias="source", target_alias="target").when_matched_delete().execute()


def _some(table: DeltaTable) -> pa.Table:
    return ds.dataset(table.file_uris()[:1], format="parquet").head(3)


ACTS: dict[str, Callable[[Path], None]] = {
    "delta-rs OPTIMIZE": optimize,
    "delta-rs Z-ORDER": order,
    "delta-rs VACUUM": vacuum,
    "delta-rs VACUUM, all": vacuum_all,
    "delta-rs checkpoint": checkpoint,
}
SPARK_ACTS = {
    "Spark OPTIMIZE": "OPTIMIZE delta.`{table}`",
    "Spark VACUUM": "VACUUM delta.`{table}` RETAIN 0 HOURS",
    "Spark clone": "CREATE OR REPLACE TABLE delta.`{clone}` SHALLOW CLONE delta.`{table}`",
    "Spark time travel": "SELECT count(*) FROM delta.`{table}` VERSION AS OF 0",
}
WRITES: dict[str, Callable[[Path], None]] = {
    "a user's append": append,
    "a user's delete": delete,
    "a user's merge": merge,
}
"""What changes rows that are not theirs: refused by name at the next commit, and put right by `pulseline doctor`."""
TAKES_FILES = frozenset({"delta-rs VACUUM", "delta-rs VACUUM, all", "Spark VACUUM"})
"""Acts behind which a reader of an older version finds files gone, and a commit that was not published yet may."""


def done(act: str, table: Path) -> str:
    """Do something by delta-rs; give why it did not work out, nothing where it did."""
    return _why(lambda: (ACTS | WRITES)[act](table))


def version_of(table: Path) -> int:
    """Give a table's version."""
    return DeltaTable(str(table)).version()


def repaired(file: Path, home: Path) -> tuple[int, str]:
    """Have a run repaired by `pulseline doctor FLOW --repair`; give its exit code and what it said."""
    os.environ["PULSELINE_HOME"] = str(home)
    said: list[str] = []
    code = examine(str(file), "main", True, False, said.append)  # noqa: FBT003 - the command's flags
    return code, " ".join(" ".join(said).split())


def asked_second(root: Path, flow: str) -> str:
    """Ask for the lease of a run that somebody holds; give nothing where that is refused, as it should be."""
    try:
        with open_driver(root, flow=flow):
            return "a second driver was let in"
    except LeaseHeldError:
        return ""


def _why(act: Callable[[], object]) -> str:
    try:
        act()
    except Exception as problem:  # noqa: BLE001 - a neighbour may be refused, and says why
        return f"{type(problem).__name__}: {' '.join(str(problem).split())[:200]}"
    return ""


class Spark:
    """A Spark of its own with Delta's connector, in a process of its own; where it cannot be had, it says why."""

    def __init__(self, folder: Path) -> None:
        its, self._asks = get_context("forkserver").Pipe(duplex=False)
        self._child, self._hears = started(folder / "spark.log", sparking, its, folder)
        self._turn = threading.Lock()
        self.missing = str(self._hears.recv()) if self._hears.poll(SPARK_STARTS) else "Spark did not start in time"

    def act(self, act: str, table: Path, clone: Path) -> str:
        """Do something; give why it did not work out, nothing where it did.

        Args:
            act: one of `SPARK_ACTS`.
            table: its folder.
            clone: the folder of a clone.
        """
        with self._turn:
            self._asks.send(SPARK_ACTS[act].format(table=table, clone=clone))
            if not self._hears.poll(SPARK_ANSWERS):
                self.missing = f"it gave no answer within {SPARK_ANSWERS:.0f} s"
            return self.missing or str(self._hears.recv())

    def close(self) -> None:
        """End it: without anybody who asks it goes by itself."""
        self._asks.close()
        self._child.join(SPARK_ANSWERS)
        killed(self._child)


def _collected(spark: SparkSession, statement: str) -> None:
    spark.sql(statement).collect()


def _warm(spark: SparkSession, folder: Path) -> None:
    """Do each act once: the first ones load most of Spark, which takes longer than a seed may."""
    table = folder / "warm"
    write_deltalake(str(table), pa.table({COMMIT: [1]}))
    for statement in SPARK_ACTS.values():
        _collected(spark, statement.format(table=table, clone=folder / "warm-clone"))


def sparking(pipe: Connection, asked: Connection, folder: Path) -> None:
    """Start Spark and answer what is asked of it, one statement after the other."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.pop("PYSPARK_SUBMIT_ARGS", None)
    from pyspark.sql import SparkSession

    settings = {
        "spark.jars.packages": CONNECTOR,
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.retentionDurationCheck.enabled": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "ERROR",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "1",
        "spark.databricks.delta.snapshotPartitions": "1",
        # Tables are tiny: compiling for them takes longer than reading them.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    builder = SparkSession.builder.appName("neighbour").master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        spark = builder.getOrCreate()
        _warm(spark, folder)
    except Exception as problem:  # noqa: BLE001 - without the connector the drill goes on without Spark
        pipe.send(" ".join(str(problem).split())[:200])
        return
    pipe.send("")
    while True:
        try:
            statement = asked.recv()
        except EOFError:
            break
        pipe.send(_why(partial(_collected, spark, statement)))
    spark.stop()
