"""What the running Airflow says of itself, over HTTP."""

from __future__ import annotations

import http.client
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dags.local.settings import ADMIN

if TYPE_CHECKING:
    from dags.local.place import Place

PARTS = ("metadatabase", "scheduler", "dag_processor")
"""What must be healthy before Airflow can be used; the triggerer comes later, and no DAG here needs it."""
SILENCE = (OSError, http.client.HTTPException, ValueError, KeyError)
"""What is raised where nobody answers yet, or not yet in full."""


class Doorway:
    """Asks the Airflow of a place that serves a port.

    Args:
        place: whose password file is read.
        port: where it listens.
    """

    def __init__(self, place: Place, port: int) -> None:
        """Ask nothing yet."""
        self.place, self.port = place, port
        self._token = ""

    def missing(self) -> list[str]:
        """Name what is not ready yet: parts without a heartbeat, then DAGs that nobody has read."""
        with suppress(*SILENCE):
            health = self._ask("GET", "/api/v2/monitor/health")
            waiting = [name for name in PARTS if (health.get(name) or {}).get("status") != "healthy"]
            return waiting or ([] if self.ask("GET", "/api/v2/dags?limit=1")["total_entries"] else ["DAGs"])
        return ["api-server"]

    def ask(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        """Ask as the administrator.

        Raises:
            ValueError: Airflow refused, with what it said.
            OSError: nobody answers.
        """
        if not self._token:
            known = {"username": ADMIN, "password": self.place.password(ADMIN)}
            self._token = self._ask("POST", "/auth/token", known)["access_token"]
        return self._ask(method, path, body)

    def _ask(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Content-Type": "application/json"} | (
            {"Authorization": f"Bearer {self._token}"} if self._token else {}
        )
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        if answer.status >= http.client.BAD_REQUEST:
            raise ValueError(f"{method} {path} gave {answer.status}: {text}")
        found: dict[str, Any] = json.loads(text) if text else {}
        return found
