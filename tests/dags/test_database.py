"""The embedded PostgreSQL lets in the user who started it and nobody else, and opens no folder for that."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import psutil
import pytest
from sqlalchemy import NullPool, create_engine, text
from sqlalchemy.exc import OperationalError

from dags.local import servant
from dags.local.database import SOCKET, postmaster, start_database, stop_database
from dags.local.servant import DatabaseError, lodging

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[2]
STRANGER = 1
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@pytest.fixture(autouse=True)
def roots(databases: Path) -> Path:
    """Give a folder that every user can reach, for root's servers and for those of others."""
    return databases


WHO = "SELECT current_user || ' ' || rolsuper FROM pg_roles WHERE rolname = current_user"


def asked(url: str, statement: str = WHO) -> str:
    """Connect as Airflow does, and give the one value of a statement; say who one is there."""
    with create_engine(url, poolclass=NullPool).begin() as connection:
        return str(connection.execute(text(statement)).scalar_one())


def as_stranger(work: Callable[[], str]) -> str:
    """Do something in a process of another user, and give what it gave or why it could not."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(STRANGER)
            os.setuid(STRANGER)
            said = work()
        except BaseException as error:  # noqa: BLE001 - whatever it is, the test shall see it
            said = f"{type(error).__name__}: {error}"
        os.write(write, said.encode()[:4000])
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as told:
        found = told.read()
    os.waitpid(child, 0)
    return found


def door_of(url: str) -> Path:
    return Path(parse_qs(urlsplit(url).query)["host"][0])


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Run a server over a folder, and give its URL."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield start_database(folder)
    finally:
        stop_database(folder)


def long_folder(base: Path) -> Path:
    """Give a folder in whose path a socket has no room."""
    return base / ("deep" * 30) / "database"


@AS_ROOT
def test_another_user_of_the_machine_gets_nowhere(tmp_path: Path) -> None:
    with served(long_folder(tmp_path)) as url:
        assert asked(url) == "postgres true"
        door = door_of(url)
        assert stat.S_IMODE(door.stat().st_mode) == 0o700
        assert "Permission denied" in as_stranger(lambda: asked(url))
        # Were folder and socket open, as an earlier version had them, the kernel would still say who asks.
        for opened in (door, door / SOCKET):
            opened.chmod(0o777)
        assert 'Peer authentication failed for user "postgres"' in as_stranger(lambda: asked(url))


@AS_ROOT
def test_root_serves_from_folders_that_are_opened_to_nobody(tmp_path: Path) -> None:
    folder = tmp_path / "home" / "airflow" / "database"
    folder.parent.mkdir(parents=True, mode=0o700)
    before = {place: place.stat().st_mode for place in folder.parents}
    programs = (servant._installed(), *servant._installed().parents)
    modes = [place.stat().st_mode for place in programs]
    with served(folder) as url:
        server = postmaster(lodging(folder).data)
        assert server is not None
        assert server.username() == "pulseline-postgres"
        assert asked(url) == "postgres true"
    assert {place: place.stat().st_mode for place in folder.parents} == before
    assert [place.stat().st_mode for place in programs] == modes
    assert postmaster(lodging(folder).data) is None


@AS_ROOT
@pytest.mark.parametrize("deep", [False, True])
def test_a_user_serves_themselves_and_not_even_root_gets_in(roots: Path, *, deep: bool) -> None:
    if not all(place.stat().st_mode & stat.S_IXOTH for place in servant._installed().parents):
        pytest.skip("another user cannot read this environment")
    base = roots / f"user-{deep}"
    base.mkdir()
    os.chown(base, STRANGER, STRANGER)
    folder = long_folder(base) if deep else base / "database"
    url = as_stranger(lambda: started(folder))
    try:
        assert url.startswith("postgresql+psycopg2://"), url
        assert stat.S_IMODE(door_of(url).stat().st_mode) == 0o700
        assert as_stranger(lambda: asked(url)) == "postgres true"
        with pytest.raises(OperationalError, match="Peer authentication failed"):
            asked(url)
    finally:
        assert as_stranger(lambda: stopped(folder)) == "stopped"
    assert not door_of(url).exists()


def started(folder: Path) -> str:
    folder.parent.mkdir(parents=True, exist_ok=True)
    return start_database(folder)


def stopped(folder: Path) -> str:
    stop_database(folder)
    return "stopped"


def test_nothing_is_left_in_the_systems_temporary_folder(tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    program = "import sys, pathlib, dags.local.database as d; f = pathlib.Path(sys.argv[1]); d.start_database(f); d.stop_database(f)"  # noqa: E501 - one line for python -c
    environment = os.environ | {"TMPDIR": str(temporary), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", program, str(long_folder(tmp_path))]
    long_folder(tmp_path).parent.mkdir()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, list(temporary.iterdir())) == (0, []), done.stderr


def test_a_strangers_process_in_an_old_file_is_let_alone(tmp_path: Path) -> None:
    folder = tmp_path / "database"
    with served(folder):
        pass
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        lines = [str(stranger.pid), str(lodging(folder).data), "1712346200", "5432", "/nowhere", "", "1 1", "ready"]
        (lodging(folder).data / "postmaster.pid").write_text("\n".join(lines) + "\n")
        assert postmaster(lodging(folder).data) is None
        stop_database(folder)
        with served(folder) as url:
            assert asked(url) == "postgres true"
        assert psutil.Process(stranger.pid).status() != psutil.STATUS_ZOMBIE
        stranger.kill()


KEEP = "CREATE TABLE kept AS SELECT 7 AS found"
KEPT = "SELECT found FROM kept"


def keep(url: str) -> None:
    with create_engine(url, poolclass=NullPool).begin() as connection:
        connection.execute(text(KEEP))


def test_data_are_there_again_at_the_next_start(tmp_path: Path) -> None:
    folder = tmp_path / "database"
    with served(folder) as url:
        keep(url)
    with served(folder) as url:
        assert asked(url, KEPT) == "7"


@AS_ROOT
def test_what_an_earlier_version_kept_in_roots_home_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "database"
    with served(folder) as url:
        keep(url)
    shutil.move(lodging(folder).data, folder)
    for path in (folder, *folder.rglob("*")):
        os.chown(path, STRANGER, STRANGER)
    with served(folder) as url:
        assert asked(url, KEPT) == "7"
    assert not folder.exists()


@AS_ROOT
def test_roots_folder_must_be_roots_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, roots: Path) -> None:
    open_one, locked = roots / "open", tmp_path / "locked"
    open_one.mkdir()
    open_one.chmod(0o777)
    monkeypatch.setenv("PULSELINE_DATABASES", str(open_one))
    with pytest.raises(DatabaseError, match=f"{open_one} must be a folder of root's that nobody else can write"):
        start_database(tmp_path / "database")
    monkeypatch.setenv("PULSELINE_DATABASES", str(locked))
    with pytest.raises(DatabaseError, match=r"pulseline-postgres, which cannot enter .*PULSELINE_DATABASES"):
        start_database(tmp_path / "database")


def test_a_user_without_a_name_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 54_321)
    with pytest.raises(DatabaseError, match=r"user 54321 has no name on this machine.*/etc/passwd"):
        start_database(tmp_path / "database")
