"""Where a local Airflow lies, and what is known of the one that runs there."""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from collections.abc import Iterator

CHECKOUT = Path(__file__).resolve().parents[2]
NEARLY = 1.0
"""Seconds by which two readings of one process's start may differ."""


@dataclass(frozen=True, kw_only=True)
class Keeper:
    """The process that looks after a running Airflow; its pid is also the id of the session of all parts."""

    pid: int
    born: float
    """When it started, in seconds since 1970: a pid alone is used again."""
    port: int

    @property
    def address(self) -> str:
        """Give the address to open."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def alive(self) -> bool:
        """Say whether it runs."""
        with suppress(psutil.Error):
            process = psutil.Process(self.pid)
            ended = process.status() == psutil.STATUS_ZOMBIE
            return abs(process.create_time() - self.born) < NEARLY and not ended
        return False


@dataclass(frozen=True)
class Place:
    """The folder of a local Airflow."""

    folder: Path

    @property
    def configuration(self) -> Path:
        """Airflow's own configuration file."""
        return self.folder / "airflow.cfg"

    @property
    def passwords(self) -> Path:
        """Passwords by user, as the simple auth manager reads them."""
        return self.folder / "passwords.json"

    @property
    def database(self) -> Path:
        """The folder of the embedded PostgreSQL."""
        return self.folder / "database"

    @property
    def log(self) -> Path:
        """What the keeper and each part wrote."""
        return self.folder / "parts.log"

    @property
    def environment(self) -> dict[str, str]:
        """The environment under which Airflow's commands mean this one."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW_")}
        return kept | {"AIRFLOW_HOME": str(self.folder), "AIRFLOW_CONFIG": str(self.configuration)}

    def kept(self) -> Keeper | None:
        """Give the keeper that was started last, alive or not; None where there was none."""
        with suppress(FileNotFoundError):
            return Keeper(**json.loads((self.folder / "up.json").read_text()))
        return None

    def keep(self, keeper: Keeper) -> None:
        """Remember a keeper that was just started."""
        (self.folder / "up.json").write_text(json.dumps(asdict(keeper)) + "\n")

    def forget(self) -> None:
        """Forget the keeper: nothing runs any more."""
        (self.folder / "up.json").unlink(missing_ok=True)

    def password(self, user: str) -> str:
        """Give a user's password."""
        return str(json.loads(self.passwords.read_text())[user])

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Let one `up` or `down` work at a time; the next one waits."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def members(session: int) -> list[psutil.Process]:
    """List the living processes of a session, whoever their parent is now."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, ProcessLookupError):
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found
