"""Instants and spans of time as people read them, in the timezone of a flow, and as commands take them."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pendulum

from pipelines.flows import zones as _pinned  # noqa: F401 - the timezones below are those of tzdata
from pipelines.operators.rows import INFINITY, MAX_TIME, NULL

if TYPE_CHECKING:
    from collections.abc import Iterable

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
TICK = dt.timedelta(microseconds=1)
NOTHING = "–"


class Moments:
    """Says instants in one timezone.

    >>> new_york = Moments("America/New_York")
    >>> new_york.text(1_357_034_400_000_000), new_york.argument(1_357_016_400_000_000)
    ('2013-01-01 05:00:00', '2013-01-01')
    """

    def __init__(self, timezone: str) -> None:
        """Take the name of a timezone, such as America/New_York."""
        self.name = timezone
        self._zone = pendulum.timezone(timezone)

    def at(self, tick: int) -> dt.datetime:
        """Give the local time of an instant; in UTC where the zone's calendar would leave the years 1 to 9999."""
        moment = EPOCH + tick * TICK
        try:
            return moment.astimezone(self._zone)
        except OverflowError:
            return moment

    def text(self, tick: int | None) -> str:
        """Say an instant to the second, with a fraction where it has one; know infinity and what is missing.

        Of an hour that the clock reads twice its offset is told.

        >>> Moments("Europe/Amsterdam").text(1_792_889_000_000_000)
        '2026-10-25 02:43:20+02:00'
        """
        return self._clock(tick) + self._which(tick)

    def _clock(self, tick: int | None) -> str:
        if tick is None or tick == NULL:
            return NOTHING
        if tick == INFINITY or tick > MAX_TIME:
            return "∞"
        local = self.at(tick)
        fraction = f"{local:.%f}".rstrip("0") if local.microsecond else ""
        return f"{local:%Y-%m-%d %H:%M:%S}".rjust(19, "0") + fraction

    def brief(self, tick: int | None) -> str:
        """Say an instant as `text` does, but without seconds where there are none."""
        text = self._clock(tick)
        return (text.removesuffix(":00") if len(text) > len("00:00:00") else text) + self._which(tick)

    def _which(self, tick: int | None) -> str:
        """Give the offset of an instant whose local time there is twice; else nothing."""
        if tick is None or not NULL < tick <= MAX_TIME:
            return ""
        local = self.at(tick)
        early, late = (local.replace(fold=fold).utcoffset() or dt.timedelta() for fold in (0, 1))
        return self.offset(tick).removeprefix("UTC") if early > late else ""

    def offset(self, tick: int) -> str:
        """Say how far the local time of an instant is from UTC, such as UTC-05:00."""
        return f"UTC{self.at(tick):%z}"[:6] + ":" + f"{self.at(tick):%z}"[3:5]

    def offsets(self, ticks: Iterable[int]) -> list[str]:
        """Say all offsets from UTC that readable instants have, in the order in which they come."""
        known = (tick for tick in ticks if NULL < tick <= MAX_TIME)
        return list(dict.fromkeys(self.offset(tick) for tick in known))

    def argument(self, tick: int) -> str:
        """Spell an instant as `--start` and `--end` read it back: a date where it is midnight."""
        local = self.at(tick)
        return f"{local:%Y-%m-%d}" if local.time() == dt.time(0) else local.isoformat()

    def span(self, start: int, end: int) -> str:
        """Say [start, end): one day by its name, else where it begins and what it ends before."""
        local = self.at(start)
        if local.time() == dt.time(0) and self.at(end) == local + dt.timedelta(days=1):
            return self.argument(start)
        return f"{self.argument(start)} until {self.argument(end)}"


def utc_text(tick: int) -> str:
    """Say an instant of the wall clock to the second, in UTC.

    >>> utc_text(1_357_034_400_000_000)
    '2013-01-01 10:00:00 UTC'
    """
    return f"{EPOCH + tick * TICK:%Y-%m-%d %H:%M:%S} UTC"
