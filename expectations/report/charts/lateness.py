"""The distribution of lateness as rows landed, with the delay of the CTIs marked: is the delay well chosen?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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
    bar,
    frame,
)
from expectations.report.charts.scales import Curve, Scale, nice_above, root_ticks
from expectations.report.words import counted, duration, share
from pipelines.operators.rows import NULL

if TYPE_CHECKING:
    from expectations.report.charts.points import ChartScene, Points
    from expectations.report.facts import Picture
    from pipelines.operators.rows import Longs

MOST_BINS = 36


@dataclass(frozen=True, kw_only=True)
class Bins:
    """Rows counted by how late they landed."""

    edges: Longs
    counts: Longs
    """Two lines: rows that stayed, rows that were set aside or dropped."""
    gone: str
    """What became of the second ones."""
    delay: int | None

    def told(self, place: int) -> str:
        """Say the range of a bin; the outer ones are open."""
        low, high = int(self.edges[place]), int(self.edges[place + 1])
        if place == 0:
            return f"under {duration(high)}"
        if place == len(self.edges) - 2:
            return f"{duration(low)} or more"
        return f"{duration(low)} to {duration(high)}"


def lateness(seen: ChartScene, picture: Picture) -> Chart:
    """Draw how many rows landed how late, those set aside or dropped beside those that stayed."""
    kept, aside = _landed(seen.data), _landed(seen.side)
    edges = _edges(np.concatenate([kept, aside]), picture.delay)
    counts = np.stack([np.histogram(part, _open(edges))[0] for part in (kept, aside)]).astype(np.int64)
    bins = Bins(edges=edges, counts=counts, gone=seen.gone, delay=picture.delay)
    return Chart(
        name="lateness",
        title="How late rows landed",
        lead=_lead(kept, aside, bins),
        drawings=tuple(_draw(bins, width) for width in Width),
        legend=_legend(seen),
        notes=(
            "Lateness here is landing minus event time: what the source did, before any operator held a row.",
            "The upright scale goes by the square root, so that a few rows stay visible beside thousands.",
            "The first and the last bar take all rows beyond them.",
        ),
        head=("landed late by", "stayed", seen.gone),
        table=tuple((bins.told(i), f"{a:,}", f"{b:,}") for i, (a, b) in enumerate(counts.T.tolist()) if a or b),
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


def _lead(kept: Longs, aside: Longs, bins: Bins) -> str:
    delay = bins.delay
    every = np.concatenate([kept, aside])
    middle = int(np.median(every))
    told = f"The middle row landed {duration(abs(middle))} {'after' if middle >= 0 else 'before'} its event time."
    if delay is None:
        return told
    late = int((every >= delay).sum())
    part = f"{counted(late, 'row')} ({share(late, len(every))}) landed at least {duration(delay)} late"
    gone = counted(len(aside), "row was", "rows were")
    why = "The two differ where they do because a CTI follows the newest event received, not the clock."
    return f"{told} {part}, the delay of the CTIs; {gone} {bins.gone}. {why}"


def _legend(seen: ChartScene) -> tuple[Legend, ...]:
    entries = [Legend(style="bars", tone="kept", label=f"stayed {len(seen.data):,}")]
    if len(seen.side):
        entries.append(Legend(style="bars", tone="late", label=f"{seen.gone} {len(seen.side):,}"))
    return tuple(entries)


def _draw(bins: Bins, width: Width) -> Drawing:
    box = frame(width, 300 if width is Width.WIDE else 260)
    edges, most = bins.edges, float(bins.counts.max()) * 1.06
    x = Scale(low=float(edges[0]), high=float(edges[-1]), start=box.left, end=box.right)
    y = Scale(low=0, high=most, start=box.bottom, end=box.top, curve=Curve.ROOT)
    return Drawing(
        frame=box,
        label="Rows by how late they landed",
        x_ticks=_x_ticks(edges, x, 74 if width is Width.WIDE else 66),
        y_ticks=root_ticks(y, 26),
        layers=(_bars(bins, x, y, 0), _bars(bins, x, y, 1)),
        marks=_marks(bins, x),
    )


def _bars(bins: Bins, x: Scale, y: Scale, series: int) -> Layer:
    """Give the bars of one series; where both have rows they stand side by side, so that each starts at zero."""
    shapes = []
    for place in np.flatnonzero(bins.counts[series]).tolist():
        rows, beside = int(bins.counts[series, place]), int(bins.counts[1 - series, place])
        left, right = (float(x(edge)) for edge in bins.edges[place : place + 2])
        middle = (left + right) / 2
        if beside:
            left, right = (middle, right) if series else (left, middle)
        words = f"{bins.told(place)} late: {rows:,} {bins.gone if series else 'stayed'}"
        top = float(y(rows))
        shapes.append(DrawnShape(d=bar(left + 1, top, max(right - left - 2, 0.6), y.start - top), title=words))
    return Layer(style="bars", tone="late" if series else "kept", shapes=tuple(shapes))


def _x_ticks(edges: Longs, x: Scale, room: float) -> tuple[Tick, ...]:
    step = nice_above(room * float(edges[-1] - edges[0]) / (x.end - x.start))
    first = int(np.ceil(edges[0] / step)) * step
    spans = range(first, int(edges[-1]), step)
    return tuple(Tick(at=float(x(span)), label=duration(span) if span else "0", style="none") for span in spans)


def _marks(bins: Bins, x: Scale) -> tuple[ChartMark, ...]:
    if bins.delay is None:
        return ()
    stayed, aside = (int(part[bins.edges[:-1] >= bins.delay].sum()) for part in bins.counts)
    at = float(x(bins.delay))
    lines = (f"CTI delay {duration(bins.delay)}", f"beyond it: {aside:,} {bins.gone},", f"{stayed:,} stayed")
    return (ChartMark(at=at, lines=lines, side="end" if at > x.start + (x.end - x.start) * 0.6 else "start"),)
