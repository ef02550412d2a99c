"""Who sends rows to a drilled stream: files into a folder, lines over a socket, values into a topic, in bursts."""

from __future__ import annotations

import contextlib
import random
import socket
import threading
import time
import uuid
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pipelines.jobs.drill.shapes import FeedShape, Row

LOOKS = 0.02
"""Seconds after which a sender without a listener looks again."""
PARTITIONS = 3
SLOW = 0.3
"""Seconds that a burst may take."""
ANSWERS = 20.0
"""Seconds that brokers have to answer."""


class Sender:
    """Sends the bursts of a shape from a thread of its own, and knows what it sent.

    Args:
        shape: of the rows, and how they come.
        number: the seed.
    """

    def __init__(self, shape: FeedShape, number: int) -> None:
        self.shape, self._drawn = shape, random.Random(number)  # noqa: S311 - to be drawn again
        self.sent: list[Row] = []
        """All rows that were sent; each says when."""
        self.slow: set[int] = set()
        """Numbers of the rows that took a while from their drawing to their place: they were late, whoever looked."""
        self.over = threading.Event()
        """Set when the last row was sent."""
        self.failed = ""
        self.is_alive = False
        """Whether it has begun."""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._talk, daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self.is_alive = True
        self._thread.start()

    def close(self) -> None:
        """End it, wherever it is."""
        self._ended.set()
        if self.is_alive:
            self._thread.join(ANSWERS)

    def place(self) -> dict[str, Any]:
        """Give where the feed is, under the keys of a flow's feed."""
        raise NotImplementedError

    def _send(self, rows: Sequence[Row]) -> None:
        """Send a burst."""
        raise NotImplementedError

    def _talk(self) -> None:
        try:
            for pause, count in self.shape.bursts:
                if self._ended.wait(pause):
                    return
                self._burst(count)
        except Exception as problem:  # noqa: BLE001 - a sender that failed is told as what was wrong with the seed
            self.failed = f"the sender failed: {type(problem).__name__}: {problem}"
        self.over.set()

    def _burst(self, count: int) -> None:
        rows = self.shape.rows(self._drawn, len(self.sent), count)
        drawn = time.monotonic()
        self._send(rows)
        if time.monotonic() - drawn > SLOW:
            self.slow |= set(range(len(self.sent), len(self.sent) + count))
        self.sent += rows


class FolderSender(Sender):
    """Puts a file into a folder for each burst, whole at once."""

    def __init__(self, shape: FeedShape, number: int, base: Path) -> None:
        super().__init__(shape, number)
        self.folder = base / "inbox"
        self.folder.mkdir(parents=True)

    def place(self) -> dict[str, Any]:
        """Give the folder."""
        return {"folder": "inbox"}

    def _send(self, rows: Sequence[Row]) -> None:
        draft = self.folder / f"{len(self.sent):06}.part"
        draft.write_bytes(self.shape.file(rows))
        draft.rename(draft.with_suffix(f".{self.shape.format}"))


class SocketSender(Sender):
    """Listens on a port and sends lines to whoever connects; what nobody took is not sent again."""

    def __init__(self, shape: FeedShape, number: int) -> None:
        super().__init__(shape, number)
        self._server = socket.create_server(("127.0.0.1", 0))
        self._server.settimeout(LOOKS)
        self._peer: socket.socket | None = None
        self.last = 0
        """Number of the first row of the newest connection."""
        self.accepted = 0.0
        """When that began, by the monotonic clock."""

    def place(self) -> dict[str, Any]:
        """Give the address."""
        return {"socket": f"127.0.0.1:{self._server.getsockname()[1]}"}

    def close(self) -> None:
        """Listen no more."""
        super().close()
        self._server.close()
        self._hang_up()

    def _send(self, rows: Sequence[Row]) -> None:
        data = "".join(f"{line}\n" for line in self.shape.text(rows)).encode()
        while not self._ended.is_set():
            peer = self._listener(int(rows[0][self.shape.of("number").name]))
            try:
                if peer is not None and not _is_gone(peer):
                    peer.settimeout(ANSWERS)
                    peer.sendall(data)
                    return
            except OSError:
                # A part may have been taken: what was sent counts as sent, and is never sent again.
                self._hang_up()
                return
            self._hang_up()

    def _listener(self, first: int) -> socket.socket | None:
        if self._peer is None:
            with contextlib.suppress(TimeoutError):
                self._peer, _ = self._server.accept()
                self.last, self.accepted = first, time.monotonic()
        return self._peer

    def _hang_up(self) -> None:
        if self._peer is not None:
            self._peer.close()
            self._peer = None

    def _burst(self, count: int) -> None:
        # A row is stamped when it is sent, which may be long after somebody was to listen.
        while not self._ended.is_set() and self._listener(len(self.sent)) is None:
            pass
        super()._burst(count)

    def finish(self) -> None:
        """Hang up in order, so that whoever listens takes all."""
        self._hang_up()


class KafkaSender(Sender):
    """Sends values to a topic of its own; each is acknowledged."""

    def __init__(self, shape: FeedShape, number: int, brokers: str) -> None:
        from confluent_kafka import Producer
        from confluent_kafka.admin import AdminClient
        from confluent_kafka.cimpl import NewTopic

        super().__init__(shape, number)
        self._brokers, self.topic = brokers, f"pulseline-drill-{number}-{uuid.uuid4().hex[:6]}"
        client: dict[str, Any] = {"bootstrap.servers": brokers, "log_level": 0}
        self._admin = AdminClient(client)
        made = self._admin.create_topics([NewTopic(self.topic, num_partitions=PARTITIONS, replication_factor=1)])
        made[self.topic].result(ANSWERS)
        self._producer = Producer({**client, "enable.idempotence": True, "linger.ms": 1})

    def place(self) -> dict[str, Any]:
        """Give the topic."""
        return {"kafka": self.topic, "brokers": self._brokers}

    def close(self) -> None:
        """Remove the topic."""
        super().close()
        self._admin.delete_topics([self.topic])[self.topic].result(ANSWERS)

    def _send(self, rows: Sequence[Row]) -> None:
        key = self.shape.of("key").name
        for row, value in zip(rows, self.shape.text(rows), strict=True):
            self._producer.produce(self.topic, value, partition=self.shape.keys.index(row[key]) % PARTITIONS)
        left = self._producer.flush(ANSWERS)
        if left:
            raise TimeoutError(f"{left} rows were not acknowledged")


def _is_gone(peer: socket.socket) -> bool:
    """Say whether the other side has hung up."""
    peer.settimeout(0.0)
    try:
        return not peer.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
