"""A flow live from a socket: published rows through stops and kills, each once, on Spark and without."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pytest

from pipelines.engine.core import CoreEngine
from pipelines.engine.readers import read_ledger, read_stream
from pipelines.engine.segments import ENDING
from pipelines.flows.reading import read_flow
from pipelines.jobs.failures import WrongUse
from pipelines.jobs.stream import Live, run_live
from tests.engine.sockets import AT, Sender
from tests.jobs.killed_socket import live
from tests.jobs.test_kills import assert_nothing_twice

if TYPE_CHECKING:
    from tests.conftest import LentSpark

CHECKOUT = Path(__file__).parents[2]
FLOW = """\
flow: lines
sources:
  lines: {{feed: {{socket: "127.0.0.1:{port}", format: csv, types: {{k: string, t: timestamp, v: int64}}}}, key: k, time: t}}
streams:
  beating: {{heartbeat: lines, interval: 1h}}
"""
KILLS = (("spool", 20), ("landing", 9), ("tasks", 5))


class Talking:
    """A sender that sends numbered lines to whoever listens, from a thread."""

    def __init__(self, sender: Sender) -> None:
        self.sender, self.sent = sender, 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._talk)
        self._thread.start()

    def _talk(self) -> None:
        while not self._ended.is_set():
            try:
                self.sender.accept()
                while not self._ended.wait(0.002):
                    self.sender.send("".join(f"k,{AT},{value}\n" for value in range(self.sent, self.sent + 20)))
                    self.sent += 20
            except OSError:
                continue

    def end(self) -> None:
        """Fall silent."""
        self._ended.set()
        self.sender.close()
        self._thread.join()


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """Give a folder with a flow whose socket somebody has opened."""
    return tmp_path


def begun(base: Path) -> Sender:
    sender = Sender()
    (base / "flow.yaml").write_text(FLOW.format(port=sender.port))
    return sender


def published(root: Path) -> list[int]:
    rows = read_stream(root, "beating")
    values: list[int] = (
        rows.filter(pc.equal(rows["kind"], "data"))
        .sort_by([("arrival", "ascending"), ("place", "ascending")])["v"]
        .to_pylist()
    )
    return values


def spooled(root: Path) -> set[int]:
    """Give the values of whole lines that a spool holds."""
    found: set[int] = set()
    for path in sorted((root / "spool" / "lines").glob(f"*{ENDING}")):
        _, _, data = path.read_bytes().partition(b"\n")
        found |= {int(line.split(b",")[2]) for line in data.split(b"\n")[1:-1] if line.count(b",") == 2}
    return found


def test_what_was_spooled_is_published_once_through_kills(tmp_path: Path) -> None:
    talking = Talking(begun(tmp_path))
    root, heard = tmp_path / "runs" / "main", set()
    for point, skip in KILLS:
        died = subprocess.run(
            [sys.executable, "-m", "tests.jobs.killed_socket", str(tmp_path), "main", point, str(skip)],
            cwd=CHECKOUT,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert died.returncode == -signal.SIGKILL, died.stderr
        heard |= spooled(root)
    end = time.monotonic() + 1
    live(tmp_path, "main", CoreEngine(), lambda: time.monotonic() > end)
    talking.end()
    heard |= spooled(root)
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


def test_a_socket_live_on_spark_goes_on_after_a_stop(tmp_path: Path, spark: LentSpark) -> None:
    talking = Talking(begun(tmp_path))
    told: list[str] = []
    live = Live(
        flow=read_flow(tmp_path / "flow.yaml", {}),
        root=tmp_path / "main",
        base=tmp_path,
        spark=spark,
        trigger="200 milliseconds",
        lasts=3.0,
    )
    run_live(live, told.append)
    first = published(live.root)
    run_live(live, told.append)
    talking.end()
    values = published(live.root)
    assert 0 < len(first) < len(values)
    assert values == sorted(set(values))
    assert read_ledger(live.root)["reason"].to_pylist() == ["disconnected"]
    assert [line for line in told if line.startswith("source lines: connected to")]


def test_a_socket_never_says_what_is_there(tmp_path: Path, spark: LentSpark) -> None:
    sender = begun(tmp_path)
    flow = read_flow(tmp_path / "flow.yaml", {})
    wanted = Live(flow=flow, root=tmp_path / "main", base=tmp_path, spark=spark, available_now=True)
    with pytest.raises(WrongUse, match="a socket never says what is"):
        run_live(wanted, lambda _: None)
    sender.close()
