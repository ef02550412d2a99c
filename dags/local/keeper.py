"""`python -m dags.local.keeper FOLDER PORT`: the one process that starts the parts of a local Airflow and ends them.

It leads a session of its own. All parts and all their tasks stay in that session, whatever groups they make, so that
what is left of them can be found and ended even when this process was killed.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from dags.local.database import start_database, stop_database
from dags.local.place import Place
from dags.local.processes import KnownProcess, members, pids
from dags.local.settings import write_settings

if TYPE_CHECKING:
    from typing import TextIO

PARTS = {
    "api-server": ("api-server",),
    "scheduler": ("scheduler", "--skip-serve-logs"),
    "dag-processor": ("dag-processor",),
}
"""Airflow's processes, in the order of their start."""
LATER = {"triggerer": ("triggerer", "--skip-serve-logs")}
"""Started when the others answer: no DAG here needs it, and its start would slow down theirs."""
LAST = ("api-server",)
"""Ended last: tasks that are stopped tell it so."""
GRACE = 30.0
"""Seconds in which tasks may stop by themselves; the stream needs about two."""
SHORT_GRACE = 3.0
LARGEST_LOG = 32 << 20
"""Bytes of `parts.log`, of which the one before is kept."""
PAUSE = 2.0
"""Seconds before a part that ended is started again."""


@dataclass
class Part:
    """One process of Airflow, in a group of its own."""

    name: str
    process: subprocess.Popen[bytes]

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the part and to what it forked."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def members(self) -> list[psutil.Process]:
        """List the living processes of its group."""
        return [process for process in members(os.getsid(0)) if _group(process) == self.process.pid]


def _group(process: psutil.Process) -> int | None:
    with suppress(ProcessLookupError):
        return os.getpgid(process.pid)
    return None


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def end(parts: list[Part], grace: float) -> None:
    """End parts with all they forked: SIGTERM, the time to stop, SIGKILL."""
    for part in parts:
        part.signal(signal.SIGTERM)
    until = time.monotonic() + grace
    while time.monotonic() < until and any(_reaped(part).members() for part in parts):
        time.sleep(0.1)
    for part in parts:
        part.signal(signal.SIGKILL)
        part.process.wait()


def _reaped(part: Part) -> Part:
    part.process.poll()
    return part


def turn_over(log: Path) -> None:
    """Begin a log anew that has grown large, and keep what it had as the one before; its writers append, and stay."""
    if log.stat().st_size > LARGEST_LOG:
        shutil.copyfile(log, log.with_name(f"{log.name}.1"))
        os.truncate(log, 0)


class Keeper:
    """Looks after the parts until it is asked to end.

    Args:
        place: where this Airflow lies.
        log: where lines go.
    """

    def __init__(self, place: Place, log: TextIO) -> None:
        """Start nothing yet."""
        self.place, self.log = place, log
        self.parts: dict[str, Part] = {}
        self.seen: dict[int, KnownProcess] = {}
        self.asked = threading.Event()

    def run(self, port: int) -> None:
        """Start database and parts, start again what ends, and end all when asked."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.asked.set())
        try:
            write_settings(self.place, port, start_database(self.place.database))
            self._migrate()
            for name in PARTS:
                self._start(name)
            while not self.asked.wait(0.5):
                self._look()
                self._see()
                turn_over(self.place.log)
                if not LATER.keys() <= self.parts.keys() and _answers(port):
                    for name in LATER:
                        self._start(name)
        finally:
            self._end()

    def _tell(self, text: str) -> None:
        self.log.write(f"keeper: {text}\n")
        self.log.flush()

    def _migrate(self) -> None:
        self._tell("preparing the database")
        subprocess.run(self._command("db", "migrate"), check=True, **self._where())  # type: ignore[call-overload] # noqa: S603 - Airflow's own command

    def _start(self, name: str) -> None:
        self._tell(f"starting {name}")
        process = subprocess.Popen(self._command(*(PARTS | LATER)[name]), process_group=0, **self._where())  # type: ignore[call-overload] # noqa: S603 - Airflow's own command
        self.parts[name] = Part(name, process)
        self._see()

    def _command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "airflow", *words]

    def _where(self) -> dict[str, object]:
        return {"env": self.place.environment, "stdin": subprocess.DEVNULL, "stdout": self.log, "stderr": self.log}

    def _see(self) -> None:
        """Remember who is in this session, should this process be killed."""
        here = pids(os.getsid(0))
        if here != self.seen.keys():
            for pid in here - self.seen.keys():
                with suppress(psutil.Error):
                    self.seen[pid] = KnownProcess.read(pid)
            self.seen = {pid: known for pid, known in self.seen.items() if pid in here}
            self.place.see(list(self.seen.values()))

    def _look(self) -> None:
        """Start again what ended, after its forks are gone: of a scheduler that was killed, workers remain."""
        for name, part in list(self.parts.items()):
            code = part.process.poll()
            if code is not None:
                self._tell(f"{name} ended with {code} and is started again")
                end([part], GRACE)
                if not self.asked.wait(PAUSE):
                    self._start(name)

    def _end(self) -> None:
        self._tell("ending")
        last = [part for part in self.parts.values() if part.name in LAST]
        end([part for part in self.parts.values() if part.name not in LAST], GRACE)
        end(last, SHORT_GRACE)
        stop_database(self.place.database)
        self._tell("ended")


def main(argv: list[str]) -> None:
    """Keep the Airflow of a folder, on a port."""
    place = Place(Path(argv[0]))
    with place.log.open("a", encoding="utf-8") as log:
        Keeper(place, log).run(int(argv[1]))


if __name__ == "__main__":
    main(sys.argv[1:])
