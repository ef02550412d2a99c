"""A look at a folder in which files arrive, and the way to their bytes: nothing outside the folder is ever read.

A link may lead to a file that only this process may read, and the ledger is for everybody. So links are not followed,
neither when a folder is listed nor when a file is opened, whoever changes what meanwhile.
"""

from __future__ import annotations

import gzip
import io
import os
import stat
import zlib
from typing import TYPE_CHECKING, NamedTuple

from pipelines.engine.landing.errors import FeedUnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

UNFINISHED = (".tmp", ".part")
HIDDEN = (".", "_")
INTO = os.O_RDONLY | os.O_NOFOLLOW
LARGE = "at most {:,} bytes, unpacked (`max_bytes` under the feed), for it is read into memory whole"


class Seen(NamedTuple):
    """A file as a look sees it; two looks that see the same see a file that stands still."""

    size: int
    changed: int


class FolderLook(NamedTuple):
    """What is in a folder and the folders in it, by path; hidden and unfinished files are left out."""

    files: dict[str, Seen]
    refused: dict[str, str]
    """Why some of these are not read."""
    closed: tuple[str, ...]
    """Folders in it that cannot be listed now."""


def look(folder: Path) -> FolderLook:
    """List a folder.

    Raises:
        OSError: it cannot be listed.
    """
    files: dict[str, Seen] = {}
    refused: dict[str, str] = {}
    closed: list[str] = []
    waiting = [(os.fspath(folder), "")]
    while waiting:
        path, under = waiting.pop()
        try:
            for entry in _entries(path):
                name, why = under + _spelt(entry.name), _refusal(entry)
                if why is None and entry.is_dir(follow_symlinks=False):
                    waiting.append((entry.path, f"{name}/"))
                    continue
                files[name] = _seen(entry.stat(follow_symlinks=False))
                if why is not None:
                    refused[name] = why
        except FileNotFoundError:
            if not under:
                raise
        except OSError:
            if not under:
                raise
            closed.append(under)
    return FolderLook(files, refused, tuple(closed))


def _entries(path: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(path) as entries:
        yield from (each for each in entries if not each.name.startswith(HIDDEN) and not each.name.endswith(UNFINISHED))


def _spelt(name: str) -> str:
    return os.fsencode(name).decode(errors="backslashreplace")


def _refusal(entry: os.DirEntry[str]) -> str | None:
    if _spelt(entry.name) != entry.name:
        return "its name is no UTF-8"
    if entry.is_symlink():
        return "it is a link, and links are not followed"
    if not (entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False)):
        return "it is neither a file nor a folder"
    return None


def _seen(found: os.stat_result) -> Seen:
    return Seen(found.st_size, found.st_mtime_ns)


def read_below(folder: Path, path: str, seen: Seen) -> bytes | None:
    """Read a file that stands still; None where it does not, or is not what was seen.

    Raises:
        OSError: it cannot be read now.
    """
    with os.fdopen(_open_below(folder, path), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return None
        data = file.read(seen.size + 1)
        return data if _seen(os.fstat(file.fileno())) == seen and len(data) == seen.size else None


def _open_below(folder: Path, path: str) -> int:
    *parents, name = path.split("/")
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in parents:
            inner = os.open(part, INTO | os.O_DIRECTORY, dir_fd=at)
            os.close(at)
            at = inner
        # Without O_NONBLOCK a pipe that took the file's place would be waited for.
        return os.open(name, INTO | os.O_NONBLOCK, dir_fd=at)
    finally:
        os.close(at)


def unpacked(path: str, data: bytes, most: int) -> bytes:
    """Unpack a file, up to a number of bytes.

    Raises:
        FeedUnreadableError: it is no gzip, or holds more.
    """
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
            found = packed.read(most + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise FeedUnreadableError(path, "gzip", "it is none, or not all of one") from error
    if len(found) > most:
        raise FeedUnreadableError(path, LARGE.format(most), "it unpacks to more")
    return found
