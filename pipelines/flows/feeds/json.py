"""Recorded files of JSON, an object a line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pipelines.flows.feeds.placing import check_copied
from pipelines.flows.feeds.reads import read_types
from pipelines.flows.feeds.spec import FeedSpec
from pipelines.flows.zones import read_timezone

if TYPE_CHECKING:
    from pipelines.flows.section import Section


@dataclass(frozen=True, kw_only=True)
class JsonSpec(FeedSpec):
    """Files with an object a line; `types` are all their columns."""

    kind: ClassVar[str] = "json"
    settings: ClassVar[tuple[str, ...]] = ("json", "types", "timezone", "landing")

    @classmethod
    def read(cls, feed: Section, _source: Section, /) -> FeedSpec:
        """Read what a flow file says."""
        spec = cls(
            paths=feed.names(cls.kind),
            types=read_types(feed, "json"),
            timezone=read_timezone(feed, "timezone", None),
        )
        check_copied(feed, cls.kind)
        return spec

    @property
    def text(self) -> str:
        """Say what text the rows are read out of."""
        return "json"
