"""How a live run kept up, over wall time: how late its heartbeats were published, how many commits a minute it made."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from expectations.report.charts.drawing import Chart, Drawing, DrawnShape, Layer, Legend, Tick, Width, bar, dot, frame
from expectations.report.charts.scales import Curve, Scale, count_ticks, lateness_ticks, nice_above
from expectations.report.words import MINUTE, SECOND, counted, duration, seconds

if TYPE_CHECKING:
    from expectations.report.charts.drawing import Frame
    from expectations.report.charts.scales import Floats
    from expectations.report.facts import EpochFacts
    from expectations.report.words import ReportClock

MOST_SLOTS = 60
MILLISECOND = 1_000
LAYERS = (("max_ms", "timer"), ("p50_ms", "kept"), ("p99_ms", "late"))
"""What a dot stands for, and its tone; where dots fall together the last one is seen."""


def heartbeat_lateness(epochs: tuple[EpochFacts, ...], clock: ReportClock) -> Chart | None:
    """Draw, for each epoch that published timers, how late half, nearly all and all were; None without any."""
    told = [epoch for epoch in epochs if epoch.p99_ms is not None]
    if not told:
        return None
    timers = sum(epoch.timers for epoch in told)
    worst = max(_ticks(epoch.p99_ms) for epoch in told)
    middle = int(np.median([_ticks(epoch.p50_ms) for epoch in told]))
    latest = max(_ticks(epoch.max_ms) for epoch in told)
    return Chart(
        name="heartbeats",
        title="How late heartbeats were published",
        lead=f"{counted(timers, 'timer')} in {counted(len(told), 'epoch')}. In the middle epoch half of its timers "
        f"were at most {seconds(middle / SECOND)} late; in the worst 99 % were at most {seconds(worst / SECOND)} late; "
        f"no timer was later than {seconds(latest / SECOND)}.",
        drawings=tuple(_draw_lateness(told, clock, width) for width in Width),
        legend=(
            Legend(style="dots", tone="kept", label="half of an epoch's timers were at most so late"),
            Legend(style="dots", tone="late", label="99 % were"),
            Legend(style="dots", tone="timer", label="all were"),
        ),
        notes=("Published minus due, on the wall clock. A catch-up after a start looks late, and is.",),
        head=("epoch", "timers", "half", "99 %", "all"),
        table=tuple(_told(epoch) for epoch in sorted(told, key=lambda epoch: -_ticks(epoch.p99_ms))[:20]),
        y_title="late by",
    )


def _ticks(milliseconds: float | None) -> int:
    return round((milliseconds or 0.0) * MILLISECOND)


def _told(epoch: EpochFacts) -> tuple[str, ...]:
    late = (seconds((value or 0.0) / 1000) for value in (epoch.p50_ms, epoch.p99_ms, epoch.max_ms))
    return (f"commit {epoch.number}{epoch.leg and f' of {epoch.leg}'}", f"{epoch.timers:,}", *late)


def _draw_lateness(told: list[EpochFacts], clock: ReportClock, width: Width) -> Drawing:
    box = frame(width, 240 if width is Width.WIDE else 220)
    x = _wall_scale(told, box)
    most = max(_ticks(epoch.max_ms) for epoch in told)
    y = Scale(
        low=0, high=max(most * 1.1, MILLISECOND), start=box.bottom, end=box.top, curve=Curve.BENT, bend=float(SECOND)
    )
    return Drawing(
        frame=box,
        label="Lateness of heartbeats by epoch",
        x_ticks=_wall_ticks(clock, x, 110 if width is Width.WIDE else 90),
        y_ticks=tuple(tick for tick in lateness_ticks(y, 26) if tick.label),
        layers=tuple(_dots(told, x, y, what, tone) for what, tone in LAYERS),
    )


def _dots(told: list[EpochFacts], x: Scale, y: Scale, what: str, tone: str) -> Layer:
    shapes = []
    for epoch in told:
        late = _ticks(getattr(epoch, what))
        words = f"commit {epoch.number}: {counted(epoch.timers, 'timer')}, {seconds(late / SECOND)}"
        shapes.append(DrawnShape(d=dot(float(x(epoch.at)), float(y(late))), title=words))
    return Layer(style="dots", tone=tone, shapes=tuple(shapes))


def commit_pace(epochs: tuple[EpochFacts, ...], clock: ReportClock) -> Chart:
    """Draw how many commits were published in each minute, or longer where there were many; idle ones pale on top."""
    first, last = min(epoch.at for epoch in epochs), max(epoch.at for epoch in epochs)
    slot = max(nice_above((last - first + 1) / MOST_SLOTS), 10 * SECOND)
    count = (last - first) // slot + 1
    counts = np.zeros((2, count), dtype=np.int64)
    for epoch in epochs:
        counts[int(epoch.idle), (epoch.at - first) // slot] += 1
    a_minute = counts.astype(np.float64) * (MINUTE / slot)
    lasted = max(last - first, SECOND) // SECOND * SECOND
    return Chart(
        name="pace",
        title="Commits a minute",
        lead=f"{counted(len(epochs), 'epoch')} in {duration(lasted)}, counted over {duration(slot)} each.",
        drawings=tuple(_draw_pace(a_minute, first, slot, clock, width) for width in Width),
        legend=(
            Legend(style="bars", tone="kept", label="with rows or timers"),
            Legend(style="bars pale", tone="kept", label="idle"),
        ),
        y_title="commits a minute",
    )


def _draw_pace(a_minute: Floats, first: int, slot: int, clock: ReportClock, width: Width) -> Drawing:
    box = frame(width, 200)
    slots = a_minute.shape[1]
    x = Scale(low=first, high=first + slots * slot, start=box.left, end=box.right)
    y = Scale(low=0, high=max(1.0, float(a_minute.sum(axis=0).max()) * 1.06), start=box.bottom, end=box.top)
    wide = min((box.right - box.left) / slots, 34.0)
    low, high = [], []
    for place in range(slots):
        at, (busy, idle) = float(x(first + place * slot)), a_minute[:, place]
        ground, top = float(y(busy)), float(y(busy + idle))
        if busy:
            low.append(
                DrawnShape(d=bar(at, ground, wide - 1, y.start - ground), title=f"{busy:.0f} with rows or timers")
            )
        if idle:
            high.append(DrawnShape(d=bar(at, top, wide - 1, max(ground - top - 1, 0.5)), title=f"{idle:.0f} idle"))
    layers = (
        Layer(style="bars", tone="kept", shapes=tuple(low)),
        Layer(style="bars pale", tone="kept", shapes=tuple(high)),
    )
    return Drawing(
        frame=box,
        label="Commits a minute over the run",
        x_ticks=_wall_ticks(clock, x, 110 if width is Width.WIDE else 90),
        y_ticks=count_ticks(y, 4),
        layers=tuple(layer for layer in layers if layer.shapes),
    )


def _wall_scale(told: list[EpochFacts], box: Frame) -> Scale:
    ats = [epoch.at for epoch in told]
    return Scale(low=min(ats), high=max(*ats, min(ats) + SECOND), start=box.left + 4, end=box.right - 4)


def _wall_ticks(clock: ReportClock, x: Scale, room: float) -> tuple[Tick, ...]:
    """Name wall times, a round span apart, `room` pixels or more from one to the next."""
    step = max(nice_above(room * (x.high - x.low) / max(x.end - x.start, 1)), SECOND)
    first = -(-int(x.low) // step) * step
    ticks = range(first, int(x.high) + 1, step)
    return tuple(Tick(at=float(x(at)), label=f"{clock.at(at):%H:%M:%S}", style="faint") for at in ticks)
