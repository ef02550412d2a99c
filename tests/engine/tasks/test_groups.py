"""Groups of windows may be null in every type that they may have."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from pipelines.engine.columnar.columns import TIME
from pipelines.engine.columnar.keys import canonical_keys
from pipelines.engine.tasks.numbered import _filled

TYPES = (
    *(pa.bool_(), pa.int8(), pa.int64(), pa.string(), pa.binary()),
    *(pa.date32(), TIME, pa.decimal128(10, 2), pa.decimal128(38, 0)),
)


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_a_null_is_given_a_value_that_a_key_can_have(kind: pa.DataType) -> None:
    filled = _filled(pa.chunked_array([pa.nulls(2, kind)]))
    assert (filled.type, filled.null_count) == (kind, 0)
    assert canonical_keys([filled.combine_chunks()]).null_count == 0


def test_values_that_are_there_stay() -> None:
    given = pa.chunked_array([pa.array([Decimal("1.50"), None], pa.decimal128(10, 2))])
    assert _filled(given)[0].as_py() == Decimal("1.50")
