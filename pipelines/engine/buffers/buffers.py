"""Three buffers of closed sequences, each on storage of its own: IBM's ReplayableStart, durable, bounded and measured.

A sequence is in a buffer wholly or not at all, for its manifest is written last. The first closed manifest decides what
a sequence is; the others get copies of it. Whoever reads asks the selector, which gives a sequence out of a buffer that
may speak and whose files hold the very bytes that landed. A buffer that is found otherwise is quarantined, told of,
and rebuilt from another; it speaks again when a commit has been published since, not before.

What a published commit covers is moved to the landing's history, and leaves the buffers but for a margin.
"""

from __future__ import annotations

import errno
import logging
import os
import shutil
import threading
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pipelines.engine.buffers.copies import close_copy
from pipelines.engine.buffers.depth import size_of
from pipelines.engine.buffers.owners import FOREIGN, GONE, claim, mark, owner_of, problem_of
from pipelines.engine.buffers.places import (
    BufferDrain,
    Health,
    Record,
    last_noted,
    note_last,
    read_record,
    write_record,
)
from pipelines.engine.columnar.clock import wall_now
from pipelines.engine.files.durable import sync_folder
from pipelines.engine.files.packed import closed_with
from pipelines.engine.landing.errors import (
    AllMovedError,
    BuffersLostError,
    LandingError,
    NoRoomError,
    ReferenceBrokenError,
    SequenceBrokenError,
)
from pipelines.engine.landing.manifest import (
    MANIFEST,
    check_files,
    closed_in,
    held_in,
    load_from,
    numbers_held,
    numbers_in,
    verify,
)
from pipelines.engine.landing.shelves import Gap
from pipelines.flows.apart import MARGIN, MAX_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from pipelines.engine.landing.sequence import LandedSequence

LOGGER = logging.getLogger(__name__)
NAMES = ("a", "b", "c")
REBUILD_EVERY = 5.0
"""Seconds between two attempts to rebuild a buffer whose storage does not take it."""
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
MOST_AWAY = 3
"""Times between two commits that storage may be gone when it is read and whole when it is looked at."""


class Buffers:
    """The three buffers of a run, for the one process that holds its lease; its threads may share one.

    Args:
        landed: the run's folder of history; the record of the buffers lies in it.
        places: folder of each buffer, by name.
        consistent: says where the region stands.
        tell: told of everything that goes wrong and comes right again.
        held: raises where the lease of the run is lost; asked before anything is believed to be damaged.
        margin: covered sequences that stay.
        max_bytes: of sequences that nothing covers; more are not taken.
    """

    def __init__(  # noqa: PLR0913 - what buffers are made of
        self,
        landed: Path,
        places: Mapping[str, Path],
        consistent: Callable[[], BufferDrain],
        tell: Callable[[str], None] = lambda _: None,
        held: Callable[[], object] = lambda: None,
        margin: int = MARGIN,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        """Take up what is known of the buffers; make those that were never there."""
        self.landed, self.places = landed, dict(places)
        self._consistent, self._tell, self._held = consistent, tell, held
        self._margin, self._max_bytes = margin, max_bytes
        self._lock = threading.RLock()
        self._tried = dict.fromkeys(self.places, float("-inf"))
        self._sizes: dict[int, int] = {}
        self._away = 0
        """How often a reading failed and all was whole when it was looked at, since the last commit."""
        self._moved = self._history = 0
        """The last sequence that was covered when `cover` last looked, and the last one of history without a gap."""
        self._newest: int | None = None
        """The last sequence that is known to have closed; None until the buffers are settled."""
        self._owner = owner_of(landed)
        known = read_record(landed)
        claim(self.places, self._owner, known=known.places if known else {})
        self.record = known or Record(places=_spelled(self.places))
        if known is None:
            self._make()
        else:
            self._move(known)

    def _make(self) -> None:
        """Make the buffers; one whose storage does not take it is quarantined before it ever held anything.

        Raises:
            OSError: none takes it.
        """
        failed: dict[str, OSError] = {}
        for name, place in self.places.items():
            try:
                mark(place, self._owner)
            except OSError as problem:
                failed[name] = problem
        if len(failed) == len(self.places):
            raise next(iter(failed.values()))
        write_record(self.landed, self.record)
        for name, why in failed.items():
            self._distrust(name, _said(why))

    def _move(self, known: Record) -> None:
        """Take up places that the environment has changed: what is new is rebuilt from what is not.

        A buffer that is there with this run's mark has moved along with its home, and is what it was.

        Raises:
            AllMovedError: all three are new.
        """
        moved = [name for name, place in self.places.items() if known.places.get(name) != str(place)]
        if moved and not any(map(self._problem, moved)):
            self.record = replace(known, places=_spelled(self.places))
            write_record(self.landed, self.record)
            return
        if len(moved) == len(self.places):
            raise AllMovedError(tuple(known.places.values()), tuple(map(str, self.places.values())))
        for name in moved:
            health = replace(known.of(name), rebuilt=False, why="it was moved", since=wall_now())
            self.record = replace(self.record.with_health(name, health), places=_spelled(self.places))
        if moved:
            write_record(self.landed, self.record)

    def _problem(self, name: str) -> str:
        """Say why the folder of a buffer is not this run's buffer; nothing where it is."""
        return problem_of(self.places[name], self._owner.id)

    # ---- the selector

    def speaking(self) -> list[str]:
        """Name the buffers that may speak, the first one first."""
        commit = self._consistent().drain
        return [name for name in self.places if self.record.of(name).speaks(commit)]

    def _collecting(self) -> list[str]:
        return [name for name in self.places if self.record.of(name).rebuilt]

    def open(self, number: int) -> LandedSequence:
        """Give a closed sequence out of history, else of a buffer that may speak and holds the very bytes that landed.

        Raises:
            SequenceBrokenError: history has it damaged and no buffer has it any more, or a file of the feed has
                changed.
            BuffersLostError: nobody can give it.
        """
        with self._lock:
            if closed_in(self.landed, number):
                try:
                    return _trusted(self.landed, number)
                except ReferenceBrokenError:
                    raise
                except SequenceBrokenError:
                    # History is damaged; a buffer keeps what it covers for a while.
                    found = self._elsewhere(number)
                    if found is None:
                        raise
                    return found
            asked: set[str] = set()
            while names := [name for name in self.speaking() if name not in asked]:
                name = names[0]
                asked.add(name)
                if number > (self._newest or 0) and not held_in(self.places[name], number):
                    # It is just being landed, and this buffer's turn has not come.
                    continue
                try:
                    return _trusted(self.places[name], number)
                except ReferenceBrokenError:
                    # A file of the feed itself, which no buffer holds a copy of.
                    raise
                except (LandingError, OSError) as problem:
                    self.quarantine(name, _said(problem))
            raise self.lost()

    def _elsewhere(self, number: int) -> LandedSequence | None:
        """Give a sequence out of a buffer that still holds the very bytes that landed; None where none does."""
        for name in self.speaking():
            with suppress(LandingError, OSError):
                if held_in(self.places[name], number):
                    return _trusted(self.places[name], number)
        return None

    def doubt(self, numbers: Iterable[int], problem: Exception) -> bool:
        """Look again at sequences whose reading failed; say whether to read them again.

        That is so where a buffer was quarantined for one, and where the failure names a buffer in which all is whole
        now: storage that was away for a moment. The latter a few times at most, until a commit is published.

        Args:
            numbers: of the sequences.
            problem: what their reading raised.
        """
        before = self.record
        with suppress(BuffersLostError):
            for number in numbers:
                self.open(number)
        return self.record != before or self._was_away(problem)

    def _was_away(self, problem: Exception) -> bool:
        self._away += 1
        return self._away <= MOST_AWAY and any(str(place) in str(problem) for place in self.places.values())

    def lost(self) -> BuffersLostError:
        """Say what is lost where no buffer may speak."""
        state = self._consistent()
        missing = [number for number in self._missing() if number > state.covered]
        first, last = (missing[0], missing[-1]) if missing else (state.covered + 1, state.covered + 1)
        why = {name: self.record.of(name).why or "it has no such sequence" for name in self.places}
        return BuffersLostError(first, last, state.commit, why)

    def _missing(self) -> list[int]:
        """Give the sequences that are known to have closed, and that history does not hold."""
        safe = self._safe()
        seen = [number for place in self.places.values() for number in numbers_held(place)]
        last = max([safe, self._newest or 0, last_noted(self.landed), *seen])
        return [number for number in range(safe + 1, last + 1) if not closed_in(self.landed, number)]

    # ---- the marker's side

    def settle(self) -> None:
        """Before a source is read: have what any buffer has closed in the others, and see that none falls short.

        Short of the newest sequence alone is what a driver leaves that was killed while it copied. Anything else that
        is missing, or differs, is damage.

        Raises:
            BuffersLostError: none may speak, and sequences are known that nothing covers.
        """
        with self._lock:
            self._look_after()
            if not self.speaking():
                self._readmit()
            newest = self.last()
            for number in range(self._safe() + 1, newest + 1):
                if not closed_in(self.landed, number):
                    self._settle(number, newest=number == newest)
            if not self.speaking():
                raise self.lost()
            self._newest = newest
            self._look_after()

    def _readmit(self) -> None:
        """Believe buffers again that nobody believed: those that hold all that is known to have closed, to the byte.

        That is how storage comes back which was away. Where nothing is missing, an empty buffer will do.
        """
        missing = self._missing()
        for name, place in self.places.items():
            if not missing and self._problem(name) == GONE:
                with suppress(OSError):
                    mark(place, self._owner)
            if not self._problem(name) and all(map(partial(_holds, place), missing)):
                self._keep(name, replace(self.record.of(name), rebuilt=True, restarted=None))
                self._tell(f"buffer {name} holds all that no commit covers, and counts again")

    def _settle(self, number: int, *, newest: bool) -> None:
        holders = [name for name in self.speaking() if held_in(self.places[name], number)]
        if not holders:
            raise self.lost()
        sequence = self.open(number)
        decided = (sequence.folder / MANIFEST).read_bytes()
        speaking = self.speaking()
        for name in self._collecting():
            try:
                problem = self._compared(name, sequence, decided, is_late=newest or name not in speaking)
            except OSError as failed:
                problem = _said(failed)
            if problem:
                self.quarantine(name, problem)
        self._sizes[number] = size_of(sequence)

    def _compared(self, name: str, sequence: LandedSequence, decided: bytes, *, is_late: bool) -> str:
        """Say what is wrong with a buffer's copy of a sequence; one that it may lack is copied into it.

        Raises:
            OSError: its storage does not say.
        """
        there, number = self.places[name], sequence.id
        if not closed_in(there, number):
            return self._copied(sequence, name) if is_late else f"sequence {number} is missing"
        if (there / sequence.folder.name / MANIFEST).read_bytes() != decided:
            return f"sequence {number} is another than in the others"
        if there != sequence.folder.parent:
            # Nobody asks for this copy, but damage is to be found while there are others.
            try:
                _trusted(there, number)
            except LandingError as problem:
                return _said(problem)
        return ""

    def land(self, number: int, write: Callable[[Path], LandedSequence]) -> LandedSequence:
        """Close a sequence in all buffers that take it; the first one that closes decides what it is.

        Args:
            number: of the sequence.
            write: writes and closes it in the folder that it is given.

        Raises:
            NoRoomError: none has room; nothing is lost.
            BuffersLostError: none may speak.
        """
        with self._lock:
            self._look_after()
            # A driver that was overtaken may have closed it after all, and the first closed manifest decides.
            return self._spread(number, self._closed(number, write), write)

    def adopt(self, number: int) -> None:
        """Have a sequence in all buffers that a driver closed which was overtaken.

        Raises:
            BuffersLostError: it is whole in none.
        """
        with self._lock:

            def nobody(_: Path) -> LandedSequence:
                raise self.lost()

            if not closed_in(self.landed, number):
                self._spread(number, self.open(number), nobody)

    def _spread(self, number: int, sequence: LandedSequence, write: Callable[[Path], LandedSequence]) -> LandedSequence:
        # A buffer that is silent collects too: when it counts again it must have what no commit covers by then.
        failed: set[str] = set()
        while missing := [name for name in self._collecting() if not held_in(self.places[name], number)]:
            problem = self._copied(sequence, missing[0])
            if problem and self._is_whole(self._holder(sequence), number):
                # Storage that takes what is rebuilt and not what comes next is not asked again and again.
                (self._distrust if missing[0] in failed else self.quarantine)(missing[0], problem)
                failed.add(missing[0])
            elif problem:
                sequence = self._closed(number, write)
        self._sizes[number], self._newest = size_of(sequence), number
        note_last(self.landed, number)
        return sequence

    def _first(self, write: Callable[[Path], LandedSequence]) -> LandedSequence:
        failed: dict[str, OSError] = {}
        for name in self.speaking():
            try:
                self._require(name)
                sequence = write(self.places[name])
            except OSError as problem:
                failed[name] = problem
            else:
                self._quarantine_all(failed)
                return sequence
        if failed and all(map(_is_full, failed.values())):
            raise NoRoomError("; ".join(f"{name}: {_said(each)}" for name, each in failed.items()))
        self._quarantine_all(failed)
        raise self.lost()

    def _require(self, name: str) -> None:
        """See that the folder of a buffer is this run's buffer.

        Raises:
            OSError: it is not.
        """
        if problem := self._problem(name):
            raise OSError(errno.EIO, problem)

    def _quarantine_all(self, failed: Mapping[str, OSError]) -> None:
        for name, problem in failed.items():
            self.quarantine(name, _said(problem))

    def room(self) -> None:
        """See that what nothing covers yet leaves room for more.

        Raises:
            NoRoomError: it does not; the source is not to be read.
        """
        waiting = self.waiting_bytes()
        if waiting >= self._max_bytes:
            raise NoRoomError(f"{waiting:,} bytes wait for a consistent state and `max_bytes` is {self._max_bytes:,}")

    def waiting_bytes(self) -> int:
        """Count the bytes of sequences that no consistent state covers."""
        with self._lock:
            covered = self._consistent().covered
            self._sizes = {number: size for number, size in self._sizes.items() if number > covered}
            return sum(self._sizes.values())

    def last(self) -> int:
        """Give the id of the last closed sequence of history and of buffers that may speak; 0 where there is none."""
        held = [number for name in self.speaking() for number in numbers_held(self.places[name])]
        return max([*numbers_in(self.landed), *held], default=0)

    def _safe(self) -> int:
        """Give the last sequence that a commit covers and history holds, with all before it."""
        covered = self._consistent().covered
        while self._history < covered and closed_in(self.landed, self._history + 1):
            self._history = closed_with(self.landed, self._history + 1)
        return min(self._history, covered)

    # ---- quarantine and rebuilding

    def quarantine(self, name: str, why: str) -> None:
        """Believe nothing of what a buffer holds from now on; what it was stays beside it, and it is rebuilt."""
        with self._lock:
            self._distrust(name, why)
            self._rebuild(name)

    def _distrust(self, name: str, why: str) -> None:
        """Believe nothing of what a buffer holds; it is rebuilt when its storage has had time to come back."""
        # To a driver that was overtaken and woken the buffers of another look damaged.
        self._held()
        known = self.record.of(name)
        self._keep(name, replace(known, rebuilt=False, why=why, since=wall_now(), times=known.times + 1))
        self._tell(f"buffer {name} is quarantined: {why}")
        LOGGER.warning("buffer %s at %s is quarantined: %s", name, self.places[name], why)
        self._tried[name] = time.monotonic()

    def _look_after(self) -> None:
        for name in self.places:
            if self.record.of(name).rebuilt and (problem := self._problem(name)):
                self.quarantine(name, problem)
        for name in self.places:
            if not self.record.of(name).rebuilt and time.monotonic() - self._tried[name] >= REBUILD_EVERY:
                self._rebuild(name)
        commit = self._consistent().drain
        for name in self.places:
            known = self.record.of(name)
            if known.rebuilt and known.restarted is not None and known.speaks(commit):
                self._keep(name, replace(known, restarted=None))
                self._tell(f"buffer {name} counts again, since commit {commit}")
                self._forget_aside(name)

    def _forget_aside(self, name: str) -> None:
        with suppress(OSError):
            for aside in self.places[name].parent.glob(f"{self.places[name].name}.quarantined-*"):
                shutil.rmtree(aside, ignore_errors=True)
                with suppress(OSError):
                    # A file that stood in the buffer's place.
                    aside.unlink(missing_ok=True)

    def _rebuild(self, name: str) -> None:
        """Fill a buffer from one that may speak; where its storage does not take it, it stays as it is until later."""
        self._tried[name] = time.monotonic()
        commit = self._consistent().drain
        place, safe = self.places[name], self._safe()
        # Where a consistent state covers all that ever closed, an empty buffer lacks nothing.
        whole = self._newest is not None and self._newest <= safe
        if not whole and not self.speaking():
            return
        fresh = place.with_name(f"{place.name}.rebuilding")
        try:
            # What it was is not touched before all is there that is to stand in its place.
            if self._problem(name) == FOREIGN:
                raise OSError(errno.EEXIST, FOREIGN)  # noqa: TRY301 - as if its storage had said so
            shutil.rmtree(fresh, ignore_errors=True)
            mark(fresh, self._owner)
            for number in self._missing():
                close_copy(self.open(number), fresh)
            self._put_aside(name)
            fresh.rename(place)
            sync_folder(place.parent)
            self._require(name)
        except BuffersLostError:
            shutil.rmtree(fresh, ignore_errors=True)
            return
        except (OSError, SequenceBrokenError) as problem:
            self._tell(f"buffer {name} cannot be rebuilt yet: {_said(problem)}")
            return
        self._keep(name, replace(self.record.of(name), rebuilt=True, restarted=None if whole else commit))
        if whole:
            self._forget_aside(name)
        when = "at once, for nothing is uncovered" if whole else f"when a commit after {commit} is published"
        self._tell(f"buffer {name} is rebuilt, and counts again {when}")

    def _put_aside(self, name: str) -> None:
        place = self.places[name]
        if place.exists():
            place.rename(place.with_name(f"{place.name}.quarantined-{wall_now()}"))

    def _copied(self, sequence: LandedSequence, name: str) -> str:
        """Copy a sequence into a buffer; say what went wrong, on either side, nothing where it is there."""
        try:
            self._require(name)
            close_copy(sequence, self.places[name])
        except (OSError, SequenceBrokenError) as problem:
            return _said(problem)
        return ""

    def _is_whole(self, name: str, number: int) -> bool:
        """Read a copy, and say whether it is what landed; the buffer of one that is not is quarantined."""
        try:
            _trusted(self.places[name], number)
        except (LandingError, OSError) as problem:
            self.quarantine(name, _said(problem))
            return False
        return True

    def _closed(self, number: int, write: Callable[[Path], LandedSequence]) -> LandedSequence:
        """Give a sequence as somebody closed it, where that is whole; else write it."""
        with suppress(BuffersLostError):
            if any(held_in(self.places[name], number) for name in self.speaking()):
                return self.open(number)
        return self._first(write)

    def _keep(self, name: str, health: Health) -> None:
        self.record = self.record.with_health(name, health)
        write_record(self.landed, self.record)

    def accept_loss(self) -> tuple[int, int] | None:
        """Go on without what no buffer holds any more; give its first and last sequence, None where nothing is lost.

        The buffers begin anew, and count; what they held is moved aside. The record keeps the gap for ever.

        Raises:
            BuffersLostError: there is nowhere to begin anew.
        """
        with self._lock:
            lost = self.lost()
            if self.speaking():
                return None
            fresh = {name: replace(self.record.of(name), restarted=None, rebuilt=True) for name in self.places}
            for name, place in self.places.items():
                try:
                    self._put_aside(name)
                    mark(place, self._owner)
                except OSError as problem:
                    fresh[name] = replace(fresh[name], rebuilt=False, why=_said(problem))
            if not any(health.rebuilt for health in fresh.values()):
                raise lost
            gap = Gap(lost.first, lost.last, wall_now())
            self.record = replace(self.record, health=fresh, gaps=(*self.record.gaps, gap))
            write_record(self.landed, self.record)
            self._sizes, self._newest = {}, self._consistent().covered
            note_last(self.landed, self._newest)
            return lost.first, lost.last

    def untold(self) -> tuple[Gap, ...]:
        """Give the accepted losses that the ledger does not have yet."""
        return tuple(gap for gap in self.record.gaps if not gap.told)

    def tell_of_gaps(self) -> None:
        """Remember that the ledger has all losses that were accepted so far."""
        with self._lock:
            if self.untold():
                gaps = tuple(gap._replace(told=True) for gap in self.record.gaps)
                self.record = replace(self.record, gaps=gaps)
                write_record(self.landed, self.record)

    # ---- bounds

    def secure(self, numbers: Iterable[int]) -> None:
        """Have sequences in history that a commit is about to cover: what is published depends on no buffer.

        A buffer that proves to be damaged meanwhile is quarantined, and another one gives the sequence.

        Raises:
            BuffersLostError: nobody can give a sequence.
            OSError: history does not take it.
        """
        with self._lock:
            missing = [number for number in numbers if not closed_in(self.landed, number)]
            if missing:
                # One that was overtaken has no business in history.
                self._held()
            for number in missing:
                self._into_history(number)

    def cover(self) -> int:
        """Free what a published commit covers but for the margin; give how many were moved to history only now.

        Killed anywhere, nothing is lost: a sequence leaves the buffers when it is closed in history.

        Raises:
            BuffersLostError: nobody can give a sequence that is covered.
            OSError: history does not take it.
        """
        with self._lock:
            covered = self._consistent().covered
            if covered == self._moved:
                return 0
            moved = 0
            held = sorted({number for name in self.speaking() for number in numbers_held(self.places[name])})
            for number in held:
                if number <= covered and not closed_in(self.landed, number):
                    self._into_history(number)
                    moved += 1
            for name in self.places:
                for number in numbers_held(self.places[name]):
                    if number <= covered - self._margin and closed_in(self.landed, number):
                        _free(self.places[name] / f"{number:08}")
            self._moved, self._away = covered, 0
            return moved

    def _into_history(self, number: int) -> None:
        # Bytes are hashed as they are copied, so nothing is read for it beforehand.
        while names := self.speaking():
            try:
                close_copy(load_from(self.places[names[0]], number), self.landed)
            except (OSError, LandingError) as problem:
                if self._is_whole(names[0], number) and not self._was_away(problem):
                    raise
            else:
                return
        raise self.lost()

    def _holder(self, sequence: LandedSequence) -> str:
        return next(name for name, place in self.places.items() if place == sequence.folder.parent)


def _holds(shelf: Path, number: int) -> bool:
    try:
        _trusted(shelf, number)
    except (LandingError, OSError):
        return False
    return True


def _trusted(shelf: Path, number: int) -> LandedSequence:
    """Give a sequence whose files hold the very bytes that landed."""
    sequence = check_files(load_from(shelf, number))
    verify(sequence)
    return sequence


def _spelled(places: Mapping[str, Path]) -> dict[str, str]:
    return {name: str(place) for name, place in places.items()}


def _free(folder: Path) -> None:
    """Remove a sequence, its manifest first: half of one is none."""
    with suppress(OSError):
        (folder / MANIFEST).unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)


def _is_full(problem: OSError) -> bool:
    # Arrow says so in words.
    return problem.errno in FULL or any(os.strerror(each) in str(problem) for each in FULL)


def _said(problem: Exception) -> str:
    if isinstance(problem, SequenceBrokenError) and not isinstance(problem, ReferenceBrokenError):
        # Its advice is for who has no other copy.
        return f"sequence {problem.folder.rpartition('/')[2].lstrip('0')} has {problem.problem}"
    return getattr(problem, "strerror", None) or str(problem)


def buffers_of(root: Path, places: Iterable[Path] = ()) -> dict[str, Path]:
    """Give the folders of a run's buffers, by name.

    Args:
        root: the run's folder.
        places: where the environment wants them, one folder a buffer; folders of the run unless given.
    """
    given = list(places)
    if not given:
        return {name: root / "landing" / name for name in NAMES}
    return {name: place / root.parent.name / root.name for name, place in zip(NAMES, given, strict=True)}
