"""Where a local Airflow lies, and what is known of the one that runs there."""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dags.local.processes import KnownProcess

if TYPE_CHECKING:
    from collections.abc import Iterator

CHECKOUT = Path(__file__).resolve().parents[2]
OF_AIRFLOW = "AIRFLOW_"
PASSED_ON = ("AIRFLOW__PULSELINE__", "AIRFLOW__SMTP__", "AIRFLOW__EMAIL__", "AIRFLOW_CONN_", "AIRFLOW_VAR_")
"""How variables begin that `up` hands to its Airflow: who is told, and by what way. All others of Airflow's belong to
another one, and would point this one at its home, its database or its DAGs."""
KEPT_BACK = ("AIRFLOW_VAR_PULSELINE_HOME", "AIRFLOW_VAR_PULSELINE_ENVIRONMENT", "AIRFLOW_CONN_PULSELINE_STORE")
"""What would point it at another home of Pulseline: that of `up` is where its own settings say."""
GIVEN = "given.json"


@dataclass(frozen=True, kw_only=True)
class KeeperRecord(KnownProcess):
    """The process that looks after a running Airflow; its pid is also the id of the session of all parts."""

    port: int

    @property
    def address(self) -> str:
        """Give the address to open."""
        return f"http://127.0.0.1:{self.port}"


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
        """The environment under which Airflow's commands mean this one, from whatever shell they are called."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(OF_AIRFLOW)}
        return kept | self.given | {"AIRFLOW_HOME": str(self.folder), "AIRFLOW_CONFIG": str(self.configuration)}

    @property
    def given(self) -> dict[str, str]:
        """The variables of Airflow's that its last start was given."""
        with suppress(FileNotFoundError):
            found: dict[str, str] = json.loads((self.folder / GIVEN).read_text())
            return found
        return {}

    def kept(self) -> KeeperRecord | None:
        """Give the keeper that was started last, alive or not; None where there was none."""
        with suppress(FileNotFoundError, ValueError, TypeError):
            return KeeperRecord(**json.loads((self.folder / "up.json").read_text()))
        return None

    def keep(self, keeper: KeeperRecord) -> None:
        """Remember a keeper that was just started; what an earlier one saw is gone."""
        (self.folder / "seen.json").unlink(missing_ok=True)
        self._write("up.json", keeper.facts())

    def seen(self) -> list[KnownProcess]:
        """Give the processes that the keeper saw last in its session."""
        with suppress(FileNotFoundError, ValueError, TypeError):
            return [KnownProcess(**facts) for facts in json.loads((self.folder / "seen.json").read_text())]
        return []

    def see(self, found: list[KnownProcess]) -> None:
        """Remember the processes of the keeper's session, so that what is left of them can be told from strangers."""
        self._write("seen.json", [each.facts() for each in found])

    def _write(self, name: str, facts: object) -> None:
        """Write a file that is whole whenever it is read."""
        made = self.folder / f"{name}.new"
        made.write_text(json.dumps(facts) + "\n")
        made.replace(self.folder / name)

    def forget(self) -> None:
        """Forget the keeper: nothing runs any more."""
        for name in ("up.json", "seen.json"):
            (self.folder / name).unlink(missing_ok=True)

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
