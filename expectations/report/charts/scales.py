"""From values to pixels, and where ticks stand."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from expectations.report.charts.drawing import Tick
from expectations.report.words import DAY, HOUR, MINUTE, SECOND, duration

if TYPE_CHECKING:
    from expectations.report.words import ReportClock
    from pipelines.operators.rows import Longs

Floats = npt.NDArray[np.float64]

_SECONDS = [n * SECOND for n in (1, 2, 5, 10, 15, 30)]
_MINUTES = [n * MINUTE for n in (1, 2, 5, 10, 15, 30)]
_HOURS = [n * HOUR for n in (1, 2, 4, 8, 16)]
_DAYS = [n * DAY for n in (1, 2, 4, 7, 14, 30, 60, 120, 365, 3650, 36500, 365000, 3650000)]
_BELOW = [n * 10**power for power in range(6) for n in (1, 2, 5)]
LADDER: tuple[int, ...] = (*_BELOW, *_SECONDS, *_MINUTES, *_HOURS, *_DAYS)
"""Spans that people count in, in ticks."""


def nice_above(span: float) -> int:
    """Give the smallest span of the ladder that is not below `span`."""
    place = int(np.searchsorted(np.array(LADDER), span))
    return LADDER[min(place, len(LADDER) - 1)]


class Curve(Enum):
    """How a scale spreads values over its pixels."""

    EVEN = "even"
    """In proportion."""
    ROOT = "root"
    """By the square root: few rows stay visible beside many. For values from zero on."""
    BENT = "bent"
    """In proportion near zero, by the logarithm beyond `bend` on both sides of it."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Maps [low, high] to [start, end] pixels along a curve."""

    low: float
    high: float
    start: float
    end: float
    curve: Curve = Curve.EVEN
    bend: float = 1.0

    def _curved(self, values: Longs | Floats | float) -> Floats:
        plain = np.asarray(values, dtype=np.float64)
        if self.curve is Curve.ROOT:
            return np.sqrt(np.maximum(plain, 0.0))
        return np.arcsinh(plain / self.bend) if self.curve is Curve.BENT else plain

    def __call__(self, values: Longs | Floats | float) -> Floats:
        """Give the pixels of values, held inside the plot."""
        low, high = float(self._curved(self.low)), float(self._curved(self.high))
        part = (self._curved(values) - low) / ((high - low) or 1.0)
        return self.start + np.clip(part, 0.0, 1.0) * (self.end - self.start)


def lateness_ticks(scale: Scale, room: float) -> tuple[Tick, ...]:
    """Choose spans to name on a compressed axis, zero first, then the roundest that keep `room` pixels apart."""
    chosen = {0: float(scale(0.0))}
    for step in sorted(LADDER, key=_roundness):
        for span in (step, -step):
            at = float(scale(span))
            inside = scale.low <= span <= scale.high
            if inside and all(abs(at - other) >= room for other in chosen.values()):
                chosen[span] = at
    return tuple(Tick(at=at, label=duration(span) if span else "0") for span, at in sorted(chosen.items()))


def _roundness(step: int) -> tuple[int, int]:
    preferred = (HOUR, 15 * MINUTE, 4 * HOUR, DAY, 7 * DAY, MINUTE, 2 * HOUR, 8 * HOUR, 30 * MINUTE, 16 * HOUR)
    return (preferred.index(step) if step in preferred else len(preferred), -step)


def count_ticks(scale: Scale, most: int) -> tuple[Tick, ...]:
    """Choose about `most` even counts from zero on."""
    step = next(s for p in range(18) for m in (1, 2, 5) if (s := m * 10**p) * most >= scale.high)
    values = range(0, int(scale.high) + 1, step)
    return tuple(Tick(at=float(scale(value)), label=f"{value:,}") for value in values)


def root_ticks(scale: Scale, room: float) -> tuple[Tick, ...]:
    """Choose round counts for a scale by the root, from the largest down, `room` pixels or more apart."""
    chosen = {0: float(scale(0))}
    whole = sorted((m * 10**p for p in range(18) for m in (1, 2, 3, 5)), reverse=True)
    for value in whole:
        at = float(scale(value))
        if value <= scale.high and all(abs(at - other) >= room for other in chosen.values()):
            chosen[value] = at
    return tuple(Tick(at=at, label=f"{value:,}") for value, at in sorted(chosen.items()))


def local_steps(clock: ReportClock, start: int, end: int, *, hours: int = 0, days: int = 0) -> list[int]:
    """Give the instants, a whole number of local hours or days apart from a local midnight on, from start to end.

    Days are the zone's: 23 or 25 hours long where its clocks change.
    """
    midnight = clock.at(start).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    steps, moment = [], midnight
    while (tick := _tick(clock, moment)) <= end:
        if tick >= start:
            steps.append(tick)
        moment += dt.timedelta(days=days, hours=hours)
    return steps


def _tick(clock: ReportClock, local: dt.datetime) -> int:
    since = local.replace(tzinfo=clock.zone) - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    return since // dt.timedelta(microseconds=1)


def time_ticks(clock: ReportClock, scale: Scale, room: float) -> tuple[Tick, ...]:
    """Name days, or hours where the span is short, in the flow's zone, `room` pixels or more apart."""
    start, end = int(scale.low), int(scale.high)
    per_pixel = (end - start) / max(scale.end - scale.start, 1)
    for hours in (1, 3, 6, 12):
        if hours * HOUR / per_pixel >= room:
            return tuple(_hour_tick(clock, scale, at) for at in local_steps(clock, start, end, hours=hours))
    days = next((n for n in (1, 2, 7, 14, 30, 90, 365) if n * DAY / per_pixel >= room), 3650)
    steps = local_steps(clock, start, end, days=days)
    return tuple(_day_tick(clock, scale, at, days) for at in steps if at < end)


def _hour_tick(clock: ReportClock, scale: Scale, at: int) -> Tick:
    moment = clock.at(at)
    midnight = moment.hour == 0
    label = f"{moment.day} {moment:%b}" if midnight else f"{moment:%H:%M}"
    return Tick(at=float(scale(at)), label=label, style="grid" if midnight else "faint")


def _day_tick(clock: ReportClock, scale: Scale, at: int, days: int) -> Tick:
    moment = clock.at(at)
    line = float(scale(at))
    middle = float(scale(at + DAY * days / 2)) if days == 1 else line
    label = f"{moment:%a} {moment.day} {moment:%b}" if days == 1 else f"{moment.day} {moment:%b}"
    return Tick(at=line, label=label, label_at=middle)
