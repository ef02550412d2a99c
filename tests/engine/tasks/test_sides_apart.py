"""Two sources that never speak in one sequence: epochs that bring rows of one or the other give what one cut gives.

Rules of docs/semantics.md: S15
"""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pipelines.engine.columnar.columns import ticks
from pipelines.engine.commits.readers import log_state
from tests.engine.tasks.test_relations import rows
from tests.laws.streamed import Restart, cut_or_whole, streamed
from tests.laws.trials import BEGIN, SECOND, Trial, trial

END = BEGIN + 120 * SECOND
SPAN = (BEGIN, END)
TURN = 15
"""Seconds after which the other source speaks."""

FLOW = """\
flow: apart
buckets: 2
sources:
  moves:
    {feed: {parquet: moves.parquet}, key: line, shape: edge, edge: edge, event_id: event, time: sent, arrival: seen}
  spells:
    {feed: {parquet: spells.parquet}, key: line, shape: interval, time: sent, end: until, arrival: seen}
streams:
  moved: {advance_time: moves, by: key, every: {events: 3}, delay: 6s, late: adjust}
  spelled: {advance_time: spells, by: key, every: {duration: 3s}, delay: 2s, late: drop}
  wide: {advance_time: moves, every: {duration: 5s}, delay: 9s, late: drop}
  bound: {advance_time: spells, by: key, import: moved, late: adjust}
  each: {advance_time: spells, by: key, import: wide, late: divert}
  both: {union: [moved, spelled]}
  light: {project: spelled, columns: {gate: gate, counted: number * 2}}
  pairs: {join: [moved, light], on: gate}
"""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """Give the flow, its sources taking turns, with the run `whole`: one interval, on core."""
    drawn = {"moves": rows(3, 160), "spells": rows(4, 160)}
    turns = {name: pc.bit_wise_and(_turn(table), 1) for name, table in drawn.items()}
    feeds = {name: table.filter(pc.equal(turns[name], place)) for place, (name, table) in enumerate(drawn.items())}
    made = trial(tmp_path_factory.mktemp("apart"), FLOW, feeds)
    made.run("whole", [SPAN])
    return made


def _turn(table: pa.Table) -> pa.ChunkedArray:
    return pc.divide(pc.subtract(table["seen"].cast(pa.int64()), BEGIN), TURN * SECOND)


READINGS = [BEGIN + at * SECOND for at in (5, 15, 20, 30, 31, 44, 45, 60, 71, 75, 90, 103, 105, 118, 120)]
"""No sequence reaches from one turn into the next."""


@pytest.mark.parametrize(
    ("lengths", "restart"),
    [
        ((2, 1, 3), Restart.NEVER),
        ((4, 1, 3), Restart.EVERY_EPOCH),
        pytest.param((1,), Restart.EVERY_EPOCH, marks=pytest.mark.exhaustive),
    ],
)
def test_epochs_over_one_sides_rows_and_then_the_others_give_what_one_cut_gives(
    here: Trial, lengths: tuple[int, ...], restart: Restart
) -> None:
    run = f"{lengths} {restart.value}"
    streamed(here, run, BEGIN, READINGS, restart=restart, most=lengths)
    covered = [len(entry.sequences) for entry in log_state(here.root(run)).published]
    assert set(lengths) == set(covered[:-1])
    assert here.hashes(run, [SPAN]) == here.hashes("whole", [SPAN])


def test_epochs_that_are_cut_into_tasks_now_and_then_give_the_same(
    here: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows held by tasks of several buckets have the same positions, and go one by one."""
    cut_or_whole(monkeypatch, [True, False, False])
    streamed(here, "now and then", BEGIN, READINGS)
    assert here.hashes("now and then", [SPAN]) == here.hashes("whole", [SPAN])


def test_no_sequence_has_rows_of_both(here: Trial) -> None:
    seen = {name: ticks(pq.read_table(here.base / f"{name}.parquet")["seen"]) for name in ("moves", "spells")}
    speaks = [
        {name for name, instants in seen.items() if ((instants >= start) & (instants < end)).any()}
        for start, end in pairwise([BEGIN, *READINGS])
    ]
    assert speaks.count({"moves"}) > 3
    assert speaks.count({"spells"}) > 3
    assert {"moves", "spells"} not in speaks


def test_each_way_of_meeting_has_results(here: Trial) -> None:
    for name in ("bound", "each", "both", "pairs"):
        kinds = here.table("whole", name)["kind"].to_pylist()
        assert kinds.count("data") > 10, name
        assert kinds.count("cti") > 3, name
