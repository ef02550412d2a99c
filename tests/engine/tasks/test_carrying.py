"""The carry as tables: records and held rows come back as they went, whatever their fields hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.engine.columnar.columns import TIME, stream_schema
from pipelines.engine.tasks import carry as carrying
from pipelines.engine.tasks.carry import CarryChange
from pipelines.operators.registry import OPERATORS
from pipelines.operators.rows import INFINITY, MAX_TIME, MIN_TIME, NULL
from pipelines.operators.scan import Per
from tests.wide import drawn as examples_of

if TYPE_CHECKING:
    from pipelines.operators.scan import CarryPart

PARTS = [part for operator in OPERATORS.values() for part in operator.parts]
NAMED = pytest.mark.parametrize("part", PARTS, ids=lambda part: "-".join([part.name, *part.record.names]))
INSTANTS = st.integers(MIN_TIME, MAX_TIME) | st.sampled_from([NULL, INFINITY, MIN_TIME, MAX_TIME, 0])
NUMBERS = st.integers(NULL, INFINITY)
KEY = [pa.field("key", pa.string())]
EVENT = pa.field("event", pa.int64())


def records_of(part: CarryPart, draw: st.DataObject) -> np.ndarray:
    """Draw a few records with any values that an operator may leave in them."""
    records = np.zeros(draw.draw(st.integers(0, 4)), dtype=part.record)
    for name in part.record.names or ():
        values = INSTANTS if name in part.instants else NUMBERS
        records[name] = [draw.draw(values) for _ in records]
    return records


def names_of(part: CarryPart, rows: int) -> list[pa.Array]:
    extra = [pa.array(range(rows), pa.int64())] if part.per in {Per.PORT, Per.EVENT} else []
    return [pa.array([f"k{i}" for i in range(rows)], pa.string()), *extra]


@NAMED
@settings(max_examples=examples_of(25, 100))
@given(draw=st.data())
def test_records_come_back(part: CarryPart, draw: st.DataObject) -> None:
    records = records_of(part, draw)
    schema = carrying.part_schema(part, KEY, EVENT)
    table = carrying.part_table(part, records, schema, 5, CarryChange.BASE, names_of(part, len(records)))
    assert table.schema == schema
    assert (carrying.to_records(part, table) == records).all()
    assert table["commit"].to_pylist() == [5] * len(records)
    assert table["change"].to_pylist() == ["base"] * len(records)


@NAMED
def test_a_carry_table_has_a_typed_column_a_field(part: CarryPart) -> None:
    schema = carrying.part_schema(part, KEY, EVENT)
    assert schema.names[:3] == ["commit", "change", "key"]
    for name in part.record.names or ():
        assert schema.field(name).type == (TIME if name in part.instants else pa.int64())


def test_every_instant_that_a_part_declares_is_a_field_of_it() -> None:
    for operator in OPERATORS.values():
        fields = {name for part in operator.parts for name in part.record.names or ()}
        assert set().union(*(part.instants for part in operator.parts)) <= fields


def test_held_rows_come_back_in_their_order() -> None:
    schema = stream_schema(pa.schema([("n", pa.int64())]))
    rows = pa.Table.from_pylist([{"n": n, "commit": 3} for n in (5, 1, 9)], schema=schema)
    held_schema = carrying.held_schema(schema)
    table = carrying.held_table(rows, np.array([2, 7, 4]), held_schema, 8, CarryChange.BASE)
    assert table.schema == held_schema
    assert table["commit"].to_pylist() == [8] * 3, "the commit that wrote the carry, not the one that landed the row"
    back, positions = carrying.held_rows(table.take(pa.array([1, 0, 2])), schema)
    assert back["n"].to_pylist() == [5, 9, 1]
    assert positions.tolist() == [2, 4, 7]
    assert back.schema == schema


def test_ports_are_laid_out_group_by_group() -> None:
    records = np.zeros(4, dtype=[("left", "i8")])
    records["left"] = [11, 20, 10, 21]
    laid = carrying.group_major(np.array([0, 1, 0, 1]), np.array([1, 0, 0, 1]), 2, records)
    assert laid["left"].tolist() == [10, 11, 20, 21]
