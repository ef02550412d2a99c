"""A proxy in front of a store: it counts what passes, and disturbs it where it is told to."""

from __future__ import annotations

import http.client
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pipelines.jobs.proofs.emulator import HERE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NOT_PASSED_ON = frozenset({"connection", "transfer-encoding", "content-length", "keep-alive"})
PATIENCE = 60


class StoreFault(Enum):
    """What happens to one call."""

    LOST = "lost"
    """It is done, and its answer never comes."""
    LATE = "late"
    """It is done, and the answer says that the store failed."""
    CUT = "cut"
    """It is done, and its answer ends in the middle."""
    CONFLICT = "409"
    REFUSED = "412"
    FAILED = "500"
    BUSY = "503"
    """These four: nothing is done, and the answer says so."""
    SLOW = "slow"
    """It is done after a while."""
    EXPIRED = "expired"
    """Nothing is done, for the credentials are too old."""


SAID = {
    StoreFault.LATE: (500, "InternalError"),
    StoreFault.CONFLICT: (409, "ConditionalRequestConflict"),
    StoreFault.REFUSED: (412, "PreconditionFailed"),
    StoreFault.FAILED: (500, "InternalError"),
    StoreFault.BUSY: (503, "SlowDown"),
    StoreFault.EXPIRED: (400, "ExpiredToken"),
}
DONE = frozenset({StoreFault.LOST, StoreFault.LATE, StoreFault.CUT, StoreFault.SLOW})


class StoreCall(NamedTuple):
    """One call of a store."""

    method: str
    path: str
    is_conditional: bool


class Disturbing(Protocol):
    """Says what happens to calls."""

    def __call__(self, call: StoreCall) -> StoreFault | None:
        """Say what happens to one; nothing where it is let through."""


class StoreAnswer(NamedTuple):
    """What a store said."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Say nothing of those who went away: processes are killed here."""


class StoreProxy:
    """What listens here, and what has passed it.

    Args:
        behind: port of the store.
    """

    def __init__(self, behind: int) -> None:
        """Listen to nobody yet."""
        self.calls: Counter[str] = Counter()
        """By method, and for those that list `LIST`."""
        self.sent = self.got = 0
        """Bytes of bodies to the store and from it."""
        self.paths: list[str] = []
        """Of all calls, behind their method."""
        self.faults: Counter[str] = Counter()
        self.disturbing: Disturbing | None = None
        self.slow = 0.3
        """Seconds of a slow answer."""
        self._behind, self._lock, self._own = behind, threading.Lock(), threading.local()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def passed(self) -> None:
                proxy._pass(self)

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = passed  # noqa: N815 - as the server looks for them

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = _Server((HERE, 0), Handler)
        self.port = int(self._server.server_address[1])

    @contextmanager
    def listening(self) -> Iterator[StoreProxy]:
        """Let calls pass while the block runs."""
        thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()

    def counted(self) -> tuple[Counter[str], int, int]:
        """Give calls by method and the bytes of both ways since this was last asked."""
        with self._lock:
            found = self.calls, self.sent, self.got
            self.calls, self.sent, self.got, self.paths = Counter(), 0, 0, []
        return found

    def _pass(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("content-length") or 0))
        conditional = "if-none-match" in handler.headers or "if-match" in handler.headers
        call = StoreCall(handler.command, handler.path, conditional)
        with self._lock:
            kind = "LIST" if call.method == "GET" and "list-type" in call.path else call.method
            self.calls[kind] += 1
            self.sent += len(body)
            self.paths.append(f"{kind} {call.path}")
            fault = self.disturbing(call) if self.disturbing else None
            if fault:
                self.faults[fault.value] += 1
        with suppress(ConnectionError):
            self._answered(handler, fault, body)

    def _answered(self, handler: BaseHTTPRequestHandler, fault: StoreFault | None, body: bytes) -> None:
        if fault is StoreFault.SLOW:
            time.sleep(self.slow)
        answer = self._asked(handler, body) if fault is None or fault in DONE else None
        if fault in SAID:
            status, code = SAID[fault]
            answer = StoreAnswer(status, {}, f"<Error><Code>{code}</Code></Error>".encode())
        if answer is None or fault is StoreFault.LOST:
            handler.close_connection = True
            return
        handler.send_response(answer.status)
        for name, value in answer.headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", answer.headers.get("x-whole", str(len(answer.body))))
        handler.end_headers()
        if fault is StoreFault.CUT:
            handler.wfile.write(answer.body[: len(answer.body) // 2])
            handler.close_connection = True
            return
        handler.wfile.write(answer.body)
        with self._lock:
            self.got += len(answer.body)

    def _asked(self, handler: BaseHTTPRequestHandler, body: bytes) -> StoreAnswer:
        asked = http.client.HTTPConnection(HERE, self._behind, timeout=PATIENCE)
        try:
            headers = {name: value for name, value in handler.headers.items() if name.lower() not in NOT_PASSED_ON}
            asked.request(handler.command, handler.path, body or None, {**headers, "Content-Length": str(len(body))})
            said = asked.getresponse()
            kept = {name: value for name, value in said.getheaders() if name.lower() not in NOT_PASSED_ON}
            if handler.command == "HEAD":
                kept["x-whole"] = said.getheader("content-length") or "0"
            return StoreAnswer(said.status, kept, said.read())
        finally:
            asked.close()
