"""What CTIs are measured against: programs that others would write for the same answer from the same files."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipelines.jobs.bench.stamps import DELAY, EVENTS, StampAnswer, read_stamps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pipelines.operators.rows import Longs

SQL = f"""
WITH events AS MATERIALIZED (
  SELECT epoch_us(time) AS stamp, row_number() OVER () - 1 AS before FROM read_parquet($files)
), candidates AS MATERIALIZED (
  SELECT (before + 1) // {EVENTS} AS sent, max(stamp - {DELAY}) OVER (ORDER BY before) AS newest
  FROM events WHERE (before + 1) % {EVENTS} = 0
)
SELECT
  (SELECT count(*) FROM candidates),
  (SELECT count(*) FROM events JOIN candidates ON sent = before // {EVENTS} WHERE stamp < newest),
  (SELECT coalesce(sum(newest), 0) FROM candidates)
"""  # noqa: S608 - two numbers
"""`row_number() OVER ()` numbers rows as they stand in the files, in the order in which these are named: DuckDB keeps
it unless told otherwise. `ORDER BY filename, file_row_number` gives the same numbers and takes three times as long."""
BATCH = 1_000
"""Items that Bytewax takes from its source at once; more or fewer are slower."""


class Peer(NamedTuple):
    """A program that gives the answer from files."""

    package: str
    answer: Callable[[Sequence[str]], StampAnswer]
    slow: bool = False
    """It is run once and not warm: a second run would take as long."""

    @property
    def is_installed(self) -> bool:
        """Say whether its package is here."""
        return find_spec(self.package) is not None


def by_duckdb(files: Sequence[str]) -> StampAnswer:
    """Ask DuckDB, by window functions."""
    import duckdb

    with duckdb.connect() as database:
        found = database.execute(SQL, {"files": list(files)}).fetchall()
    return StampAnswer(*(int(value) for value in found[0]))


def by_polars(files: Sequence[str]) -> StampAnswer:
    """Ask Polars, by expressions."""
    import polars as pl

    due = (pl.col("before") + 1) % EVENTS == 0
    stamp = pl.col("time").dt.timestamp("us")
    newest = pl.when(due).then(stamp - DELAY).cum_max().forward_fill()
    events = pl.scan_parquet(list(files)).with_row_index("before").select(due=due, stamp=stamp, newest=newest)
    late = pl.col("stamp") < pl.col("newest").shift(1)
    asked = events.select(pl.col("due").sum(), late=late.sum(), newest=pl.col("newest").filter(pl.col("due")).sum())
    return StampAnswer(*(int(value) for value in asked.collect().row(0)))


def by_numpy(files: Sequence[str]) -> StampAnswer:
    """Ask NumPy, by whole columns out of files that PyArrow reads."""
    return over_columns(read_stamps(files))


def over_columns(stamps: Longs) -> StampAnswer:
    """Ask NumPy over a column that is read."""
    newest = np.maximum.accumulate(stamps[EVENTS - 1 :: EVENTS] - DELAY)
    governed = stamps[EVENTS:]
    drops = governed < np.repeat(newest, EVENTS)[: len(governed)]
    return StampAnswer(len(newest), int(drops.sum()), int(newest.sum()))


def by_bytewax(files: Sequence[str]) -> StampAnswer:
    """Ask Bytewax, by a stateful step an event; only late events and CTIs go on from it."""
    import bytewax.operators as op
    from bytewax.dataflow import Dataflow
    from bytewax.testing import TestingSink, TestingSource, run_main

    sent: list[tuple[str, tuple[bool, int]]] = []
    flow = Dataflow("punctuate")
    events = op.input("files", flow, TestingSource(_events(files), batch_size=BATCH))
    op.output("answer", op.stateful_flat_map("promise", events, _promised), TestingSink(sent))
    run_main(flow)
    newest = [instant for _, (is_promise, instant) in sent if is_promise]
    return StampAnswer(len(newest), len(sent) - len(newest), sum(newest))


def _events(files: Sequence[str]) -> Iterator[tuple[str, int]]:
    for file in files:
        for stamp in read_stamps([file]).tolist():
            yield "all", stamp


def _promised(
    state: tuple[int, int | None] | None, stamp: int
) -> tuple[tuple[int, int | None], list[tuple[bool, int]]]:
    received, newest = state or (0, None)
    sent = [(False, stamp)] if newest is not None and stamp < newest else []
    if (received + 1) % EVENTS == 0:
        newest = stamp - DELAY if newest is None else max(newest, stamp - DELAY)
        sent.append((True, newest))
    return (received + 1, newest), sent


PEERS = {
    "DuckDB": Peer("duckdb", by_duckdb),
    "Polars": Peer("polars", by_polars),
    "NumPy": Peer("numpy", by_numpy),
    "Bytewax": Peer("bytewax", by_bytewax, slow=True),
}
