"""The operators that announce complete days: one looks what is due, one tells Airflow of a day, once.

Airflow sends a task's events with the news that it succeeded, in one transaction. So what Airflow has events of was
announced, and nothing else was: that is looked up before each event, and the run's own ledger outlives old events.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowSkipException

from dags.patience import notify, silence
from dags.process import JobOperator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Asset, AssetAlias, Context

NEWEST = 200
"""Events that are looked at: many more than one run makes, and each run has what it sees written down."""


class LookOperator(JobOperator):
    """Finds the complete days that nobody was told of; its result is a list, a mapping a day.

    What fell silent, or speaks again, is told to Airflow's notifiers, and then written down.

    Args:
        flow: what commands call it.
        asset: of the flow's complete days; among the task's inlets.
    """

    template_fields: Sequence[str] = ()

    def __init__(self, *, flow: str, asset: Asset, **kwargs: Any) -> None:  # noqa: ANN401 - Airflow's own
        super().__init__(module="pipelines.jobs.commands.promises", inlets=[asset], **kwargs)
        self.flow, self.asset = flow, asset

    def execute(self, context: Context) -> list[dict[str, Any]]:  # type: ignore[override]
        """Look, and give the days that are due, oldest first."""
        seen = {
            day: {"run": event.extra.get("run", ""), "at": event.timestamp.isoformat()}
            for day, event in announced(context, self.asset).items()
        }
        self.commands = [[self.flow, f"--seen={json.dumps(seen)}", f"--on-silence={silence()}"]]
        found = super().execute(context)
        if found["alerts"]:
            for alert in found["alerts"]:
                self.log.warning("%s", alert["sentence"])
                notify({**context, "exception": alert["sentence"]})
            self._run([self.flow, f"--alerted={json.dumps(found['alerts'])}"], context)
        due: list[dict[str, Any]] = found["due"]
        return due


class AnnounceOperator(BaseOperator):
    """Announces one complete day as a partition of the asset; skipped where Airflow has an event of it.

    What a stream published nobody has judged yet: of such a day the DAG that checks is told in the same transaction.

    Args:
        day: what is told of it; `day` is its partition.
        asset: of the flow's complete days.
        unjudged: asset of those that no gate has judged, which has an event without partition of each.
        alias: through which these go; among the task's outlets.
    """

    template_fields: Sequence[str] = ("day",)
    ui_color = "#e8f0fe"

    def __init__(
        self,
        *,
        day: Any,  # noqa: ANN401 - a result to come
        asset: Asset,
        unjudged: Asset,
        alias: AssetAlias,
        **kwargs: Any,  # noqa: ANN401 - Airflow's own
    ) -> None:
        super().__init__(**kwargs)
        self.day, self.asset, self.unjudged, self.alias = day, asset, unjudged, alias

    def execute(self, context: Context) -> dict[str, Any]:
        """Announce it."""
        name = str(self.day["day"])
        if name in announced(context, self.asset):
            raise AirflowSkipException(f"{name} was announced before")
        events = context["outlet_events"][self.asset]
        events.extra = self.day
        events.add_partitions(name)
        if not self.day["judged"]:
            context["outlet_events"][self.alias].add(self.unjudged, extra=self.day)
        return dict(self.day)


def announced(context: Context, asset: Asset) -> dict[str, Any]:
    """Give the newest events of an asset by their partition; those without one are left out."""
    events = context["inlet_events"][asset].ascending(False).limit(NEWEST)  # noqa: FBT003 - Airflow's own
    return {event.partition_key: event for event in events if event.partition_key}
