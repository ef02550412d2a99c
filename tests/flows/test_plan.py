from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipelines.flows.plan import Stage, cut, parts_of, plan
from pipelines.flows.reading import read_flow

if TYPE_CHECKING:
    from tests.flows.conftest import Read

SOURCES = "".join(
    f"  {name}: {{feed: nycflights13.departures, key: [a, b], time: t, arrival: r}}\n" for name in ("d", "e")
)


def test_the_flights_are_one_stage_by_airport_and_one_for_all() -> None:
    assert plan(read_flow(Path("config/flows/flights.yaml"))).stages == (
        Stage(index=0, key=("origin",), streams=("beating",), sides=(), reads=("departures",)),
        Stage(
            index=1,
            key=(),
            streams=("ordered", "punctual", "ambient", "joined", "hourly", "delays"),
            sides=("punctual.diverted",),
            reads=("beating", "weather"),
        ),
    )


def test_a_chain_of_one_key_is_one_stage_with_its_side_stream_and_who_reads_it(read: Read) -> None:
    streams = """\
  c: {advance_time: b, every: {events: 5}, late: divert, by: key}
  b: {heartbeat: d, interval: 1m}
  x: {heartbeat: c.diverted, interval: 1m}
"""
    assert plan(read(streams=streams)).stages == (
        Stage(index=0, key=("origin",), streams=("b", "c", "x"), sides=("c.diverted",), reads=("d",)),
    )


def test_what_does_not_feed_each_other_is_not_one_stage(read: Read) -> None:
    streams = "  x: {heartbeat: d, interval: 1m}\n  y: {heartbeat: e, interval: 1m}\n"
    assert [stage.streams for stage in plan(read(sources=SOURCES, streams=streams)).stages] == [("x",), ("y",)]


def test_two_chains_of_one_key_that_meet_are_one_stage(read: Read) -> None:
    streams = """\
  x: {heartbeat: d, interval: 1m}
  y: {heartbeat: e, interval: 1m}
  m: {merge: [y, x], by: [a, b]}
"""
    assert plan(read(sources=SOURCES, streams=streams)).stages == (
        Stage(index=0, key=("a", "b"), streams=("x", "y", "m"), sides=(), reads=("d", "e")),
    )


def test_stages_stand_behind_what_they_read_whatever_the_order_of_the_file(read: Read) -> None:
    streams = """\
  p: {merge: d, ports_by: {a: [1, 2]}}
  x: {heartbeat: e, interval: 1m}
  g: {merge: x, ports_by: {b: [1, 2]}, by: a}
  q: {merge: [p, g]}
"""
    planned = plan(read(sources=SOURCES, streams=streams))
    assert [(stage.key, stage.streams, stage.reads) for stage in planned.stages] == [
        (("a", "b"), ("x",), ("e",)),
        (("a",), ("g",), ("x",)),
        ((), ("p", "q"), ("d", "g")),
    ]
    assert planned.stage_of("q").index == 2
    assert planned.readers_of("x") == (planned.stages[1],)
    with pytest.raises(KeyError):
        planned.stage_of("d")


def test_stages_that_read_nothing_of_each_other_are_one_wave(read: Read) -> None:
    streams = """\
  x: {heartbeat: d, interval: 1m}
  y: {heartbeat: e, interval: 1m}
  mx: {merge: x, ports_by: {a: [A, B]}}
  m: {merge: [y, x], by: a}
"""
    waves = plan(read(sources=SOURCES, streams=streams)).waves()
    assert [[stage.streams for stage in wave] for wave in waves] == [[("x",), ("y",)], [("m",), ("mx",)]]


def test_a_stage_falls_into_parts_of_which_none_feeds_another(read: Read) -> None:
    streams = """\
  c: {advance_time: d, every: {events: 5}, late: divert, by: key}
  y: {heartbeat: d, interval: 1m}
  x: {heartbeat: c.diverted, interval: 1m}
  z: {heartbeat: d, interval: 2m}
"""
    flow = read(sources=SOURCES, streams=streams)
    (stage,) = plan(flow).stages
    assert sorted(parts_of(flow, stage)) == [("c", "x"), ("y",), ("z",)]
    assert cut(flow, stage, 1) == (stage,)
    two = cut(flow, stage, 2)
    assert [(each.streams, each.sides, each.reads) for each in two] == [
        (("c", "x"), ("c.diverted",), ("d",)),
        (("y", "z"), (), ("d",)),
    ]
    assert sorted(each.streams for each in cut(flow, stage, 9)) == [("c", "x"), ("y",), ("z",)]
    assert {(each.index, each.key) for each in two} == {(stage.index, stage.key)}
