"""What the DAGs share: forms, days, assets, and how a task is tried again. No DAGs here."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, AssetAlias, Param

from dags.announced import alias_of, asset_of, complete_of, unjudged_alias_of, unjudged_of
from dags.approval import MOST, REASON
from dags.days import RecordedDays
from dags.patience import SOON, Patience, alert
from dags.pools import STREAMS
from dags.telling import failed

if TYPE_CHECKING:
    from pipelines.jobs.environment.offered import Offered

PATIENT: dict[str, Any] = {"retries": 3, "retry_delay": dt.timedelta(seconds=15)}
"""How a task is tried again: what was stopped is gone by then, or still holds the lease and the next try is refused."""

DAYS = ("backfill", "quality", "replay")
"""Kinds that tell of what failed; one that runs each minute would tell of the same again and again."""

STREAMING: dict[str, Any] = {
    "retries": 1_000_000,
    "retry_policy": Patience(),
    "retry_delay": SOON,
    "pool": STREAMS,
    "on_retry_callback": alert,
    "on_failure_callback": alert,
}
"""A stream is tried again for ever, and streams have slots of their own; `retry_delay` is for one that was killed."""

EVERY_MINUTE, DAILY = "* * * * *", "@daily"
LONG_AGO = dt.datetime(2013, 1, 1, tzinfo=dt.UTC)
"""Where a DAG that catches nothing up begins; Airflow asks for an instant."""

STATE = r"^( *|[0-9]+|[Ss](equence:)?[0-9]+|[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.]+)?(Z|[+-][0-9:]+)?)$"
"""The number of a commit, `sequence:40`, a date or an instant; what it is of, the task `request` looks up."""

LASTING = r"^( *|(?=.*[1-9])[0-9.][0-9a-zµ. ]*)$"
"""A duration above zero; the task `request` reads it again."""


def usual(kind: str, flow: Offered, doc: str | None) -> dict[str, Any]:
    """Give the settings that all DAGs have: one run at a time, under the name of its kind and flow.

    Args:
        kind: what it does, such as `backfill`.
        flow: for which flow.
        doc: of its module, for its page.
    """
    told = {"on_failure_callback": failed} if kind in DAYS else {}
    owned = {"owner": flow.owner} if flow.owner else {}
    return {
        "dag_id": f"{kind}_{flow.name}",
        "dag_display_name": f"{flow.name}: {kind}",
        "description": flow.about,
        "doc_md": doc,
        "max_active_runs": 1,
        "tags": ["pulseline", kind, flow.name],
        # All tasks of a run, and each try, read the flow as it was when the run began.
        "disable_bundle_versioning": False,
        "default_args": PATIENT | {"config": flow.config} | told | owned,
    }


def date(title: str, description: str) -> Param:
    """Make a date picker that may stay empty."""
    return Param(None, type=["null", "string"], format="date", title=title, description=description)


def run_name(usual: str, title: str = "Run", told: str = "Name of the run, which has tables of its own.") -> Param:
    """Make a field for the name of a run, which has tables of its own."""
    return Param(usual, type="string", pattern="^[A-Za-z0-9_][A-Za-z0-9_-]*$", title=title, description=told)


def state(title: str, description: str) -> Param:
    """Make a field for a published state that may stay empty: a commit, a sequence, a date or an instant."""
    return Param(None, type=["null", "string"], pattern=STATE, title=title, description=description)


def backfill_form() -> dict[str, Param]:
    """Give the form of a backfill."""
    return {
        "start": date("First day", "Empty: the day of the run's data interval, which Airflow's own backfill fills in."),
        "end": date("Up to", "The day after the last one. Empty: one interval from the first day on."),
        "engine": Param(
            None,
            type=["null", "string"],
            enum=[None, "core", "batch"],
            values_display={"None": "as configured", "core": "core: in one process", "batch": "batch: on Spark"},
            title="Engine",
            description="Who runs the tasks. The bytes are the same.",
        ),
        "force": Param(
            default=False,
            type="boolean",
            title="Run again what is published",
            description="Otherwise days that are published and not stale are left alone.",
        ),
        "plan": Param(
            default=False,
            type="boolean",
            title="Run the plan",
            description="What the page Plan names and no more, in order; the days above bound it, empty: all of it.",
        ),
    }


def approval_form() -> dict[str, Param]:
    """Give the form of an approval; a field that had to be filled in would fail the task before it asks."""
    told = "Stands in the record, on the page and in the asset's event for good. Without one you are asked again."
    kind: dict[str, Any] = {"type": ["null", "string"], "format": "multiline", "maxLength": MOST}
    return {REASON: Param(None, title="Reason", description=told, **kind)}


def stream_form() -> dict[str, Param]:
    """Give the form of a stream."""
    return {
        "run": run_name("live"),
        "start": date("First day", "Recorded feed: where the range to play begins. Empty: go on where the run stands."),
        "end": date("Up to", "Recorded feed: the day after the last one of the range."),
        "speed": Param(
            1,
            type="number",
            exclusiveMinimum=0,
            title="Speed",
            description="Recorded feed: recorded time per wall-clock time. 10080 plays a week in a minute.",
        ),
        "for": Param(
            None, type=["null", "string"], pattern=LASTING, title="Stop after", description="A duration such as 10m."
        ),
        "until": Param(
            "stopped",
            type="string",
            enum=["stopped", "caught up"],
            title="Until",
            description="caught up: ends by itself when all that there is, is published.",
        ),
        "after_backfill": Param(
            default=False,
            type="boolean",
            title="Go on after a backfill",
            description="The run was backfilled, and the stream takes up its carry.",
        ),
    }


def quality_form() -> dict[str, Param]:
    """Give the form of a check."""
    return {
        "run": run_name("main"),
        "start": date("First day", "Empty: all that is published."),
        "end": date("Up to", "The day after the last one."),
        "deep": Param(
            default=False,
            type="boolean",
            title="Compute some days again",
            description="Also work on a few of them anew, from what landed, and compare (`check --deep`).",
        ),
    }


def replay_form() -> dict[str, Param]:
    """Give the form of a replay."""
    return {
        "run": run_name("main", told="Name of the run whose recording is played; it is only read."),
        "from": state(
            "From", "A commit's number, sequence:40, or a date or instant of the flow. Empty: the beginning."
        ),
        "to": state("To", "As From. Empty: all that is published."),
        "into": run_name("replay", "Into", "Name of the run to play into; one that a replay made is replaced."),
        "speed": Param(
            None,
            type=["null", "number"],
            minimum=0.001,
            title="Speed",
            description="Recorded time per wall-clock time: 3600 plays an hour in a second. Empty: as fast as it goes.",
        ),
    }


def days_of(flow: Offered) -> RecordedDays | None:
    """Give the days of a flow as intervals that have a length; None where its own intervals are longer than a day."""
    return RecordedDays(flow.timezone, flow.ends) if flow.daily else None


def published(flow: Offered, kind: str) -> Asset:
    """Name what a kind of run publishes of a flow, for those who wait for it."""
    return asset_of(flow.name, kind)


def publishes(flow: Offered, kind: str) -> AssetAlias:
    """Name what a kind of run publishes of a flow, for the task that does."""
    return alias_of(flow.name, kind)


def complete_days(flow: Offered) -> Asset:
    """Name the complete days of a flow, each a partition, for those who wait for whole days only."""
    return complete_of(flow.name)


def days_to_check(flow: Offered) -> Asset:
    """Name the complete days of a flow that no gate has judged."""
    return unjudged_of(flow.name)


def tells_of_days(flow: Offered) -> dict[str, Any]:
    """Give what the task that announces complete days looks at, and whom it tells."""
    days, alias = complete_of(flow.name), unjudged_alias_of(flow.name)
    told = {"asset": days, "unjudged": unjudged_of(flow.name), "alias": alias}
    return {**told, "inlets": [days], "outlets": [days, alias], "map_index_template": "{{ task.day['day'] }}"}
