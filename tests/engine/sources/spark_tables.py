"""How `spark_table.tar.gz` was made: a Delta table by Spark 4.2 and Delta 4.4, whose start and fetches cost a minute.

spark_tables.py FOLDER   # write the table `t`; pack it without the checksums:
                         # tar --exclude='*.crc' -czf tests/engine/sources/spark_table.tar.gz -C FOLDER t
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

JARS = "io.delta:delta-spark_4.2_2.13:4.4.0"
HISTORY = (
    (
        "CREATE TABLE {t} (k STRING, t TIMESTAMP, came TIMESTAMP, v BIGINT, p STRING) USING delta PARTITIONED BY (p) "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    ),
    (
        "INSERT INTO {t} SELECT /*+ REPARTITION(1) */ 'k', timestampadd(MINUTE, id, timestamp'2024-01-01'), "
        "timestampadd(MINUTE, id, timestamp'2024-01-01'), id, 'a b' FROM range(10)"
    ),
    "DELETE FROM {t} WHERE v IN (2, 3)",
    "INSERT INTO {t} SELECT 'k', timestamp'2024-01-01', timestamp'2024-01-01', id + 20, 'a b' FROM range(2)",
    "OPTIMIZE {t}",
    "DELETE FROM {t} WHERE v = 20",
    "ALTER TABLE {t} ADD COLUMN w INT",
    "INSERT INTO {t} VALUES ('k', timestamp'2024-01-01', timestamp'2024-01-01', 30, NULL, 7)",
    "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
)
"""One statement a version, from 0 on."""


def main() -> None:
    """Have Spark write the table of which the archive is made."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    settings = {
        "spark.jars.packages": JARS,
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "1",
        "spark.databricks.delta.snapshotPartitions": "1",
    }
    builder = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    for statement in HISTORY:
        session.sql(statement.replace("{t}", f"delta.`{Path(sys.argv[1]) / 't'}`"))
    session.stop()


if __name__ == "__main__":
    main()
