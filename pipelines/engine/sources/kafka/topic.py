"""A topic as a log that is read along: what its partitions hold now, and their rows from given offsets on.

No consumer group: the landing's manifests say where to go on. Nothing is kept between two readings but the connection,
so a reading that is repeated gives the same rows.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from pipelines.engine.sources.kafka.errors import ClientRefusedError, TopicMissingError
from pipelines.engine.sources.kafka.properties import withheld

if TYPE_CHECKING:
    from collections.abc import Mapping

    from confluent_kafka import Consumer, KafkaError, Message

SECONDS = 3.0
"""How long brokers may take to answer before they count as away."""
LOOK_SECONDS = 0.1
AT_ONCE = 10_000
SERVERS = "bootstrap.servers"
SETTINGS: dict[str, str | int | float | bool | None] = {
    "group.id": "pulseline",  # asked for by the client; nothing is ever committed to it
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "reconnect.backoff.max.ms": 1_000,
    "queued.max.messages.kbytes": 65_536,
    "log_level": 0,
}


class AwayError(Exception):
    """The brokers do not answer; it is caught by whoever reads, who tries again at the next reading."""


class OffsetBounds(NamedTuple):
    """What a partition holds: offsets [low, high)."""

    low: int
    high: int


@dataclass
class Taken:
    """Rows of one reading."""

    ends: dict[int, int]
    """By partition: the offset to go on from."""
    highs: dict[int, int] = field(default_factory=dict)
    """By partition: the offset from which on nothing is taken; what came later belongs to a later reading."""
    rows: dict[int, list[Message]] = field(default_factory=dict)
    """By partition, in the order of their offsets."""
    count: int = 0
    size: int = 0
    """Bytes of the rows."""
    largest: int = 1
    """Bytes of the largest."""
    away: str = ""
    """Why the brokers fell silent before all was read; empty where they did not."""
    moved: bool = False
    """Whether offsets expired while they were read."""
    ended: set[int] = field(default_factory=set)
    """Partitions that have no more to read now: an open transaction may hide what follows."""

    def take(self, message: Message) -> None:
        """Take up a row, or what the client says in place of one."""
        partition, offset = message.partition(), message.offset()
        if partition is None or offset is None:
            return
        error = message.error()
        high = self.highs.get(partition, offset + 1)
        if error is None and offset >= high:
            self.ended.add(partition)
            self.ends[partition] = high
        elif error is None:
            self.rows.setdefault(partition, []).append(message)
            self.ends[partition] = offset + 1
            self.count += 1
            size = len(message.value() or b"") + len(message.key() or b"")
            self.size, self.largest = self.size + size, max(self.largest, size)
        elif error.code() == error._PARTITION_EOF:  # noqa: SLF001 - that is its public name
            self.ended.add(partition)
            self.ends[partition] = max(self.ends.get(partition, 0), min(offset, high))
        elif _is_expired(error):
            self.moved = True
        elif not error.retriable():
            self.away = error.str()


class Most(NamedTuple):
    """How much one reading takes."""

    rows: int
    size: int
    """Bytes; a reading ends with the row that reaches it, or with others no larger than the largest before them."""

    def left(self, taken: Taken) -> int:
        """Give how many rows may be asked for at once; at least one until there is enough, then 0."""
        if taken.count >= self.rows or taken.size >= self.size:
            return 0
        return min(AT_ONCE, self.rows - taken.count, max(1, (self.size - taken.size) // taken.largest))


def _is_expired(error: KafkaError) -> bool:
    return error.code() in {error._AUTO_OFFSET_RESET, error.OFFSET_OUT_OF_RANGE}  # noqa: SLF001 - a public name


@dataclass
class Topic:
    """A topic and the connection to its brokers.

    Args:
        source: whose it is, for errors.
        name: of the topic.
        brokers: hosts and ports to ask first, with commas between them.
        client: further properties of the client.
    """

    source: str
    name: str
    brokers: str
    client: Mapping[str, str] = field(default_factory=dict, repr=False)

    @cached_property
    def _consumer(self) -> Consumer:
        from confluent_kafka import Consumer, KafkaException

        try:
            return Consumer({**SETTINGS, **self.client, SERVERS: self.brokers})
        except KafkaException as error:
            raise ClientRefusedError(self.source, self._why(error)) from None

    def check(self) -> None:
        """See that the client takes its properties; nobody is waited for.

        Raises:
            ClientRefusedError: it does not.
        """
        _ = self._consumer
        self.close()

    def close(self) -> None:
        """Hang up."""
        if "_consumer" in vars(self):
            self._consumer.close()
            del self._consumer

    def bounds(self) -> dict[int, OffsetBounds]:
        """Ask what each partition holds; one that is new is there from the first time it is asked for.

        Raises:
            AwayError: not all of it can be said now.
            TopicMissingError: there is no such topic.
        """
        from confluent_kafka import KafkaException, TopicPartition

        try:
            partitions = self._partitions()
            asked = {number: TopicPartition(self.name, number) for number in partitions}
            # What the client gives is None where it got no answer in time, whatever its types say.
            found: dict[int, tuple[int, int] | None] = {
                number: self._consumer.get_watermark_offsets(partition, timeout=SECONDS)
                for number, partition in asked.items()
            }
        except KafkaException as error:
            raise AwayError(self._why(error)) from None
        silent = [number for number, bounds in found.items() if bounds is None]
        if silent:
            raise AwayError(f"partition {silent[0]} does not answer")
        return {number: OffsetBounds(*bounds) for number, bounds in found.items() if bounds is not None}

    def _partitions(self) -> list[int]:
        from confluent_kafka import KafkaError

        found = self._consumer.list_topics(self.name, timeout=SECONDS).topics[self.name]
        if found.error is not None and found.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise TopicMissingError(self.source, self.name, self.brokers)
        if found.error is not None:
            raise AwayError(withheld(found.error.str(), self.client))
        leaderless = [number for number, partition in found.partitions.items() if partition.leader < 0]
        if leaderless:
            raise AwayError(f"partition {leaderless[0]} has no leader")
        return sorted(found.partitions)

    def take(self, starts: dict[int, int], highs: dict[int, int], most: Most) -> Taken:
        """Read partitions from given offsets up to others, or until there are enough rows.

        Args:
            starts: by partition, the first offset that is wanted.
            highs: by partition, where it ended when it was asked.
            most: how much is read.
        """
        from confluent_kafka import KafkaException, TopicPartition

        taken = Taken(dict(starts), highs)
        wanted = [number for number, start in starts.items() if start < highs[number]]
        if not wanted:
            return taken
        try:
            self._consumer.assign([TopicPartition(self.name, number, starts[number]) for number in wanted])
            self._follow(taken, {number: highs[number] for number in wanted}, most)
        except KafkaException as error:
            taken.away = self._why(error)
        finally:
            self._consumer.unassign()
        taken.away = withheld(taken.away, self.client)
        return taken

    def _follow(self, taken: Taken, highs: dict[int, int], most: Most) -> None:
        patience = time.monotonic() + SECONDS
        while most.left(taken) and not taken.away and not taken.moved:
            if all(taken.ends[number] >= high or number in taken.ended for number, high in highs.items()):
                return
            first = self._consumer.poll(LOOK_SECONDS)
            if first is None:
                if time.monotonic() > patience:
                    taken.away = f"no row came for {SECONDS:g} s"
                continue
            patience = time.monotonic() + SECONDS
            taken.take(first)
            for message in self._consumer.consume(most.left(taken), timeout=0):
                taken.take(message)

    def _why(self, error: Exception) -> str:
        """Give what the client says, without what was told it in confidence."""
        cause = error.args[0] if error.args else error
        return withheld(str(cause.str()) if hasattr(cause, "str") else str(cause), self.client)
