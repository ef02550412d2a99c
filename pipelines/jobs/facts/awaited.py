"""What the operators of a run wait for, as its carry has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import spelled_as, ticks
from pipelines.engine.commits.readers import read_carry
from pipelines.engine.tasks.leading import LEFT, PORTS, too_far
from pipelines.jobs.runs.counts import counted
from pipelines.operators.rows import NULL
from pipelines.operators.specs import SPECS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pipelines.jobs.runs.known import KnownRun

    Facts = dict[str, Any]

Group = tuple[object, ...]
PORT = "port"
DAY = 86_400_000_000
MOST_HELD = 200_000
"""Held rows up to which they are looked at to say which port they wait for."""


def awaited(known: KnownRun) -> dict[str, Facts]:
    """Say what the operators of a run wait for, as the carry at its last commit has it."""
    tip = known.state.tip
    if tip is None:
        return {}
    found = {
        name: _AWAITED[awaits](known, name)
        for name, stream in known.streams.items()
        if (awaits := SPECS[stream["operator"]].awaits)
    }
    return {name: facts for name, facts in found.items() if facts is not None}


def held_rows(known: KnownRun, name: str) -> int:
    """Give how many rows a stream's operator held after the last commit that touched it; an idle one touches none."""
    rows = reversed(known.of(name).state.in_order)
    row = next((row for row in rows if counted(row, name)), None)
    return 0 if row is None else counted(row, name).get("held", 0)


def _merge(known: KnownRun, name: str) -> Facts | None:
    rows = held_rows(known, name)
    if not rows:
        return None
    if rows > MOST_HELD:
        unknown = dict.fromkeys(("groups", "since_at", "stuck_at", "far", "led"))
        return {"held": rows, "ports": [], **unknown}
    stream = known.streams[name]
    held = _carry(known, name, "held", (*stream["by"], "position"))
    groups = _groups(stream, held, _spelled(stream, held))
    oldest = {group: min(ports.values()) for group, ports in groups.items()}
    left = _left(known, name)
    return {
        "held": rows,
        "ports": _silent(known, name, groups),
        "groups": len(groups),
        "since_at": min(oldest.values(), default=None),
        "stuck_at": min((max(came, left.get(group, came)) for group, came in oldest.items()), default=None),
        "far": _far(stream, held),
        "led": _led(known, name),
    }


def _far(stream: Facts, held: pa.Table) -> Facts | None:
    """Name the held row of data that is furthest past its arrival, where that is more than a day."""
    rows = held.filter(pc.equal(held["kind"], "data"))
    times, arrivals = ticks(rows["event_time"]), ticks(rows["arrival"])
    ahead = np.where(times > arrivals, times - np.minimum(times, arrivals), 0)
    if ahead.max(initial=0) <= DAY:
        return None
    at, column = int(ahead.argmax()), stream["ports"]["column"] or PORT
    port = rows[column][at].as_py() if column in rows.column_names else None
    return {"port": port, "event_at": int(times[at]), "arrived_at": int(arrivals[at]), "ahead": int(ahead[at])}


def _led(known: KnownRun, name: str) -> Facts | None:
    """Name the port that a row which has left led furthest past the end of the last commit, by more than a day."""
    stream, tip = known.streams[name], known.of(name).state.tip
    ports = _carry(known, name, PORTS, (*stream["by"], PORT))
    led = too_far(ports, tip.span.end + DAY if tip else NULL)
    if not led.num_rows:
        return None
    left = ticks(led[LEFT])
    places = stream["ports"]["values"] or stream["ports"]["streams"]
    at = int(left.argmax())
    return {"port": places[led[PORT][at].as_py()], "event_at": int(left[at])}


def _spelled(stream: Facts, held: pa.Table) -> dict[object, object]:
    """Give each port as the flow spells it, by its value in the column."""
    column, ports = stream["ports"]["column"] or PORT, stream["ports"]["values"] or stream["ports"]["streams"]
    if column not in held.column_names:
        return {}
    return dict(zip(spelled_as(ports, held.schema.field(column).type).to_pylist(), ports, strict=True))


def _groups(stream: Facts, held: pa.Table, spelled: dict[object, object]) -> dict[Group, dict[object, int]]:
    """Give, by group, the ports that hold something, and when the oldest row of each came."""
    column = stream["ports"]["column"] or PORT
    if column not in held.column_names:
        return {}
    names = list(dict.fromkeys([*stream["by"], column]))
    came = held.select(names).append_column("came", pa.array(ticks(held["arrival"])))
    found: dict[Group, dict[object, int]] = {}
    for row in came.group_by(names).aggregate([("came", "min")]).to_pylist():
        found.setdefault(_group(stream, row), {})[spelled.get(row[column], row[column])] = row["came_min"]
    return found


def _group(stream: Facts, row: Facts) -> Group:
    return tuple(row[name] for name in stream["by"])


def _left(known: KnownRun, name: str) -> dict[Group, int]:
    """Give, by group, when a row left last."""
    stream = known.streams[name]
    table = _carry(known, name, "state", stream["by"])
    groups = (_group(stream, row) for row in table.select(stream["by"]).to_pylist()) if stream["by"] else [()]
    return dict(zip(groups, ticks(table["last_arrival"]).tolist(), strict=False))


def _spoke(known: KnownRun, name: str) -> set[tuple[Group, int]]:
    """Give the groups and ports of which a row left: all others of which nothing is held were never heard."""
    stream = known.streams[name]
    rows = _carry(known, name, PORTS, (*stream["by"], PORT)).to_pylist()
    return {(_group(stream, row), row[PORT]) for row in rows if row[LEFT] is not None}


def _silent(known: KnownRun, name: str, groups: dict[Group, dict[object, int]]) -> list[Facts]:
    """Name the ports that hold nothing while others do: in how many groups, and what would make them speak."""
    stream = known.streams[name]
    spoke, told = _spoke(known, name), []
    for place, port in enumerate(stream["ports"]["values"] or stream["ports"]["streams"]):
        silent = [group for group, there in groups.items() if port not in there]
        if silent:
            never = sum((group, place) not in spoke for group in silent)
            told.append({"port": port, "groups": len(silent), "never": never} | _beats(known, name, place))
    return told


def _beats(known: KnownRun, name: str, place: int) -> Facts:
    """Say whether timers come into a port, and whether they may stop."""
    inputs = known.streams[name]["inputs"]
    makers = list(_timers(known, inputs[place] if len(inputs) > 1 else inputs[0]))
    return {"beats": bool(makers), "expires": any(maker["policy"].get("expire") for maker in makers)}


def _timers(known: KnownRun, name: str) -> Iterator[Facts]:
    """Give the operators that bring timers into a stream."""
    behind = (known.streams[each] for each in known.behind(name) if each in known.streams)
    return (stream for stream in behind if SPECS[stream["operator"]].has_timers)


def _advance_time(known: KnownRun, name: str) -> Facts | None:
    stream = known.streams[name]
    every = stream["policy"].get("events")
    if stream["by"] or not every:
        return None
    rows = _carry(known, name, "state", ()).to_pylist()
    if not rows or rows[0].get("received") is None:
        return None
    return {"events": every - rows[0]["received"] % every, "duration": stream["policy"].get("duration")}


def _meeting(known: KnownRun, name: str) -> Facts | None:
    """Say how many rows a union or a join keeps, and which side's CTI is the oldest, or is not there yet."""
    stream = known.streams[name]
    rows = _carry(known, name, "ports", (*stream["by"], PORT))
    if not rows.num_rows:
        # An empty carry may have no columns: that of a run which was reset to its beginning has none.
        return None
    sides = zip(*(rows[key].to_pylist() for key in (*stream["by"], PORT)), strict=True)
    newest = dict(zip(sides, ticks(rows["cti"]).tolist(), strict=True))
    kept = held_rows(known, name)
    if kept and stream["by"] and kept <= MOST_HELD:
        # An instance hears the CTIs of keys that are dealt to another one, too, and no row waits for those.
        held = _carry(known, name, "held", (*stream["by"], "position"))
        waiting = set(zip(*(held[key].to_pylist() for key in stream["by"]), strict=True))
        newest = {side: cti for side, cti in newest.items() if side[:-1] in waiting} or newest
    oldest = min(newest.items(), key=lambda item: item[1])
    return {
        "kept": kept,
        "side": stream["inputs"][oldest[0][-1]],
        "cti_at": None if oldest[1] == NULL else int(oldest[1]),
        "scopes": len({group[:-1] for group in newest}),
    }


def _window(known: KnownRun, name: str) -> Facts | None:
    """Say how many accumulators windows keep, and which CTI lets the first of them leave."""
    stream = known.streams[name]
    rows = _carry(known, name, "windows", (*stream["by"], "age"))
    if not rows.num_rows:
        return None
    first = int(ticks(rows["window_start"]).min())
    return {
        "accumulators": rows.num_rows,
        "windows": len(rows["window_start"].unique()),
        "kept": held_rows(known, name),
        "next_at": first + int(stream["policy"]["size"]),
    }


_AWAITED: dict[str, Callable[[Any, str], Facts | None]] = {
    "ports": _merge,
    "promise": _advance_time,
    "sides": _meeting,
    "windows": _window,
}
"""By what an operator's rows wait for."""


def _carry(known: KnownRun, name: str, part: str, key: Sequence[str]) -> pa.Table:
    known = known.of(name)
    tip = known.state.tip
    return read_carry(known.root, name, part, tip.commit if tip else 0, key=key, state=known.state)
