"""What the task that announces a complete day tells Airflow of it, without an Airflow that runs."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import Asset, AssetAny
from airflow.sdk.exceptions import AirflowSkipException

from dags.announced import complete_of, unjudged_alias_of, unjudged_of
from dags.complete import AnnounceOperator
from dags.quality import quality_dag
from dags.wiring import published
from pipelines.jobs.environment.offered import Offered

DAY = {"day": "2013-01-01", "run": "live", "start": "2013-01-01T05:00:00Z", "end": "2013-01-02T05:00:00Z"}
DAYS, ALIAS = complete_of("trips"), unjudged_alias_of("trips")


class Outlet:
    """What a task says to an asset, or through an alias."""

    def __init__(self) -> None:
        self.extra: dict[str, Any] = {}
        self.partitions: list[str] = []
        self.added: list[tuple[str, dict[str, Any]]] = []

    def add_partitions(self, name: str) -> None:
        """Keep a partition."""
        self.partitions.append(name)

    def add(self, asset: Any, extra: dict[str, Any]) -> None:  # noqa: ANN401 - as Airflow's
        """Keep an event."""
        self.added.append((asset.name, extra))


class Events:
    """Events of an asset, newest first."""

    def __init__(self, *days: str) -> None:
        self.days = days

    def ascending(self, _: object) -> Events:
        """Give them as they are."""
        return self

    def limit(self, most: int) -> list[Any]:
        """Give some."""
        return [SimpleNamespace(partition_key=day) for day in self.days[:most]]


def told(day: dict[str, Any], *seen: str) -> dict[Any, Outlet]:
    """Announce a day; give what each outlet was told."""
    outlets: dict[Any, Outlet] = defaultdict(Outlet)
    task = AnnounceOperator(task_id="announce", day=day, asset=DAYS, unjudged=unjudged_of("trips"), alias=ALIAS)
    task.execute({"inlet_events": {DAYS: Events(*seen)}, "outlet_events": outlets})  # type: ignore[typeddict-item]
    return outlets


def test_a_day_that_nobody_judged_is_a_partition_and_is_to_be_checked() -> None:
    day = DAY | {"judged": False}
    outlets = told(day, "2012-12-31")
    assert (outlets[DAYS].partitions, outlets[DAYS].extra) == (["2013-01-01"], day)
    assert outlets[ALIAS].added == [("trips, days to check", day)]


def test_a_day_that_the_gate_judged_is_not_checked_again() -> None:
    outlets = told(DAY | {"judged": True})
    assert outlets[DAYS].partitions == ["2013-01-01"]
    assert ALIAS not in outlets


def test_a_day_that_was_announced_tells_nobody_again() -> None:
    with pytest.raises(AirflowSkipException, match="2013-01-01 was announced before"):
        told(DAY | {"judged": False}, "2013-01-01")


def test_the_dag_that_checks_hears_of_those_days_and_of_whole_runs_as_before() -> None:
    flow = Offered(called="trips", name="trips", about="")
    schedule = quality_dag(flow).schedule
    assert isinstance(schedule, AssetAny)
    heard = {asset.name for asset in schedule.objects if isinstance(asset, Asset)}
    runs = {published(flow, kind).name for kind in ("backfill", "stream")}
    assert heard == {"trips, days to check"} | runs
