"""Airflow's configuration for one machine: only what differs from its defaults, each line with its reason."""

from __future__ import annotations

import base64
import configparser
import json
import os
import secrets
from typing import TYPE_CHECKING

from dags.local.place import CHECKOUT, GIVEN, KEPT_BACK, PASSED_ON
from dags.pools import SLOTS
from pipelines.jobs.environment.settings import config_folder

if TYPE_CHECKING:
    from dags.local.place import Place

ADMIN = "admin"
FLOWS = {"name": "flows", "classpath": "dags.bundle.FlowFiles", "kwargs": {}}
"""Where DAG files of flows come from."""
OWN = "dags"
"""The folder beside `flows` of a team's own DAG files, such as those that run on complete days."""
USERS = "users.json"
ROLES = ("viewer", "user", "op", "admin")
"""What somebody may do, from looking only to everything."""
SECRETS = {"fernet_key": 32, "secret_key": 32, "jwt_secret": 64}
"""In bytes; fewer than 64 for the last one make Airflow warn at each request."""


def write_settings(place: Place, port: int, database: str) -> None:
    """Write airflow.cfg and the password file; secrets and password stay what they were.

    Args:
        place: where to write.
        port: where the pages will be served.
        database: URL of PostgreSQL.
    """
    kept = _kept_secrets(place)
    found = configparser.RawConfigParser()
    found.read_dict(_sections(place, port, database, kept))
    _write_private(place, "airflow.cfg", _spelled(found))
    known = json.loads(place.passwords.read_text()) if place.passwords.is_file() else {}
    wanted = {name: known.get(name) or secrets.token_urlsafe(9) for name in users(place)}
    if wanted != known:
        _write_private(place, place.passwords.name, json.dumps(wanted) + "\n")


def users(place: Place) -> dict[str, str]:
    """Give the roles of all users by name; the administrator is always among them."""
    file = place.folder / USERS
    kept: dict[str, str] = json.loads(file.read_text()) if file.is_file() else {}
    return {ADMIN: "admin"} | kept


def keep_users(place: Place, found: dict[str, str]) -> None:
    """Remember who may sign in besides the administrator, by name and role."""
    _write_private(place, USERS, json.dumps({name: role for name, role in found.items() if name != ADMIN}) + "\n")


def keep_given(place: Place) -> None:
    """Remember what this environment says of who is told, for all parts, and for commands from other shells."""
    given = {name: value for name, value in os.environ.items() if name.startswith(PASSED_ON) and name not in KEPT_BACK}
    _write_private(place, GIVEN, json.dumps(given) + "\n")


def _sections(place: Place, port: int, database: str, kept: dict[str, str]) -> dict[str, dict[str, object]]:
    address = f"http://127.0.0.1:{port}"
    return {
        "core": {
            "plugins_folder": CHECKOUT / "dags" / "plugins",
            "load_examples": False,
            # What is wrong with a flow is a sentence.
            "dagbag_import_error_tracebacks": False,
            # Workers are forked ahead, and one machine runs few tasks at once; half of them may be streams.
            "parallelism": 2 * SLOTS,
            "simple_auth_manager_users": ",".join(f"{name}:{role}" for name, role in users(place).items()),
            "simple_auth_manager_passwords_file": place.passwords,
            "execution_api_server_url": f"{address}/execution/",
            "fernet_key": kept["fernet_key"],
        },
        "api": {"host": "127.0.0.1", "port": port, "base_url": address, "secret_key": kept["secret_key"]},
        "api_auth": {"jwt_secret": kept["jwt_secret"]},
        "database": {"sql_alchemy_conn": database},
        "scheduler": {
            # A task whose process vanished is noticed within a minute, not within five.
            "task_instance_heartbeat_timeout": 60,
            "orphaned_tasks_check_interval": 30,
        },
        # A DAG file is parsed by a process of its own, which imports Airflow: twice a minute takes a third of a core.
        "dag_processor": {
            "min_file_process_interval": 180,
            "dag_bundle_config_list": json.dumps([FLOWS, *_own()]),
            "dag_bundle_storage_path": place.folder / "bundles",
        },
        "logging": {"base_log_folder": place.folder / "logs", "colored_console_log": False},
    }


def _own() -> list[dict[str, object]]:
    """Give the bundle of a team's own DAG files, where it has any."""
    folder = config_folder().absolute() / OWN
    named = "airflow.dag_processing.bundles.local.LocalDagBundle"
    return [{"name": "own", "classpath": named, "kwargs": {"path": str(folder)}}] if folder.is_dir() else []


def _spelled(found: configparser.RawConfigParser) -> str:
    """Spell the file; Airflow reads a single % as the begin of a reference."""
    lines = ["# Written by `make up`; what is changed here is lost at the next one."]
    for section in found.sections():
        lines += ["", f"[{section}]"]
        lines += [f"{name} = {str(value).replace('%', '%%')}" for name, value in found.items(section)]
    return "\n".join(lines) + "\n"


def _kept_secrets(place: Place) -> dict[str, str]:
    file = place.folder / "secrets.json"
    if not file.is_file():
        fresh = {name: base64.urlsafe_b64encode(secrets.token_bytes(size)).decode() for name, size in SECRETS.items()}
        _write_private(place, file.name, json.dumps(fresh) + "\n")
    found: dict[str, str] = json.loads(file.read_text())
    return found


def _write_private(place: Place, name: str, text: str) -> None:
    """Write a file that only its owner reads."""
    place.folder.mkdir(parents=True, exist_ok=True)
    target = place.folder / name
    with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
