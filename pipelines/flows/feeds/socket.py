"""A TCP socket that sends lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pipelines.flows.feeds.csv_text import LiveText, read_delimiter, read_nulls
from pipelines.flows.feeds.reads import (
    SPOOL_BYTES,
    check_address,
    read_format,
    read_max_bytes,
    read_missing_of_records,
    read_place,
    read_retyped,
    read_types,
)
from pipelines.flows.feeds.spec import Clock
from pipelines.flows.zones import read_timezone

if TYPE_CHECKING:
    from pipelines.flows.feeds.spec import FeedSpec
    from pipelines.flows.section import Section


@dataclass(frozen=True, kw_only=True)
class SocketSpec(LiveText):
    """A host and a port that send a record a line, once."""

    kind: ClassVar[str] = "socket"
    settings: ClassVar[tuple[str, ...]] = (
        *("socket", "format", "types", "delimiter", "nulls", "timezone", "missing", "retyped", "max_bytes"),
    )
    clock: ClassVar[Clock] = Clock.WALL
    silent: ClassVar[frozenset[str]] = LiveText.silent | {"max_bytes"}
    is_endless: ClassVar[bool] = True

    max_bytes: int = SPOOL_BYTES
    """How much may be spooled and not landed; then it is not read from."""

    @classmethod
    def read(cls, feed: Section, _source: Section, /) -> FeedSpec:
        """Read what a flow file says."""
        paths = read_place(feed, cls.kind, "addresses")
        check_address(feed, cls.kind, paths[0])
        written = read_format(feed, cls.kind, ("csv", "json"))
        return cls(
            paths=paths,
            format=written,
            types=read_types(feed, written),
            delimiter=read_delimiter(feed),
            nulls=read_nulls(feed),
            timezone=read_timezone(feed, "timezone", None),
            max_bytes=read_max_bytes(feed, SPOOL_BYTES),
            missing=read_missing_of_records(feed, cls.kind),
            retyped=read_retyped(feed),
        )

    def dataset(self, source: str, /) -> tuple[str, str]:
        """Name the address; what it sends is called as the source is."""
        return f"tcp://{self.paths[0]}", source

    def words(self) -> str:
        """Say which socket this is."""
        return f"lines of {self.format} from the socket {self.where}{self.zone_words()}"
