"""The chart of event time against arrival: how late each row came, and which promise governed it.

The upright axis is lateness (arrival minus event time), not event time: on a week's chart an hour of lateness would be
a hair's breadth off the diagonal. A CTI at t is, at the instant a, the line of rows that are a - t late; it rises as
time passes and falls with each new CTI, and what lies above it came too late. So the eye can check the operator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from expectations.report.charts.drawing import (
    Chart,
    Drawing,
    Layer,
    Legend,
    Shape,
    Width,
    dash,
    diamond,
    dot,
    frame,
    number,
)
from expectations.report.charts.points import COLOURS, thinned
from expectations.report.charts.scales import Curve, Scale, lateness_ticks, nice_above, time_ticks
from expectations.report.words import counted, duration

if TYPE_CHECKING:
    from expectations.report.charts.drawing import Frame
    from expectations.report.charts.points import Points, Scene
    from expectations.report.charts.scales import Floats
    from expectations.report.facts import Picture
    from expectations.report.words import Clock
    from pipelines.operators.rows import Longs

MOST = {Width.WIDE: (3000, 1200), Width.NARROW: (1000, 400)}
"""Data rows and timers to draw at most."""


def arrivals(seen: Scene, picture: Picture, clock: Clock, span: tuple[int, int]) -> Chart:
    """Draw lateness over arrival: data by key, timers, the CTIs' line, and every row that was set aside."""
    drawn = [_draw(seen, picture, clock, span, width) for width in Width]
    return Chart(
        name="arrivals",
        title="When rows came, and how late",
        lead=_lead(seen),
        drawings=tuple(drawing for drawing, _ in drawn),
        legend=_legend(seen),
        notes=_notes(seen, picture, drawn[0][1]),
        y_title="arrival minus event time",
    )


def _lead(seen: Scene) -> str:
    told = "Across: when a row reached this stream. Up: how long after its event time that was."
    if not len(seen.ctis):
        return told
    return f"{told} The solid line is the newest CTI: it rises as time passes and falls with each new CTI. A row above the line came too late for it."


def _legend(seen: Scene) -> tuple[Legend, ...]:
    rows = [(len(seen.data.where(seen.data.key == place)), name) for place, name in enumerate(seen.keys)]
    entries = [Legend(style="dots", tone=f"key-{k}", label=f"{name or 'rows'} {n:,}") for k, (n, name) in enumerate(rows)]
    if seen.others:
        entries.append(Legend(style="dots", tone="key-other", label=counted(seen.others, "other key")))
    if len(seen.timers):
        entries.append(Legend(style="dashes", tone="timer", label=f"timers {len(seen.timers):,}"))
    if len(seen.ctis):
        entries.append(Legend(style="line", tone="cti", label=f"CTIs {len(seen.ctis):,}"))
    if len(seen.side):
        entries.append(Legend(style="diamonds", tone="late", label=f"set aside {len(seen.side):,}"))
    return tuple(entries)


def _notes(seen: Scene, picture: Picture, drawn: tuple[int, int]) -> tuple[str, ...]:
    notes = [
        "The upright scale is compressed away from zero, so that minutes and hours are both readable.",
        f"Lateness is measured where the rows reach {picture.stream}, so it includes the time an operator held them.",
    ]
    if drawn[0] < len(seen.data) or drawn[1] < len(seen.timers):
        told = f"{drawn[0]:,} of {len(seen.data):,} data rows and {drawn[1]:,} of {len(seen.timers):,} timers are drawn"
        aside = f"; all {len(seen.side):,} rows set aside are drawn" if len(seen.side) else ""
        notes.append(f"Thinned: {told}. Crowded places are thinned first{aside}.")
    if seen.untimed:
        notes.append(f"{counted(seen.untimed, 'row')} without event time cannot be drawn.")
    return tuple(notes)


def _draw(seen: Scene, picture: Picture, clock: Clock, span: tuple[int, int], width: Width) -> tuple[Drawing, tuple[int, int]]:
    box = frame(width, 440 if width is Width.WIDE else 380)
    x = Scale(low=span[0], high=span[1], start=box.left, end=box.right)
    y = _lateness_scale(seen, picture, box)
    most_data, most_timers = MOST[width]
    data = _kept(seen.data, x, y, most_data)
    timers = _kept(seen.timers, x, y, most_timers)
    drawing = Drawing(
        frame=box,
        label=f"Lateness over arrival of {counted(len(seen.data), 'row')}, {len(seen.side):,} of them set aside beside it",
        x_ticks=time_ticks(clock, x, 64 if width is Width.WIDE else 58),
        y_ticks=lateness_ticks(y, 24),
        layers=(
            *_promise(seen.ctis, x, y, span[1]),
            _dashes(timers, x, y, seen, clock),
            *_dots(data, x, y, seen, picture, clock),
            _diamonds(seen.side, x, y, seen, picture, clock),
        ),
    )
    return drawing, (len(data), len(timers))


def _lateness_scale(seen: Scene, picture: Picture, box: Frame) -> Scale:
    late = np.concatenate([seen.data.lateness, seen.side.lateness, seen.timers.lateness, [0, picture.delay or 0]])
    typical = float(np.percentile(np.abs(late), 75))
    bend = nice_above(max(typical, 1.0))
    low, high = float(late.min()), float(late.max())
    return Scale(low=low - bend / 4, high=high * 1.15 + bend / 4, start=box.bottom, end=box.top, curve=Curve.BENT, bend=bend)


def _kept(points: Points, x: Scale, y: Scale, most: int) -> Points:
    return points.where(thinned(x(points.arrival), y(points.lateness), most))


def _promise(ctis: Points, x: Scale, y: Scale, end: int) -> tuple[Layer, ...]:
    if not len(ctis):
        return ()
    across, late = _sawtooth(ctis, x, end)
    xs, ys = x(across), y(late)
    points = [f"{number(a)} {number(b)}" for a, b in zip(xs, ys, strict=True)]
    line = "M" + "L".join(points)
    area = f"M{number(xs[0])} {number(y.end)}L{'L'.join(points)}L{number(xs[-1])} {number(y.end)}z"
    return (
        Layer(style="area", tone="late", shapes=(Shape(d=area),)),
        Layer(style="line", tone="cti", shapes=(Shape(d=line),)),
    )


def _sawtooth(ctis: Points, x: Scale, end: int) -> tuple[Longs, Longs]:
    """Give the corners of the promise: from each CTI on, lateness a - t rises with the arrival a until the next."""
    starts, promised = _one_a_pixel(ctis, x)
    ends = np.append(starts[1:], max(end, int(starts[-1])))
    steps = [np.linspace(a, b, 2 + int(x(b) - x(a)) // 4) for a, b in zip(starts, ends, strict=True)]
    across = np.concatenate(steps).astype(np.int64)
    return across, across - np.repeat(promised, [len(step) for step in steps])


def _one_a_pixel(ctis: Points, x: Scale) -> tuple[Longs, Longs]:
    width = int(x.end - x.start)
    if len(ctis) <= 2 * width:
        return ctis.arrival, ctis.event_time
    _, last = np.unique(np.floor(x(ctis.arrival))[::-1], return_index=True)
    index = len(ctis) - 1 - last
    return ctis.arrival[index], ctis.event_time[index]


def _dashes(timers: Points, x: Scale, y: Scale, seen: Scene, clock: Clock) -> Layer:
    places = zip(x(timers.arrival), y(timers.lateness), _told(timers, seen, clock, "timer at"), strict=True)
    return Layer(style="dashes", tone="timer", shapes=tuple(Shape(d=dash(a, b, 3), title=words) for a, b, words in places))


def _dots(data: Points, x: Scale, y: Scale, seen: Scene, picture: Picture, clock: Clock) -> tuple[Layer, ...]:
    layers = []
    for place in range(COLOURS + 1):
        own = data.where(data.key == place)
        told = _told(own, seen, clock, "event time", picture.tell)
        places = zip(x(own.arrival), y(own.lateness), told, strict=True)
        shapes = tuple(Shape(d=dot(a, b), title=words) for a, b, words in places)
        if shapes:
            layers.append(Layer(style="dots", tone=f"key-{place}" if place < COLOURS else "key-other", shapes=shapes))
    return tuple(layers)


def _diamonds(side: Points, x: Scale, y: Scale, seen: Scene, picture: Picture, clock: Clock) -> Layer:
    told = _told(side, seen, clock, "set aside; event time", picture.tell)
    places = zip(x(side.arrival), y(side.lateness), told, strict=True)
    size = 4.0 if x.end - x.start > 500 else 3.0  # noqa: PLR2004
    return Layer(style="diamonds", tone="late", shapes=tuple(Shape(d=diamond(a, b, size), title=w) for a, b, w in places))


def _told(points: Points, seen: Scene, clock: Clock, what: str, tell: tuple[str, ...] = ()) -> list[str]:
    columns = [points.table[name].to_pylist() for name in tell if name in points.table.column_names]
    payload = list(zip(*columns, strict=True)) or [()] * len(points)
    rows = zip(points.key.tolist(), points.arrival.tolist(), points.event_time.tolist(), payload, strict=True)
    return [_sentence(seen, clock, what, *row) for row in rows]


def _sentence(seen: Scene, clock: Clock, what: str, key: int, arrival: int, event: int, payload: tuple[object, ...]) -> str:
    name = seen.keys[key] if key < len(seen.keys) else "other key"
    head = " ".join(str(part) for part in (name, *payload) if part not in (None, ""))
    gap = arrival - event
    late = "on time" if gap == 0 else f"{duration(abs(gap))} {'late' if gap > 0 else 'early'}"
    parts = [head, f"{what} {clock.near(event, arrival)}", f"arrival {clock.instant(arrival)}", late]
    return " · ".join(part for part in parts if part)
