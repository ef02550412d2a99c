"""Whether intervals are as usual: none is missing or empty, none far from the same weekday before, no key fell silent.

Nothing here is wrong by itself, so all of it warns. What is usual comes from what the run has published; where there is
too little of that nothing is asked, and the sentence says for how many intervals.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import pendulum
import pyarrow as pa

from expectations.laws import intervals_touch, keys_speak, rows_land, usual_volume
from expectations.reckoned import Reckoned
from pipelines.engine.columnar.columns import instant_text
from pipelines.engine.commits.entry import CommitKind
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.landing.errors import RowsRemovedError
from pipelines.engine.landing.manifest import read_sequence
from pipelines.jobs.runs.counts import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pipelines.engine.commits.entry import Entry
    from pipelines.engine.commits.history import LogState
    from pipelines.flows.model import Flow, Source
    from pipelines.jobs.facts.views import JudgedCommits

LEAST = 3
"""Intervals before one from which on there is a usual."""
WEEKS, LOOKED = 8, 7
"""Intervals before one that are looked at: of the same weekday, and for keys."""
APART = 2
"""How many times fewer, or more, rows than ever on that weekday are not usual."""
MOST_KEYS = 100_000
"""Keys of an interval beyond which silence is not asked: one of so many says nothing."""
Keys = frozenset[tuple[Any, ...]]
Row = dict[str, Any]


class Volume(NamedTuple):
    """How many rows of a source landed in an interval."""

    commit: int
    start: int
    end: int
    rows: int


def usual(flow: Flow, root: Path, judged: JudgedCommits, state: LogState) -> tuple[Reckoned, ...]:
    """Hold intervals against those before them; nothing of a stream, whose epochs have no calendar.

    Args:
        flow: the model.
        root: the run's folder.
        judged: the commits.
        state: the log.
    """
    wanted = {entry.commit for entry in judged.entries if entry.kind is CommitKind.INTERVAL}
    if not wanted:
        return ()
    before = [state.commits[number] for number in reversed(judged.earlier)]
    every = [entry for entry in (*before, *judged.entries) if entry.kind is CommitKind.INTERVAL]
    asked = [Volume(entry.commit, *entry.span, 0) for entry in every if entry.commit in wanted]
    found = [gaps(asked)]
    for name, source in flow.sources.items():
        volumes = [Volume(entry.commit, *entry.span, counted(entry, "landed").get(name, 0)) for entry in every]
        found += [empty(name, volumes, wanted), odd(name, volumes, wanted, flow.timezone)]
        found.append(_silent(root, source, every, wanted))
    return tuple(found)


def gaps(volumes: Sequence[Volume]) -> Reckoned:
    """Find the times between intervals that were never run."""
    rows = tuple(
        {"start": instant_text(one.end), "end": instant_text(other.start), "commit": other.commit}
        for one, other in pairwise(volumes)
        if one.end < other.start
    )
    return Reckoned(law=intervals_touch(), looked_at=len(volumes), unexpected=len(rows), rows=rows)


def empty(source: str, volumes: Sequence[Volume], wanted: set[int]) -> Reckoned:
    """Find the intervals in which nothing of a source landed."""
    asked = [volume for volume in volumes if volume.commit in wanted]
    rows = tuple(_told(volume) for volume in asked if not volume.rows)
    looked_at = sum(volume.rows for volume in asked)
    return Reckoned(law=rows_land(source), looked_at=looked_at, unexpected=len(rows), rows=rows)


def odd(source: str, volumes: Sequence[Volume], wanted: set[int], timezone: str) -> Reckoned:
    """Find the intervals that have far fewer, or far more, rows than those of the same weekday and hour before."""
    before: dict[tuple[int, str], list[int]] = defaultdict(list)
    rows: list[Row] = []
    asked = 0
    for volume in volumes:
        moment = pendulum.from_timestamp(volume.start / 1_000_000, tz=timezone)
        past = before[moment.weekday(), moment.time().isoformat()]
        known = past[-WEEKS:]
        past.append(volume.rows)
        if volume.commit not in wanted or len(known) < LEAST:
            continue
        asked += 1
        low, high = min(known) / APART, max(known) * APART
        if not low <= volume.rows <= high:
            rows.append({**_told(volume), "least": low, "most": high, "before": len(known)})
    law, looked_at = usual_volume(source, asked, len(wanted), LEAST), sum(v.rows for v in volumes if v.commit in wanted)
    return Reckoned(law=law, looked_at=looked_at, unexpected=len(rows), rows=tuple(rows))


def _told(volume: Volume) -> Row:
    return {
        "commit": volume.commit,
        "start": instant_text(volume.start),
        "end": instant_text(volume.end),
        "rows": volume.rows,
    }


def _silent(root: Path, source: Source, entries: Sequence[Entry], wanted: set[int]) -> Reckoned:
    """Find the keys that had rows in each of the intervals before one, and have none in it."""
    first = next(place for place, entry in enumerate(entries) if entry.commit in wanted)
    looked = entries[max(0, first - LOOKED) :]
    heard = {entry.commit: keys for entry in looked if (keys := _keys(root, source, entry)) is not None}
    rows = tuple(fell_silent(source.key, heard, wanted))
    asked = sum(len(keys) for commit, keys in heard.items() if commit in wanted)
    return Reckoned(law=keys_speak(source.name, LEAST, LOOKED), looked_at=asked, unexpected=len(rows), rows=rows)


def fell_silent(key: Sequence[str], heard: Mapping[int, Keys], wanted: set[int]) -> Iterator[Row]:
    """Give the keys that were heard in each interval before one, and not in it.

    Args:
        key: names of the columns.
        heard: by commit, in the order of their spans: the keys that had rows.
        wanted: the judged commits.
    """
    before: list[Keys] = []
    for commit, keys in heard.items():
        known = before[-LOOKED:]
        before.append(keys)
        if commit in wanted and len(known) >= LEAST:
            for silent in sorted(frozenset.intersection(*known) - keys, key=str):
                yield {"commit": commit, **dict(zip(key, silent, strict=True)), "heard_before": len(known)}


def _keys(root: Path, source: Source, entry: Entry) -> Keys | None:
    """Give the keys of which rows landed for a commit; None where they are no longer kept, or too many."""
    found: set[tuple[Any, ...]] = set()
    try:
        for number in entry.sequences:
            for batch in read_sequence(landed_path(root), number).open(source.name):
                rows = pa.Table.from_batches([batch.select(list(source.key))])
                found.update(tuple(row.values()) for row in rows.group_by(list(source.key)).aggregate([]).to_pylist())
    except RowsRemovedError:
        return None
    return frozenset(found) if len(found) <= MOST_KEYS else None
