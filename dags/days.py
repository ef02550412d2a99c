"""The days of a flow as data intervals, up to the last that its sources hold.

The `end_date` of a DAG would say the same to the scheduler, but Airflow hands it to every task, and a run by hand,
whose date is today's, would then have no tasks and count as a success.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pendulum
from airflow.timetables.interval import CronDataIntervalTimetable

if TYPE_CHECKING:
    from airflow.timetables.base import DagRunInfo, DataInterval, TimeRestriction


class RecordedDays(CronDataIntervalTimetable):
    """Each midnight of a timezone, as real intervals of 23 to 25 hours; none begins at `ends` or later.

    Args:
        timezone: whose midnights.
        ends: where the sources end; None where new days come.
    """

    def __init__(self, timezone: str | pendulum.Timezone | pendulum.FixedTimezone, ends: dt.datetime | None) -> None:
        super().__init__("0 0 * * *", timezone)
        self.ends = ends

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        """Give the next interval; None behind the last one."""
        found = super().next_dagrun_info(
            last_automated_data_interval=last_automated_data_interval, restriction=restriction
        )
        interval = None if found is None else found.data_interval
        behind = interval is not None and self.ends is not None and interval.start >= self.ends
        return None if behind else found

    def serialize(self) -> dict[str, Any]:
        """Give what `deserialize` reads."""
        return super().serialize() | {"ends": None if self.ends is None else self.ends.isoformat()}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> RecordedDays:
        """Make the timetable that `serialize` spelled."""
        ends = data["ends"]
        return cls(pendulum.timezone(data["timezone"]), None if ends is None else dt.datetime.fromisoformat(ends))
