"""Rows per day and key: what came, and how many timers kept time while nothing did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from expectations.report.charts.drawing import Chart, Drawing, DrawnShape, Layer, Legend, Tick, Width, bar, frame
from expectations.report.charts.points import COLOURS
from expectations.report.charts.scales import Scale, count_ticks, local_steps
from expectations.report.words import DAY

if TYPE_CHECKING:
    from expectations.report.charts.points import ChartScene, Points
    from expectations.report.words import ReportClock
    from pipelines.operators.rows import Longs

MOST_DAYS = 45
WIDEST = 34.0
"""Pixels of a bar at most."""
THIN = 4.0
"""Pixels of a bar from which on bars stand apart."""
LONGER = (7, 28, 91, 364, 3640, 36400, 364000)


@dataclass(frozen=True, kw_only=True)
class Tally:
    """Rows counted by day and key."""

    clock: ReportClock
    names: tuple[str, ...]
    starts: tuple[int, ...]
    """First instant of each day."""
    data: Longs
    """Data rows: one line a day, one column a key."""
    timers: Longs

    def told(self, day: int, key: int) -> str:
        """Say one day of one key."""
        rows, beats = self.data[day, key], self.timers[day, key]
        return f"{self.clock.day(self.starts[day])} · {self.names[key]}: {rows:,} data, {beats:,} timers"


def days(seen: ChartScene, clock: ReportClock, span: tuple[int, int]) -> Chart:
    """Draw, for each local day of arrival and each key, the data rows and on top of them the timers."""
    starts, step = _starts(clock, span)
    names = (*(name or "rows" for name in seen.keys), *(["other keys"] if seen.others else []))
    data, timers = (_counts(points, starts, len(names)) for points in (seen.came, seen.timers))
    tally = Tally(clock=clock, names=names, starts=tuple(starts), data=data, timers=timers)
    unit = "day" if step == 1 else f"{step} days"
    return Chart(
        name="days",
        title=f"Rows per {unit}" + (" and key" if len(names) > 1 else ""),
        lead=f"By local day of arrival ({clock.name}). Solid: data rows that stayed. Pale, on top: timers.",
        drawings=tuple(_draw(tally, width) for width in Width),
        legend=_legend(names, len(seen.timers)),
        head=("from", *(f"{name} {what}" for name in names for what in ("data", "timers"))),
        table=tuple(_row(clock, at, data[i], timers[i]) for i, at in enumerate(starts)),
        y_title="rows",
    )


def _starts(clock: ReportClock, span: tuple[int, int]) -> tuple[list[int], int]:
    step = next(n for n in (1, *LONGER) if (span[1] - span[0]) / DAY / n <= MOST_DAYS)
    steps = [at for at in local_steps(clock, span[0], span[1], days=step) if at < span[1]]
    return (steps if steps and steps[0] == span[0] else [span[0], *steps]), step


def _counts(points: Points, starts: list[int], names: int) -> Longs:
    day = np.searchsorted(np.array(starts), points.arrival, side="right") - 1
    table = np.zeros((len(starts), names), dtype=np.int64)
    inside = day >= 0
    np.add.at(table, (day[inside], np.minimum(points.key[inside], names - 1)), 1)
    return table


def _legend(names: tuple[str, ...], timers: int) -> tuple[Legend, ...]:
    entries = [Legend(style="bars", tone=_tone(place, name), label=name) for place, name in enumerate(names)]
    pale = [Legend(style="bars pale", tone="timer", label="timers of the key")] if timers else []
    return (*entries, *pale)


def _tone(place: int, name: str) -> str:
    return "key-other" if place >= COLOURS or name == "other keys" else f"key-{place}"


def _row(clock: ReportClock, at: int, data: Longs, timers: Longs) -> tuple[str, ...]:
    pairs = zip(data.tolist(), timers.tolist(), strict=True)
    return (clock.day(at), *(f"{value:,}" for pair in pairs for value in pair))


def _draw(tally: Tally, width: Width) -> Drawing:
    box = frame(width, 270 if width is Width.WIDE else 240)
    most = float((tally.data + tally.timers).max())
    y = Scale(low=0, high=max(1.0, most * 1.06), start=box.bottom, end=box.top)
    slot = (box.right - box.left) / len(tally.starts)
    middles = [box.left + (day + 0.5) * slot for day in range(len(tally.starts))]
    layers = [layer for key in range(len(tally.names)) for layer in _layers(tally, key, middles, y)]
    every = max(1, int(np.ceil((64 if width is Width.WIDE else 52) / slot)))
    ticks = [_tick(tally.clock, at, x, width) for at, x in zip(tally.starts, middles, strict=True)]
    return Drawing(
        frame=box,
        label="Data rows and timers by day and key",
        x_ticks=tuple(ticks[::every]),
        y_ticks=count_ticks(y, 5),
        layers=tuple(layer for layer in layers if layer.shapes),
    )


def _layers(tally: Tally, key: int, middles: list[float], y: Scale) -> tuple[Layer, Layer]:
    """Give the bars of one key: its data from the ground up, its timers on top."""
    keys = len(tally.names)
    wide = min((middles[1] - middles[0]) * 0.8 / keys if len(middles) > 1 else WIDEST, WIDEST)
    gap = 1.5 if wide > THIN else 0.0
    low, high = [], []
    for day, middle in enumerate(middles):
        x, words = middle + (key - keys / 2) * wide, tally.told(day, key)
        rows, beats = int(tally.data[day, key]), int(tally.timers[day, key])
        ground, top = float(y(rows)), float(y(rows + beats))
        if rows:
            low.append(DrawnShape(d=bar(x, ground, wide - gap, y.start - ground), title=words))
        if beats:
            high.append(DrawnShape(d=bar(x, top, wide - gap, max(ground - top - 1, 0.5)), title=words))
    tone = _tone(key, tally.names[key])
    return (
        Layer(style="bars", tone=tone, shapes=tuple(low)),
        Layer(style="bars pale", tone=tone, shapes=tuple(high)),
    )


def _tick(clock: ReportClock, at: int, x: float, width: Width) -> Tick:
    moment = clock.at(at)
    day = f"{moment.day} {moment:%b}"
    return Tick(at=x, label=f"{moment:%a} {day}" if width is Width.WIDE else day, style="none")
