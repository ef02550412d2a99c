"""Where the home is and what opens it, as Airflow keeps it: variables, and a connection to an object store.

They go before what the environment of Airflow's services says. A task asks for them and hands them to its command in
the environment, never in words, which a list of processes would show; the pages ask for them in the API server, where
the flows of a repository are those of its newest commit, unless the environment names a folder of flows.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from airflow.configuration import conf
from airflow.sdk import Connection, Variable
from airflow.sdk.exceptions import AirflowNotFoundException

from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.settings import CONFIG

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

VARIABLES = {"pulseline_home": "PULSELINE_HOME", "pulseline_environment": "PULSELINE_ENVIRONMENT"}
"""Variables of Airflow's, and what commands call them."""
STORE = "pulseline_store"
"""The connection to the object store that a home lies in; without one the environment, or the machines' role, opens
it."""
TYPES = ("aws", "generic")
OPENS = {
    "login": "AWS_ACCESS_KEY_ID",
    "password": "AWS_SECRET_ACCESS_KEY",
    "aws_session_token": "AWS_SESSION_TOKEN",
    "region_name": "AWS_REGION",
    "endpoint_url": "AWS_ENDPOINT_URL",
    "allow_http": "AWS_ALLOW_HTTP",
}
"""Fields of the connection, the last four of its extra, by the names that Airflow has for them."""
NAMES = (*VARIABLES.values(), *OPENS.values(), CONFIG)
"""All of the environment that is looked at here."""
REPOSITORY = "dags.repository.FlowRepository"
"""How Airflow's configuration names a bundle of flows in a git repository."""
SECONDS = 30.0
"""How long the pages go by what they were told last."""


def kept() -> dict[str, str]:
    """Give what Airflow keeps, as variables of a process's environment; nothing where it keeps nothing.

    Raises:
        WrongUse: the connection is of another kind, or has a field that would be passed over.
    """
    said = {name: Variable.get(variable, default=None) for variable, name in VARIABLES.items()}
    return {name: str(value) for name, value in said.items() if value} | dict(_store())


def environment(own: Mapping[str, str]) -> dict[str, str]:
    """Put what Airflow keeps before an environment.

    Keys that belong together are taken together: a session's token of other keys would open nothing.

    Args:
        own: the environment without it.

    Raises:
        WrongUse: as `kept` has it.
    """
    found = kept()
    return {name: value for name, value in own.items() if not _is_of_other_keys(name, found)} | found


def _is_of_other_keys(name: str, found: dict[str, str]) -> bool:
    return OPENS["login"] in found and name in {OPENS["login"], OPENS["password"], OPENS["aws_session_token"]}


def _store() -> Iterator[tuple[str, str]]:
    try:
        connection = Connection.get(STORE)
    except AirflowNotFoundException:
        return
    if connection.conn_type not in TYPES:
        raise WrongUse(
            f"the connection {STORE} must be of type aws, with an access key as login and its secret as password; it "
            f"is of type {connection.conn_type}: change it, or remove it and let the environment of Airflow's "
            "services, or a role of their machines, open the store"
        )
    extra: dict[str, Any] = connection.extra_dejson
    strange = sorted(name for name in extra if name not in OPENS)
    if strange:
        raise WrongUse(
            f"the extra of the connection {STORE} may have {', '.join(list(OPENS)[2:])}; it has {', '.join(strange)}, "
            "which would change nothing: remove it (a role is had by the machines, without a connection)"
        )
    fields = {"login": connection.login, "password": connection.password, **extra}
    for field, name in OPENS.items():
        value = fields.get(field)
        if value not in {None, ""}:
            yield name, str(value).lower() if isinstance(value, bool) else str(value)


def _configuration() -> dict[str, str]:
    """Name the newest flows of the repository, where Airflow has them from one."""
    bundles: Any = conf.getjson("dag_processor", "dag_bundle_config_list", fallback=None) or []
    if not any(each["classpath"] == REPOSITORY for each in bundles):
        return {}
    from dags.repository import newest

    found = newest()
    return {} if found is None else {CONFIG: str(found)}


class Adopted:
    """Has this process go by what Airflow keeps, asked again every `SECONDS`."""

    def __init__(self) -> None:
        """Remember what the process itself was given: it holds again where Airflow keeps nothing any more."""
        self._own = {name: os.environ[name] for name in NAMES if name in os.environ}
        self._until = 0.0

    def __call__(self) -> None:
        """Change the environment of this process.

        Raises:
            WrongUse: as `kept` has it.
        """
        if time.monotonic() < self._until:
            return
        wanted = ({} if CONFIG in self._own else _configuration()) | environment(self._own)
        for name in NAMES:
            if name in wanted:
                os.environ[name] = wanted[name]
            else:
                os.environ.pop(name, None)
        self._until = time.monotonic() + SECONDS
