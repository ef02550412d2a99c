from __future__ import annotations

import datetime as dt
from itertools import pairwise

import pytest

from pipelines.flows.durations import parse
from pipelines.flows.errors import GridError
from pipelines.flows.grid import intervals
from pipelines.flows.model import Flow

HOUR = 3_600_000_000


def flow(every: str = "1d", timezone: str = "America/New_York") -> Flow:
    return Flow(name="f", sources={}, streams={}, every=parse(every), timezone=timezone)


def hours(found: list[tuple[int, int]]) -> list[float]:
    return [(end - start) / HOUR for start, end in found]


def ticks(text: str) -> int:
    return int(dt.datetime.fromisoformat(text).timestamp()) * 1_000_000


def test_days_are_days_of_the_timezone() -> None:
    assert intervals(flow(), "2013-01-01", "2013-01-03") == [
        (ticks("2013-01-01T05:00Z"), ticks("2013-01-02T05:00Z")),
        (ticks("2013-01-02T05:00Z"), ticks("2013-01-03T05:00Z")),
    ]


def test_10_march_2013_has_23_hours_in_new_york() -> None:
    assert hours(intervals(flow(), "2013-03-09", "2013-03-12")) == [24, 23, 24]
    assert intervals(flow(), "2013-03-10", "2013-03-11") == [(ticks("2013-03-10T05:00Z"), ticks("2013-03-11T04:00Z"))]


def test_3_november_2013_has_25_hours_in_new_york() -> None:
    assert hours(intervals(flow(), "2013-11-02", "2013-11-05")) == [24, 25, 24]
    assert intervals(flow(), "2013-11-03", "2013-11-04") == [(ticks("2013-11-03T04:00Z"), ticks("2013-11-04T05:00Z"))]


def test_quarters_of_a_day_follow_the_clock_on_the_wall() -> None:
    assert hours(intervals(flow("6h"), "2013-03-10", "2013-03-11")) == [5, 6, 6, 6]
    assert hours(intervals(flow("6h"), "2013-11-03", "2013-11-04")) == [7, 6, 6, 6]


def test_each_hour_is_an_hour_even_where_one_comes_twice_or_not_at_all() -> None:
    assert hours(intervals(flow("1h"), "2013-03-10", "2013-03-11")) == [1] * 23
    assert hours(intervals(flow("1h"), "2013-11-03", "2013-11-04")) == [1] * 25


def test_a_day_whose_midnight_is_left_out_begins_behind_it() -> None:
    assert hours(intervals(flow(timezone="America/Sao_Paulo"), "2012-10-20", "2012-10-23")) == [24, 23, 24]


def test_a_day_with_two_midnights_begins_at_the_first() -> None:
    assert hours(intervals(flow(timezone="America/Havana"), "2012-11-03", "2012-11-06")) == [24, 25, 24]


def test_a_year_is_filled_without_gap() -> None:
    found = intervals(flow(), "2013-01-01", "2014-01-01")
    assert len(found) == 365
    assert all(before[1] == after[0] for before, after in pairwise(found))


@pytest.mark.parametrize(
    "start",
    ["2013-03-10", dt.date(2013, 3, 10), "2013-03-10T00:00", "2013-03-10T05:00Z", "2013-03-10T06:00+01:00"],
)
def test_the_same_instant_may_be_said_in_many_ways(start: str | dt.date) -> None:
    assert intervals(flow(), start, "2013-03-11")[0][0] == ticks("2013-03-10T05:00Z")


def test_several_days_are_counted_from_1970() -> None:
    assert hours(intervals(flow("7d", "UTC"), "1970-01-08", "1970-01-22")) == [168, 168]
    with pytest.raises(GridError) as refused:
        intervals(flow("7d", "UTC"), "1970-01-09", "1970-01-22")
    assert (refused.value.before, refused.value.after) == ("1970-01-08T00:00:00+00:00", "1970-01-15T00:00:00+00:00")


@pytest.mark.parametrize(
    ("start", "end"), [("2013-03-10T01:00", "2013-03-12"), ("2013-03-10", "2013-03-12T00:00:00.000001")]
)
def test_a_span_off_the_grid_is_refused_with_the_nearest_cuts(start: str, end: str) -> None:
    with pytest.raises(GridError, match=r"the nearest are 2013-03-1.*-04:00") as refused:
        intervals(flow(), start, end)
    assert refused.value.before


@pytest.mark.parametrize(
    ("start", "end"),
    [("2013-03-10", "2013-03-10"), ("2013-03-11", "2013-03-10"), ("soon", "2013-03-10"), ("0001-01-01", "2013-03-10")],
)
def test_a_span_that_is_none_is_refused(start: str, end: str) -> None:
    with pytest.raises(GridError):
        intervals(flow(), start, end)
