"""Timezones as the pinned package tzdata has them, whatever the files of this machine say: they decide rows."""

from __future__ import annotations

import zoneinfo

import tzdata
from pendulum.tz.timezone import Timezone

VERSION = tzdata.IANA_VERSION
"""Of the timezones that all of this process reads, such as 2026f."""

# Both look into the machine's folders first, and keep what they found there.
zoneinfo.reset_tzpath(to=())
zoneinfo.ZoneInfo.clear_cache()
Timezone.clear_cache()
