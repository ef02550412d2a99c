"""Recorded CSV files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pipelines.flows.feeds.csv_text import CsvText, read_delimiter, read_nulls
from pipelines.flows.feeds.placing import check_copied
from pipelines.flows.feeds.reads import read_missing, read_retyped, read_types
from pipelines.flows.zones import read_timezone

if TYPE_CHECKING:
    from pipelines.flows.feeds.spec import FeedSpec
    from pipelines.flows.section import Section


@dataclass(frozen=True, kw_only=True)
class CsvSpec(CsvText):
    """CSV files with a header; columns that `types` does not name are strings."""

    kind: ClassVar[str] = "csv"
    settings: ClassVar[tuple[str, ...]] = (
        *("csv", "types", "delimiter", "nulls", "timezone", "missing", "retyped", "landing"),
    )
    names_all: ClassVar[bool] = False

    @classmethod
    def read(cls, feed: Section, _source: Section, /) -> FeedSpec:
        """Read what a flow file says."""
        spec = cls(
            paths=feed.names(cls.kind),
            types=read_types(feed, "csv"),
            delimiter=read_delimiter(feed),
            nulls=read_nulls(feed),
            timezone=read_timezone(feed, "timezone", None),
            missing=read_missing(feed),
            retyped=read_retyped(feed),
        )
        check_copied(feed, cls.kind)
        return spec

    @property
    def text(self) -> str:
        """Say what text the rows are read out of."""
        return "csv"
