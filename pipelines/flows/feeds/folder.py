"""A folder in which files arrive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pipelines.flows.feeds.csv_text import LiveText, read_delimiter, read_nulls
from pipelines.flows.feeds.placing import check_copied
from pipelines.flows.feeds.reads import (
    read_format,
    read_max_bytes,
    read_missing,
    read_place,
    read_retyped,
    read_types,
)
from pipelines.flows.feeds.spec import Clock
from pipelines.flows.zones import read_timezone

if TYPE_CHECKING:
    from pipelines.flows.feeds.spec import FeedSpec
    from pipelines.flows.section import Section

FILE_BYTES = 1 << 30
"""How large a file that arrives may be, unpacked, unless the flow says otherwise."""


@dataclass(frozen=True, kw_only=True)
class FolderSpec(LiveText):
    """A folder in which files arrive; of Parquet `types` name all columns, or none, and the first file's are meant."""

    kind: ClassVar[str] = "folder"
    settings: ClassVar[tuple[str, ...]] = (
        *("folder", "format", "types", "delimiter", "nulls", "timezone", "missing", "retyped", "max_bytes", "landing"),
    )
    clock: ClassVar[Clock] = Clock.WALL
    silent: ClassVar[frozenset[str]] = LiveText.silent | {"max_bytes"}

    max_bytes: int = FILE_BYTES
    """How large a file may be, also when it is unpacked."""

    @classmethod
    def read(cls, feed: Section, _source: Section, /) -> FeedSpec:
        """Read what a flow file says."""
        paths = read_place(feed, cls.kind, "folders")
        written = read_format(feed, cls.kind, ("parquet", "csv", "json"))
        spec = cls(
            paths=paths,
            format=written,
            types=read_types(feed, written),
            delimiter=read_delimiter(feed),
            nulls=read_nulls(feed),
            timezone=read_timezone(feed, "timezone", None),
            max_bytes=read_max_bytes(feed, FILE_BYTES),
            missing=read_missing(feed),
            retyped=read_retyped(feed),
        )
        check_copied(feed, cls.kind)
        return spec

    @property
    def folders(self) -> tuple[str, ...]:
        """Give it: a stream would wait for one that nobody made."""
        return self.paths
