"""How many rows an interval has, as a source says it: read, refused, kept with the flow, and no part of its meaning."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pipelines.flows.changes import StreamFate, changes
from pipelines.flows.check import with_checks
from pipelines.flows.definition import fingerprint_of, flow_from_json, flow_to_json
from pipelines.flows.errors import FlowError
from pipelines.flows.volumes import VolumeBand

if TYPE_CHECKING:
    from pipelines.flows.model import Flow
    from tests.flows.conftest import Read


def source(volume: str = "") -> str:
    """Give a source that says how many rows an interval has."""
    said = f"    volume: {volume}\n" if volume else ""
    return f"  d:\n    feed: nycflights13.departures\n    key: k\n    time: t\n    arrival: a\n{said}"


def flow_of(read: Read, volume: str = "") -> Flow:
    """Read a flow with one."""
    return read(sources=source(volume), streams="  b: {heartbeat: d, interval: 1m}\n")


@pytest.mark.parametrize(
    ("said", "band"),
    [
        ("{at_least: 100, at_most: 5000}", VolumeBand(at_least=100, at_most=5_000)),
        ("{at_least: 0}", VolumeBand(at_least=0)),
        ("{at_most: 5_000}", VolumeBand(at_most=5_000)),
    ],
)
def test_a_source_says_how_many_rows_an_interval_has(read: Read, said: str, band: VolumeBand) -> None:
    flow = flow_of(read, said)
    assert flow.sources["d"].volume == band
    assert flow_from_json(flow_to_json(flow)).sources["d"].volume == band


def test_it_is_no_part_of_what_the_flow_means(read: Read) -> None:
    silent, flow = flow_of(read), flow_of(read, "{at_least: 1}")
    assert silent.sources["d"].volume is None
    assert "volume" not in flow_to_json(silent)["sources"][0]
    assert fingerprint_of(silent) == fingerprint_of(flow)
    assert {each.fate for each in changes(silent, flow)} == {StreamFate.KEPT}


def test_what_the_file_says_now_counts_of_what_was_made_before(read: Read) -> None:
    silent, flow = flow_of(read), flow_of(read, "{at_least: 1}")
    assert with_checks(silent, flow).sources["d"].volume == VolumeBand(at_least=1)
    assert with_checks(flow, silent).sources["d"].volume is None
    other = replace(silent, sources={})
    assert with_checks(flow, other).sources["d"].volume == VolumeBand(at_least=1), (
        "the file has no such source any more"
    )


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("100", "`100` under `volume` in source `d`, expected `at_least`, `at_most` or both"),
        ("{}", "an empty `volume` in source `d`"),
        ("{at_leats: 100}", "unknown key `at_leats` in `volume` of source `d`"),
        ("{at_least: many}", "`many` under `at_least` in `volume` of source `d`"),
        ("{at_least: -1}", "`at_least: -1` in `volume` of source `d`, expected a number of rows, 0 or more"),
        ("{at_most: 0}", "`at_most: 0` in `volume` of source `d`, expected a number of rows, 1 or more"),
        ("{at_least: 7, at_most: 6}", "`at_least: 7`, above `at_most: 6`, in `volume` of source `d`"),
    ],
)
def test_what_is_no_band_is_refused_with_its_line(read: Read, said: str, told: str) -> None:
    with pytest.raises(FlowError) as refused:
        flow_of(read, said)
    assert told in str(refused.value), str(refused.value)
    assert refused.value.line > 0
    if "leats" in said:
        assert refused.value.nearest == "at_least"
