"""A command that runs under guard, as a stream of lines. Nothing of Airflow here."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

GUARD = Path(__file__).with_name("guard.py")
GRACE = 20.0
"""Seconds that a command has to stop: an epoch under way ends first."""
ABOVE = 2
"""Processes above a task that must live: the one that supervises it, and the executor's that began that."""
LOOK = 1.0
LAST_LINES = 40
SAID, FOUND = "said", "found"
"""Keys under which Airflow keeps the last line of a task, for the tab, and what one that failed found out."""
CHUNK = 65_536


class Running:
    """A command that runs under guard, as a stream of lines.

    Args:
        command: program and arguments.
        grace: seconds between the wish to stop and SIGKILL.
        environment: of the command; that of this process unless given.
    """

    def __init__(
        self, command: Sequence[str], grace: float = GRACE, environment: Mapping[str, str] | None = None
    ) -> None:
        """Start it."""
        self.above = psutil.Process().parents()[:ABOVE]
        self.asked = False
        self.last: deque[str] = deque(maxlen=LAST_LINES)
        self.process = subprocess.Popen(  # noqa: S603 - a list of words, and no shell that could read them otherwise
            [sys.executable, str(GUARD), str(os.getpid()), str(grace), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**(os.environ if environment is None else environment), "PYTHONUNBUFFERED": "1"},
            process_group=0,
        )

    def lines(self) -> Iterator[str]:
        """Give what it prints, line by line, until it ends; end it when what is above this process is gone."""
        assert self.process.stdout is not None  # noqa: S101 - asked for above
        with selectors.DefaultSelector() as ready, self.process.stdout as output:
            ready.register(output, selectors.EVENT_READ)
            rest = b""
            while True:
                if ready.select(LOOK):
                    chunk = os.read(output.fileno(), CHUNK)
                    if not chunk:
                        break
                    *whole, rest = (rest + chunk).split(b"\n")
                    yield from map(self._kept, whole)
                elif not all(_lives(process) for process in self.above):
                    self.stop()
            if rest:
                yield self._kept(rest)

    def stop(self) -> None:
        """Ask it to stop; its guard kills it after the grace."""
        self.asked = True
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)

    def wait(self) -> int:
        """Give its exit code, when nothing of it is left."""
        return self.process.wait()

    def result(self) -> dict[str, Any]:
        """Give its last line that is a JSON object; an empty one where there is none."""
        for line in reversed(self.last):
            with suppress(ValueError):
                found = json.loads(line)
                if isinstance(found, dict):
                    return found
        return {}

    def _kept(self, line: bytes) -> str:
        text = line.decode(errors="replace").rstrip()
        if text:
            self.last.append(text)
        return text


def _lives(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False
