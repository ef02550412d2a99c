"""A metronome in a flow: beside heartbeats and merged with them, the same however it is cut, bucketed and run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipelines.engine.columnar.columns import longs, ticks
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.readers import log_state, read_carry
from pipelines.flows.plan import plan
from pipelines.jobs.facts.status import status_of
from pipelines.jobs.runs.known import open_run
from pipelines.jobs.runs.readings import land_readings, runner_of
from pipelines.jobs.text.drawing import drawn
from tests.laws.streamed import Restart, streamed
from tests.laws.trials import BEGIN, HOUR, MINUTE, PARCELS, SPANS, WHOLE, parcels, trial

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import LentSpark
    from tests.jobs.conftest import House
    from tests.laws.trials import Trial

PACED = """\
  ticks: {metronome: 7m, about: The clock on the wall.}
  slow: {metronome: 50m}
  all: {merge: [ticks, beating, slow], max_held: 100000}
  promised: {advance_time: all, every: {duration: 10m}, late: drop}
"""
ALONE = """\
flow: clock
sources:
  parcels: {feed: {parquet: parcels.parquet}, key: depot, time: sent, arrival: seen}
streams:
  ticks: {metronome: 7m}
"""
MULTIPLES = [m for m in range(BEGIN // (7 * MINUTE) * 7 * MINUTE, WHOLE[0][1], 7 * MINUTE) if m >= BEGIN]


@pytest.fixture
def here(tmp_path: Path) -> Trial:
    return trial(tmp_path, PARCELS + PACED, {"parcels": parcels()})


def test_a_timer_leaves_at_each_multiple_of_the_span_and_nothing_else(here: Trial) -> None:
    here.run("whole", WHOLE)
    rows = here.table("whole", "ticks")
    for column in ("event_time", "arrival", "due_at"):
        assert ticks(rows[column]).tolist() == MULTIPLES
    assert set(longs(rows["place"]).tolist()) == {1}
    assert set(rows["kind"].to_pylist()) == {"timer"}


@pytest.mark.parametrize("buckets", [1, 16])
def test_intervals_and_buckets_do_not_matter(here: Trial, buckets: int) -> None:
    assert here.run("days", SPANS, buckets=buckets) == here.run("whole", WHOLE)


@pytest.mark.parametrize(
    ("flow", "restart"),
    [
        (PARCELS + PACED, Restart.NEVER),
        (ALONE, Restart.EVERY_EPOCH),
        pytest.param(PARCELS + PACED, Restart.EVERY_EPOCH, marks=pytest.mark.exhaustive),
        pytest.param(ALONE, Restart.NEVER, marks=pytest.mark.exhaustive),
    ],
)
def test_readings_and_epochs_do_not_matter(tmp_path: Path, restart: Restart, flow: str) -> None:
    here, step = trial(tmp_path, flow, {"parcels": parcels()}), 28 * MINUTE
    final = WHOLE[0][1] - 1
    readings = [*range(MULTIPLES[0], WHOLE[0][1], step), MULTIPLES[9] + 1, WHOLE[0][1]]
    streamed(here, "live", BEGIN, sorted(readings), final=final, restart=restart)
    assert here.hashes("live", WHOLE) == here.run("whole", WHOLE, final=final)


def test_spark_gives_the_same_as_a_batch_and_as_a_stream(here: Trial, spark: LentSpark) -> None:
    wanted = here.run("whole", WHOLE)
    assert here.run("batch", SPANS, spark) == wanted
    streamed(here, "live", BEGIN, [end for _, end in SPANS], engine=spark)
    assert here.hashes("live", WHOLE) == wanted


def test_a_merge_lets_the_timers_of_a_metronome_through_as_a_port(here: Trial) -> None:
    here.run("whole", WHOLE)
    merged = here.table("whole", "all")
    ports = merged["port"].to_pylist()
    sent = [time for port, time in zip(ports, ticks(merged["event_time"]).tolist(), strict=True) if port == "ticks"]
    slowest = (WHOLE[0][1] - 1) // (50 * MINUTE) * 50 * MINUTE
    assert sent == [multiple for multiple in MULTIPLES if multiple <= slowest]
    assert {"ticks", "beating", "slow"} == set(ports)


def test_a_flow_may_have_a_metronome_and_nothing_else(tmp_path: Path) -> None:
    alone = trial(tmp_path, ALONE, {"parcels": parcels()})
    alone.run("whole", WHOLE)
    assert ticks(alone.table("whole", "ticks")["event_time"]).tolist() == MULTIPLES
    (warning,) = alone.flow.warnings
    assert "no stream reads it" in warning


def test_an_epoch_in_which_no_multiple_falls_is_idle(tmp_path: Path) -> None:
    alone = trial(tmp_path, ALONE, {"parcels": parcels().slice(0, 0)})
    readings = [MULTIPLES[3] + second for second in (1, 2, 3, 4, 7 * MINUTE, 7 * MINUTE + 1)]
    streamed(alone, "live", MULTIPLES[3] - 5, readings)
    assert [entry.idle for entry in log_state(alone.root("live")).published] == [False, True, True, True, True, False]
    assert ticks(alone.table("live", "ticks")["event_time"]).tolist() == MULTIPLES[3:5]


def test_how_late_the_timers_of_a_metronome_are_stands_in_the_commit(tmp_path: Path) -> None:
    alone = trial(tmp_path, ALONE, {"parcels": parcels().slice(0, 0)})
    wanted = alone.wanted("live")
    now = MULTIPLES[4] + 90_000_000
    with open_driver(wanted.root, flow=wanted.flow.name) as driver:
        last = land_readings(wanted, MULTIPLES[3], [MULTIPLES[4] + 1]).last_id
        runner = runner_of(wanted, driver)
        runner.now = lambda: (now, 1.0)
        entry = runner.advance(0, last)
    assert entry is not None
    late = {"timers": 2, "p50_ms": 300_000.0, "p99_ms": 505_800.0, "max_ms": 510_000.0}
    # By step, how many: 40 steps make a factor of ten.
    assert entry.detail["lateness"] == {**late, "spread": {"199": 1, "229": 1}}


def test_the_carry_is_the_next_multiple(here: Trial) -> None:
    here.run("whole", WHOLE)
    state = read_carry(here.root("whole"), "ticks", "state", 1, key=())
    assert ticks(state["due"]).tolist() == [MULTIPLES[-1] + 7 * MINUTE]


def test_a_metronome_stands_in_the_stage_of_the_merge_that_reads_it(here: Trial, tmp_path: Path) -> None:
    assert [stage.streams for stage in plan(here.flow).stages] == [
        ("beating",),
        ("ordered", "punctual", "ticks", "slow", "all", "promised"),
    ]
    alone = trial(tmp_path / "alone", ALONE, {"parcels": parcels().slice(0, 0)})
    (stage,) = plan(alone.flow).stages
    assert (stage.key, stage.reads) == ((), ())
    text = "\n".join(drawn(alone.flow))
    assert "stage 0: one task that reads the clock alone" in text
    assert "a timer at each multiple of 7 m of the clock" in text


def test_status_knows_a_flow_with_a_metronome(house: House) -> None:
    file = house.config / "flows" / "tiny.yaml"
    file.write_text(file.read_text() + "  ticks: {metronome: 7m}\n")
    house.backfill("2013-01-01", "2013-01-02")
    facts = status_of(open_run("tiny", "main"), 0)
    assert facts["streams"]["ticks"]["kinds"] == {"timer": 24 * HOUR // (7 * MINUTE) + 1}
