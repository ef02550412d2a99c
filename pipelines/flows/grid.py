"""The intervals of a backfill: the flow's `every`, laid on the calendar of its timezone.

Days are days of the calendar, so the two days a year on which clocks are set have 23 and 25 hours. An `every` shorter
than a day divides it: a cut is each instant at which the clock on the wall reads a multiple of `every` after midnight;
a reading that comes twice that day is a cut twice (midnight once: the day begins at the first), and one that is left
out is none. Several days are counted from 1970-01-01.
"""

from __future__ import annotations

import calendar
import datetime as dt
from itertools import pairwise
from typing import TYPE_CHECKING

import pendulum

from pipelines.flows.durations import UNITS, spell
from pipelines.flows.errors import GridError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipelines.flows.model import Flow

DAY = UNITS["d"]
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
FIRST_DAY = EPOCH.date().toordinal()
TICK = dt.timedelta(microseconds=1)
EARLIEST, LATEST = 1900, 9990
FIRST_TICK = (dt.datetime(EARLIEST, 1, 1, tzinfo=dt.UTC) - EPOCH) // TICK
"""Where the first year begins that a run can begin in."""
LAST_TICK = (dt.datetime(LATEST + 1, 1, 1, tzinfo=dt.UTC) - EPOCH) // TICK
"""Where the last year ends that a run can end in."""
MOST_INTERVALS = 100_000
"""Intervals of one call, each of which is a landing and a commit."""

Moment = str | dt.date | dt.datetime


def intervals(flow: Flow, start: Moment, end: Moment) -> list[tuple[int, int]]:
    """Give the intervals [start, end) of the flow's grid that fill the span, in order.

    Safe across the days on which clocks are set: every cut is found on the calendar, none by adding hours.

    Args:
        flow: its `every` and `timezone` make the grid.
        start: where the first interval begins: a date, or an instant as ISO 8601; without offset it is local time of
            the flow's timezone.
        end: where the last one ends, exclusive.

    Returns:
        Pairs of ticks (µs since 1970-01-01 UTC); each begins where the one before it ends.

    Raises:
        GridError: start or end is no date or lies off the grid, or the span is empty.
    """
    first, last = (_instant(flow, moment, name) for moment, name in ((start, "start"), (end, "end")))
    if first >= last:
        raise GridError(f"start {start} and end {end}", "an end after the start")
    if (last - first) // flow.every > MOST_INTERVALS:
        came = f"start {start} and end {end}, {(last - first) // flow.every:,} intervals of {spell(flow.every)}"
        raise GridError(came, f"at most {MOST_INTERVALS:,}; run them in parts, or with a longer `every`")
    cuts = [cut for cut in cuts_between(flow, first, last) if first <= cut <= last]
    for moment, instant, name in ((start, first, "start"), (end, last, "end")):
        if instant not in cuts:
            raise _off_grid(flow, moment, instant, name)
    return list(pairwise(cuts))


def interval_of(flow: Flow, moment: Moment) -> tuple[int, int]:
    """Give the interval of the flow's grid that holds a moment.

    Args:
        flow: its `every` and `timezone` make the grid.
        moment: a date, or an instant as ISO 8601; without offset it is local time of the flow's timezone.

    Raises:
        GridError: it is no date and no instant.
    """
    instant = _instant(flow, moment, "interval")
    cuts = cuts_between(flow, instant, instant + 1)
    return cuts[0], cuts[1]


def cut_at(flow: Flow, moment: Moment, name: str) -> int:
    """Give the cut of the flow's grid that a moment is.

    Args:
        flow: its `every` and `timezone` make the grid.
        moment: a date, or an instant as ISO 8601; without offset it is local time of the flow's timezone.
        name: what errors call it.

    Raises:
        GridError: it is no date and no instant, or lies off the grid.
    """
    instant = _instant(flow, moment, name)
    if instant not in cuts_between(flow, instant, instant):
        raise _off_grid(flow, moment, instant, name)
    return instant


def instant_of(flow: Flow, moment: Moment, name: str) -> int:
    """Give the instant that a moment is, on the flow's grid or off it.

    Args:
        flow: its timezone.
        moment: a date, or an instant as ISO 8601; without offset it is local time of the flow's timezone.
        name: what errors call it.

    Raises:
        GridError: it is no date and no instant.
    """
    return _instant(flow, moment, name)


def cuts_between(flow: Flow, first: int, last: int) -> list[int]:
    """Give the cuts of the grid from the newest at or before `first` to the oldest at or after `last`, ascending.

    Args:
        flow: its `every` and `timezone` make the grid.
        first: ticks.
        last: ticks, not before `first`.
    """
    days = max(flow.every // DAY, 1)
    begin, finish = (_local_day(flow, tick) for tick in (first, last))
    begin -= (begin - FIRST_DAY) % days + days
    cuts = sorted({cut for day in range(begin, finish + 2 * days + 1, days) for cut in _cuts_of_day(flow, day)})
    low = max(cut for cut in cuts if cut <= first)
    high = min(cut for cut in cuts if cut >= last)
    return [cut for cut in cuts if low <= cut <= high]


def _cuts_of_day(flow: Flow, ordinal: int) -> Iterator[int]:
    midnight = dt.datetime.combine(dt.date.fromordinal(ordinal), dt.time.min)
    yield _first(flow, midnight)
    for ticks in range(flow.every, DAY, flow.every):
        yield from _readings(flow, midnight + ticks * TICK)


def _readings(flow: Flow, wall: dt.datetime) -> list[int]:
    """Give each instant at which the clock on the wall reads `wall`: one, or two, or none, on the days it is set."""
    there = [pendulum.instance(wall.replace(fold=fold), tz=flow.timezone) for fold in (0, 1)]
    return sorted({_ticks(moment) for moment in there if moment.naive() == wall})


def _first(flow: Flow, wall: dt.datetime) -> int:
    """Give the first instant at which the clock reads `wall`, or jumps over it."""
    readings = _readings(flow, wall)
    return readings[0] if readings else _ticks(pendulum.instance(wall.replace(fold=1), tz=flow.timezone))


def _ticks(moment: dt.datetime) -> int:
    return calendar.timegm(moment.utctimetuple()) * UNITS["s"] + moment.microsecond


def _local(flow: Flow, tick: int) -> pendulum.DateTime:
    return pendulum.instance(EPOCH + tick * TICK).in_timezone(flow.timezone)


def _local_day(flow: Flow, tick: int) -> int:
    return _local(flow, tick).date().toordinal()


def _instant(flow: Flow, moment: Moment, name: str) -> int:
    """Read a moment as ticks; a date is its midnight, and what has no offset is local time."""
    try:
        read = dt.datetime.fromisoformat(moment.strip()) if isinstance(moment, str) else moment
    except ValueError:
        raise GridError(f"{name} `{moment}`", "a date such as 2013-01-01, or an instant as ISO 8601") from None
    if not isinstance(read, dt.datetime):
        read = dt.datetime.combine(read, dt.time.min)
    if not EARLIEST <= read.year <= LATEST:
        raise GridError(f"{name} {moment}", f"a year from {EARLIEST} to {LATEST}")
    if read.tzinfo:
        return _ticks(read)
    return max(_readings(flow, read)) if read.fold and _readings(flow, read) else _first(flow, read)


def _off_grid(flow: Flow, moment: Moment, instant: int, name: str) -> GridError:
    around = cuts_between(flow, instant, instant)
    before, after = (_local(flow, tick).isoformat() for tick in (around[0], around[-1]))
    expected = f"a cut of the grid of `{flow.name}` (every {spell(flow.every)}, {flow.timezone})"
    return GridError(f"{name} {moment}", expected, before, after)
