"""What is on disk before it counts: files, their names and their folders, in the order that survives a power cut.

A name in a folder can reach the disk before the bytes it stands for, and a file's bytes before its name. So bytes are
synced under a name that nobody looks for, then named, then the folder is synced. `kill -9` shows none of this: the
page cache outlives the process, not the machine.

Of a home in an object store the same is asked: what is put there is on disk by then, whole, and a name that is created
is created once. So nothing is synced there, and a folder is no more than the beginning of names.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import io
import os
import secrets
import shutil
import sys
import tempfile
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING

from pipelines.engine.files.stored import NotOnStoreError, StorePath, is_stored, path_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

DRAFT = ".draft"
"""Ends the name of a file that is being written, and has not its own name yet."""
TAKEN = frozenset({errno.EEXIST, errno.ENOTEMPTY})
"""What a folder that has files says to another that would get its name."""
FEW = 4
"""Up to so many files are synced one by one; more of one file system at once, which costs about as much as two."""


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on disk."""
    if isinstance(folder, StorePath):
        return
    _sync(folder, os.O_RDONLY | os.O_DIRECTORY)


def make_folder(folder: Path) -> None:
    """Make a folder that is on disk by its name, and all above it that are not there; one that is there is left alone.

    What lies in a folder is only as safe as the folder's own name.

    Raises:
        NotOnStoreError: it has the name of a place in a store, and would be a folder called `s3:`.
    """
    if isinstance(folder, StorePath):
        return
    if is_stored(str(folder)):
        raise NotOnStoreError(str(folder), "what makes this folder")
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for each in reversed(missing):
        sync_folder(each.parent)


def place_of(folder: Path) -> tuple[int, int] | None:
    """Say which folder lies at a path, by its device and number there; None where none does, and in a store."""
    if isinstance(folder, StorePath):
        return None
    try:
        seen = folder.stat()
    except OSError:
        return None
    return seen.st_dev, seen.st_ino


def sync_file(file: Path) -> None:
    """Have a file's bytes on disk; its name is its folder's."""
    if isinstance(file, StorePath):
        return
    _sync(file, os.O_RDONLY)


def _sync(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_files(root: Path, files: Collection[Path]) -> None:
    """Have files below a folder on disk, with their names.

    Many files that lie on the file system of `root` are synced with all else that is dirty there, where the system
    offers that.

    Args:
        root: a folder on the file system of most of them.
        files: paths.

    Raises:
        OSError: one cannot be synced; none of them may be counted on.
    """
    if not files or isinstance(root, StorePath):
        return
    device = root.stat().st_dev
    folders = {file.parent for file in files}
    syncfs = _syncfs()
    if len(files) > FEW and syncfs is not None and all(folder.stat().st_dev == device for folder in folders):
        syncfs(root)
        return
    for file in files:
        sync_file(file)
    for folder in folders | {folder.parent for folder in folders}:
        sync_folder(folder)


class _SyncFs:
    """The call of the C library, which Python does not offer."""

    def __init__(self, call: ctypes._FuncPointer) -> None:
        self._call = call

    def __call__(self, root: Path) -> None:
        handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            if self._call(handle):
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number), str(root))
        finally:
            os.close(handle)


@lru_cache(maxsize=1)
def _syncfs() -> _SyncFs | None:
    if not sys.platform.startswith("linux"):
        return None
    call = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    return None if call is None else _SyncFs(call)


def write_new(path: Path, content: bytes) -> str:
    """Give a file its name and its bytes at once, unless the name is taken.

    Of two that write at the same time one succeeds; whoever opens the name finds the whole file, also after a power
    cut.

    Args:
        path: of the file; its folder is there.
        content: all of it.

    Returns:
        What a store calls this very content; nothing where there is no store.

    Raises:
        FileExistsError: the name is taken; nothing was changed.
    """
    if isinstance(path, StorePath):
        return path.create(content)
    draft = _drafted(path, content)
    try:
        os.link(draft, path)
    except FileExistsError:
        # A network's file system tells so where its first answer was lost, and the name is ours.
        if draft.stat().st_nlink == 1:
            raise
    finally:
        draft.unlink(missing_ok=True)
    sync_folder(path.parent)
    return ""


def replace(path: Path, content: bytes) -> None:
    """Put a file in place of one of its name, or where there is none: the old one or the new one, never a half.

    Args:
        path: of the file; its folder is there.
        content: all of it.
    """
    if isinstance(path, StorePath):
        path.write_bytes(content)
        return
    draft = _drafted(path, content)
    try:
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def name_folder(draft: Path, folder: Path, manifest: str) -> bool:
    """Give a written folder its name, on disk, unless another was faster; say whether it has it.

    Args:
        draft: of files that are on disk, beside `folder`.
        folder: the name; one without its manifest is what somebody left half done.
        manifest: the file without which a folder is nothing.
    """
    if folder.exists() and not (folder / manifest).exists():
        shutil.rmtree(folder)
    try:
        draft.rename(folder)
    except OSError as problem:
        if problem.errno not in TAKEN:
            raise
        return False
    sync_folder(folder.parent)
    return True


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Give a name to write to: the file has its own only when the block has ended well; no promise rests on it.

    Args:
        path: of the file; its folder is there. Another of its name is replaced.
    """
    if isinstance(path, StorePath):
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder) / path.name
            path.write_bytes((Path(folder) / path.name).read_bytes())
        return
    draft = _draft_of(path)
    try:
        yield draft
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def read_tagged(path: Path) -> tuple[bytes, str]:
    """Read a file, with the tag that `exchange` asks for: what a store calls this very content of it."""
    return path.read_tagged() if isinstance(path, StorePath) else (path.read_bytes(), "")


def exchange(path: Path, content: bytes, tag: str) -> None:
    """Put a file in place of the one that was read: the old one or the new one, never a half; it is not synced.

    Args:
        path: of the file.
        content: all of it.
        tag: as `read_tagged` gave it; nothing where there was no file. On a disk the last who writes has it.

    Raises:
        OSError: in a store, another one is there.
    """
    if isinstance(path, StorePath):
        path.exchange(content, tag)
        return
    with whole(path) as draft:
        draft.write_bytes(content)


def _draft_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}{DRAFT}")


def _drafted(path: Path, content: bytes) -> Path:
    draft = _draft_of(path)
    try:
        with draft.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    return draft


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other processes of this machine that ask for the same lock waiting while the block runs.

    Args:
        path: of the lock's file, which stays. In a store nothing is mended, and nobody waits.
    """
    if isinstance(path, StorePath):
        yield
        return
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def secure(file: IO[bytes]) -> None:
    """Have what was written to an open file on disk; in a store it is when the file is closed."""
    file.flush()
    with suppress(io.UnsupportedOperation):
        os.fsync(file.fileno())


def remove_folder(folder: Path, *, ignore_errors: bool = False, but: Path | None = None) -> None:
    """Remove a folder and all that lies in it.

    Args:
        folder: which; one of this machine goes whole.
        ignore_errors: leave what cannot be removed.
        but: an object of a store that stays.

    Raises:
        OSError: something of it cannot be removed, unless errors are to be ignored.
    """
    if not isinstance(folder, StorePath):
        shutil.rmtree(folder, ignore_errors=ignore_errors)
        return
    with suppress(*([OSError] if ignore_errors else [])):
        folder.remove_all(but)


def put_aside(path: Path) -> Path:
    """Leave a file or folder under another name beside it, which is given; objects of a store are copied, then removed.

    Cut short in a store it stands as it was or lacks a part, and is put aside again.
    """
    from pipelines.engine.columnar.clock import wall_now

    aside = path.with_name(f"{path.name}-aside-{wall_now()}")
    move(path, aside)
    return aside


def move(path: Path, to: Path) -> None:
    """Have a file or folder under another name of the same home, in a folder that is there.

    Cut short in a store it stands as it was or lacks a part; elsewhere it has the one name or the other.
    """
    if isinstance(path, StorePath) and isinstance(to, StorePath):
        path.copy_all(to)
        path.remove_all()
        return
    path.rename(to)
    for folder in {path.parent, to.parent}:
        sync_folder(folder)


def of_this_machine(folder: Path) -> Path:
    """Give the folder of this machine for what a run's folder has of caches: itself, unless it lies in a store.

    Losing it loses nothing that could not be had again, a spool aside: docs/sources.md says what.
    """
    if not isinstance(folder, StorePath):
        return folder
    kept = os.environ.get("XDG_CACHE_HOME", "") or os.path.expanduser("~/.cache")  # noqa: PTH111 - never raises
    return Path(kept) / "pulseline" / "homes" / "/".join(folder.parts).replace(":", "")


LINK = ".link"
"""Ends the name of an object that says what a folder of a store stands for."""
TOUCHED = ".touched"
"""Ends the name of an object beside another whose time it sets: a store tells the time at which a thing was put."""


def touch(file: Path) -> None:
    """Set a file's time of change to now.

    Raises:
        FileNotFoundError: there is no such file.
    """
    if isinstance(file, StorePath):
        beside_touched(file).touch()
    else:
        os.utime(file)


def beside_touched(file: StorePath) -> StorePath:
    """Name the object that sets a file's time."""
    return file.with_name(f".{file.name}{TOUCHED}")


def changed_ns(file: Path) -> int:
    """Give a file's time of change in nanoseconds, as `touch` or its writer set it.

    Raises:
        FileNotFoundError: there is no such file.
    """
    times = [file.stat().st_mtime_ns]
    if isinstance(file, StorePath):
        with suppress(FileNotFoundError):
            times.append(beside_touched(file).stat().st_mtime_ns)
    return max(times)


def remove(file: Path) -> None:
    """Remove a file, where there is one, with what sets its time."""
    file.unlink(missing_ok=True)
    if isinstance(file, StorePath):
        beside_touched(file).unlink()


def sizes_in(folder: Path) -> Iterator[int]:
    """Give the size in bytes of each file that lies right in a folder.

    Raises:
        FileNotFoundError: there is no such folder; a store does not say so.
    """
    if isinstance(folder, StorePath):
        return (found.st_size for path, found in folder.below() if path.parent == folder)
    with os.scandir(folder) as entries:
        return iter([entry.stat().st_size for entry in entries if entry.is_file()])


def link_folder(link: Path, target: Path) -> None:
    """Have a folder stand for another one; in a store `linked` gives what it stands for, and nothing else does."""
    if isinstance(link, StorePath):
        link.with_name(f"{link.name}{LINK}").create(str(target).encode())
    else:
        link.symlink_to(target, target_is_directory=True)


def linked(folder: Path) -> Path:
    """Give the folder that one stands for, itself where it stands for none."""
    if isinstance(folder, StorePath):
        with suppress(FileNotFoundError):
            return path_of(folder.with_name(f"{folder.name}{LINK}").read_text())
    return folder
