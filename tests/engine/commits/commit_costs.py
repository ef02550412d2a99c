"""What a commit costs when its tables are young and when they are old: prints, and judges nothing.

commit_costs.py FOLDER [COMMITS]   # small epochs over three tables and a carry, p50 around the 100th and the last
"""

from __future__ import annotations

import statistics
import sys
import time
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.engine.commits.delta_log import create
from pipelines.engine.commits.driver import Driver, open_driver
from pipelines.engine.commits.entry import CommitKind, Span
from pipelines.engine.commits.paths import NewFile, carry_path, ledger_path, stream_path, table_name
from pipelines.engine.files.folders import CARRY, UNNAMED

SCHEMA = pa.schema([pa.field("commit", pa.int64()), pa.field("change", pa.string()), pa.field("value", pa.int64())])
AROUND = 50
"""Commits on either side."""


def folders(root: Path) -> list[Path]:
    """Name what an epoch of a small flow writes to: three tables and a part of the carry."""
    return [*tables_of(root), carry_path(root, "a", "state")]


def tables_of(root: Path) -> list[Path]:
    """Name those that have a Delta log."""
    return [stream_path(root, "a"), stream_path(root, "b"), ledger_path(root)]


def new_file(folder: Path, commit: int) -> NewFile:
    """Write a tiny file as a task does."""
    below = "" if folder.parent.name == CARRY else f"{UNNAMED}/"
    file = folder / f"{below}c{commit:08d}-0-0-{uuid.uuid4().hex[:8]}.parquet"
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"commit": [commit], "change": ["set"], "value": [commit]}, schema=SCHEMA), file)
    return NewFile(name=f"{below}{file.name}", rows=1, size=file.stat().st_size)


def one(driver: Driver) -> float:
    """Take an epoch from its intent to published; give the milliseconds that the driver took, tasks left out."""
    begun = time.perf_counter()
    number, tip = driver.next_number(), driver.state().tip
    span, parent = Span(number, number + 1), tip.commit if tip else 0
    driver.intent(number, span, parent, [number], {"flow": "f"}, "print", kind=CommitKind.EPOCH)
    driver.state().carry_line(parent)
    taken = time.perf_counter() - begun
    files = {table_name(driver.root, folder): [new_file(folder, number)] for folder in folders(driver.root)}
    detail = {"late_ms": 3, **({"folded": True} if number % AROUND == 0 else {})}
    begun = time.perf_counter()
    driver.written_and_published(number, files, {"a": 1}, {"a": "h"}, "carry", {"tasks": 1}, detail=detail)
    return (taken + time.perf_counter() - begun) * 1_000


def costs(root: Path, commits: int) -> tuple[list[float], list[float]]:
    """Give the milliseconds of each commit, and those of each housekeeping."""
    for folder in tables_of(root):
        create(folder, SCHEMA)
    spent, kept = [], []
    with open_driver(root, flow="f") as driver:
        for _ in range(commits):
            spent.append(one(driver))
            begun = time.perf_counter()
            if driver.keep_house():
                kept.append((time.perf_counter() - begun) * 1_000)
    return spent, kept


def main() -> None:
    """Print the figures."""
    root, commits = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 2_000
    spent, kept = costs(root, commits)
    young = statistics.median(spent[100 - AROUND : 100 + AROUND])
    old = statistics.median(spent[-2 * AROUND :])
    house = f"p50 {statistics.median(kept or [0]):.0f} ms, most {max(kept, default=0):.0f} ms"
    lines = [
        f"p50 around 100: {young:.1f} ms",
        f"p50 around {commits}: {old:.1f} ms, ratio {old / young:.2f}",
        f"p99 of all: {statistics.quantiles(spent, n=100)[-1]:.1f} ms",
        f"housekeeping: {len(kept)} times, {house}",
    ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
