"""The chart of event time against arrival: how late each row came, and which promise governed it.

The upright axis is lateness (arrival minus event time), not event time: on a week's chart an hour of lateness would be
a hair's breadth off the diagonal. A CTI at t is, at the instant a, the line of rows that are a - t late; it rises as
time passes and falls with each new CTI, and what lies above it came too late. So the eye can check the operator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from expectations.report.charts.drawing import (
    Chart,
    Drawing,
    DrawnShape,
    Layer,
    Legend,
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
    from expectations.report.charts.points import ChartScene, Points
    from expectations.report.facts import Picture
    from expectations.report.words import ReportClock
    from pipelines.operators.rows import Longs

MOST = {Width.WIDE: (3000, 1200, 3000), Width.NARROW: (1000, 400, 1000)}
"""Data rows, timers, and rows set aside or dropped to draw at most."""
CROWD = 600
"""Rows set aside or dropped from which on their marks are smaller."""


@dataclass(frozen=True, kw_only=True)
class Canvas:
    """What every layer of one drawing needs: the rows, their places, and how to tell them."""

    seen: ChartScene
    picture: Picture
    clock: ReportClock
    frame: Frame
    x: Scale
    y: Scale


def arrivals(seen: ChartScene, picture: Picture, clock: ReportClock, span: tuple[int, int]) -> Chart:
    """Draw lateness over arrival: data by key, timers, the CTIs' line, and rows that were set aside or dropped."""
    drawn = [_draw(_canvas(seen, picture, clock, span, width)) for width in Width]
    return Chart(
        name="arrivals",
        title="When rows came, and how late",
        lead=_lead(seen),
        drawings=tuple(drawing for drawing, _ in drawn),
        legend=_legend(seen),
        notes=_notes(seen, picture, drawn[0][1]),
        y_title="arrival minus event time",
    )


def _lead(seen: ChartScene) -> str:
    told = "Across: when a row reached this stream. Up: how long after its event time that was."
    line = "The solid line is the newest CTI: it rises as time passes and falls with each new CTI."
    return f"{told} {line} A row above the line came too late for it." if len(seen.ctis) else told


def _legend(seen: ChartScene) -> tuple[Legend, ...]:
    rows = np.bincount(seen.data.key, minlength=len(seen.keys)).tolist()
    names = [f"{name or 'rows'} {rows[place]:,}" for place, name in enumerate(seen.keys)]
    entries = [Legend(style="dots", tone=f"key-{place}", label=label) for place, label in enumerate(names)]
    if seen.others:
        entries.append(Legend(style="dots", tone="key-other", label=counted(seen.others, "other key")))
    if len(seen.timers):
        entries.append(Legend(style="dashes", tone="timer", label=f"timers {len(seen.timers):,}"))
    if len(seen.ctis):
        entries.append(Legend(style="line", tone="cti", label=f"CTIs {len(seen.ctis):,}"))
    if len(seen.side):
        entries.append(Legend(style="diamonds", tone="late", label=f"{seen.gone} {len(seen.side):,}"))
    return tuple(entries)


def _notes(seen: ChartScene, picture: Picture, drawn: tuple[int, int, int]) -> tuple[str, ...]:
    notes = [
        "The upright scale is compressed away from zero, so that minutes and hours are both readable.",
        f"Lateness is measured where the rows reach {picture.stream}, so it includes the time an operator held them.",
    ]
    if drawn[0] < len(seen.data) or drawn[1] < len(seen.timers) or drawn[2] < len(seen.side):
        told = f"{drawn[0]:,} of {len(seen.data):,} data rows and {drawn[1]:,} of {len(seen.timers):,} timers are drawn"
        every = f"all {len(seen.side):,}" if drawn[2] == len(seen.side) else f"{drawn[2]:,} of {len(seen.side):,}"
        aside = f"; {every} rows {seen.gone} are drawn" if len(seen.side) else ""
        notes.append(f"Thinned: {told}. Crowded places are thinned first{aside}.")
    if seen.untimed:
        notes.append(f"{counted(seen.untimed, 'row')} without event time cannot be drawn.")
    return tuple(notes)


def _canvas(seen: ChartScene, picture: Picture, clock: ReportClock, span: tuple[int, int], width: Width) -> Canvas:
    box = frame(width, 440 if width is Width.WIDE else 380)
    x = Scale(low=span[0], high=span[1], start=box.left, end=box.right)
    return Canvas(seen=seen, picture=picture, clock=clock, frame=box, x=x, y=_lateness_scale(seen, picture, box))


def _draw(canvas: Canvas) -> tuple[Drawing, tuple[int, int, int]]:
    """Give the drawing, and how many data rows, timers and rows set aside or dropped it shows."""
    seen, wide = canvas.seen, canvas.frame.width is Width.WIDE
    every = (seen.data, seen.timers, seen.side)
    data, timers, gone = (
        _kept(canvas, points, most) for points, most in zip(every, MOST[canvas.frame.width], strict=True)
    )
    drawing = Drawing(
        frame=canvas.frame,
        label=f"Lateness over arrival: {counted(len(seen.data), 'row')}, and {len(seen.side):,} that were {seen.gone}",
        x_ticks=time_ticks(canvas.clock, canvas.x, 64 if wide else 58),
        y_ticks=lateness_ticks(canvas.y, 24),
        layers=(*_promise(canvas), _dashes(canvas, timers), *_dots(canvas, data), _diamonds(canvas, gone)),
    )
    return drawing, (len(data), len(timers), len(gone))


def _lateness_scale(seen: ChartScene, picture: Picture, box: Frame) -> Scale:
    late = np.concatenate([seen.data.lateness, seen.side.lateness, seen.timers.lateness, [0, picture.delay or 0]])
    bend = nice_above(max(float(np.percentile(np.abs(late), 75)), 1.0))
    low, high = float(late.min()) - bend / 4, float(late.max()) * 1.15 + bend / 4
    return Scale(low=low, high=high, start=box.bottom, end=box.top, curve=Curve.BENT, bend=bend)


def _kept(canvas: Canvas, points: Points, most: int) -> Points:
    return points.where(thinned(canvas.x(points.arrival), canvas.y(points.lateness), most))


def _promise(canvas: Canvas) -> tuple[Layer, ...]:
    """Draw the line of the newest CTI, and wash what lies above it."""
    if not len(canvas.seen.ctis):
        return ()
    x, y = canvas.x, canvas.y
    across, late = _sawtooth(canvas.seen.ctis, x)
    xs, ys = x(across), y(late)
    points = [f"{number(a)} {number(b)}" for a, b in zip(xs, ys, strict=True)]
    line = "M" + "L".join(points)
    area = f"M{number(xs[0])} {number(y.end)}L{'L'.join(points)}L{number(xs[-1])} {number(y.end)}z"
    return (
        Layer(style="area", tone="late", shapes=(DrawnShape(d=area),)),
        Layer(style="line", tone="cti", shapes=(DrawnShape(d=line),)),
    )


def _sawtooth(ctis: Points, x: Scale) -> tuple[Longs, Longs]:
    """Give the corners of the promise: from each CTI on, lateness a - t rises with the arrival a until the next."""
    starts, promised = _one_a_pixel(ctis, x)
    ends = np.append(starts[1:], max(int(x.high), int(starts[-1])))
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


def _dashes(canvas: Canvas, timers: Points) -> Layer:
    shapes = tuple(DrawnShape(d=dash(a, b, 3), title=words) for a, b, words in _told(canvas, timers, "timer at"))
    return Layer(style="dashes", tone="timer", shapes=shapes)


def _dots(canvas: Canvas, data: Points) -> tuple[Layer, ...]:
    layers = []
    for place in range(COLOURS + 1):
        told = _told(canvas, data.where(data.key == place), "event time")
        shapes = tuple(DrawnShape(d=dot(a, b), title=words) for a, b, words in told)
        layers.append(Layer(style="dots", tone=f"key-{place}" if place < COLOURS else "key-other", shapes=shapes))
    return tuple(layer for layer in layers if layer.shapes)


def _diamonds(canvas: Canvas, gone: Points) -> Layer:
    size = (4.0 if canvas.frame.width is Width.WIDE else 3.0) * (1.0 if len(gone) < CROWD else 0.6)
    told = _told(canvas, gone, f"{canvas.seen.gone}; event time")
    return Layer(
        style="diamonds", tone="late", shapes=tuple(DrawnShape(d=diamond(a, b, size), title=w) for a, b, w in told)
    )


def _told(canvas: Canvas, points: Points, what: str) -> list[tuple[float, float, str]]:
    """Give place and words of each row: its key and payload, both instants, how late."""
    heads = _heads(canvas, points)
    clock, instants = canvas.clock, zip(points.arrival.tolist(), points.event_time.tolist(), strict=True)
    words = [
        f"{head}{what} {clock.near(event, arrival)} · arrival {clock.instant(arrival)} · {_gap(arrival - event)}"
        for head, (arrival, event) in zip(heads, instants, strict=True)
    ]
    return list(zip(canvas.x(points.arrival).tolist(), canvas.y(points.lateness).tolist(), words, strict=True))


def _heads(canvas: Canvas, points: Points) -> list[str]:
    names = [*canvas.seen.keys, *["other key"] * (COLOURS + 1 - len(canvas.seen.keys))]
    table = points.table
    columns = [table[name].to_pylist() for name in canvas.picture.tell if name in table.column_names]
    rows = zip([names[key] for key in points.key.tolist()], *columns, strict=True)
    heads = [" ".join(str(part) for part in row if part is not None and part != "") for row in rows]
    return [f"{head} · " if head else "" for head in heads]


def _gap(late: int) -> str:
    return "on time" if late == 0 else f"{duration(abs(late))} {'late' if late > 0 else 'early'}"
