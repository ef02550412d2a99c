"""What a topic of Kafka is refused for, each with its sentence: what is required, what came, what to do."""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.engine.landing.errors import LandingError


@dataclass(eq=False)
class TopicMissingError(LandingError):
    """The brokers know no such topic."""

    source: str
    topic: str
    brokers: str
    says = (
        "the topic of source `{source}` must be there; {brokers} has no `{topic}`: create it, or correct `kafka:` or "
        "`brokers:` under the feed"
    )


@dataclass(eq=False)
class ClientRefusedError(LandingError):
    """The client does not take its properties."""

    source: str
    why: str
    says = "the properties under `client` of source `{source}` must be those of librdkafka; it says: {why}"


@dataclass(eq=False)
class OffsetsLostError(LandingError):
    """A topic does not hold the rows that come next.

    Facts: [start, end) are the offsets that are not there.
    """

    source: str
    topic: str
    partition: int
    start: int
    end: int

    def __str__(self) -> str:
        return (
            f"topic `{self.topic}` of source `{self.source}` must hold what comes next; of partition {self.partition} "
            f"offsets {self.start} to {self.end - 1} have expired: nothing was landed; go on without them with "
            "--accept-loss (the ledger keeps the range), or read the topic anew into a run of its own (--run NAME)"
        )


@dataclass(eq=False)
class TopicReplacedError(LandingError):
    """A topic ends before what has landed of it: it is another one of that name.

    Facts: sequences landed up to one offset, and the topic ends at another.
    """

    source: str
    topic: str
    partition: int
    landed: int
    end: int
    says = (
        "topic `{topic}` of source `{source}` must be the one that landed; sequences hold partition {partition} up to "
        "offset {landed} and it ends at {end}, so it was made anew, or its brokers lost rows: read it into a run of "
        "its own (--run NAME)"
    )
