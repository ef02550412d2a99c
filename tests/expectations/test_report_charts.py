"""The charts: every row set aside is drawn, places follow values, and days are the zone's."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from expectations.report import Picture, ReportFacts, StreamFacts, render
from expectations.report.charts.arrivals import arrivals
from expectations.report.charts.days import days
from expectations.report.charts.lateness import lateness
from expectations.report.charts.points import OTHER, scene, thinned
from expectations.report.charts.scales import Curve, Scale, lateness_ticks, local_steps, time_ticks
from expectations.report.sections import charts_view
from expectations.report.words import DAY, HOUR, MINUTE, ReportClock

if TYPE_CHECKING:
    from expectations.report.charts.drawing import Layer

NEW_YORK = ReportClock("America/New_York")
TIME = pa.timestamp("us", tz="UTC")


def layers(facts: ReportFacts, screen: int = 0) -> list[Layer]:
    """Give the layers of the first chart."""
    assert facts.picture is not None
    assert facts.start is not None
    assert facts.end is not None
    seen = scene(facts, facts.picture)
    return list(arrivals(seen, facts.picture, NEW_YORK, (facts.start, facts.end)).drawings[screen].layers)


@pytest.mark.parametrize("screen", [0, 1])
def test_every_row_set_aside_is_drawn_however_many_points_are_thinned(week: ReportFacts, screen: int) -> None:
    drawn = layers(week, screen)
    diamonds = [layer for layer in drawn if layer.style == "diamonds"]
    dots = sum(len(layer.shapes) for layer in drawn if layer.style == "dots")
    assert len(diamonds[0].shapes) == week.stream("punctual.diverted").rows.num_rows
    assert dots < week.stream("punctual").counts["data"]


def test_of_very_many_rows_set_aside_some_are_drawn_and_that_is_told(week: ReportFacts) -> None:
    side = week.stream("punctual.diverted")
    many = dataclasses.replace(side, rows=pa.concat_tables([side.rows] * 100))
    facts = dataclasses.replace(week, streams=(*(each for each in week.streams if each is not side), many))
    (gone,) = (layer for layer in layers(facts) if layer.style == "diamonds")
    assert 0 < len(gone.shapes) <= 3_000 < many.rows.num_rows
    assert f"; {len(gone.shapes):,} of {many.rows.num_rows:,} rows set aside are drawn." in render(facts)


def test_thinning_is_told_with_its_numbers(week: ReportFacts) -> None:
    dots = sum(len(layer.shapes) for layer in layers(week) if layer.style == "dots")
    assert f"Thinned: {dots:,} of {week.stream('punctual').counts['data']:,} data rows" in render(week)


def test_few_points_are_not_thinned_and_nothing_is_said(week: ReportFacts) -> None:
    streams = tuple(dataclasses.replace(stream, rows=stream.rows.slice(0, 300)) for stream in week.streams)
    assert "Thinned" not in render(dataclasses.replace(week, streams=streams))


def test_thinning_keeps_lone_points_and_at_most_what_was_asked() -> None:
    random = np.random.default_rng(7)
    crowd = random.normal(200, 4, (5000, 2))
    lone = np.array([[10.0, 10.0], [900.0, 30.0], [500.0, 400.0]])
    points = np.concatenate([crowd, lone])
    x, y = (np.asarray(points[:, axis], dtype=np.float64) for axis in (0, 1))
    kept = thinned(x, y, 600)
    assert {5000, 5001, 5002} <= set(kept.tolist())
    assert 300 < len(kept) <= 600
    assert (np.diff(kept) > 0).all()


def test_thinning_holds_its_bound_when_every_point_is_alone() -> None:
    place = np.arange(100_000)
    x, y = (np.asarray(axis * 20, dtype=np.float64) for axis in (place % 1000, place // 1000))
    assert 0 < len(thinned(x, y, 500)) <= 500


def test_rows_above_the_line_are_those_set_aside(week: ReportFacts) -> None:
    assert week.picture is not None
    seen = scene(week, week.picture)

    def promised(arrival: np.ndarray, side: str) -> np.ndarray:
        place = np.searchsorted(seen.ctis.arrival, arrival, side=side) - 1  # type: ignore[call-overload]
        return np.where(place >= 0, seen.ctis.event_time[np.maximum(place, 0)], -(2**62))

    assert (seen.side.event_time < promised(seen.side.arrival, "right")).all()
    assert (seen.data.event_time >= promised(seen.data.arrival, "left")).all()


def test_a_scale_keeps_order_and_stays_inside() -> None:
    for curve in Curve:
        scale = Scale(low=0, high=1000, start=500, end=20, curve=curve, bend=10)
        values = scale(np.array([-5, 0, 1, 10, 999, 1000, 4000]))
        assert (np.diff(values) <= 0).all()
        assert values.min() == pytest.approx(20)
        assert values.max() == pytest.approx(500)


def test_lateness_ticks_name_zero_and_keep_their_distance() -> None:
    scale = Scale(low=-20 * MINUTE, high=14 * HOUR, start=400, end=10, curve=Curve.BENT, bend=15 * MINUTE)
    ticks = lateness_ticks(scale, 24)
    places = sorted(tick.at for tick in ticks)
    assert "0" in {tick.label for tick in ticks}
    assert min(np.diff(places)) >= 24
    assert {"1 h", "15 min", "4 h"} <= {tick.label for tick in ticks}


@pytest.mark.parametrize(("start", "hours"), [(1_362_891_600_000_000, 23), (1_383_451_200_000_000, 25)])
def test_days_are_as_long_as_the_zone_makes_them(start: int, hours: int) -> None:
    steps = local_steps(NEW_YORK, start, start + 2 * DAY, days=1)
    assert steps[1] - steps[0] == hours * HOUR


def test_ticks_are_in_the_flows_zone() -> None:
    start = 1_357_016_400_000_000
    scale = Scale(low=start, high=start + 7 * DAY, start=0, end=560)
    ticks = time_ticks(NEW_YORK, scale, 64)
    assert [tick.label for tick in ticks][:2] == ["Tue 1 Jan", "Wed 2 Jan"]
    assert ticks[0].at == 0


def test_the_bars_of_the_distribution_count_every_row_once(week: ReportFacts) -> None:
    assert week.picture is not None
    seen = scene(week, week.picture)
    table = lateness(seen, week.picture).table
    totals = [sum(int(row[column].replace(",", "")) for row in table) for column in (1, 2)]
    assert totals == [len(seen.data), len(seen.side)]


def test_the_delay_is_an_edge_of_the_distribution(week: ReportFacts) -> None:
    assert week.picture is not None
    for delay in (7 * MINUTE, 120 * MINUTE, 131 * MINUTE + 17):
        picture = dataclasses.replace(week.picture, delay=delay)
        seen = scene(week, picture)
        marks = lateness(seen, picture).drawings[0].marks
        late = int((seen.data.landed_at - seen.data.event_time >= delay).sum())
        assert f"{late:,} stayed" in marks[0].lines


def test_days_and_keys_count_every_row_and_timer_once(week: ReportFacts) -> None:
    assert week.picture is not None
    assert week.start is not None
    assert week.end is not None
    seen = scene(week, week.picture)
    chart = days(seen, NEW_YORK, (week.start, week.end))
    total = sum(int(value.replace(",", "")) for row in chart.table for value in row[1:])
    assert len(chart.table) == 7
    assert total == len(seen.data) + len(seen.timers)


def stream(rows: list[dict[str, object]], key: pa.DataType) -> StreamFacts:
    """Make a stream from a few rows."""
    times = [(name, TIME) for name in ("arrival", "event_time", "landed_at")]
    schema = pa.schema([("kind", pa.string()), *times, ("sensor", key)])
    return StreamFacts(name="s", does="", rows=pa.Table.from_pylist(rows, schema))


def test_a_row_without_event_time_has_a_day_all_the_same(empty: ReportFacts) -> None:
    at = 1_357_016_400_000_000
    rows = [{"kind": "data", "arrival": at + seconds, "event_time": None, "landed_at": at} for seconds in range(2)]
    rows.append({"kind": "data", "arrival": at + 9, "event_time": at, "landed_at": at})
    facts = odd([{**row, "sensor": "a"} for row in rows], pa.string(), empty)
    assert facts.picture is not None
    seen = scene(facts, facts.picture)
    assert (len(seen.data), seen.untimed) == (1, 2)
    (row,) = days(seen, NEW_YORK, (at, at + DAY)).table
    assert row[1] == "3"


def odd(rows: list[dict[str, object]], key: pa.DataType, empty: ReportFacts) -> ReportFacts:
    """Give a run of one stream and no more."""
    return dataclasses.replace(empty, streams=(stream(rows, key),), picture=Picture(stream="s", key="sensor", delay=0))


def test_many_keys_share_one_colour_beyond_the_eighth(empty: ReportFacts) -> None:
    rows: list[dict[str, object]] = [
        {"kind": "data", "arrival": n * 1000, "event_time": n * 990, "landed_at": n * 1000, "sensor": n % 30}
        for n in range(1, 400)
    ]
    facts = odd(rows, pa.int64(), empty)
    assert facts.picture is not None
    seen = scene(facts, facts.picture)
    assert (len(seen.keys), seen.others) == (8, 22)
    assert (seen.data.key == OTHER).any()
    assert "22 other keys" in render(facts)


def test_odd_rows_are_drawn_or_told(empty: ReportFacts) -> None:
    infinity = 253_402_300_799_999_999
    rows: list[dict[str, object]] = [
        {"kind": "data", "arrival": 10, "event_time": 10, "landed_at": 10, "sensor": None},
        {"kind": "data", "arrival": 11, "event_time": None, "landed_at": 11, "sensor": "a"},
        {"kind": "start", "arrival": 12, "event_time": -62_135_596_800_000_000, "landed_at": 12, "sensor": "a"},
        {"kind": "cti", "arrival": 13, "event_time": infinity, "landed_at": None, "sensor": None},
    ]
    page = render(odd(rows, pa.string(), empty))
    assert "1 row without event time cannot be drawn" in page
    assert "nan" not in page.lower().replace("finance", "")


def test_one_row_alone_can_be_drawn(empty: ReportFacts) -> None:
    rows: list[dict[str, object]] = [{"kind": "data", "arrival": 5, "event_time": 5, "landed_at": 5, "sensor": "a"}]
    facts = odd(rows, pa.string(), empty)
    assert charts_view(facts, NEW_YORK) is not None
    render(facts)


def test_a_long_history_is_drawn_in_longer_steps(empty: ReportFacts) -> None:
    rows: list[dict[str, object]] = [
        {"kind": "data", "arrival": n * DAY, "event_time": n * DAY, "landed_at": n * DAY, "sensor": "a"}
        for n in range(1, 400, 3)
    ]
    assert "Rows per 28 days" in render(odd(rows, pa.string(), empty))
