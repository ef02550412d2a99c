"""What a topic of Kafka is refused for, each with its sentence: what is required, what came, what to do."""

from __future__ import annotations

from pipelines.engine.landing.errors import LandingError


class TopicMissingError(LandingError):
    """The brokers know no such topic."""

    def __init__(self, source: str, topic: str, brokers: str) -> None:
        """Keep the facts as attributes."""
        super().__init__(source, topic, brokers)
        self.source, self.topic, self.brokers = source, topic, brokers

    def __str__(self) -> str:
        """Say what to do."""
        return (
            f"the topic of source `{self.source}` must be there; {self.brokers} has no `{self.topic}`: create it, or "
            "correct `kafka:` or `brokers:` under the feed"
        )


class ClientRefusedError(LandingError):
    """The client does not take its properties."""

    def __init__(self, source: str, why: str) -> None:
        """Keep the facts as attributes."""
        super().__init__(source, why)
        self.source, self.why = source, why

    def __str__(self) -> str:
        """Say what to do."""
        return (
            f"the properties under `client` of source `{self.source}` must be those of librdkafka; it says: {self.why}"
        )


class OffsetsLostError(LandingError):
    """A topic does not hold the rows that come next."""

    def __init__(self, source: str, topic: str, partition: int, start: int, end: int) -> None:
        """Keep the facts as attributes: [start, end) are the offsets that are not there."""
        super().__init__(source, topic, partition, start, end)
        self.source, self.topic, self.partition, self.start, self.end = source, topic, partition, start, end

    def __str__(self) -> str:
        """Say what to do."""
        return (
            f"topic `{self.topic}` of source `{self.source}` must hold what comes next; of partition {self.partition} "
            f"offsets {self.start} to {self.end - 1} have expired: nothing was landed; go on without them with "
            "--accept-loss (the ledger keeps the range), or read the topic anew into a run of its own (--run NAME)"
        )


class TopicReplacedError(LandingError):
    """A topic ends before what has landed of it: it is another one of that name."""

    def __init__(self, source: str, topic: str, partition: int, landed: int, end: int) -> None:
        """Keep the facts as attributes: sequences landed up to one offset, and the topic ends at another."""
        super().__init__(source, topic, partition, landed, end)
        self.source, self.topic, self.partition, self.landed, self.end = source, topic, partition, landed, end

    def __str__(self) -> str:
        """Say what to do."""
        return (
            f"topic `{self.topic}` of source `{self.source}` must be the one that landed; sequences hold partition "
            f"{self.partition} up to offset {self.landed} and it ends at {self.end}, so it was made anew, or its "
            "brokers lost rows: read it into a run of its own (--run NAME)"
        )
