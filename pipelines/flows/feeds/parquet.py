"""Recorded Parquet files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pipelines.flows.feeds.placing import Placing, read_placing
from pipelines.flows.feeds.reads import read_missing, read_retyped
from pipelines.flows.feeds.spec import FeedSpec
from pipelines.flows.zones import read_timezone

if TYPE_CHECKING:
    from pipelines.flows.section import Section


@dataclass(frozen=True, kw_only=True)
class ParquetSpec(FeedSpec):
    """Parquet files, whose columns are those of the first."""

    kind: ClassVar[str] = "parquet"
    settings: ClassVar[tuple[str, ...]] = ("parquet", "timezone", "missing", "retyped", "landing")
    silent: ClassVar[frozenset[str]] = FeedSpec.silent | {"landing"}

    landing: Placing = Placing.COPY
    """Whether its files may stand for the rows that landed."""

    @classmethod
    def read(cls, feed: Section, _source: Section, /) -> FeedSpec:
        """Read what a flow file says."""
        return cls(
            paths=feed.names(cls.kind),
            timezone=read_timezone(feed, "timezone", None),
            landing=read_placing(feed),
            missing=read_missing(feed),
            retyped=read_retyped(feed),
        )

    @property
    def by_reference(self) -> bool:
        """Say whether its files may stand for the rows that landed."""
        return self.landing is Placing.REFERENCE

    def words(self) -> str:
        """Say which files these are."""
        return super().words() + (", landed by reference" if self.by_reference else "")
