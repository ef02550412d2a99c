"""Silent is not disconnected: for each source and key, what holds, since when, and what to do.

A source that is *flowing* gave something new lately; a *silent* one is listened to and gives nothing new; a
*disconnected* one is not listened to, or does not answer; a *retired* key was given up by its heartbeat (`expire`). A
recording can be none of these: it is *recorded*. A stream whose final punctuation landed has *ended*.

Everything comes from the log, the end of the landing and the carry, so looking costs no JVM and no row.
"""

from __future__ import annotations

import json
import os
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pipelines.engine.columnar.columns import canonical_json, ticks
from pipelines.engine.commits.lease import HolderStanding
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.commits.readers import carry_files, taken_up
from pipelines.engine.files.parquet import size_of
from pipelines.jobs.facts.live import clock_of, closed_at, is_played, source_folders
from pipelines.jobs.runs.known import is_replayed
from pipelines.jobs.runs.played import read_range
from pipelines.operators.rows import NULL, TICKS_PER_SECOND

if TYPE_CHECKING:
    import pyarrow as pa

    from pipelines.jobs.runs.known import KnownRun
    from pipelines.operators.rows import Longs

    Facts = dict[str, Any]

TRIGGERS = 10
"""Readings that may fail to come before the landing counts as stopped."""
STARTING = 300 * TICKS_PER_SECOND
"""How long a stream that renews its lease may take until its first reading: Spark starts, and what was left, of each
leg, is finished; a busy machine takes minutes for it."""
SHORTEST = 10 * TICKS_PER_SECOND
"""Nor does it count as stopped sooner than this."""
LATELY = 60 * TICKS_PER_SECOND
"""What `lately` means for a source that no heartbeat reads."""
TRIGGER = 2 * TICKS_PER_SECOND
"""Under the real clock a row counts as new so much longer, for it must be landed and published to be seen here."""
LOOK = "nothing where it has nothing to say; else look at who writes it"
RETIRED = "nothing: it begins anew with its next row; a longer `expire` keeps such keys"
LONGEST = 10
"""Keys that are told one by one, those of the longest silence; retired ones, about which nothing is to do, last."""
MOST_BYTES = 20_000_000
"""Size of a heartbeat's carry up to which it is read: some 300,000 keys."""


class Presence(StrEnum):
    """What holds of a source or a key."""

    FLOWING = "flowing"
    """Something new came within the last interval of its heartbeat and its slack (a minute without a heartbeat)."""
    SILENT = "silent"
    """It is listened to, and nothing new comes."""
    DISCONNECTED = "disconnected"
    """Nobody listens to it, or it does not answer."""
    RETIRED = "retired"
    """A key whose heartbeat stopped after `expire` of silence."""
    RECORDED = "recorded"
    """A recording, which nobody plays right now."""
    ENDED = "ended"
    """The final punctuation landed."""


MISSED = [Presence.SILENT.value, Presence.DISCONNECTED.value, Presence.RETIRED.value]
"""States in which something is missed of a key."""


def presence_of(
    known: KnownRun, lease: Facts, live: Facts | None, now: int, *, most_bytes: float | None = None
) -> dict[str, Facts]:
    """Say of each source what holds, since when, why, and what to do.

    Args:
        known: the run.
        lease: what `status` says of the lease.
        live: what `live_of` gave; None where nothing ever ran live.
        now: wall time, in ticks.
        most_bytes: size of a heartbeat's carry up to which its keys are told; `MOST_BYTES` unless given.

    Returns:
        By source: `state`, `since_at` (ticks; None where nothing is known), `why`, `do`, and `keys` where a heartbeat
        reads the source: their numbers by state, the longest silent ones, and what to do by state; `keys_left_out`
        says why there are none where its carry is too large.
    """
    found = {name: _source(known, name, lease, live, now) for name in known.sources}
    if live is None:
        return found
    most = MOST_BYTES if most_bytes is None else most_bytes
    beats = {name: beating for name in found if (beating := _beating(known, name)) is not None}
    for name, beating in beats.items():
        leg = known.of(beating["name"])
        since = _taken_in(leg, live, name, now) - _lately(known, beating)
        found[name] |= _keys_of(leg, beating, found[name], since, most)
    return found


def _source(known: KnownRun, name: str, lease: Facts, live: Facts | None, now: int) -> Facts:
    if is_replayed(known.root):
        return _told(Presence.RECORDED, None, "a replay played what another run landed")
    found = _unheard(known, name, lease, live, now)
    if live is None:
        return found or _told(Presence.RECORDED, None, "its rows are read from the recording, an interval at a time")
    return found or _heard(live, name, _heard_until(live, now), _lately(known, _beating(known, name)))


def _heard_until(live: Facts, now: int) -> int:
    """Give the instant up to which somebody listened, on the flow's clock."""
    return int(now if live["clock"] == "wall" else live["readings"]["last_at"])


def _told(state: Presence, since: int | None, why: str, do: str | None = None) -> Facts:
    return {"state": state.value, "since_at": since, "why": why, "do": do}


def _unheard(known: KnownRun, name: str, lease: Facts, live: Facts | None, now: int) -> Facts | None:
    """Say why nobody listens to a source; None where somebody does."""
    start = known.command("stream")
    if live is None:
        if clock_of(known) == "wall":
            return _never_heard(lease, start)
        begins = lease["standing"] == HolderStanding.HELD.value and read_range(known.root) is not None
        return _told(Presence.RECORDED, None, "a stream is starting, and has played nothing yet") if begins else None
    if live["final_at"] is not None:
        return _told(Presence.ENDED, live["final_at"], "the final punctuation landed")
    closed = live["readings"]["closed_at"]
    last = closed if live["clock"] == "wall" else live["readings"]["last_at"]
    if lease["standing"] != HolderStanding.HELD.value:
        if live["clock"] != "wall":
            return _unplayed(known, live, start)
        return _unanswered(known, name, last) or _told(
            Presence.DISCONNECTED, last, "no stream runs, so nobody listens", start
        )
    return _stalled(known, lease, live, last, now) or _unanswered(known, name, last)


def _stalled(known: KnownRun, lease: Facts, live: Facts, last: int, now: int) -> Facts | None:
    """Say why no reading comes though somebody holds the lease; None where they come."""
    closed, begun = live["readings"]["closed_at"], lease["since_at"] or 0
    if closed < begun <= now < begun + STARTING:
        return _told(Presence.DISCONNECTED, last, "a stream is starting, and has not listened yet")
    if now - closed <= (allowed := patience(known, live["readings"]["sequence"])):
        return None
    if is_played(known, live):
        return _told(Presence.RECORDED, last, "the recording was played to the end of its range; its stream waits")
    why = f"the landing has stopped: no reading for more than {allowed // TICKS_PER_SECOND} s"
    return _told(Presence.DISCONNECTED, last, why, known.command("stream", "--take-over"))


def _never_heard(lease: Facts, start: str) -> Facts:
    if lease["standing"] == HolderStanding.HELD.value:
        return _told(Presence.DISCONNECTED, None, "a stream is starting, and has not listened yet")
    return _told(Presence.DISCONNECTED, None, "nobody has listened to it yet", start)


def _unplayed(known: KnownRun, live: Facts, start: str) -> Facts:
    last = live["readings"]["last_at"]
    if is_played(known, live):
        return _told(Presence.RECORDED, last, "the recording was played to the end of its range")
    return _told(Presence.RECORDED, last, "nobody plays the recording", start)


def _unanswered(known: KnownRun, name: str, last: int) -> Facts | None:
    """Say which folder of a source cannot be listed."""
    for folder in source_folders(known, name):
        if not folder.is_dir() or not os.access(folder, os.R_OK | os.X_OK):
            why = f"the folder {folder} cannot be listed"
            return _told(Presence.DISCONNECTED, last, why, f"see that {folder} is there and can be read")
    return None


def patience(known: KnownRun, last: int) -> int:
    """Give how long a reading may stay away: ten triggers, as the last readings came, and 10 s at least, in ticks."""
    landing = landed_path(known.root)
    numbers = range(max(1, last - TRIGGERS), last + 1)
    closed = np.array([closed_at(landing, number) for number in numbers], dtype=np.int64)
    gaps = np.diff(closed)
    return max(SHORTEST, TRIGGERS * int(np.median(gaps))) if len(gaps) else SHORTEST


def _heard(live: Facts, name: str, heard: int, lately: int) -> Facts:
    since = live["sources"][name]["rows_until_at"]
    if since is None:
        return _told(Presence.SILENT, live["readings"]["first_at"], "it answers, and gave no row yet", LOOK)
    if heard - since <= lately:
        return _told(Presence.FLOWING, since, "rows came lately")
    return _told(Presence.SILENT, since, "it answers, and nothing new comes", LOOK)


def _beating(known: KnownRun, source: str) -> Facts | None:
    """Give the heartbeat of the shortest interval that reads a source itself."""
    found = [each for each in known.streams.values() if each["operator"] == "heartbeat" and each["inputs"] == [source]]
    return min(found, key=lambda each: int(each["policy"]["interval"]), default=None)


def _lately(known: KnownRun, beating: Facts | None) -> int:
    """Give for how long a silence is none: the heartbeat's interval and slack, by the clock."""
    if beating is None:
        return LATELY
    policy = beating["policy"]
    above, below = policy["acceleration"]
    waits = TRIGGER if clock_of(known) == "wall" else 0
    return int((policy["interval"] + policy["slack"]) * below // above) + waits


def _taken_in(leg: KnownRun, live: Facts, source: str, now: int) -> int:
    """Give the instant up to which a leg has taken in what was heard of a source: rows that wait are no silence."""
    tip, last = leg.state.tip, live["sources"][source]["rows_until_at"]
    return tip.span.end if tip and last is not None and tip.span.end < last else _heard_until(live, now)


def _keys_of(leg: KnownRun, beating: Facts, source: Facts, since: int, most: float) -> Facts:
    """Tell the keys that a heartbeat knows, and why not where its carry is too large."""
    table = _table_of(leg, beating, most)
    if table is None:
        return {"keys_left_out": f"they are too many to look at quickly: {leg.command('report')}"}
    return {"keys": _keys(table, beating, source, since)} if table.num_rows else {}


def _table_of(leg: KnownRun, beating: Facts, most: float) -> pa.Table | None:
    """Read what a heartbeat knows of its keys; None where its carry is too large."""
    tip = leg.state.tip
    carry = carry_files(leg.root, beating["name"], "state", tip.commit if tip else 0, state=leg.state)
    if sum(size_of(file) for part in (carry.base, carry.deltas) for file in part.files) > most:
        return None
    return taken_up(carry, beating["by"])


class LastHeard(NamedTuple):
    """When a key was heard of last, in ticks, and whether its heartbeat has given it up since."""

    at: int
    retired: bool


def silent_keys(known: KnownRun, live: Facts, source: str, now: int, bound: int) -> dict[str, LastHeard]:
    """Say which keys of a source have been silent for longer than a bound, the longest silence first.

    Args:
        known: the run.
        live: what `live_of` gave.
        source: its name; of one that no heartbeat reads no key is known, nor of one that knows too many to look at.
        now: wall time, in ticks.
        bound: how long is long, in ticks.
    """
    beating = _beating(known, source)
    table = None if beating is None else _table_of(known.of(beating["name"]), beating, MOST_BYTES)
    if beating is None or table is None or not table.num_rows:
        return {}
    seen, retired = ticks(table["seen"]), np.asarray(table["retired"]) != 0
    heard = _taken_in(known.of(beating["name"]), live, source, now)
    late = np.flatnonzero((seen != NULL) & (seen < heard - bound))
    found = ((_named(table, beating, int(i)), int(i)) for i in late[np.argsort(seen[late], kind="stable")])
    return {
        ", ".join(str(part) for part in key.values()): LastHeard(int(seen[i]), bool(retired[i])) for key, i in found
    }


def _keys(table: pa.Table, beating: Facts, source: Facts, since: int) -> Facts:
    """Count the keys of a heartbeat by what holds, and name those of the longest silence."""
    seen, retired = ticks(table["seen"]), np.asarray(table["retired"]) != 0
    states = _states(seen, retired, source, since)
    silent = np.flatnonzero(np.isin(states, MISSED))
    order = silent[np.lexsort((seen[silent], retired[silent]))][:LONGEST]
    expire = beating["policy"]["expire"] or 0
    counts = {state.value: int(count) for state in Presence if (count := (states == state.value).sum())}
    return {
        "stream": beating["name"],
        "count": table.num_rows,
        "states": counts,
        "longest": [
            {"key": _named(table, beating, int(i))} | _since(str(states[i]), int(seen[i]), expire, source)
            for i in order
        ],
        "do": {state: do for state in counts if (do := _to_do(state, source))},
    }


def _to_do(state: str, source: Facts) -> str | None:
    """Say what to do about keys of a state."""
    return {Presence.SILENT.value: LOOK, Presence.RETIRED.value: RETIRED}.get(
        state, source["do"] if state == source["state"] else None
    )


def _states(seen: Longs, retired: np.ndarray, source: Facts, since: int) -> np.ndarray:
    if source["state"] in {Presence.FLOWING.value, Presence.SILENT.value}:
        alive = np.where(seen >= since, Presence.FLOWING.value, Presence.SILENT.value)
    else:
        alive = np.full(len(seen), source["state"], dtype="U12")
    return np.where(retired, Presence.RETIRED.value, alive)


def _named(table: pa.Table, beating: Facts, i: int) -> Facts:
    """Give a key as JSON has it, its columns in their order."""
    told = json.loads(canonical_json({name: table[name][i].as_py() for name in beating["by"]}))
    return {name: told[name] for name in beating["by"]}


def _since(state: str, seen: int, expire: int, source: Facts) -> Facts:
    """Say since when a key's state holds, and when its last row came: nobody is silent where nobody listens."""
    last = None if seen == NULL else seen
    if state == Presence.RETIRED.value:
        return {"state": state, "since_at": seen + expire, "last_at": last}
    return {"state": state, "since_at": last if state == Presence.SILENT.value else source["since_at"], "last_at": last}
