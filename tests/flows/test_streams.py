"""Streams of a flow: keys, policies and inputs, and what is refused.

Rules of docs/semantics.md: A9, A10, M11
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from pipelines.flows.definition import flow_from_json, flow_to_json
from pipelines.flows.errors import FlowError
from pipelines.flows.plan import plan
from pipelines.flows.reading import read_flow
from pipelines.operators.advance_time import AdvanceTimePolicy, Late, LateEnd, PromiseAtEnd
from pipelines.operators.alter_duration import AlterDurationPolicy
from pipelines.operators.filter import FilterPolicy
from pipelines.operators.heartbeat import HeartbeatPolicy
from pipelines.operators.join import JoinPolicy
from pipelines.operators.merge import Ahead, MergeAtEnd, MergePolicy
from pipelines.operators.metronome import MetronomePolicy
from pipelines.operators.project import ProjectPolicy
from pipelines.operators.rows import Shape
from pipelines.operators.shift_time import ShiftTimePolicy
from pipelines.operators.union import UnionPolicy
from pipelines.operators.window import Measure, WindowPolicy

if TYPE_CHECKING:
    from pathlib import Path

    from tests.flows.conftest import Read

DAY = 86_400_000_000
KEYED = "key: [a, b], time: t, arrival: r"
TWO = "".join(f"  {name}: {{feed: nycflights13.departures, {KEYED}}}\n" for name in ("d", "e"))


def test_a_heartbeat_has_the_key_of_its_input_and_its_policy(read: Read) -> None:
    settings = "interval: 0.1, slack: 90s, acceleration: 3/2, max_ahead: off, max_catch_up: 1_000, expire: 2d"
    stream = read(streams=f"  b: {{heartbeat: d, {settings}}}\n").streams["b"]
    assert (stream.by, stream.inputs) == (("origin",), ("d",))
    assert stream.policy == HeartbeatPolicy(
        interval=100_000, slack=90_000_000, acceleration=(3, 2), max_ahead=None, max_catch_up=1_000, expire=2 * DAY
    )


def test_a_heartbeat_guards_against_poison_unless_told_otherwise(read: Read) -> None:
    assert read(streams="  b: {heartbeat: d, interval: 1m}\n").streams["b"].policy == HeartbeatPolicy(
        interval=60_000_000, max_ahead=DAY
    )


def test_a_metronome_has_an_interval_and_neither_input_nor_key(read: Read) -> None:
    flow = read(streams="  t: {metronome: '${pace}', about: Ticks.}\n", top="parameters: {pace: 1m30s}\n")
    stream = flow.streams["t"]
    assert (stream.by, stream.inputs, stream.shape, stream.event_id) == ((), (), Shape.POINT, None)
    assert stream.policy == MetronomePolicy(interval=90_000_000)
    assert flow.sources_of("t") == ()
    assert flow_from_json(flow_to_json(flow)) == flow


def test_a_metronome_under_ten_milliseconds_is_warned_of(read: Read) -> None:
    warnings = read(streams="  t: {metronome: 5ms}\n").warnings
    assert "stream `t`: interval is under 10 ms: 17,280,000 timers a day" in warnings[0]


@pytest.mark.parametrize("ports", ["t, g", "g, t"])
def test_a_metronome_merges_with_events_of_any_shape(read: Read, ports: str) -> None:
    edges = f"  g: {{feed: nycflights13.departures, {KEYED}, shape: edge, edge: s, event_id: i}}\n"
    merged = read(sources=edges, streams=f"  t: {{metronome: 1m}}\n  m: {{merge: [{ports}]}}\n").streams["m"]
    assert (merged.shape, merged.event_id) == (Shape.EDGE, "i")


@pytest.mark.parametrize(
    ("text", "ratio"),
    [("2", (2, 1)), ("0.1", (1, 10)), ("'6/4'", (3, 2)), ("6/4", (3, 2)), ("1.000001", (1000001, 10**6))],
)
def test_an_acceleration_is_an_exact_ratio(read: Read, text: str, ratio: tuple[int, int]) -> None:
    policy = read(streams=f"  b: {{heartbeat: d, interval: 1m, acceleration: {text}}}\n").streams["b"].policy
    assert isinstance(policy, HeartbeatPolicy)
    assert policy.acceleration == ratio


def test_a_merge_by_the_values_of_a_column(read: Read) -> None:
    merged = "merge: b, ports_by: {origin: [EWR, 7, true, '7', NO]}, flush_at_end: true, max_held: 10"
    stream = read(streams=f"  b: {{heartbeat: d, interval: 1m}}\n  m: {{{merged}}}\n").streams["m"]
    assert stream.ports is not None
    assert (stream.by, stream.ports.column, stream.ports.values) == ((), "origin", ("EWR", 7, True, "7", "NO"))
    assert stream.policy == MergePolicy(ports=5, at_end=MergeAtEnd.FLUSH, max_held=10, max_ahead=DAY)


def test_a_merge_of_streams_has_a_port_for_each_in_their_order(read: Read) -> None:
    stream = read(sources=TWO, streams="  m: {merge: [e, d], by: a}\n").streams["m"]
    assert stream.ports is not None
    assert (stream.by, stream.inputs, stream.ports.streams) == (("a",), ("e", "d"), ("e", "d"))
    assert (stream.ports.column, len(stream.ports)) == (None, 2)
    assert stream.policy == MergePolicy(ports=2, at_end=MergeAtEnd.HOLD, max_ahead=DAY)


def test_a_merge_takes_a_bound_of_its_own_or_none_and_may_set_rows_aside(read: Read) -> None:
    aside = read(sources=TWO, streams="  m: {merge: [e, d], max_ahead: 2h, ahead: divert}\n").streams["m"]
    assert aside.policy == MergePolicy(ports=2, max_ahead=DAY // 12, ahead=Ahead.DIVERT)
    assert aside.sides == ("m.diverted",)
    assert read(sources=TWO, streams="  m: {merge: [e, d], max_ahead: off}\n").streams["m"].policy == MergePolicy(
        ports=2
    )


def test_what_a_merge_set_aside_may_be_read(read: Read) -> None:
    streams = "  m: {merge: [e, d], ahead: divert}\n  w: {filter: m.diverted, where: 'true'}\n"
    assert read(sources=TWO, streams=streams).streams["w"].inputs == ("m.diverted",)


def test_rows_are_set_aside_only_where_there_is_a_bound(read: Read) -> None:
    with pytest.raises(FlowError, match=r"`ahead: divert`.* expected drop where max_ahead is off"):
        read(sources=TWO, streams="  m: {merge: [e, d], max_ahead: off, ahead: divert}\n")


def test_a_merge_without_timers_may_have_its_ports_in_any_column(read: Read) -> None:
    ports = read(streams="  m: {merge: d, ports_by: {carrier: [UA, AA]}}\n").streams["m"].ports
    assert ports is not None
    assert ports.column == "carrier"


def test_advance_time_takes_all_its_settings(read: Read) -> None:
    settings = "every: {events: 50, duration: 10s}, delay: -1us, late: adjust, by: key, at_end: infinity"
    text = f"  c: {{advance_time: d, {settings}, late_end: close_at_cti, max_ahead: 2h}}\n"
    stream = read(streams=text).streams["c"]
    assert stream.by == ("origin",)
    assert stream.sides == ()
    assert stream.policy == AdvanceTimePolicy(
        shape=Shape.POINT,
        late=Late.ADJUST,
        events=50,
        duration=10_000_000,
        delay=-1,
        late_end=LateEnd.CLOSE_AT_CTI,
        at_end=PromiseAtEnd.INFINITY,
        max_ahead=2 * 3_600_000_000,
    )


def test_advance_time_is_stream_wide_and_guarded_unless_told_otherwise(read: Read) -> None:
    stream = read(streams="  c: {advance_time: d, every: {events: 5}, late: drop}\n").streams["c"]
    assert stream.by == ()
    assert stream.policy == AdvanceTimePolicy(shape=Shape.POINT, late=Late.DROP, events=5, max_ahead=DAY)


def test_by_may_name_the_whole_key(read: Read) -> None:
    text = "  c: {advance_time: d, every: {events: 5}, late: drop, by: [a, b]}\n"
    assert read(sources=TWO, streams=text).streams["c"].by == ("a", "b")


def test_behind_another_advance_time_every_may_be_left_out(read: Read) -> None:
    text = "  c: {advance_time: d, every: {events: 5}, late: drop}\n  e: {advance_time: c, late: drop}\n"
    assert read(streams=text).streams["e"].policy == AdvanceTimePolicy(shape=Shape.POINT, late=Late.DROP, max_ahead=DAY)


def test_what_is_diverted_is_a_stream(read: Read) -> None:
    diverting = "  c: {advance_time: d, every: {events: 5}, late: divert, by: key}\n"
    flow = read(streams=diverting + "  e: {heartbeat: c.diverted, interval: 1m}\n")
    assert flow.streams["c"].sides == ("c.diverted",)
    assert flow.streams["e"].by == ("origin",)


def test_the_shape_of_a_source_comes_through_to_advance_time(read: Read) -> None:
    shape = "shape: interval, end: u"
    sources = f"  d: {{feed: nycflights13.departures, {KEYED}, {shape}}}\n"
    streams = "  b: {heartbeat: d, interval: 1m}\n  c: {advance_time: b, every: {events: 5}, late: adjust}\n"
    policy = read(sources=sources, streams=streams).streams["c"].policy
    assert isinstance(policy, AdvanceTimePolicy)
    assert policy.shape is Shape.INTERVAL


@pytest.mark.parametrize(
    ("stream", "told", "near"),
    [
        ("heartbeet: d, interval: 1m", "unknown key `heartbeet` in stream `x`", "heartbeat"),
        ("interval: 1m", "no operator in stream `x`", None),
        ("", "no operator in stream `x`", None),
        ("join: [d, d], on: k", "`d` twice under `join`", None),
        ("join: d, on: k", "1 input of `join`", None),
        ("join: [d, b], on: k", "`d`, which has no CTIs,", None),
        ("union: [d, b]", "`d`, which has no CTIs,", None),
        ("window: d, size: 1h, measures: {n: count}", "`d`, which has no CTIs,", None),
        ("filter: d, where: 'dep_delay >'", "`where: dep_delay >`", None),
        ("filter: d, where: 'rand() < 0.5'", "`where: rand() < 0.5`", None),
        ("project: d, columns: {origin: dest}", "`origin`, a column that is the key and stays,", None),
        ("project: d, columns: {kind: dest}", "`kind`, a column that every stream has,", None),
        ("alter_duration: d, duration: 0s", "`duration: 0s`", None),
        ("shift_time: d", "no `shift` in stream `x`", None),
        ("deduplicate: d", "no `within` in stream `x`", None),
        ("deduplicate: d, within: 0", "`within: 0` in stream `x`, expected greater than zero", None),
        ("deduplicate: d, within: off", "`within: off`", None),
        ("deduplicate: d, within: 1h, on: []", "an empty `on`", None),
        ("deduplicate: d, within: 1h, on: [a, a]", "`a` twice under `on`", None),
        ("deduplicate: d, within: 1h, max_kept: 0", "`max_kept: 0` in stream `x`, expected at least 1", None),
        ("deduplicate: d, within: 1h, max_ahead: -1s", "`max_ahead: -1s`", None),
        ("deduplicate: [d, b], within: 1h", "2 inputs of `deduplicate`", None),
        ("deduplicat: d, within: 1h", "unknown key `deduplicat`", "deduplicate"),
        ("deduplicate: d, withn: 1h", "unknown key `withn`", "within"),
        ("advance_time: d, import: b, late: drop", "`b`, which has no CTIs,", None),
        ("replay: d", "`replay`, which is not built yet,", None),
        ("heartbeat: d, interval: 1m, parallel: true", "`parallel`, which stands beside `module:` alone,", None),
        ("heartbeat: d, merge: d", "both `heartbeat` and `merge`", None),
        ("heartbeat: [d, d], interval: 1m", "`d` twice under `heartbeat`", None),
        ("heartbeat: [d, b], interval: 1m", "2 inputs of `heartbeat`", None),
        ("heartbeat: , interval: 1m", "nothing under `heartbeat`", None),
        ("heartbeat: d", "no `interval` in stream `x`", None),
        ("heartbeat: d, intervall: 1m", "unknown key `intervall`", "interval"),
        ("heartbeat: d, interval: 1 minute", "`interval: 1 minute`", "1m"),
        ("heartbeat: d, interval: 0", "`interval: 0` in stream `x`, expected greater than zero", None),
        ("heartbeat: d, interval: -5s", "`interval: -5s`", None),
        ("heartbeat: d, interval: '${gap}'", "`interval: ${gap}`", None),
        ("heartbeat: d, interval: 1m, slack: -1s", "`slack: -1s`", None),
        ("heartbeat: d, interval: 1m, slack: off", "`slack: off`", None),
        ("heartbeat: d, interval: 1m, acceleration: 1/0", "`1/0` under `acceleration`", None),
        ("heartbeat: d, interval: 1m, acceleration: fast", "`fast` under `acceleration`", None),
        ("heartbeat: d, interval: 1m, acceleration: -1", "`acceleration: -1`", None),
        ("heartbeat: d, interval: 1m, max_ahead: -1s", "`max_ahead: -1s`", None),
        ("heartbeat: d, interval: 1m, max_ahead: ", "nothing under `max_ahead`", None),
        ("heartbeat: d, interval: 1m, max_catch_up: 1.5", "`1.5` under `max_catch_up`", None),
        ("heartbeat: d, interval: 1m, by: origin", "unknown key `by`", None),
        ("metronome: 0s", "`metronome: 0s`", None),
        ("metronome: -1", "`metronome: -1`", None),
        ("metronome: d", "`metronome: d` in stream `x`", None),
        ("metronome: [b]", "a list of 1 under `metronome`", None),
        ("metronome: 10 sec", "`metronome: 10 sec` in stream `x`", "10s"),
        ("metronome: 10s, slack: 1s", "unknown key `slack`", None),
        ("metronome: 10s, interval: 1s", "unknown key `interval`", None),
        ("metronom: 10s", "unknown key `metronom`", "metronome"),
        ("metronome: 10s, heartbeat: d", "both `metronome` and `heartbeat`", None),
        ("merge: b", "no `ports_by` in stream `x`", None),
        ("merge: [b]", "a list of one stream", None),
        ("merge: [b, d], ports_by: {origin: [A]}", "`ports_by` beside a list of streams", None),
        ("merge: b, ports_by: {origin: [A, A]}", "`A` twice", None),
        ("merge: b, ports_by: {origin: []}", "a list of 0 under `origin`", None),
        ("merge: b, ports_by: {origin: A}", "`A` under `origin`", None),
        ("merge: b, ports_by: {origin: [1.5]}", "`1.5` under `origin`", None),
        ("merge: b, ports_by: {origin: [A], dest: [B]}", "2 columns under `ports_by`", None),
        ("merge: b, ports_by: {orign: [A]}", "which the timers of `b` leave empty", "origin"),
        ("merge: d, ports_by: {kind: [A]}", "`kind`, a column that every stream has,", None),
        ("merge: b, ports_by: {origin: [A]}, by: orign", "`by: orign`", "origin"),
        ("merge: b, ports_by: {origin: [A]}, flush_at_end: yes", "`flush_at_end: yes`", None),
        ("merge: b, ports_by: {origin: [A]}, max_held: 0", "`max_held: 0`", None),
        ("advance_time: d, late: drop", "no `every` in stream `x`", None),
        ("advance_time: d, every: {}, late: drop", "an empty `every`", None),
        ("advance_time: d, every: 50, late: drop", "`50` under `every`", None),
        ("advance_time: d, every: {event: 50}, late: drop", "unknown key `event` in `every` of stream `x`", "events"),
        ("advance_time: d, every: {events: 0}, late: drop", "`events: 0`", None),
        ("advance_time: d, every: {duration: 0s}, late: drop", "`duration: 0s`", None),
        ("advance_time: d, every: {events: 50}", "no `late` in stream `x`", None),
        ("advance_time: d, every: {events: 50}, late: divrt", "`late: divrt`", "divert"),
        ("advance_time: d, every: {events: 50}, late: drop, by: carrier", "`by: carrier`", None),
        ("advance_time: d, every: {events: 50}, late: drop, at_end: infinite", "`at_end: infinite`", "infinity"),
        ("advance_time: d, every: {events: 50}, late: drop, slack: 1s", "unknown key `slack`", None),
    ],
)
def test_a_wrong_stream_is_refused(read: Read, stream: str, told: str, near: str | None) -> None:
    with pytest.raises(FlowError) as refused:
        read(streams=f"  b: {{heartbeat: d, interval: 1m}}\n  x: {{{stream}}}\n")
    assert told in str(refused.value)
    assert (refused.value.line, refused.value.nearest) == (6, near)


@pytest.mark.parametrize(
    ("stream", "told"),
    [
        ("heartbeat: t, interval: 1m", "a heartbeat of `t`, which has timers and no rows of data,"),
        ("merge: t, ports_by: {origin: [A]}", "`origin`, which the timers of `t` leave empty,"),
        ("merge: [d, t], by: origin", "`by: origin` in stream `x`, expected columns of the key of `t`"),
        ("advance_time: t, every: {duration: 1m}, late: drop, by: key", "`by` over `t`, which has no key"),
    ],
)
def test_what_needs_data_or_a_key_is_refused_over_a_metronome(read: Read, stream: str, told: str) -> None:
    with pytest.raises(FlowError, match=re.escape(told)):
        read(streams=f"  t: {{metronome: 1m}}\n  x: {{{stream}}}\n")


def test_by_over_a_stream_without_key_is_refused(read: Read) -> None:
    merged = "  m: {merge: d, ports_by: {origin: [A]}}\n"
    with pytest.raises(FlowError, match="`by` over `m`, which has no key"):
        read(streams=merged + "  x: {advance_time: m, every: {events: 5}, late: drop, by: key}\n")


def test_by_stands_in_the_order_of_the_key(read: Read) -> None:
    with pytest.raises(FlowError, match=r"`by: b, a` .*in its order \(a, b\)"):
        read(sources=TWO, streams="  m: {merge: [e, d], by: [b, a]}\n")


def test_a_merge_of_two_shapes_is_refused(read: Read) -> None:
    edges = f"  g: {{feed: nycflights13.departures, {KEYED}, shape: interval, end: u}}\n"
    with pytest.raises(FlowError, match="`g` of another shape than `d`"):
        read(sources=TWO + edges, streams="  m: {merge: [d, g]}\n")


PROMISED = """\
  c: {advance_time: d, every: {events: 5}, late: drop}
  k: {advance_time: d, every: {events: 5}, late: drop, by: key}
"""


def test_a_measure_of_a_column_that_is_no_word_stands_in_backquotes(read: Read) -> None:
    measures = "{n: 'count(größe)', m: 'max(`Verbrauch (kWh)`)'}"
    flow = read(streams=PROMISED + f"  w: {{window: c, size: 1h, measures: {measures}}}\n")
    policy = flow.streams["w"].policy
    assert isinstance(policy, WindowPolicy)
    assert policy.parsed() == (("n", Measure.COUNT, "größe"), ("m", Measure.MAX, "Verbrauch (kWh)"))


def test_the_operators_that_events_go_through_are_read(read: Read) -> None:
    flow = read(
        streams=PROMISED
        + """\
  f: {filter: c, where: 'dep_delay > 15'}
  p: {project: f, columns: {late: 'dep_delay / 60.0e0'}}
  s: {shift_time: p, shift: -15m}
  a: {alter_duration: s, duration: 1h}
  u: {union: [c, f]}
  j: {join: [c, a], on: [late]}
  w: {window: u, size: 1h, hop: 15m, group: origin, measures: {n: count, worst: max(dep_delay)}}
"""
    )
    assert flow.streams["f"].policy == FilterPolicy(where="dep_delay > 15")
    assert flow.streams["p"].policy == ProjectPolicy(columns=("late=dep_delay / 60.0e0",))
    assert flow.streams["s"].policy == ShiftTimePolicy(shift=-900_000_000)
    assert flow.streams["a"].policy == AlterDurationPolicy(duration=3_600_000_000)
    assert flow.streams["u"].policy == UnionPolicy(shapes=(Shape.POINT, Shape.POINT))
    assert flow.streams["j"].policy == JoinPolicy(shapes=(Shape.POINT, Shape.INTERVAL), on=("late",))
    assert flow.streams["w"].policy == WindowPolicy(
        shape=Shape.POINT,
        size=3_600_000_000,
        hop=900_000_000,
        group=("origin",),
        measures=("n=count", "worst=max(dep_delay)"),
    )
    shapes = [flow.streams[name].shape for name in "fpsaujw"]
    assert shapes == [Shape.POINT] * 3 + [Shape.INTERVAL, Shape.POINT, Shape.INTERVAL, Shape.INTERVAL]
    assert flow_from_json(json.loads(json.dumps(flow_to_json(flow)))) == flow


def test_what_a_stream_imports_is_a_second_input_that_no_row_comes_from(read: Read) -> None:
    stream = "  x: {advance_time: d, import: c, late: adjust}\n"
    flow = read(streams=PROMISED + stream)
    assert (flow.streams["x"].inputs, flow.streams["x"].feeding) == (("d", "c"), ("d",))
    every = read(streams=PROMISED + "  x: {advance_time: d, import: c, late: adjust, by: key}\n")
    assert [stage.streams for stage in plan(every).stages] == [("c",), ("k", "x")]
    keyed = read(streams=PROMISED + "  x: {advance_time: d, import: k, late: adjust, by: key}\n")
    assert keyed.streams["x"].by == ("origin",)


def test_where_one_of_two_scopes_has_no_ctis_it_is_its_order_that_is_named(read: Read) -> None:
    with pytest.raises(FlowError, match="`c` with CTIs for the whole stream, and `d` in an order for origin,"):
        read(streams=PROMISED + "  x: {interleave: [c, d]}\n")


def test_what_forgets_its_newest_cti_binds_no_key_that_is_heard_later(read: Read) -> None:
    stream = PROMISED + "  m: {heartbeat: c, interval: 1h}\n  x: {advance_time: d, import: m, late: drop"
    with pytest.raises(FlowError) as refused:
        read(streams=stream + ", by: key}\n")
    assert "`m`, a heartbeat, which does not remember its newest CTI for keys that are heard later," in str(
        refused.value
    )
    assert read(streams=stream + "}\n").streams["x"].inputs == ("d", "m")


@pytest.mark.parametrize(
    ("merge", "ctis"),
    [
        ("merge: [d, d2]", "PASS"),
        ("merge: [c, c2]", "OLDEST"),
        ("merge: k, ports_by: {origin: [JFK]}", "OLDEST"),
        ("merge: [k, k2], by: origin", "OLDEST"),
        ("merge: [k, k2]", "OF_PARTS"),
        ("merge: [c, d]", "OF_SOME"),
    ],
)
def test_a_merge_promises_what_its_ports_do_where_a_cti_binds_all_of_a_port(read: Read, merge: str, ctis: str) -> None:
    others = "".join(f"  {name}2: {{filter: {name}, where: 'true'}}\n" for name in "dck")
    flow = read(streams=PROMISED + others + f"  m: {{{merge}}}\n")
    assert flow.streams["m"].policy.ctis.name == ctis  # type: ignore[attr-defined]
    assert flow.promises("m") == (ctis == "OLDEST")
    told = flow_to_json(flow)["streams"][-1]["policy"]
    assert told.get("ctis") == (None if ctis == "PASS" else ctis.lower()), "plans of other merges stay what they were"


@pytest.mark.parametrize(
    ("merge", "told"),
    [
        (
            "merge: [k, k2]",
            "`m`, a merge of CTIs that each bind one origin alone, in stream `x`, expected `by: origin`",
        ),
        ("merge: [c, d]", "`m`, a merge with the port `d`, which has no CTIs,"),
    ],
)
@pytest.mark.parametrize(
    "reader", ["window: m, size: 1h, measures: {n: count}", "advance_time: d, import: m, late: drop"]
)
def test_a_merge_that_promises_nothing_is_no_clock(read: Read, merge: str, told: str, reader: str) -> None:
    others = f"  k2: {{filter: k, where: 'true'}}\n  m: {{{merge}}}\n  x: {{{reader}}}\n"
    with pytest.raises(FlowError) as refused:
        read(streams=PROMISED + others)
    assert told in str(refused.value)


def test_the_ctis_of_a_merge_bind_keys_that_are_heard_later(read: Read) -> None:
    merged = "  m: {merge: k, ports_by: {origin: [JFK]}}\n"
    assert read(streams=PROMISED + merged + "  x: {advance_time: d, import: m, late: drop, by: key}\n").streams["x"].by


@pytest.mark.parametrize(
    ("stream", "told"),
    [
        ("advance_time: d, import: k, late: drop", "`k`, whose CTIs each bind one origin alone,"),
        ("advance_time: d, import: c", "no `late`"),
        ("union: [c, k]", "`c` with CTIs for the whole stream, and `k` with CTIs for origin,"),
        ("union: [c]", "1 input of `union`"),
        ("join: [c, f, g]", "3 inputs of `join`"),
        ("window: c, size: 0s, measures: {n: count}", "`size: 0s`"),
        ("window: c, size: 1h, measures: {}", "measures 'none'"),
        ("window: c, size: 1h, measures: {n: average(dep_delay)}", "`n: average(dep_delay)`"),
        ("window: c, size: 1h, measures: {n: sum}", "`n: sum`"),
        (
            "window: c, size: 1h, measures: {n: {count: rows}}",
            "a mapping under `n` in `measures` of stream `x`, expected `c",
        ),
        ("window: c, size: 1h, measures: {place: count}", "`place`, a column that every stream has,"),
    ],
)
def test_what_promises_do_not_fit_is_refused(read: Read, stream: str, told: str) -> None:
    more = "  f: {filter: c, where: 'true'}\n  g: {filter: c, where: 'true'}\n"
    with pytest.raises(FlowError, match=re.escape(told)):
        read(streams=PROMISED + more + f"  x: {{{stream}}}\n")


@pytest.mark.parametrize(
    ("streams", "named"),
    [
        ("  x: {advance_time: k, late: drop}\n", ["stream `x`, of one timeline, reads `k`, whose"]),
        ("  f: {filter: k, where: 'true'}\n  x: {advance_time: f, every: {events: 9}, late: drop}\n", ["reads `f`"]),
        ("  f: {window: k, size: 1h, measures: {n: count}}\n  x: {advance_time: f, late: drop}\n", ["reads `f`"]),
        ("  x: {advance_time: k, by: key, late: drop}\n", []),
        ("  x: {advance_time: c, late: drop}\n", []),
    ],
    ids=["CTIs that come", "beside its own", "of a window", "by key", "of the whole"],
)
def test_a_timeline_of_all_keys_behind_one_for_each_is_warned_of(read: Read, streams: str, named: list[str]) -> None:
    found = [warning for warning in read(streams=PROMISED + streams).warnings if "each bind one origin" in warning]
    assert len(found) == len(named)
    assert all(each in warning for each, warning in zip(named, found, strict=True))


def test_a_stream_replaces_all_that_its_source_says_of_its_ctis(read: Read) -> None:
    said = "advance_time: {every: {events: 7}, delay: 1h, late: adjust}"
    sources = f"  d: {{feed: nycflights13.departures, key: origin, time: t, arrival: r, {said}}}\n"
    flow = read(
        sources=sources, streams="  c: {advance_time: d}\n  e: {advance_time: d, every: {events: 3}, late: drop}\n"
    )
    assert flow.streams["c"].policy == AdvanceTimePolicy(
        shape=Shape.POINT, late=Late.ADJUST, events=7, delay=3_600_000_000, max_ahead=DAY
    )
    assert flow.streams["e"].policy == AdvanceTimePolicy(shape=Shape.POINT, late=Late.DROP, events=3, max_ahead=DAY)
    with pytest.raises(FlowError, match="no `late` in `advance_time` of source `d`"):
        read(sources=sources.replace(", late: adjust", ""), streams="  c: {advance_time: d}\n")


def test_ctis_may_come_with_the_rows_of_a_source_alone(read: Read) -> None:
    sources = f"  d: {{feed: nycflights13.departures, {KEYED}, edge: kind_of_row}}\n"
    flow = read(
        sources=sources,
        streams="  c: {advance_time: d, late: drop}\n  w: {window: d, size: 1h, measures: {n: count}}\n",
    )
    assert flow.streams["c"].policy == AdvanceTimePolicy(shape=Shape.POINT, late=Late.DROP, max_ahead=DAY)


BLANK = """\
flow: shop
modules:
  m: {inputs: [r], streams: {a: {project: r, columns: {Shop Id: SAID, amount: amount}}}, outputs: {a: a}}
sources:
  orders:
    feed: {csv: o.csv, timezone: UTC, types: {at: timestamp, amount: int64, Shop Id: string}}
    key: Shop Id
    time: at
    arrival: at
streams:
  keyed: {module: m, inputs: {r: orders}}
  turned: {module: m, inputs: {r: orders}, instances: 2, dispatch: {r: in_turn}}
  seen: {advance_time: orders, every: {events: 1}, late: drop}
"""


@pytest.mark.parametrize("said", ["Shop Id", "'`Shop Id`'"])
def test_a_key_with_a_blank_is_named_as_itself_where_it_stays_and_where_it_would_not(tmp_path: Path, said: str) -> None:
    (tmp_path / "f.yaml").write_text(BLANK.replace("SAID", said))
    flow = read_flow(tmp_path / "f.yaml")
    assert dict(flow.streams["keyed.a"].policy.parsed()).keys() == {"amount"}  # type: ignore[attr-defined]
    assert dict(flow.streams["turned.0.a"].policy.parsed()).keys() == {"Shop Id", "amount"}  # type: ignore[attr-defined]


def test_a_column_that_is_called_as_an_expression_is_that_expression(tmp_path: Path) -> None:
    text = (
        BLANK.replace("SAID", "Shop Id") + "  p: {project: orders, columns: {amount + 1: amount + 1, part.x: part.x}}\n"
    )
    (tmp_path / "f.yaml").write_text(text.replace("csv: o.csv", "json: o.jsonl"))
    made = dict(read_flow(tmp_path / "f.yaml").streams["p"].policy.parsed())  # type: ignore[attr-defined]
    assert made == {"amount + 1": "amount + 1", "part.x": "part.x"}


def test_a_measure_of_a_column_with_a_blank_is_told_to_take_backquotes(tmp_path: Path) -> None:
    window = "  w: {window: seen, size: 1h, measures: {n: count(Shop Id)}}\n"
    (tmp_path / "f.yaml").write_text(BLANK.replace("SAID", "Shop Id") + window)
    with pytest.raises(FlowError, match=r"expected backquotes around a name with a blank, count\(`Shop Id`\)"):
        read_flow(tmp_path / "f.yaml")
