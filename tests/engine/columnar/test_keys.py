"""Canonical keys sort as the keys do; buckets and ids follow from their bytes alone."""

from __future__ import annotations

import datetime as dt
import pickle
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.engine.columnar import keys
from pipelines.engine.columnar.keys import (
    KeyIndex,
    KeyTypeError,
    NullKeyError,
    bucket_of,
    canonical_keys,
    check_key_type,
)

INTEGERS = st.integers(-(2**63), 2**63 - 1)
# Characters near the ends of the alphabet, so that prefixes, zeros and escapes meet often.
BUCKETS = [0, 1, 5, 2, 6]
TEXTS = st.text(st.sampled_from("\x00\x01ab\x7fé\uffff"), max_size=4)


def bytes_of(*columns: pa.Array) -> list[bytes]:
    made: list[bytes] = canonical_keys(list(columns)).to_pylist()
    return made


@given(pairs=st.lists(st.tuples(TEXTS, INTEGERS, TEXTS), min_size=1))
def test_the_order_of_the_bytes_is_the_order_of_the_keys(pairs: list[tuple[str, int, str]]) -> None:
    first, second, third = (pa.array(column) for column in zip(*pairs, strict=True))
    spelt = bytes_of(first, second, third)
    wanted = [(left.encode(), number, right.encode()) for left, number, right in pairs]
    by_bytes = sorted(range(len(pairs)), key=spelt.__getitem__)
    assert [wanted[row] for row in by_bytes] == sorted(wanted)
    assert len(set(spelt)) == len(set(wanted))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(2013, 1, 1)], pa.date32()),
        ([dt.datetime(1960, 1, 1), dt.datetime(2013, 1, 1), dt.datetime(2013, 1, 1, 1)], pa.timestamp("ms")),  # noqa: DTZ001
        (
            [Decimal("-99999999999999999999.5"), Decimal("-0.5"), Decimal(0), Decimal("12345678901234567890.5")],
            pa.decimal128(30, 1),
        ),
        ([False, True], pa.bool_()),
        ([b"", b"\x00", b"\x00\x00", b"\x00a", b"a", b"\xff"], pa.binary()),
    ],
)
def test_every_type_of_key_sorts_by_value(values: list[object], kind: pa.DataType) -> None:
    array = pa.array([values[0], *values], kind)[1:]
    spelt, paired = bytes_of(array), bytes_of(array, pa.array(["x"] * len(values)))
    assert spelt == sorted(set(spelt))
    assert paired == sorted(set(paired))


def test_integers_of_any_width_are_spelt_alike() -> None:
    spellings = {
        tuple(bytes_of(pa.array([-1, 0, 100], kind))) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())
    }
    assert len(spellings) == 1
    assert bytes_of(pa.array(["b", "a"]).dictionary_encode()) == [b"b", b"a"]


@pytest.mark.parametrize("columns", [[[None, 1]], [[0, 1], ["a", "b"]], [["a", None, "b"], [1, 2, None]]])
def test_a_null_in_any_column_makes_the_key_null(columns: list[list[object]]) -> None:
    spelt = canonical_keys([pa.array(column) for column in columns])
    assert [value.as_py() is None for value in spelt] == [None in row for row in zip(*columns, strict=True)]


def test_a_float_is_refused_as_a_key_by_name() -> None:
    with pytest.raises(KeyTypeError, match="key column 2 is double"):
        canonical_keys([pa.array([1]), pa.array([0.5])])
    with pytest.raises(KeyTypeError, match="key `weight` is float") as refused:
        check_key_type("weight", pa.float32())
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)
    check_key_type("origin", pa.dictionary(pa.int8(), pa.string()))


def test_buckets_never_change() -> None:
    spelt = canonical_keys([pa.array(["EWR", "JFK", "LGA", "", "a longer key than others"])])
    assert bucket_of(spelt, 7).tolist() == BUCKETS
    assert bucket_of(spelt, 1).tolist() == [0] * 5


def test_buckets_do_not_depend_on_neighbours() -> None:
    numbers = np.arange(20_000) % 50
    many = canonical_keys([pa.array(numbers)])
    alone = bucket_of(canonical_keys([pa.array(np.arange(50))]), 16)
    assert (bucket_of(many, 16) == alone[numbers]).all()
    spread = np.bincount(bucket_of(canonical_keys([pa.array(np.arange(100_000))]), 16))
    assert spread.min() > 5_800
    assert spread.max() < 6_700


def test_null_keys_have_neither_bucket_nor_id() -> None:
    spelt = canonical_keys([pa.array([1, None])])
    with pytest.raises(NullKeyError, match="1 of 2 are null"):
        bucket_of(spelt, 4)
    with pytest.raises(NullKeyError, match="1 of 2 are null"):
        KeyIndex().ids(spelt)


@given(known=st.lists(TEXTS, unique=True), blocks=st.lists(st.lists(TEXTS)))
def test_ids_are_dense_in_order_of_first_sight_after_the_known(known: list[str], blocks: list[list[str]]) -> None:
    index = KeyIndex(canonical_keys([pa.array(known, pa.string())]))
    expected = {key: place for place, key in enumerate(known)}
    for block in blocks:
        ids = index.ids(canonical_keys([pa.array(block, pa.string())]))
        assert ids.tolist() == [expected.setdefault(key, len(expected)) for key in block]
    assert index.canonical.to_pylist() == [key.encode() for key in expected]
    assert len(index) == len(expected)


def test_keys_that_share_a_hash_keep_their_own_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "_spread_hash", lambda spelt: np.zeros(len(spelt), dtype=np.uint64))
    index = KeyIndex(canonical_keys([pa.array(["a", "b"])]))
    assert index.ids(canonical_keys([pa.array(["b", "c", "a", "d", "c"])])).tolist() == [1, 2, 0, 3, 2]
    assert index.ids(canonical_keys([pa.array(["d", "e"])])).tolist() == [3, 4]
