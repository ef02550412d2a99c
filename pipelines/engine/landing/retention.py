"""Keep a run's history small between commits: few folders, and no rows that the environment wants kept no longer.

Three things, a segment at a time: sequences become segments (`compaction`), folders that a segment stands for
go, and rows that are old go. Whoever reads has an hour: folders go an hour after their segment has closed, files an
hour after their rows were said to be gone, and who opens a sequence in that time is given what stays, or an error.
"""

from __future__ import annotations

import datetime as dt
import time
from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING

from pipelines.engine.columnar.clock import wall_now
from pipelines.engine.files import durable
from pipelines.engine.files.packed import SEGMENT_FILE, TOGETHER, segment_folder, segments_in, span_of
from pipelines.engine.landing.compaction import compact, verify_segment
from pipelines.engine.landing.errors import SequenceBrokenError
from pipelines.engine.landing.manifest import MANIFEST, alone_in, load_manifest, stands_alone
from pipelines.engine.landing.segments import REMOVED_FILE, mark_removed, segment_of
from pipelines.engine.landing.sequence import Removed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

RECENT = 512
"""Covered sequences at the end of history that are left as they are."""
SHARE = 0.01
"""Part of the time since the last call that this may take; one segment is always done."""
NANOS_PER_TICK = 1_000
TICK = dt.timedelta(microseconds=1)


class Retention:
    """What a driver does to its history between commits.

    Safe to be killed anywhere, and beside whoever reads. History of another run, to which a replay has a link, is
    never touched.
    """

    def __init__(self, landed: Path, held: Callable[[], object]) -> None:
        """Take the folder of history, and who raises where the lease of the run is lost."""
        self._landed, self._held = landed, held
        self._left: set[int] = set()
        """First sequences of what cannot become a segment, or is none any more, as this process has seen."""
        self._emptied: set[int] = set()
        self._last, self._turn = time.monotonic(), 0

    def keep(self, covered: int, age: dt.timedelta, rows: int | None = None) -> None:
        """Do a part of what there is to do.

        Args:
            covered: the last sequence that a published commit covers.
            age: how long what was replaced stays, for whoever still has it open.
            rows: how long rows are kept, in ticks, before the newest covered reading; None for ever.

        Raises:
            SequenceBrokenError: a manifest cannot be read.
        """
        since, self._last = time.monotonic() - self._last, time.monotonic()
        if self._landed.is_symlink() or not covered:
            return
        before = _wall() - age // TICK * NANOS_PER_TICK
        alone, segments = alone_in(self._landed), segments_in(self._landed)
        works = [self._freed(alone, segments, before), self._made(alone, covered - RECENT)]
        if rows is not None:
            works.append(self._aged(alone, segments, covered, rows))
        # Each of them goes first in its turn, so none waits for another for ever.
        self._turn = (self._turn + 1) % len(works)
        _do(chain(*works[self._turn :], *works[: self._turn]), since * SHARE)
        self._empty(segments, before)

    def _freed(self, alone: set[int], segments: list[range], before: int) -> Iterator[None]:
        """Remove the folders of sequences that a segment stands for, once that has been read back."""
        for numbers in segments:
            there = [number for number in numbers if number in alone]
            folder = segment_folder(self._landed, numbers[0])
            if there and numbers[0] not in self._left and _changed(folder / SEGMENT_FILE) <= before:
                self._free(numbers, there)
                yield

    def _free(self, numbers: range, there: list[int]) -> None:
        try:
            verify_segment(self._landed, numbers[0])
        except (SequenceBrokenError, OSError):
            self._held()
            self._left.add(numbers[0])
            if all(stands_alone(self._landed, number) for number in numbers):
                remove_folder(segment_folder(self._landed, numbers[0]), SEGMENT_FILE)
                self._left.discard(numbers[0])
            return
        for number in there:
            remove_folder(self._landed / f"{number:08}", MANIFEST)

    def _made(self, alone: set[int], last: int) -> Iterator[None]:
        """Make segments, the oldest first; what cannot become one is left as it is."""
        found = Counter(span_of(number)[0] for number in alone if number <= last)
        for first in sorted(found):
            whole = found[first] == TOGETHER and first not in self._left
            if whole and not (segment_folder(self._landed, first) / SEGMENT_FILE).exists():
                if not self._compacted(first):
                    self._left.add(first)
                yield

    def _compacted(self, first: int) -> bool:
        try:
            return compact(self._landed, first)
        except (SequenceBrokenError, OSError):
            # Another driver may have cleared the draft. Damage is told to whoever reads, and is no more than it was.
            self._held()
            return False

    def _aged(self, alone: set[int], segments: list[range], covered: int, rows: int) -> Iterator[None]:
        """Say of segments that their rows are gone: whole ones, all of which is old and covered, never the newest."""
        limit = load_manifest(self._landed, covered).end - rows
        for numbers in segments[:-1]:
            folder = segment_folder(self._landed, numbers[0])
            if (folder / REMOVED_FILE).exists():
                continue
            if numbers[-1] > covered - RECENT or not alone.isdisjoint(numbers):
                return
            segment = segment_of(self._landed, numbers[-1])
            if segment is None or segment.sequence(numbers[-1]).end >= limit:
                return
            self._held()
            mark_removed(folder, Removed(wall_now(), rows))
            yield

    def _empty(self, segments: list[range], before: int) -> None:
        """Remove the files of rows that have been said to be gone for a while."""
        for numbers in segments:
            folder = segment_folder(self._landed, numbers[0])
            if numbers[0] not in self._emptied and 0 < _changed(folder / REMOVED_FILE) <= before:
                for file in folder.glob("*.parquet"):
                    file.unlink(missing_ok=True)
                self._emptied.add(numbers[0])


def _do(work: Iterator[None], seconds: float) -> None:
    """Do a first piece of work, and more as long as there is time."""
    begun = time.monotonic()
    for _ in work:
        if time.monotonic() - begun >= seconds:
            return


def _wall() -> int:
    return wall_now() * NANOS_PER_TICK


def _changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def remove_folder(folder: Path, manifest: str) -> None:
    """Remove a folder, its manifest first: half of it is nothing."""
    (folder / manifest).unlink(missing_ok=True)
    durable.remove_folder(folder, ignore_errors=True)
