"""`pulseline bench landing`: raw files until they have landed, beside Spark's sort of the same files into Parquet."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from pipelines.engine.landing.index import land_interval
from pipelines.engine.sources.catalog import open_recorded
from pipelines.engine.tasks.spark import SparkEngine
from pipelines.flows.reading import read_flow
from pipelines.jobs.bench.figures import (
    BenchFigure,
    Median,
    median_seconds,
    tell_figures,
    versions_text,
)
from pipelines.jobs.bench.generated import SEED, record
from pipelines.jobs.bench.memory import Peak

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from pipelines.flows.model import Flow
    from pipelines.jobs.bench.generated import Recorded

LANDED = 0.6
"""Times Spark's sort into Parquet."""
FLOW = """\
flow: landing
buckets: 4
sources:
  rows: {{feed: {feed}, key: device, time: time, arrival: seen}}
streams:
  kept: {{filter: rows, where: device >= 0}}
"""
TYPES = "types: {device: int64, time: timestamp, seen: timestamp, value: float64}"


@dataclass(frozen=True)
class RawFile:
    """A file of generated rows, as a team might have it."""

    name: str
    file: str
    feed: str
    """The source's feed, in YAML."""
    write: Callable[[Path, Path], None]
    """Makes it of the Parquet file whose rows stand in order of arrival."""

    def flow(self, folder: Path) -> Flow:
        """Read a flow over it."""
        (folder / "flow.yaml").write_text(FLOW.format(feed=self.feed))
        return read_flow(folder / "flow.yaml", {})

    def read(self, spark: SparkSession, folder: Path) -> DataFrame:
        """Have Spark read it, with the same types."""
        from pipelines.jobs.bench.peers import INPUT

        if self.file.endswith(".csv"):
            return spark.read.schema(INPUT).option("header", "true").csv(str(folder / self.file))
        return spark.read.parquet(str(folder / self.file))


def _as_it_is(rows: Path, to: Path) -> None:
    """Leave it: it is the file that was made."""


def _shuffled(rows: Path, to: Path) -> None:
    table = pq.read_table(rows)
    order = np.random.default_rng(SEED).permutation(table.num_rows)
    pq.write_table(table.take(pa.array(order)), to)


def _as_text(rows: Path, to: Path) -> None:
    pcsv.write_csv(pq.read_table(rows), to)


RAW = (
    RawFile("Parquet, in order of arrival", "rows.parquet", "{parquet: rows.parquet}", _as_it_is),
    RawFile("Parquet, in no order", "shuffled.parquet", "{parquet: shuffled.parquet}", _shuffled),
    RawFile("CSV, in order of arrival", "rows.csv", f"{{csv: rows.csv, {TYPES}}}", _as_text),
)


def bench_landing(rows: int, keys: int, *, as_json: bool, echo: Callable[[str], None]) -> int:
    """Measure the landing of one interval.

    Args:
        rows: how many generated rows.
        keys: how many keys they have.
        as_json: one object a line instead of words.
        echo: where lines go.

    Returns:
        0, or 1 where a target is not held or rows are missing.
    """
    if not as_json:
        echo(f"{rows:,} rows of 32 bytes, {keys:,} keys, 4 buckets, one interval; {versions_text()}")
    engine = SparkEngine("local[2]", Path(tempfile.gettempdir()) / "pulseline-bench-spark.log")
    with tempfile.TemporaryDirectory(prefix="pulseline-bench-") as folder:
        try:
            feed = record(Path(folder), rows, keys)
            return tell_figures(landings(feed, engine.session()), as_json=as_json, echo=echo)
        finally:
            engine.close()


def landings(feed: Recorded, spark: SparkSession) -> Iterator[BenchFigure]:
    """Land each kind of file, and have Spark sort the same file into Parquet: by key, and within each by arrival."""
    for raw in RAW:
        raw.write(feed.folder / "rows.parquet", feed.folder / raw.file)
        theirs = sorted_by_spark(raw.read(spark, feed.folder), feed.folder / "sorted")
        yield _figure(feed, f"Spark's sort into Parquet of {raw.name}", theirs)
        took, landed = landing_seconds(raw, feed)
        if landed != feed.rows:
            name = f"{landed:,} rows of {feed.rows:,} landed from {raw.name}"
            yield BenchFigure(bench="landing", name=name, value=1, unit="wrong answer", target=0)
        took_beside = replace(_figure(feed, f"landing from {raw.name}", took), against="Spark's", ratio=took / theirs)
        yield replace(took_beside, target=LANDED)
        with Peak() as before:
            pass
        # Watching memory costs time, so it is watched in a landing of its own.
        with Peak() as after:
            _land(raw, feed)
        name = "  memory that it takes beyond what the process has"
        yield _figure(feed, name, max(after.python - before.python, 0.0), "MB")


def sorted_by_spark(rows: DataFrame, scratch: Path) -> Median:
    """Have Spark do what a landing does: deal rows out by key, sort each part by arrival, and write it."""
    from pipelines.jobs.bench.peers import PARTITIONS

    laid = rows.repartition(PARTITIONS, "device").sortWithinPartitions("seen")
    return median_seconds(lambda: laid.write.mode("overwrite").parquet(str(scratch)))


def landing_seconds(raw: RawFile, feed: Recorded) -> tuple[Median, int]:
    """Land a file again and again, each time anew; give the seconds, and the fewest rows that landed."""
    landed: list[int] = []
    took = median_seconds(lambda: landed.append(_land(raw, feed)))
    return took, min(landed)


def _land(raw: RawFile, feed: Recorded) -> int:
    """Land a file as one interval, give its rows, and clear it away."""
    flow, landing = raw.flow(feed.folder), feed.folder / "landing"
    [span] = feed.spans(1)
    sequence = land_interval(landing, flow, *span, open_recorded(flow, feed.folder))
    shutil.rmtree(landing)
    return sum(source.rows for source in sequence.sources.values())


def _figure(feed: Recorded, name: str, value: float, unit: str = "s") -> BenchFigure:
    return BenchFigure(bench="landing", name=name, value=value, unit=unit, rows=feed.rows, keys=feed.keys)
