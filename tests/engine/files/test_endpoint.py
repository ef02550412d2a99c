"""What is said of an endpoint that cannot be asked: nobody there, no such host, no TLS, or no answer."""

from __future__ import annotations

import socket
import threading

import pytest

from pipelines.engine.files.endpoint import why_unreached
from pipelines.engine.files.stored import told


def test_nobody_listens_and_no_such_host() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        refused = why_unreached(f"http://127.0.0.1:{port}")
    assert refused == f"127.0.0.1:{port} of AWS_ENDPOINT_URL cannot be reached: Connection refused"
    assert why_unreached("http://me:hush@nowhere.invalid:9").startswith("nowhere.invalid:9 of AWS_ENDPOINT_URL cannot")
    assert "cannot be reached" in why_unreached("http://127.0.0.1:99999")


@pytest.mark.parametrize(
    ("scheme", "why"), [("http", "takes a connection, and answers no request"), ("https", "speaks no TLS, which")]
)
def test_who_listens_and_is_no_store(scheme: str, why: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as there:
        answering = threading.Thread(target=answer, args=(there,))
        answering.start()
        assert why in why_unreached(f"{scheme}://127.0.0.1:{there.getsockname()[1]}")
        answering.join()


def answer(there: socket.socket) -> None:
    """Answer one connection as a web server without TLS does."""
    taken, _ = there.accept()
    with taken:
        taken.settimeout(5)
        if taken.recv(1024):
            taken.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def test_a_request_that_was_not_sent_is_told_by_its_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    said = "Generic S3 error: Error performing list request: HTTP error: error sending request"
    assert told(said) == "127.0.0.1:1 of AWS_ENDPOINT_URL cannot be reached: Connection refused"
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    assert told(said) == said
