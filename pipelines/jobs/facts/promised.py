"""How far the promises of a run's streams reach: the newest CTI, what waits for the next, which events are open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import ORDER_FIELDS, TABLE_INFINITY, TIME
from pipelines.engine.commits.history import CommitKind
from pipelines.engine.commits.paths import stream_path
from pipelines.engine.commits.readers import read_carry, rows_of
from pipelines.flows.model import main_of
from pipelines.jobs.facts.pages import newest_row
from pipelines.jobs.runs.counts import counted
from pipelines.operators.rows import NULL
from pipelines.operators.specs import DAY, SPECS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.engine.commits.history import Entry
    from pipelines.jobs.runs.known import KnownRun

    Facts = dict[str, Any]

EVENTS = ("data", "start")
"""Kinds of rows that a CTI commits once it is past their start."""
LOOKED = 400
"""Commits at the end of a run whose rows are looked at, at most; what lies before them is not counted."""
MOST_ROWS = 200_000
"""Rows of a stream with a timeline a key up to which each is held against its own CTI."""
OPEN = (1, 2)
"""States of an event of edges whose start left, as it came or moved, and whose end did not."""
EDGE = "edge"
BY_TIMELINE = frozenset({"advance_time", "merge"})
"""Operators whose carry has the newest CTI of each key."""


def promises(known: KnownRun, streams: Facts, *, is_over: bool) -> dict[str, Facts]:
    """Say of each stream with CTIs how far they reach; instants, whose names end in `_at`, in ticks.

    Args:
        known: the run.
        streams: what is known of each, with the newest CTI.
        is_over: whether the stream has ended, and all of it is published.
    """
    return {
        name: _promise(known, name, facts["newest_cti"]["event_at"]) | _open(known, name) | {"is_over": is_over}
        for name, facts in streams.items()
        if facts["newest_cti"] is not None
    }


def newest_of(known: KnownRun, name: str, kinds: Sequence[str]) -> Facts | None:
    """Find the newest row of some kinds, in the last commit that counted one; None where there is none."""
    having = (row.commit for row in reversed(known.state.in_order) if any(counted(row, name).get(k) for k in kinds))
    last = next(having, None)
    if last is None:
        return None
    where = pc.field("kind") == kinds[0] if len(kinds) == 1 else None
    columns, order = ("kind", "arrival", "event_time", "commit"), (*known.order_key(name), "place")
    row = newest_row(known.root, name, [last], known.state, columns, order, where)
    if row is None:
        return None
    return {"kind": row["kind"], "arrival_at": row["arrival"], "event_at": row["event_time"], "commit": row["commit"]}


def _promise(known: KnownRun, name: str, newest: int) -> Facts:
    by = known.order_key(name)
    ctis = _by_timeline(known, name, by) if by else None
    cti = newest if ctis is None else pc.max(ctis["cti"]).cast(pa.int64()).as_py()
    oldest = None if ctis is None else pc.min(ctis["cti"]).cast(pa.int64()).as_py()
    unpromised = 0 if ctis is None else ctis["cti"].null_count
    told = {
        "cti_at": cti,
        # Of keys whose newest ones no carry has, the one that came last: another key's may reach further.
        "is_last": bool(by) and ctis is None,
        "timelines": None if ctis is None else ctis.num_rows,
        # Keys that were heard, and have no CTI yet: each of their events waits.
        "unpromised": unpromised,
        "oldest_cti_at": oldest,
        "waiting": None,
        "newest_event_at": None,
        "too_far": 0,
        "whole": True,
    }
    if cti is None or cti >= TABLE_INFINITY or (by and ctis is None):
        return told
    first = NULL if unpromised else cti if oldest is None else oldest
    return told | _waiting(known, name, first, ctis, by)


def _by_timeline(known: KnownRun, name: str, by: Sequence[str]) -> pa.Table | None:
    """Give the newest CTI of each key that was heard, null where it has none; None where no carry has any."""
    known = known.of(name)
    tip = known.state.tip
    operator = known.streams[name]["operator"]
    if tip is None or operator not in BY_TIMELINE:
        return None
    part = SPECS[operator].promised_in
    carry = read_carry(known.root, name, part, tip.commit, key=by, state=known.state)
    if "cti" not in carry.column_names:
        return None
    heard = carry.select([*by, "cti"])
    return heard if heard["cti"].null_count < heard.num_rows else None


def _waiting(known: KnownRun, name: str, first: int, ctis: pa.Table | None, by: Sequence[str]) -> Facts:
    """Count the events of a stream that start at its newest CTI or past it, each against its own timeline's.

    Args:
        known: the run.
        name: of the stream.
        first: no event that starts before it waits; NULL where one at any instant may.
        ctis: by key, where each has its own.
        by: the key's columns.
    """
    known = known.of(name)
    mine, whole = _commits(known, name, first, MOST_ROWS if by else None)
    rows = rows_of(known.root, stream_path(known.root, name), mine, pa.schema(ORDER_FIELDS), known.state)
    # An event without a time waits for nothing.
    wanted = pc.field("kind").isin(pa.array(EVENTS)) & pc.field("event_time").is_valid()
    if first != NULL:
        wanted &= pc.field("event_time") >= pa.scalar(first, pa.int64()).cast(TIME)
    found = rows.scan(["event_time", "arrival", *by], wanted)
    if ctis is not None:
        joined = found.join(ctis, list(by))
        found = joined.filter(pc.fill_null(pc.greater_equal(joined["event_time"], joined["cti"]), fill_value=True))
    return {"waiting": found.num_rows, **_newest(known, name, found), "whole": whole}


def _newest(known: KnownRun, name: str, events: pa.Table) -> Facts:
    """Give the newest start among events, and count those too far ahead of their arrival: they count for nothing."""
    most = known.streams[main_of(name)]["policy"].get("max_ahead", DAY)
    starts, arrivals = (events[column].cast(pa.int64()) for column in ("event_time", "arrival"))
    if most is not None:
        starts = starts.filter(pc.less_equal(pc.subtract(starts, arrivals), most))
    return {"newest_event_at": pc.max(starts).as_py(), "too_far": events.num_rows - len(starts)}


def _commits(known: KnownRun, name: str, first: int, most: int | None) -> tuple[list[int], bool]:
    """Give the last commits that may hold such events, and whether these are all there are."""
    having = [row for row in reversed(known.state.in_order) if _may_hold(row, name, first)]
    rows, chosen = 0, list[int]()
    for row in having[:LOOKED]:
        rows += sum(counted(row, name).get(kind, 0) for kind in EVENTS)
        if most is not None and rows > most and chosen:
            break
        chosen.append(row.commit)
    return chosen, len(chosen) == len(having)


def _may_hold(row: Entry, name: str, first: int) -> bool:
    """Say whether a commit may hold an event at an instant or past it: an epoch knows its newest event."""
    if not any(counted(row, name).get(kind) for kind in EVENTS):
        return False
    if row.kind is not CommitKind.EPOCH:
        return True
    known = row.detail.get("newest")
    times = known.get(name) if isinstance(known, dict) else None
    return not isinstance(times, dict) or times.get("event", NULL) >= first


def _open(known: KnownRun, name: str) -> Facts:
    """Count the events of edges that are open, and give when the oldest of them began."""
    known = known.of(name)
    stream, tip = known.streams.get(name), known.state.tip
    if stream is None or tip is None or stream["shape"] != EDGE or stream["operator"] != "advance_time":
        return {"open": 0, "open_since_at": None}
    key = (*stream["by"], "event")
    carry = read_carry(known.root, main_of(name), "open", tip.commit, key=key, state=known.state)
    if "status" not in carry.column_names:
        return {"open": 0, "open_since_at": None}
    left = carry.filter(pc.is_in(carry["status"], pa.array(OPEN, carry["status"].type)))
    return {"open": left.num_rows, "open_since_at": pc.min(left["start"]).cast(pa.int64()).as_py()}
