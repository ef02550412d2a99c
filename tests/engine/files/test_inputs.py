"""Rows of several files read back in stream order, a window at a time, with little read ahead.

Rules of docs/semantics.md: S8, S11, S12
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.engine.columnar.columns import ticks, times
from pipelines.engine.files import ordered as inputs
from pipelines.engine.files.ordered import OrderedInput, in_order, key_ranks, order_of, row_groups, windows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    Row = tuple[int, str, int, int]
    """Arrival, key, place, number."""

SCHEMA = pa.schema(
    [("arrival", pa.timestamp("us", "UTC")), ("key", pa.string()), ("place", pa.int64()), ("n", pa.int64())]
)
LONGS = st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 2), st.integers(0, 2)), max_size=20)
FILES = st.lists(st.lists(st.tuples(st.integers(0, 9), st.sampled_from("abc")), max_size=12), min_size=1, max_size=4)
CLOSE = 10


def table(rows: Sequence[Row]) -> pa.Table:
    arrival, key, place, number = (list(column) for column in zip(*rows, strict=True)) if rows else ([], [], [], [])
    columns = [times(np.array(arrival, dtype=np.int64)), key, place, number]
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def rows_of(found: pa.Table) -> list[Row]:
    columns = [ticks(found["arrival"]).tolist(), *(found[name].to_pylist() for name in ("key", "place", "n"))]
    return list(zip(*columns, strict=True))


def blocks(rows: Sequence[Row], size: int, read: list[int] | None = None) -> Iterator[pa.Table]:
    """Give rows in blocks, and note the size of each that is read."""
    for at in range(0, len(rows), size):
        if read is not None:
            read.append(len(rows[at : at + size]))
        yield table(rows[at : at + size])


def laid(files: list[list[tuple[int, str]]]) -> list[list[Row]]:
    """Number rows as a stream per key has them, a key in one file only, each file in order."""
    placed, count = [], 0
    for number, file in enumerate(files):
        rows: list[Row] = []
        for arrival, name in sorted(file):
            key = f"{name}{number}"
            rows.append((arrival, key, 1 + sum(row[:2] == (arrival, key) for row in rows), count))
            count += 1
        placed.append(rows)
    return placed


@given(rows=LONGS)
def test_an_order_is_that_of_a_stable_sort(rows: list[tuple[int, int, int]]) -> None:
    columns = [np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)] or [np.zeros(0, np.int64)] * 3
    order = order_of(columns[0], lambda tied: (columns[1][tied], columns[2][tied]))
    wanted = sorted(range(len(rows)), key=rows.__getitem__)
    assert (list(range(len(rows))) if order is None else order.tolist()) == wanted


@given(rows=LONGS)
def test_an_order_by_arrival_alone_keeps_ties(rows: list[tuple[int, int, int]]) -> None:
    arrival = np.array([row[0] for row in rows], dtype=np.int64)
    order = order_of(arrival)
    wanted = sorted(range(len(rows)), key=arrival.tolist().__getitem__)
    assert (list(range(len(rows))) if order is None else order.tolist()) == wanted


@pytest.mark.parametrize("rows", [[], [1], [1, 2, 3], [1, 1, 2]])
def test_rows_in_order_are_left_alone(rows: list[int]) -> None:
    assert order_of(np.array(rows, dtype=np.int64), lambda tied: (tied,)) is None


def test_keys_rank_by_value_and_not_by_their_text() -> None:
    numbers = pa.table({"key": [10, 9, -1, 10]})
    assert key_ranks(numbers, ["key"]).tolist() == [2, 1, 0, 2]
    assert key_ranks(numbers, []).tolist() == [0, 0, 0, 0]


def test_keys_of_several_columns_rank_left_to_right() -> None:
    pairs = pa.table({"a": ["x", "x", "w"], "b": [2, 1, 9]})
    assert key_ranks(pairs, ["a", "b"]).tolist() == [2, 1, 0]


def test_rows_of_one_instant_stand_by_key_and_then_place() -> None:
    rows = [(5, "b", 1, 0), (5, "a", 2, 1), (4, "b", 9, 2), (5, "a", 1, 3)]
    assert [row[3] for row in rows_of(in_order(table(rows), ["key"]))] == [2, 3, 1, 0]
    assert [row[3] for row in rows_of(in_order(table(rows), []))] == [2, 0, 3, 1]


@given(files=FILES, size=st.integers(1, 5))
def test_windows_put_files_together_in_stream_order(files: list[list[tuple[int, str]]], size: int) -> None:
    placed = laid(files)
    source = OrderedInput([blocks(rows, size) for rows in placed], SCHEMA, ["key"])
    readings: list[int] = []
    found: list[Row] = []
    for reading in windows([source], 0, CLOSE):
        window = rows_of(source.take(reading))
        assert all((readings or [0])[-1] <= row[0] < reading for row in window)
        readings.append(reading)
        found += window
    assert found == sorted(row for rows in placed for row in rows)
    assert readings[-1] == CLOSE
    assert all(earlier < later for earlier, later in pairwise(readings))


@given(left=FILES, right=FILES, size=st.integers(1, 5))
def test_two_inputs_are_cut_at_the_same_readings(
    left: list[list[tuple[int, str]]], right: list[list[tuple[int, str]]], size: int
) -> None:
    sources = [OrderedInput([blocks(rows, size) for rows in laid(files)], SCHEMA, ["key"]) for files in (left, right)]
    found: list[list[Row]] = [[], []]
    for reading in windows(sources, 0, CLOSE):
        for number, source in enumerate(sources):
            found[number] += rows_of(source.take(reading))
    assert found == [sorted(row for rows in laid(files) for row in rows) for files in (left, right)]


def test_a_span_without_rows_is_one_window() -> None:
    source = OrderedInput([blocks([], 1)], SCHEMA, [])
    assert list(windows([source], 0, CLOSE)) == [CLOSE]
    assert source.take(CLOSE).schema == SCHEMA
    assert list(windows([], 0, CLOSE)) == [CLOSE]


def test_an_instant_longer_than_a_block_stays_in_one_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "BLOCK", 4)
    rows = [(3, "a", place, place) for place in range(1, 20)] + [(4, "a", 1, 20)]
    source = OrderedInput([blocks(rows, 4)], SCHEMA, ["key"])
    taken = [len(rows_of(source.take(reading))) for reading in windows([source], 0, CLOSE)]
    assert [count for count in taken if count] == [19, 1]


def test_little_is_read_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "BLOCK", 10)
    files = [[(at, f"k{number}", 1, at) for at in range(1000)] for number in range(3)]
    read: list[list[int]] = [[], [], []]
    source = OrderedInput([blocks(rows, 10, seen) for rows, seen in zip(files, read, strict=True)], SCHEMA, ["key"])
    taken = 0
    for reading in windows([source], 0, 1000):
        assert sum(map(sum, read)) - taken <= 3 * 2 * 10, "two blocks a file"
        taken += source.take(reading).num_rows
    assert taken == 3000


def test_what_fits_into_a_block_is_one_window() -> None:
    files = [[(at, f"k{number}", 1, at) for at in range(number, 9, 3)] for number in range(3)]
    source = OrderedInput([blocks(rows, 1) for rows in files], SCHEMA, ["key"])
    assert list(windows([source], 0, CLOSE)) == [CLOSE]
    assert source.take(CLOSE).num_rows == 9


def test_row_groups_are_opened_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "BLOCK", 4)
    rows = [(at, "a", 1, at) for at in range(30)]
    pq.write_table(table(rows), tmp_path / "rows.parquet", row_group_size=10)
    found = list(row_groups(str(tmp_path / "rows.parquet"), [0, 2]))
    assert max(block.num_rows for block in found) == 4
    assert [row[3] for block in found for row in rows_of(block)] == [*range(10), *range(20, 30)]
