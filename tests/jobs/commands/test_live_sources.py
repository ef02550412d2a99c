"""A flow live from a socket or a topic of Kafka: published rows through stops and kills, each once, on Spark or not."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pytest

from pipelines.engine.columnar.clock import wall_now
from pipelines.engine.commits.readers import read_ledger, read_stream
from pipelines.engine.sources.socket.spool_files import read_segments
from pipelines.engine.tasks.local import CoreEngine
from pipelines.flows.reading import read_flow
from pipelines.jobs.commands.flows import show_flow, validate_flow
from pipelines.jobs.commands.stream import Live, run_live
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.words.live import _state_text
from tests.engine.sources.sockets import AT, Sender
from tests.forked import ended
from tests.laws.killed_live import live
from tests.laws.test_kills import assert_nothing_twice

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import LentSpark
    from tests.engine.sources.broker import Broker

CHECKOUT = Path(__file__).parents[3]
FLOW = """\
flow: lines
sources:
  lines:
    feed: {{socket: "127.0.0.1:{port}", format: csv, types: {{k: string, t: timestamp, v: int64}}}}
    key: k
    time: t
streams:
  beating: {{heartbeat: lines, interval: 1h}}
"""
KILLS = (("spool", 20), ("tasks", 5))


class Talking:
    """A sender that sends numbered lines to whoever listens, from a thread."""

    def __init__(self, sender: Sender) -> None:
        self.sender, self.sent = sender, 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._talk, daemon=True)
        self._thread.start()

    def _talk(self) -> None:
        while not self._ended.is_set():
            try:
                self.sender.accept()
                while not self._ended.wait(0.01):
                    self.sender.send("".join(f"k,{AT},{value}\n" for value in range(self.sent, self.sent + 20)))
                    self.sent += 20
            except OSError:
                continue

    def end(self) -> None:
        """Fall silent."""
        self._ended.set()
        self.sender.close()
        self._thread.join()


def begun(base: Path) -> Sender:
    sender = Sender()
    (base / "flow.yaml").write_text(FLOW.format(port=sender.port))
    return sender


def stopping(told: list[str], is_enough: Callable[[], bool]) -> Callable[[str], None]:
    """Keep what a stream tells, and stop it cleanly once it has published enough."""
    asked: list[str] = []

    def tell(line: str) -> None:
        told.append(line)
        if not asked and "rows/s" in line and is_enough():
            asked.append(line)
            os.kill(os.getpid(), signal.SIGTERM)

    return tell


def published(root: Path) -> list[int]:
    rows = read_stream(root, "beating")
    values: list[int] = (
        rows.filter(pc.equal(rows["kind"], "data"))
        .sort_by([("arrival", "ascending"), ("place", "ascending")])["v"]
        .to_pylist()
    )
    return values


def killed(base: Path, point: str, skip: int) -> None:
    """Run the flow of a folder in a process that dies at a point."""
    code, said = ended("tests.laws.killed_live", str(base), "main", point, str(skip))
    assert code == -signal.SIGKILL, said


def spooled(root: Path) -> set[int]:
    """Give the values of whole lines that a spool holds."""
    found: set[int] = set()
    folder = root / "spool" / "lines"
    for segment in read_segments(folder)[0]:
        data = b"".join(append.data for append in segment.appends(folder))
        found |= {int(line.split(b",")[2]) for line in data.split(b"\n")[1:-1] if line.count(b",") == 2}
    return found


def test_what_was_spooled_is_published_once_through_kills(tmp_path: Path) -> None:
    talking = Talking(begun(tmp_path))
    root, heard = tmp_path / "runs" / "main", set()
    for point, skip in KILLS:
        killed(tmp_path, point, skip)
        heard |= spooled(root)
    turns = iter(range(5))
    live(tmp_path, "main", CoreEngine(), lambda: next(turns, None) is None)
    talking.end()
    values = published(root)
    assert values == sorted(set(values)), "nothing twice, all in the order of the lines"
    assert len(heard) > 100
    assert heard <= set(values), "what reached the spool is published"
    gone = set(range(max(values))) - set(values)
    assert len([value for value in gone if value - 1 not in gone]) <= len(KILLS), "only what no connection brought"
    lines = read_ledger(root)
    assert lines["reason"].to_pylist().count("disconnected") == len(KILLS)
    assert set(lines["reason"].to_pylist()) <= {"disconnected", "unfinished_line"}
    assert_nothing_twice(root)


STAMPED = FLOW.replace("v: int64", "at: int64")


def stamping(sender: Sender, is_ended: threading.Event) -> None:
    """Send lines that say when they were sent to whoever listens."""
    while not is_ended.is_set():
        try:
            sender.accept()
            while not is_ended.wait(0.01):
                sender.send(f"k,{AT},{wall_now()}\n" * 5)
        except OSError:
            continue


def test_no_row_arrives_before_it_was_sent_whenever_its_reading_was_planned(tmp_path: Path) -> None:
    """Three kills, each with a reading planned that the next process lands, and that one's first is slow: a cold start.

    The very lines that a sender stamped, through a real socket; before this was mended half of them came too early.
    """
    sender, is_ended = Sender(), threading.Event()
    (tmp_path / "flow.yaml").write_text(STAMPED.format(port=sender.port))
    thread = threading.Thread(target=stamping, args=(sender, is_ended), daemon=True)
    thread.start()
    for readings in ("2", "2", "1", "4"):
        code, said = ended("tests.laws.planned_live", str(tmp_path), "main", readings, "0.7")
        assert code == -signal.SIGKILL, said
    is_ended.set()
    sender.close()
    thread.join()
    rows = read_stream(tmp_path / "runs" / "main", "beating")
    rows = rows.filter(rows["at"].is_valid())
    arrivals, sent = rows["arrival"].cast("int64").to_numpy(), rows["at"].to_numpy()
    early = int((arrivals < sent).sum())
    assert rows.num_rows > 300
    assert early == 0, f"{early} of {rows.num_rows} rows, by up to {(sent - arrivals).max() / 1e6:.2f} s"
    assert rows["place"].to_numpy().min() == 1
    assert_nothing_twice(tmp_path / "runs" / "main")


TOPIC = """\
flow: values
sources:
  values:
    feed: {{kafka: {topic}, brokers: "{brokers}", format: csv, types: {{k: string, t: timestamp, v: int64}}}}
    key: k
    time: t
streams:
  beating: {{heartbeat: values, interval: 1h}}
"""


def test_a_topic_is_published_once_through_a_kill(tmp_path: Path, broker: Broker) -> None:
    topic = broker.topic(3)
    (tmp_path / "flow.yaml").write_text(TOPIC.format(topic=topic, brokers=broker.address))
    rows = [f"k,{AT},{value}" for value in range(400)]
    broker.send(topic, {partition: rows[partition:200:3] for partition in range(3)})
    killed(tmp_path, "tasks", 0)
    broker.send(topic, {partition: rows[200 + partition :: 3] for partition in range(3)})
    turns = iter(range(5))
    live(tmp_path, "main", CoreEngine(), lambda: next(turns, None) is None)
    root = tmp_path / "runs" / "main"
    assert sorted(published(root)) == list(range(400))
    assert read_ledger(root).num_rows == 0
    assert_nothing_twice(root)


def test_a_socket_live_on_spark_goes_on_after_a_stop(tmp_path: Path, spark: LentSpark) -> None:
    talking = Talking(begun(tmp_path))
    told: list[str] = []
    live = Live(
        flow=read_flow(tmp_path / "flow.yaml", {}),
        root=tmp_path / "main",
        base=tmp_path,
        spark=spark,
        trigger=200_000,
        lasts=60.0,
    )
    run_live(live, stopping(told, lambda: read_stream(live.root, "beating").num_rows > 0))
    first = published(live.root)
    run_live(live, stopping(told, lambda: read_ledger(live.root).num_rows > 0))
    talking.end()
    values = published(live.root)
    assert 0 < len(first) < len(values)
    assert values == sorted(set(values))
    assert read_ledger(live.root)["reason"].to_pylist() == ["disconnected"]
    assert [line for line in told if line.startswith("source lines: connected to")]


@pytest.mark.parametrize("name", ["pumps_socket", "pumps_kafka"])
def test_the_examples_are_valid(name: str) -> None:
    told: list[str] = []
    file = f"docs/example/{name}.yaml"
    validate_flow(str(CHECKOUT / file), told.append)
    show_flow(str(CHECKOUT / file), told.append)
    assert any(f"{name} is valid, nothing to complain about" in line for line in told)
    assert any("a row arrives when it lands" in line for line in told)


def test_status_says_how_a_connection_is() -> None:
    state = {"address": "sensors:1", "state": "waiting", "why": "the other side hung up", "since_at": 1_000_000}
    line = _state_text("lines", state | {"waiting_bytes": 5_000, "max_bytes": 9_000}, 62_000_000)
    assert line == (
        "lines: sensors:1 waiting, since 1 m 1 s ago (the other side hung up); "
        "5,000 of 9,000 bytes of the spool wait to be landed"
    )
    topic = {"address": "t of b:1", "state": "connected", "why": "", "since_at": 1, "waiting_rows": 1, "partitions": 3}
    assert (
        _state_text("rows", topic, 1_000_001) == "rows: t of b:1 connected, since 1 s ago; 1 row waits in 3 partitions"
    )
    silent = {"address": "sensors:1", "state": "silent", "why": "", "since_at": 0, "waiting_bytes": 0, "max_bytes": 9}
    assert _state_text("lines", silent, 1).startswith("lines: sensors:1 silent; "), "nobody ever listened"


def test_a_folder_is_caught_up_when_what_lay_in_it_is_published_however_often_it_starts(
    tmp_path: Path, spark: LentSpark
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "flow.yaml").write_text(
        "flow: caught\nsources:\n  rows: {feed: {folder: in, format: csv, "
        "types: {v: int64, k: string, at: timestamp}}, key: k, time: at}\n"
        "streams:\n  once: {deduplicate: rows, on: v, within: 1d}\n"
    )
    wanted = Live(
        flow=read_flow(tmp_path / "flow.yaml"),
        root=tmp_path / "main",
        base=tmp_path,
        spark=spark,
        trigger=200_000,
        until_caught_up=True,
    )
    for turn in range(2):
        rows = "".join(f"{turn * 10 + number},k,2026-01-01T00:00:00Z\n" for number in range(10))
        (tmp_path / "in" / f"{turn}.csv").write_text("v,k,at\n" + rows)
        run_live(wanted, lambda _: None)
        assert sorted(read_stream(wanted.root, "once")["v"].to_pylist()) == list(range(turn * 10 + 10))


def test_a_socket_never_says_what_is_there(tmp_path: Path, spark: LentSpark) -> None:
    sender = begun(tmp_path)
    flow = read_flow(tmp_path / "flow.yaml", {})
    wanted = Live(flow=flow, root=tmp_path / "main", base=tmp_path, spark=spark, available_now=True)
    with pytest.raises(WrongUse, match="a socket never says what is"):
        run_live(wanted, lambda _: None)
    sender.close()
