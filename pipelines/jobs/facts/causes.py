"""The row behind a promise: which CTI governed a line of the ledger, and what made the operator give it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import ORDER_FIELDS, TIME, canonical_json, times
from pipelines.engine.commits.paths import stream_path
from pipelines.engine.commits.readers import rows_of
from pipelines.operators.specs import SPECS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pipelines.jobs.runs.known import Definition, KnownRun

    Line = dict[str, Any]
    Rows = dict[tuple[str, int, int], Line]
    """Rows of a stream by key, arrival and place."""

HIDDEN = frozenset({"due_at", "commit", "place", "landed_at", "landed_place", "arrival", "kind"})
"""Columns of a row that say nothing of what happened."""


class PromisePlace(NamedTuple):
    """Where a CTI stands."""

    stream: str
    """Whose line it governed; the CTI stands there, or came in there."""
    key: str
    """The key of its timeline, in canonical JSON; `{}` where the stream has one for all."""
    arrival: int
    """Of a CTI of before, which binds a key that was heard later, the row's that it governed."""
    place: int
    """0 where it has no row of its own in the stream."""
    cti: int


def place_of(line: Line) -> PromisePlace | None:
    """Give where the CTI stands that governed a line; None where none did."""
    if line["cti"] is None:
        return None
    if line["cti_arrival"] is None or line["cti_place"] is None:
        return PromisePlace(line["stream"], line["key"], line["arrival"], 0, line["cti"])
    return PromisePlace(line["stream"], line["key"], line["cti_arrival"], line["cti_place"], line["cti"])


def causes(known: KnownRun, lines: Iterable[Line]) -> dict[PromisePlace, Line | None]:
    """Find the rows that caused the CTIs which governed lines of the ledger.

    A CTI is followed to where it was made, through streams that let it pass, and through meetings, which pass on the
    older one of their sides. It stands right behind the row that caused it; one that landed itself is its own cause.

    Args:
        known: the run.
        lines: of the ledger, instants in ticks.

    Returns:
        By place of the CTI the row of the stream's table; None where the row is not in the stream, because it was
        itself dropped or set aside.
    """
    asked = sorted({place for line in lines if (place := place_of(line)) is not None})
    sent: dict[str, list[Sent]] = {}
    made = {promise: _climbed(known, promise, sent) for promise in asked}
    found: dict[PromisePlace, Line | None] = {}
    for stream in dict.fromkeys(at.stream for at in made.values()):
        mine = {promise: at for promise, at in made.items() if at.stream == stream}
        rows = _rows(known, stream, sorted({at.arrival for at in mine.values()}))
        found |= {promise: _cause(known, known.streams[stream], rows, at) for promise, at in mine.items()}
    return found


class Sent(NamedTuple):
    """One CTI of a stream."""

    arrival: int
    place: int
    cti: int
    key: str


def _climbed(known: KnownRun, promise: PromisePlace, sent: dict[str, list[Sent]]) -> PromisePlace:
    """Follow a CTI up to the stream that made it, or that it landed for."""
    while True:
        stream = known.streams[promise.stream]
        above = [name for name in stream["inputs"] if name in known.streams]
        for name in above:
            if name not in sent:
                sent[name] = _ctis(known, name)
        came = [(each, name) for name in above for each in sent[name] if _binds(each.key, promise.key)]
        same = [(each, name) for each, name in came if each.cti == promise.cti and each.arrival <= promise.arrival]
        # A window or a shift passes on another time; it does so when the CTI comes.
        moved = [(each, name) for each, name in came if each.arrival == promise.arrival]
        taken = same or ([] if stream["operator"] == "advance_time" else moved)
        if not taken:
            return promise
        last, name = max(taken)
        promise = PromisePlace(name, last.key, last.arrival, last.place, last.cti)


def _binds(sent: str, key: str) -> bool:
    """Say whether a CTI of a key may be one of those behind another's: of all, of the same, or of a longer one."""
    whole: dict[str, object] = json.loads(sent)
    return not whole or json.loads(key).items() <= whole.items()


def _cause(known: KnownRun, stream: Definition, rows: Rows, promise: PromisePlace) -> Line | None:
    """Give the row that caused a CTI, in the stream where it was made."""
    relates, policy = SPECS[stream["operator"]].awaits_promises, stream["policy"]
    lands = any(name in known.sources for name in (stream["inputs"] if relates else stream["inputs"][1:]))
    if lands and (relates or not (policy.get("events") or policy.get("duration"))):
        return _landed(promise)
    return _before(rows, promise) or (_landed(promise) if lands else None)


def _before(rows: Rows, promise: PromisePlace) -> Line | None:
    there = rows.get((promise.key, promise.arrival, promise.place))
    if there is not None and there["landed_at"] is not None:
        return there
    return rows.get((promise.key, promise.arrival, promise.place - 1))


def _landed(promise: PromisePlace) -> Line:
    """Give a CTI that came with the rows of a source."""
    arrival, time = _instant(promise.arrival), _instant(promise.cti)
    return {"kind": "cti", "arrival": arrival, "place": promise.place, "event_time": time, "landed_at": arrival}


def _ctis(known: KnownRun, stream: str) -> list[Sent]:
    """Give the CTIs of a stream."""
    key = known.order_key(stream)
    table = _table(known, stream).scan(["event_time", "arrival", "place", *key], pc.field("kind") == "cti")
    times, arrivals = (table[name].cast(pa.int64()).to_pylist() for name in ("event_time", "arrival"))
    listed = zip(arrivals, table["place"].to_pylist(), times, table.select(key).to_pylist(), strict=True)
    return [Sent(arrival, place, cti, canonical_json(of)) for arrival, place, cti, of in listed]


def _instant(tick: int) -> object:
    return times(np.array([tick]))[0].as_py()


def _rows(known: KnownRun, stream: str, arrivals: Sequence[int]) -> Rows:
    """Read the rows of a stream that came in some instants, by where they stand."""
    rows = _table(known, stream).scan(where=pc.field("arrival").isin(pa.array(arrivals, pa.int64()).cast(TIME)))
    key, came = known.order_key(stream), rows["arrival"].cast(pa.int64()).to_pylist()
    listed = zip(came, rows.to_pylist(), strict=True)
    return {(_key(row, key), arrival, row["place"]): row for arrival, row in listed}


def _table(known: KnownRun, stream: str) -> Any:  # noqa: ANN401 - rows that are not read yet
    known = known.of(stream)
    commits = [row.commit for row in known.state.published]
    return rows_of(known.root, stream_path(known.root, stream), commits, pa.schema(ORDER_FIELDS), known.state)


def _key(row: Line, names: Sequence[str]) -> str:
    return canonical_json({name: row[name] for name in names})
