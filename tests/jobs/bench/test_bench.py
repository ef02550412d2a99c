"""What the bench compares with does the same work: the same timers, and the same answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pipelines.engine.columnar.columns import ticks
from pipelines.engine.commits.readers import read_stream
from pipelines.engine.tasks.local import CoreEngine
from pipelines.jobs.bench.cti import LATES, RELATIONS, CtiBench, Relation, asked, dropped, related, rightly_kept, run
from pipelines.jobs.bench.cti import CtiAnswer as Total
from pipelines.jobs.bench.figures import BenchFigure, tell_figures
from pipelines.jobs.bench.generated import APART, Recorded, chunks, record
from pipelines.jobs.bench.heartbeat import SLACK
from pipelines.jobs.bench.lifetimes import AGAIN, AGAIN_SHARE, Lifetimes, record_lifetimes
from pipelines.jobs.bench.peers import beating
from pipelines.jobs.bench.punctuate import PunctuateBench, backfilled, from_files, on_spark, scanned, streamed
from pipelines.jobs.bench.punctuators import PEERS, over_columns
from pipelines.jobs.bench.stamps import DELAY, EVENTS, StampAnswer, Stamps, drawn, record_stamps
from pipelines.jobs.bench.together import figures_in, figures_table
from pipelines.jobs.runs.backfill import Backfill, run_backfill
from pipelines.operators.advance_time import AdvanceTimePolicy
from pipelines.operators.rows import TICKS_PER_SECOND, Shape

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import LentSpark

    Timer = tuple[int, int, int]
    """Device, event time, arrival."""

ROWS, KEYS = 60_000, 20
STAMPS = 140_500
"""Timestamps: one candidate is late itself, and the last one is not the last row."""


def ours(feed: Recorded) -> set[Timer]:
    """Give the timers that a backfill sends up to the last row of each device: the peer has no closing reading."""
    wanted = Backfill(flow=feed.beating(), root=feed.folder / "run", base=feed.folder, engine=CoreEngine())
    run_backfill(wanted, feed.spans(1))
    rows = read_stream(wanted.root, "out", key=("device",))
    columns = (rows["device"].to_pylist(), ticks(rows["event_time"]).tolist(), ticks(rows["arrival"]).tolist())
    last = {
        device: at for device, _, at, kind in zip(*columns, rows["kind"].to_pylist(), strict=True) if kind == "data"
    }
    return {
        (device, time, at)
        for device, time, at, kind in zip(*columns, rows["kind"].to_pylist(), strict=True)
        if kind == "timer" and at <= last[device]
    }


@pytest.mark.exhaustive
def test_the_heartbeat_that_is_compared_with_sends_the_same_timers(
    spark: LentSpark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.jobs.bench.generated.CHUNK", ROWS // 2)
    feed = record(tmp_path / "feed", ROWS, KEYS)
    (tmp_path / "files").mkdir()
    for number, rows in enumerate(chunks(ROWS, KEYS)):
        pq.write_table(rows, tmp_path / "files" / f"{number}.parquet")
    session = spark.session()
    made = beating(session, tmp_path / "files", round(feed.interval * TICKS_PER_SECOND), SLACK)
    query = made.writeStream.format("memory").queryName("beats").option("checkpointLocation", str(tmp_path / "at"))
    query.trigger(availableNow=True).start().awaitTermination()
    theirs = session.sql("SELECT device, time, seen FROM beats WHERE kind = 'timer'").collect()
    session.conf.unset("spark.sql.streaming.stateStore.providerClass")
    found = ours(feed)
    assert len(found) > ROWS / 100
    assert {(row.device, row.time, row.seen) for row in theirs} == found
    assert len(theirs) == len(found)


def test_a_target_that_is_missed_is_told_and_is_the_exit_status() -> None:
    said: list[str] = []
    held = BenchFigure(bench="b", name="one", value=2, unit="s", against="it", ratio=0.4, target=0.5)
    rate = BenchFigure(
        bench="b", name="two", value=9, unit="rows/s", against="it", ratio=19.0, target=20, at_least=True
    )
    assert tell_figures([held], as_json=False, echo=said.append) == 0
    assert tell_figures([held, rate], as_json=False, echo=said.append) == 1
    assert said[-1] == "two: 9 rows/s, 19.00 times it (at least 20: NOT held)"


def test_the_table_of_all_benches_says_of_each_figure_what_the_bench_said_of_it() -> None:
    missed = BenchFigure(bench="b", name="one", value=0.9, unit="s", against="it", ratio=1.5, target=0.7, of_value=True)
    bare = BenchFigure(bench="c", name="two", value=3, unit="files")
    read = list(figures_in([missed.as_json(), "measuring", bare.as_json()]))
    assert read == [missed, bare]
    rows = [line.split() for line in figures_table(read).splitlines()]
    assert ["b", "one", "0.9", "s", "1.50", "it", "≤", "0.7", "s", "NOT", "held"] in rows
    assert ["c", "two", "3", "files"] in rows


@pytest.fixture(scope="module")
def stamps(tmp_path_factory: pytest.TempPathFactory) -> Stamps:
    return record_stamps(tmp_path_factory.mktemp("stamps") / "feed", STAMPS)


@pytest.fixture(scope="module")
def policy(stamps: Stamps) -> AdvanceTimePolicy:
    policy = stamps.flow.streams["out"].policy
    assert isinstance(policy, AdvanceTimePolicy)
    return policy


@pytest.fixture(scope="module")
def right() -> StampAnswer:
    """Go through the timestamps one by one."""
    newest, candidates, drops, total = None, 0, 0, 0
    for received, stamp in enumerate(drawn(STAMPS).tolist(), start=1):
        drops += newest is not None and stamp < newest
        if received % EVENTS == 0:
            newest = max(stamp - DELAY, stamp - DELAY if newest is None else newest)
            candidates, total = candidates + 1, total + newest
    return StampAnswer(candidates, drops, total)


def test_the_answer_is_worth_asking_for(right: StampAnswer) -> None:
    stamps = drawn(STAMPS)[EVENTS - 1 :: EVENTS]

    assert right.candidates == STAMPS // EVENTS
    assert right.drops > STAMPS / 1_000
    assert (stamps[1:] < stamps[:-1]).any(), "a candidate that sends no CTI"


@pytest.mark.parametrize("peer", PEERS)
def test_a_peer_gives_the_answer(peer: str, stamps: Stamps, right: StampAnswer) -> None:
    if not PEERS[peer].is_installed:
        pytest.skip(f"{PEERS[peer].package} is not installed")

    assert PEERS[peer].answer(stamps.files) == right


def test_the_compiled_function_gives_the_answer(stamps: Stamps, policy: AdvanceTimePolicy, right: StampAnswer) -> None:
    assert scanned(policy, [drawn(STAMPS)]) == right
    assert from_files(policy, stamps.files) == right
    assert over_columns(drawn(STAMPS)) == right


def test_spark_and_what_is_committed_give_the_answer(
    spark: LentSpark, stamps: Stamps, policy: AdvanceTimePolicy, right: StampAnswer
) -> None:
    assert on_spark(spark, policy, stamps.files) == right
    assert backfilled(stamps, spark).answer == right
    took, answer = streamed(stamps, CoreEngine())
    assert answer == right
    assert len(took) > 1


def test_a_wrong_answer_is_told_and_is_the_exit_status(spark: LentSpark, stamps: Stamps, right: StampAnswer) -> None:
    bench, said = PunctuateBench(stamps, spark, right), list[str]()
    wrong = right._replace(drops=right.drops + 1)

    assert tell_figures(bench.measured("theirs", lambda: right), as_json=False, echo=said.append) == 0
    assert tell_figures(bench.measured("ours", lambda: wrong), as_json=False, echo=said.append) == 1
    assert f"ours answers {tuple(wrong)} and not {tuple(right)}" in said[1]


@pytest.mark.exhaustive
@pytest.mark.parametrize("shape", Shape)
def test_every_policy_keeps_what_the_sql_says(
    shape: Shape, spark: LentSpark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.jobs.bench.lifetimes.BETWEEN", 512)
    feed = record_lifetimes(tmp_path / "feed", ROWS, KEYS, shape)
    right = rightly_kept(spark, feed)
    ours = [run(CoreEngine(), feed, feed.flow(late), "ready_rows", ("amount",), 0)[1] for late in LATES]

    assert ours == right
    assert all(ROWS / 2 < answer.rows < ROWS for answer in right)


@pytest.mark.exhaustive
@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.name)
def test_windows_and_joins_give_what_the_sql_gives(
    relation: Relation, spark: LentSpark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.jobs.bench.lifetimes.APART", 10_000)
    feed = record_lifetimes(tmp_path / "feed", ROWS, KEYS, relation.shape)
    feed.split()
    _, _, ours = related(CoreEngine(), feed, relation, 0)
    _, right = asked(spark, feed, relation, 1)

    assert ours.rows > KEYS
    assert ours.is_near(right)


def repeated(folder: Path) -> Lifetimes:
    feed = record_lifetimes(folder / "feed", ROWS, KEYS, Shape.POINT)
    feed.repeat()
    return feed


def test_what_comes_twice_is_there_and_leaves_once(tmp_path: Path) -> None:
    feed = repeated(tmp_path)
    there = pq.read_table(feed.folder / "repeated.parquet")
    _, ours = run(CoreEngine(), feed, feed.once(), "out", ("amount",), 0)

    assert there.num_rows == ROWS + (ROWS - AGAIN // APART) // AGAIN_SHARE
    assert there.equals(there.sort_by("seen"))
    assert ours == Total(ROWS, float(pc.sum(pq.read_table(feed.file)["amount"]).as_py()))


@pytest.mark.exhaustive
def test_what_comes_twice_leaves_once_as_spark_has_it(spark: LentSpark, tmp_path: Path) -> None:
    feed = repeated(tmp_path)

    assert dropped(spark, feed, 1)[1] == run(CoreEngine(), feed, feed.once(), "out", ("amount",), 0)[1]


def test_a_sum_that_is_wrong_is_told(spark: LentSpark, tmp_path: Path) -> None:
    bench = CtiBench(tmp_path, spark, ROWS, KEYS)

    assert not list(bench.judged("ours", Total(2, 1.0), Total(2, 1.0 + 1e-12)))
    [told] = bench.judged("ours", Total(2, 1.0), Total(2, 1.1))
    assert told.held is False
    assert told.name == "ours answers (2, 1.0) and not (2, 1.1)"
