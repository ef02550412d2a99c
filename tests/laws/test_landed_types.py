"""Every type that lands goes through every operator, is held, set aside and hashed, whatever the buckets."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.engine.commits.readers import read_carry, read_stream
from pipelines.engine.tasks.local import CoreEngine
from pipelines.flows.grid import intervals
from pipelines.flows.reading import read_flow
from pipelines.jobs.proofs.parity import table_hashes
from pipelines.jobs.runs.backfill import Backfill, run_backfill

if TYPE_CHECKING:
    from pathlib import Path

FLOW = """\
flow: types
every: 1h
buckets: {buckets}
sources:
  rows: {{feed: {{{form}: [rows.{form}]{types}}}, key: [key, port], time: time, arrival: at}}
streams:
  beating: {{heartbeat: rows, interval: 5m, slack: 1m}}
  ordered: {{merge: beating, by: key, ports_by: {{port: [x, y, z]}}}}
  punctual: {{advance_time: ordered, by: key, every: {{events: 3}}, late: divert}}
"""
BEGIN = dt.datetime(2013, 1, 1, tzinfo=dt.UTC)
ROWS = 400
POINT = pa.struct([("a", pa.int8()), ("at", pa.timestamp("us", tz="UTC")), ("deep", pa.list_(pa.decimal128(5, 1)))])
SCHEMA = pa.schema(
    [
        *[("key", pa.int16()), ("port", pa.string()), ("time", pa.timestamp("us", tz="UTC"))],
        *[("at", pa.timestamp("us", tz="UTC")), ("flag", pa.bool_()), ("i8", pa.int8()), ("i16", pa.int16())],
        *[("i32", pa.int32()), ("i64", pa.int64()), ("f32", pa.float32()), ("f64", pa.float64())],
        *[("short", pa.decimal128(5, 2)), ("long", pa.decimal128(38, 10)), ("text", pa.string())],
        *[("bytes", pa.binary()), ("day", pa.date32()), ("moment", pa.timestamp("us", tz="UTC"))],
        *[("point", POINT), ("list", pa.list_(pa.int32())), ("points", pa.list_(POINT))],
    ]
)


def row(number: int) -> dict[str, object]:
    at = BEGIN + dt.timedelta(seconds=17 * number)
    time = at - dt.timedelta(seconds=(number * 7919) % 400)
    point = {"a": number % 100, "at": at, "deep": [Decimal(number) / 10, None]}
    values: dict[str, object] = {
        "flag": number % 3 == 0,
        "i8": -number % 100,
        "i16": -number,
        "i32": number << 20,
        "i64": number << 40,
        "f32": number / 3,
        "f64": -number / 7,
        "short": Decimal(number) / 100,
        "long": Decimal(number) * 10**24 + Decimal("0.0000000001"),
        "text": f"ü{number}",
        "bytes": bytes([number % 256, 0, 255]),
        "day": at.date(),
        "moment": time,
        "point": point,
        "list": list(range(number % 4)),
        "points": [point, None],
    }
    kept = {name: None if (number + place) % 11 == 0 else value for place, (name, value) in enumerate(values.items())}
    return {"key": number % 5, "port": "xyz"[number % 3], "time": time, "at": at, **kept}


def run(folder: Path, buckets: int, form: str = "parquet", types: str = "") -> Backfill:
    path = folder / f"flow{buckets}.yaml"
    path.write_text(FLOW.format(buckets=buckets, form=form, types=types))
    wanted = Backfill(flow=read_flow(path), root=folder / f"run{buckets}", base=folder, engine=CoreEngine())
    run_backfill(wanted, intervals(wanted.flow, "2013-01-01T00:00:00Z", "2013-01-01T02:00:00Z"))
    return wanted


def hashes(wanted: Backfill) -> dict[str, str]:
    spans = intervals(wanted.flow, "2013-01-01T00:00:00Z", "2013-01-01T02:00:00Z")
    return {
        name: found.text
        for name, found in table_hashes(wanted.root, wanted.flow, *map(int, (spans[0][0], spans[-1][1]))).items()
    }


def test_rows_of_all_types_are_the_same_in_one_bucket_and_in_seven(tmp_path: Path) -> None:
    rows = [row(number) for number in range(ROWS)]
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), tmp_path / "rows.parquet")
    one, seven = run(tmp_path, 1), run(tmp_path, 7)
    assert hashes(one) == hashes(seven)
    names = [*one.flow.tables()]
    tables = [read_stream(seven.root, name, key=seven.flow.key_of(name)) for name in names if name != "ledger"]
    came = pa.concat_tables([table.select(SCHEMA.names) for table in tables])
    assert came.schema.remove_metadata() == SCHEMA
    assert all(table.num_rows for table in tables)
    passed = read_stream(seven.root, "beating", key=seven.flow.key_of("beating"))
    data = passed.filter(pa.compute.equal(passed["kind"], "data")).select(SCHEMA.names).sort_by("at")
    assert data.equals(pa.Table.from_pylist(rows, SCHEMA))
    held = read_carry(seven.root, "ordered", "held", 2, key=("key", "position"))
    assert held.num_rows > 0
    assert set(SCHEMA.names) <= set(held.schema.names)


JSON_TYPES = (
    ", types: {key: int16, port: string, time: timestamp, at: timestamp, n: 'decimal(9, 3)', small: int8, f: float32, "
    "s: 'struct<a: int16, l: list<float32>>', day: date, raw: binary}"
)


@pytest.mark.parametrize("buckets", [1, 7])
def test_json_lines_become_the_rows_they_say(tmp_path: Path, buckets: int) -> None:
    lines = [
        f'{{"key": {number % 5}, "port": "{"xyz"[number % 3]}", "time": "2013-01-01T00:{number % 60:02}:00Z", '
        f'"at": "2013-01-01T00:{number % 60:02}:30Z", "n": "{number}.125", "small": {number % 100}, "f": 0.1, '
        f'"s": {{"a": {number}, "l": [{number}.5, null]}}, "day": "2013-01-01", "raw": "z"}}\n'
        for number in range(60)
    ]
    (tmp_path / "rows.json").write_text("".join(lines))
    wanted = run(tmp_path, buckets, "json", JSON_TYPES)
    passed = read_stream(wanted.root, "beating", key=wanted.flow.key_of("beating"))
    data = passed.filter(pa.compute.equal(passed["kind"], "data")).sort_by("arrival").to_pylist()
    assert [(each["n"], each["small"], each["s"]["l"][0], each["raw"]) for each in data] == [
        (Decimal(f"{number}.125"), number, number + 0.5, b"z") for number in range(60)
    ]
