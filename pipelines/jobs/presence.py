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
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.engine.columns import canonical_json, ticks
from pipelines.engine.lease import Standing
from pipelines.engine.readers import carry_files, taken_up
from pipelines.jobs.live_facts import clock_of, closed_at, source_folders
from pipelines.operators.rows import NULL, TICKS_PER_SECOND

if TYPE_CHECKING:
    import pyarrow as pa

    from pipelines.jobs.known import KnownRun
    from pipelines.operators.rows import Longs

    Facts = dict[str, Any]

TRIGGERS = 10
"""Readings that may fail to come before the landing counts as stopped."""
SHORTEST = 10 * TICKS_PER_SECOND
"""Nor does it count as stopped sooner than this."""
LATELY = 60 * TICKS_PER_SECOND
"""What `lately` means for a source that no heartbeat reads."""
TRIGGER = 2 * TICKS_PER_SECOND
"""Under the real clock a row counts as new so much longer, for it must be landed and published to be seen here."""
LOOK = "nothing where it has nothing to say; else look at who writes it"
LONGEST = 10
"""Keys that are told one by one, those of the longest silence."""
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


def presence_of(known: KnownRun, lease: Facts, live: Facts | None, now: int) -> dict[str, Facts]:
    """Say of each source what holds, since when, why, and what to do.

    Args:
        known: the run.
        lease: what `status` says of the lease.
        live: what `live_of` gave; None where nothing ever ran live.
        now: wall time, in ticks.

    Returns:
        By source: `state`, `since_at` (ticks; None where nothing is known), `why`, `do`, and `keys` where a heartbeat
        reads the source: their numbers by state, and the longest silent ones.
    """
    return {name: _source(known, name, lease, live, now) for name in known.sources}


def _source(known: KnownRun, name: str, lease: Facts, live: Facts | None, now: int) -> Facts:
    found = _unheard(known, name, lease, live, now)
    if live is None:
        return found or _told(Presence.RECORDED, None, "its rows are read from the recording, a day at a time")
    heard = now if live["clock"] == "wall" else live["readings"]["last_at"]
    beating = _beating(known, name)
    found = found or _heard(live, name, heard, _lately(known, beating))
    keys = None if beating is None else _keys(known, beating, found, heard)
    return found | ({} if keys is None else {"keys": keys})


def _told(state: Presence, since: int | None, why: str, do: str | None = None) -> Facts:
    return {"state": state.value, "since_at": since, "why": why, "do": do}


def _unheard(known: KnownRun, name: str, lease: Facts, live: Facts | None, now: int) -> Facts | None:
    """Say why nobody listens to a source; None where somebody does."""
    start = known.command("stream")
    if live is None:
        folder = clock_of(known) == "wall"
        return _told(Presence.DISCONNECTED, None, "nobody has listened to it yet", start) if folder else None
    if live["final_at"] is not None:
        return _told(Presence.ENDED, live["final_at"], "the final punctuation landed")
    last = live["readings"]["closed_at"]
    if lease["standing"] != Standing.HELD.value:
        if live["clock"] != "wall":
            return _told(Presence.RECORDED, last, "nobody plays the recording", start)
        return _told(Presence.DISCONNECTED, last, "no stream runs, so nobody listens", start)
    if now - last > (allowed := patience(known, live["readings"]["sequence"])):
        why = f"the landing has stopped: no reading for more than {allowed // TICKS_PER_SECOND} s"
        return _told(Presence.DISCONNECTED, last, why, known.command("stream", "--take-over"))
    return _unanswered(known, name, last)


def _unanswered(known: KnownRun, name: str, last: int) -> Facts | None:
    """Say which folder of a source cannot be listed."""
    for folder in source_folders(known, name):
        if not folder.is_dir() or not os.access(folder, os.R_OK | os.X_OK):
            why = f"the folder {folder} cannot be listed"
            return _told(Presence.DISCONNECTED, last, why, f"see that {folder} is there and can be read")
    return None


def patience(known: KnownRun, last: int) -> int:
    """Give how long a reading may stay away: ten triggers, as the last readings came, and 10 s at least, in ticks."""
    landing = known.root / "landing" / "a"
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


def _keys(known: KnownRun, beating: Facts, source: Facts, heard: int) -> Facts | None:
    """Count the keys of a heartbeat by what holds, and name those of the longest silence; None where it costs much."""
    tip = known.state.tip
    carry = carry_files(known.root, beating["name"], "state", tip.commit if tip else 0, state=known.state)
    if sum(Path(file).stat().st_size for part in (carry.base, carry.deltas) for file in part.files) > MOST_BYTES:
        return None
    table = taken_up(carry, beating["by"])
    if not table.num_rows:
        return None
    seen, retired = ticks(table["seen"]), np.asarray(table["retired"]) != 0
    states = _states(seen, retired, source, heard - _lately(known, beating))
    silent = np.flatnonzero(states != Presence.FLOWING.value)
    order = silent[np.argsort(seen[silent], kind="stable")][:LONGEST]
    expire = beating["policy"]["expire"] or 0
    return {
        "stream": beating["name"],
        "count": table.num_rows,
        "states": {state.value: int(count) for state in Presence if (count := (states == state.value).sum())},
        "longest": [_key(table, beating, int(i), str(states[i]), int(seen[i]), expire) for i in order],
    }


def _states(seen: Longs, retired: np.ndarray, source: Facts, since: int) -> np.ndarray:
    if source["state"] in {Presence.FLOWING.value, Presence.SILENT.value}:
        alive = np.where(seen >= since, Presence.FLOWING.value, Presence.SILENT.value)
    else:
        alive = np.full(len(seen), source["state"], dtype="U12")
    return np.where(retired, Presence.RETIRED.value, alive)


def _key(table: pa.Table, beating: Facts, i: int, state: str, seen: int, expire: int) -> Facts:  # noqa: PLR0913 - one row
    key = json.loads(canonical_json({name: table[name][i].as_py() for name in beating["by"]}))
    since = None if seen == NULL else seen + (expire if state == Presence.RETIRED.value else 0)
    return {"key": key, "state": state, "since_at": since}
