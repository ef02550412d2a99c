"""What a flow file says of when its stream drains."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipelines.flows.definition import fingerprint_of, flow_from_json, flow_to_json
from pipelines.flows.errors import FlowError
from pipelines.operators.replay import ReplayPolicy, Trigger

if TYPE_CHECKING:
    from tests.flows.conftest import Read

EDGED = "  d: {feed: {parquet: a.parquet}, key: k, time: t, arrival: a, edge: what}\n"
BEAT = "  b: {heartbeat: d, interval: 1m}\n"


def test_a_flow_that_says_nothing_drains_with_every_epoch(read: Read) -> None:
    assert read().region is None


def test_it_drains_at_punctuations_or_by_period(read: Read) -> None:
    marked = read(sources=EDGED, streams=BEAT, top="region: {drain: punctuation}\n")
    timed = read(top="region: {drain: 90s}\n")
    assert marked.region == ReplayPolicy(trigger=Trigger.OPERATOR)
    ended = read(top="region: {drain: final}\n")
    assert timed.region == ReplayPolicy(trigger=Trigger.PERIODIC, period=90_000_000)
    assert ended.region == ReplayPolicy(trigger=Trigger.FINAL)
    for flow in (marked, timed, ended):
        assert flow_from_json(flow_to_json(flow)).region == flow.region


def test_definitions_from_before_there_were_regions_are_read(read: Read) -> None:
    older = {name: part for name, part in flow_to_json(read()).items() if name != "region"}
    assert flow_from_json(older) == read()


def test_it_is_no_part_of_what_a_flow_means(read: Read) -> None:
    assert fingerprint_of(read(top="region: {drain: 90s}\n")) == fingerprint_of(read())


@pytest.mark.parametrize(
    ("top", "told"),
    [
        ("region: {drain: punctuation}\n", "expected `edge: <column>` in a source, or a duration"),
        ("region: {drain: 1ms}\n", "expected `punctuation`, `final`, or a duration of at least 100ms"),
        ("region: {drain: never}\n", "`drain: never`"),
        ("region: {every: 1m}\n", "unknown key `every`"),
        ("region: {}\n", "no `drain` in `region`"),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(read: Read, top: str, told: str) -> None:
    with pytest.raises(FlowError) as error:
        read(top=top)
    assert told in str(error.value)
