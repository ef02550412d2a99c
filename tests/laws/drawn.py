"""Small flows and rows for Hypothesis: every operator, key scope and shape; rows that are late, tied and broken."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from hypothesis import strategies as st

from pipelines.engine.columnar.columns import TIME
from tests.laws.trials import BEGIN, SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

LENGTH = 100
"""Seconds in which rows arrive."""
START, END = BEGIN, BEGIN + LENGTH * SECOND
GATES = ("p", "q", "r")
NOBODY = "x"
"""A value that no merge declares as a port."""
SHAPES = (", shape: edge, edge: edge, event_id: event", ", shape: interval, end: until", "")
"""What a source says of its events: edges, intervals, points."""
SPANS = st.sampled_from(["2s", "5s", "13s"])
"""Sizes and hops of windows, and durations."""


class Row(NamedTuple):
    """One row of a feed, in seconds from the beginning."""

    seen: int | None
    ahead: float | None
    """Event time less arrival; None: the row has no event time."""
    lasts: int
    gate: str | None
    line: int
    edge: str
    event: str
    weight: float | None


ROWS = st.lists(
    st.builds(
        Row,
        seen=st.integers(-2, LENGTH - 1).map(lambda at: None if at < 0 else at) | st.integers(0, 5),
        ahead=st.sampled_from([0, 0, -0.5, -1, -3, -8, -40, 2, 30, None]),
        lasts=st.integers(-1, 20),
        gate=st.sampled_from([*GATES, *GATES, *GATES, NOBODY, None]),
        line=st.integers(-1, 1),
        edge=st.sampled_from(["start", "start", "end"]),
        event=st.sampled_from("abcd"),
        weight=st.sampled_from([None, 0.0, -0.0, 1.5, float("nan")]),
    ),
    min_size=6,
    max_size=36,
)


def feed(rows: Sequence[Row]) -> pa.Table:
    """Lay rows out as a feed; an edge has one instant, all else a time and an end."""
    seen = [None if row.seen is None else BEGIN + row.seen * SECOND for row in rows]
    homes = [BEGIN if at is None else at for at in seen]
    sent = [
        None if row.ahead is None else home + int(row.ahead * SECOND) for row, home in zip(rows, homes, strict=True)
    ]
    until = [None if at is None else at + row.lasts * SECOND for row, at in zip(rows, sent, strict=True)]
    columns = {
        "number": pa.array(range(len(rows)), pa.int64()),
        "gate": pa.array([row.gate for row in rows], pa.string()),
        "line": pa.array([row.line for row in rows], pa.int32()),
        "edge": pa.array([row.edge for row in rows], pa.string()),
        "event": pa.array([row.event for row in rows], pa.string()),
        "weight": pa.array([row.weight for row in rows], pa.float64()),
        **{name: _instants(values) for name, values in (("seen", seen), ("sent", sent), ("until", until))},
    }
    return pa.table(columns)


def _instants(values: Sequence[int | None]) -> pa.Array:
    return pa.array(values, pa.int64()).cast(TIME)


def _beats(draw: st.DrawFn) -> str:
    settings = {
        "interval": draw(st.sampled_from(["3s", "7s", "500ms"])),
        "slack": draw(st.sampled_from(["0s", "2s", "5500ms"])),
        "max_ahead": draw(st.sampled_from(["off", "10s"])),
        "max_catch_up": draw(st.sampled_from([2, 100])),
        "acceleration": draw(st.sampled_from([1, 2, 0.5])),
        **draw(st.sampled_from([{}, {"expire": "15s"}])),
    }
    return _spelled(settings)


def _promises(draw: st.DrawFn, late: tuple[str, ...] = ("drop", "adjust", "divert")) -> str:
    every = draw(st.sampled_from(["{events: 1}", "{events: 3}", "{duration: 6s}", "{events: 4, duration: 10s}"]))
    settings = {
        "every": every,
        "delay": draw(st.sampled_from(["0s", "4s"])),
        "late": draw(st.sampled_from(late)),
        "max_ahead": draw(st.sampled_from(["off", "5s"])),
        **draw(st.sampled_from([{}, {"at_end": "infinity"}])),
    }
    return _spelled(settings)


def _merged(draw: st.DrawFn) -> str:
    return f"ports_by: {{gate: [p, q, r]}}, flush_at_end: {draw(st.sampled_from(['true', 'false']))}"


def _spelled(settings: Mapping[str, object]) -> str:
    return ", ".join(f"{name}: {value}" for name, value in settings.items())


def _source(name: str, key: str, more: str = "") -> str:
    return f"  {name}: {{feed: {{parquet: {name}.parquet}}, key: {key}, time: sent, arrival: seen{more}}}\n"


def _chain(draw: st.DrawFn) -> tuple[str, str]:
    """A heartbeat a gate, merged into one stream with one timeline."""
    streams = (
        f"  beating: {{heartbeat: rows, {_beats(draw)}}}\n"
        f"  ordered: {{merge: beating, {_merged(draw)}}}\n"
        f"  punctual: {{advance_time: ordered, {_promises(draw)}}}\n"
    )
    return _source("rows", "gate"), streams


def _groups(draw: st.DrawFn) -> tuple[str, str]:
    """Merges and timelines a line, over a longer key; what is set aside beats again."""
    streams = (
        f"  beating: {{heartbeat: rows, {_beats(draw)}}}\n"
        f"  ordered: {{merge: beating, by: line, {_merged(draw)}}}\n"
        f"  punctual: {{advance_time: ordered, by: key, {_promises(draw, ('divert',))}}}\n"
        f"  again: {{heartbeat: punctual.diverted, {_beats(draw)}}}\n"
    )
    return _source("rows", "[line, gate]"), streams


def _two(draw: st.DrawFn) -> tuple[str, str]:
    """Two sources as the ports of one merge, stream-wide or by line."""
    by = draw(st.sampled_from(["", "by: line, "]))
    streams = (
        f"  beating: {{heartbeat: rows, {_beats(draw)}}}\n"
        f"  ordered: {{merge: [beating, others], {by}flush_at_end: true}}\n"
        f"  punctual: {{advance_time: ordered, {_promises(draw)}}}\n"
    )
    return _source("rows", "line") + _source("others", "line"), streams


def _aside(draw: st.DrawFn) -> tuple[str, str]:
    """A timeline a key; what was late is merged with the rest again, and what breaks a check beats by itself."""
    checks = (
        "{expect_column_values_to_not_be_null: {column: event}, where: line <> 1}, "
        "{expect_column_values_to_be_between: {column: weight, max_value: 0.5}, "
        f"severity: {draw(st.sampled_from(['blocking', 'warning']))}}}"
    )
    streams = (
        f"  punctual: {{advance_time: rows, by: key, {_promises(draw, ('divert',))}}}\n"
        f"  both: {{merge: [punctual, punctual.diverted], flush_at_end: true}}\n"
        f"  wide: {{advance_time: rows, {_promises(draw)}}}\n"
        f"  clean: {{quarantine: punctual, expect: [{checks}]}}\n"
        f"  apart: {{heartbeat: clean.quarantined, {_beats(draw)}}}\n"
    )
    return _source("rows", "[gate, line]"), streams


def _intervals(draw: st.DrawFn) -> tuple[str, str]:
    """Intervals under one timeline a key and one for all."""
    streams = (
        f"  punctual: {{advance_time: rows, by: key, {_promises(draw)}}}\n"
        f"  wide: {{advance_time: punctual, {_promises(draw)}}}\n"
    )
    return _source("rows", "gate", ", shape: interval, end: until"), streams


def _edges(draw: st.DrawFn) -> tuple[str, str]:
    """Edges, whose open events are carry."""
    ends = draw(st.sampled_from(["stay_open", "close_at_cti"]))
    by = draw(st.sampled_from(["", "by: key, "]))
    streams = f"  punctual: {{advance_time: rows, {by}late_end: {ends}, {_promises(draw)}}}\n"
    return _source("rows", "gate", ", shape: edge, edge: edge, event_id: event"), streams


def _shaped(draw: st.DrawFn, name: str) -> tuple[str, str]:
    """Draw the shape of a source's events; give the source, and a projection to what all shapes have in common."""
    shape = draw(st.sampled_from(SHAPES))
    staying = "" if shape == SHAPES[0] else "event: event, "
    return _source(name, "gate", shape), f"columns: {{{staying}number: number, weight: weight}}"


def _meetings(draw: st.DrawFn) -> tuple[str, str]:
    """Two sources, one under CTIs of its own, the other under those that it imports; united, or joined."""
    by = draw(st.sampled_from(["", "by: key, "]))
    bound = draw(st.sampled_from([f"late: {late}" for late in ("drop", "adjust")] + [_promises(draw)]))
    (rows, one), (others, other) = _shaped(draw, "rows"), _shaped(draw, "others")
    sender = draw(st.sampled_from(["punctual", "left"]))
    meet = {
        "each": f"  each: {{advance_time: others, by: key, import: {sender}, late: divert}}\n",
        "both": f"  right: {{project: bound, {other}}}\n  both: {{union: [left, right]}}\n",
        "pairs": f"  right: {{project: bound, {other.replace('number:', 'other:').replace('weight:', 'heavy:')}}}\n"
        f"  pairs: {{join: [left, right], on: event}}\n",
    }
    streams = (
        f"  punctual: {{advance_time: rows, {by}{_promises(draw)}}}\n"
        f"  bound: {{advance_time: others, {by}import: punctual, {bound}}}\n"
        f"  left: {{project: punctual, {one}}}\n"
    )
    return rows + others, streams + meet[draw(st.sampled_from(sorted(meet)))]


def _windows(draw: st.DrawFn) -> tuple[str, str]:
    """Windows over events of every shape, as they are, or filtered, moved and of one length."""
    (rows, _), by = _shaped(draw, "rows"), draw(st.sampled_from(["", "by: key, "]))
    where = draw(st.sampled_from(["weight > 0.5", "line >= 0 OR weight IS NULL", "event <> 'a'"]))
    measures = (
        "{n: count, known: count(weight), total: sum(number), low: min(weight), most: max(line), mean: mean(weight)}"
    )
    wins = f"  wins: {{window: punctual, size: {draw(SPANS)}, hop: {draw(SPANS)}, group: line, measures: {measures}}}\n"
    moved = (
        f"  some: {{filter: punctual, where: {where}}}\n"
        f"  later: {{shift_time: some, shift: {draw(st.sampled_from(['3s', '-2s']))}}}\n"
        f"  long: {{alter_duration: later, duration: {draw(SPANS)}}}\n"
        f"  full: {{window: long, size: {draw(SPANS)}, measures: {{n: count, first: min(number)}}}}\n"
    )
    return rows, f"  punctual: {{advance_time: rows, {by}{_promises(draw)}}}\n" + draw(st.sampled_from([wins, moved]))


def _again(draw: st.DrawFn) -> tuple[str, str]:
    """Rows that come again, of every shape, by key with timers and CTIs, and stream-wide."""
    (rows, _), by = _shaped(draw, "rows"), draw(st.sampled_from(["", "by: key, "]))
    on = st.sampled_from(["", "on: event, ", "on: [line, event], "])
    ahead = st.sampled_from(["off", "0s", "5s"])
    streams = (
        f"  once: {{deduplicate: rows, {draw(on)}within: {draw(SPANS)}, max_ahead: {draw(ahead)}}}\n"
        f"  beating: {{heartbeat: once, {_beats(draw)}}}\n"
        f"  twice: {{deduplicate: beating, {draw(on)}within: {draw(SPANS)}, max_ahead: {draw(ahead)}}}\n"
        f"  punctual: {{advance_time: rows, {by}{_promises(draw)}}}\n"
        f"  last: {{deduplicate: punctual, {draw(on)}within: {draw(SPANS)}, max_ahead: {draw(ahead)}}}\n"
    )
    return rows, streams


def _branches(draw: st.DrawFn) -> tuple[str, str]:
    """Branches that meet again, of one source and of two, and a module in instances behind what deals rows out."""
    key = draw(st.sampled_from(["gate", "[line, gate]"]))
    style = draw(
        st.sampled_from(["in_turn", "broadcast", "{of: gate}", "{of: [event, line]}", "{numeric: number - 7}"])
    )
    sides = ", ".join(draw(st.permutations(["some", "again", "beating"])))
    modules = (
        "modules:\n  work:\n    inputs: [came]\n    streams:\n"
        f"      low: {{filter: came, where: number % 3 <> {draw(st.integers(0, 2))}}}\n"
        f"      once: {{deduplicate: came, on: event, within: {draw(SPANS)}}}\n"
        "      all: {interleave: [low, once]}\n    outputs: {all: all, once: once}\n"
        "  halve:\n    inputs: [came]\n    streams:\n"
        "      half: {project: came, columns: {number: CAST(number / 2 AS BIGINT), event: event}}\n"
        "      more: {filter: half, where: number > 1}\n"
        "    outputs: {out: half, back: more}\n"
    )
    streams = (
        f"  beating: {{heartbeat: rows, {_beats(draw)}}}\n"
        "  some: {filter: beating, where: weight > 0.5 OR line = 0}\n"
        f"  again: {{deduplicate: beating, within: {draw(SPANS)}}}\n"
        f"  met: {{interleave: [{sides}]}}\n"
        f"  punctual: {{advance_time: rows, by: key, {_promises(draw, ('divert',))}}}\n"
        "  late: {filter: punctual.diverted, where: number % 2 = 0}\n"
        "  mixed: {interleave: [late, met, punctual]}\n"
        "  both: {interleave: [others, mixed]}\n"
        f"  dealt: {{module: work, inputs: {{came: mixed}}, instances: {draw(st.integers(2, 3))}, "
        f"dispatch: {{came: {style}}}}}\n"
        "  last: {filter: dealt.all, where: line >= 0}\n"
        "  lean: {project: mixed, columns: {number: number, event: event}}\n"
        f"  halved: {{loop: lean, module: halve, most_rounds: {draw(st.integers(1, 5))}}}\n"
    )
    return _source("rows", key) + _source("others", key) + modules, streams


KINDS: dict[str, Callable[[st.DrawFn], tuple[str, str]]] = {
    "chain": _chain,
    "groups": _groups,
    "two sources": _two,
    "set aside": _aside,
    "intervals": _intervals,
    "edges": _edges,
    "meetings": _meetings,
    "windows": _windows,
    "again": _again,
    "branches": _branches,
}


@st.composite
def flows(draw: st.DrawFn, kind: str) -> str:
    """Draw a flow of one kind, as the text of its file; it reads the feeds `rows` and, perhaps, `others`."""
    sources, streams = KINDS[kind](draw)
    return f"flow: drawn\nbuckets: 3\nsources:\n{sources}streams:\n{streams}"


CUTS = st.lists(
    st.integers(START + 1, END - 1) | st.integers(1, LENGTH - 1).map(lambda at: BEGIN + at * SECOND), max_size=3
)
"""Instants at which a run is cut, also between two seconds."""
