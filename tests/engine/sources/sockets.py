"""A sender for tests: a TCP server that sends what it is told to, and hangs up when it is told to."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pipelines.engine.landing.index import Landing
from pipelines.engine.sources.opening import Loss
from pipelines.engine.sources.socket.feed import SocketFeed
from pipelines.flows.feeds.socket import SocketSpec
from pipelines.flows.model import Flow, Source

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipelines.engine.landing.sequence import LandedSequence
    from pipelines.engine.sources.socket.spool import Spool

TYPES = {"key": "string", "time": "timestamp", "v": "int64"}
AT = "2013-01-01T00:00:00Z"
HANG_UP = struct.pack("ii", 1, 0)
"""SO_LINGER: end the connection at once, whatever is under way."""


def until(is_so: Callable[[], bool], what: str, seconds: float = 10.0) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, what
        time.sleep(0.005)


class Sender:
    """Listens on a port of this machine; `accept` waits for whoever connects."""

    def __init__(self, port: int = 0) -> None:
        self._server = socket.create_server(("127.0.0.1", port))
        self._server.settimeout(10)
        self.port: int = self._server.getsockname()[1]
        self.connection: socket.socket | None = None

    def accept(self) -> Sender:
        """Wait for a connection."""
        self.connection, _ = self._server.accept()
        return self

    def send(self, data: str | bytes) -> None:
        """Send bytes over the connection."""
        assert self.connection is not None
        self.connection.sendall(data if isinstance(data, bytes) else data.encode())

    def send_what_is_taken(self, data: bytes) -> int:
        """Send until the other side takes no more for half a second; say how much it took."""
        assert self.connection is not None
        self.connection.settimeout(0.5)
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < len(data):
                sent += self.connection.send(data[sent:])
        return sent

    def hang_up(self) -> None:
        """End the connection in order."""
        assert self.connection is not None
        self.connection.close()

    def drop(self) -> None:
        """End the connection without a word."""
        assert self.connection is not None
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, HANG_UP)
        self.connection.close()

    def close(self) -> None:
        """Listen no more."""
        self._server.close()
        if self.connection is not None:
            self.connection.close()


def socket_flow(port: int, form: str = "csv", types: dict[str, str] | None = None, max_bytes: int = 1 << 20) -> Flow:
    spec = SocketSpec(paths=(f"127.0.0.1:{port}",), format=form, types=types or TYPES, max_bytes=max_bytes)
    source = Source(name="rows", feed=spec, key=("key",), time="time")
    return Flow(name="f", sources={"rows": source}, streams={}, buckets=3)


@dataclass
class Listening:
    """A landing of one socket; `reading` is ten ticks later each time, and the wall clock is told, not read."""

    base: Path
    flow: Flow
    reading: int = 0
    now: int = 0
    loss: Loss = Loss.STOP
    told: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.open()

    def open(self) -> None:
        """Open the feed anew, as another process would."""
        self.landing = Landing(self.base / "landing")
        source = self.flow.sources["rows"]
        self.feed = SocketFeed(source, self.base, self.told.append, self.loss, lambda: self.now)

    def start(self) -> None:
        """Begin to listen."""
        self.feed.listen(self.landing.known("rows"))

    @property
    def spool(self) -> Spool:
        """Give the spool that is open."""
        assert self.feed._spool is not None
        return self.feed._spool

    def connect(self, sender: Sender) -> None:
        """Begin to listen to a sender, and wait until both know."""
        self.start()
        sender.accept()
        until(lambda: self.spool.is_connected, "the connection is noted")

    def spooled(self, upto: int) -> None:
        """Wait until the spool has taken so many bytes in all."""
        spool = self.spool
        until(lambda: spool.end >= upto, f"{upto} bytes in the spool, which has {spool.end}")

    def land(self, limit_rows: int | None = None) -> LandedSequence:
        """Land one reading."""
        self.reading += 10
        feeds = {"rows": self.feed}
        sequence, self.waiting = self.landing.land(
            self.flow, self.reading - 10, self.reading, feeds, limit_rows=limit_rows
        )
        assert sequence is not None, "nothing rests here"
        return sequence
