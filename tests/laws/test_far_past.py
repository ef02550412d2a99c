"""A first timestamp far in the past: it yields to two rows that agree, wherever a run is cut, and a merge goes on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from pipelines.engine.columnar.columns import times
from pipelines.engine.commits.readers import log_state, read_carry, read_ledger
from tests.laws.streamed import Restart, streamed
from tests.laws.trials import BEGIN, CORE, HOUR, MINUTE, SECOND, Trial, trial

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import LentSpark

FLOW = """\
flow: past
every: 10m
buckets: 3
sources:
  rows: {feed: {parquet: rows.parquet}, key: gate, time: sent, arrival: seen}
streams:
  beating: {heartbeat: rows, interval: 5m, slack: 30s}
  ordered: {merge: beating, ports_by: {gate: [p, q]}}
  punctual: {advance_time: ordered, every: {events: 3}, delay: 10m, late: divert}
"""
BEFORE_NTP, REFUSED, BELIEVED = 0, 2, 4
"""Rows of gate p: stamped 1970, refused by `max_catch_up`, and the one that agrees with that."""
PARTED = BEGIN + REFUSED * MINUTE + MINUTE
"""Between the refused row and the one that agrees with it."""
END = BEGIN + HOUR


def placed(folder: Path) -> Trial:
    """Give a row a minute of two gates for an hour; the first of p comes from a clock that was not set yet."""
    seen = [BEGIN + number * MINUTE + 20 * SECOND for number in range(59)]
    sent = [at - 20 * SECOND for at in seen]
    sent[BEFORE_NTP] = 40 * SECOND
    stamps = {name: times(pa.array(of, pa.int64()).to_numpy()) for name, of in (("sent", sent), ("seen", seen))}
    gates = ["pq"[number % 2] for number in range(59)]
    return trial(folder, FLOW, {"rows": pa.table({"number": range(59), "gate": gates, **stamps})})


def refused(here: Trial, run: str) -> list[int]:
    lines = read_ledger(here.root(run)).to_pylist()
    return [json.loads(line["row"])["number"] for line in lines if line["reason"] == "max_catch_up"]


def remembered(here: Trial, run: str) -> list[tuple[str, int]]:
    """Give the keys of which a refused row is carried, and when it was stamped."""
    state = log_state(here.root(run))
    assert state.tip is not None
    rows = read_carry(here.root(run), "beating", "refused", state.tip.commit, key=("gate",), state=state)
    return [(row["gate"], int(row["refused_time"].timestamp()) * SECOND) for row in rows.to_pylist()]


def test_it_yields_to_two_rows_that_agree_and_holds_no_merge(tmp_path: Path) -> None:
    here = placed(tmp_path)
    here.run("main", [(BEGIN, END)])
    assert refused(here, "main") == [REFUSED]
    assert remembered(here, "main") == []
    beats = [row for row in here.table("main", "beating").to_pylist() if row["kind"] == "timer" and row["gate"] == "p"]
    assert [row["event_time"].minute for row in beats if row["event_time"].year > 1970] == list(range(5, 60, 5))
    left = {row["number"] for row in here.table("main", "ordered").to_pylist() if row["kind"] == "data"}
    assert left >= set(range(56)), "the merge waits for no clock of 1970"


@pytest.mark.parametrize("buckets", [1, 8])
def test_an_interval_may_end_between_the_two(tmp_path: Path, buckets: int) -> None:
    here = placed(tmp_path)
    whole = here.run("whole", [(BEGIN, END)])
    here.run("cut", [(BEGIN, PARTED)], buckets=buckets)
    assert remembered(here, "cut") == [("p", BEGIN + REFUSED * MINUTE)]
    here.run("cut", [(PARTED, END)], buckets=buckets)
    assert here.hashes("cut", [(BEGIN, END)]) == whole


@pytest.mark.parametrize("restart", Restart)
def test_so_may_an_epoch_and_its_driver(tmp_path: Path, restart: Restart) -> None:
    here = placed(tmp_path)
    whole = here.run("whole", [(BEGIN, END)])
    streamed(here, "live", BEGIN, [PARTED, PARTED + 5 * MINUTE, END], restart=restart)
    assert here.hashes("live", [(BEGIN, END)]) == whole
    assert remembered(here, "live") == []


def test_spark_gives_the_same(tmp_path: Path, spark: LentSpark) -> None:
    here = placed(tmp_path)
    whole = here.run("whole", [(BEGIN, END)], CORE)
    assert here.run("spark", [(BEGIN, PARTED), (PARTED, END)], spark) == whole
