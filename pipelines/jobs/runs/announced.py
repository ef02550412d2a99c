"""What a run has told others, of its complete days and of silence: a small file in its folder, replaced whole.

A day stands here before it is told, and is marked when whoever passes it on is seen to have it. So a kill between the
two neither loses nor doubles it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pipelines.engine.files import durable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

FILE = "announced.json"
DAYS, AT, SILENT = "days", "announced_at", "silent"


class Announced:
    """The ledger of what was announced of one run.

    Args:
        root: the run's folder.
    """

    def __init__(self, root: Path) -> None:
        """Read it; an empty one where nothing was announced."""
        self._file = root / FILE
        self._kept = self._file.read_bytes() if self._file.exists() else b"{}"
        self.facts: dict[str, Any] = json.loads(self._kept)

    @property
    def days(self) -> dict[str, Any]:
        """Give what stands of each day, by its date."""
        found: dict[str, Any] = self.facts.setdefault(DAYS, {})
        return found

    @property
    def told(self) -> set[str]:
        """Name the days that were seen to be announced."""
        return {day for day, facts in self.days.items() if facts[AT]}

    def prove(self, facts: Iterable[Mapping[str, Any]]) -> None:
        """Write down days that are about to be announced, as `day_facts` gives them."""
        for each in facts:
            self.days[each["day"]] = {"hashes": each["hashes"], "counts": each["counts"], AT: None}

    def confirm(self, seen: Mapping[str, str]) -> None:
        """Mark days that were seen to be announced.

        Args:
            seen: by date, when; days of others are left alone.
        """
        for day, at in seen.items():
            stands = self.days.setdefault(day, {})
            stands[AT] = stands.get(AT) or at

    @property
    def silent(self) -> dict[str, Any]:
        """Give of what somebody was told that it is silent, and since when that is, in ticks."""
        found: dict[str, Any] = self.facts.setdefault(SILENT, {})
        return found

    def keep(self) -> None:
        """Have it on disk; nothing is written where nothing has changed."""
        content = json.dumps(self.facts, sort_keys=True).encode()
        if content != self._kept and (self.days or self.silent or self._file.exists()):
            durable.replace(self._file, content)
            self._kept = content
