"""The content hash says what a table says: the same under any cut, order of columns, width and engine mode."""

from __future__ import annotations

import datetime as dt
import pickle
from decimal import Decimal

import numba
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.engine.columnar.content import ContentHash, ContentTypeError, content_hash

MOMENT = dt.datetime(2013, 3, 10, 7, tzinfo=dt.UTC)
ROWS: list[dict[str, object]] = [
    {"a": 1, "f": 0.5, "s": "x", "b": b"\x00", "t": MOMENT, "d": dt.date(2013, 1, 1), "p": True, "m": Decimal("1.50")},
    {"a": -2, "f": float("nan"), "s": "", "b": b"", "t": None, "d": None, "p": False, "m": None},
    {"a": None, "f": -0.0, "s": "a longer text, of more than sixteen bytes", "b": None, "t": MOMENT, "d": None},
    {"a": 1, "f": None, "s": None, "b": b"\x00\x00", "t": MOMENT, "d": dt.date(1969, 1, 1), "m": Decimal("-1.50")},
]
SCHEMA = pa.schema(
    [
        ("a", pa.int64()),
        ("f", pa.float64()),
        ("s", pa.string()),
        ("b", pa.binary()),
        ("t", pa.timestamp("us", tz="UTC")),
        ("d", pa.date32()),
        ("p", pa.bool_()),
        ("m", pa.decimal128(10, 2)),
    ]
)
TABLE = pa.Table.from_pylist([{name: row.get(name) for name in SCHEMA.names} for row in ROWS], SCHEMA)
FIXED = "4:c5e4a4b1da915e47020386c48669f1e2"
FIXED_NESTED = "5:7d038cf4c689fe20d0430d982a6cbb18"
NESTED = pa.table(
    {
        "l": pa.array([[1, 2], [], None, [2, 1], [None]], pa.list_(pa.int64())),
        "s": pa.array([{"x": 1, "y": "a"}, {"x": None, "y": "a"}, None, {"x": 1, "y": None}, {"x": 2, "y": "a"}]),
    }
)


def hash_of(values: list[object], kind: pa.DataType) -> ContentHash:
    return content_hash(pa.table({"v": pa.array(values, kind)}))


@given(cut=st.integers(0, 4), order=st.permutations(range(4)), columns=st.permutations(SCHEMA.names))
def test_cuts_and_the_order_of_rows_and_columns_do_not_matter(cut: int, order: list[int], columns: list[str]) -> None:
    moved = TABLE.take(order).select(columns)
    assert content_hash(moved[:cut]) + content_hash(moved[cut:]) == content_hash(TABLE)


@pytest.mark.parametrize("table", [TABLE, NESTED])
def test_every_single_change_of_a_value_is_seen(table: pa.Table) -> None:
    whole = content_hash(table)
    for name in table.schema.names:
        place = table.schema.get_field_index(name)
        for row in range(1, table.num_rows):
            shifted = table.column(name).take([*range(row), 0, *range(row + 1, table.num_rows)])
            if shifted.to_pylist() != table.column(name).to_pylist():
                assert content_hash(table.set_column(place, name, shifted)) != whole, (name, row)


def test_values_swapped_between_rows_are_seen() -> None:
    assert content_hash(pa.table({"a": [1, 2], "b": [1, 2]})) != content_hash(pa.table({"a": [1, 2], "b": [2, 1]}))


def test_values_swapped_between_columns_are_seen() -> None:
    assert content_hash(pa.table({"a": [1], "b": [2]})) != content_hash(pa.table({"a": [2], "b": [1]}))


@pytest.mark.parametrize("width", [pa.int8(), pa.int16(), pa.int32(), pa.uint8()])
def test_integers_count_by_value(width: pa.DataType) -> None:
    assert hash_of([1, 100, None], width) == hash_of([1, 100, None], pa.int64())


def test_floats_have_one_nan_and_two_zeros() -> None:
    odd_nan = np.array([0x7FF8000000000123], dtype=np.uint64).view(np.float64)
    assert content_hash(pa.table({"v": odd_nan})) == hash_of([float("nan")], pa.float64())
    assert hash_of([-0.0], pa.float64()) != hash_of([0.0], pa.float64())
    assert hash_of([0.5], pa.float32()) == hash_of([0.5], pa.float64())


def test_families_with_the_same_bits_differ() -> None:
    kinds = [pa.int64(), pa.timestamp("us", tz="UTC"), pa.date32(), pa.bool_(), pa.float64(), pa.string(), pa.binary()]
    values: list[list[object]] = [[0], [0], [0], [False], [0.0], [""], [b""]]
    assert (
        len({hash_of(value, kind) for value, kind in zip(values, kinds, strict=True)} | {hash_of([None], pa.int64())})
        == 8
    )


def test_what_stands_under_a_null_does_not_count() -> None:
    under = pa.array(np.array([7, 8]), mask=np.array([True, False]))
    assert content_hash(pa.table({"v": under})) == hash_of([None, 8], pa.int64())
    text = pa.Array.from_buffers(
        pa.string(),
        2,
        [pa.py_buffer(b"\x02"), pa.py_buffer(np.array([0, 2000, 2001], "i4")), pa.py_buffer(b"x" * 2001)],
    )
    assert content_hash(pa.table({"v": text})) == hash_of([None, "x"], pa.string())


@pytest.mark.parametrize("size", [1, 7, 8, 9, 16, 1023, 1024, 1025, 5000])
def test_text_of_any_length_is_seen_to_its_last_byte(size: int) -> None:
    text = "y" * size
    seen = {
        hash_of(["", text, other], pa.string()) for other in (text, text + "y", text[:-1] + "z", text + "\x00", None)
    }
    assert len(seen) == 5
    assert hash_of([text], pa.string()) == hash_of([text], pa.large_string())


@given(rows=st.lists(st.sampled_from(range(4)), max_size=60))
def test_the_compiled_pass_says_what_the_plain_one_says(rows: list[int]) -> None:
    table = TABLE.take(pa.array(rows, pa.int64()))
    compiled = content_hash(table)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(vars(numba.config), "DISABLE_JIT", 1)
        assert content_hash(table) == compiled


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])
def test_text_that_repeats_counts_as_text_that_does_not(kind: pa.DataType) -> None:
    few = pa.table(
        {"v": pa.array(["", "a", None, "a longer text, of more than sixteen bytes"], pa.string()).cast(kind)}
    )
    often = pa.concat_tables([few] * 300).combine_chunks()
    single = content_hash(few)
    assert content_hash(often) == sum([single] * 300, ContentHash())


def test_slices_dictionaries_and_batches_say_the_same() -> None:
    table = pa.concat_tables([TABLE, TABLE])
    assert content_hash(table[2:6].combine_chunks()) == content_hash(table[2:4]) + content_hash(table[4:6])
    encoded = TABLE.set_column(2, "s", TABLE.column("s").dictionary_encode())
    assert content_hash(encoded) == content_hash(TABLE)
    assert content_hash(TABLE.to_batches()[0]) == content_hash(TABLE)


def test_nested_values_cut_alike() -> None:
    assert content_hash(NESTED[:2]) + content_hash(NESTED[2:]) == content_hash(NESTED)
    assert hash_of([[[1], [2]]], pa.list_(pa.list_(pa.int8()))) != hash_of([[[1, 2]]], pa.list_(pa.list_(pa.int8())))


def test_what_is_left_out_does_not_count() -> None:
    table = TABLE.append_column("commit", pa.array([1, 2, 3, 4]))
    assert content_hash(table, leave_out=frozenset({"commit"})) == content_hash(TABLE)
    assert content_hash(table) != content_hash(TABLE)


def test_its_text_can_be_read_back() -> None:
    whole = content_hash(TABLE)
    assert ContentHash.from_text(whole.text) == whole
    with pytest.raises(ValueError, match="32 hexadecimal digits"):
        ContentHash.from_text("no")


def test_a_type_without_canonical_bytes_is_refused_by_name() -> None:
    with pytest.raises(ContentTypeError, match="column `v` is time32") as refused:
        hash_of([1], pa.time32("s"))
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)


def test_the_hash_never_changes() -> None:
    assert content_hash(TABLE).text == FIXED
    assert content_hash(NESTED).text == FIXED_NESTED
