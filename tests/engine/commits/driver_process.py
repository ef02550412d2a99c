"""A driver in a process of its own, for tests that kill, stop and race it: tiny intervals of ten ticks, one stream.

driver_process.py ROOT run START END [DIE_AT]   # backfill [START, END); DIE_AT: intent, between, listed, written,
                                               # published, settled
driver_process.py ROOT hold [take_over]         # hold the lease, write a commit, publish it when a line comes in
"""

from __future__ import annotations

import os
import signal
import sys
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.engine.columnar.columns import ORDER_FIELDS, times
from pipelines.engine.commits import readers
from pipelines.engine.commits.delta_log import create
from pipelines.engine.commits.driver import Driver, open_driver
from pipelines.engine.commits.errors import CommitError
from pipelines.engine.commits.history import Entry, Span, State
from pipelines.engine.commits.lease import Claim
from pipelines.engine.commits.paths import NewFile, carry_path, stream_path
from pipelines.engine.files.folders import CARRY as CARRY_FOLDER
from pipelines.engine.files.folders import UNNAMED

STEP = 10
STREAM = pa.schema([*ORDER_FIELDS, pa.field("value", pa.int64())])
CARRY = pa.schema([pa.field("commit", pa.int64()), pa.field("change", pa.string()), pa.field("total", pa.int64())])


def new_file(folder: Path, commit: int, table: pa.Table) -> NewFile:
    """Write a task's file; those of the carry, which has no log, lie in its folder."""
    below = "" if folder.parent.name == CARRY_FOLDER else f"{UNNAMED}/"
    name = f"{below}c{commit:08d}-0-0-{uuid.uuid4().hex[:8]}.parquet"
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder / name)
    return NewFile(name=name, rows=table.num_rows, size=(folder / name).stat().st_size)


def stream_rows(commit: int, span: Span) -> pa.Table:
    """Give one row a tick, the later ones first: a reader must put them in order."""
    values = pa.array(range(span.end - 1, span.start - 1, -1), pa.int64())
    columns = {"kind": pa.array(["data"] * len(values)), "arrival": times(values.to_numpy()), "value": values}
    columns |= {
        "place": pa.array([1] * len(values), pa.int64()),
        "commit": pa.array([commit] * len(values), pa.int64()),
    }
    filled = [columns.get(field.name, pa.nulls(len(values), field.type)) for field in STREAM]
    return pa.Table.from_arrays(filled, schema=STREAM)


def total_at(root: Path, commit: int) -> int:
    """Read the carry: the sum of all values so far."""
    rows = readers.read_carry(root, "numbers", "state", commit)
    return int(rows["total"][0].as_py()) if rows.num_rows else 0


def tell(line: str) -> None:
    """Say a line to the test that started this process."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def die(point: str, chosen: str) -> None:
    """End as a power cut would, at the chosen point."""
    if point == chosen:
        os.kill(os.getpid(), signal.SIGKILL)


def finish(driver: Driver, pending: Entry, die_at: str = "") -> None:
    """Take an open commit to its end."""
    number, root = pending.commit, driver.root
    if pending.state is State.INTENT:
        die("intent", die_at)
        rows = stream_rows(number, pending.span)
        total = total_at(root, pending.parent) + sum(rows["value"].to_pylist())
        stream, carry = stream_path(root, "numbers"), carry_path(root, "numbers", "state")
        create(stream, STREAM)
        files = {"streams/numbers": [new_file(stream, number, rows)]}
        die("between", die_at)
        state = pa.table({"commit": [number], "change": ["base"], "total": [total]}, schema=CARRY)
        files["carry/numbers.state"] = [new_file(carry, number, state)]
        die("listed", die_at)
        counts = {"numbers": {"data": rows.num_rows}}
        driver.written(number, files, counts, {"numbers": str(total)}, str(total), {"all": 1})
    die("written", die_at)
    if die_at == "published":
        # The row is there, and no table has followed it.
        driver._settle = lambda _: die("published", "published")  # type: ignore[method-assign,assignment]
    driver.publish(number)
    die("settled", die_at)


def run_interval(driver: Driver, span: Span, die_at: str = "") -> int:
    """Backfill one interval and give its commit."""
    number = driver.next_number()
    parent = driver.state().parent_for(span.start)
    finish(driver, driver.intent(number, span, parent, [number], {"flow": "numbers"}, "print"), die_at)
    return number


def run(root: Path, start: int, end: int, die_at: str = "") -> None:
    """Backfill what of [start, end) is not published yet, in intervals of ten ticks."""
    with open_driver(root, flow="numbers") as driver:
        pending = driver.pending()
        if pending:
            finish(driver, pending.under("print"), die_at)
        for first in range(start, end, STEP):
            if not driver.state().at(Span(first, first + STEP)):
                run_interval(driver, Span(first, first + STEP), die_at)


def hold(root: Path, claim: Claim) -> None:
    """Take the lease, come to `written`, and try to publish when told to."""
    with open_driver(root, flow="numbers", claim=claim) as driver:
        pending = driver.pending()
        number = pending.commit if pending else driver.next_number()
        if not pending:
            driver.intent(number, Span(1, 11), 0, [1], {}, "print")
            driver.written(number, {}, {}, {}, "carry", {})
        tell("held")
        sys.stdin.readline()
        driver.publish(number)
        tell("published")


def main() -> None:
    """Do what the arguments say; a refusal is printed by name."""
    root, command, *rest = sys.argv[1:]
    try:
        if command == "run":
            run(Path(root), int(rest[0]), int(rest[1]), *rest[2:])
        else:
            hold(Path(root), Claim.TAKE_OVER if rest else Claim.ASK)
    except CommitError as error:
        tell(f"{type(error).__name__} {error}")


if __name__ == "__main__":
    main()
