"""The store of tests is believed only once its conditional writes were seen to exclude."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.proofs.emulator import HERE, KEYS, WRITERS, require_exclusion

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Lenient(BaseHTTPRequestHandler):
    """A store that lets every write through, or those alone that replace."""

    refused: frozenset[str] = frozenset()
    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        """Take what comes, unless its condition is one of the refused."""
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(412 if any(name in self.headers for name in self.refused) else 200)
        self.send_header("ETag", '"same"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    """As many may knock at once as do."""

    request_queue_size = 2 * WRITERS


@contextmanager
def listening(refused: frozenset[str]) -> Iterator[int]:
    with Server((HERE, 0), type("Store", (Lenient,), {"refused": refused})) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield int(server.server_address[1])
        server.shutdown()


@pytest.mark.parametrize(
    ("refused", "told"),
    [
        (frozenset[str](), f"{WRITERS} and {WRITERS} did"),
        (frozenset({"If-None-Match"}), f"0 and {WRITERS} did"),
        (frozenset({"If-None-Match", "If-Match"}), "0 and 0 did"),
    ],
)
def test_a_store_that_does_not_exclude_is_not_used(refused: frozenset[str], told: str) -> None:
    with listening(refused) as port, pytest.raises(WrongUse, match=told):
        require_exclusion(port)


def test_the_emulator_excludes(bucket: Mapping[str, str]) -> None:
    assert KEYS > 1
    require_exclusion(int(bucket["AWS_ENDPOINT_URL"].rpartition(":")[2]))
