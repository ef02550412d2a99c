"""A topic of Kafka under the real clock, by a real broker: each row lands once, whatever brokers and topics do."""

from __future__ import annotations

import json
import pickle
import re
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from pipelines.engine.landing import source_feed
from pipelines.engine.landing.column_errors import ColumnBrokenError
from pipelines.engine.landing.index import Landing
from pipelines.engine.landing.manifest import read_sequence
from pipelines.engine.landing.progress import Position, SourceProgress
from pipelines.engine.sources.kafka import topic as kafka_topic
from pipelines.engine.sources.kafka.errors import (
    ClientRefusedError,
    OffsetsLostError,
    TopicMissingError,
    TopicReplacedError,
)
from pipelines.engine.sources.kafka.feed import KafkaFeed
from pipelines.engine.sources.kafka.properties import ClientFileError, withheld
from pipelines.engine.sources.kafka.topic import Topic
from pipelines.engine.sources.opening import Loss
from pipelines.engine.sources.state import read_state
from pipelines.flows.feeds.kafka import KafkaSpec
from pipelines.flows.feeds.reads import SPOOL_BYTES
from pipelines.flows.feeds.spec import Missing, Start
from pipelines.flows.model import Flow, Source
from tests.engine.sources.broker import PASSWORD
from tests.engine.sources.folders import lines_of, rows_of
from tests.engine.sources.sockets import AT, TYPES, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipelines.engine.landing.sequence import LandedSequence
    from tests.engine.sources.broker import Broker


@dataclass
class Reading:
    """A landing of one topic; `reading` is ten ticks later each time."""

    base: Path
    broker: Broker
    topic: str
    form: str = "csv"
    start: Start = Start.EARLIEST
    loss: Loss = Loss.STOP
    missing: Missing | None = None
    max_bytes: int = SPOOL_BYTES
    reading: int = 0
    now: int = 0
    told: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.open()

    def open(self) -> None:
        """Open the feed anew, as another process would."""
        spec = KafkaSpec(
            paths=(self.topic,),
            brokers=(self.broker.address,),
            format=self.form,
            types=TYPES,
            start=self.start,
            missing=self.missing,
            max_bytes=self.max_bytes,
        )
        source = Source(name="rows", feed=spec, key=("key",), time="time")
        self.flow = Flow(name="f", sources={"rows": source}, streams={}, buckets=3)
        self.landing = Landing(self.base / "landing")
        self.feed = KafkaFeed(source, self.base, self.told.append, self.loss, now=lambda: self.now)

    def land(self, limit_rows: int | None = None) -> LandedSequence:
        """Land one reading."""
        self.reading += 10
        feeds = {"rows": self.feed}
        sequence, self.waiting = self.landing.land(
            self.flow, self.reading - 10, self.reading, feeds, limit_rows=limit_rows
        )
        assert sequence is not None, "nothing rests here"
        return sequence


@pytest.fixture
def opened() -> Iterator[list[Reading]]:
    """Give a list whose feeds are closed at the end."""
    made: list[Reading] = []
    yield made
    for each in made:
        each.feed.close()


def csv_of(*values: int) -> list[str]:
    return [f"a,{AT},{value}" for value in values]


def values_of(sequence: LandedSequence) -> list[int]:
    return [row["v"] for row in rows_of(sequence)]


def ends_of(sequence: LandedSequence) -> dict[str, int]:
    return {name: end for name, _, end in sequence.sources["rows"].positions}


def test_rows_land_once_by_partition_and_offset(tmp_path: Path, broker: Broker, opened: list[Reading]) -> None:
    topic = broker.topic(3)
    stand = Reading(tmp_path, broker, topic)
    opened.append(stand)
    assert ends_of(stand.land()) == {"0": 0, "1": 0, "2": 0}, "no partition ever had a row"
    broker.send(topic, {2: csv_of(5, 6), 0: csv_of(1, 2, 3)})
    sequence = stand.land()
    assert [(row["place"], row["v"]) for row in rows_of(sequence)] == [(1, 1), (2, 2), (3, 3), (4, 5), (5, 6)]
    assert {row["arrival"].microsecond for row in rows_of(sequence)} == {sequence.end - 1}
    wanted = (Position("0", 0, 3), Position("1", 0, 0), Position("2", 0, 2))
    assert (sequence.sources["rows"].positions, sequence.sources["rows"].blind_spans) == (wanted, ())
    assert read_sequence(sequence.folder.parent, sequence.id) == sequence
    assert stand.land().sources["rows"].rows == 0
    stand.feed.close()
    stand.open()
    broker.send(topic, {1: csv_of(4)})
    assert values_of(stand.land()) == [4]
    state = read_state(tmp_path, "rows")
    assert state is not None
    assert (state["state"], state["waiting_rows"], state["partitions"]) == ("connected", 0, 3)


def test_values_that_are_none_are_told_with_their_bytes(tmp_path: Path, broker: Broker, opened: list[Reading]) -> None:
    topic = broker.topic()
    stand = Reading(tmp_path, broker, topic, "json")
    opened.append(stand)
    spread = b'{"key": "a",\n "time": "%s",\n "v": 1}\n' % AT.encode()
    lines = [spread, None, b"{nonsense", b" ", b'{"key": "b\nc", "v": 2}', b'{"key": "b", "v": 2, "w": 1}', b'{"v": 3}']
    broker.send(topic, {0: lines})
    sequence = stand.land()
    assert [(row["place"], row["v"]) for row in rows_of(sequence)] == [(1, 1), (6, 2)]
    assert lines_of(sequence) == [
        ("no_value", "dropped", 2, b""),
        ("unreadable_row", "dropped", 3, b"{nonsense"),
        ("unreadable_row", "dropped", 4, b" "),
        ("unreadable_row", "dropped", 5, lines[4]),
        ("null_key", "dropped", 7, None),
        ("new_column", "noted", 8, b'{"column":"w","rows":1,"type":"int64"}'),
    ]
    told = [json.loads(row)["problem"] for row in sequence.ledger_rows()["row"].to_pylist()[:2]]
    assert told[0] == "partition 0, offset 1: no value, of the key b'k'"
    assert told[1].startswith("partition 0, offset 2: ")


def test_a_stop_at_a_value_that_lacks_a_column_moves_no_offset(
    tmp_path: Path, broker: Broker, opened: list[Reading]
) -> None:
    topic = broker.topic()
    stand = Reading(tmp_path, broker, topic, "json", missing=Missing.STOP)
    opened.append(stand)
    broker.send(topic, {0: [b'{"key": "a", "time": "%s", "v": 1}' % AT.encode(), b'{"key": "a"}']})
    with pytest.raises(ColumnBrokenError, match="must be there, as timestamp; partition 0, offset 1: it has key"):
        stand.land()
    stand.feed.close()
    stand.reading, stand.missing = 0, Missing.LEDGER
    stand.open()
    sequence = stand.land()
    assert (values_of(sequence), ends_of(sequence)) == ([1], {"0": 2})
    assert lines_of(sequence) == [("missing_column", "dropped", 2, b'{"key": "a"}')]


def test_a_backlog_lands_bit_by_bit_and_says_what_waits(tmp_path: Path, broker: Broker, opened: list[Reading]) -> None:
    topic = broker.topic(2)
    broker.send(topic, {0: csv_of(*range(50)), 1: csv_of(*range(50, 70))})
    stand = Reading(tmp_path, broker, topic)
    opened.append(stand)
    landed: list[int] = []
    waiting: list[int] = []
    while not waiting or waiting[-1]:
        landed += values_of(stand.land(limit_rows=30))
        waiting.append(stand.waiting["rows"][0])
    assert waiting == [40, 10, 0]
    assert sorted(landed) == list(range(70))


def test_a_reading_is_bounded_in_bytes(tmp_path: Path, broker: Broker, opened: list[Reading]) -> None:
    topic, size = broker.topic(2), len(f"{'k' * 10_000},{AT},10")
    broker.send(topic, {part: [f"{'k' * 10_000},{AT},{10 + row}" for row in range(20)] for part in (0, 1)})
    stand = Reading(tmp_path, broker, topic, max_bytes=5 * size)
    opened.append(stand)
    counts: list[int] = []
    while not counts or stand.waiting["rows"][0]:
        counts.append(len(values_of(stand.land())))
    assert sum(counts) == 40
    assert max(counts) <= 6
    assert len(counts) >= 7


def test_a_first_start_at_the_end_skips_what_is_there(tmp_path: Path, broker: Broker, opened: list[Reading]) -> None:
    topic = broker.topic()
    broker.send(topic, {0: csv_of(1, 2)})
    stand = Reading(tmp_path, broker, topic, start=Start.LATEST)
    opened.append(stand)
    assert values_of(stand.land()) == []
    broker.send(topic, {0: csv_of(3)})
    stand.feed.close()
    stand.open()
    assert values_of(stand.land()) == [3]


def test_new_partitions_are_read_from_their_beginning(tmp_path: Path, broker: Broker, opened: list[Reading]) -> None:
    topic = broker.topic()
    stand = Reading(tmp_path, broker, topic, start=Start.LATEST)
    opened.append(stand)
    stand.land()
    broker.grow(topic, 3)
    until(lambda: partitions_of(stand) == 3, "the new partitions are there")
    broker.send(topic, {2: csv_of(7)})
    sequence = stand.land()
    assert (values_of(sequence), ends_of(sequence)) == ([7], {"0": 0, "1": 0, "2": 1})


def test_expired_rows_stop_the_landing_unless_somebody_gives_them_up(
    tmp_path: Path, broker: Broker, opened: list[Reading]
) -> None:
    topic = broker.topic(2)
    broker.send(topic, {1: csv_of(0, 1)})
    stand = Reading(tmp_path, broker, topic)
    opened.append(stand)
    stand.land()
    broker.send(topic, {1: csv_of(2, 3, 4), 0: csv_of(9)})
    broker.expire(topic, 1, 4)
    with pytest.raises(
        OffsetsLostError, match="of partition 1 offsets 2 to 3 have expired: nothing was landed"
    ) as lost:
        stand.land()
    with pytest.raises(OffsetsLostError):
        stand.land()
    assert (lost.value.topic, lost.value.start, lost.value.end) == (topic, 2, 4)
    assert str(pickle.loads(pickle.dumps(lost.value))) == str(lost.value)
    stand.feed.close()
    stand.loss = Loss.ACCEPT
    stand.open()
    sequence = stand.land()
    assert values_of(sequence) == [9, 4]
    ((reason, action, _, raw),) = lines_of(sequence)
    facts = {"topic": topic, "partition": 1, "first": 2, "last": 3}
    assert (reason, action, json.loads(raw)) == ("offsets_lost", "noted", facts)


def test_a_topic_that_is_not_there_or_another_one_is_refused(
    tmp_path: Path, broker: Broker, opened: list[Reading]
) -> None:
    missing = Reading(tmp_path / "none", broker, "nowhere")
    topic = broker.topic(2)
    stand = Reading(tmp_path, broker, topic)
    opened += [missing, stand]
    with pytest.raises(TopicMissingError, match="has no `nowhere`: create it"):
        missing.land()
    broker.send(topic, {0: csv_of(1, 2)})
    stand.land()
    broker.remove(topic)
    until(lambda: is_missing(stand), "the topic is gone")
    broker.create(topic)
    until(lambda: not is_missing(stand), "the topic is there again")
    with pytest.raises(TopicReplacedError, match="it was made anew") as replaced:
        stand.land()
    assert str(pickle.loads(pickle.dumps(replaced.value))) == str(replaced.value)


def partitions_of(stand: Reading) -> int:
    """Count the partitions that answer; 0 where not all do."""
    try:
        return len(stand.feed._topic.bounds())
    except (TopicMissingError, kafka_topic.AwayError):
        return 0


def is_missing(stand: Reading) -> bool:
    return partitions_of(stand) == 0


def test_readings_go_on_while_the_broker_is_away_and_are_blind(
    tmp_path: Path, broker: Broker, opened: list[Reading], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_topic, "SECONDS", 1.0)
    topic = broker.topic()
    broker.send(topic, {0: csv_of(1)})
    stand = Reading(tmp_path, broker, topic)
    opened.append(stand)
    assert values_of(stand.land()) == [1]
    broker.stop()
    try:
        sequence = stand.land()
        assert (sequence.sources["rows"].blind_spans, values_of(sequence)) == (((10, 20),), [])
        assert (stand.waiting, ends_of(sequence)) == ({"rows": (0, (topic,))}, {"0": 1})
        assert stand.land().sources["rows"].blind_spans == ((20, 30),)
    finally:
        broker.start()
    broker.send(topic, {0: csv_of(2)})
    until(lambda: not is_missing(stand), "the broker answers again")
    sequence = stand.land()
    assert (sequence.sources["rows"].blind_spans, values_of(sequence)) == (((30, 40),), [2])
    assert stand.land().sources["rows"].blind_spans == ()
    assert [line.partition(" (")[0].rpartition(" ")[2] for line in stand.told] == ["connected", "away", "connected"]


def test_a_transaction_lands_when_it_is_committed(tmp_path: Path, broker: Broker, opened: list[Reading]) -> None:
    from confluent_kafka import Producer

    topic = broker.topic()
    stand = Reading(tmp_path, broker, topic)
    opened.append(stand)
    producer = Producer({**broker.client, "transactional.id": topic})
    producer.init_transactions(30)
    landed: list[int] = []

    def lands(value: int) -> bool:
        landed.extend(values_of(stand.land()))
        return value in landed

    for value, ends in ((1, producer.commit_transaction), (2, producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(topic, csv_of(value)[0])
        producer.flush(20)
        assert not lands(value), "nobody knows yet how it ends"
        assert stand.waiting == {"rows": (0, ())}, "a later reading cannot know more, so nobody is behind"
        ends(20)
        broker.send(topic, {0: csv_of(value + 10)})
        until(lambda later=value + 10: lands(later), "what comes behind it lands")  # type: ignore[misc]
    assert landed == [1, 11, 12]
    assert stand.waiting == {"rows": (0, ())}


GUARDED = """\
# As Kafka's own tools take it.
security.protocol=SASL_PLAINTEXT
sasl.mechanism = PLAIN
sasl.username=pulseline
sasl.password=${env:PULSELINE_TEST_PASSWORD}
"""


def guarded(base: Path, broker: Broker, topic: str, told: list[str]) -> KafkaFeed:
    """Open a topic behind the listener that asks who one is."""
    spec = KafkaSpec(
        paths=(topic,),
        brokers=(f"127.0.0.1:{broker.guarded}",),
        client="kafka.properties",
        format="csv",
        types=TYPES,
    )
    return KafkaFeed(
        Source(name="rows", feed=spec, key=("key",), time="time"), base, told.append, base=base, now=lambda: 0
    )


@pytest.mark.parametrize(("password", "rows"), [(PASSWORD, 2), ("guessed", 0)])
def test_brokers_that_ask_who_one_is_are_told_by_the_clients_properties(
    tmp_path: Path, broker: Broker, monkeypatch: pytest.MonkeyPatch, password: str, rows: int
) -> None:
    topic, told = broker.topic(), list[str]()
    broker.send(topic, {0: csv_of(1, 2)})
    (tmp_path / "kafka.properties").write_text(GUARDED)
    monkeypatch.setenv("PULSELINE_TEST_PASSWORD", password)
    feed = guarded(tmp_path, broker, topic, told)
    try:
        assert feed.arrive(source_feed.Reading(0, 10), SourceProgress()).rows.num_rows == rows
    finally:
        feed.close()
    assert any("away" in line for line in told) == (rows == 0), told


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot: No such file or directory"),
        ("sasl.username", "has none in line 1"),
        ("\nbootstrap.servers=elsewhere:9092", "sets `bootstrap.servers` in line 2: take it out"),
        ("enable.auto.commit=true", "sets `enable.auto.commit` in line 1: take it out"),
        ("sasl.username=a\nsasl.username=b", "has `sasl.username` again in line 2"),
        ("sasl.password=${file:secret}", "has others in line 1"),
        ("sasl.password=${env:NOBODY_SET_THIS}", "names `NOBODY_SET_THIS` in line 1, which is not set: export it"),
    ],
)
def test_properties_that_cannot_be_used_are_refused_before_anybody_connects(
    tmp_path: Path, broker: Broker, text: str | None, said: str
) -> None:
    if text is not None:
        (tmp_path / "kafka.properties").write_text(text)
    with pytest.raises(ClientFileError) as error:
        guarded(tmp_path, broker, "nothing", [])
    assert said in str(error.value)


def test_properties_that_are_no_text_are_refused(tmp_path: Path, broker: Broker) -> None:
    (tmp_path / "kafka.properties").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ClientFileError, match=r"in UTF-8; .* is not"):
        guarded(tmp_path, broker, "nothing", [])


def test_a_property_that_the_client_does_not_know_is_told_in_its_words(tmp_path: Path, broker: Broker) -> None:
    (tmp_path / "kafka.properties").write_text("of.nobody=1\n")
    with pytest.raises(ClientRefusedError, match=r"librdkafka; it says: .*of\.nobody"):
        guarded(tmp_path, broker, "nothing", [])


def test_no_row_arrives_before_the_topic_was_seen_to_hold_it(
    tmp_path: Path, broker: Broker, opened: list[Reading]
) -> None:
    topic = broker.topic()
    stand = Reading(tmp_path, broker, topic)
    opened.append(stand)
    stand.now = 15
    broker.send(topic, {0: csv_of(1, 2)})
    assert values_of(stand.land()) == [], "planned at 10, and the brokers were asked at 15"
    assert stand.waiting == {"rows": (0, (topic,))}
    stand.now = 25
    broker.send(topic, {0: csv_of(3, 4)})
    assert values_of(stand.land()) == [1, 2], "3 and 4 may have come after 20"
    stand.now = 29
    broker.send(topic, {0: csv_of(5)})
    assert values_of(stand.land()) == [3, 4, 5]
    stand.now = 31
    assert stand.feed.look(SourceProgress()) == 31
    broker.send(topic, {0: csv_of(6)})
    assert values_of(stand.land()) == [], "it came behind the look"
    stand.now = 5
    assert values_of(stand.land()) == [6], "a clock that is set back moves no look before another"
    assert ends_of(stand.land()) == {"0": 6}


@pytest.mark.parametrize(
    "name", ["sasl.oauthbearer.method", "security.protocol", "ssl.endpoint.identification.algorithm"]
)
def test_a_secret_under_a_wrong_name_is_not_repeated(name: str) -> None:
    topic = Topic("rows", "nothing", "127.0.0.1:1", {name: "hunter2!"})
    assert "hunter2!" not in repr(topic)
    with pytest.raises(ClientRefusedError, match=rf"it says: Invalid value \"…\" .*{re.escape(name)}") as caught:
        topic.check()
    assert "hunter2!" not in "".join(traceback.format_exception(caught.value))


def test_what_the_client_says_keeps_its_own_words_and_no_value() -> None:
    client = {
        "sasl.username": "sasl",
        "sasl.password": "a b+c(",
        "x": "1",
        "sasl.oauthbearer.config": "secret=deep7 n=2",
    }
    said = "sasl.username of sasl: `a b+c(` at 127.0.0.1, 1 beginning at: deep7."
    assert withheld(said, client) == "sasl.username of …: `…` at 127.0.0.1, … beginning at: …."
    assert withheld("SASL_SSL handshake failed", {"security.protocol": "SASL_SSL"}) == "SASL_SSL handshake failed"
