"""Clock faces made instants: local times of a timezone turned into UTC, exactly, a column at a time."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import numpy as np
import pendulum

from pipelines.flows import zones as _pinned  # noqa: F401 - the timezones below are those of tzdata
from pipelines.operators.rows import NULL, TICKS_PER_SECOND

if TYPE_CHECKING:
    from pipelines.operators.rows import Longs

DAY = 86_400 * TICKS_PER_SECOND
EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - a clock face has no timezone yet


def utc_from_local(faces: Longs, timezone: str) -> Longs:
    """Turn what a clock on the wall showed into the instants at which it did.

    It is exact on the days of a change too: every clock face of such a day is asked one by one. A face that was shown
    twice (autumn) is its first instant; one that never was (spring) is read with the offset before the change, as
    Python's `fold=0` does.

    >>> utc_from_local(np.array([0]), "America/New_York") // (3600 * TICKS_PER_SECOND)
    array([5])

    Args:
        faces: ticks from 1970-01-01 00:00 on that clock, NULL for none, in the years 1 to 9999.
        timezone: its IANA name.

    Returns:
        Ticks from 1970-01-01 UTC, NULL where `faces` is.
    """
    if len(faces) == 0 or timezone == "UTC":
        return faces.copy()
    zone = pendulum.timezone(timezone)
    days = np.where(faces == NULL, 0, faces // DAY)
    distinct, place = np.unique(days, return_inverse=True)
    midnights = [_offset(int(day) * DAY, zone) for day in distinct]
    nexts = [_offset((int(day) + 1) * DAY - 1, zone) for day in distinct]
    instants = faces - np.array(midnights, dtype=np.int64)[place]
    changes = (np.array(midnights) != np.array(nexts))[place] & (faces != NULL)
    odd, where = np.unique(faces[changes], return_inverse=True)
    instants[changes] = (odd - np.array([_offset(int(face), zone) for face in odd], dtype=np.int64))[where]
    return np.where(faces == NULL, NULL, instants)


def local_from_utc(instants: Longs, timezone: str) -> Longs:
    """Turn instants into what a clock on the wall showed; the inverse of `utc_from_local` but for repeated hours."""
    zone = pendulum.timezone(timezone)
    hours = np.where(instants == NULL, 0, instants // (3600 * TICKS_PER_SECOND))
    distinct, place = np.unique(hours, return_inverse=True)
    offsets = [_offset_at(int(hour) * 3600, zone) for hour in distinct]
    return np.where(instants == NULL, NULL, instants + np.array(offsets, dtype=np.int64)[place])


def _offset(face: int, zone: dt.tzinfo) -> int:
    return _ticks((EPOCH + dt.timedelta(microseconds=face)).replace(tzinfo=zone, fold=0).utcoffset())


def _offset_at(second: int, zone: dt.tzinfo) -> int:
    return _ticks(dt.datetime.fromtimestamp(second, dt.UTC).astimezone(zone).utcoffset())


def _ticks(offset: dt.timedelta | None) -> int:
    return 0 if offset is None else offset // dt.timedelta(microseconds=1)
