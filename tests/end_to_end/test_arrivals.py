"""No row arrives before it was sent: a stream of the command line on Spark, killed three times, and a real socket."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from pipelines.engine.columnar.clock import wall_now
from pipelines.engine.commits.readers import read_stream
from tests.engine.sources.sockets import Sender

if TYPE_CHECKING:
    from collections.abc import Callable

CHECKOUT = Path(__file__).parents[2]
FLOW = """\
flow: sent
sources:
  lines:
    feed: {{socket: "127.0.0.1:{port}", format: csv, types: {{k: string, t: timestamp, at: int64}}}}
    key: k
    time: t
streams:
  beating: {{heartbeat: lines, interval: 1h}}
"""
KILLS = 3
READINGS = "200ms"


def talk(sender: Sender, ended: threading.Event) -> None:
    """Send lines that say when they were sent, to whoever listens."""
    while not ended.is_set():
        try:
            sender.accept()
            while not ended.wait(0.02):
                sender.send(f"k,2013-01-01T00:00:00Z,{wall_now()}\n" * 3)
        except OSError:
            continue


def streaming(base: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "pipelines.cli", "stream", str(base / "sent.yaml"), "--trigger", READINGS]
    settings = {
        "PULSELINE_HOME": str(base / "home"),
        "PULSELINE_CONFIG": str(CHECKOUT / "config"),
        "PYTHONPATH": str(CHECKOUT),
    }
    with (base / "said").open("ab") as said:
        return subprocess.Popen(command, cwd=base, env={**os.environ, **settings}, stdout=said, stderr=said)


def wait(is_so: Callable[[], bool], process: subprocess.Popen[bytes], said: Path, seconds: float = 600) -> None:
    """Wait until something is so, or Spark has ended by itself, as it does on a machine that is too busy for it."""
    end = time.monotonic() + seconds
    while not is_so() and process.poll() is None:
        assert time.monotonic() < end, said.read_text()[-3_000:]
        time.sleep(0.2)


@pytest.mark.exhaustive
def test_no_row_arrives_before_it_was_sent_through_kills(tmp_path: Path) -> None:
    sender, ended = Sender(), threading.Event()
    (tmp_path / "sent.yaml").write_text(FLOW.format(port=sender.port))
    thread = threading.Thread(target=talk, args=(sender, ended), daemon=True)
    thread.start()
    root = tmp_path / "home" / "sent" / "main"

    def rows() -> int:
        try:
            return int(read_stream(root, "beating").num_rows)
        except (OSError, ValueError):
            return 0

    turn = 0
    while turn <= KILLS:
        before = rows()
        process = streaming(tmp_path)
        try:
            wait(lambda least=before + 300: rows() >= least, process, tmp_path / "said")  # type: ignore[misc]
        finally:
            process.send_signal(signal.SIGKILL if turn < KILLS else signal.SIGTERM)
            process.wait(60)
        turn += rows() >= before + 300
    ended.set()
    sender.close()
    found = read_stream(root, "beating")
    data = found.filter(found["at"].is_valid())
    arrivals = data["arrival"].cast("int64").to_numpy()
    sent = data["at"].to_numpy()
    early = int(np.count_nonzero(arrivals < sent))
    assert data.num_rows >= 300 * (KILLS + 1)
    assert early == 0, f"{early} of {data.num_rows} rows, by up to {(sent - arrivals).max() / 1e6:.1f} s"
