"""**Overview** on the navigation bar: all flows; on a DAG and its runs **Pulseline**, its report, and **Plan**.

Every process of Airflow loads this file, each task too, so it imports nothing that is heavy.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.plugins_manager import AirflowPlugin

from dags.days import RecordedDays

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    Scope = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Any]]
    Send = Callable[[Any], Awaitable[None]]

PREFIX = "/pulseline"


class Served:
    """The pages as a web application, loaded when the first is asked for."""

    @cached_property
    def _app(self) -> Callable[[Scope, Receive, Send], Awaitable[None]]:
        from dags.tab.app import app

        return app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._app(scope, receive, send)


class PulselinePlugin(AirflowPlugin):
    """What Airflow finds here."""

    name = "pulseline"
    timetables = [RecordedDays]  # noqa: RUF012 - declared so by Airflow
    fastapi_apps = [{"app": Served(), "url_prefix": PREFIX, "name": "Pulseline"}]  # noqa: RUF012 - declared so by Airflow
    external_views = [  # noqa: RUF012 - declared so by Airflow
        {
            "name": "Overview",
            "href": f"{PREFIX[1:]}/overview",
            "destination": "nav",
            "url_route": "pulseline-overview",
        },
        {
            "name": "Pulseline",
            "href": f"{PREFIX[1:]}/dags/{{DAG_ID}}",
            "destination": "dag",
            "url_route": "pulseline",
        },
        {
            "name": "Plan",
            "href": f"{PREFIX[1:]}/dags/{{DAG_ID}}/plan",
            "destination": "dag",
            "url_route": "pulseline-plan",
        },
        {
            "name": "Pulseline",
            "href": f"{PREFIX[1:]}/dags/{{DAG_ID}}/runs/{{RUN_ID}}",
            "destination": "dag_run",
            "url_route": "pulseline-run",
        },
    ]
