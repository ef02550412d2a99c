"""From what a case came to, to its story: lifetimes over event time, one line a row in the order in which it all came.

Going down is going on in time of arrival. What is shaded lies before the newest CTI that has left.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from docs.diagrams.cases import spoken
from docs.diagrams.shapes import Lane, Mark, Picture, Style, pixel
from pipelines.engine.columnar.columns import instant_tick
from pipelines.flows.durations import spell
from pipelines.flows.model import RESERVED
from pipelines.operators.advance_time import AdvanceTimePolicy
from pipelines.operators.deduplicate import DeduplicatePolicy
from pipelines.operators.window import WindowPolicy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docs.diagrams.cases import Case, Span
    from docs.diagrams.running import Ran, Row
    from pipelines.flows.model import Stream

EDGES = 190, 625
"""Where the axis begins and ends: at its left stands when what came, at its right what became of it."""
LINE = 22
"""Pixels from one line to the next."""
TOP = 12
SHORTEST = 3
"""A lifetime that would be drawn with fewer pixels is drawn as a point."""
LABELS = (10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600)
ROOM = 66
SECOND = 1_000_000
SHOWN = 3
"""In how many windows an event may be for them to be named."""
POINTS = {Style.LOST: Style.POINT_LOST, Style.ASIDE: Style.POINT_ASIDE}
EVENTS = frozenset({"data", "start", "end"})


@dataclass(frozen=True, kw_only=True)
class Told:
    """One line: when what came or left, and what is drawn of it."""

    note: str
    words: str = ""
    warns: bool = False
    bars: tuple[tuple[Style, int, int | None], ...] = ()
    """Style, start and end, None where it is not known; of a point the end is one tick later."""
    cti: int | None = None
    """The CTI that leaves, which is from here on the newest."""
    given: int | None = None
    """The CTI that comes in."""
    beats: int | None = None
    """The time of a timer."""


def story(ran: Ran) -> Picture:
    """Draw the streams that a case wants drawn, one below the other, over one axis of event time."""
    case, span = ran.case, axis(ran.case)
    lanes = [lane for name in case.draws for lane in _of_stream(ran, ran.flow.streams[name], span)]
    width = EDGES[1] - EDGES[0]
    step = next(s * SECOND for s in LABELS if s * SECOND / (span[1] - span[0]) * width >= ROOM)
    labels = range(-(-span[0] // step) * step, span[1] + 1, step)
    return Picture(
        title=case.title,
        about=case.about,
        span=span,
        labels=tuple((tick, spoken(tick, case.day)) for tick in labels),
        lanes=tuple(lanes),
        axis="event time",
        edges=EDGES,
    )


def axis(case: Case) -> Span:
    """Give the event times that a case shows: those that it names, else all its readings."""
    return case.axis or (case.readings[0], case.readings[-1])


def _of_stream(ran: Ran, stream: Stream, span: Span) -> Iterator[Lane]:
    tells = {AdvanceTimePolicy: _advancing, DeduplicatePolicy: _deduplicating}.get(type(stream.policy), _meeting)
    told = list(tells(ran, stream))
    yield Lane(height=30, name=_heading(stream))
    height = TOP + LINE * len(told)
    marks = [mark for place, line in enumerate(told) for mark in _marks(line, TOP + LINE * place, span)]
    shaded = list(_promised(told, height - LINE / 2 + 2, span))
    borders = list(_borders(stream, span, height - LINE / 2 + 2))
    notes = tuple((float(TOP + LINE * place), line.note) for place, line in enumerate(told))
    yield Lane(height=height, notes=notes, marks=(*shaded, *borders, *marks))


def _heading(stream: Stream) -> str:
    policy: Any = stream.policy
    read = ", ".join(stream.inputs)
    if isinstance(policy, AdvanceTimePolicy):
        imported = stream.inputs[1:]
        every = [f"{policy.events} events" if policy.events != 1 else "event"] if policy.events else []
        every += [spell(policy.duration)] if policy.duration else []
        words = [f"a CTI every {' and '.join(every)}"] if every else []
        words += [f"delay {spell(policy.delay)}"] if policy.delay else []
        words += [f"CTIs imported from {imported[0]}"] if imported else []
        words += [f"late: {policy.late.name.lower()}"]
        return f"{stream.name}: advance_time of {stream.inputs[0]}, {', '.join(words)}"
    if isinstance(policy, DeduplicatePolicy):
        on = f"on {', '.join(policy.on)}, " if policy.on else ""
        return f"{stream.name}: deduplicate of {read}, {on}within {spell(policy.within)}"
    if isinstance(policy, WindowPolicy):
        hop = f", hop {spell(policy.hop)}" if policy.hop != policy.size else ""
        return f"{stream.name}: window of {read}, size {spell(policy.size)}{hop}"
    return f"{stream.name}: {stream.operator} of {read}"


def _marks(line: Told, y: float, span: Span) -> Iterator[Mark]:
    for style, start, end in line.bars:
        told = line.note + (f": {line.words}" if line.words else "")
        last = span[1] if end is None else end
        if end is None:
            yield Mark(style=Style.ENDLESS, at=start, y=y, until=last, to=y)
            last = start + (span[1] - span[0]) // 100
        if pixel(span, last, EDGES) - pixel(span, start, EDGES) < SHORTEST:
            yield Mark(style=POINTS.get(style, Style.POINT), at=start, y=y, told=told)
        else:
            yield Mark(style=style, at=start, y=y, until=last, to=y, told=told)
    if line.beats is not None:
        yield Mark(style=Style.TIMER, at=line.beats, y=y, told=line.note)
    if line.given is not None:
        yield Mark(style=Style.GIVEN, at=line.given, y=y, told=line.note)
    if line.cti is not None:
        yield Mark(style=Style.CTI, at=line.cti, y=y, told=line.note)
    if line.words:
        yield Mark(style=Style.WARNING if line.warns else Style.TEXT, at=span[1], y=y, text=line.words)


def _promised(told: list[Told], bottom: float, span: Span) -> Iterator[Mark]:
    """Shade what lies before the newest CTI, from its line to that of the next."""
    steps = [(TOP + LINE * place, line.cti) for place, line in enumerate(told) if line.cti is not None]
    for (y, cti), (below, further) in zip(steps, [*steps, (bottom, None)][1:], strict=True):
        yield Mark(style=Style.PROMISED, at=span[0], y=y, until=cti, to=below)
        yield Mark(style=Style.FRONT, at=cti, y=y, until=cti, to=below)
        if further is not None:
            yield Mark(style=Style.FRONT, at=cti, y=below, until=further, to=below)


def _borders(stream: Stream, span: Span, bottom: float) -> Iterator[Mark]:
    if isinstance(stream.policy, WindowPolicy):
        hop = stream.policy.hop
        for start in range(-(-span[0] // hop) * hop, span[1] + 1, hop):
            yield Mark(style=Style.BORDER, at=start, y=-2, until=start, to=bottom)


def _advancing(ran: Ran, stream: Stream) -> Iterator[Told]:
    """Tell of a stream of CTIs: each row of its input with its fate, and each CTI behind what caused it."""
    came = [(row["arrival"], 0, row["place"], row) for row in ran.rows_into(stream.name) if row["kind"] in EVENTS]
    made = [(row["arrival"], 1, row["place"], row) for row in ran.streams[stream.name] if row["kind"] == "cti"]
    cti: int | None = None
    for _, made_here, _, row in sorted(came + made, key=lambda each: each[:3]):
        if made_here:
            cti = row["event_time"]
            told = f"CTI {spoken(cti, ran.case.day)}" + (" of " + stream.inputs[1] if stream.inputs[1:] else "")
            yield Told(note=f"{_when(ran, row)} CTI", words=told, cti=cti)
        else:
            yield _fate(ran, stream, row, cti)


def _deduplicating(ran: Ran, stream: Stream) -> Iterator[Told]:
    """Tell of a stream without duplicates: how far each row that stands reaches, and what a dropped one repeats."""
    policy: Any = stream.policy
    newest: dict[str, int] = {}
    for row in sorted(ran.rows_into(stream.name), key=lambda row: (row["arrival"], row[ran.key], row["place"])):
        key, time, day = row[ran.key], row["event_time"], ran.case.day
        newest[key] = max(time, newest.get(key, time))
        note = f"{_when(ran, row)} {key}" + "".join(f" {row[name]}" for name in policy.on if row[name] is not None)
        line = next((each for each in ran.ledger if each["stream"] == stream.name and _same(each, row)), None)
        point = (Style.LIFE if line is None else Style.LOST, time, time + 1)
        if row["kind"] == "timer":
            yield Told(note=note, words=f"time is {spoken(time, day)}", beats=time)
        elif line is not None:
            stood = instant_tick(json.loads(line["raw"])["landed_at"])
            words = f"{line['reason']} of what came at {spoken(stood, day)}"
            yield Told(note=note, words=words, warns=True, bars=(point,))
        elif time + policy.within < newest[key]:
            yield Told(note=note, words="further back than anything remembered", bars=(point,))
        else:
            yield Told(note=note, bars=((Style.REACH, time, time + policy.within), point))


def _fate(ran: Ran, stream: Stream, row: Row, cti: int | None) -> Told:
    line = next((each for each in ran.ledger if each["stream"] == stream.name and _same(each, row)), None)
    note = _note(ran, row)
    start, end = _lifetime(stream, row)
    if line is None:
        ends = row["kind"] == "end"
        legal = cti is not None and (end if ends else start) == cti
        words = f"on time: it {'ends' if ends else 'starts'} at the CTI" if legal else ""
        return Told(note=note, words=words, bars=((Style.LIFE, start, end),))
    words = f"{line['reason']}, {line['action']}"
    if line["action"] == "adjusted":
        now = (line["new_time"], end if line["new_end"] is None else line["new_end"])
        told = f"from {spoken(now[0], ran.case.day)}" if now[0] != start else f"until {spoken(now[1], ran.case.day)}"
        was = (Style.CAME, start, now[0] if end is None else end)
        return Told(note=note, words=f"{words}: {told}", warns=True, bars=(was, (Style.LIFE, *now)))
    style = Style.ASIDE if line["action"] == "diverted" else Style.LOST
    words += ": it stays open" if line["reason"] == "late_end" else ""
    return Told(note=note, words=words, warns=True, bars=((style, start, end),))


def _same(line: Row, row: Row) -> bool:
    return (line["landed_at"], line["landed_place"]) == (row["landed_at"], row["landed_place"])


def _lifetime(stream: Stream, row: Row) -> tuple[int, int | None]:
    start = row["event_time"]
    if row["kind"] == "start":
        return start, None
    return start, row["event_end"] if stream.shape.name != "POINT" else start + 1


def _meeting(ran: Ran, stream: Stream) -> Iterator[Told]:
    """Tell of an operator under CTIs: what comes in at its ports, and what leaves because of it."""
    came = [
        (row["arrival"], 0, port, row["place"], row)
        for port in range(len(stream.inputs))
        for row in ran.rows_into(stream.name, port)
    ]
    made = [(row["arrival"], 1, 0, row["place"], row) for row in ran.streams[stream.name]]
    given: dict[int, int] = {}
    for _, leaves, port, _, row in sorted(came + made, key=lambda each: each[:4]):
        time, end, day = row["event_time"], row["event_end"], ran.case.day
        side = f"{stream.inputs[port]} " if len(stream.inputs) > 1 else ""
        if leaves and row["kind"] == "cti":
            words = f"leaves: CTI {spoken(time, day)}" + _why(stream, time, min(given.values()))
            yield Told(note="", words=words, cti=time)
        elif leaves:
            yield Told(note="", words=f"leaves: {_payload(ran, stream, row)}", bars=((Style.RESULT, time, end),))
        elif row["kind"] == "cti":
            given[port] = time
            yield Told(note=f"{_when(ran, row)} {side}CTI", words=f"CTI {spoken(time, day)}", given=time)
        else:
            style = Style.OTHER if port else Style.LIFE
            bars = ((style, time, end if row["kind"] != "start" else None),)
            yield Told(note=_note(ran, row, side), words=_windows(stream, time, end, day), bars=bars)


def _why(stream: Stream, time: int, older: int) -> str:
    """Say why a CTI leaves that lies before the older of those that came in."""
    if time == older:
        return ""
    return ", moved down" if isinstance(stream.policy, WindowPolicy) else ", held back"


def _windows(stream: Stream, start: int, end: int, day: str) -> str:
    """Name the windows that an event is in."""
    policy = stream.policy
    if not isinstance(policy, WindowPolicy):
        return ""
    size, hop = policy.size, policy.hop
    inside = [k * hop for k in range((start - size) // hop + 1, (end - 1) // hop + 1)]
    short = [spoken(each, day) for each in inside]
    return f"in {', '.join(short)}" if len(short) <= SHOWN else f"in {len(short)} windows from {short[0]}"


def _payload(ran: Ran, stream: Stream, row: Row) -> str:
    """Say what a result has beside its order: numbers, and texts."""
    sides = [each for name in stream.inputs for each in _edge_columns(ran, name)]
    values = {name: value for name, value in row.items() if name not in {*RESERVED, *sides, ran.key}}
    return ", ".join(
        f"{name} {value:g}" for name, value in values.items() if isinstance(value, int | float) and abs(value) < SECOND
    )


def _edge_columns(ran: Ran, name: str) -> Iterator[str]:
    for source in ran.flow.sources_of(name):
        found = ran.flow.sources[source]
        yield from (each for each in (found.edge, found.event_id) if each)


def _note(ran: Ran, row: Row, side: str = "") -> str:
    kind = "" if row["kind"] == "data" else f" {row['kind']}"
    ids = [str(row[column]) for source in ran.flow.sources.values() if (column := source.event_id) and row.get(column)]
    return f"{_when(ran, row)} {side or str(row[ran.key]) + ' '}{' '.join(ids)}".rstrip() + kind


def _when(ran: Ran, row: Row) -> str:
    return spoken(row["arrival"], ran.case.day)
