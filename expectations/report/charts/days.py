"""Rows per day and key: what came, and how many timers kept time while nothing did."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from expectations.report.charts.drawing import Chart, Drawing, Layer, Legend, Shape, Tick, Width, bar, frame
from expectations.report.charts.points import COLOURS
from expectations.report.charts.scales import Scale, count_ticks, local_steps
from expectations.report.words import DAY

if TYPE_CHECKING:
    from expectations.report.charts.points import Points, Scene
    from expectations.report.words import Clock
    from pipelines.operators.rows import Longs

MOST_DAYS = 45
LONGER = (7, 28, 91, 364, 3640, 36400, 364000)


def days(seen: Scene, clock: Clock, span: tuple[int, int]) -> Chart:
    """Draw, for each local day of arrival and each key, the data rows and on top of them the timers."""
    starts, step = _starts(clock, span)
    names = [*(name or "rows" for name in seen.keys), *(["other keys"] if seen.others else [])]
    data, timers = (_counts(points, starts, len(names)) for points in (seen.data, seen.timers))
    unit = "day" if step == 1 else f"{step} days"
    return Chart(
        name="days",
        title=f"Rows per {unit}" + (" and key" if len(names) > 1 else ""),
        lead=f"By {'day' if step == 1 else 'days'} of arrival in {clock.name}. Solid: data rows that stayed. Pale, on top: timers.",
        drawings=tuple(_draw(names, data, timers, starts, clock, width) for width in Width),
        legend=_legend(names, len(seen.timers)),
        head=("from", *(f"{name} {what}" for name in names for what in ("data", "timers"))),
        table=tuple(_row(clock, at, data[i], timers[i]) for i, at in enumerate(starts)),
        y_title="rows",
    )


def _starts(clock: Clock, span: tuple[int, int]) -> tuple[list[int], int]:
    step = next(n for n in (1, *LONGER) if (span[1] - span[0]) / DAY / n <= MOST_DAYS)
    steps = [at for at in local_steps(clock, span[0], span[1], days=step) if at < span[1]]
    return (steps if steps and steps[0] == span[0] else [span[0], *steps]), step


def _counts(points: Points, starts: list[int], names: int) -> Longs:
    day = np.searchsorted(np.array(starts), points.arrival, side="right") - 1
    table = np.zeros((len(starts), names), dtype=np.int64)
    inside = day >= 0
    np.add.at(table, (day[inside], np.minimum(points.key[inside], names - 1)), 1)
    return table


def _legend(names: list[str], timers: int) -> tuple[Legend, ...]:
    entries = [Legend(style="bars", tone=_tone(place, name), label=name) for place, name in enumerate(names)]
    return (*entries, Legend(style="bars pale", tone="timer", label="timers of the key")) if timers else tuple(entries)


def _tone(place: int, name: str) -> str:
    return "key-other" if place >= COLOURS or name == "other keys" else f"key-{place}"


def _row(clock: Clock, at: int, data: Longs, timers: Longs) -> tuple[str, ...]:
    pairs = zip(data.tolist(), timers.tolist(), strict=True)
    return (clock.day(at), *(f"{value:,}" for pair in pairs for value in pair))


def _draw(names: list[str], data: Longs, timers: Longs, starts: list[int], clock: Clock, width: Width) -> Drawing:
    box = frame(width, 270 if width is Width.WIDE else 240)
    y = Scale(low=0, high=max(1.0, float((data + timers).max()) * 1.06), start=box.bottom, end=box.top)
    slot = (box.right - box.left) / len(starts)
    layers = []
    for key, name in enumerate(names):
        low, high = _bars(key, name, data, timers, starts, clock, y, box.left, slot)
        layers += [
            Layer(style="bars", tone=_tone(key, name), shapes=low),
            Layer(style="bars pale", tone=_tone(key, name), shapes=high),
        ]
    every = max(1, int(np.ceil((64 if width is Width.WIDE else 52) / slot)))
    return Drawing(
        frame=box,
        label="Data rows and timers by day and key",
        x_ticks=tuple(_tick(clock, at, box.left + (i + 0.5) * slot, width) for i, at in enumerate(starts) if i % every == 0),
        y_ticks=count_ticks(y, 5),
        layers=tuple(layer for layer in layers if layer.shapes),
    )


def _bars(
    key: int, name: str, data: Longs, timers: Longs, starts: list[int], clock: Clock, y: Scale, left: float, slot: float
) -> tuple[tuple[Shape, ...], tuple[Shape, ...]]:
    wide = min(slot * 0.8 / data.shape[1], 34.0)
    gap = 1.5 if wide > 4 else 0.0  # noqa: PLR2004
    low, high = [], []
    for day, at in enumerate(starts):
        rows, beats = int(data[day, key]), int(timers[day, key])
        x = left + (day + 0.5) * slot + (key - data.shape[1] / 2) * wide
        middle, top = float(y(rows)), float(y(rows + beats))
        words = f"{clock.day(at)} · {name}: {rows:,} data, {beats:,} timers"
        if rows:
            low.append(Shape(d=bar(x, middle, wide - gap, y.start - middle), title=words))
        if beats:
            high.append(Shape(d=bar(x, top, wide - gap, max(middle - top - 1, 0.5)), title=words))
    return tuple(low), tuple(high)


def _tick(clock: Clock, at: int, x: float, width: Width) -> Tick:
    moment = clock.at(at)
    day = f"{moment.day} {moment:%b}"
    return Tick(at=x, label=f"{moment:%a} {day}" if width is Width.WIDE else day, style="none")
