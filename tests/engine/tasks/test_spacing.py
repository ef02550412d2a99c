"""Memory stays bounded however long a silence is: a task cuts its own span where many timers come due."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.engine.columnar.columns import ticks, times
from pipelines.engine.columnar.content import ContentHash
from pipelines.engine.files.ordered import OrderedInput
from pipelines.engine.tasks import task as tasks
from pipelines.engine.tasks.readings import common, spaced
from pipelines.flows.definition import flow_to_json
from tests.laws.streamed import streamed
from tests.laws.trials import BEGIN, MINUTE, SECOND, parcels, trial

if TYPE_CHECKING:
    from tests.laws.trials import Trial

SILENT = 172_800
"""Two days, in seconds."""
FLOW = """\
flow: parcels
every: 1d
buckets: 2
sources:
  parcels: {feed: {parquet: parcels.parquet}, key: depot, time: sent, arrival: seen}
streams:
  beating: {heartbeat: parcels, interval: 1s}
  ticks: {metronome: 1m}
"""
DAYS = [(BEGIN, BEGIN + 3 * 1_440 * MINUTE)]
COUNTS = st.lists(st.tuples(st.integers(1, 99), st.integers(0, 40)), max_size=9)
CHILD = """\
import json, re, sys
from pathlib import Path
from pipelines.engine.tasks.local import CoreEngine
from pipelines.flows.definition import flow_from_json
from pipelines.jobs.runs.backfill import Backfill, run_backfill
asked = json.loads(sys.stdin.read())
wanted = Backfill(flow=flow_from_json(asked["flow"]), root=Path(asked["root"]), base=Path(asked["base"]),
                  engine=CoreEngine())
ran = run_backfill(wanted, [asked["span"]])
high = re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]
print(json.dumps([ran[0].entry.counts["beating"]["timer"], int(high)]))
"""


def silent(folder: Path) -> Trial:
    """Make a feed of one row of one key, and another of it two days later."""
    rows = parcels(1)
    shift = {name: ticks(rows[name]) + SILENT * SECOND for name in ("seen", "sent")}
    later = rows
    for name, instants in shift.items():
        later = later.set_column(later.schema.get_field_index(name), name, times(instants))
    return trial(folder, FLOW, {"parcels": pa.concat_tables([rows, later])})


@given(COUNTS, st.integers(1, 60), st.integers(-5, 40))
def test_a_span_is_cut_before_too_many_timers_come_and_no_earlier_than_half_of_them(
    counts: list[tuple[int, int]], most: int, since: int
) -> None:
    def timers(until: int) -> float:
        return float(sum(count for instant, count in counts if since <= instant < until))

    until, reading = 100, since
    cut = spaced(since, until, most, timers)
    assert since < cut <= until
    assert timers(cut) <= most or cut == since + 1
    assert cut == until or timers(cut + 1) > most or timers(cut) >= most / 2
    while reading < until:
        reading = spaced(reading, until, most, timers)
    assert reading == until


def test_keys_among_the_rows_read_ahead_are_counted_once() -> None:
    rows = pa.table({"arrival": times(np.arange(6)), "a": list("xxyyzz"), "b": [1, 1, 1, 2, 2, 2]})
    source = OrderedInput([iter([rows])], rows.schema, ())
    assert (source.distinct(("a",)), source.distinct(())) == (0, 0)
    source.bound(0)
    assert [source.distinct(key) for key in (("a",), ("b",), ("a", "b"), ())] == [3, 2, 4, 1]
    assert [source.count(before) for before in (0, 3, 99)] == [0, 3, 6]


@pytest.mark.parametrize(
    ("spans", "met"),
    [
        ([[(0, 9)]], [(0, 9)]),
        ([[(0, 9)], []], []),
        ([[(0, 9)], [(9, 12)]], []),
        ([[(0, 9), (20, 30)], [(5, 25)], [(6, 7), (8, 22)]], [(6, 7), (8, 9), (20, 22)]),
    ],
)
def test_nobody_heard_the_clock_only_where_every_source_was_blind(
    spans: list[list[tuple[int, int]]], met: list[tuple[int, int]]
) -> None:
    assert common(spans) == met


@pytest.mark.parametrize("most", [5_000, 40_000, 10**9])
def test_where_a_task_cuts_its_silence_changes_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    here = silent(tmp_path)
    wanted = here.run("whole", DAYS)
    monkeypatch.setattr(tasks, "MOST_TIMERS", most)
    assert here.run("cut", DAYS) == wanted
    assert here.run("buckets", DAYS, buckets=5) == wanted


def test_two_silent_days_at_a_second_refuse_nobody_however_they_are_cut(tmp_path: Path) -> None:
    here = silent(tmp_path)
    wanted = here.run("whole", DAYS)
    kinds = here.table("whole", "beating")["kind"].to_pylist()
    assert wanted["ledger"] == ContentHash(0, 0, 0)
    assert kinds.count("data") == 2
    assert kinds[: SILENT + 2].count("timer") == SILENT
    start, end = DAYS[0]
    for step in (1_000 * MINUTE, 4_321 * MINUTE):
        run = f"live-{step}"
        streamed(here, run, start, [*range(start + step, end, step), end])
        assert here.hashes(run, DAYS) == wanted


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_a_silence_five_times_as_long_needs_no_more_memory(tmp_path: Path) -> None:
    here = silent(tmp_path)
    start = DAYS[0][0]
    counts, peaks = zip(*(least(here, start, days) for days in (3, 15)), strict=True)
    assert counts[1] - counts[0] == 12 * 86_400
    assert peaks[1] - peaks[0] < 80_000
    assert peaks[1] < 500_000


def least(here: Trial, start: int, days: int) -> tuple[int, int]:
    """Give the smaller peak of two runs: what the allocator keeps for itself differs by some ten megabytes."""
    return min((peak(here, start, days, again) for again in range(2)), key=lambda found: found[1])


def peak(here: Trial, start: int, days: int, again: int) -> tuple[int, int]:
    """Run so many days in a child process; give the timers and the peak memory in KB."""
    span = (start, start + days * 1_440 * MINUTE)
    facts = {"root": str(here.root(f"days-{days}-{again}")), "base": str(here.base), "span": span}
    asked = json.dumps(facts | {"flow": flow_to_json(here.flow)})
    run = subprocess.run([sys.executable, "-c", CHILD], input=asked, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    timers, kilobytes = json.loads(run.stdout)
    return timers, kilobytes
