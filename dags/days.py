"""The days of a flow as data intervals, up to the last that its sources hold.

The `end_date` of a DAG would say the same to the scheduler, but Airflow hands it to every task, and a run by hand,
whose date is today's, would then have no tasks and count as a success. A timetable of Airflow's that knows cron would
do, too, but Airflow's calendar steps such a one by itself, and shows runs behind the end.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pendulum
from airflow.timetables.base import DagRunInfo, DataInterval, Timetable

if TYPE_CHECKING:
    from airflow.timetables.base import TimeRestriction
    from pendulum import DateTime


class RecordedDays(Timetable):
    """Each midnight of a timezone, as real intervals of 23 to 25 hours; none begins at `ends` or later.

    Args:
        timezone: whose midnights.
        ends: where the sources end; None where new days come.
    """

    def __init__(self, timezone: str, ends: dt.datetime | None) -> None:
        self.timezone, self.ends = timezone, ends
        until = "" if ends is None else f" until {ends.astimezone(pendulum.timezone(timezone)):%Y-%m-%d}"
        self.description = f"each day of {timezone}{until}"

    @property
    def summary(self) -> str:
        """Say in a few words when runs begin."""
        return "each day" if self.ends is None else "recorded days"

    def infer_manual_data_interval(self, *, run_after: DateTime) -> DataInterval:
        """Give the last whole day before an instant."""
        today = self._midnight(run_after)
        return DataInterval(self._before(today), today)

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        """Give the next day; None behind the last one."""
        start = self._next_start(last_automated_data_interval, restriction)
        behind = start is None or (self.ends is not None and start >= self.ends)
        if start is None or behind or (restriction.latest is not None and start > restriction.latest):
            return None
        return DagRunInfo.interval(start, self._after(start))

    def _next_start(self, last: DataInterval | None, restriction: TimeRestriction) -> DateTime | None:
        earliest = None if restriction.earliest is None else self._at_or_after(restriction.earliest)
        if not restriction.catchup:
            # Only the last whole day is wanted: the run that comes fills what is missing before it.
            newest = self._before(self._midnight(pendulum.now("UTC")))
            earliest = newest if earliest is None else max(newest, earliest)
        if last is None:
            return earliest
        following = self._at_or_after(last.end)
        return following if earliest is None else max(following, earliest)

    def _midnight(self, at: DateTime) -> DateTime:
        return pendulum.instance(at).in_timezone(self.timezone).start_of("day")

    def _at_or_after(self, at: DateTime) -> DateTime:
        midnight = self._midnight(at)
        return midnight if midnight == at else self._after(midnight)

    def _after(self, midnight: DateTime) -> DateTime:
        return self._midnight(midnight.add(hours=36))

    def _before(self, midnight: DateTime) -> DateTime:
        return self._midnight(midnight.subtract(hours=12))

    def serialize(self) -> dict[str, Any]:
        """Give what `deserialize` reads."""
        return {"timezone": self.timezone, "ends": None if self.ends is None else self.ends.isoformat()}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> RecordedDays:
        """Make the timetable that `serialize` spelled."""
        ends = data["ends"]
        return cls(str(data["timezone"]), None if ends is None else dt.datetime.fromisoformat(ends))
