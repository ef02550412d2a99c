"""Turns, events, pauses and days, without an Airflow that runs."""

from __future__ import annotations

import datetime as dt
import doctest
from dataclasses import dataclass

import pendulum
import pytest
from airflow.timetables.base import DataInterval, TimeRestriction

from dags import announced, approval, bundle, patience, turns
from dags.announced import events_of
from dags.days import RecordedDays
from dags.tab import progress
from dags.turns import First, first_of

NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)


@dataclass(frozen=True)
class Run:
    """What is asked of a run of Airflow's."""

    run_id: str
    minutes: int = 0
    state: str = "running"
    run_type: str = "manual"

    @property
    def run_after(self) -> dt.datetime:
        """Give the instant from which on it may run."""
        return NOON + dt.timedelta(minutes=self.minutes)


@pytest.mark.parametrize(
    ("others", "begun", "first"),
    [
        ([], set(), None),
        ([Run("day", -9)], set(), First("day", begun=False)),
        ([Run("later", 9)], set(), None),
        ([Run("later", 9)], {"later"}, First("later", begun=True)),
        ([Run("day", -9), Run("later", 9)], {"later"}, First("later", begun=True)),
        ([Run("day", -9, "queued")], set(), None),
        ([Run("day", -9, "queued", "backfill")], set(), First("day", begun=False)),
        ([Run("day", -9, "failed")], {"day"}, None),
    ],
)
def test_a_run_waits_for_what_has_begun_and_what_was_due_before(
    others: list[Run], begun: set[str], first: First | None
) -> None:
    assert first_of(Run("own"), others, begun) == first  # type: ignore[arg-type]


def test_one_that_waits_for_a_person_is_told_from_one_at_work() -> None:
    first = first_of(Run("own"), [Run("day", -9)], {"day"}, {"day"})  # type: ignore[arg-type, list-item]
    assert first == First("day", begun=True, asks=True)


def test_each_published_commit_has_an_event_of_its_own() -> None:
    asked = {"flow": "f", "run": "main"}
    on_the_way = [{"commit": 1, "state": "published"}, {"commit": 2, "state": "written"}]
    last = {"commit": 2, "state": "published", "hashes": {}}
    assert [event["commit"] for event in events_of(asked, [*on_the_way, last])] == [1, 2]
    assert events_of(asked, [*on_the_way, last])[1] == asked | last


def test_a_stream_that_published_nothing_tells_nobody() -> None:
    status = {"published": {"commits": 3}}
    assert events_of({"run": "live", "published": 3}, [status]) == []
    assert events_of({"run": "live", "published": 2}, [status]) == [{"run": "live"} | status]


def test_days_end_where_the_sources_do_and_are_those_of_the_zone() -> None:
    zone = "America/New_York"
    days = RecordedDays(zone, pendulum.datetime(2013, 3, 12, tz=zone))
    days = RecordedDays.deserialize(days.serialize())
    start = pendulum.datetime(2013, 3, 9, tz=zone)
    found, last = [], DataInterval(start.subtract(days=1), start)
    while info := days.next_dagrun_info(
        last_automated_data_interval=last, restriction=TimeRestriction(None, None, catchup=True)
    ):
        assert info.data_interval is not None
        last = info.data_interval
        found.append((last.start.in_timezone(zone).to_date_string(), (last.end - last.start).total_hours()))
    assert found == [("2013-03-09", 24), ("2013-03-10", 23), ("2013-03-11", 24)]


def test_airflow_does_not_step_the_days_by_itself() -> None:
    from airflow.timetables._cron import CronMixin

    assert not issubclass(RecordedDays, CronMixin)


def test_only_the_last_whole_day_is_scheduled_for_it_fills_what_is_missing() -> None:
    days = RecordedDays("Asia/Tokyo", None)
    restriction = TimeRestriction(pendulum.datetime(2013, 1, 1, tz="Asia/Tokyo"), None, catchup=False)
    info = days.next_dagrun_info(last_automated_data_interval=None, restriction=restriction)
    assert info is not None
    assert info.data_interval is not None
    today = pendulum.now("Asia/Tokyo").start_of("day")
    assert info.data_interval.end in (today, today.add(days=1))
    assert days.infer_manual_data_interval(run_after=today.add(hours=5)).end == today


@pytest.mark.parametrize("module", [announced, approval, bundle, patience, progress, turns])
def test_examples(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]
