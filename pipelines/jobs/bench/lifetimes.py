"""Events of every shape and many keys: what CTIs, windows, joins and `deduplicate` are measured with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.engine.columnar.columns import times
from pipelines.flows.reading import read_flow
from pipelines.jobs.bench.generated import APART, BEGIN, CHUNK, LATE_SHARE, LATEST, SEED
from pipelines.operators.rows import TICKS_PER_SECOND, Shape

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipelines.flows.model import Flow

SHORTEST, LONGEST = TICKS_PER_SECOND // 10, 2 * TICKS_PER_SECOND
"""How long an event lasts, in ticks."""
BETWEEN = 1 << 13
"""Rows from a start edge to its end edge."""
EVERY, DELAY = 10, 5
"""A CTI of a key after so many events, and by how many seconds it is held back."""
AGAIN_SHARE, AGAIN = 10, 5 * TICKS_PER_SECOND
"""One row of so many comes again, so many ticks after it came first."""
SOURCE = {
    Shape.POINT: "time: time",
    Shape.INTERVAL: "shape: interval, time: time, end: until",
    Shape.EDGE: "shape: edge, edge: edge, event_id: trip, time: time, end: until",
}


@dataclass(frozen=True, kw_only=True)
class Lifetimes:
    """A feed of generated rows of one shape: a file `rows.parquet`."""

    folder: Path
    rows: int
    keys: int
    shape: Shape

    @property
    def span(self) -> tuple[int, int]:
        """The ticks from the first arrival to behind the last."""
        return BEGIN, BEGIN + self.rows * APART

    @property
    def file(self) -> Path:
        """The file of rows."""
        return self.folder / "rows.parquet"

    def flow(self, late: str, further: str = "", names: tuple[str, ...] = ("rows",)) -> Flow:
        """Read a flow that holds the events of each file to CTIs, as the stream `ready_<file>`, and further streams.

        Args:
            late: what is done with those that come late.
            further: more streams, in YAML, a line each.
            names: the files, without their ending.
        """
        source = f"key: device, {SOURCE[self.shape]}, arrival: seen"
        ready = f"by: device, every: {{events: {EVERY}}}, delay: {DELAY}s, late: {late}"
        text = "flow: bench\nbuckets: 4\nsources:\n"
        text += "".join(f"  {name}: {{feed: {{parquet: {name}.parquet}}, {source}}}\n" for name in names)
        text += "streams:\n"
        text += "".join(f"  ready_{name}: {{advance_time: {name}, {ready}}}\n" for name in names)
        (self.folder / "flow.yaml").write_text(text + further)
        return read_flow(self.folder / "flow.yaml", {})

    def split(self) -> None:
        """Write the rows with an odd amount and those with an even one as files of their own, `odd` and `even`."""
        rows = pq.read_table(self.file)
        odd = pc.equal(pc.bit_wise_and(rows["amount"], 1), 1)
        pq.write_table(rows.filter(odd), self.folder / "odd.parquet")
        pq.write_table(rows.filter(pc.invert(odd)), self.folder / "even.parquet")

    def repeat(self) -> None:
        """Write the rows, numbered and in order of arrival, as the file `repeated`: one in ten comes twice."""
        rows = pq.read_table(self.file)
        rows = rows.append_column("id", pa.array(np.arange(rows.num_rows)))
        seen = np.asarray(rows["seen"].cast(pa.int64()))
        twice = np.flatnonzero((np.arange(rows.num_rows) % AGAIN_SHARE == 0) & (seen + AGAIN < self.span[1]))
        arrivals = np.concatenate([seen, seen[twice] + AGAIN])
        both = pa.concat_tables([rows, rows.take(pa.array(twice))])
        both = both.set_column(both.schema.get_field_index("seen"), "seen", times(arrivals))
        pq.write_table(both.take(pa.array(np.argsort(arrivals, kind="stable"))), self.folder / "repeated.parquet")

    def once(self) -> Flow:
        """Read a flow from which each row of `repeated` leaves once, as the stream `out`."""
        source = f"{{feed: {{parquet: repeated.parquet}}, key: device, {SOURCE[self.shape]}, arrival: seen}}"
        text = f"flow: bench\nbuckets: 4\nsources:\n  repeated: {source}\nstreams:\n"
        (self.folder / "flow.yaml").write_text(text + "  out: {deduplicate: repeated, on: [id], within: 60s}\n")
        return read_flow(self.folder / "flow.yaml", {})


def record_lifetimes(folder: Path, rows: int, keys: int, shape: Shape) -> Lifetimes:
    """Write generated rows of one shape as one Parquet file, a chunk at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    feed = Lifetimes(folder=folder, rows=rows, keys=keys, shape=shape)
    chunks = _edges(rows, keys) if shape is Shape.EDGE else _events(rows, keys)
    first = next(chunks)
    with pq.ParquetWriter(feed.file, first.schema) as writer:
        writer.write_table(first)
        for table in chunks:
            writer.write_table(table)
    return feed


def _events(rows: int, keys: int) -> Iterator[pa.Table]:
    """Give points and intervals in order of arrival, some of them late."""
    drawn = np.random.default_rng(SEED)
    for first in range(0, rows, CHUNK):
        at = np.arange(first, min(first + CHUNK, rows))
        seen = BEGIN + at * APART
        late = np.where(drawn.random(len(at)) < LATE_SHARE, drawn.integers(0, LATEST * TICKS_PER_SECOND, len(at)), 0)
        yield pa.table(
            {
                "device": drawn.integers(0, keys, len(at)),
                "time": times(seen - late),
                "until": times(seen - late + drawn.integers(SHORTEST, LONGEST, len(at))),
                "seen": times(seen),
                "amount": drawn.integers(0, 1_000, len(at)),
            }
        )


def _edges(rows: int, keys: int) -> Iterator[pa.Table]:
    """Give as many start edges as end edges, in stretches of `BETWEEN`: what begins in one ends in the next."""
    for table in _events(rows, keys):
        at = np.arange(table.num_rows)
        ends = (at // BETWEEN) % 2 == 1
        start = np.where(ends, at - BETWEEN, at)
        taken = table.take(pa.array(start))
        seen = np.asarray(table["seen"].cast(pa.int64()))
        late = np.where(at % 97 == 0, LATEST * TICKS_PER_SECOND, 0)
        until = np.maximum(seen - late, np.asarray(taken["time"].cast(pa.int64())) + 1)
        number = np.asarray(taken["seen"].cast(pa.int64()))
        yield pa.table(
            {
                "device": taken["device"],
                "time": taken["time"],
                "until": pc.if_else(pa.array(ends), times(until), pa.scalar(None, times(until).type)),
                "seen": table["seen"],
                "amount": taken["amount"],
                "edge": pc.if_else(pa.array(ends), "end", "start"),
                "trip": pa.array(number),
            }
        )
