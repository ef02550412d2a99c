"""What the operators of a run wait for, as its carry has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.readers import read_carry
from pipelines.jobs.counts import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipelines.jobs.known import KnownRun

    Facts = dict[str, Any]

MOST_HELD = 200_000
"""Held rows up to which they are looked at to say which port they wait for."""


def awaited(known: KnownRun) -> dict[str, Facts]:
    """Say what the operators of a run wait for, as the carry at its last commit has it."""
    tip = known.state.tip
    if tip is None:
        return {}
    found = {
        name: _AWAITED[stream["operator"]](known, name)
        for name, stream in known.streams.items()
        if stream["operator"] in _AWAITED
    }
    return {name: facts for name, facts in found.items() if facts is not None}


def held_rows(known: KnownRun, name: str) -> int:
    """Give how many rows a stream's operator held after the last commit that touched it; an idle one touches none."""
    row = next((row for row in reversed(known.state.in_order) if counted(row, name)), None)
    return 0 if row is None else counted(row, name).get("held", 0)


def _merge(known: KnownRun, name: str) -> Facts | None:
    rows = held_rows(known, name)
    if not rows:
        return None
    if rows > MOST_HELD:
        return {"held": rows, "ports": [], "groups": None, "since_at": None}
    stream = known.streams[name]
    held = _carry(known, name, "held", (*stream["by"], "position"))
    since = pc.min(held["arrival"]).cast(pa.int64()).as_py() if held.num_rows else None
    ports, groups = _silent(stream, held)
    return {"held": rows, "ports": ports, "groups": groups, "since_at": since}


def _silent(stream: Facts, held: pa.Table) -> tuple[list[Facts], int]:
    """Name the ports that hold nothing while others do, and in how many groups."""
    ports = stream["ports"] or {}
    column = ports.get("column")
    if not column or column not in held.column_names:
        return [], 0
    rows = (
        held.select([*stream["by"], column])
        .group_by([*dict.fromkeys([*stream["by"], column])])
        .aggregate([])
        .to_pylist()
    )
    groups: dict[tuple[object, ...], set[object]] = {}
    for row in rows:
        groups.setdefault(tuple(row[by] for by in stream["by"]), set()).add(row[column])
    silent = {value: sum(value not in there for there in groups.values()) for value in ports["values"]}
    return [{"port": value, "groups": count} for value, count in silent.items() if count], len(groups)


def _advance_time(known: KnownRun, name: str) -> Facts | None:
    stream = known.streams[name]
    every = stream["policy"].get("events")
    if stream["by"] or not every:
        return None
    rows = _carry(known, name, "state", ()).to_pylist()
    return {"events": every - rows[0]["received"] % every} if rows and rows[0].get("received") is not None else None


_AWAITED: dict[str, Callable[[Any, str], Facts | None]] = {"merge": _merge, "advance_time": _advance_time}


def _carry(known: KnownRun, name: str, part: str, key: Sequence[str]) -> pa.Table:
    tip = known.state.tip
    return read_carry(known.root, name, part, tip.commit if tip else 0, key=key, state=known.state)
