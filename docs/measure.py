# ruff: noqa: INP001 - a script beside the documents whose figures it makes, no package
"""Measure what ARCHITECTURE.md says was decided otherwise than the design.

    .venv/bin/python docs/measure.py [content-hash] [null-times] [carry] [versions] [readings]

Each line is one figure; without a name all five are measured. Figures are medians of three, warm.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.transaction import AddAction

from pipelines.engine.columnar.columns import TIME, ticks
from pipelines.engine.columnar.content import content_hash
from pipelines.engine.columnar.keys import KeyIndex, canonical_keys
from pipelines.engine.commits import delta_log
from pipelines.engine.commits import paths as tables
from pipelines.engine.commits.table_log import SETTLED, TableChange, TableLog
from pipelines.engine.files import ordered as inputs
from pipelines.engine.files.durable import sync_files
from pipelines.engine.landing.index import land_interval
from pipelines.engine.sources.catalog import open_recorded
from pipelines.engine.tasks.carry import to_records
from pipelines.engine.tasks.local import CoreEngine
from pipelines.flows.feeds.parquet import ParquetSpec
from pipelines.flows.model import Flow, Source, Stream
from pipelines.jobs.runs.backfill import Backfill, run_backfill
from pipelines.operators.compiled import compiled
from pipelines.operators.heartbeat import Heartbeat, HeartbeatPolicy
from pipelines.operators.rows import NULL

if TYPE_CHECKING:
    from collections.abc import Callable

MILLION = 1_000_000
MANY = 1_000_000
"""Keys, where there are many."""
SECOND = 1_000_000
SPAN = (0, 8_000 * SECOND)


def told(text: str) -> None:
    """Print one figure."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def seconds(work: Callable[[], object]) -> float:
    """Give the median of three runs behind a first one that does not count."""
    work()
    taken = []
    for _ in range(3):
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    return median(taken)


def instants(values: np.ndarray, nulls: np.ndarray | None = None) -> pa.Array:
    """Give a time column from ticks."""
    return pa.array(values, pa.int64(), mask=nulls).cast(TIME)


def stream_rows(rows: int, keys: int) -> pa.Table:
    """Make rows as a stream has them: twelve columns, a key among them."""
    random = np.random.default_rng(7)
    at = np.arange(rows, dtype=np.int64) * 1_000
    absent = np.ones(rows, dtype=bool)
    return pa.table(
        {
            "kind": pa.array(["data"]).take(pa.array(np.zeros(rows, dtype=np.int64))),
            "arrival": instants(at),
            "place": pa.array(np.ones(rows, dtype=np.int64)),
            "event_time": instants(at - random.integers(0, 60 * SECOND, rows)),
            "event_end": instants(at, absent),
            "due_at": instants(at, absent),
            "landed_at": instants(at),
            "landed_place": pa.array(np.ones(rows, dtype=np.int64)),
            "key": pa.array([f"key-{k:07d}" for k in range(keys)]).take(pa.array(random.integers(0, keys, rows))),
            "whole": pa.array(random.integers(0, 1 << 40, rows)),
            "small": pa.array(random.integers(0, 100, rows).astype(np.int32)),
            "real": pa.array(random.random(rows)),
        }
    )


@compiled
def chain(ids, high, low, state, counts) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001 - Numba infers them
    """Chain row hashes per key, in order, by a polynomial in two lanes."""
    for i in range(len(ids)):
        k = ids[i]
        state[k, 0] = state[k, 0] * np.uint64(0x9E3779B97F4A7C15) + high[i]
        state[k, 1] = state[k, 1] * np.uint64(0xD6E8FEB86659FD93) + low[i]
        counts[k] += 1


def measure_content_hash() -> None:
    """Compare the sum of row hashes with a chain per key over the same row hashes."""
    for keys in (1_000, MANY):
        table = stream_rows(2 * MILLION, keys)
        sum_of_rows = seconds(lambda table=table: content_hash(table))
        canonical = canonical_keys([table["key"].combine_chunks()])
        lanes = np.random.default_rng(8).integers(0, 1 << 63, (2, table.num_rows)).astype(np.uint64)

        def chained(canonical: pa.Array = canonical, lanes: np.ndarray = lanes, keys: int = keys) -> None:
            state, counts = np.zeros((keys, 2), dtype=np.uint64), np.zeros(keys, dtype=np.int64)
            chain(KeyIndex().ids(canonical), lanes[0], lanes[1], state, counts)

        extra = seconds(chained)
        told(
            f"content-hash: 2,000,000 rows of 12 columns, {keys:,} keys: sum {sum_of_rows:.2f} s "
            f"({2 / sum_of_rows:.1f} M rows/s), a chain per key {extra:.2f} s more and {24 * keys:,} bytes of state"
        )
    one, other = content_hash(table.slice(0, MILLION)), content_hash(table.slice(MILLION))
    told(f"content-hash: joining two commits: {1e6 * seconds(lambda: one + other):.1f} µs, whatever the keys")


@compiled
def newest_by_sentinel(times) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001 - Numba infers it
    """Find the largest time; nulls are a value of the column."""
    newest = NULL
    for i in range(len(times)):
        if times[i] != NULL and times[i] >= newest:
            newest = times[i]
    return newest


@compiled
def newest_by_validity(times, valid) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001 - as above
    """Find the largest time; nulls are a column of their own."""
    newest = NULL
    for i in range(len(times)):
        if valid[i] and times[i] >= newest:
            newest = times[i]
    return newest


def measure_null_times() -> None:
    """Compare one column a time with two, from Arrow through a loop like rule 2 of the heartbeat."""
    rows = 10 * MILLION
    random = np.random.default_rng(9)
    column = instants(random.integers(0, 1 << 50, rows), random.random(rows) < 0.01)  # noqa: PLR2004 - one in a hundred

    def two() -> object:
        values = np.asarray(pc.fill_null(column.cast(pa.int64()), 0))
        return newest_by_validity(values, np.asarray(column.is_valid()))

    one = seconds(lambda: newest_by_sentinel(ticks(column)))
    both = seconds(two)
    told(f"null-times: 10,000,000 times, 1% null: sentinel {one:.3f} s, validity {both:.3f} s; 8 and 9 bytes a time")


def measure_carry() -> None:
    """Compare typed columns with JSON for the heartbeat's state, and what more tables cost a commit."""
    part = Heartbeat.parts[0]
    beat = Heartbeat(HeartbeatPolicy(interval=60 * SECOND))
    beat.grow(MANY)
    records = beat.records["state"]
    names = list(records.dtype.names or ())
    typed = pa.table({"key": pa.array(np.arange(MANY)), **{name: np.arange(MANY) for name in names}})
    texts = [json.dumps(dict(zip(names, row.tolist(), strict=True))) for row in records]
    loose = pa.table({"key": pa.array([json.dumps({"key": k}) for k in range(MANY)]), "state": pa.array(texts)})
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "carry.parquet"
        pq.write_table(typed, file, compression="zstd")
        columns = seconds(lambda: to_records(part, pq.read_table(file)))
        pq.write_table(loose, file, compression="zstd")
        words = seconds(lambda: [tuple(json.loads(text).values()) for text in pq.read_table(file)["state"].to_pylist()])
        told(f"carry: 1,000,000 keys of a heartbeat taken up: typed columns {columns:.2f} s, JSON {words:.2f} s")
        each = _adding(Path(folder))
    told(f"carry: one table more costs a commit {1e3 * each:.1f} ms (young tables)")


def _adding(folder: Path) -> float:
    table, log = _table(folder / "table")
    number = iter(range(1, 100))
    return seconds(lambda: log.commit(TableChange(adds=[_row(table, next(number))]), {}))


def _table(folder: Path) -> tuple[Path, TableLog]:
    delta_log.create(folder, pa.schema([("commit", pa.int64())]))
    log = TableLog(folder)
    log.look()
    return folder, log


def _row(table: Path, commit: int) -> tables.NewFile:
    path = table / f"c{commit:08d}.parquet"
    pq.write_table(pa.table({"commit": [commit]}), path)
    sync_files(table, [path])
    return tables.NewFile(name=path.name, rows=1, size=path.stat().st_size, first=commit, last=commit)


def measure_versions() -> None:
    """Compare a look and a transaction of delta-rs with ours, in a log of few and of many versions."""
    for versions in (100, 2_000):
        with tempfile.TemporaryDirectory() as folder:
            table, log = _table(Path(folder) / "table")
            file = _row(table, 1)
            while log.version < versions:
                log.commit(TableChange(), {SETTLED: log.version})
            ours = seconds(lambda: (log.look(), log.commit(TableChange(adds=[file]), {})))  # noqa: B023 - called here alone
            theirs = seconds(lambda: _appended(table, file))  # noqa: B023 - called here alone
        told(
            f"versions: {versions:,} in a log: a look and a transaction {1e3 * ours:.1f} ms, "
            f"by delta-rs {1e3 * theirs:.1f} ms"
        )


def _appended(table: Path, file: tables.NewFile) -> None:
    found = DeltaTable(str(table))
    action = AddAction(file.name, file.size, {}, 0, True, file.statistics())  # noqa: FBT003 - the library's own
    found.create_write_transaction([action], "append", found.schema())


def _flow() -> Flow:
    beating = Stream(
        name="beating",
        operator="heartbeat",
        inputs=("rows",),
        by=("key",),
        policy=HeartbeatPolicy(interval=60 * SECOND),
    )
    feed = ParquetSpec(paths=("rows.parquet",))
    source = Source(name="rows", feed=feed, key=("key",), time="stamped", arrival="came")
    return Flow(name="measured", sources={"rows": source}, streams={"beating": beating}, buckets=1)


def run_once(base: Path, block: int) -> None:
    """Run the flow of `measure_readings` with blocks of so many rows (0: only land them); print what it took."""
    wanted = Backfill(flow=_flow(), root=base / "run", base=base, engine=CoreEngine())
    if not block:
        land_interval(wanted.landing, wanted.flow, *SPAN, open_recorded(wanted.flow, base))
        return
    inputs.BLOCK = block
    begun = time.perf_counter()
    run_backfill(wanted, [SPAN])
    taken = time.perf_counter() - begun
    status = Path("/proc/self/status").read_text()
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))
    told(json.dumps({"seconds": taken, "peak": peak / 1024}))


def measure_readings() -> None:
    """Compare a task that cuts its input at block borders with one that reads it whole; both find the rows landed."""
    for millions in (4, 8):
        with tempfile.TemporaryDirectory() as folder:
            rows = stream_rows(millions * MILLION, 1_000)
            columns = {"came": "arrival", "stamped": "event_time", "key": "key", "whole": "whole", "real": "real"}
            table = pa.table({name: rows[given] for name, given in columns.items()})
            pq.write_table(table, Path(folder) / "rows.parquet")
            for block in (0, millions * MILLION, inputs.BLOCK):
                _measure_blocks(folder, millions, block)


def _measure_blocks(folder: str, millions: int, block: int) -> None:
    command = [sys.executable, __file__, "run-once", folder, str(block)]
    ran = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603 - this very script
    if block:
        found = json.loads(ran.stdout)
        told(
            f"readings: {millions},000,000 rows in one task, blocks of {block:,}: {found['seconds']:.1f} s, "
            f"peak memory {found['peak']:,.0f} MB"
        )


MEASURES = {
    "content-hash": measure_content_hash,
    "null-times": measure_null_times,
    "carry": measure_carry,
    "versions": measure_versions,
    "readings": measure_readings,
}


def main(words: list[str]) -> None:
    """Measure what is named, or all."""
    if words[:1] == ["run-once"]:
        run_once(Path(words[1]), int(words[2]))
        return
    for name in words or MEASURES:
        MEASURES[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
