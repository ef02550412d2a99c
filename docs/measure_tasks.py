# ruff: noqa: INP001 - a script beside the documents whose figures it makes, no package
"""Measure what makes tasks cheap: how files are written, what Spark's workers keep, and how tasks are handed to them.

    .venv/bin/python -m docs.measure_tasks [files] [workers] [shares] [handing] [starts]

Each line is one figure, a median of three, warm; compare the figures of one line with each other.
"""

from __future__ import annotations

import cProfile
import os
import pickle
import pstats
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from docs.measure import MILLION, seconds, stream_rows, told
from pipelines.engine.files.writing import COMPRESSION, COMPRESSION_LEVEL, open_writer
from pipelines.engine.tasks.local import CoreEngine
from pipelines.engine.tasks.spark import SETTINGS, SparkEngine, run_in_worker
from pipelines.engine.tasks.task import run_task
from pipelines.jobs.bench.generated import record
from pipelines.jobs.runs.backfill import Backfill, run_backfill
from pipelines.operators.code_folder import CHOSEN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pipelines.engine.tasks.task import Done, Task

BLOCK = 262_144
SHARES = {
    "writing Parquet": "core.py:write_table",
    "content hash": "content.py:content_hash",
    "reading": "inputs.py:row_groups",
    "the scan": "scan.py:drain",
    "columns of rows out of the scan": "link.py:_stream",
}
"""Where to look for what costs most: a function, with all that it calls."""


class PlainEngine(SparkEngine):
    """Spark whose workers collect all garbage behind every task, as they do unless told otherwise."""

    def run(self, tasks: Sequence[Task]) -> list[Done]:
        """Run tasks on Spark's workers."""
        handed_out = self.session().sparkContext.parallelize(list(tasks), len(tasks))
        return handed_out.map(run_task).collect()


def measure_files() -> None:
    """Compare files of packed differences with files that a compressor alone makes small."""
    table = stream_rows(2 * MILLION, 1_000)
    strings = [field.name for field in table.schema if pa.types.is_string(field.type)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"

        def compressed() -> None:
            level = {"compression": COMPRESSION, "compression_level": COMPRESSION_LEVEL, "use_dictionary": strings}
            with pq.ParquetWriter(path, table.schema, **level) as writer:
                written(writer)

        def packed() -> None:
            with open_writer(path, table.schema, store_schema=False) as writer:
                written(writer)

        def written(writer: pq.ParquetWriter) -> None:
            for at in range(0, table.num_rows, BLOCK):
                writer.write_table(table.slice(at, BLOCK))

        found = []
        for work in (packed, compressed):
            taken = seconds(work)
            found.append(f"{taken:.2f} s and {path.stat().st_size / table.num_rows:.1f} bytes a row")
    told(f"files: 2,000,000 rows of a stream: differences packed {found[0]}, {COMPRESSION} alone {found[1]}")


def measure_workers() -> None:
    """Compare workers that keep memory and leave what is loaded out of collection with workers that do neither."""
    found = []
    for how in ("kept", "plain"):
        command = [sys.executable, "-m", "docs.measure_tasks", "run-once", how]
        ran = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603 - this very module
        found.append(f"{float(ran.stdout.split()[-1]):.2f} s")
    told(f"workers: 4,000,000 rows in 8 tasks on Spark: as shipped {found[0]}, neither {found[1]}")


def measure_shares() -> None:
    """Say what a task's time goes into: the shares of what costs most, as the profiler sees one backfill."""
    with tempfile.TemporaryDirectory() as folder:
        feed = record(Path(folder), 4 * MILLION, 1_000)
        for number in range(2):
            wanted = Backfill(
                flow=feed.beating(), root=feed.folder / f"run-{number}", base=feed.folder, engine=Watched()
            )
            run_backfill(wanted, feed.spans(1))
    stats = pstats.Stats(Watched.profile)
    spent = {f"{Path(file).name}:{name}": cumulative for (file, _, name), (*_, cumulative, _) in stats.stats.items()}  # type: ignore[attr-defined]
    whole = spent["task.py:run_task"]
    told(
        f"shares of {whole:.1f} s: " + ", ".join(f"{name} {spent[where] / whole:.0%}" for name, where in SHARES.items())
    )


class Watched(CoreEngine):
    """Tasks in this process, the last commit's under a profiler."""

    profile = cProfile.Profile()

    def run(self, tasks: Sequence[Task]) -> list[Done]:
        """Run tasks one after the other."""
        type(self).profile = cProfile.Profile()
        with self.profile:
            return super().run(tasks)


def run_once(how: str) -> None:
    """Run the same backfill four times, and print the median of the last three."""
    plain = how == "plain"
    for name in [name for name in SETTINGS if plain and "MALLOC" in name]:
        del SETTINGS[name]
    with tempfile.TemporaryDirectory() as folder:
        feed = record(Path(folder), 4 * MILLION, 1_000)
        flow = feed.beating(buckets=8)
        engine = (PlainEngine if plain else SparkEngine)("local[2]", feed.folder / "spark.log")
        taken = []
        for number in range(4):
            wanted = Backfill(flow=flow, root=feed.folder / f"run-{number}", base=feed.folder, engine=engine)
            [ran] = run_backfill(wanted, feed.spans(1))
            taken.append(float(str(ran.entry.durations["tasks_ms"])) / 1_000)
        engine.close()
    told(f"{median(taken[1:]):.3f}")


class Listening(CoreEngine):
    """Keeps the tasks that it was given last."""

    tasks: Sequence[Task] = ()

    def run(self, tasks: Sequence[Task]) -> list[Done]:
        """Run tasks one after the other."""
        self.tasks = tasks
        return super().run(tasks)


def measure_handing() -> None:
    """Compare eight small tasks that go to Spark's workers as an RDD with the same ones as rows of a DataFrame."""
    with tempfile.TemporaryDirectory() as folder:
        feed, core = record(Path(folder), 8_000, 64), Listening()
        run_backfill(
            Backfill(flow=feed.beating(buckets=8), root=feed.folder / "run", base=feed.folder, engine=core),
            feed.spans(1),
        )
        engine = SparkEngine("local[2]", feed.folder / "spark.log")
        shipped = seconds(lambda: engine.run(core.tasks))
        framed = seconds(lambda: over_a_frame(engine, core.tasks))
        engine.close()
    told(
        f"handing: {len(core.tasks)} small tasks as an RDD {shipped:.3f} s, as rows of a DataFrame {framed:.3f} s, "
        f"{framed / shipped:.2f} times"
    )


def over_a_frame(engine: SparkEngine, tasks: Sequence[Task]) -> list[Done]:
    """Run tasks on Spark's workers by `mapInArrow`, a partition each."""
    rows = engine.session().range(0, len(tasks), 1, len(tasks)).mapInArrow(partial(_worked, tasks), "done binary")
    return [pickle.loads(row.done) for row in rows.collect()]  # noqa: S301 - our own


def _worked(tasks: Sequence[Task], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        done = [pickle.dumps(run_in_worker(tasks[number])) for number in batch["id"].to_pylist()]
        yield pa.RecordBatch.from_pydict({"done": done})


STARTS = "from pipelines.engine.tasks.spark import spark_session; spark_session('local[2]').range(9).count()"


def measure_starts() -> None:
    """Compare Python and Spark from nothing to a first job with and without the classes that `warm-up` keeps."""
    with tempfile.TemporaryDirectory() as nothing_kept:

        def started(**more: str) -> None:
            command = [sys.executable, "-c", STARTS]
            subprocess.run(command, env={**os.environ, **more}, capture_output=True, check=True)  # noqa: S603 - our own

        kept, anew = seconds(started), seconds(lambda: started(**{CHOSEN: nothing_kept}))
    told(f"starts: with Spark's classes kept {kept:.1f} s, without {anew:.1f} s, {kept / anew:.2f} times")


MEASURES = {
    "files": measure_files,
    "workers": measure_workers,
    "shares": measure_shares,
    "handing": measure_handing,
    "starts": measure_starts,
}


def main(words: list[str]) -> None:
    """Measure what is named, or all."""
    if words[:1] == ["run-once"]:
        run_once(words[1])
        return
    for name in words or MEASURES:
        MEASURES[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
