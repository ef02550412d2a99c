"""An emulator of S3 on this machine, for proofs: a process of its own on the loopback, its objects in memory."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

from pipelines.jobs.environment.errors import WrongUse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

HERE = "127.0.0.1"
BUCKET = "home"
STARTS_IN = 60
"""Seconds."""
ENDS_IN = 10
WRITERS, KEYS = 16, 4
"""How many write at once, and how often, before it is believed that one alone succeeds."""
ALONE = {"SERVICES": "s3", "IOT_MTLS_ENABLED": "0", "LOG_LEVEL": "ERROR", "S3_PERSIST": "0"}
"""Nothing of it but S3."""


def access_to(port: int, host: str = HERE) -> dict[str, str]:
    """Give the standard variables of a store that listens here, or at an address of its own."""
    return {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "emulated",
        "AWS_SECRET_ACCESS_KEY": "emulated",
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
    }


@contextmanager
def in_environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Have variables in this process's environment, and in those that it starts, while the block runs."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def free_port() -> int:
    """Give a port of the loopback that nobody listens to."""
    with socket.create_server((HERE, 0)) as taken:
        return int(taken.getsockname()[1])


@contextmanager
def emulator(host: str = HERE, within: Sequence[str] = ()) -> Iterator[int]:
    """Run an emulator with one bucket, `home`; give its port, once its conditional writes have been seen to exclude.

    Args:
        host: the one address that it listens to; no other machine can reach it unless one is given.
        within: what its command begins with, as where it runs in a network namespace.

    Raises:
        WrongUse: it is not installed, does not begin to answer, or lets a conditional write through that comes second.
    """
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, **ALONE, "BIND_HOST": host, "GATEWAY_PORT": str(port), "TMPDIR": folder}
        command = [*within, sys.executable, "-m", "ministack"]
        with open(os.path.join(folder, "said"), "wb") as said:  # noqa: PTH118, PTH123 - a text that a process writes
            process = subprocess.Popen(command, cwd=folder, env=environment, stdout=said, stderr=said)  # noqa: S603 - fixed
        try:
            _await(process, host, port)
            require_exclusion(port, host)
            yield port
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(ENDS_IN)
            process.kill()
            process.wait()


def _await(process: subprocess.Popen[bytes], host: str, port: int) -> None:
    end = time.monotonic() + STARTS_IN
    while time.monotonic() < end and process.poll() is None:
        with suppress(OSError, http.client.HTTPException):
            asked = http.client.HTTPConnection(host, port, timeout=5)
            asked.request("PUT", f"/{BUCKET}")
            if asked.getresponse().status == http.HTTPStatus.OK:
                return
        time.sleep(0.1)
    raise WrongUse(
        "the emulator of S3 must answer, and does not: it comes with the packages for development (pip install -c "
        "constraints.txt -e '.[dev]'); see that `python -m ministack` starts"
    )


def require_exclusion(port: int, host: str = HERE) -> None:
    """Have many create one object and many replace one, again and again: a single one of them may succeed.

    Args:
        port: of a store that asks nobody who they are.
        host: its address.

    Raises:
        WrongUse: two did, or none; nothing that is proved on such a store would hold.
    """
    with ThreadPoolExecutor(WRITERS) as writers:
        for _ in range(KEYS):
            write = partial(_written, host, port, f"/{BUCKET}/{uuid4().hex}")
            tags = _those(writers.map(partial(write, "If-None-Match", "*"), range(WRITERS)))
            newer = _those(writers.map(partial(write, "If-Match", tags[0] if tags else ""), range(WRITERS)))
            if len(tags) != 1 or len(newer) != 1:
                raise WrongUse(
                    f"of {WRITERS} that create an object one must succeed, and of {WRITERS} that replace it one; here "
                    f"{len(tags)} and {len(newer)} did: a store that lets both through loses commits"
                )


def _those(said: Iterable[str | None]) -> list[str]:
    return [tag for tag in said if tag is not None]


def _written(host: str, port: int, path: str, condition: str, value: str, number: int) -> str | None:  # noqa: PLR0913 - one call
    """Put an object on a condition; give its tag, or nothing where that was refused."""
    asked = http.client.HTTPConnection(host, port, timeout=STARTS_IN)
    try:
        # No two write the same, for tags are made of what is written.
        asked.request("PUT", path, f"{condition} {number}".encode(), {condition: value})
        said = asked.getresponse()
        said.read()
        return said.getheader("etag", "") if said.status == http.HTTPStatus.OK else None
    finally:
        asked.close()
