"""What a picture is made of: lanes of marks over one axis of time. Nothing here knows of operators, or of SVG."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

LEFT, RIGHT = 140, 850
"""Where the axis begins and ends, in pixels."""
CHARACTER = 6.8
"""Pixels that a character of a label takes at most."""
LEVEL = 20
"""Pixels from one level of a lane to the next."""


class Style(Enum):
    """What a mark looks like."""

    ROW = "row"
    EVENT = "event"
    """A row at its event time."""
    EARLY = "early"
    """A row earlier than one before it."""
    NULL = "null"
    REFUSED = "refused"
    """A row that the ledger names."""
    TIMER = "timer"
    DUE = "due"
    WAIT = "wait"
    """From a timer's own time to its leaving."""
    HOLD = "hold"
    KEPT = "kept"
    """Held, and not released."""
    MULTIPLE = "multiple"
    BLIND = "blind"
    READING = "reading"
    RELEASE = "release"
    """A line down to what one row let go."""
    LINK = "link"
    """From a row's event time to its arrival."""
    BEYOND = "beyond"
    """An arrow to the edge: what it points to lies beyond."""
    LIFE = "life"
    """The lifetime of an event as it leaves."""
    OTHER = "other"
    """The lifetime of an event of the second port."""
    CAME = "came"
    """The lifetime of an event as it came, where it leaves with another."""
    REACH = "came reach"
    """From a row that stands to the last instant at which one that is the same is dropped; drawn as `CAME` is."""
    LOST = "lost"
    """The lifetime of an event that does not get through."""
    ASIDE = "aside"
    """The lifetime of an event that is set aside."""
    RESULT = "result"
    """The lifetime of what an operator makes."""
    POINT = "point"
    """An event that lasts one tick."""
    POINT_LOST = "point-lost"
    POINT_ASIDE = "point-aside"
    ENDLESS = "endless"
    """Behind a start edge, whose end is not known."""
    CTI = "cti"
    GIVEN = "given"
    """A CTI that comes in."""
    PROMISED = "promised"
    """The instants before the newest CTI, for as long as it is that."""
    FRONT = "front"
    """The edge of what is promised."""
    BORDER = "border"
    """Where a window begins."""
    TEXT = "text"
    WARNING = "warning"


@dataclass(frozen=True, kw_only=True)
class Mark:
    """One thing in a lane; instants are ticks, heights pixels below the lane's top."""

    style: Style
    at: int
    y: float = 0.0
    until: int | None = None
    to: float | None = None
    """The height at which it ends, where that is another."""
    text: str = ""
    told: str = ""
    """What a viewer says when somebody points at it."""


@dataclass(frozen=True, kw_only=True)
class Lane:
    """A strip of the picture."""

    height: float
    name: str = ""
    notes: tuple[tuple[float, str], ...] = ()
    """Words at its left, by height."""
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Picture:
    """All of one drawing."""

    title: str
    about: str
    span: tuple[int, int]
    labels: tuple[tuple[int, str], ...]
    """Words along the axis, by instant."""
    lanes: tuple[Lane, ...]
    blind: tuple[tuple[int, int], ...] = ()
    readings: tuple[int, ...] = ()
    axis: str = "readings"
    """What the axis is called."""
    edges: tuple[int, int] = (LEFT, RIGHT)
    """Where the axis begins and ends, in pixels."""

    def x(self, tick: int) -> float:
        """Give the pixel of an instant, held inside the axis."""
        return pixel(self.span, tick, self.edges)


def pixel(span: tuple[int, int], tick: int, edges: tuple[int, int] = (LEFT, RIGHT)) -> float:
    """Give the pixel of an instant on the axis of a span, held inside it."""
    (low, high), (left, right) = span, edges
    return left + (min(max(tick, low), high) - low) / (high - low) * (right - left)


def wide(text: str) -> float:
    """Give the pixels that a label may take."""
    return len(text) * CHARACTER


def box(span: tuple[int, int], start: int, end: int, words: str, at: int) -> tuple[float, float]:
    """Give the first and the last pixel of a mark that lasts from `start` to `end` and has its words at `at`."""
    x, first, last = pixel(span, at), pixel(span, start) - 8, pixel(span, end) + 8
    if turned(x, words):
        return min(first, x - 8 - wide(words)), last
    return first, max(last, x + 9 + wide(words))


def turned(x: float, words: str) -> bool:
    """Say whether words stand at the left of a mark, because at its right they would leave the picture."""
    return x + 9 + wide(words) > RIGHT + 40


def stacked(boxes: Iterable[tuple[float, float]], instants: Iterable[int]) -> list[int]:
    """Give each box the first level on which it covers no box before it; one of the same instant stands below.

    >>> stacked([(0, 50), (40, 90), (60, 70), (60, 70)], [1, 2, 3, 3])
    [0, 1, 0, 2]

    Args:
        boxes: first and last pixel of each.
        instants: when each of them is.
    """
    ends: list[float] = []
    levels: list[int] = []
    before: int | None = None
    for (first, last), instant in zip(boxes, instants, strict=True):
        above = levels[-1] + 1 if instant == before else 0
        level = next((i for i in range(above, len(ends)) if ends[i] <= first), len(ends))
        ends[level : level + 1] = [last]
        levels.append(level)
        before = instant
    return levels
