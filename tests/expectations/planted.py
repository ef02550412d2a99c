"""Rows of made-up streams, cut into 16 shuffled partitions at known places, and violations planted in them."""

from __future__ import annotations

import random
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow.dataset import dataset

from expectations.on_duckdb import PlainView, count_plain
from expectations.on_spark import SparkView, count_on_spark
from expectations.views import Views
from pipelines.engine.columnar.columns import LEDGER_SCHEMA, ORDER_FIELDS, TIME
from pipelines.flows.reading import read_flow

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    import pyarrow.compute as pc
    from pyspark.sql import DataFrame, SparkSession

    from expectations.judgement import Judgement
    from pipelines.flows.model import Flow

SECOND = 1_000_000
PARTITIONS = 16
GATES = ("p", "q", "r")
POINTS = """\
flow: planted
sources:
  rows: {feed: {parquet: rows.parquet}, key: gate, time: sent, arrival: seen}
streams:
  beating: {heartbeat: rows, interval: 10s}
  ordered: {merge: beating, ports_by: {gate: [p, q, r]}}
  punctual: {advance_time: ordered, every: {events: 3}, late: divert}
"""
EDGES = """\
flow: edges
sources:
  rows: {feed: {parquet: rows.parquet}, key: gate, time: sent, arrival: seen, shape: edge, edge: edge, event_id: event}
streams:
  own: {advance_time: rows, by: key, every: {events: 3}, late: drop}
"""
INTERVALS = """\
flow: intervals
sources:
  rows: {feed: {parquet: rows.parquet}, key: gate, time: sent, arrival: seen, shape: interval, end: left}
streams:
  own: {advance_time: rows, by: key, every: {events: 3}, late: drop}
"""
WINDOWS = """\
flow: windows
sources:
  rows: {feed: {parquet: rows.parquet}, key: gate, time: sent, arrival: seen}
streams:
  own: {advance_time: rows, by: key, every: {events: 3}, late: drop}
  counted: {window: own, size: 10s, measures: {n: count}}
"""
INSTANTS = ("arrival", "event_time", "event_end", "due_at", "landed_at")
Row = dict[str, Any]


def flow_of(folder: Path, text: str) -> Flow:
    """Read a flow; its feed is never opened."""
    file = folder / "flow.yaml"
    file.write_text(text)
    return read_flow(file, {})


def row(  # noqa: PLR0913 - a row is these
    kind: str, at: int, time: int | None, gate: str | None, end: int | None = None, commit: int = 2
) -> Row:
    """Give a row, in seconds; its place is set by `placed`."""
    return {"kind": kind, "arrival": at, "event_time": time, "event_end": end, "gate": gate, "commit": commit}


def placed(rows: Iterable[Row], key: Sequence[str] = ()) -> list[Row]:
    """Number the rows of one arrival, stream-wide or by key, in the order in which they stand."""
    numbers: dict[tuple[Any, ...], int] = {}
    made = []
    for each in rows:
        home = (each["arrival"], *(each[name] for name in key))
        numbers[home] = numbers.get(home, 0) + 1
        made.append({**each, "place": numbers[home]})
    return made


def table(rows: Sequence[Row]) -> pa.Table:
    """Lay rows out as a stream with one payload column."""
    schema = pa.schema([*ORDER_FIELDS, pa.field("gate", pa.string())])

    def column(name: str, kind: pa.DataType) -> pa.Array:
        values = [each.get(name) for each in rows]
        if kind != TIME:
            return pa.array(values, kind)
        return pa.array([None if value is None else value * SECOND for value in values], pa.int64()).cast(TIME)

    return pa.Table.from_arrays([column(each.name, each.type) for each in schema], schema=schema)


def shuffled(spark: SparkSession, rows: Sequence[Row]) -> DataFrame:
    """Put rows into 16 partitions, cut where `edges` says; partitions and rows within them are shuffled."""
    drawn = random.Random(5)  # noqa: S311 - a shuffle
    homes = drawn.sample(range(PARTITIONS), PARTITIONS)
    parts = [homes[bisect_right(edges(rows), place) - 1] for place in range(len(rows))]
    order = drawn.sample(range(len(rows)), len(rows))
    laid = table([rows[place] for place in order]).append_column(
        "part", pa.array([parts[place] for place in order], pa.int32())
    )
    return spark.createDataFrame(laid).repartitionById(PARTITIONS, "part").drop("part")


def edges(rows: Sequence[Row]) -> list[int]:
    """Say at which rows partitions begin, and where the last ends."""
    return [len(rows) * number // PARTITIONS for number in range(PARTITIONS + 1)]


@dataclass
class Planted:
    """The streams of a flow, by name, with nothing wrong in them yet."""

    flow: Flow
    streams: dict[str, list[Row]]
    before: dict[str, list[Row]] = field(default_factory=dict)
    landed: int = 0

    def views(self, spark: SparkSession | None) -> Views:
        """Lay all streams out, shuffled; without Spark for the judge in this process."""
        before = {name: table(rows) for name, rows in self.before.items()}
        landed = table([row("data", 0, 0, "p")] * self.landed)
        ledger = LEDGER_SCHEMA.empty_table()
        if spark is None:
            plain = {name: Mixed(self.streams.get(name, ())) for name in self.flow.tables()}
            return Views(
                tables={name: PlainView(rows=rows, before=before.get(name)) for name, rows in plain.items()},
                count=partial(count_plain, plain, {"rows": [landed]}, Laid(ledger)),
            )
        empty = spark.createDataFrame(table([]))
        some = self.streams
        frames = {name: shuffled(spark, some[name]) if some.get(name) else empty for name in self.flow.tables()}
        others = {"rows": spark.createDataFrame(landed)}, [spark.createDataFrame(ledger)]
        return Views(
            tables={name: SparkView(rows=rows, before=before.get(name)) for name, rows in frames.items()},
            count=partial(count_on_spark, frames, *others),
        )


class Laid:
    """A table as files of it would be read."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    def scan(self, columns: Sequence[str] | None = None, where: pc.Expression | None = None) -> pa.Table:
        """Read some columns of some rows."""
        return dataset(self._rows).to_table(columns=None if columns is None else [*columns], filter=where)


class Mixed(Laid):
    """Rows in no order."""

    def __init__(self, rows: Sequence[Row]) -> None:
        drawn = random.Random(5).sample(range(len(rows)), len(rows))  # noqa: S311 - a shuffle
        super().__init__(table([rows[place] for place in drawn]))


def beats(gates: Sequence[str] = GATES, first: int = 1_000, last: int = 1_200) -> list[Row]:
    """Give what a heartbeat of 10 s makes of a row a second, gate after gate; all stamps are in order."""
    rows = []
    for gate in gates:
        for at in range(first, last):
            rows += [row("timer", at, at, gate)] if at % 10 == 0 else []
            rows.append(row("data", at, at, gate))
    return placed(rows, ("gate",))


def promises(rows: Sequence[Row]) -> list[Row]:
    """Merge beats and send a CTI behind each 30th second, ten seconds back; some events are as old as it."""
    ordered = sorted(rows, key=lambda each: (each["arrival"], each["kind"] != "timer", each["gate"]))
    made: list[Row] = []
    for each in ordered:
        made.append(each)
        if each["arrival"] % 30 == 0 and each["kind"] == "data" and each["gate"] == "r":
            made += [row("cti", each["arrival"], each["event_time"] - 10, None)]
            made += [row("data", each["arrival"], each["event_time"] - 10, "p")]
    return placed(made)


def good(flow: Flow) -> Planted:
    """Give the streams of `POINTS`, with the last timers and the CTI before them."""
    beating = beats()
    ordered = placed(each for each in promises(beating) if each["kind"] != "cti")
    punctual = promises(beating)
    data = sum(each["kind"] == "data" for each in ordered)
    extra = [each for each in ordered if each["kind"] == "data" and each["event_time"] < each["arrival"]]
    # What `promises` adds came in from somewhere: as data of gate p.
    beating = placed(sorted([*beating, *extra], key=lambda each: (each["gate"], each["arrival"])), ("gate",))
    timers = [{**row("timer", 990, 990, gate, commit=1), "place": 1 + number} for number, gate in enumerate(GATES)]
    cti = {**row("cti", 990, 980, None, commit=1), "place": 9}
    return Planted(
        flow=flow,
        streams={"beating": beating, "ordered": ordered, "punctual": punctual},
        before={"beating": [{**each, "place": 1} for each in timers], "ordered": timers, "punctual": [*timers, cti]},
        landed=data,
    )


def outcome(found: Sequence[Judgement], expectation: str, table: str) -> Judgement:
    """Give what came of one expectation."""
    return next(each for each in found if (each.expectation, each.table) == (expectation, table))


def identity(each: Mapping[str, Any]) -> tuple[Any, ...]:
    """Tell a row from all others: gate, arrival and place."""
    at = each["arrival"]
    return (each["gate"], seconds(at) if isinstance(at, str) else at, each["place"])


def seconds(text: str) -> int:
    """Read an instant back into seconds."""
    import datetime as dt

    return int(dt.datetime.fromisoformat(text).timestamp())
