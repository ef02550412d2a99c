"""A flow that imports, joins and counts in windows, killed anywhere: the bytes of an undisturbed run, nothing twice."""

from __future__ import annotations

import pytest

from pipelines.engine.commits.readers import log_state
from tests.laws import test_kills, test_stream_kills
from tests.laws.killed_stream import READINGS
from tests.laws.streamed import streamed
from tests.laws.test_kills import LEFT_AT, assert_nothing_twice, pending
from tests.laws.trials import BEGIN, SPANS, WHOLE, Trial, parcels, trial

FLOW = """\
flow: related
every: 1h
buckets: 2
sources:
  parcels: {feed: {parquet: parcels.parquet}, key: depot, time: sent, arrival: seen}
  vans: {feed: {parquet: vans.parquet}, key: depot, time: sent, arrival: seen}
streams:
  whole: {advance_time: vans, every: {events: 7}, delay: 12m, late: drop}
  bound: {advance_time: parcels, by: key, import: whole, late: drop}
  punctual: {advance_time: vans, by: key, every: {events: 3}, delay: 9m, late: divert}
  lasting: {alter_duration: punctual, duration: 4m}
  driven: {project: lasting, columns: {van: number}}
  loaded: {join: [bound, driven]}
  counted: {window: loaded, size: 20m, hop: 10m, measures: {n: count, total: sum(number), mean: mean(weight)}}
"""
PUBLISHED = ("published", "looked", "settling", "settled")
IN_BACKFILL = {"landing": 1, "intent": 1, "tasks": 3, "listed": 1, "written": 1, **dict.fromkeys(PUBLISHED, 1)}
"""Where to die, and how often to come past it before: each in the second hour."""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """Give the flow, with the run `whole`: one interval on core."""
    feeds = {"parcels": parcels(), "vans": parcels(seed=2)}
    made = trial(tmp_path_factory.mktemp("related"), FLOW, feeds)
    made.ran("whole", WHOLE)
    return made


def assert_same(here: Trial, run: str) -> None:
    """See that a run holds what the undisturbed one holds."""
    assert here.hashes(run, WHOLE) == here.hashes("whole", WHOLE)
    assert_nothing_twice(here.root(run))


def test_each_operator_lets_something_leave(here: Trial) -> None:
    for name in ("bound", "loaded", "counted"):
        kinds = here.table("whole", name)["kind"].to_pylist()
        assert min(kinds.count("data"), kinds.count("cti")) > 10, name


@pytest.mark.parametrize(
    "point", [pytest.param(point, marks=() if point == "settling" else pytest.mark.exhaustive) for point in IN_BACKFILL]
)
def test_a_backfill_killed_and_run_again(here: Trial, point: str) -> None:
    run = f"backfill {point}"
    test_kills.killed(here, run, point, IN_BACKFILL[point])
    assert pending(here, run) is LEFT_AT.get(point)
    assert len(log_state(here.root(run)).published) == (2 if point in PUBLISHED else 1)
    here.ran(run, SPANS)
    assert_same(here, run)


@pytest.mark.parametrize(
    "point",
    [
        pytest.param(point, marks=() if point == "unpublished" else pytest.mark.exhaustive)
        for point in test_stream_kills.POINTS
    ],
)
def test_a_stream_killed_and_started_again(here: Trial, point: str) -> None:
    run = f"stream {point}"
    skip, left = test_stream_kills.POINTS[point]
    test_stream_kills.killed(here, run, point, skip)
    assert pending(here, run) is left
    streamed(here, run, BEGIN, READINGS, most=3)
    assert_same(here, run)


@pytest.mark.exhaustive
def test_a_stream_killed_again_and_again(here: Trial) -> None:
    for point in ("intent", "tasks", "unpublished", "settling", "done"):
        test_stream_kills.killed(here, "often", point, 0)
        assert (log_state(here.root("often")).pending is None) is (point in {"settling", "done"})
    streamed(here, "often", BEGIN, READINGS)
    assert_same(here, "often")
