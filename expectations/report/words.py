"""Numbers, times and reasons, said as people say them."""

from __future__ import annotations

import datetime as dt
import re
from functools import lru_cache
from typing import TYPE_CHECKING

import pendulum

from pipelines.operators.rows import INFINITY, MAX_TIME, NULL

if TYPE_CHECKING:
    from collections.abc import Sequence

MICROSECOND = 1
SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
_UNITS = ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s"))
INSTANT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

REASONS = {
    "late": "started before the newest CTI",
    "late_end": "ended before the newest CTI",
    "start_dropped": "the start edge of this end was dropped",
    "start_moved": "the start edge of this end was moved, and the end carries the moved start",
    "start_diverted": "the start edge of this end was set aside, and took its end along",
    "orphan_end": "an end whose start was never seen, or whose event has ended",
    "id_reused": "a start whose id was open already",
    "max_ahead": "stamped further ahead of its arrival than max_ahead allows; its time counts for nothing",
    "max_catch_up": "would have announced more timers at once than max_catch_up allows; its time does not count",
    "unknown_port": "names no declared port",
    "expired": "the key was silent so long that its timers stopped",
    "empty": "its end is not after its start",
    "null_time": "has no time, or no end, so no promise can be held against it",
    "after_end": "came in after the stream had ended",
    "late_cti": "a CTI that would not have moved time forward",
    "filtered": "the condition of a filter was not true of it",
    "begun_anew": "waited in its stream when an apply began that one anew, or left it out",
    "max_windows": "in more windows than max_windows allows, so it is counted in none",
    "out_of_time": "its new times would lie outside the years 1 to 9999",
    "duration_set": "the end of an event whose duration was set when it started",
    "duplicate": "the same as a row that left before it",
    "null_dispatch": "a null where instances are told apart by a value",
    "quarantined": "breaks a check that each row of its stream must keep",
    "loop_limit": "would have gone round a loop once more than it may",
    "file_changed": "a file that changed after it had landed; what is new in it did not land",
    "same_content": "a file with the content of one that had landed; it did not land again",
    "unreadable_file": "a file that could not be read",
    "unreadable_row": "a row that could not be read",
    "new_column": "a column that nobody declared",
    "missing_column": "lacks a declared column",
    "no_arrival": "never arrived",
    "null_key": "has no key",
    "unreadable_time": "a time of it cannot be read, and it is without that",
}
ACTIONS = {
    "dropped": "kept in the ledger alone",
    "diverted": "set aside in a stream of its own",
    "adjusted": "changed, then passed on",
    "noted": "a note beside what passed",
}


def count(number: int) -> str:
    """Write a whole number with separators.

    >>> count(336776)
    '336,776'
    """
    return f"{number:,}".replace("-", "−")


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Write a number with its noun.

    >>> counted(1, "row"), counted(35, "row"), counted(2, "way")
    ('1 row', '35 rows', '2 ways')
    """
    return f"{count(number)} {noun if number == 1 else plural or noun + 's'}"


def share(part: int, whole: int) -> str:
    """Write a part as a percentage that never rounds something to nothing, nor nearly all to all.

    >>> share(131, 6063), share(1, 100000), share(0, 5), share(99999, 100000)
    ('2.2 %', 'under 0.1 %', '0 %', 'over 99.9 %')
    """
    percent = 100 * part / whole if whole else 0.0
    if 0 < percent < 0.1:  # noqa: PLR2004
        return "under 0.1 %"
    if 99.9 < percent < 100:  # noqa: PLR2004
        return "over 99.9 %"
    return f"{percent:.0f} %" if percent in {0, 100} else f"{percent:.1f} %"


def duration(ticks: int) -> str:
    """Write a span in its two largest units.

    >>> duration(7_500_000_000), duration(-90_000_000), duration(90_000_000_000), duration(0), duration(2500)
    ('2 h 5 min', '−1 min 30 s', '1 d 1 h', '0 s', '0.0025 s')
    """
    sign, rest = ("−" if ticks < 0 else ""), abs(ticks)
    if rest < SECOND:
        return f"{sign}{rest / SECOND:.6f}".rstrip("0").rstrip(".") + " s"
    parts = []
    for size, unit in _UNITS:
        whole, rest = divmod(rest, size)
        parts.append((whole, unit))
    first = next(i for i, (whole, _) in enumerate(parts) if whole)
    return sign + " ".join(f"{whole} {unit}" for whole, unit in parts[first : first + 2] if whole)


def seconds(value: float | None) -> str:
    """Write a measured duration.

    >>> seconds(0.4213), seconds(12.3), seconds(754), seconds(None)
    ('0.42 s', '12.3 s', '12 min 34 s', '–')
    """
    if value is None:
        return "–"
    if value >= 60:  # noqa: PLR2004
        return duration(round(value) * SECOND)
    return f"{value:.1f} s" if value >= 10 else f"{value:.2f} s"  # noqa: PLR2004


def listed(words: Sequence[str]) -> str:
    """Join words as a sentence does.

    >>> listed(["EWR", "JFK", "LGA"])
    'EWR, JFK and LGA'
    """
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]])) if words else ""


def short_hash(text: str | None) -> str:
    """Give the first ten digits of a content hash, without its row count.

    >>> short_hash("6063:0f1e2d3c4b5a69788796a5b4c3d2e1f0")
    '0f1e2d3c4b'
    """
    return "–" if text is None else text.rpartition(":")[2][:10]


@lru_cache(maxsize=1024)  # a chart tells thousands of instants of a few days
def _day(date: dt.date) -> str:
    return f"{date:%a} {date.day} {date:%b} {date.year:04d}"


def _time(moment: dt.datetime) -> str:
    second, part = moment.second, moment.microsecond
    text = f"{moment.hour:02d}:{moment.minute:02d}" + (f":{second:02d}" if second or part else "")
    return text + f".{part:06d}".rstrip("0") if part else text


class ReportClock:
    """Says instants in one time zone."""

    def __init__(self, timezone: str) -> None:
        """Take the name of a zone, such as America/New_York."""
        self.zone = pendulum.timezone(timezone)
        self.name = timezone

    def at(self, tick: int) -> dt.datetime:
        """Give the local time of an instant; in UTC where the zone's calendar would leave the years 1 to 9999."""
        return self.local(_EPOCH + dt.timedelta(microseconds=tick))

    def local(self, moment: dt.datetime) -> dt.datetime:
        """Give the local time of a moment, as `at` does."""
        try:
            return moment.astimezone(self.zone)
        except OverflowError:
            return moment

    def day(self, tick: int) -> str:
        """Say the day, such as `Tue 1 Jan 2013`."""
        return _day(self.at(tick).date())

    def time(self, tick: int) -> str:
        """Say the time of day, with seconds only where there are some."""
        return _time(self.at(tick))

    def instant(self, tick: int | None) -> str:
        """Say day and time, such as `Tue 1 Jan 2013, 08:31`; know infinity and what is missing."""
        if tick is None or tick == NULL:
            return "no time"
        if tick == INFINITY or tick > MAX_TIME:
            return "infinity"
        moment = self.at(tick)
        return f"{_day(moment.date())}, {_time(moment)}"

    def near(self, tick: int | None, beside: int | None) -> str:
        """Say an instant beside another: the time of day alone when both are on one day."""
        if tick is not None and beside is not None and max(tick, beside) <= MAX_TIME and min(tick, beside) > NULL:
            moment = self.at(tick)
            if moment.date() == self.at(beside).date():
                return _time(moment)
        return self.instant(tick)

    def span(self, start: int | None, end: int | None) -> str:
        """Say [start, end): as days, the last one included, when both are midnights."""
        if start is None or end is None or end <= start:
            return f"{self.instant(start)} to {self.instant(end)}"
        if self._midnight(start) and self._midnight(end):
            first, last = self.day(start), self.day(end - 1)
            return first if first == last else f"{first} to {last}"
        return f"{self.instant(start)} to {self.near(end, start)}"

    def _midnight(self, tick: int) -> bool:
        return self.at(tick).time() == dt.time(0)


def instant_or_text(value: object, clock: ReportClock) -> str:
    """Write a value of a row: an instant in local time, to the second or finer, all else as it stands.

    >>> new_york = ReportClock("America/New_York")
    >>> instant_or_text("2013-01-01T13:31:00Z", new_york), instant_or_text("EWR", new_york)
    ('2013-01-01 08:31:00', 'EWR')
    """
    if value is None:
        return "–"
    text = str(value)
    if not INSTANT.fullmatch(text):
        return text
    moment = dt.datetime.fromisoformat(text)
    local = clock.local(moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC))
    return f"{local:%Y-%m-%d %H:%M:%S}" + (f"{local:.%f}".rstrip("0") if local.microsecond else "")
