"""A topic of Kafka, as landing sees it: rows from where sequences ended up to where its partitions end now."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.engine.clock import wall_now
from pipelines.engine.file_rows import DROPPED, NOTED
from pipelines.engine.kafka_client import client_properties
from pipelines.engine.kafka_errors import OffsetsLostError, TopicReplacedError
from pipelines.engine.kafka_topic import SERVERS, SETTINGS, AwayError, Bounds, Taken, Topic
from pipelines.engine.live_feed import Gathered, Loss, arrived_rows, declared_columns, landed_payload, terms_of
from pipelines.engine.source_state import write_state
from pipelines.engine.text_rows import read_texts
from pipelines.flows.model import Start
from pipelines.operators.rows import MIN_TIME

if TYPE_CHECKING:
    from collections.abc import Callable

    from confluent_kafka import Message

    from pipelines.engine.arrived import Arrived
    from pipelines.engine.positions import Known
    from pipelines.flows.model import Source

MOST_ROWS = 250_000
"""Rows of one reading, whatever the landing allows: each is an object of the client's until it has been read."""


class KafkaFeed:
    """The topic of one source.

    Args:
        source: what the flow says of it.
        root: the run's folder.
        tell: told a line when the brokers go away or come back.
        loss: what is done where rows that come next have expired.
        base: the folder that the path of the client's properties begins in.

    Raises:
        LandingError: its columns are not what the source says of them, or its client's properties cannot be used.
    """

    def __init__(
        self,
        source: Source,
        root: Path,
        tell: Callable[[str], None] = lambda _: None,
        loss: Loss = Loss.STOP,
        base: Path = Path(),
    ) -> None:
        """Check the columns; connect to nobody."""
        self.source, self._root, self._tell, self._loss = source, root, tell, loss
        self._columns = declared_columns(source.feed)
        self.schema = landed_payload(source)
        """The payload as it lands."""
        file = source.feed.client
        client = client_properties(source.name, base / file, {*SETTINGS, SERVERS}) if file else {}
        self._topic = Topic(source.name, source.feed.paths[0], ",".join(source.feed.brokers), client)
        if client:
            self._topic.check()
        self._heard = MIN_TIME
        self._state = ("silent", "", 0)

    def listen(self, known: Known) -> None:
        """Do nothing: rows wait in the topic."""

    def close(self) -> None:
        """Hang up."""
        self._topic.close()

    def arrive(self, end: int, known: Known, limit_rows: int | None = None) -> Arrived:
        """Give what the topic holds beyond what has landed; see `LiveFeed.arrive`.

        Places are by partition and offset. While brokers are away readings go on, and are blind: so is the one in
        which they are back, for what came meanwhile arrives with it.

        Raises:
            TopicMissingError: there is no such topic.
            OffsetsLostError: rows that come next have expired, and nobody accepted that.
            TopicReplacedError: the topic is another one than the one that landed.
        """
        gathered, left, ends = Gathered(self._columns, terms_of(self.source)), 0, dict(known.ends)
        was_away = self._state[0] == "away"
        try:
            bounds = self._topic.bounds()
            starts = self._starts(bounds, known, gathered)
            taken = self._topic.take(starts, {number: each.high for number, each in bounds.items()}, _most(limit_rows))
        except AwayError as error:
            self._note("away", str(error), 0, len(ends))
        else:
            for number in sorted(taken.rows):
                self._gather(number, taken.rows[number], gathered)
            ends = {str(number): offset for number, offset in taken.ends.items()}
            left = _left(taken, bounds)
            self._note("away" if taken.away else "connected", taken.away, left, len(bounds))
        is_away = self._state[0] == "away"
        blind = ((self._heard, end),) if is_away or was_away else ()
        arrived = arrived_rows(
            self.source,
            self.schema,
            gathered,
            end,
            positions=known.positions(ends),
            blind=blind,
            left=left,
            unsettled=(self._topic.name,) if is_away else (),
        )
        self._heard = self._heard if is_away else end
        return arrived

    def _starts(self, bounds: dict[int, Bounds], known: Known, gathered: Gathered) -> dict[int, int]:
        """Say where to go on in each partition: where sequences ended, or where a run or a new partition begins."""
        gone = [int(number) for number in known.ends if int(number) not in bounds]
        if gone:
            raise TopicReplacedError(self.source.name, self._topic.name, gone[0], known.ends[str(gone[0])], 0)
        starts = {}
        for number, (low, high) in bounds.items():
            at_first = high if self.source.feed.start is Start.LATEST and not known.ends else low
            start = known.ends.get(str(number), at_first)
            if start > high:
                raise TopicReplacedError(self.source.name, self._topic.name, number, start, high)
            if start < low:
                self._lost(number, start, low, gathered)
            starts[number] = max(start, low)
        return starts

    def _lost(self, number: int, start: int, low: int, gathered: Gathered) -> None:
        if self._loss is Loss.STOP:
            raise OffsetsLostError(self.source.name, self._topic.name, number, start, low)
        facts = {"topic": self._topic.name, "partition": number, "first": start, "last": low - 1}
        problem = f"partition {number} of {self._topic.name}: offsets {start} to {low - 1} have expired"
        gathered.tell("offsets_lost", NOTED, json.dumps(facts).encode(), problem)

    def _gather(self, number: int, messages: list[Message], gathered: Gathered) -> None:
        """Read the values of a partition; one that is none takes its place in the ledger."""
        for is_text, run in groupby(messages, lambda message: bool((message.value() or b"").strip())):
            if is_text:
                self._read(number, list(run), gathered)
                continue
            for message in run:
                value, where = message.value(), f"partition {number}, offset {message.offset()}"
                if value is None:
                    gathered.tell("no_value", DROPPED, b"", f"{where}: no value, of the key {message.key()!r}")
                else:
                    gathered.tell("unreadable_row", DROPPED, bytes(value), f"{where}: a blank value")

    def _read(self, number: int, messages: list[Message], gathered: Gathered) -> None:
        offsets = [message.offset() for message in messages]
        body = [bytes(message.value() or b"") for message in messages]
        came = read_texts(self.source.name, body, self._columns, self.source.feed, gathered.terms)
        gathered.add(came, lambda row: f"partition {number}, offset {offsets[row - 1]}")

    def _note(self, state: str, why: str, waiting: int, partitions: int) -> None:
        """Note how the brokers are, and tell when that changes."""
        address = f"{self._topic.name} of {self._topic.brokers}"
        if state != self._state[0]:
            self._state = (state, why, wall_now())
            self._tell(f"source {self.source.name}: {address} {state}{f' ({why})' if why else ''}")
        facts = {"kind": "kafka", "address": address, "state": state, "why": why, "since_at": self._state[2]}
        write_state(self._root, self.source.name, **facts, waiting_rows=waiting, partitions=partitions)


def _most(limit_rows: int | None) -> int:
    return MOST_ROWS if limit_rows is None else min(limit_rows, MOST_ROWS)


def _left(taken: Taken, bounds: dict[int, Bounds]) -> int:
    """Count the rows that wait because enough were read."""
    return sum(max(0, each.high - taken.ends[number]) for number, each in bounds.items())
