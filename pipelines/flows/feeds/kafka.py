"""A topic of Kafka."""

from __future__ import annotations

import re
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
from pipelines.flows.feeds.spec import Clock, Start
from pipelines.flows.zones import read_timezone

if TYPE_CHECKING:
    from pipelines.flows.feeds.spec import FeedSpec
    from pipelines.flows.section import Section

TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
TOPIC_RULE = "a topic: up to 249 letters, digits, `.`, `_` and `-`"


@dataclass(frozen=True, kw_only=True)
class KafkaSpec(LiveText):
    """A topic whose values are records."""

    kind: ClassVar[str] = "kafka"
    settings: ClassVar[tuple[str, ...]] = (
        *("kafka", "brokers", "client", "start", "format", "types", "delimiter", "nulls", "timezone"),
        *("missing", "retyped", "max_bytes"),
    )
    clock: ClassVar[Clock] = Clock.WALL
    silent: ClassVar[frozenset[str]] = LiveText.silent | {"brokers", "client", "start", "max_bytes"}

    brokers: tuple[str, ...] = ()
    """Hosts and ports to ask first."""
    client: str = ""
    """A file of properties of the client, relative to the folder the engine is given; none where empty."""
    start: Start = Start.EARLIEST
    """Where a run that has landed nothing begins."""
    max_bytes: int = SPOOL_BYTES
    """About how much one reading takes."""

    @classmethod
    def read(cls, feed: Section, _source: Section, /) -> FeedSpec:
        """Read what a flow file says."""
        paths = read_place(feed, cls.kind, "topics")
        if not TOPIC.fullmatch(paths[0]):
            raise feed.wrong(cls.kind, f"`kafka: {paths[0]}`", TOPIC_RULE)
        written = read_format(feed, cls.kind, ("csv", "json"))
        return cls(
            paths=paths,
            format=written,
            types=read_types(feed, written),
            delimiter=read_delimiter(feed),
            nulls=read_nulls(feed),
            timezone=read_timezone(feed, "timezone", None),
            brokers=_brokers(feed),
            client=feed.text("client", ""),
            start=feed.choice("start", Start, Start.EARLIEST),
            max_bytes=read_max_bytes(feed, SPOOL_BYTES),
            missing=read_missing_of_records(feed, cls.kind),
            retyped=read_retyped(feed),
        )

    def dataset(self, _source: str, /) -> tuple[str, str]:
        """Name the topic, at the first broker."""
        return f"kafka://{self.brokers[0]}", self.paths[0]

    def words(self) -> str:
        """Say which topic this is, and whom to ask."""
        brokers = ", ".join(self.brokers)
        return f"values of {self.format} in the topic {self.where} of Kafka, by {brokers}{self.zone_words()}"


def _brokers(feed: Section) -> tuple[str, ...]:
    if not feed.has("brokers"):
        raise feed.wrong(KafkaSpec.kind, "no `brokers`", "`brokers: <host>:<port>`, or a list of them")
    brokers = tuple(part.strip() for name in feed.names("brokers") for part in name.split(","))
    for broker in brokers:
        check_address(feed, "brokers", broker)
    return brokers
