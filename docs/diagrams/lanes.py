"""From what a case came to, to the lanes of a heartbeat and of a metronome, and to the whole picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docs.diagrams.cases import spoken
from docs.diagrams.ports import merge_lanes
from docs.diagrams.shapes import LEVEL, Lane, Mark, Picture, Style, box, pixel, stacked
from pipelines.flows.durations import spell
from pipelines.operators.heartbeat import HeartbeatPolicy
from pipelines.operators.metronome import MetronomePolicy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from docs.diagrams.running import Ran, Row
    from pipelines.flows.model import Stream

STAMPED, CAME, OUT = 10.0, 40.0, 70.0
"""Heights in the lane of a key: event times, arrivals, and the first level of what leaves."""
BETWEEN = 10
"""Pixels below a key."""
LABELS = (5, 10, 15, 30, 60, 120, 300)
"""Seconds from one label of the axis to the next: the first that gives each room."""
ROOM = 70
SECOND = 1_000_000


def picture(ran: Ran) -> Picture:
    """Draw the streams that a case wants drawn."""
    case, span = ran.case, ran.span
    lanes = [lane for name in case.draws for lane in _of_stream(ran, ran.flow.streams[name])]
    step = next(s * SECOND for s in LABELS if pixel(span, span[0] + s * SECOND) - pixel(span, span[0]) >= ROOM)
    return Picture(
        title=case.title,
        about=case.about,
        span=span,
        labels=tuple((tick, spoken(tick, case.day)) for tick in _multiples(span, step)),
        lanes=tuple(lanes),
        blind=case.blind,
        readings=case.readings,
    )


def _multiples(span: tuple[int, int], step: int) -> range:
    return range(-(-span[0] // step) * step, span[1] + 1, step)


def _of_stream(ran: Ran, stream: Stream) -> Iterator[Lane]:
    policy = stream.policy
    if isinstance(policy, HeartbeatPolicy):
        words = f"interval {spell(policy.interval)}, slack {spell(policy.slack)}"
        yield _heading(f"{stream.name}: heartbeat of {stream.inputs[0]}, {words}")
        for key in sorted({row[ran.key] for row in ran.rows_into(stream.name)}):
            yield _heartbeat_lane(ran, stream.name, policy.interval, key)
    elif isinstance(policy, MetronomePolicy):
        yield _heading(f"{stream.name}: metronome of {spell(policy.interval)}")
        yield _metronome_lane(ran, stream.name, policy.interval)
    else:
        yield _heading(f"{stream.name}: merge of {', '.join(stream.inputs)}")
        yield from merge_lanes(ran, stream)


def _heading(words: str) -> Lane:
    return Lane(height=30, name=words)


def _heartbeat_lane(ran: Ran, stream: str, interval: int, key: str) -> Lane:
    """Draw one key of a heartbeat: event times, arrivals, what leaves, and what the ledger says."""
    given = [row for row in ran.rows_into(stream) if row[ran.key] == key]
    left = [row for row in ran.streams[stream] if row[ran.key] == key]
    leaving, levels = _leaving(ran, left, OUT)
    below = OUT + LEVEL * levels
    told = list(_told(ran, stream, given, below))
    height = below + (LEVEL if told else 0) + BETWEEN
    notes = [(STAMPED, f"{key}: event time"), (CAME, f"{key}: arrival"), (OUT, f"{key}: leaves")]
    notes += [(below, f"{key}: ledger")] if told else []
    marks = (*_lines(ran, interval, height - BETWEEN - 8), *_came(ran, stream, given), *leaving, *told)
    return Lane(height=height, notes=tuple(notes), marks=marks)


def _metronome_lane(ran: Ran, stream: str, interval: int) -> Lane:
    leaving, levels = _leaving(ran, ran.streams[stream], 12)
    height = 12 + LEVEL * levels
    return Lane(height=height, notes=((12, "leaves"),), marks=(*_lines(ran, interval, height - 8), *leaving))


def _lines(ran: Ran, interval: int, height: float) -> Iterator[Mark]:
    for tick in _multiples(ran.span, interval):
        yield Mark(style=Style.MULTIPLE, at=tick, y=-2, to=height)


def _came(ran: Ran, stream: str, rows: Sequence[Row]) -> Iterator[Mark]:
    """Give each row twice: at its event time, and at its arrival."""
    newest: int | None = None
    for row in rows:
        at, time = row["arrival"], row["event_time"]
        style = _style(time, newest, ran.reason(stream, row))
        newest = time if style is Style.ROW else newest
        told = f"stamped {spoken(time, ran.case.day) or 'with no time'}, arrived {spoken(at, ran.case.day)}"
        if time is not None:
            yield from _stamped(ran, at, time, told)
        yield Mark(style=style, at=at, y=CAME, told=told)


def _stamped(ran: Ran, at: int, time: int, told: str) -> Iterator[Mark]:
    beyond = not ran.span[0] <= time <= ran.span[1]
    yield Mark(style=Style.LINK, at=time, y=STAMPED, until=at, to=CAME)
    yield Mark(style=Style.BEYOND if beyond else Style.EVENT, at=time, y=STAMPED, told=told)
    if beyond:
        yield Mark(style=Style.TEXT, at=time, y=STAMPED, text=spoken(time, ran.case.day).partition(" ")[0])


def _style(time: int | None, newest: int | None, reason: str) -> Style:
    """Say how a row is drawn; what the ledger names is no news of the clock."""
    if time is None:
        return Style.NULL
    if reason:
        return Style.REFUSED
    return Style.EARLY if newest is not None and time < newest else Style.ROW


def _told(ran: Ran, stream: str, rows: Sequence[Row], y: float) -> Iterator[Mark]:
    for row in rows:
        if reason := ran.reason(stream, row):
            yield Mark(style=Style.REFUSED, at=row["arrival"], y=y)
            yield Mark(style=Style.WARNING, at=row["arrival"], y=y, text=reason)


def _leaving(ran: Ran, rows: Sequence[Row], top: float) -> tuple[list[Mark], int]:
    """Give the marks of what leaves, each on the first level where it has room, and the number of levels."""
    day, instants = ran.case.day, [row["arrival"] for row in rows]
    words = [spoken(row["event_time"], day) if row["kind"] == "timer" else "" for row in rows]
    boxes = [
        box(ran.span, min(row["event_time"], at) if text else at, at, text, at)
        for row, at, text in zip(rows, instants, words, strict=True)
    ]
    levels = stacked(boxes, instants)
    placed = zip(rows, words, levels, strict=True)
    marks = [mark for row, text, level in placed for mark in _left(row, text, top + LEVEL * level, day)]
    return marks, max(levels, default=0) + 1


def _left(row: Row, text: str, y: float, day: str) -> Iterator[Mark]:
    at, due = row["arrival"], row["due_at"]
    if not text:
        yield Mark(style=Style.ROW, at=at, y=y, told=f"left {spoken(at, day)}")
        return
    told = f"timer {text}, due {spoken(due, day)}, left {spoken(at, day)}"
    if row["event_time"] != at:
        yield Mark(style=Style.WAIT, at=row["event_time"], y=y, until=at, to=y)
    if due != at:
        yield Mark(style=Style.DUE, at=due, y=y, told=told)
    yield Mark(style=Style.TIMER, at=at, y=y, told=told)
    yield Mark(style=Style.TEXT, at=at, y=y, text=text)
