"""What a run published, interval by interval of the flow's grid: a backfill's commits, and whole days of its epochs.

A row belongs to the day in which it arrived, whoever ran it, so a day of a stream is held against others just as the
same day of a backfill is. Epochs end where readings do, not where days do: those that reach over a cut are parted by
the arrivals of their rows and of their lines in the ledger.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from pipelines.engine.columnar.columns import LEDGER_SCHEMA, ticks
from pipelines.engine.commits.entry import LEDGER, CommitKind, Entry, Span
from pipelines.engine.commits.paths import landed_path, ledger_path
from pipelines.engine.commits.readers import rows_of
from pipelines.engine.landing.errors import RowsRemovedError
from pipelines.engine.landing.manifest import load_manifest
from pipelines.flows.grid import cuts_between
from pipelines.jobs.runs.counts import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pipelines.engine.commits.history import LogState
    from pipelines.engine.landing.sequence import LandedSequence
    from pipelines.flows.model import Flow

LATENESS = "lateness"
"""In the detail of an epoch: how late its timers were published."""
LINES = ["commit", "stream", "reason", "action", "arrival", "landed_at"]


@dataclass(frozen=True, kw_only=True)
class WholeDay:
    """One interval of the grid, as if one commit had made it."""

    entry: Entry
    """What landed, its lines of the ledger and its sequences; of a stream its `commit` is a number of its own, below 0,
    for an epoch may complete several days."""
    commit: int
    """The commit that made it, or completed it."""
    epochs: tuple[Entry, ...] = ()
    """Of a stream: those that ended in it and had timers."""

    @property
    def streamed(self) -> bool:
        """Say whether epochs made it."""
        return self.entry.kind is CommitKind.EPOCH


@dataclass
class _Filled:
    landed: Counter[str] = field(default_factory=Counter)
    lines: Counter[str] = field(default_factory=Counter)
    sequences: list[int] = field(default_factory=list)
    last: Entry | None = None
    """The epoch that completes it."""
    held: Mapping[str, int] = field(default_factory=dict)
    """How many rows each stream holds once that is done."""
    epochs: list[Entry] = field(default_factory=list)


def days_of(flow: Flow, root: Path, entries: Sequence[Entry], state: LogState) -> list[WholeDay]:
    """Give the intervals of the grid that commits filled whole, in order; one that is not complete yet is none.

    Args:
        flow: whose grid it is.
        root: the run's folder.
        entries: published commits, in the order of their spans.
        state: the log.
    """
    found = [WholeDay(entry=entry, commit=entry.commit) for entry in entries if entry.kind is CommitKind.INTERVAL]
    found += _streamed(flow, root, [entry for entry in entries if entry.kind is CommitKind.EPOCH], state)
    return sorted(found, key=lambda day: day.entry.span)


def _streamed(flow: Flow, root: Path, epochs: Sequence[Entry], state: LogState) -> Iterator[WholeDay]:
    if not epochs:
        return
    cuts = cuts_between(flow, epochs[0].span.start, max(entry.span.end for entry in epochs))
    filled = [_Filled() for _ in cuts[1:]]
    over: list[Entry] = []
    held: dict[str, int] = {}
    for entry in epochs:
        first, last = _at(cuts, entry.span.start), _at(cuts, entry.span.end - 1)
        # An epoch without rows says nothing, and holds what the one before it held.
        held = held | {name: count for name in flow.streams if (count := counted(entry, name).get("held")) is not None}
        for each in filled[first : last + 1]:
            each.last, each.held = entry, held
        if LATENESS in entry.detail:
            filled[last].epochs.append(entry)
        if first < last:
            over.append(entry)
            continue
        landed = counted(entry, "landed")
        filled[first].landed.update(landed)
        filled[first].lines.update(counted(entry, LEDGER))
        filled[first].sequences += entry.sequences if any(landed.values()) else ()
    for entry in over:
        _part(root, entry, cuts, filled)
    _part_lines(root, over, cuts, filled, state)
    listened = list(_joined(entry.span for entry in epochs))
    for place, (cut, each) in enumerate(zip(pairwise(cuts), filled, strict=True)):
        span = Span(*cut)
        if each.last is not None and any(whole.start <= span.start and span.end <= whole.end for whole in listened):
            counts = {name: {"held": count} for name, count in each.held.items()}
            counts |= {"landed": dict(each.landed), LEDGER: dict(each.lines)}
            numbers = tuple(sorted(dict.fromkeys(each.sequences)))
            day = replace(each.last, commit=-1 - place, span=span, counts=counts, sequences=numbers)
            yield WholeDay(entry=day, commit=each.last.commit, epochs=tuple(each.epochs))


def _at(cuts: Sequence[int], instant: int) -> int:
    """Give the place of the interval that holds an instant."""
    return min(max(bisect_right(cuts, instant) - 1, 0), len(cuts) - 2)


def _joined(spans: Iterable[Span]) -> Iterator[Span]:
    whole: Span | None = None
    for span in spans:
        if whole is not None and span.start <= whole.end:
            whole = Span(whole.start, max(whole.end, span.end))
            continue
        if whole is not None:
            yield whole
        whole = span
    if whole is not None:
        yield whole


def _part(root: Path, entry: Entry, cuts: Sequence[int], filled: Sequence[_Filled]) -> None:
    """Part what landed in an epoch that reaches over a cut; only what lies on both sides of one is read."""
    if not any(counted(entry, "landed").values()):
        return
    for number in entry.sequences:
        sequence = load_manifest(landed_path(root), number)
        for name in sequence.sources:
            for place, rows in _rows_by_day(sequence, name, cuts).items():
                filled[place].landed[name] += rows
                filled[place].sequences.append(number)


def _rows_by_day(sequence: LandedSequence, name: str, cuts: Sequence[int]) -> Counter[int]:
    landed, found = sequence.sources[name], Counter[int]()
    first, last = _at(cuts, sequence.start), _at(cuts, sequence.end - 1)
    if first == last or not landed.rows:
        return Counter({first: landed.rows}) if landed.rows else found
    if all(_at(cuts, group.first) == _at(cuts, group.last) for group in landed.row_groups) and landed.row_groups:
        for group in landed.row_groups:
            found[_at(cuts, group.first)] += group.rows
        return found
    with suppress(RowsRemovedError):
        for batch in sequence.open(name):
            found.update(_at(cuts, arrival) for arrival in ticks(batch["arrival"]).tolist())
        return found
    # Of rows that are no longer kept the manifest says where each piece of them begins.
    for group in landed.row_groups:
        found[_at(cuts, group.first)] += group.rows
    return found


def _part_lines(
    root: Path, over: Sequence[Entry], cuts: Sequence[int], filled: Sequence[_Filled], state: LogState
) -> None:
    spans = {entry.commit: entry.span for entry in over if counted(entry, LEDGER)}
    if not spans:
        return
    lines = rows_of(root, ledger_path(root), list(spans), LEDGER_SCHEMA, state).scan(LINES)
    instants = pc.coalesce(lines["arrival"], lines["landed_at"]).cast("int64").to_pylist()
    for line, instant in zip(lines.drop_columns(["arrival", "landed_at"]).to_pylist(), instants, strict=True):
        span = spans[line["commit"]]
        # A line without an instant is told with the reading that found it.
        at = span.end - 1 if instant is None else min(max(instant, span.start), span.end - 1)
        filled[_at(cuts, at)].lines[f"{line['stream']} {line['reason']} {line['action']}"] += 1
