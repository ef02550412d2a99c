"""The row behind a promise: which CTI governed a line of the ledger, and what made the operator give it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import ORDER_FIELDS, TIME, canonical_json, times
from pipelines.engine.commits.paths import stream_path
from pipelines.engine.commits.readers import rows_of
from pipelines.operators.specs import SPECS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

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
    place: int
    cti: int


def place_of(line: Line) -> PromisePlace | None:
    """Give where the CTI stands that governed a line; None where none did, or where it has no row of its own."""
    if line["cti"] is None or line["cti_arrival"] is None or line["cti_place"] is None:
        return None
    return PromisePlace(line["stream"], line["key"], line["cti_arrival"], line["cti_place"], line["cti"])


def causes(known: KnownRun, lines: Iterable[Line]) -> dict[PromisePlace, Line | None]:
    """Find the rows that caused the CTIs which governed lines of the ledger.

    A CTI stands right behind the row that caused it; one that landed itself is its own cause.

    Args:
        known: the run.
        lines: of the ledger, instants in ticks.

    Returns:
        By place of the CTI the row of the stream's table; None where the row is not in the stream, because it was
        itself dropped or set aside.
    """
    asked = {place for line in lines if (place := place_of(line)) is not None}
    found: dict[PromisePlace, Line | None] = {}
    for stream in dict.fromkeys(place.stream for place in sorted(asked)):
        mine = [place for place in asked if place.stream == stream]
        found |= zip(mine, _of_stream(known, known.streams[stream], mine), strict=True)
    return found


def _of_stream(known: KnownRun, stream: Definition, promises: Sequence[PromisePlace]) -> Iterator[Line | None]:
    """Find the causes of CTIs that one stream was held to: where they came from, or else in the stream itself."""
    # Lines of an operator that awaits promises name the CTI of an input, as it came in.
    relates, policy = SPECS[stream["operator"]].awaits_promises, stream["policy"]
    behind = stream["inputs"] if relates else stream["inputs"][1:]
    arrivals = sorted({promise.arrival for promise in promises})
    sent = [_rows(known, name, arrivals) for name in behind if name not in known.sources]
    own = {} if relates else _rows(known, stream["name"], arrivals)
    lands = len(sent) < len(behind)
    generates = bool(policy.get("events") or policy.get("duration"))
    for promise in promises:
        made = _made(sent, promise)
        row = _before(*made) if made else _before(own, promise) if generates or not lands else None
        yield _landed(promise) if row is None and made is None and lands else row


def _made(sent: Sequence[Rows], promise: PromisePlace) -> tuple[Rows, PromisePlace] | None:
    """Give the stream that a CTI came from, and where it stands there."""
    instant = _instant(promise.cti)
    for rows in sent:
        for (key, arrival, place), row in rows.items():
            same = (row["kind"], row["event_time"], arrival) == ("cti", instant, promise.arrival)
            if same and key in {promise.key, "{}"}:
                return rows, promise._replace(key=key, place=place)
    return None


def _before(rows: Rows, promise: PromisePlace) -> Line | None:
    there = rows.get((promise.key, promise.arrival, promise.place))
    if there is not None and there["landed_at"] is not None:
        return there
    return rows.get((promise.key, promise.arrival, promise.place - 1))


def _landed(promise: PromisePlace) -> Line:
    """Give a CTI that came with the rows of a source."""
    arrival, time = _instant(promise.arrival), _instant(promise.cti)
    return {"kind": "cti", "arrival": arrival, "place": promise.place, "event_time": time, "landed_at": arrival}


def _instant(tick: int) -> object:
    return times(np.array([tick]))[0].as_py()


def _rows(known: KnownRun, stream: str, arrivals: Sequence[int]) -> Rows:
    """Read the rows of a stream that came in some instants, by where they stand."""
    known = known.of(stream)
    commits = [row.commit for row in known.state.published]
    table = rows_of(known.root, stream_path(known.root, stream), commits, pa.schema(ORDER_FIELDS), known.state)
    rows = table.scan(where=pc.field("arrival").isin(pa.array(arrivals, pa.int64()).cast(TIME)))
    key, came = known.order_key(stream), rows["arrival"].cast(pa.int64()).to_pylist()
    listed = zip(came, rows.to_pylist(), strict=True)
    return {(_key(row, key), arrival, row["place"]): row for arrival, row in listed}


def _key(row: Line, names: Sequence[str]) -> str:
    return canonical_json({name: row[name] for name in names})
