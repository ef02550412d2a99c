"""Stream, backfill and replay give the same rows: epochs over any readings, through restarts, against one interval."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.engine.columnar.columns import ticks
from pipelines.engine.columnar.content import ContentHash, content_hash
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.errors import LeaseHeldError, PlanChangedError, StreamedSpanError
from pipelines.engine.commits.history import CommitKind
from pipelines.engine.commits.readers import log_state
from pipelines.engine.live import epochs
from pipelines.engine.live.checkpoints import checkpoint
from pipelines.engine.live.epochs import SequencesAheadError
from pipelines.jobs.commands.stream import Live, run_live
from pipelines.jobs.environment.errors import JobError
from pipelines.jobs.runs.readings import land_readings, runner_of, stream_readings
from pipelines.operators.heartbeat import HeartbeatPolicy
from pipelines.operators.specs import SPECS
from tests.laws.drawn import CUTS, END, KINDS, ROWS, START, Row, flows
from tests.laws.streamed import Restart, streamed
from tests.laws.test_cuts import ANY, ENDS, examples, placed
from tests.laws.trials import BEGIN, HOUR, MINUTE, PARCELS, SPANS, WHOLE, Trial, parcels, trial

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.engine.commits.history import Entry
    from tests.conftest import LentSpark

EXAMPLES = int(os.environ.get("PULSELINE_EXAMPLES", "5"))
"""Drawn flows in all, the first of which has no rows; the same test with 1,000 is `make parity-flows`."""
READINGS = [BEGIN + minutes * MINUTE for minutes in (7, 20, 21, 59, 60, 61, 100, 140, 179, 180)]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """Give the parcels, with the run `whole`: one interval on core."""
    made = trial(tmp_path_factory.mktemp("streamed"), PARCELS, {"parcels": parcels()})
    made.ran("whole", WHOLE)
    return made


def hold_on_all(drawn: st.SearchStrategy[str], spark: LentSpark, count: int) -> None:
    """Run drawn flows on core, as a stream and on Spark, and compare."""

    @examples(count)
    @given(
        flow=drawn,
        rows=ROWS,
        others=ROWS,
        cuts=CUTS,
        final=ENDS,
        buckets=st.sampled_from([1, 3, 7]),
        restart=st.sampled_from(Restart),
        most=st.integers(1, 3),
    )
    def equal(  # noqa: PLR0913 - everything that must not matter
        flow: str,
        rows: list[Row],
        others: list[Row],
        cuts: list[int],
        final: int | None,
        buckets: int,
        restart: Restart,
        most: int,
    ) -> None:
        with tempfile.TemporaryDirectory() as folder:
            made = placed(folder, flow, rows, others)
            whole = made.run("whole", [(START, END)], buckets=1, final=final)
            readings = sorted({*(at for at in cuts if START < at < END), END})
            streamed(made, "live", START, readings, buckets=buckets, final=final, restart=restart, most=most)
            assert made.hashes("live", [(START, END)]) == whole
            assert made.run("batch", [(START, END)], spark, buckets=buckets, final=final) == whole

    equal()


def test_drawn_flows_give_the_same_on_core_batch_and_stream(spark: LentSpark) -> None:
    hold_on_all(ANY, spark, EXAMPLES)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", KINDS)
def test_flows_of_every_kind_give_the_same_on_core_batch_and_stream(kind: str, spark: LentSpark) -> None:
    hold_on_all(flows(kind), spark, 4)


@pytest.mark.parametrize("restart", Restart)
@pytest.mark.parametrize("most", [1, 4])
def test_epochs_give_what_an_interval_gives(here: Trial, restart: Restart, most: int) -> None:
    run = f"{restart.value} {most}"
    streamed(here, run, BEGIN, READINGS, restart=restart, most=most)
    assert here.hashes(run, WHOLE) == here.hashes("whole", WHOLE)


def test_the_carry_hash_of_an_epoch_is_that_of_the_interval(here: Trial) -> None:
    streamed(here, "carried", BEGIN, READINGS)
    whole, live = (log_state(here.root(run)).tip for run in ("whole", "carried"))
    assert whole is not None
    assert live is not None
    assert live.carry_hash == whole.carry_hash


def test_folding_the_carry_does_not_matter(here: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epochs, "FOLD_EVERY", 2)
    streamed(here, "folded", BEGIN, READINGS, restart=Restart.NEVER)
    state = log_state(here.root("folded"))
    assert [entry.commit for entry in state.published if state.is_folded(entry.commit)]
    assert here.hashes("folded", WHOLE) == here.hashes("whole", WHOLE)


def test_tasks_on_spark_between_tasks_here_do_not_matter(here: Trial, spark: LentSpark) -> None:
    streamed(here, "on spark", BEGIN, READINGS[:4], engine=spark)
    streamed(here, "on spark", BEGIN, READINGS)
    assert here.hashes("on spark", WHOLE) == here.hashes("whole", WHOLE)


def test_a_stream_goes_on_from_a_backfill(here: Trial) -> None:
    here.ran("handed over", SPANS[:1])
    streamed(here, "handed over", SPANS[1][0], [reading for reading in READINGS if reading > SPANS[1][0]])
    kinds = [entry.kind for entry in log_state(here.root("handed over")).published]
    assert kinds[0] is CommitKind.INTERVAL
    assert set(kinds[1:]) == {CommitKind.EPOCH}
    assert here.hashes("handed over", WHOLE) == here.hashes("whole", WHOLE)


def test_an_idle_epoch_writes_one_row_of_the_log_and_touches_no_table(here: Trial) -> None:
    quiet = [BEGIN + HOUR * 3 + tick for tick in range(1, 4)]
    streamed(here, "quiet", BEGIN, [*READINGS, *quiet])
    *_, last = log_state(here.root("quiet")).published
    assert (last.span.end, dict(last.counts)) == (quiet[-1], {})
    assert [row.commit for row in log_state(here.root("quiet")).entries].count(last.commit) == 1
    assert here.hashes("quiet", [(BEGIN, quiet[-1])]) == here.hashes("whole", WHOLE)


def test_spark_plays_a_recorded_feed_live_and_goes_on_after_a_stop(here: Trial, spark: LentSpark) -> None:
    live = Live(
        flow=here.flow,
        root=here.root("live"),
        base=here.base,
        spark=spark,
        start=WHOLE[0][0],
        end=WHOLE[0][1],
        speed=1_800.0,
        trigger=200_000,
        until_caught_up=True,
    )
    run_live(replace(live, lasts=2.0, until_caught_up=False), lambda _: None)
    first = log_state(here.root("live")).next_number
    run_live(live, lambda _: None)
    assert log_state(here.root("live")).next_number > first
    assert here.hashes("live", WHOLE) == here.hashes("whole", WHOLE)


def test_a_recorded_feed_goes_on_behind_an_epoch_that_died_at_intent(
    here: Trial, spark: LentSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = here.wanted("died at intent")

    def die(*_: object) -> ContentHash:
        raise InterruptedError

    with open_driver(wanted.root, flow=wanted.flow.name) as driver:
        last = land_readings(wanted, BEGIN, READINGS[:3]).last_id
        runner = runner_of(wanted, driver)
        with monkeypatch.context() as patch:
            patch.setattr("pipelines.engine.tasks.commit_work.run_stages", die)
            with pytest.raises(InterruptedError):
                runner.advance(0, last)
    span, told = WHOLE[0], list[str]()
    live = Live(flow=here.flow, root=wanted.root, base=here.base, spark=spark, start=span[0], end=span[1])
    run_live(replace(live, available_now=True), told.append)
    assert any("which an earlier run left behind" in line for line in told)
    assert here.hashes("died at intent", WHOLE) == here.hashes("whole", WHOLE)


def test_a_checkpoint_in_which_no_batch_has_ended_is_made_anew(tmp_path: Path) -> None:
    landing, flow = (tmp_path / "checkpoints" / name for name in ("landing", "flow"))
    for folder in (landing / "offsets", landing / "state", flow / "commits"):
        folder.mkdir(parents=True)
    (landing / "offsets" / "0").touch()

    for name in ("offsets/0", "commits/0", "metadata"):
        (flow / name).parent.mkdir(exist_ok=True)
        (flow / name).write_text("{}" if name == "metadata" else "v1\n{}")
    told: list[str] = []

    assert not checkpoint(tmp_path, "landing", 0, told.append).exists()
    assert checkpoint(tmp_path, "flow", 0, told.append).exists()
    assert told == []


def test_a_lost_checkpoint_is_made_anew(here: Trial, spark: LentSpark) -> None:
    wanted = here.wanted("lost", spark)
    stream_readings(wanted, BEGIN, READINGS[:3])
    shutil.rmtree(wanted.root / "checkpoints")
    stream_readings(wanted, BEGIN, READINGS)
    assert here.hashes("lost", WHOLE) == here.hashes("whole", WHOLE)


def test_a_checkpoint_ahead_of_the_tables_is_refused_with_the_sequences_named(here: Trial) -> None:
    wanted = here.wanted("ahead")
    with open_driver(wanted.root, flow=wanted.flow.name) as driver:
        land_readings(wanted, BEGIN, READINGS)
        runner = runner_of(wanted, driver)
        runner.advance(0, 1)
        with pytest.raises(SequencesAheadError, match=r"sequences 4 to 6, so 2 to 3 would be lost"):
            runner.advance(3, 6)


def test_sequences_of_other_buckets_stand_in_an_epoch_of_their_own(here: Trial) -> None:
    wanted = here.wanted("rebucketed", buckets=2)
    for buckets, readings in ((3, READINGS[:4]), (7, READINGS[:7]), (2, READINGS)):
        with open_driver(wanted.root, flow=wanted.flow.name):
            land_readings(here.wanted("rebucketed", buckets=buckets), BEGIN, readings)
    with open_driver(wanted.root, flow=wanted.flow.name) as driver:
        runner_of(wanted, driver).advance(0, len(READINGS))
    sequences = [entry.sequences for entry in log_state(wanted.root).published]
    assert sequences == [(1, 2, 3, 4), (5, 6, 7), (8, 9, 10)]
    assert here.hashes("rebucketed", WHOLE) == here.hashes("whole", WHOLE)


def test_an_epoch_planned_over_what_is_published_keeps_the_rest(here: Trial) -> None:
    wanted = here.wanted("overlapping")
    with open_driver(wanted.root, flow=wanted.flow.name) as driver:
        last = land_readings(wanted, BEGIN, READINGS).last_id
        runner = runner_of(wanted, driver)
        runner.advance(0, 4)
        assert runner.advance(0, 4) is None
        assert runner.advance(2, last) is not None
    assert here.hashes("overlapping", WHOLE) == here.hashes("whole", WHOLE)


def test_a_backfill_and_a_stream_on_one_run_refuse_each_other(here: Trial) -> None:
    wanted = here.wanted("both")
    with open_driver(wanted.root, flow=wanted.flow.name), pytest.raises(LeaseHeldError, match="process"):
        here.ran("both", SPANS[:1])
    streamed(here, "both", BEGIN, READINGS)
    with pytest.raises(StreamedSpanError):
        here.ran("both", SPANS[:1])


def test_an_edited_flow_takes_effect_at_a_commit_boundary(here: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = here.wanted("edited")

    def stop(*_: object) -> ContentHash:
        raise InterruptedError

    with open_driver(wanted.root, flow=wanted.flow.name) as driver:
        last = land_readings(wanted, BEGIN, READINGS).last_id
        runner = runner_of(wanted, driver)
        runner.advance(0, 2)
        with monkeypatch.context() as patch:
            patch.setattr("pipelines.engine.tasks.commit_work.run_stages", stop)
            with pytest.raises(InterruptedError):
                runner.advance(2, last)
    slower = replace(here.flow.streams["beating"], policy=HeartbeatPolicy(interval=MINUTE))
    flow = replace(here.flow, streams={**here.flow.streams, "beating": slower})
    edited = replace(wanted, flow=flow)
    with open_driver(wanted.root, flow=wanted.flow.name) as driver:
        runner_of(edited, driver)
    assert here.hashes("edited", WHOLE) == here.hashes("whole", WHOLE), "finished under its own plan"


def test_a_pending_commit_of_another_code_is_refused(here: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = here.wanted("older code")

    def stop(*_: object) -> ContentHash:
        raise InterruptedError

    with open_driver(wanted.root, flow=wanted.flow.name) as driver:
        land_readings(wanted, BEGIN, READINGS)
        runner = runner_of(wanted, driver)
        monkeypatch.setattr("pipelines.engine.tasks.commit_work.run_stages", stop)
        with pytest.raises(InterruptedError):
            runner.advance(0, 2)
    newer = {**SPECS, "heartbeat": replace(SPECS["heartbeat"], version=99)}
    monkeypatch.setattr("pipelines.flows.definition.SPECS", newer)
    with open_driver(wanted.root, flow=wanted.flow.name) as driver, pytest.raises(PlanChangedError):
        runner_of(wanted, driver)


def test_hashes_can_be_taken_away_again(here: Trial) -> None:
    rows = here.table("whole", "beating")
    first, rest = content_hash(rows.slice(0, 9)), content_hash(rows.slice(9))
    assert content_hash(rows) - rest == first
    assert first - first == ContentHash(0, 0, 0)


@pytest.mark.parametrize("most", [1, 3, 10])
def test_a_blind_span_counts_whatever_epochs_its_sequences_stand_in(here: Trial, most: int) -> None:
    wanted = here.wanted(f"blind {most}")
    deaf = (READINGS[3], READINGS[6])
    blinds = {5: ((READINGS[3], READINGS[4]),), 6: ((READINGS[3], READINGS[5]),), 7: (deaf,), 8: (deaf,)}
    with open_driver(wanted.root, flow=wanted.flow.name) as driver:
        last = land_readings(wanted, BEGIN, READINGS).last_id
        runner = runner_of(wanted, driver)
        runner.blind = lambda sequence: {"parcels": blinds.get(sequence.id, ())}
        while runner.last_sequence() < last:
            runner.advance(runner.last_sequence(), min(runner.last_sequence() + most, last))
    if most == 1:
        assert here.hashes("blind 1", WHOLE) != here.hashes("whole", WHOLE)
        rows = here.table("blind 1", "beating")
        left = pc.and_(pc.equal(rows["kind"], "timer"), pc.not_equal(rows["due_at"], rows["arrival"]))
        assert set(ticks(rows.filter(left)["arrival"]).tolist()) == {deaf[1]}
    else:
        assert here.hashes(f"blind {most}", WHOLE) == here.hashes("blind 1", WHOLE)


def test_a_pending_epoch_is_no_backfills_and_a_pending_interval_no_streams(
    here: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> ContentHash:
        raise InterruptedError

    wanted = here.wanted("left by a stream")
    with open_driver(wanted.root, flow=wanted.flow.name) as driver, monkeypatch.context() as patch:
        land_readings(wanted, BEGIN, READINGS)
        patch.setattr("pipelines.engine.tasks.commit_work.run_stages", stop)
        with pytest.raises(InterruptedError):
            runner_of(wanted, driver).advance(0, 4)
    with pytest.raises(JobError, match="epoch of a stream"):
        here.ran("left by a stream", SPANS[:1])
    with monkeypatch.context() as patch:
        patch.setattr("pipelines.engine.tasks.commit_work.run_stages", stop)
        with pytest.raises(InterruptedError):
            here.ran("left by a backfill", SPANS[:1])
    wanted = here.wanted("left by a backfill")
    refused = pytest.raises(epochs.PendingIntervalError, match="pulseline run")
    with open_driver(wanted.root, flow=wanted.flow.name) as driver, refused:
        runner_of(wanted, driver)


def test_a_pending_commit_of_another_plan_leaves_no_operator_behind(
    here: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> ContentHash:
        raise InterruptedError

    slower = replace(here.flow.streams["beating"], policy=HeartbeatPolicy(interval=MINUTE))
    edited = replace(here.flow, streams={**here.flow.streams, "beating": slower})
    for run, anew in (("kept operators", False), ("fresh operators", True)):
        wanted = here.wanted(run)
        with open_driver(wanted.root, flow=wanted.flow.name) as driver, monkeypatch.context() as patch:
            land_readings(wanted, BEGIN, READINGS)
            patch.setattr("pipelines.engine.tasks.commit_work.run_stages", stop)
            with pytest.raises(InterruptedError):
                runner_of(wanted, driver).advance(0, 4)
        with open_driver(wanted.root, flow=wanted.flow.name) as driver:
            runner = runner_of(replace(wanted, flow=edited), driver)
            if anew:
                runner = runner_of(replace(wanted, flow=edited), driver)
            runner.advance(4, len(READINGS))
    assert here.hashes("kept operators", WHOLE) == here.hashes("fresh operators", WHOLE)
    assert here.hashes("kept operators", WHOLE) != here.hashes("whole", WHOLE)


def test_a_checkpoint_that_plans_other_spans_than_the_pending_commit_keeps_the_rest(
    here: Trial, monkeypatch: pytest.MonkeyPatch, spark: LentSpark
) -> None:
    def stop(*_: object) -> ContentHash:
        raise InterruptedError

    def further(runner: epochs.EpochRunner, after: int, upto: int) -> Entry | None:
        return advance(runner, after, upto + 2)

    wanted, advance = here.wanted("other spans", spark), epochs.EpochRunner.advance
    stream_readings(wanted, BEGIN, READINGS[:2])
    with monkeypatch.context() as patch:
        patch.setattr("pipelines.engine.tasks.commit_work.run_stages", stop)
        patch.setattr(epochs.EpochRunner, "advance", further)
        with pytest.raises(InterruptedError):
            stream_readings(wanted, BEGIN, READINGS)
    pending = log_state(wanted.root).pending
    assert pending is not None
    assert pending.sequences == (3, 4, 5), "the checkpoint plans 3 alone"
    stream_readings(wanted, BEGIN, READINGS)
    sequences = [entry.sequences for entry in log_state(wanted.root).published]
    assert sequences == [(1,), (2,), (3, 4, 5), *((number,) for number in range(6, len(READINGS) + 1))]
    assert here.hashes("other spans", WHOLE) == here.hashes("whole", WHOLE)
