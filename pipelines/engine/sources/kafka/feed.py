"""A topic of Kafka, as landing sees it: rows from where sequences ended up to where its partitions end now."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pipelines.engine.columnar.clock import wall_now
from pipelines.engine.landing.file_rows import DROPPED, NOTED
from pipelines.engine.landing.progress import SourceProgress
from pipelines.engine.sources.formats.text_rows import read_texts
from pipelines.engine.sources.kafka.errors import OffsetsLostError, TopicReplacedError
from pipelines.engine.sources.kafka.properties import client_properties
from pipelines.engine.sources.kafka.topic import SERVERS, SETTINGS, AwayError, Most, OffsetBounds, Taken, Topic
from pipelines.engine.sources.live import ComesOnce, Gathered, arrived_rows, declared_columns, landed_payload, terms_of
from pipelines.engine.sources.opening import Loss
from pipelines.engine.sources.state import write_state
from pipelines.flows.feeds.kafka import KafkaSpec
from pipelines.flows.feeds.spec import Start
from pipelines.operators.rows import MIN_TIME

if TYPE_CHECKING:
    from collections.abc import Callable

    from confluent_kafka import Message

    from pipelines.engine.landing.arrived import Arrived
    from pipelines.engine.landing.source_feed import Reading, SourceFeed
    from pipelines.engine.sources.opening import Opening
    from pipelines.flows.model import Source

MOST_ROWS = 250_000
"""Rows of one reading, whatever the landing allows: each is an object of the client's until it has been read."""


class KafkaFeed(ComesOnce):
    """The topic of one source.

    Args:
        source: what the flow says of it.
        root: the run's folder.
        tell: told a line when the brokers go away or come back.
        loss: what is done where rows that come next have expired.
        base: the folder that the path of the client's properties begins in.
        now: reads the wall clock, in ticks.

    Raises:
        LandingError: its columns are not what the source says of them, or its client's properties cannot be used.
    """

    def __init__(  # noqa: PLR0913 - what a topic's reader is made of
        self,
        source: Source,
        root: Path,
        tell: Callable[[str], None] = lambda _: None,
        loss: Loss = Loss.STOP,
        base: Path = Path(),
        now: Callable[[], int] = wall_now,
    ) -> None:
        """Check the columns; connect to nobody."""
        self.source, self._root, self._tell, self._loss, self._now = source, root, tell, loss, now
        self._columns = declared_columns(source.feed)
        self.schema = landed_payload(source)
        """The payload as it lands."""
        self._spec = KafkaSpec.of(source.feed)
        file = self._spec.client
        client = client_properties(source.name, base / file, {*SETTINGS, SERVERS}) if file else {}
        self._topic = Topic(source.name, source.feed.paths[0], ",".join(self._spec.brokers), client)
        if client:
            self._topic.check()
        self._heard = MIN_TIME
        self._state = ("silent", "", 0)
        self._looks: list[_TopicLook] = []
        self._is_fresh = False
        """Whether nothing was made of the last look yet."""

    def listen(self, known: SourceProgress) -> None:
        """Do nothing: rows wait in the topic."""

    def close(self) -> None:
        """Hang up."""
        self._topic.close()

    def look(self, known: SourceProgress) -> int:  # noqa: ARG002 - part of the protocol
        """Ask what the topic holds; give when it had that, in ticks.

        The instants are those of this machine's clock, when the brokers had answered: those that they or producers
        stamp are payload.

        Raises:
            TopicMissingError: there is no such topic.
        """
        bounds, away = dict[int, OffsetBounds](), ""
        try:
            bounds = self._topic.bounds()
        except AwayError as error:
            away = str(error)
        at = max([self._now(), *(each.at for each in self._looks)])
        self._looks = [*self._looks[-1:], _TopicLook(at, bounds, away)]
        self._is_fresh = True
        return at

    def arrive(self, reading: Reading, known: SourceProgress) -> Arrived:
        """Give what the topic holds beyond what has landed; see `SourceFeed.arrive`.

        Places are by partition and offset. While brokers are away readings go on, and are blind: so is the one in
        which they are back, for what came meanwhile arrives with it.

        Raises:
            TopicMissingError: there is no such topic.
            OffsetsLostError: rows that come next have expired, and nobody accepted that.
            TopicReplacedError: the topic is another one than the one that landed.
        """
        end = reading.end
        gathered, left, ends = Gathered(self._columns, terms_of(self.source)), 0, dict(known.ends)
        was_away = self._state[0] == "away"
        look, is_early = self._seen_before(end)
        bounds = look.bounds
        if look.away:
            self._note("away", look.away, 0, len(ends))
        elif not is_early:
            starts = self._starts(bounds, known, gathered)
            most = Most(_most(reading.limit_rows), self._spec.max_bytes)
            taken = self._topic.take(starts, {number: each.high for number, each in bounds.items()}, most)
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
            unsettled=(self._topic.name,) if is_away or is_early else (),
        )
        self._heard = self._heard if is_away else end
        return arrived

    def _seen_before(self, end: int) -> tuple[_TopicLook, bool]:
        """Give the newest look that was before a reading; where none was, the newest, and that it was not."""
        if not self._is_fresh:
            self.look(SourceProgress())
        self._is_fresh = False
        looks = [each for each in self._looks if each.at < end]
        return (looks or self._looks)[-1], not looks

    def _starts(self, bounds: dict[int, OffsetBounds], known: SourceProgress, gathered: Gathered) -> dict[int, int]:
        """Say where to go on in each partition: where sequences ended, or where a run or a new partition begins."""
        gone = [int(number) for number in known.ends if int(number) not in bounds]
        if gone:
            raise TopicReplacedError(self.source.name, self._topic.name, gone[0], known.ends[str(gone[0])], 0)
        starts = {}
        for number, (low, high) in bounds.items():
            at_first = high if self._spec.start is Start.LATEST and not known.ends else low
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
        came = read_texts(self.source.name, body, self._columns, self._spec, gathered.terms)
        gathered.add(came, lambda row: f"partition {number}, offset {offsets[row - 1]}")

    def _note(self, state: str, why: str, waiting: int, partitions: int) -> None:
        """Note how the brokers are, and tell when that changes."""
        address = f"{self._topic.name} of {self._topic.brokers}"
        if state != self._state[0]:
            self._state = (state, why, wall_now())
            self._tell(f"source {self.source.name}: {address} {state}{f' ({why})' if why else ''}")
        facts = {"kind": "kafka", "address": address, "state": state, "why": why, "since_at": self._state[2]}
        write_state(self._root, self.source.name, **facts, waiting_rows=waiting, partitions=partitions)


class _TopicLook(NamedTuple):
    """What the topic held at an instant."""

    at: int
    """In ticks."""
    bounds: dict[int, OffsetBounds]
    away: str
    """Why nobody said it; empty where somebody did."""


def _most(limit_rows: int | None) -> int:
    return MOST_ROWS if limit_rows is None else min(limit_rows, MOST_ROWS)


def _left(taken: Taken, bounds: dict[int, OffsetBounds]) -> int:
    """Count the rows that wait because enough were read."""
    return sum(max(0, each.high - taken.ends[number]) for number, each in bounds.items())


def open_source(source: Source, opening: Opening) -> SourceFeed:
    """Open a topic; nobody is asked yet."""
    return KafkaFeed(source, opening.root, opening.tell, opening.loss, opening.base)
