"""The history of one expectation as a line of small bars: one an interval, higher the more of its rows break it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from expectations.report.charts.drawing import DrawnShape, Layer, bar
from expectations.report.memory import VerdictOutcome
from expectations.report.words import counted, listed, share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from expectations.report.memory import PastVerdict
    from expectations.report.words import ReportClock

MOST_DRAWN = 60
"""Intervals that are drawn: the newest."""
WIDTH, HEIGHT = 120, 22
FLAT = 4.0
"""Pixels of the bar of an interval that held."""
LEAST = 9.0
"""Pixels of one that did not, whatever the share."""
WIDEST = 12.0


@dataclass(frozen=True, kw_only=True)
class Trend:
    """The drawing, and what a screen reader says of it."""

    width: int
    height: int
    label: str
    layers: tuple[Layer, ...]


def trend(points: Sequence[PastVerdict], noun: str, clock: ReportClock) -> Trend | None:
    """Draw the newest verdicts of an expectation, one an interval; None where there is only one to compare.

    Intervals that held and follow one another are one bar, so that a long good history takes no room.

    Args:
        points: in the order of time.
        noun: what breaks it: a row, or a case.
        clock: says the intervals.
    """
    shown = points[-MOST_DRAWN:]
    if len(shown) < 2:  # noqa: PLR2004 - one is no history
        return None
    slot = min(WIDTH / len(shown), WIDEST)
    gap = 1.0 if slot > 2 * 1.0 else 0.3
    shapes: dict[VerdictOutcome, list[DrawnShape]] = {outcome: [] for outcome in VerdictOutcome}
    for held, group in groupby(enumerate(shown), key=lambda pair: pair[1].held):
        placed = list(group)
        if held:
            first, wide = placed[0][0] * slot, len(placed) * slot - gap
            shapes[VerdictOutcome.HELD].append(DrawnShape(d=bar(first, HEIGHT - FLAT, wide, FLAT)))
            continue
        for place, each in placed:
            tall = LEAST + (HEIGHT - LEAST) * (1.0 if each.share is None else each.share**0.5)
            drawn = DrawnShape(
                d=bar(place * slot, HEIGHT - tall, slot - gap, tall),
                title=f"{clock.span(each.start, each.end)}: {told(each, noun)}",
            )
            shapes[each.outcome].append(drawn)
    return Trend(
        width=WIDTH,
        height=HEIGHT,
        label=_label(points, shown),
        layers=tuple(
            Layer(style="bars", tone=f"was-{outcome}", shapes=tuple(found))
            for outcome, found in shapes.items()
            if found
        ),
    )


def told(verdict: PastVerdict, noun: str) -> str:
    """Say what came of one verdict."""
    if verdict.held:
        return "holds"
    if not verdict.unexpected:
        return "does not hold"
    rows = counted(verdict.unexpected, noun)
    if verdict.looked_at < verdict.unexpected:
        # What breaks it is none of what was looked at: an interval in which nothing landed.
        return rows
    rows = f"{rows} of {verdict.looked_at:,}"
    return rows if verdict.share is None else f"{rows}, {share(verdict.unexpected, verdict.looked_at)}"


def _label(points: Sequence[PastVerdict], shown: Sequence[PastVerdict]) -> str:
    counts = [(sum(each.outcome is outcome for each in shown), outcome) for outcome in VerdictOutcome]
    said = listed([f"{number} {outcome}" for number, outcome in counts if number])
    of = f" of {len(points):,}, the newest" if len(shown) < len(points) else ""
    return f"{counted(len(shown), 'interval')}{of}: {said}"
