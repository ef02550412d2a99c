"""Where keys meet, the rows of one arrival stand by the time that each key has reached; no key's own order changes.

Rules of docs/semantics.md: S5, S6, S7
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.engine.columnar.columns import TABLE_INFINITY
from pipelines.engine.files.ordered import in_order
from pipelines.engine.tasks.by_time import ByTime, met_by_time
from pipelines.flows.reading import read_flow

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pipelines.flows.model import Flow

AHEAD = 5


class Row(NamedTuple):
    """One row of a stream."""

    arrival: int
    key: Any
    place: int
    kind: str = "data"
    time: int | None = None
    end: int | None = None


def table(rows: Sequence[Row]) -> pa.Table:
    def instants(values: Sequence[int | None]) -> pa.Array:
        return pa.array(values, pa.int64()).cast(pa.timestamp("us", "UTC"))

    return pa.table(
        {
            "arrival": instants([row.arrival for row in rows]),
            "place": pa.array([row.place for row in rows], pa.int64()),
            "kind": pa.array([row.kind for row in rows], pa.string()),
            "event_time": instants([row.time for row in rows]),
            "event_end": instants([row.end for row in rows]),
            "key": pa.array([row.key for row in rows]),
            "n": pa.array(range(len(rows)), pa.int64()),
        }
    )


def stood(rows: Sequence[Row], max_ahead: int | None = AHEAD) -> list[Row]:
    """Give rows as a reader sees them in which their keys meet."""
    laid = ByTime(key=("key",), max_ahead=max_ahead).laid(in_order(table(rows), ["key"]))
    return [rows[number] for number in laid["n"].to_pylist()]


def moved_to(row: Row, max_ahead: int | None) -> int | None:
    time = row.end if row.kind == "end" else row.time
    is_ahead = time is not None and max_ahead is not None and time > row.arrival + max_ahead
    return None if is_ahead and row.kind not in {"timer", "cti"} else time


def by_the_words(rows: Sequence[Row], max_ahead: int | None) -> list[Row]:
    """Sort by (arrival, time, key, place) as the semantics have it, a row at a time."""
    highest: dict[tuple[int, Any], float] = {}
    placed = []
    for row in sorted(rows, key=lambda row: (row.arrival, row.key, row.place)):
        came = moved_to(row, max_ahead)
        reached = max(highest.get(row[:2], -float("inf")), -float("inf") if came is None else came)
        highest[row[:2]] = reached
        placed.append((row.arrival, reached, row.key, row.place, row))
    return [row for *_, row in sorted(placed, key=lambda each: each[:4])]


@st.composite
def streams(draw: st.DrawFn) -> list[Row]:
    """Draw the rows of a stream that is numbered per key, in any order."""
    instants = st.none() | st.integers(-3, 20)
    drawn = draw(
        st.lists(
            st.tuples(
                st.integers(0, 2),
                st.integers(-1, 12),
                st.sampled_from(["data", "start", "end", "timer", "cti"]),
                instants,
                instants,
            ),
            max_size=24,
        )
    )
    count: dict[tuple[int, int], int] = {}
    rows = []
    for arrival, key, kind, time, end in drawn:
        count[arrival, key] = count.get((arrival, key), 0) + 1
        rows.append(Row(arrival, key, count[arrival, key], kind, time, end))
    return draw(st.permutations(rows))


@given(rows=streams(), max_ahead=st.sampled_from([None, 0, AHEAD]))
def test_rows_stand_by_arrival_time_key_and_place(rows: list[Row], max_ahead: int | None) -> None:
    found = stood(rows, max_ahead)
    assert found == by_the_words(rows, max_ahead)
    for key in {row.key for row in rows}:
        own = [row[:3] for row in found if row.key == key]
        assert own == sorted(own), "no key's own order changes"


def test_keys_of_one_arrival_take_turns_as_their_time_goes_on() -> None:
    rows = [Row(9, key, place, time=10 * place + key) for key in (1, 2) for place in (1, 2, 3)]
    assert [(row.key, row.place) for row in stood(rows, None)] == [(1, 1), (2, 1), (1, 2), (2, 2), (1, 3), (2, 3)]


def test_a_row_behind_its_key_stays_behind_it() -> None:
    rows = [Row(9, 1, 1, time=8), Row(9, 1, 2, time=2), Row(9, 2, 1, time=5)]
    assert [(row.key, row.place) for row in stood(rows)] == [(2, 1), (1, 1), (1, 2)]


def test_one_wrong_year_holds_nothing_back() -> None:
    rows = [Row(9, 1, 1, time=99_999), Row(9, 1, 2, time=3), Row(9, 2, 1, time=5)]
    assert [(row.key, row.place) for row in stood(rows)] == [(1, 1), (1, 2), (2, 1)]
    assert [(row.key, row.place) for row in stood(rows, None)] == [(2, 1), (1, 1), (1, 2)]


def test_timers_and_promises_count_however_far_ahead() -> None:
    rows = [
        Row(9, 1, 1, "timer", time=900),
        Row(9, 1, 2, time=3),
        Row(9, 2, 1, "cti", time=TABLE_INFINITY),
        Row(9, 3, 1),
    ]
    assert [(row.key, row.place) for row in stood(rows)] == [(3, 1), (1, 1), (1, 2), (2, 1)]


def test_an_end_edge_counts_by_its_end_and_a_start_by_its_start() -> None:
    rows = [
        Row(9, 1, 1, "end", time=1, end=8),
        Row(9, 2, 1, "start", time=5, end=7),
        Row(9, 3, 1, "data", time=6, end=9),
    ]
    assert [row.key for row in stood(rows)] == [2, 3, 1]


@pytest.mark.parametrize(
    "keys",
    [
        [9, 10],
        [-10, 9],
        ["B", "a", "ä"],
        [b"", b"\x00", b"\x00\x01", b"\xff"],
        [Decimal("-2.5"), Decimal("-0.5"), Decimal("10.0")],
        [False, True],
    ],
    ids=str,
)
def test_at_one_time_keys_stand_by_value(keys: list[Any]) -> None:
    assert [row.key for row in stood([Row(9, key, 1, time=4) for key in reversed(keys)])] == keys


def test_rows_that_share_no_arrival_are_left_as_they_are() -> None:
    rows = table([Row(1, 1, 1, time=9), Row(2, 2, 1, time=3)])
    assert ByTime(key=("key",), max_ahead=None).laid(rows) is rows


FLOW = """\
flow: f
sources:
  rows: {feed: {parquet: rows.parquet}, key: [gate, line], time: sent, arrival: seen}
streams:
  beating: {heartbeat: rows, interval: 1s}
  lines: {merge: beating, by: gate, ports_by: {line: [1, 2]}}
  gates: {merge: beating, ports_by: {gate: [1, 2]}}
  both: {merge: [beating, rows]}
  wide: {advance_time: beating, every: {events: 1}, late: divert, max_ahead: 7s}
  own: {advance_time: beating, by: key, every: {events: 1}, late: divert}
  trusting: {advance_time: own.diverted, every: {events: 1}, late: drop, max_ahead: off}
  further: {advance_time: gates, every: {events: 1}, late: drop}
"""
DAY = 86_400_000_000
MET = {
    ("beating", "rows"): None,
    ("lines", "beating"): None,
    ("gates", "beating"): ByTime(key=("gate", "line"), max_ahead=DAY),
    ("both", "beating"): ByTime(key=("gate", "line"), max_ahead=DAY),
    ("both", "rows"): None,
    ("wide", "beating"): ByTime(key=("gate", "line"), max_ahead=7_000_000),
    ("own", "beating"): None,
    ("trusting", "own.diverted"): ByTime(key=("gate", "line"), max_ahead=None),
    ("further", "gates"): None,
}


@pytest.fixture
def flow(tmp_path: Path) -> Flow:
    """Give a flow whose streams read each other by the same key and by shorter ones."""
    (tmp_path / "f.yaml").write_text(FLOW)
    return read_flow(tmp_path / "f.yaml", {})


@pytest.mark.parametrize(("reader", "name"), MET)
def test_streams_stand_by_time_exactly_where_keys_meet(flow: Flow, reader: str, name: str) -> None:
    assert met_by_time(flow, flow.streams[reader], name) == MET[reader, name]
