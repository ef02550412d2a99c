"""A disk that keeps nothing but what it was told to: a model of what POSIX promises, and no more.

Bytes stay when their file was synced, a name stays or goes when its folder was synced. Real file systems keep more, one
this and one that: ext4 takes the names of a folder along with the next sync of any file. It needs neither root nor a
device, for the process that writes remembers itself what it synced, and leaves that behind when its power is cut.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import stat
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.engine.files import durable
from pipelines.jobs.drill.witness import Witness

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from multiprocessing.connection import Connection

    from pipelines.jobs.drill.witness import CutAt

ENDS = ("unlink", "rmdir", "rename", "replace")
"""Calls after which the number of a file may stand for another one."""


class DiskLoss(Enum):
    """What is lost of that which was not synced."""

    ALL = "all"
    """Everything: what was not synced did not happen."""
    BYTES = "bytes"
    """Bytes alone: names came and went at once."""
    SOME = "some"
    """Each name and each file's bytes by a coin."""


@dataclass(frozen=True)
class Strict:
    """A folder that is such a disk."""

    folder: Path
    number: int
    """Draws what is lost, where a coin does."""
    loss: DiskLoss

    @property
    def place(self) -> Path:
        """Give where the disk's files are."""
        return self.folder / "disk"

    @property
    def _left(self) -> Path:
        return self.folder / "left"

    def make(self) -> None:
        """Make it, with nothing on it."""
        self.place.mkdir(parents=True)

    def recover(self) -> None:
        """Bring the power back: what was left is all there is, where the power was cut."""
        if self._left.exists():
            shutil.rmtree(self.place)
            self._left.rename(self.place)

    def remove(self) -> None:
        """Leave nothing of it."""
        shutil.rmtree(self.place, ignore_errors=True)
        shutil.rmtree(self._left, ignore_errors=True)

    def cut(self) -> None:
        """Do nothing: the process that writes cuts its own power, for it alone knows what it synced."""

    def leave(self, journal: Journal) -> None:
        """Have there what a cut leaves."""
        made = self._left.with_name("leaving")
        made.mkdir()
        journal.leave(made, self.loss, random.Random(self.number))  # noqa: S311 - to be drawn again
        made.rename(self._left)


class Journal:
    """What one process synced below a folder; what lies there when it begins is on disk."""

    def __init__(self, root: Path) -> None:
        """Take what is there as kept."""
        self._root, self._ids, self._next = root, dict[int, int](), count(1)
        self._bytes, self._names, self._folders = dict[int, bytes](), dict[int, dict[str, int]](), set[int]()
        self.keep_all()

    def keep_all(self, _: Path | None = None) -> None:
        """Have everything on disk."""
        for each in [self._root, *self._root.rglob("*")]:
            self.keep(each)

    def keep(self, path: Path) -> None:
        """Have a file's bytes, or the names in a folder, on disk."""
        with suppress(FileNotFoundError):
            if path.is_dir():
                self._names[self._id(path.stat())] = self._listed(path)
            else:
                self._bytes[self._id(path.stat())] = path.read_bytes()

    def sync(self, handle: int) -> None:
        """Do what `fsync` does."""
        path = Path(f"/proc/self/fd/{handle}").resolve()
        if path == self._root or self._root in path.parents:
            self.keep(path)

    def watched(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Give one of `ENDS` that is seen here: what gets the number of a file that it ends is another one."""

        def seen(*given: Any, **named: Any) -> Any:  # noqa: ANN401 - as the system's call takes them
            found = None
            with suppress(OSError):
                found = os.stat(given[-1], dir_fd=named.get("dir_fd"), follow_symlinks=False)
            done = call(*given, **named)
            if found and (stat.S_ISDIR(found.st_mode) or found.st_nlink == 1):
                self._ids.pop(found.st_ino, None)
            return done

        return seen

    def _id(self, found: os.stat_result) -> int:
        if found.st_ino not in self._ids:
            self._ids[found.st_ino] = next(self._next)
        number = self._ids[found.st_ino]
        if stat.S_ISDIR(found.st_mode):
            self._folders.add(number)
        return number

    def _listed(self, folder: Path) -> dict[str, int]:
        found = {}
        for each in folder.iterdir():
            with suppress(FileNotFoundError):
                found[each.name] = self._id(each.lstat())
        return found

    def leave(self, into: Path, loss: DiskLoss, drawn: random.Random) -> None:
        """Put what a cut leaves into a folder.

        Args:
            into: an empty folder.
            loss: what is lost.
            drawn: throws the coins.
        """
        now = {}
        for each in [self._root, *self._root.rglob("*")]:
            with suppress(FileNotFoundError):
                now[self._id(each.lstat())] = each
        self._leave(self._id(self._root.stat()), into, DiskCut(loss, drawn, now))

    def _leave(self, number: int, into: Path, leaving: DiskCut) -> None:
        kept, path = self._names.get(number, {}), leaving.now.get(number)
        for name, child in leaving.names(kept, self._listed(path) if path else {}).items():
            if child in self._folders:
                (into / name).mkdir()
                self._leave(child, into / name, leaving)
            else:
                (into / name).write_bytes(leaving.content(self._bytes.get(child, b""), leaving.now.get(child)))


@dataclass(frozen=True)
class DiskCut:
    """One cut."""

    loss: DiskLoss
    drawn: random.Random
    now: Mapping[int, Path]
    """Where each file and folder lies at the cut."""

    def names(self, kept: Mapping[str, int], now: Mapping[str, int]) -> dict[str, int]:
        """Choose the names in a folder: those that were synced last, those of now, or each by a coin."""
        if self.loss is not DiskLoss.SOME:
            return dict(kept if self.loss is DiskLoss.ALL else now)
        chosen = {name: self.drawn.choice((kept, now)).get(name) for name in sorted({*kept, *now})}
        return {name: number for name, number in chosen.items() if number is not None}

    def content(self, kept: bytes, path: Path | None) -> bytes:
        """Choose a file's bytes: those that were synced last, or those of now by a coin."""
        if self.loss is DiskLoss.SOME and path is not None and self.drawn.choice((True, False)):
            with suppress(FileNotFoundError):
                return path.read_bytes()
        return kept


class Remembering(Witness):
    """The witness of a process on such a disk."""

    def __init__(self, disk: Strict, pipe: Connection, at: CutAt | None) -> None:
        """Take the disk, where to tell, and when to cut; None for not at all."""
        super().__init__(disk.place, pipe, at)
        self._strict, self._journal = disk, Journal(disk.place)

    def watch(self, without: frozenset[str] = frozenset()) -> None:
        """See every sync, and remember what it kept."""
        for name in ENDS:
            setattr(os, name, self._journal.watched(getattr(os, name)))
        os.fsync = self._journal.sync  # type: ignore[assignment]
        durable._syncfs = lambda: self._journal.keep_all  # type: ignore[assignment] # noqa: SLF001
        super().watch(without)

    def end(self) -> None:
        """Cut the power behind the end, where it was to be cut and was not."""
        if self._at is not None:
            self._strict.leave(self._journal)

    def _come(self) -> None:
        self._strict.leave(self._journal)
        os.kill(os.getpid(), signal.SIGKILL)
