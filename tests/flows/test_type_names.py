from __future__ import annotations

import pytest

from pipelines.flows.type_names import SPELLED, TypeName, read_type


@pytest.mark.parametrize("spelled", SPELLED)
def test_whatever_is_offered_can_be_read(spelled: str) -> None:
    assert read_type(spelled) is not None


def test_types_stand_inside_each_other() -> None:
    read = read_type(" struct< a : list<decimal(38,0)>, b: timestamp >")
    assert read == TypeName(
        "struct",
        inner=(
            ("a", TypeName("list", inner=(("item", TypeName("decimal", digits=(38, 0))),))),
            ("b", TypeName("timestamp")),
        ),
    )
    assert (read.holds("timestamp"), read.holds("decimal"), read.holds("date")) == (True, True, False)


@pytest.mark.parametrize(
    "spelled",
    [
        *("", "int", "int64 int64", "list", "list<", "list<>", "list<int8", "list<int8>>", "decimal", "decimal(10)"),
        *("decimal(0,0)", "decimal(39,1)", "decimal(3,4)", "decimal(a,b)", "struct<>", "struct<a>", "struct<a:int8"),
        *("struct<a: int8, a: int8>", "struct<a: int8;>", "list<int8]", "struct<1: int8>"),
        *('list<string>"', "int64\n;", "bool \x00", "list<" * 5_000, "decimal(" + "9" * 5_000 + ",1)"),
    ],
)
def test_what_is_no_type_is_none(spelled: str) -> None:
    assert read_type(spelled) is None
