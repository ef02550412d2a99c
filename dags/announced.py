"""What a task tells the assets of its flow: one event a commit that it published, and none where it published nothing.

All events of an asset's own accessor share one `extra`, so they go through an alias, which keeps each with its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow.sdk import Asset, AssetAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from airflow.sdk import Context

PUBLISHED = "published"
URI = "pulseline://{flow}/{kind}"


def asset_of(flow: str, kind: str) -> Asset:
    """Name what a kind of run publishes of a flow."""
    return Asset(name=f"{flow} by {kind}", uri=URI.format(flow=flow, kind=kind), group="pulseline")


def alias_of(flow: str, kind: str) -> AssetAlias:
    """Name the alias through which its events go; its group says which asset they are of."""
    return AssetAlias(name=f"{flow} by {kind}, each commit", group=f"{flow}/{kind}")


def complete_of(flow: str) -> Asset:
    """Name the complete days of a flow, each of which is a partition."""
    return Asset(name=f"{flow}, complete days", uri=URI.format(flow=flow, kind="days"), group="pulseline")


def unjudged_of(flow: str) -> Asset:
    """Name the complete days of a flow that no gate has judged, for the DAG that checks them."""
    return Asset(name=f"{flow}, days to check", uri=URI.format(flow=flow, kind="unjudged"), group="pulseline")


def unjudged_alias_of(flow: str) -> AssetAlias:
    """Name the alias through which its events go: an outlet itself has one whether there is anything to tell or not."""
    return AssetAlias(name=unjudged_of(flow).name, group="pulseline")


def announce(
    outlets: Iterable[Any], context: Context, asked: Mapping[str, Any], found: Sequence[Mapping[str, Any]]
) -> None:
    """Tell each alias among a task's outlets what was published.

    Args:
        outlets: of the task.
        context: of the task.
        asked: what the task `request` found out.
        found: facts of commits, in order, the last one of the task itself.
    """
    for outlet in outlets:
        if isinstance(outlet, AssetAlias):
            flow, _, kind = outlet.group.rpartition("/")
            for extra in events_of(asked, found):
                told = extra | {"report": tab_of(context)}
                context["outlet_events"][outlet].add(asset_of(flow, kind), extra=told)


def events_of(asked: Mapping[str, Any], found: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Give the events: of each commit that is published the newest facts; of a stream one, if it published something.

    >>> events_of({"run": "main"}, [{"commit": 1, "state": "published"}, {"commit": 2, "state": "rejected"}])
    [{'run': 'main', 'commit': 1, 'state': 'published'}]
    """
    common = {key: asked[key] for key in ("flow", "run") if key in asked}
    last = found[-1] if found else {}
    if PUBLISHED in last:
        return [common | dict(last)] if last[PUBLISHED]["commits"] > asked.get(PUBLISHED, 0) else []
    commits = {facts["commit"]: common | dict(facts) for facts in found if "commit" in facts}
    return [facts for facts in commits.values() if facts.get("state") == PUBLISHED]


def tab_of(context: Context) -> str:
    """Give the address of the run's tab **Pulseline**, under Airflow's own."""
    run = context["dag_run"]
    return f"/dags/{run.dag_id}/runs/{quote(run.run_id, safe='')}/plugin/pulseline-run"
