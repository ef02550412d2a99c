"""From what a case came to, to the lanes of a merge: a lane for each port, and one for what leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from docs.diagrams.cases import spoken
from docs.diagrams.running import identity
from docs.diagrams.shapes import LEVEL, Lane, Mark, Style, box, stacked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docs.diagrams.running import Ran, Row
    from pipelines.flows.model import Stream

TOP, TRACK = 22.0, 30
"""The first bar of a lane, and from one to the next, in pixels."""
RAISED = 11
"""How far the words of a row stand above its bar."""


class Waiting(NamedTuple):
    """One row at a port: when it came, when it left, and the words beside it."""

    row: Row
    style: Style
    words: str
    released: int | None
    """None where it is still held."""


def merge_lanes(ran: Ran, stream: Stream) -> Iterator[Lane]:
    """Draw a merge by the values of a column: ports in their order, rows of no port, and what leaves."""
    assert stream.ports is not None  # noqa: S101 - a merge has ports
    column, rows = str(stream.ports.column), ran.rows_into(stream.name)
    lanes = [_port(ran, stream.name, [row for row in rows if row[column] == port]) for port in stream.ports.values]
    others = [row for row in rows if row[column] not in stream.ports.values]
    if others:
        lanes.append(_nowhere(ran, stream.name, others))
    height = sum(lane.height for lane in lanes)
    instants = sorted({row["arrival"] for row in ran.streams[stream.name]})
    lines = (Mark(style=Style.RELEASE, at=at, to=height + 6) for at in instants)
    yield Lane(height=0, marks=tuple(lines))
    yield from lanes
    yield _released(ran, stream.name)


def _port(ran: Ran, stream: str, rows: list[Row]) -> Lane:
    span = ran.span
    waiting = _waiting(ran, stream, rows)
    boxes = [
        box(span, one.row["arrival"], span[1] if one.released is None else one.released, one.words, one.row["arrival"])
        for one in waiting
    ]
    levels = stacked(boxes, [one.row["arrival"] for one in waiting])
    marks = [mark for one, level in zip(waiting, levels, strict=True) for mark in _held(ran, one, TOP + TRACK * level)]
    height = TOP + TRACK * (max(levels, default=0) + 1) - 12
    return Lane(height=height, notes=((TOP, f"port {rows[0][ran.key]}"),) if rows else (), marks=tuple(marks))


def _waiting(ran: Ran, stream: str, rows: list[Row]) -> list[Waiting]:
    """Give the rows of one port, with what each is compared as where that is not its own time."""
    released = {identity(row, ran.key): row["arrival"] for row in ran.streams[stream]}
    highest: int | None = None
    found = []
    for row in rows:
        time = row["event_time"]
        words = spoken(time, ran.case.day) or "no time"
        if highest is not None and (time is None or time < highest):
            words += f", as {spoken(highest, ran.case.day)}"
        found.append(Waiting(row, _style(row, highest), words, released.get(identity(row, ran.key))))
        highest = max((each for each in (time, highest) if each is not None), default=None)
    return found


def _style(row: Row, highest: int | None) -> Style:
    if row["kind"] == "timer":
        return Style.TIMER
    if row["event_time"] is None:
        return Style.NULL
    return Style.EARLY if highest is not None and row["event_time"] < highest else Style.ROW


def _held(ran: Ran, one: Waiting, y: float) -> Iterator[Mark]:
    at, last = one.row["arrival"], ran.span[1]
    told = f"{one.words}: came {spoken(at, ran.case.day)}, " + (
        "still held" if one.released is None else f"left {spoken(one.released, ran.case.day)}"
    )
    if one.released is None:
        yield Mark(style=Style.KEPT, at=at, y=y, until=last, to=y, told=told)
    elif one.released > at:
        yield Mark(style=Style.HOLD, at=at, y=y, until=one.released, to=y, told=told)
    yield Mark(style=one.style, at=at, y=y, told=told)
    yield Mark(style=Style.TEXT, at=at, y=y - RAISED, text=one.words)


def _nowhere(ran: Ran, stream: str, rows: list[Row]) -> Lane:
    """Draw the rows of ports that nobody declared."""
    marks: list[Mark] = []
    for row in rows:
        words = f"{row[ran.key]} {spoken(row['event_time'], ran.case.day)}: {ran.reason(stream, row)}"
        marks += [
            Mark(style=Style.REFUSED, at=row["arrival"], y=14, told=words),
            Mark(style=Style.WARNING, at=row["arrival"], y=14, text=words),
        ]
    return Lane(height=30, notes=((14.0, "no port"),), marks=tuple(marks))


def _released(ran: Ran, stream: str) -> Lane:
    rows, day = ran.streams[stream], ran.case.day
    words = [f"{row[ran.key]} {spoken(row['event_time'], day) or 'no time'}" for row in rows]
    instants = [row["arrival"] for row in rows]
    levels = stacked([box(ran.span, at, at, text, at) for at, text in zip(instants, words, strict=True)], instants)
    marks = []
    for row, text, level in zip(rows, words, levels, strict=True):
        style = Style.TIMER if row["kind"] == "timer" else Style.ROW
        at, y = row["arrival"], 14.0 + LEVEL * level
        marks += [
            Mark(style=style, at=at, y=y, told=f"{text}, left {spoken(at, day)}"),
            Mark(style=Style.TEXT, at=at, y=y, text=text),
        ]
    return Lane(height=14 + LEVEL * (max(levels, default=0) + 1), notes=((14.0, "leaves"),), marks=tuple(marks))
