"""The curve of delays: every value stands where its axis says, and the marks say what the facts say."""

from __future__ import annotations

import dataclasses
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

from expectations.report.charts.delays import DelayFacts, delay_charts, spread
from expectations.report.figure import delays_figure
from expectations.report.words import HOUR

FACTS = DelayFacts(
    flow="flights <1>",
    stream="punctual",
    span="2013-01-01",
    events=200,
    share="99 %",
    current=HOUR,
    advised=4 * HOUR,
    bend=HOUR,
    late={0: 50, HOUR: 18, 4 * HOUR: 2, 8 * HOUR: 0},
    half={0: HOUR, 8 * HOUR: 9 * HOUR},
    most={0: 2 * HOUR, 8 * HOUR: 12 * HOUR},
)


def heights(path: str) -> list[float]:
    return [float(point.split()[1]) for point in path.removeprefix("M").split("L")]


def test_fewer_late_events_stand_lower_and_longer_waits_higher() -> None:
    late, waits = delay_charts(FACTS)
    fall = heights(late.drawings[0].layers[0].shapes[0].d)
    assert fall == sorted(fall)
    assert fall[-1] == late.drawings[0].frame.bottom
    assert len(fall) == len(FACTS.late)
    for layer in waits.drawings[0].layers:
        rise = heights(layer.shapes[0].d)
        assert rise == sorted(rise, reverse=True)


def test_both_delays_are_marked_with_what_they_leave_late() -> None:
    marks = delay_charts(FACTS)[0].drawings[0].marks
    assert [mark.lines for mark in marks] == [
        ("1 h: the flow's", "18 of 200 late"),
        ("4 h: enough for 99 %", "2 of 200 late"),
    ]
    same = dataclasses.replace(FACTS, advised=HOUR)
    assert delay_charts(same)[0].drawings[0].marks[0].lines[0] == "1 h: the flow's and enough for 99 %"
    assert len(delay_charts(dataclasses.replace(FACTS, advised=None))[0].drawings[0].marks) == 1


@pytest.mark.parametrize("advised", [HOUR + 60_000_000, 8 * HOUR])
def test_words_of_marks_neither_cross_nor_leave_the_picture(advised: int) -> None:
    facts = dataclasses.replace(FACTS, advised=advised, late={**FACTS.late, advised: 1})
    first, second = delay_charts(facts)[0].drawings[0].marks
    assert (first.side, second.side) == (("end", "start") if advised < 8 * HOUR else ("start", "end"))


def test_the_file_is_whole_and_escapes_names() -> None:
    text = delays_figure(FACTS)
    root = ET.fromstring(text)  # noqa: S314 - our own
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "flights &lt;1&gt; · punctual" in text
    assert "Exact for 200 events of 2013-01-01; the future may differ." in text
    assert text == delays_figure(FACTS)


def test_without_any_wait_the_charts_are_drawn_all_the_same() -> None:
    bare = dataclasses.replace(FACTS, half={}, most={}, late={0: 0, HOUR: 0, 4 * HOUR: 0})
    assert delay_charts(bare)[1].drawings[0].layers == ()
    ET.fromstring(delays_figure(bare))  # noqa: S314 - our own


def test_the_axis_is_even_near_zero_and_compressed_beyond() -> None:
    delays = spread(-HOUR, 100 * HOUR, HOUR, 9)
    steps = [after - before for before, after in pairwise(delays)]
    assert (delays[0], delays[-1]) == (-HOUR, 100 * HOUR)
    assert steps[-1] > 10 * steps[0]


def test_on_a_phone_the_marks_say_the_delay_alone() -> None:
    for chart in delay_charts(FACTS):
        wide, narrow = chart.drawings
        assert [mark.at for mark in narrow.marks] != [mark.at for mark in wide.marks]
        assert [mark.lines for mark in narrow.marks] in ([("1 h",), ("4 h",)], [(), ()])


def test_on_a_phone_words_of_near_marks_go_apart() -> None:
    near = dataclasses.replace(FACTS, advised=HOUR + 900_000_000, late={**FACTS.late, HOUR + 900_000_000: 12})
    assert [mark.side for mark in delay_charts(near)[0].drawings[1].marks] == ["end", "start"]
