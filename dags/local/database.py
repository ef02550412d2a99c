"""The embedded PostgreSQL: SQLite fails beside a scheduler, and nobody should have to install a server for a trial.

It listens on one socket, in a folder that only its user enters, and on no port; and it asks the kernel who is at the
other end, and lets in nobody but the user who started it. There is no password to lose.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import psutil

from dags.local.servant import DatabaseError, furnish, lodging, owner

if TYPE_CHECKING:
    from dags.local.servant import Lodging

SUPERUSER = "postgres"
SOCKET = ".s.PGSQL.5432"
LONGEST = 103
"""Bytes of a socket's path, on Linux and macOS alike."""
PATIENCE = 60.0
"""Seconds in which the server must be ready, or gone."""
LET_IN = f"# Written at each start.\nlocal all {SUPERUSER} peer map=owner\n"
SOCKET_LINE = 4
"""Line of postmaster.pid, from 0, that names the folder of the socket."""


def start_database(folder: Path) -> str:
    """Start the server whose data lie in a folder, made at the first time, and give its URL.

    One that runs already is ended first: it may let in others. Root's data lie elsewhere (`servant`).

    Raises:
        DatabaseError: it cannot run here, or did not get ready.
    """
    stop_database(folder)
    found = furnish(folder)
    _take_over(folder, found)
    if not (found.data / "PG_VERSION").is_file():
        _make(found)
    (found.own / "pg_hba.conf").write_text(LET_IN)
    (found.own / "pg_ident.conf").write_text(f'# Written at each start.\nowner "{owner()}" {SUPERUSER}\n')
    for name in ("pg_hba.conf", "pg_ident.conf"):
        (found.own / name).chmod(0o644 if found.account else 0o600)
    door = _door(found)
    _serve(found, door)
    return f"postgresql+psycopg2://{SUPERUSER}@/{SUPERUSER}?host={quote(str(door))}"


def stop_database(folder: Path) -> None:
    """End the server of a folder and wait until it is gone; nothing happens where none runs."""
    for data in {lodging(folder).data, folder.absolute()}:
        process, door = postmaster(data), _line(data, SOCKET_LINE)
        if process is None:
            continue
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
            with suppress(psutil.Error):
                process.send_signal(number)
                process.wait(PATIENCE / 2)
        with suppress(OSError):
            Path(door).rmdir()


def postmaster(data: Path) -> psutil.Process | None:
    """Give the process that serves a folder of data; None where none does, whatever its file says.

    A number in a file outlives its process and may be a stranger's by now; a server stands in its folder.
    """
    with suppress(ValueError, psutil.Error, OSError):
        process = psutil.Process(int(_line(data, 0)))
        if process.name() == "postgres" and Path(process.cwd()).samefile(data):
            return process
    return None


def _line(data: Path, number: int) -> str:
    with suppress(OSError, IndexError):
        return (data / "postmaster.pid").read_text().splitlines()[number].strip()
    return ""


def _take_over(folder: Path, found: Lodging) -> None:
    """Move what an earlier version kept for root in its home, under an account that could be anybody's."""
    if found.account is None or found.data.exists() or not (folder / "PG_VERSION").is_file():
        return
    shutil.move(folder, found.data)
    for path, _, names in os.walk(found.data):
        for each in (path, *(os.path.join(path, name) for name in names)):  # noqa: PTH118 - os.walk gives texts
            os.chown(each, found.account.pw_uid, found.account.pw_gid, follow_symlinks=False)


def _make(found: Lodging) -> None:
    _own_folder(found, found.data)
    _call(found, "initdb", "--auth-local=peer", "--auth-host=reject", "--encoding=UTF8", "--no-locale", "-U", SUPERUSER)


def _own_folder(found: Lodging, folder: Path) -> None:
    """Make a folder that only the server's user enters."""
    folder.mkdir(mode=0o700, exist_ok=True)
    if found.account is not None:
        os.chown(folder, found.account.pw_uid, found.account.pw_gid, follow_symlinks=False)


def _door(found: Lodging) -> Path:
    """Give the folder of the socket, entered by its user only: beside the data, or a new one where that is too long."""
    door = found.own / "socket"
    fits = len(os.fsencode(door / SOCKET)) <= LONGEST
    if not fits and found.account is not None:
        raise DatabaseError(f"{found.own} is too long for a socket: name a shorter folder in PULSELINE_DATABASES")
    if not fits:
        return Path(tempfile.mkdtemp(prefix="pulseline-"))
    _own_folder(found, door)
    return door


def _serve(found: Lodging, door: Path) -> None:
    spelled = str(door).replace('"', '""')
    settings = {
        "listen_addresses": "",
        "unix_socket_directories": f'"{spelled}"',
        "unix_socket_permissions": "0700",
        "hba_file": found.own / "pg_hba.conf",
        "ident_file": found.own / "pg_ident.conf",
    }
    words = shlex.join(word for name, value in settings.items() for word in ("-c", f"{name}={value}"))
    _forget_stranger(found.data)
    log = found.data / "log"
    try:
        _call(found, "pg_ctl", "start", "-w", "-t", f"{PATIENCE:.0f}", "-l", str(log), "-o", words)
    except DatabaseError as error:
        said = log.read_text(errors="replace").splitlines()[-10:] if log.is_file() else []
        raise DatabaseError("\n".join([f"{error}; {log} ends with:", *said])) from error


def _forget_stranger(data: Path) -> None:
    """Remove a file that names a stranger's process, for PostgreSQL would not start beside it."""
    with suppress(ValueError):
        if psutil.pid_exists(int(_line(data, 0))):
            (data / "postmaster.pid").unlink()


def _call(found: Lodging, program: str, *words: str) -> None:
    """Run one of PostgreSQL's programs over the data, as whom the server runs as."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    account: dict[str, Any] = {}
    if found.account is not None:
        account = {"user": found.account.pw_uid, "group": found.account.pw_gid, "extra_groups": []}
    command = [str(found.programs / program), "-D", str(found.data), *words]
    done = subprocess.run(  # noqa: S603 - the package's own program
        command, env=environment, cwd=found.own, capture_output=True, text=True, check=False, **account
    )
    if done.returncode:
        raise DatabaseError(f"PostgreSQL did not start over {found.data}: {(done.stderr or done.stdout).strip()}")
