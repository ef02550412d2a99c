"""What a chart is made of, before it is SVG: a frame, ticks, layers of shapes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Width(Enum):
    """The screen a chart is drawn for."""

    WIDE = "wide"
    """A desk or a sheet of paper."""
    NARROW = "narrow"
    """A phone held upright."""


@dataclass(frozen=True, kw_only=True)
class Frame:
    """The plot inside the drawing, in pixels; y grows downwards."""

    width: Width
    total_width: int
    total_height: int
    left: int
    right: int
    top: int
    bottom: int


def frame(width: Width, height: int) -> Frame:
    """Give the frame of a chart for that screen."""
    total, start = (1040, 62) if width is Width.WIDE else (400, 52)
    bottom, right = height - 34, total - 10
    return Frame(width=width, total_width=total, total_height=height, left=start, right=right, top=14, bottom=bottom)


@dataclass(frozen=True, kw_only=True)
class Tick:
    """A word on an axis and, if asked for, a line through the plot."""

    at: float
    label: str
    style: str = "grid"
    """CSS class of the line: `grid`, `faint` or `none`."""
    label_at: float | None = None
    """Where the word stands, if not beside its line."""


@dataclass(frozen=True, kw_only=True)
class DrawnShape:
    """One path, and the words shown when it is pointed at."""

    d: str
    title: str = ""


@dataclass(frozen=True, kw_only=True)
class Layer:
    """Shapes that look alike."""

    style: str
    """CSS class: `dots`, `diamonds`, `dashes`, `line`, `area`, `bars`."""
    tone: str
    """CSS class of the colour: `key-0` to `key-7`, `key-other`, `timer`, `cti`, `late`, `kept`."""
    shapes: tuple[DrawnShape, ...]


@dataclass(frozen=True, kw_only=True)
class ChartMark:
    """A vertical line with words beside it."""

    at: float
    lines: tuple[str, ...]
    side: str = "start"
    """SVG text-anchor: `start` puts the words right of the line, `end` left of it."""


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """One chart for one screen."""

    frame: Frame
    label: str
    """What a screen reader says."""
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    layers: tuple[Layer, ...]
    marks: tuple[ChartMark, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Legend:
    """One entry beside a chart."""

    style: str
    tone: str
    label: str


@dataclass(frozen=True, kw_only=True)
class Chart:
    """One chart with its words."""

    name: str
    title: str
    lead: str
    drawings: tuple[Drawing, ...]
    legend: tuple[Legend, ...] = ()
    notes: tuple[str, ...] = ()
    head: tuple[str, ...] = ()
    """Column names of the numbers behind the chart; empty where no table is shown."""
    table: tuple[tuple[str, ...], ...] = ()
    y_title: str = ""


def number(value: float) -> str:
    """Write a coordinate to a tenth of a pixel.

    >>> number(3.14159), number(12.0), number(-0.01)
    ('3.1', '12', '0')
    """
    return f"{round(float(value), 1) + 0.0:.1f}".removesuffix(".0")


def bar(x: float, y: float, width: float, height: float) -> str:
    """Give the path of a rectangle."""
    return f"M{number(x)} {number(y)}h{number(width)}v{number(height)}h{number(-width)}z"


def dot(x: float, y: float) -> str:
    """Give the path of a point: its round cap makes the disc."""
    return f"M{number(x)} {number(y)}h.01"


def diamond(x: float, y: float, size: float) -> str:
    """Give the path of a diamond around a point."""
    s = number(size)
    return f"M{number(x)} {number(y - size)}l{s} {s}l-{s} {s}l-{s}-{s}z"


def dash(x: float, y: float, size: float) -> str:
    """Give the path of a short upright dash."""
    return f"M{number(x)} {number(y - size)}v{number(2 * size)}"
