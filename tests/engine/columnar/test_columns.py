"""The ledger spells a row as one object, however its columns are spelled.

Rules of docs/semantics.md: S3
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.engine.columnar import row_texts
from pipelines.engine.columnar.columns import (
    FEW,
    KIND_BY_LETTER,
    LENGTH_BY_LETTER,
    TABLE_INFINITY,
    canonical_json,
    kind_names,
    kinds,
    longs,
    ticks,
    with_kinds_encoded,
)
from pipelines.engine.columnar.letters import numbers
from pipelines.engine.columnar.row_texts import json_rows
from pipelines.operators.rows import INFINITY, KIND_NAMES, MAX_TIME, MIN_TIME, NULL

INSTANTS = [None, 0, -1, 1, 999_999, 1_000_000, MIN_TIME, MAX_TIME, TABLE_INFINITY]
COUNT = len(INSTANTS)


def times(zone: str | None) -> pa.Array:
    return pa.array(INSTANTS, pa.int64()).cast(pa.timestamp("us", zone))


def rows() -> pa.Table:
    columns = {
        "zulu": times("UTC"),
        "face": times(None),
        "york": pa.array([None, *range(COUNT - 1)], pa.int64()).cast(pa.timestamp("us", "America/New_York")),
        'quoted "ü" %s': pa.array([None, -128, 127, 0, 1, 2, 3, 4, 5], pa.int8()),
        "large": pa.array([2**64 - 1 - i for i in range(COUNT)], pa.uint64()),
        "text": pa.array([None, "", "ü\n", '"', "%d", "a", "b", "c", "d"]),
        "float": pa.array([None, 1.5, float("nan"), float("inf"), -float("inf"), -0.0, 1e300, 1e-7, 1.0]),
        "bool": pa.array([None, True, False] * 3),
        "date": pa.array([dt.date(1, 1, 1)] * COUNT),
        "decimal": pa.array([Decimal("1.50")] * COUNT),
        "binary": pa.array([b"\0\xff"] * COUNT),
        "struct": pa.array([{"z": 1, "a": dt.datetime(1, 1, 1, tzinfo=dt.UTC)}] * COUNT),
        "list": pa.array([[1, None]] * COUNT),
    }
    return pa.table(columns)


def test_rows_are_spelled_as_each_row_by_itself() -> None:
    table = pa.concat_tables([rows(), rows().slice(3, 4)])

    assert json_rows(table, table.column_names).to_pylist() == [canonical_json(row) for row in table.to_pylist()]


@pytest.mark.parametrize("name", rows().column_names)
def test_one_column_is_spelled_alike(name: str) -> None:
    one = rows().select([name])

    assert json_rows(one, [name]).to_pylist() == [canonical_json(row) for row in one.to_pylist()]


@given(st.lists(st.text() | st.none(), max_size=9))
def test_whatever_a_text_holds_is_spelled_alike(texts: list[str | None]) -> None:
    one = pa.table({"text": pa.array(texts, pa.string())})

    assert json_rows(one, ["text"]).to_pylist() == [canonical_json(row) for row in one.to_pylist()]


@given(st.lists(st.floats() | st.none(), max_size=9))
def test_whatever_a_float_is_it_is_spelled_alike(values: list[float | None]) -> None:
    one = pa.table(
        {"n": pa.array(values, pa.float64()), "m": pa.array(values, pa.float64()).cast(pa.float32(), safe=False)}
    )

    assert json_rows(one, ["m", "n"]).to_pylist() == [canonical_json(row) for row in one.to_pylist()]


def test_many_large_rows_are_spelled_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_texts, "MOST_BYTES", 100)

    assert json_rows(rows(), rows().column_names).to_pylist() == [canonical_json(row) for row in rows().to_pylist()]
    assert json_rows(rows(), rows().column_names).num_chunks > 1


def test_rows_without_columns_and_columns_without_rows_are_spelled() -> None:
    assert json_rows(rows(), []).to_pylist() == ["{}"] * COUNT
    assert json_rows(rows().slice(0, 0), ["text"]).to_pylist() == []


def test_a_null_and_infinity_are_numbers_in_the_core_with_and_without_nulls_beside_them() -> None:
    assert ticks(times("UTC"))[[0, 1, -1]].tolist() == [NULL, 0, INFINITY]
    assert ticks(times("UTC").slice(1))[[0, -1]].tolist() == [0, INFINITY]
    assert longs(pa.chunked_array([pa.array([1], pa.int8()), pa.array([None], pa.int8())])).tolist() == [1, NULL]
    assert longs(pa.chunked_array([pa.array([1]), pa.array([2])])).tolist() == [1, 2]


@pytest.mark.parametrize("size", [1, 5, FEW, 2 * FEW])
def test_kinds_are_read_back_however_they_are_spelled_and_cut(size: int) -> None:
    right = (np.arange(size + 3) % len(KIND_NAMES)).astype(np.int8)
    words = kind_names(right)
    encoded = with_kinds_encoded(pa.table({"kind": words}))["kind"]
    for column in (words, pa.chunked_array([words[:2], words[2:]]), encoded):
        assert kinds(column).tolist() == right.tolist()
        assert kinds(column[3:]).tolist() == right[3:].tolist()
    assert kinds(pa.chunked_array([], pa.string())).tolist() == []


@pytest.mark.parametrize("strange", ["", "date!", "x"])
def test_a_word_that_is_no_kind_is_not_taken_for_one(strange: str) -> None:
    words = pa.array(["data"] * FEW + [strange])
    _, offsets, letters = words.buffers()
    ends, bytes_ = np.frombuffer(offsets, dtype=np.int32)[: FEW + 2], np.frombuffer(letters, dtype=np.uint8)
    assert numbers(ends, bytes_, KIND_BY_LETTER, LENGTH_BY_LETTER) is None
