"""The folder that machine code is kept in: Numba unpickles what lies there, so whoever can write there runs code as us.

It lies under the user's own cache folder, or where NUMBA_CACHE_DIR says. One that somebody else could have filled is
refused. Where none can be written (a home on a read-only disk, a service without one) a new folder of the system's
temporary one serves this process and those it starts, and is removed at its end.
"""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import stat
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from pipelines.errors import Exit, PulselineError

CHOSEN = "NUMBA_CACHE_DIR"


class CodeFolderError(PulselineError, RuntimeError):
    """The folder of compiled code is one that others could have filled."""

    code = Exit.WRONG_USE


class _UnusableError(OSError):
    """No folder can be kept there, through nobody's fault."""


def code_folder(name: str) -> Path:
    """Give the folder for one state of the sources, made where it is missing; only its owner can write there.

    Args:
        name: says of which sources the code is.

    Returns:
        The folder; a private one, which is said on standard error, where the right one cannot be written.

    Raises:
        CodeFolderError: the folder is a link, belongs to somebody else or can be written by others.
    """
    try:
        return _kept(_folders(name))
    except OSError as error:
        return _private(name, error)


def lasting_folder(name: str) -> Path | None:
    """Give the folder for something else that costs time to make, as `code_folder` does; None where none can be kept.

    Args:
        name: says of what it is made.

    Raises:
        CodeFolderError: as `code_folder` says.
    """
    try:
        return _kept(_folders(name))
    except OSError:
        return None


def _folders(name: str) -> list[Path]:
    """List the folders that must be ours, outermost first; the one above them has no link in its path."""
    chosen = os.environ.get(CHOSEN)
    if chosen:
        base = Path(chosen).absolute()
        above, names = base.parent, [base.name] if base.name == name else [base.name, name]
    else:
        above, names = _users_cache(), ["pulseline", "numba", name]
    above.mkdir(mode=0o700, parents=True, exist_ok=True)
    first = above.resolve()
    return [first.joinpath(*names[: count + 1]) for count in range(len(names))]


def _users_cache() -> Path:
    """Give the user's cache folder: XDG_CACHE_HOME where it is absolute, as its specification asks, else the usual."""
    said = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if said.is_absolute():
        return said
    try:
        home = Path.home()
    except RuntimeError as error:
        raise _UnusableError(str(error)) from error
    return home / "Library" / "Caches" if sys.platform == "darwin" else home / ".cache"


def _kept(folders: list[Path]) -> Path:
    _see_above(folders[0].parent)
    for folder in folders:
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        reason = _refusal(folder.lstat())
        if reason:
            raise CodeFolderError(
                f"the folder of compiled code {folder} {reason}, and whoever can write there has programs run as you: "
                f"remove it, or name a folder that only you can write in {CHOSEN}"
            )
    if not os.access(folders[-1], os.W_OK | os.X_OK):
        raise _UnusableError(f"{folders[-1]} cannot be written")
    return folders[-1]


def _see_above(folder: Path) -> None:
    """See that nobody else can put another folder in the place of ours.

    Raises:
        _UnusableError: a folder on the way belongs to another user, or anybody may rename what lies in it.
    """
    for place in (folder, *folder.parents):
        found = place.stat()
        open_to_all = found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX
        if open_to_all or found.st_uid not in {0, os.geteuid()}:
            raise _UnusableError(f"others can change what lies in {place}")


def _refusal(found: os.stat_result) -> str | None:
    """Say why a folder cannot be trusted; None where it can."""
    if stat.S_ISLNK(found.st_mode):
        return "is a link"
    if not stat.S_ISDIR(found.st_mode):
        return "is a file"
    if found.st_uid != os.geteuid():
        return f"belongs to {_user(found.st_uid)}"
    return "can be written by others" if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) else None


def _user(uid: int) -> str:
    with suppress(KeyError):
        return pwd.getpwuid(uid).pw_name
    return f"user {uid}"


def _private(name: str, error: OSError) -> Path:
    """Make a folder for this process and those it starts, which find it by the environment."""
    base = Path(tempfile.mkdtemp(prefix="pulseline-numba-"))
    folder = base / name
    folder.mkdir(mode=0o700)
    atexit.register(_remove, base, os.getpid())
    os.environ[CHOSEN] = str(folder)
    said = f"compiled code is kept in {base} and only until this command ends ({error}); "
    print(f"{said}name a folder that only you can write in {CHOSEN} to keep it", file=sys.stderr)  # noqa: T201 - a command says it once
    return folder


def _remove(base: Path, maker: int) -> None:
    if os.getpid() == maker:
        shutil.rmtree(base, ignore_errors=True)
