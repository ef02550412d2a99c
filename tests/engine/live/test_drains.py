"""Which sequences the next epoch of a region takes: a list of manifests, and a policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.engine.columnar.content import content_hash
from pipelines.engine.landing.arrived import Arrived
from pipelines.engine.landing.stamp import LANDED_LEDGER, landed_row_schema
from pipelines.engine.landing.write import write_sequence
from pipelines.engine.live.drains import Drains, Replayed, from_options, to_options
from pipelines.flows.reading import read_flow
from pipelines.operators.replay import ReplayPolicy, Trigger

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.flows.model import Flow

import pyarrow as pa

OPERATOR = ReplayPolicy(trigger=Trigger.OPERATOR)
FLOW = """\
flow: pumps
sources:
  readings: {feed: {parquet: readings.parquet}, key: pump, time: at, arrival: at, edge: what, buffers: 3}
streams:
  beating: {heartbeat: readings, interval: 10s}
"""


def every(period: int) -> ReplayPolicy:
    return ReplayPolicy(trigger=Trigger.PERIODIC, period=period)


@pytest.fixture(scope="module")
def flow(tmp_path_factory: pytest.TempPathFactory) -> Flow:
    """Give a flow with one source."""
    file = tmp_path_factory.mktemp("flow") / "pumps.yaml"
    file.write_text(FLOW)
    return read_flow(file)


def landed(landing: Path, flow: Flow, marks: str) -> Path:
    """Close a sequence a tick: `p` has a punctuation, `f` is the final one, any other has nothing."""
    nothing = landed_row_schema(pa.schema([])).empty_table()
    for number, mark in enumerate(marks, start=1):
        came = Arrived(
            pa.schema([]),
            nothing,
            LANDED_LEDGER.empty_table(),
            content_hash(nothing),
            "",
            "",
            punctuations=int(mark == "p"),
        )
        write_sequence(
            landing,
            number,
            flow,
            {"readings": came},
            kind="reading",
            start=number - 1,
            end=number,
            version=1,
            final=number - 1 if mark == "f" else None,
        )
    return landing


def drained(landing: Path, policy: ReplayPolicy, closed: int, replayed: int = 0) -> list[int]:
    """Give the last sequence of each epoch, as long as the region drains."""
    planner, after, found = Drains(policy, landing, Replayed(replayed)), 0, []
    while (upto := planner.next(after, closed)) > after:
        found.append(upto)
        after = upto
    return found


def test_each_punctuation_drains_and_what_comes_behind_the_last_waits(tmp_path: Path, flow: Flow) -> None:
    assert drained(landed(tmp_path, flow, "..p.pp.."), OPERATOR, 8) == [3, 5, 6]


def test_the_final_punctuation_drains_under_every_policy(tmp_path: Path, flow: Flow) -> None:
    landed(tmp_path, flow, "...f")
    assert drained(tmp_path, OPERATOR, 4) == [4]
    assert drained(tmp_path, every(100), 4) == [4]


def test_a_replayed_punctuation_does_not_drain_again(tmp_path: Path, flow: Flow) -> None:
    landed(tmp_path, flow, "p.p..p.")
    assert drained(tmp_path, OPERATOR, 7, replayed=4) == [6]
    assert drained(tmp_path, OPERATOR, 7, replayed=6) == []


def test_a_replayed_final_punctuation_does_for_nothing_comes_behind_it(tmp_path: Path, flow: Flow) -> None:
    landed(tmp_path, flow, "p.f")
    assert drained(tmp_path, OPERATOR, 3, replayed=3) == [3]


def test_a_period_counts_from_the_last_drain_or_reset(tmp_path: Path, flow: Flow) -> None:
    landed(tmp_path, flow, "." * 10)
    assert drained(tmp_path, every(3), 10) == [3, 6, 9]
    assert drained(tmp_path, every(3), 10, replayed=4) == [7, 10]


def test_it_looks_again_when_more_has_closed(tmp_path: Path, flow: Flow) -> None:
    planner = Drains(OPERATOR, landed(tmp_path, flow, "...p"), Replayed())
    assert [planner.next(0, closed) for closed in (0, 2, 3, 4)] == [0, 0, 0, 4]
    assert planner.next(4, 4) == 4


@given(
    marks=st.text("..p", max_size=12),
    period=st.none() | st.integers(1, 5),
    looks=st.lists(st.integers(0, 12), max_size=6),
)
def test_when_somebody_looks_does_not_matter(
    tmp_path_factory: pytest.TempPathFactory, flow: Flow, marks: str, period: int | None, looks: list[int]
) -> None:
    landing = landed(tmp_path_factory.mktemp("looks"), flow, marks)
    policy = OPERATOR if period is None else every(period)
    planner, after, found = Drains(policy, landing, Replayed()), 0, []
    for closed in [*sorted(min(look, len(marks)) for look in looks), len(marks)]:
        while (upto := planner.next(after, closed)) > after:
            found.append(upto)
            after = upto
    assert found == drained(landing, policy, len(marks))


@pytest.mark.parametrize("policy", [OPERATOR, every(7), ReplayPolicy(trigger=Trigger.PERIODIC), None])
def test_options_of_a_source_say_the_same(tmp_path: Path, flow: Flow, policy: ReplayPolicy | None) -> None:
    landed(tmp_path, flow, ".p.....p..")
    planner = from_options(to_options(policy, Replayed(2)), tmp_path)
    assert (planner is None) == (policy is None)
    if planner is not None and policy is not None:
        assert planner.next(0, 10) == Drains(policy, tmp_path, Replayed(2)).next(0, 10)
