"""The distribution of lateness as rows landed, with the delay of the CTIs marked: is the delay well chosen?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from expectations.report.charts.drawing import Chart, Drawing, Layer, Legend, Mark, Shape, Tick, Width, bar, frame
from expectations.report.charts.scales import Curve, Scale, nice_above, root_ticks
from expectations.report.words import counted, duration, share
from pipelines.operators.rows import NULL

if TYPE_CHECKING:
    from expectations.report.charts.drawing import Frame
    from expectations.report.charts.points import Points, Scene
    from expectations.report.facts import Picture
    from pipelines.operators.rows import Longs

MOST_BINS = 36


def lateness(seen: Scene, picture: Picture) -> Chart:
    """Draw how many rows landed how late, those set aside beside those that stayed."""
    kept, aside = _landed(seen.data), _landed(seen.side)
    edges = _edges(np.concatenate([kept, aside]), picture.delay)
    counts = np.stack([np.histogram(part, _open(edges))[0] for part in (kept, aside)]).astype(np.int64)
    return Chart(
        name="lateness",
        title="How late rows landed",
        lead=_lead(kept, aside, picture.delay),
        drawings=tuple(_draw(edges, counts, picture.delay, width) for width in Width),
        legend=_legend(seen),
        notes=(
            "Lateness here is landing minus event time: what the source did, before any operator held a row.",
            "The upright scale goes by the square root, so that a few rows stay visible beside thousands.",
        ),
        head=("landed late by", "stayed", "set aside"),
        table=tuple((_range(edges, i), f"{a:,}", f"{b:,}") for i, (a, b) in enumerate(counts.T.tolist()) if a or b),
        y_title="rows",
    )


def _landed(points: Points) -> Longs:
    when = np.where(points.landed_at == NULL, points.arrival, points.landed_at)
    return when - points.event_time


def _edges(late: Longs, delay: int | None) -> Longs:
    """Choose even bins over what most rows did and twice the delay; the first and the last bin take the rest.

    The delay (zero without one) is an edge, so that no bin stands on both sides of it.
    """
    low, high = (float(value) for value in np.percentile(late, (0.5, 99)))
    middle = delay or 0
    low, high = min(low, 0.0), max(high, 2.0 * middle, 0.0)
    step = nice_above((high - low) / MOST_BINS)
    before, after = (max(1, int(np.ceil(span / step))) for span in (middle - low, high - middle))
    return middle + step * np.arange(-before, after + 1, dtype=np.int64)


def _open(edges: Longs) -> Longs:
    """Let the outer bins reach as far as any row may lie."""
    return np.concatenate([[-(2**62)], edges[1:-1], [2**62]])


def _range(edges: Longs, place: int) -> str:
    low, high = int(edges[place]), int(edges[place + 1])
    if place == 0:
        return f"under {duration(high)}"
    if place == len(edges) - 2:
        return f"{duration(low)} or more"
    return f"{duration(low)} to {duration(high)}"


def _lead(kept: Longs, aside: Longs, delay: int | None) -> str:
    every = np.concatenate([kept, aside])
    middle = int(np.median(every))
    told = f"The middle row landed {duration(abs(middle))} {'after' if middle >= 0 else 'before'} its event time."
    if delay is None:
        return told
    late = int((every >= delay).sum())
    return (
        f"{told} {counted(late, 'row')} ({share(late, len(every))}) landed at least {duration(delay)} late, the delay of the CTIs; "
        f"{counted(len(aside), 'row was', 'rows were')} set aside. The two differ, because a CTI follows the newest event received, not the clock."
    )


def _legend(seen: Scene) -> tuple[Legend, ...]:
    entries = [Legend(style="bars", tone="kept", label=f"stayed {len(seen.data):,}")]
    if len(seen.side):
        entries.append(Legend(style="bars", tone="late", label=f"set aside {len(seen.side):,}"))
    return tuple(entries)


def _draw(edges: Longs, counts: Longs, delay: int | None, width: Width) -> Drawing:
    box = frame(width, 300 if width is Width.WIDE else 260)
    x = Scale(low=float(edges[0]), high=float(edges[-1]), start=box.left, end=box.right)
    y = Scale(low=0, high=float(counts.max()) * 1.06, start=box.bottom, end=box.top, curve=Curve.ROOT)
    return Drawing(
        frame=box,
        label="Rows by how late they landed",
        x_ticks=_x_ticks(edges, x, 74 if width is Width.WIDE else 66),
        y_ticks=root_ticks(y, 26),
        layers=(
            _bars(edges, counts, x, y, 0, "kept"),
            _bars(edges, counts, x, y, 1, "late"),
        ),
        marks=_marks(edges, counts, delay, x, box),
    )


def _bars(edges: Longs, counts: Longs, x: Scale, y: Scale, series: int, tone: str) -> Layer:
    """Give the bars of one series; where both have rows they stand side by side, so that each starts at zero."""
    shapes = []
    for place, rows in enumerate(counts[series].tolist()):
        left, right = float(x(edges[place])) + 1, float(x(edges[place + 1])) - 1
        half = (right - left) / 2
        if counts[1 - series][place]:
            left, right = (left + half, right) if series else (left, left + half)
        if rows:
            words = f"{_range(edges, place)} late: {rows:,} {'set aside' if series else 'stayed'}"
            top = float(y(rows))
            shapes.append(Shape(d=bar(left, top, max(right - left, 0.6), y.start - top), title=words))
    return Layer(style="bars", tone=tone, shapes=tuple(shapes))


def _x_ticks(edges: Longs, x: Scale, room: float) -> tuple[Tick, ...]:
    step = nice_above(room * (edges[-1] - edges[0]) / (x.end - x.start))
    first = int(np.ceil(edges[0] / step)) * step
    spans = range(first, int(edges[-1]), step)
    return tuple(Tick(at=float(x(span)), label=duration(span) if span else "0", style="none") for span in spans)


def _marks(edges: Longs, counts: Longs, delay: int | None, x: Scale, box: Frame) -> tuple[Mark, ...]:
    if delay is None:
        return ()
    right = edges[:-1] >= delay
    stayed, aside = (int(part[right].sum()) for part in counts)
    at = float(x(delay))
    lines = (f"CTI delay {duration(delay)}", f"beyond it: {aside:,} set aside,", f"{stayed:,} stayed")
    return (Mark(at=at, lines=lines, side="end" if at > (box.left + box.right) * 0.6 else "start"),)
