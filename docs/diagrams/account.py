"""From what a case came to, to where its rows went: the landing and each operator, with its account."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from docs.diagrams.drawing import CSS, MARGIN, WIDTH, below_head, head, line, number, rect, text
from pipelines.flows.model import DIVERTED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docs.diagrams.running import Ran

BAND = 112
"""Pixels from one station to the next."""
HIGH = 70
STATION, BESIDE, LEDGER = (40, 330), (455, 620), (745, WIDTH - MARGIN)
"""Where the three columns begin and end."""
ACCOUNT_CSS = """
.station,.beside,.ledger{rx:6px}.station{fill:#e9f0fa;stroke:#2a6fc9}.beside{fill:#fdf1dc;stroke:#c97a00}.ledger{fill:#f9e6e3;stroke:#c62f1f}
.way{stroke:#5b6570;stroke-width:1.6;fill:none}.aside{stroke:#c97a00;stroke-width:1.6;fill:none}
.lost{stroke:#c62f1f;stroke-width:1.6;fill:none}
""".strip()


@dataclass(frozen=True, kw_only=True)
class Station:
    """One place that rows go through, and what became of them there."""

    name: str
    came: int
    left: int
    """Of the rows that came, those in the main stream."""
    made: int
    """Timers and CTIs that the operator adds."""
    aside: int
    held: int
    told: Counter[tuple[str, str]]
    """Lines of the ledger, by action and reason."""

    @property
    def dropped(self) -> int:
        """Count the lines that stand in place of a row; the others stand beside one that left."""
        return sum(count for (action, _), count in self.told.items() if action == "dropped")

    @property
    def balance(self) -> str:
        """Write the account as a sum."""
        parts = [f"{self.left} left"]
        named = (("aside", self.aside), ("dropped", self.dropped), ("held", self.held))
        return f"{self.came} in = " + " + ".join([*parts, *(f"{count} {name}" for name, count in named if count)])


def stations(ran: Ran) -> list[Station]:
    """Count what each station did with its rows."""
    (source,) = ran.flow.sources
    landing = _station(f"landing: {source}", len(ran.landed[source]), 0, 0, 0, _lines(ran, source))
    found = [replace(landing, came=landing.left + landing.dropped)]
    for name in ran.case.draws:
        stream = ran.flow.streams[name]
        came, out = ran.rows_into(name), ran.streams[name]
        kinds = {row["kind"] for row in came}
        made = sum(row["kind"] not in kinds and row["kind"] in {"timer", "cti"} for row in out)
        aside = len(ran.streams.get(name + DIVERTED, ()))
        held = len(ran.held.get(name, ()))
        station = _station(f"{name}: {stream.operator}", len(out) - made, made, aside, held, _lines(ran, name))
        found.append(replace(station, came=len(came)))
    return found


def _station(name: str, left: int, made: int, aside: int, held: int, told: Counter[tuple[str, str]]) -> Station:  # noqa: PLR0913 - the account
    return Station(name=name, came=0, left=left, made=made, aside=aside, held=held, told=told)


def _lines(ran: Ran, stream: str) -> Counter[tuple[str, str]]:
    return Counter((str(row["action"]), str(row["reason"])) for row in ran.ledger if row["stream"] == stream)


def account_svg(ran: Ran) -> str:
    """Write the picture of a case's account as an SVG document."""
    case, found = ran.case, stations(ran)
    top = below_head(case.about) + 34
    height = top + BAND * len(found) - 4
    lines = [
        *head(case.title, case.about, height, f"{CSS}\n{ACCOUNT_CSS}"),
        text((STATION[0] + STATION[1]) / 2, top - 14, "main stream", "soft", "middle"),
        text((BESIDE[0] + BESIDE[1]) / 2, top - 14, "kept beside", "soft", "middle"),
        text((LEDGER[0] + LEDGER[1]) / 2, top - 14, "ledger", "soft", "middle"),
        _box(LEDGER, top, BAND * len(found) - 30, "ledger"),
    ]
    for place, station in enumerate(found):
        last = place == len(found) - 1
        lines += _band(station, top + BAND * place, last=last)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _box(columns: tuple[int, int], top: float, height: float, tone: str) -> str:
    left, right = columns
    return rect(left, top, right - left, height, tone)


def _band(station: Station, top: float, *, last: bool) -> Iterator[str]:
    yield _box(STATION, top, HIGH, "station")
    yield text(STATION[0] + 12, top + 22, station.name, "name")
    yield text(STATION[0] + 12, top + 42, station.balance)
    if station.made:
        yield text(STATION[0] + 12, top + 60, f"and {station.made} made here", "soft")
    if not last:
        yield from _down(STATION[0] + 40, top + HIGH, top + BAND)
        yield text(STATION[0] + 52, top + HIGH + 26, f"{station.left + station.made} rows", "soft")
    yield from _kept(station, top)
    yield from _ledger(station, top)


def _kept(station: Station, top: float) -> Iterator[str]:
    kept = (
        f"{station.aside} in {station.name.partition(':')[0]}{DIVERTED}"
        if station.aside
        else f"{station.held} held in the carry"
    )
    if station.aside or station.held:
        yield _box(BESIDE, top + 36, 34, "beside")
        yield text(BESIDE[0] + 12, top + 58, kept)
        yield from _right(STATION[1], BESIDE[0], top + 53, "aside")
        yield text((STATION[1] + BESIDE[0]) / 2, top + 48, "aside" if station.aside else "held", "soft", "middle")


def _ledger(station: Station, top: float) -> Iterator[str]:
    y, kept = top + 16, station.aside or station.held
    for (action, reason), count in sorted(station.told.items()):
        yield from _right(STATION[1], LEDGER[0], y, "lost" if action == "dropped" else "way")
        yield text(STATION[1] + 12, y - 5, f"{count} {action}", "soft")
        yield text(LEDGER[0] + 10, y + 4, reason)
        y += 37 if kept else 20


def _down(x: float, start: float, end: float) -> Iterator[str]:
    yield line(x, start, x, end - 2, "way")
    yield f'<path class="way" d="M{number(x - 4)} {number(end - 8)}l4 6l4 -6"/>'


def _right(start: float, end: float, y: float, tone: str) -> Iterator[str]:
    yield line(start, y, end - 2, y, tone)
    yield f'<path class="{tone}" d="M{number(end - 8)} {number(y - 4)}l6 4l-6 4"/>'
