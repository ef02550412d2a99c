"""Where a live run stands, as plain values: readings, backlog, blind spans, what is awaited, how late heartbeats are.

A stream that runs for a week closes a million sequences, so nothing here reads them all: the log says what is
published, ids of sequences have no gaps, and of the landing only its end is looked at.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.engine.columnar.columns import TABLE_INFINITY
from pipelines.engine.commits.history import CommitKind, State
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.landing.manifest import (
    alone_in,
    closed_ns,
    is_closed,
    load_manifest,
    manifest_bytes,
    stands_alone,
)
from pipelines.engine.landing.segments import segment_of
from pipelines.engine.live.lateness import late_at_most
from pipelines.engine.sources.state import read_state
from pipelines.flows.definition import feed_from_json
from pipelines.flows.feeds.catalog import is_live
from pipelines.jobs.runs.counts import counted
from pipelines.jobs.runs.known import is_replayed
from pipelines.jobs.runs.played import read_range
from pipelines.operators.rows import TICKS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.engine.commits.history import Entry
    from pipelines.engine.landing.sequence import LandedSequence
    from pipelines.jobs.runs.known import KnownRun

    Facts = dict[str, Any]

READING = "reading"
LOOKED = 2_000
"""Sequences at the end of the landing whose blind spans are told."""
RECENT = 200
"""Epochs whose heartbeats and pace are told."""
LAST_SPANS = 3
BLIND = re.compile(rb'"blind_spans":\s*\[\s*\[')
"""What the manifest of a sequence in which somebody was deaf has and no other."""
MINUTE = 60 * TICKS_PER_SECOND
NANOS_PER_TICK = 1_000


def live_of(known: KnownRun, now: int) -> Facts | None:
    """Say where a live run stands; None where nothing ever ran live, or a replay made it.

    Args:
        known: the run.
        now: wall time, in ticks.
    """
    if is_replayed(known.root):
        return None
    epochs = [row for row in known.state.published if row.kind is CommitKind.EPOCH]
    tail = Tail(known, epochs)
    newest = tail.newest
    if newest is None:
        return None
    return {
        "clock": clock_of(known),
        "readings": _readings(epochs, tail, newest),
        "backlog": _backlog(tail),
        "region": known.definition.get("region"),
        "sources": {name: _source(known, name, tail, newest) for name in known.sources},
        "final_at": newest.final,
        "streams": newest_times([row for part in known.parts for row in part.state.published], known.tables),
        "heartbeats": heartbeats([row for part in known.parts for row in part.state.published[-RECENT:]]),
        "pace": pace(epochs[-RECENT:], now),
    }


class Tail:
    """The end of a landing: what is closed and not published, and what the last sequences say.

    Args:
        known: the run.
        epochs: its published epochs, in order.
    """

    def __init__(self, known: KnownRun, epochs: Sequence[Entry]) -> None:
        """Find the last closed sequence, beginning at the last published one."""
        self.landing = landed_path(known.root)
        tip = known.state.tip
        self.published = tip.upto if tip else 0
        self.last = last_closed(self.landing, self.published)
        waiting = (load_manifest(self.landing, number) for number in range(self.published + 1, self.last + 1))
        self.waiting: list[LandedSequence] = [each for each in waiting if each.kind == READING]
        self.first = epochs[0].sequences[0] if epochs else (self.waiting[0].id if self.waiting else 0)

    @property
    def newest(self) -> LandedSequence | None:
        """Give the last sequence that a reading closed; None where none ever did."""
        if self.waiting:
            return self.waiting[-1]
        found = load_manifest(self.landing, self.published) if self.first and self.published else None
        return found if found is not None and found.kind == READING else None

    @property
    def gone(self) -> int | None:
        """Give the id of the sequence that is not there though a later one is closed; None where there is no such."""
        later = any(number > self.last + 1 and stands_alone(self.landing, number) for number in alone_in(self.landing))
        return self.last + 1 if later and not is_closed(self.landing, self.last + 1) else None

    def blind(self, name: str) -> tuple[list[tuple[int, int]], int]:
        """Give the blind spans of a source in the last sequences, joined, and how many sequences were looked at."""
        looked = range(max(self.first, self.last - LOOKED + 1), self.last + 1)
        deaf = (load_manifest(self.landing, number) for number in looked if self._is_deaf(number))
        spans = [span for each in deaf if name in each.sources for span in each.sources[name].blind_spans]
        return joined_spans(spans), len(looked)

    def _is_deaf(self, number: int) -> bool:
        """See without reading all of a manifest whether it has blind spans: few have any."""
        segment = segment_of(self.landing, number)
        if segment is not None:
            return segment.is_deaf(number)
        return BLIND.search(manifest_bytes(self.landing, number)) is not None


def joined_spans(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join spans that touch; nothing is loaded for it where there are none."""
    if not spans:
        return []
    from pipelines.engine.landing.index import joined

    return list(joined(spans))


def last_closed(landing: Path, known: int) -> int:
    """Give the id of the last closed sequence in a few looks, whatever their number: ids have no gaps.

    Args:
        landing: the folder of the sequences.
        known: one that is closed, or 0.
    """
    step = 1
    while is_closed(landing, known + step):
        known, step = known + step, step * 2
    while step > 1:
        step //= 2
        known += step if is_closed(landing, known + step) else 0
    return known


def clock_of(known: KnownRun) -> str:
    """Say whose time rows arrive in: `wall` where they come in live, `recorded` where a feed is played."""
    live = any(is_live(source["feed"]["kind"]) for source in known.sources.values())
    return "wall" if live else "recorded"


def is_played(known: KnownRun, live: Facts) -> bool:
    """Say whether a recording was played to the end of the range that was asked for."""
    played = None if live["clock"] == "wall" else read_range(known.root)
    return played is not None and bool(live["readings"]["last_at"] >= played[1])


def _readings(epochs: Sequence[Entry], tail: Tail, newest: LandedSequence) -> Facts:
    first = load_manifest(tail.landing, tail.first)
    return {
        "number": sum(len(row.sequences) for row in epochs) + len(tail.waiting),
        "first_at": first.end,
        "last_at": newest.end,
        "closed_at": closed_at(tail.landing, newest.id),
        "sequence": newest.id,
    }


def closed_at(landing: Path, number: int) -> int:
    """Give the wall time at which a sequence was closed, in ticks."""
    return closed_ns(landing, number) // NANOS_PER_TICK


def _backlog(tail: Tail) -> Facts:
    rows = sum(source.rows for each in tail.waiting for source in each.sources.values())
    since = closed_at(tail.landing, tail.waiting[0].id) if tail.waiting else None
    return {"sequences": len(tail.waiting), "rows": rows, "since_at": since, "gone": tail.gone}


def _source(known: KnownRun, name: str, tail: Tail, newest: LandedSequence) -> Facts:
    spans, looked = tail.blind(name)
    rows = next((row for row in reversed(known.state.in_order) if counted(row, "landed").get(name)), None)
    waiting = [each.end for each in tail.waiting if name in each.sources and each.sources[name].rows]
    return {
        "frontier_at": newest.end if name in newest.sources else None,
        "rows_until_at": waiting[-1] if waiting else (rows.span.end if rows else None),
        "waiting_rows": sum(each.sources[name].rows for each in tail.waiting if name in each.sources),
        "new_files": _new_files(known, name, closed_at(tail.landing, newest.id)),
        "state": read_state(known.root, name),
        "blind": {
            "looked": looked,
            "spans": len(spans),
            "ticks": sum(end - start for start, end in spans),
            "last": [{"start": start, "end": end} for start, end in spans[-LAST_SPANS:]],
        },
    }


def _new_files(known: KnownRun, name: str, since: int) -> int | None:
    """Count the files of a source's folder that changed after the last reading; None where it has no folder."""
    folders = source_folders(known, name)
    if not folders:
        return None
    from pipelines.engine.sources.listing import look

    found = 0
    for folder in folders:
        with suppress(OSError):
            there = look(folder)
            read = (seen for path, seen in there.files.items() if path not in there.refused)
            found += sum(seen.changed // NANOS_PER_TICK > since for seen in read)
    return found


def source_folders(known: KnownRun, name: str) -> list[Path]:
    """Give the folders in which a source's files arrive; none where it has none."""
    feed = known.sources[name]["feed"]
    folders = feed_from_json(feed).folders
    if not folders:
        return []
    from pipelines.jobs.environment.settings import config_folder

    base = Path(known.called).absolute().parent if Path(known.called).is_file() else config_folder() / "flows"
    return [base / path for path in folders]


def newest_times(epochs: Sequence[Entry], streams: Sequence[str]) -> dict[str, Facts]:
    """Give, by stream, the newest event time and the newest CTI that epochs published, in ticks."""
    found: dict[str, Facts] = {name: {"event_at": None, "cti_at": None} for name in streams}
    for row in epochs:
        for name, times in _part(row.detail, "newest").items():
            for what, tick in times.items():
                _raise_to(found.get(name, {}), f"{what}_at", min(tick, TABLE_INFINITY))
    return found


def _raise_to(times: Facts, name: str, tick: int) -> None:
    times[name] = tick if times.get(name) is None else max(times[name], tick)


def _part(facts: Any, name: str) -> Facts:  # noqa: ANN401 - JSON
    found = facts.get(name)
    return found if isinstance(found, dict) else {}


def heartbeats(epochs: Sequence[Entry]) -> Facts | None:
    """Say how late timers were published, wall clock, over some epochs; None where there was no timer or no clock.

    Of many commits they are right to 6 %, by how many timers of each were how late. A commit of an earlier version kept
    only its own quantiles; where one is among them all timers of a commit count as if each had its quantile.
    """
    found = [each for row in epochs if "max_ms" in (each := _part(row.detail, "lateness"))]
    if not found:
        return None
    top = max(each["max_ms"] for each in found)
    facts = {"epochs": len(found), "timers": sum(each["timers"] for each in found)}
    return {**facts, **{f"p{part}_ms": _late(found, part, top) for part in (50, 99)}, "max_ms": top}


def _late(found: Sequence[Facts], part: int, top: float) -> float:
    name = f"p{part}_ms"
    if len(found) == 1 or not all("spread" in each for each in found):
        return weighted([each[name] for each in found], [each["timers"] for each in found], part / 100)
    steps = Counter[str]()
    for each in found:
        steps.update(each["spread"])
    return round(min(top, weighted([late_at_most(step) for step in steps], list(steps.values()), part / 100)), 1)


def weighted(values: Sequence[float], weights: Sequence[int], part: float) -> float:
    """Give the smallest value that, with all below it, has at least a part of the weight.

    >>> weighted([5.0, 1.0, 9.0], [1, 98, 1], 0.99)
    5.0
    """
    left = part * sum(weights)
    for value, weight in sorted(zip(values, weights, strict=True)):
        left -= weight
        if left <= 0:
            return value
    return max(values)


def pace(epochs: Sequence[Entry], now: int) -> Facts:
    """Count the commits of the last minute, and those that were idle."""
    last = [row for row in epochs if row.at > now - MINUTE]
    return {"commits_a_minute": len(last), "idle": sum(row.idle for row in last)}


def epochs_folded(rows: Sequence[Entry]) -> list[list[Entry]]:
    """Put idle epochs that follow one another together; every other commit stands alone.

    Args:
        rows: by number.
    """
    folded: list[list[Entry]] = []
    for row in rows:
        if folded and row.idle and folded[-1][-1].idle and folded[-1][-1].state is State.PUBLISHED:
            folded[-1].append(row)
        else:
            folded.append([row])
    return folded
