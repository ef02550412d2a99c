"""A disk that keeps nothing but what it was told to: what a power cut may leave of a folder, at every step.

A model of what POSIX promises and no more: bytes stay when their file was synced, a name stays when its folder was
synced. Real file systems keep more, one this and one that. Removals are taken to be kept.
"""

from __future__ import annotations

import os
import stat
import sys
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pipelines.jobs.drill.witness import point_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    import pytest

STEPS = ("link", "rename", "replace", "unlink", "mkdir", "rmdir", "fsync")


class StrictDisk:
    """Watches a folder, and gives what would be left of it.

    Args:
        root: the folder, which is on disk with all that is in it.
        cuts: where what is left is put, each time into a folder of its own.
        patch: takes the system's calls in hand.
        see: given what is left after a cut before and after each step.
        early: names of files that reach the disk before others do, without being told to.
    """

    without: ClassVar[frozenset[str]] = frozenset()
    """Points whose syncs are left out: planted bugs."""
    points: ClassVar[set[str]] = set()
    """Those that were come by."""

    def __init__(
        self,
        root: Path,
        cuts: Path,
        patch: pytest.MonkeyPatch,
        see: Callable[[Path], object] = lambda _: None,
        early: Collection[str] = (),
    ) -> None:
        """Take what is there as kept."""
        self._root, self._cuts, self._patch, self._see, self._early = root, cuts, patch, see, early
        self._bytes: dict[int, bytes] = {}
        self._names: dict[int, dict[str, int]] = {}
        self._numbers, self._busy = count(1), False
        self.steps = 0
        for each in [root, *root.rglob("*")]:
            self._keep(each)

    def _keep(self, path: Path) -> None:
        found = path.stat()
        if stat.S_ISDIR(found.st_mode):
            self._names[found.st_ino] = {each.name: each.stat().st_ino for each in path.iterdir()}
        else:
            self._bytes[found.st_ino] = path.read_bytes()

    def __enter__(self) -> Self:
        for name in STEPS:
            self._patch.setattr(os, name, self._watched(name, getattr(os, name)))
        return self

    def __exit__(self, *_: object) -> None:
        self._patch.undo()

    def _watched(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:  # noqa: ANN401 - as the system's call takes them
            if self._busy:
                return real(*given, **named)
            self._look()
            if name in {"unlink", "rmdir"}:
                self._forget(os.stat(given[0], dir_fd=named.get("dir_fd"), follow_symlinks=False))
            done = real(*given, **named)
            point = point_of(sys._getframe(1)) if name == "fsync" else ""
            self.points.add(point)
            if point and point not in self.without:
                self._busy = True
                self._keep(Path(f"/proc/self/fd/{given[0]}").resolve())
                self._busy = False
            self._look()
            return done

        return call

    def _forget(self, found: os.stat_result) -> None:
        """Forget what a number stood for that another file may get."""
        if stat.S_ISDIR(found.st_mode) or found.st_nlink == 1:
            self._bytes.pop(found.st_ino, None)
            self._names.pop(found.st_ino, None)

    def _look(self) -> None:
        self._busy = True
        self.steps += 1
        for every in (False, True):
            self._see(self.cut(every_name=every))
        self._busy = False

    def cut(self, *, every_name: bool) -> Path:
        """Cut the power; give what is left.

        Args:
            every_name: whether names are left that nobody had synced, as they mostly are; bytes never are.
        """
        left = self._cuts / f"{next(self._numbers):05}"
        left.mkdir(parents=True)
        self._leave(self._root, left, every_name)
        return left

    def _leave(self, folder: Path, left: Path, every_name: bool) -> None:  # noqa: FBT001 - handed on
        kept = self._names.get(folder.stat().st_ino, {})
        for each in folder.iterdir():
            found = each.stat()
            if not every_name and each.name not in self._early and kept.get(each.name) != found.st_ino:
                continue
            if stat.S_ISDIR(found.st_mode):
                (left / each.name).mkdir()
                self._leave(each, left / each.name, every_name)
            else:
                (left / each.name).write_bytes(self._bytes.get(found.st_ino, b""))
                os.utime(left / each.name, ns=(found.st_atime_ns, found.st_mtime_ns))
