"""The files of a feed: which they are, in what order, and whether they may have changed."""

from __future__ import annotations

import glob
import hashlib
import json
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.engine.landing.errors import FeedChangedError, FeedMissingError, FeedUnreadableError, FolderEmptyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ALSO = {"json": (".jsonl", ".ndjson")}
"""Further endings of files of a kind."""


def find_files(paths: Sequence[str], base: Path, kind: str) -> list[Path]:
    """Find the files of a feed: paths in their order, a pattern's or folder's files by name, no file twice.

    A file that links lead to more than once counts where it is met first.

    Raises:
        FeedMissingError: a path, or a link among those that a pattern finds, leads to nothing.
        FolderEmptyError: a folder has no file of the kind.
        FeedUnreadableError: what is found is no file, such as a pipe.
        OSError: a folder on the way cannot be read; its files are not taken for absent.
    """
    found: dict[str, Path] = {}
    for path in paths:
        files = _matching(base / path, kind)
        if not files:
            if (base / path).is_dir():
                raise FolderEmptyError(f"a .{kind} file", str(base / path))
            raise FeedMissingError(path, str(base))
        for file in files:
            found.setdefault(os.path.realpath(file), file)
    return list(found.values())


def _matching(path: Path, kind: str) -> list[Path]:
    if path.is_dir():
        inside = sorted(path.iterdir(), key=str)
        endings = {f".{kind}", *ALSO.get(kind, ())}
        return [file for file in inside if endings.intersection(file.suffixes) and _is_file(file)]
    if path.exists():
        return [path] if _is_file(path) else []
    _see_folders(path)
    return [found for found in _glob(path) if _is_file(found)]


def _is_file(path: Path) -> bool:
    """Say whether a name is a file's, and not a folder's.

    Raises:
        FeedMissingError: it is a link that leads to nothing, or to itself.
        FeedUnreadableError: it is neither.
    """
    # By its real path: behind many links a system looks no further.
    if os.path.isfile(os.path.realpath(path)):  # noqa: PTH113
        return True
    if path.is_dir():
        return False
    if path.is_symlink():
        raise FeedMissingError(f"what the link {path.name} leads to", str(path.parent))
    raise FeedUnreadableError(str(path), "a file", "it is a pipe, a socket or a device")


def _see_folders(pattern: Path) -> None:
    """Open every folder that a pattern leads through: one that cannot be read has no files to a glob, and says nothing.

    Raises:
        OSError: a folder cannot be read.
    """
    for parent in reversed(pattern.parents):
        if glob.has_magic(str(pattern.relative_to(parent))):
            for folder in _glob(parent):
                if folder.is_dir():
                    os.scandir(folder).close()


def _glob(pattern: Path) -> list[Path]:
    return [Path(name) for name in sorted(glob.glob(str(pattern), recursive=True))]  # noqa: PTH207 - it may begin with /


class ListedFiles:
    """The files of a feed as they were when it was opened: none may be gone or shorter as long as it is read.

    Args:
        files: in the feed's order.
        base: the folder that a person sees them from.
    """

    def __init__(self, files: Sequence[Path], base: Path) -> None:
        """Keep their sizes."""
        self._sizes = {file: file.stat().st_size for file in files}
        self._base = base

    def fingerprint(self, declared: object) -> str:
        """Give hex digits that change with the names, sizes and times of change of files, and with how they are read.

        Raises:
            FeedChangedError: a file is gone or shorter; whose it is, the caller knows.
        """
        seen = [(str(file), *self._stands(file, size)) for file, size in self._sizes.items()]
        return hashlib.sha256(json.dumps([seen, declared], sort_keys=True, default=str).encode()).hexdigest()

    def _stands(self, file: Path, before: int) -> tuple[int, int]:
        """Give size and time of change of a file as it is now."""
        try:
            seen = file.stat()
        except (FileNotFoundError, NotADirectoryError):
            raise FeedChangedError("", f"{called(file, self._base)} is gone") from None
        if not stat.S_ISREG(seen.st_mode):
            raise FeedChangedError("", f"{called(file, self._base)} is a file no more")
        if seen.st_size < before:
            problem = f"{called(file, self._base)} has {seen.st_size:,} bytes and had {before:,}"
            raise FeedChangedError("", problem)
        return seen.st_size, seen.st_mtime_ns


def bytes_of(files: Iterable[Path]) -> int:
    """Count the bytes of files; one that is gone has none, and is told of when it is read."""
    total = 0
    for file in files:
        with suppress(FileNotFoundError):
            total += file.stat().st_size
    return total


def called(file: Path, base: Path) -> str:
    """Give what a person calls a file of a feed: its path as the flow's own folder sees it."""
    return str(file.relative_to(base)) if file.is_relative_to(base) else str(file)
