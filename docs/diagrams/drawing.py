"""Writes a picture as SVG, on a background of its own. The same picture gives the same bytes."""

from __future__ import annotations

import textwrap
from html import escape
from typing import TYPE_CHECKING

from docs.diagrams.shapes import LEFT, RIGHT, Mark, Picture, Style, turned, wide

if TYPE_CHECKING:
    from collections.abc import Iterator

WIDTH, MARGIN = 900, 20
LINE = 17
WRAP = 126
"""Characters of a line under the title."""
KEY = 26
"""Pixels from a sign of the legend to its words."""

LEGEND = {
    Style.ROW: "row, when it arrives",
    Style.EVENT: "row, at its event time",
    Style.EARLY: "row earlier than one before it",
    Style.NULL: "row without a time",
    Style.REFUSED: "row named in the ledger",
    Style.TIMER: "timer, with its time",
    Style.DUE: "when a timer was due",
    Style.WAIT: "from a timer's time to its leaving",
    Style.HOLD: "held until released",
    Style.KEPT: "still held at the last reading",
    Style.RELEASE: "a release",
    Style.MULTIPLE: "multiple of the interval",
    Style.BLIND: "blind span",
    Style.READING: "reading of the clock",
    Style.POINT: "a point",
    Style.POINT_LOST: "a point, dropped",
    Style.POINT_ASIDE: "a point, diverted",
    Style.LIFE: "lifetime of an event",
    Style.OTHER: "lifetime of an event of the second side",
    Style.ENDLESS: "end not known",
    Style.CAME: "as it came, before it was moved",
    Style.REACH: "where one that is the same is dropped",
    Style.LOST: "dropped: in the ledger alone",
    Style.ASIDE: "diverted: kept in a stream beside",
    Style.RESULT: "what leaves",
    Style.GIVEN: "CTI that comes in",
    Style.CTI: "CTI that leaves",
    Style.PROMISED: "before the newest CTI: nothing more starts here",
    Style.BORDER: "where a window begins",
}
"""What it says of each style; the others explain themselves."""

WORDS = frozenset({Style.TEXT, Style.WARNING})
"""They stand on top of all else, so that no line goes through them."""

BARS = frozenset(
    {Style.LIFE, Style.OTHER, Style.ENDLESS, Style.CAME, Style.REACH, Style.LOST, Style.ASIDE, Style.RESULT}
)
"""Lifetimes."""

CSS = """
text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",Arial,sans-serif;fill:#1d2329}
.label,.warning{paint-order:stroke;stroke:#fbfaf8;stroke-width:3;stroke-linejoin:round}
.title{font-size:17px;font-weight:600}.name{font-weight:600}.soft{fill:#5b6570}.warning{fill:#b3261e}
.paper{fill:#fbfaf8;stroke:#d6d3cc}.blind{fill:#8a7a52;fill-opacity:.16}.grid{stroke:#e6e3dd}.axis{stroke:#5b6570}
.multiple{stroke:#9b7fd6;stroke-dasharray:2 3}.release{stroke:#7d93ac;stroke-dasharray:1 3}
.link,.beyond{stroke:#8a939c;fill:none}.event{fill:#fbfaf8;stroke:#2a6fc9;stroke-width:1.6}.row{fill:#2a6fc9}
.early{fill:#fbfaf8;stroke:#c97a00;stroke-width:2.2}.null{fill:#fbfaf8;stroke:#5b6570;stroke-width:2}
.refused{stroke:#c62f1f;stroke-width:2.4;fill:none}.timer{fill:#6d3fc0}
.due{fill:#fbfaf8;stroke:#6d3fc0;stroke-width:1.4}.wait{stroke:#6d3fc0;stroke-width:2;stroke-opacity:.45}
.hold{stroke:#7d93ac;stroke-width:5;stroke-opacity:.55}.kept{stroke:#c97a00;stroke-width:5;stroke-opacity:.55}
.reading{stroke:#1d2329;stroke-width:2}
""".strip()
LASTING_CSS = """
.life,.other,.came,.lost,.aside,.result,.endless{stroke-width:9;fill:none}
.life{stroke:#2a6fc9}.other{stroke:#5b6570}.endless{stroke:#5b6570;stroke-width:3;stroke-dasharray:1 4}
.point{fill:#2a6fc9}.point-aside{fill:#fbfaf8;stroke:#c97a00;stroke-width:2.6}
.point-lost{stroke:#c62f1f;stroke-width:2.4;fill:none}.name{paint-order:stroke;stroke:#fbfaf8;stroke-width:4}
.came{stroke:#2a6fc9;stroke-opacity:.3}.lost{stroke:#c62f1f;stroke-opacity:.75}.aside{stroke:#c97a00}
.result{stroke:#1f8257}.cti{fill:#6d3fc0}.given{fill:#fbfaf8;stroke:#6d3fc0;stroke-width:1.6}
.promised{fill:#6d3fc0;fill-opacity:.1}.front{stroke:#6d3fc0;stroke-width:1.6;fill:none}
.border{stroke:#1f8257;stroke-dasharray:2 3}
""".strip()
"""What the pictures need beside it that show lifetimes."""


def svg(picture: Picture) -> str:
    """Write a picture as an SVG document."""
    top = below_head(picture.about)
    bottom = top + sum(lane.height for lane in picture.lanes)
    legend = list(_legend(picture, bottom + 66))
    style = CSS if picture.edges == (LEFT, RIGHT) else f"{CSS}\n{LASTING_CSS}"
    lines = [
        *head(picture.title, picture.about, bottom + 66 + (legend[-1][0] if legend else 0), style),
        *_ground(picture, top, bottom),
        *_lanes(picture, top),
        *_axis(picture, bottom),
        *(told for _, told in legend),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def below_head(about: str) -> int:
    """Give the height at which a drawing begins, below its title and its words."""
    return 48 + LINE * len(textwrap.wrap(about, WRAP))


def head(title: str, about: str, height: float, style: str) -> Iterator[str]:
    """Begin the document: its words for those who cannot see it, its background, its title."""
    size = f'viewBox="0 0 {WIDTH} {number(height)}" width="{WIDTH}" height="{number(height)}"'
    yield f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title about">'
    yield f'<title id="title">{escape(title)}</title>'
    yield f'<desc id="about">{escape(about)}</desc>'
    yield f"<style>{style}</style>"
    yield f'<rect class="paper" x=".5" y=".5" width="{WIDTH - 1}" height="{number(height - 1)}" rx="8"/>'
    yield text(MARGIN, 32, title, "title")
    for i, told in enumerate(textwrap.wrap(about, WRAP)):
        yield text(MARGIN, 53 + LINE * i, told, "soft")


def number(value: float) -> str:
    """Write pixels with one digit behind the point at most."""
    return f"{value:.1f}".removesuffix(".0")


def text(x: float, y: float, words: str, tone: str = "", anchor: str = "start") -> str:
    """Write words at a place."""
    where = f'x="{number(x)}" y="{number(y)}"' + (f' text-anchor="{anchor}"' if anchor != "start" else "")
    return f"<text {where}{_class(tone)}>{escape(words)}</text>"


def rect(x: float, y: float, width: float, height: float, tone: str) -> str:
    """Draw a box."""
    size = f'width="{number(width)}" height="{number(height)}"'
    return f'<rect class="{tone}" x="{number(x)}" y="{number(y)}" {size}/>'


def _class(tone: str) -> str:
    return f' class="{tone}"' if tone else ""


def line(x1: float, y1: float, x2: float, y2: float, tone: str) -> str:
    """Draw a line from one place to another."""
    return f'<path{_class(tone)} d="M{number(x1)} {number(y1)}L{number(x2)} {number(y2)}"/>'


def _ground(picture: Picture, top: float, bottom: float) -> Iterator[str]:
    for start, end in picture.blind:
        x, right, height = picture.x(start), picture.x(end), bottom + 24 - top
        yield rect(x, top, right - x, height, "blind")
    for tick, _ in picture.labels:
        yield line(picture.x(tick), top, picture.x(tick), bottom + 24, "grid")


def _axis(picture: Picture, bottom: float) -> Iterator[str]:
    """Draw the readings, and under them the axis of time."""
    yield text(MARGIN, bottom + 18, picture.axis, "name")
    for reading in picture.readings:
        x = picture.x(reading)
        yield line(x, bottom + 6, x, bottom + 22, "reading")
    yield line(picture.edges[0], bottom + 24, picture.edges[1], bottom + 24, "axis")
    for tick, words in picture.labels:
        yield text(picture.x(tick), bottom + 40, words, "soft", "middle")


def _lanes(picture: Picture, top: float) -> Iterator[str]:
    for lane in picture.lanes:
        if lane.name:
            yield text(MARGIN, top + 16, lane.name, "name")
        for y, words in lane.notes:
            yield text(MARGIN, top + y + 4, words, "soft")
        for mark in sorted(lane.marks, key=lambda mark: mark.style in WORDS):
            yield _told(mark, _drawn(picture, mark, top))
        top += lane.height


def _told(mark: Mark, drawn: str) -> str:
    return f"<g><title>{escape(mark.told)}</title>{drawn}</g>" if mark.told else drawn


def _drawn(picture: Picture, mark: Mark, top: float) -> str:
    x, y, tone = picture.x(mark.at), top + mark.y, mark.style.value
    if mark.style in WORDS:
        left = turned(x, mark.text)
        tone = "label" if mark.style is Style.TEXT else tone
        return text(x - 9 if left else x + 9, y + 4, mark.text, tone, "end" if left else "start")
    if mark.style is Style.PROMISED:
        return rect(x, y, picture.x(mark.until or mark.at) - x, (mark.to or 0.0) - mark.y, tone)
    if mark.until is not None or mark.to is not None:
        x2 = x if mark.until is None else picture.x(mark.until)
        y2 = y if mark.to is None else top + mark.to
        return line(x, y, x2, y2, tone)
    return _sign(mark.style, x, y)


def _sign(style: Style, x: float, y: float) -> str:
    tone, at = style.value, f"M{number(x)} {number(y)}"
    if style in {Style.TIMER, Style.DUE}:
        return f'<path class="{tone}" d="{at}m0 -6l6 6l-6 6l-6 -6z"/>'
    if style in {Style.CTI, Style.GIVEN}:
        return f'<path class="{tone}" d="{at}m0 6l-6 -11l12 0z"/>'
    if style in {Style.REFUSED, Style.POINT_LOST}:
        return f'<path class="{tone}" d="{at}m-5 -5l10 10m0 -10l-10 10"/>'
    if style is Style.NULL:
        return f'<rect class="{tone}" x="{number(x - 4.5)}" y="{number(y - 4.5)}" width="9" height="9"/>'
    if style is Style.BEYOND:
        way = 1 if x > (LEFT + RIGHT) / 2 else -1
        return f'<path class="{tone}" d="{at}m{-7 * way} -5l{7 * way} 5l{-7 * way} 5"/>'
    return f'<circle class="{tone}" cx="{number(x)}" cy="{number(y)}" r="{4 if style is Style.EVENT else 5}"/>'


def _legend(picture: Picture, y: float) -> Iterator[tuple[float, str]]:
    """Explain the styles that the picture has, in rows; with each line the height that is used so far."""
    there = {mark.style for lane in picture.lanes for mark in lane.marks}
    there |= ({Style.BLIND} if picture.blind else set()) | ({Style.READING} if picture.readings else set())
    x, row = float(MARGIN), 0
    for style, words in LEGEND.items():
        if style not in there:
            continue
        if x + KEY + wide(words) > WIDTH - MARGIN:
            x, row = float(MARGIN), row + 1
        at = y + 20 * row
        yield 20 * row + 22, _swatch(style, x + 8, at)
        yield 20 * row + 22, text(x + KEY, at + 4, words, "soft")
        x += KEY + wide(words) + 14


def _swatch(style: Style, x: float, y: float) -> str:
    tone = style.value
    if style in {Style.BLIND, Style.PROMISED}:
        return f'<rect class="{tone}" x="{number(x - 8)}" y="{number(y - 7)}" width="16" height="14"/>'
    if style in {Style.READING, Style.MULTIPLE, Style.RELEASE, Style.BORDER}:
        return line(x, y - 8, x, y + 8, tone)
    if style in {Style.WAIT, Style.HOLD, Style.KEPT, *BARS}:
        return line(x - 8, y, x + 8, y, tone)
    return _sign(style, x, y)
