"""What the bench compares with does the same work: Spark's own heartbeat sends the same timers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from pipelines.engine.columns import ticks
from pipelines.engine.core import CoreEngine
from pipelines.engine.readers import read_stream
from pipelines.jobs.backfill import Backfill, run_backfill
from pipelines.jobs.bench.figures import Figure, tell_figures
from pipelines.jobs.bench.generated import Recorded, chunks, record
from pipelines.jobs.bench.heartbeat import SLACK
from pipelines.jobs.bench.peers import beating
from pipelines.operators.rows import TICKS_PER_SECOND

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.conftest import LentSpark

    Timer = tuple[int, int, int]
    """Device, event time, arrival."""

ROWS, KEYS = 60_000, 20


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
    held = Figure(bench="b", name="one", value=2, unit="s", against="it", ratio=0.4, target=0.5)
    rate = Figure(bench="b", name="two", value=9, unit="rows/s", against="it", ratio=19.0, target=20, at_least=True)
    assert tell_figures([held], as_json=False, echo=said.append) == 0
    assert tell_figures([held, rate], as_json=False, echo=said.append) == 1
    assert said[-1] == "two: 9 rows/s, 19.00 times it (at least 20: NOT held)"
