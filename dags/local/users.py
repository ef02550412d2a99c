"""Who may sign in to the local Airflow: `pulseline airflow-users`, beside the administrator that `make up` makes."""

from __future__ import annotations

import configparser
import os
import re
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

import psutil

from dags.local.processes import members
from dags.local.settings import ADMIN, ROLES, keep_users, users, write_settings

if TYPE_CHECKING:
    from dags.local.place import Place

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}")


class UserError(ValueError):
    """A user who cannot be added or taken away."""


def listed(place: Place) -> list[str]:
    """Say who may sign in, and as what."""
    return [f"{name}  {role}" for name, role in users(place).items()]


def add(place: Place, name: str, role: str) -> str:
    """Let somebody sign in, or give somebody another role; give the password.

    Raises:
        UserError: no name or role that Airflow takes, or the administrator's.
    """
    _allow(name)
    if role not in ROLES:
        raise UserError(f"a role must be one of {', '.join(ROLES)}; it is `{role}`")
    _take_up(place, users(place) | {name: role})
    return place.password(name)


def remove(place: Place, name: str) -> None:
    """Let somebody sign in no more.

    Raises:
        UserError: nobody of that name, or the administrator.
    """
    _allow(name)
    found = users(place)
    if name not in found:
        raise UserError(f"no user is called `{name}`; there are {', '.join(found)}")
    _take_up(place, {other: role for other, role in found.items() if other != name})


def _allow(name: str) -> None:
    if name == ADMIN:
        raise UserError(f"`{ADMIN}` stays as `make up` made it: choose another name")
    if not NAME.fullmatch(name):
        raise UserError(f"a name must be letters, digits, `_`, `.`, `@` and `-`, at most 64; it is `{name}`")


def _take_up(place: Place, found: dict[str, str]) -> None:
    """Write users down, and have the part that lets them in started again where it runs."""
    keep_users(place, found)
    keeper = place.kept()
    if keeper is None or not keeper.alive:
        return
    settings = configparser.ConfigParser()
    settings.read(place.configuration)
    write_settings(place, keeper.port, settings["database"]["sql_alchemy_conn"])
    for process in members(keeper.pid):
        with suppress(psutil.Error, ProcessLookupError):
            # It gives itself a title of its own once it runs.
            words = " ".join(process.cmdline()).replace("api_server", "api-server")
            if os.getpgid(process.pid) == process.pid and "api-server" in words:
                process.send_signal(signal.SIGTERM)
