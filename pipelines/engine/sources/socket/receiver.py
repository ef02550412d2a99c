"""The thread that listens to a socket: it connects, again and again, and hands what comes to the spool."""

from __future__ import annotations

import socket
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipelines.engine.sources.socket.spool import Spool

FIRST_WAIT, LONGEST_WAIT = 0.1, 30.0
"""Seconds between two attempts to connect: each wait is twice the one before."""
CONNECT_SECONDS = 5.0
LOOK_SECONDS = 0.2
"""How often a silent connection is left to see whether to stop."""
PIECE = 1 << 18
"""Bytes that are received and put on disk at once, at most."""
ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""A peer that is silent for 30 s is asked whether it lives, and taken for dead after three questions, 10 s apart."""
STOPPED = "the stream was stopped"


@dataclass
class Receiver:
    """Listens to one address.

    Args:
        host: to connect to.
        port: to connect to.
        spool: takes what comes.
        tell: told each time that the connection changes: a word for its state, and why.
    """

    host: str
    port: int
    spool: Spool
    tell: Callable[[str, str], None]
    first_wait: float = FIRST_WAIT
    error: BaseException | None = None
    """What ended the thread; whoever lands raises it."""
    _asked: Event = field(default_factory=Event)
    _thread: Thread | None = None

    def start(self) -> None:
        """Begin to listen."""
        self._thread = Thread(target=self._run, name=f"socket-{self.host}-{self.port}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Hang up, and wait until what came is on disk."""
        self._asked.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        wait = self.first_wait
        try:
            while not self._asked.is_set():
                before = self.spool.end
                why = self._listen()
                wait = self.first_wait if self.spool.end > before else wait
                if self._asked.is_set():
                    break
                self.tell("waiting", f"{why}; the next attempt is in {wait:g} s")
                self._asked.wait(wait)
                wait = min(2 * wait, LONGEST_WAIT)
        except BaseException as error:  # noqa: BLE001 - whoever lands raises it
            self.error = error
        self.tell("stopped", "" if self.error is None else str(self.error))

    def _listen(self) -> str:
        """Connect, and receive until the connection ends; say why it did."""
        self.tell("connecting", "")
        try:
            connection = socket.create_connection((self.host, self.port), CONNECT_SECONDS)
        except OSError as error:
            return f"{self.host}:{self.port} cannot be reached ({error})"
        with connection:
            _keep_alive(connection)
            self.spool.connected()
            self.tell("connected", "")
            why = self._receive(connection)
            self.spool.broken(why)
        return why

    def _receive(self, connection: socket.socket) -> str:
        connection.settimeout(LOOK_SECONDS)
        is_full = False
        while not self._asked.is_set():
            room = self.spool.room(LOOK_SECONDS)
            if (room == 0) is not is_full:
                is_full = room == 0
                self.tell("full" if is_full else "connected", "")
            if is_full:
                continue
            try:
                data = connection.recv(min(PIECE, room))
            except TimeoutError:
                continue
            except OSError as error:
                return f"the connection broke ({error})"
            if not data:
                return "the other side hung up"
            self.spool.append(data)
        return STOPPED


def _keep_alive(connection: socket.socket) -> None:
    """Have the system see to it that a peer which vanished is noticed; it says nothing of its own."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in ALIVE.items():
        with suppress(AttributeError, OSError):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
