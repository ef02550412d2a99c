from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.flows.durations import LONGEST, parse, spell
from pipelines.flows.errors import DurationError

READABLE = [
    ("90", 90_000_000),
    (90, 90_000_000),
    (Decimal("0.000001"), 1),
    ("0.1", 100_000),
    ("1.", 1_000_000),
    (".5", 500_000),
    ("10ms", 10_000),
    ("1m30s", 90_000_000),
    ("1m 30s", 90_000_000),
    ("1.5h", 5_400_000_000),
    ("1d2h3m4s5ms6us", 93_784_005_006),
    ("-2h", -7_200_000_000),
    ("-1us", -1),
    ("0", 0),
    (" 1d ", 86_400_000_000),
    ("9007199254.740993", 9_007_199_254_740_993),
]


@pytest.mark.parametrize(("text", "ticks"), READABLE)
def test_durations_are_read_exactly(text: str | int | Decimal, ticks: int) -> None:
    assert parse(text) == ticks


@pytest.mark.parametrize(
    "text",
    [
        "",
        "s",
        "1x",
        "1m1h",
        "1s1s",
        "0.5us",
        "0.0000001",
        "1e3",
        "nan",
        "1m-30s",
        "--1s",
        "+1s",
        "1:30",
        "٣s",
        "9" * 400,
    ],
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(DurationError):
        parse(text)


@pytest.mark.parametrize(("text", "near"), [("10 minutes", "10m"), ("1H", "1h"), ("5sec", "5s"), ("3 days", "3d")])
def test_another_word_for_a_unit_is_offered_the_right_one(text: str, near: str) -> None:
    with pytest.raises(DurationError) as refused:
        parse(text)
    assert refused.value.nearest == near
    assert parse(near)


def test_a_parameter_stands_for_its_value() -> None:
    assert parse("${gap}", {"gap": "1m"}) == 60_000_000


def test_an_unknown_parameter_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(DurationError) as refused:
        parse("${gab}", {"gap": "1m"})
    assert refused.value.nearest == "gap"


def test_a_parameter_does_not_stand_for_another_one() -> None:
    with pytest.raises(DurationError):
        parse("${a}", {"a": "${b}", "b": "1s"})


@given(st.integers(-LONGEST, LONGEST))
def test_what_is_spelled_is_read_back(ticks: int) -> None:
    assert parse(spell(ticks)) == ticks
