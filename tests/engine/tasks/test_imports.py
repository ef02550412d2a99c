"""CTIs of a whole stream that streams by key import: keys that are heard later are bound by what came before them.

Rules of docs/semantics.md: A19
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from pipelines.engine.columnar.columns import TIME
from tests.laws.streamed import Restart, streamed
from tests.laws.trials import BEGIN, SECOND, Trial, trial

if TYPE_CHECKING:
    from collections.abc import Sequence

SPAN = (BEGIN, BEGIN + 20 * SECOND)
SENDERS = ("wide", "some", "later", "both", "counted", "merged")

FLOW = """\
flow: imports
buckets: 3
sources:
  moves: {feed: {parquet: moves.parquet}, key: line, time: sent, arrival: seen}
  calls: {feed: {parquet: calls.parquet}, key: line, time: sent, arrival: seen}
streams:
  wide: {advance_time: moves, every: {events: 1}, late: drop}
  some: {filter: wide, where: number > '0'}
  later: {shift_time: wide, shift: 1s}
  both: {union: [wide, some]}
  counted: {window: wide, size: 2s, measures: {n: count}}
  merged: {merge: [wide, some]}
""" + "".join(f"  by_{name}: {{advance_time: calls, by: key, import: {name}, late: drop}}\n" for name in SENDERS)


def feed(rows: Sequence[tuple[int, int, int]], number: pa.DataType) -> pa.Table:
    """Give rows of (line, second sent, second seen), each with a number."""
    lines, sent, seen = zip(*rows, strict=True)
    times = {"sent": sent, "seen": seen}
    return pa.table(
        {
            "line": pa.array(lines, pa.int64()),
            "number": pa.array(range(len(rows)), pa.int64()).cast(number),
            **{name: pa.array([BEGIN + at * SECOND for at in known], TIME) for name, known in times.items()},
        }
    )


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """Give the flow, with the run `whole`: line 1 calls from the start, line 2 only when much is promised."""
    moves = feed([(1, at, at) for at in range(2, 12, 2)], pa.string())
    calls = feed([(1, 1, 1), (1, 5, 7), (2, 3, 13), (2, 15, 14), (1, 4, 15), (2, 16, 16)], pa.int32())
    made = trial(tmp_path_factory.mktemp("imports"), FLOW, {"moves": moves, "calls": calls})
    made.run("whole", [SPAN], buckets=1)
    return made


@pytest.mark.parametrize("readings", [(12, 13, 14, 20), (3, 8, 20)])
def test_who_is_heard_later_is_bound_alike_however_the_span_is_cut(here: Trial, readings: tuple[int, ...]) -> None:
    run = str(readings)
    streamed(here, run, BEGIN, [BEGIN + at * SECOND for at in readings], restart=Restart.EVERY_EPOCH)
    assert here.hashes(run, [SPAN]) == here.hashes("whole", [SPAN])


def test_a_promise_that_a_key_has_no_row_of_stands_nowhere_in_its_stream(here: Trial) -> None:
    late = [line for line in here.table("whole", "ledger").to_pylist() if line["reason"] == "late"]
    told = {
        (line["stream"], line["key"]): (line["cti"].second, line["cti_arrival"], line["cti_place"]) for line in late
    }
    second = '{"line":2}'
    expected = {"wide": 10, "some": 10, "later": 11, "both": 10, "counted": 10, "merged": 10}
    assert {name: told[f"by_{name}", second] for name in SENDERS} == {
        name: (at, None, None) for name, at in expected.items()
    }
    assert all(told[f"by_{name}", '{"line":1}'][1:] != (None, None) for name in SENDERS)
