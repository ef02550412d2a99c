"""The curve of an advance_time stream's delay: how many events each delay would leave late, and how long results wait.

Both charts share the axis of delays, so that what one delay buys stands above what it costs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from expectations.report.charts.drawing import (
    Chart,
    ChartMark,
    Drawing,
    DrawnShape,
    Layer,
    Legend,
    Tick,
    Width,
    frame,
    number,
)
from expectations.report.charts.scales import Curve, Scale, lateness_ticks
from expectations.report.words import duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from expectations.report.charts.drawing import Frame

PERCENTS = (0.01, 0.1, 0.5, 1, 2, 5, 10, 20, 30, 50, 75, 100)
HEIGHTS = {Width.WIDE: 300, Width.NARROW: 260}
NEAR = {Width.WIDE: 150.0, Width.NARROW: 72.0}
"""Pixels between two marks below which the words of one go to its left."""


@dataclass(frozen=True, kw_only=True)
class DelayLine:
    """What one delay would have done; times in ticks."""

    delay: int
    spelled: str
    """As a flow's file has it."""
    late: int
    """Events that are late."""
    share: str
    """Of all events, in words."""
    half: int | None
    """What half of the events that are on time wait at most; None where none was released."""
    most: int | None
    """What 99 % of them wait at most."""


@dataclass(frozen=True, kw_only=True)
class DelayFacts:
    """What the delays of one stream would have done; times in ticks, everything by delay."""

    LATE: ClassVar[int] = 240
    """How many delays the curve of late events is worth."""
    WAITS: ClassVar[int] = 48
    """How many delays the curves of waits are worth, each of which is a pass over the events."""

    flow: str
    stream: str
    span: str
    events: int
    share: str
    """What part of the events is to be on time, in words."""
    current: int
    advised: int | None
    """The delay that a person would write for the share; None where none gets it on time."""
    bend: int
    """Where the axis of delays turns from even to logarithmic."""
    late: Mapping[int, int]
    """Events that are late."""
    half: Mapping[int, int]
    """What half of the events wait at most."""
    most: Mapping[int, int]
    """What 99 % of the events wait at most."""
    lines: tuple[DelayLine, ...] = ()
    """Some of the delays, ascending, as a table has them."""


def spread(low: int, high: int, bend: int, count: int, more: Iterable[int] = ()) -> list[int]:
    """Choose delays that stand evenly on the axis, ascending.

    >>> spread(0, 10, 100, 3, [7])
    [0, 5, 7, 10]
    """
    first, last = (float(np.arcsinh(value / bend)) for value in (low, high))
    even = np.sinh(np.linspace(first, last, count)) * bend
    return sorted({*(round(value) for value in even.tolist()), *more})


def delay_charts(facts: DelayFacts) -> tuple[Chart, ...]:
    """Draw the two charts, late events above waits."""
    return _late(facts), _waits(facts)


def _late(facts: DelayFacts) -> Chart:
    return Chart(
        name="late",
        title="Events that would be late",
        lead="Upright: per cent of all events, by the square root, so that few stay visible.",
        drawings=tuple(_late_drawn(facts, width) for width in Width),
        legend=(Legend(style="line", tone="late", label="late"),),
        y_title="events that would be late",
    )


def _late_drawn(facts: DelayFacts, width: Width) -> Drawing:
    box = frame(width, HEIGHTS[width])
    x, percents = _axis(facts, box), {delay: 100 * late / facts.events for delay, late in facts.late.items()}
    y = _root(max(*percents.values(), 1.0), box)
    shapes = DrawnShape(d=_line(percents, x, y))
    return Drawing(
        frame=box,
        label=f"Share of {facts.events:,} events that would be late, by delay",
        x_ticks=lateness_ticks(x, 62),
        y_ticks=_percent_ticks(y),
        layers=(Layer(style="line", tone="late", shapes=(shapes,)),),
        marks=_marks(facts, x, width),
    )


def _waits(facts: DelayFacts) -> Chart:
    return Chart(
        name="waits",
        title="How long events on time would wait for their release",
        lead="From the arrival of an event to that of the first CTI past its start.",
        drawings=tuple(_waits_drawn(facts, width) for width in Width),
        legend=(
            Legend(style="line", tone="kept", label="half at most"),
            Legend(style="line", tone="cti", label="99 % at most"),
        ),
        y_title="wait",
    )


def _waits_drawn(facts: DelayFacts, width: Width) -> Drawing:
    box = frame(width, HEIGHTS[width])
    x, most = _axis(facts, box), max([*facts.most.values(), *facts.half.values()], default=1)
    y = Scale(low=0, high=max(most, 1) * 1.1, start=box.bottom, end=box.top, curve=Curve.BENT, bend=max(most / 8, 1.0))
    curves = ((facts.half, "kept"), (facts.most, "cti"))
    return Drawing(
        frame=box,
        label="How long events that are on time would wait for their release, by delay",
        x_ticks=lateness_ticks(x, 62),
        y_ticks=lateness_ticks(y, 24),
        layers=tuple(
            Layer(style="line", tone=tone, shapes=(DrawnShape(d=_line(found, x, y)),))
            for found, tone in curves
            if found
        ),
        marks=tuple(ChartMark(at=mark.at, lines=(), side=mark.side) for mark in _marks(facts, x, width)),
    )


def _axis(facts: DelayFacts, box: Frame) -> Scale:
    return Scale(
        low=min(facts.late),
        high=max(facts.late),
        start=box.left,
        end=box.right,
        curve=Curve.BENT,
        bend=float(facts.bend),
    )


def _root(high: float, box: Frame) -> Scale:
    return Scale(low=0, high=high * 1.06, start=box.bottom, end=box.top, curve=Curve.ROOT)


def _percent_ticks(y: Scale) -> tuple[Tick, ...]:
    chosen = {0.0: float(y(0.0))}
    for percent in reversed(PERCENTS):
        at = float(y(percent))
        if percent <= y.high and all(abs(at - other) >= 26 for other in chosen.values()):  # noqa: PLR2004 - a line of text
            chosen[percent] = at
    return tuple(Tick(at=at, label=f"{percent:g} %") for percent, at in sorted(chosen.items()))


def _line(values: Mapping[int, float], x: Scale, y: Scale) -> str:
    points = (f"{number(float(x(delay)))} {number(float(y(value)))}" for delay, value in sorted(values.items()))
    return "M" + "L".join(points)


def _marks(facts: DelayFacts, x: Scale, width: Width) -> tuple[ChartMark, ...]:
    """Stand a line at the flow's delay and at the one that is enough, with words where there is room."""
    told = {facts.current: ["the flow's"]}
    if facts.advised is not None:
        told.setdefault(facts.advised, []).append(f"enough for {facts.share}")
    places = sorted(told)
    close = len(places) > 1 and float(x(places[1])) - float(x(places[0])) < NEAR[width]
    marks = tuple(
        _mark(facts, x, delay, told[delay], NEAR[width], left=close and delay == places[0]) for delay in places
    )
    if width is Width.WIDE:
        return marks
    # A phone has room for the delay alone; the table below says the rest.
    return tuple(replace(mark, lines=(duration(delay),)) for mark, delay in zip(marks, places, strict=True))


def _mark(  # noqa: PLR0913 - a delay, and where its words have room
    facts: DelayFacts, x: Scale, delay: int, words: list[str], near: float, *, left: bool
) -> ChartMark:
    late, at = facts.late[delay], float(x(delay))
    lines = (f"{duration(delay)}: {' and '.join(words)}", f"{late:,} of {facts.events:,} late")
    room = at - x.start > near
    ends = (left and room) or x.end - at < near
    return ChartMark(at=at, lines=lines, side="end" if ends else "start")
