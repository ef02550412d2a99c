"""The row behind a promise: which CTI governed a line of the ledger, and what made the operator give it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columns import ORDER_FIELDS, TIME, canonical_json
from pipelines.engine.readers import rows_of
from pipelines.engine.tables import stream_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pipelines.jobs.known import KnownRun

    Line = dict[str, Any]

HIDDEN = frozenset({"due_at", "commit", "place", "landed_at", "landed_place", "arrival", "kind"})
"""Columns of a row that say nothing of what happened."""


class Place(NamedTuple):
    """Where a CTI stands in its stream."""

    stream: str
    key: str
    """The key of its timeline, in canonical JSON; `{}` where the stream has one for all."""
    arrival: int
    place: int


def place_of(line: Line) -> Place | None:
    """Give where the CTI stands that governed a line; None where none did."""
    if line["cti"] is None or line["cti_arrival"] is None or line["cti_place"] is None:
        return None
    return Place(line["stream"], line["key"], line["cti_arrival"], line["cti_place"])


def causes(known: KnownRun, lines: Iterable[Line]) -> dict[Place, Line | None]:
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
    found: dict[Place, Line | None] = {}
    for stream in dict.fromkeys(place.stream for place in sorted(asked)):
        mine = [place for place in asked if place.stream == stream]
        arrivals = sorted({place.arrival for place in mine})
        rows = _rows(known, stream, arrivals)
        sent = [_rows(known, name, arrivals) for name in known.streams[stream]["inputs"][1:]]
        found |= {place: _cause(_imported(rows, sent, place)) for place in mine}
    return found


def _imported(
    rows: dict[Place, Line], sent: Sequence[dict[Place, Line]], promise: Place
) -> tuple[dict[Place, Line], Place]:
    """Give where the CTI was made: in the stream it was imported from, or here."""
    there = rows.get(promise)
    if there is None:
        return rows, promise
    for others in sent:
        for place, row in others.items():
            same = (row["kind"], row["event_time"], place.arrival) == ("cti", there["event_time"], promise.arrival)
            if same and place.key in {promise.key, "{}"}:
                return others, place
    return rows, promise


def _rows(known: KnownRun, stream: str, arrivals: Sequence[int]) -> dict[Place, Line]:
    """Read the rows of a stream that came in some instants, by where they stand."""
    commits = [row.commit for row in known.state.published]
    table = rows_of(stream_path(known.root, stream), commits, pa.schema(ORDER_FIELDS))
    rows = table.scan(where=pc.field("arrival").isin(pa.array(arrivals, pa.int64()).cast(TIME)))
    key, came = known.order_key(stream), rows["arrival"].cast(pa.int64()).to_pylist()
    listed = zip(came, rows.to_pylist(), strict=True)
    return {Place(stream, _key(row, key), arrival, row["place"]): row for arrival, row in listed}


def _key(row: Line, names: Sequence[str]) -> str:
    return canonical_json({name: row[name] for name in names})


def _cause(made: tuple[dict[Place, Line], Place]) -> Line | None:
    rows, promise = made
    there = rows.get(promise)
    if there is not None and there["landed_at"] is not None:
        return there
    return rows.get(promise._replace(place=promise.place - 1))
