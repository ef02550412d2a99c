"""Timezones as the pinned package tzdata has them, whatever the files of this machine say: they decide rows."""

from __future__ import annotations

import zoneinfo
from typing import TYPE_CHECKING

import pendulum
import tzdata
from pendulum.tz.timezone import Timezone

from pipelines.flows.errors import nearest

if TYPE_CHECKING:
    from pipelines.flows.section import Section

VERSION = tzdata.IANA_VERSION
"""Of the timezones that all of this process reads, such as 2026f."""

# Both look into the machine's folders first, and keep what they found there.
zoneinfo.reset_tzpath(to=())
zoneinfo.ZoneInfo.clear_cache()
Timezone.clear_cache()


def read_timezone(section: Section, key: str, default: str | None) -> str | None:
    """Give the name of a timezone that the calendar knows.

    Raises:
        FlowError: it does not.
    """
    if not section.has(key):
        return default
    name = section.text(key)
    if name not in pendulum.timezones():
        near = nearest(name, pendulum.timezones())
        raise section.wrong(key, f"`{key}: {name}`", "a timezone such as `America/New_York` or `UTC`", near)
    return name
