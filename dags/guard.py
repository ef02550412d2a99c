"""`guard.py PARENT GRACE COMMAND...`: run a command that cannot outlive the task that started it, nor leave anything.

A task that is killed with SIGKILL cannot end its children. This small process can: it sees that its parent is gone,
asks the command to stop, waits the grace, and kills it with all that it started, whatever groups those made.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import psutil

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
PAUSE = 0.1
LEAVING = 3.0
"""Seconds in which what the command started may end after it: a JVM sees a moment later that its driver is gone."""
STOPPED = 128 + signal.SIGTERM


def ask_kernel(option: int, value: int) -> None:
    """Ask Linux for a favour; elsewhere this does nothing, and the loop below does it alone."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


class Guard:
    """Runs one command.

    Args:
        parent: pid of the process whose end is the command's end.
        grace: seconds between the wish to stop and SIGKILL.
    """

    def __init__(self, parent: int, grace: float) -> None:
        """Start nothing yet."""
        self.parent, self.grace = parent, grace
        self.until: float | None = None

    def run(self, command: list[str]) -> int:
        """Run the command and give its exit code."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._stop())
        ask_kernel(PR_SET_CHILD_SUBREAPER, 1)
        job = subprocess.Popen(command, preexec_fn=self._tie)  # noqa: PLW1509, S603 - one thread; the command of the DAG
        code, asked = None, False
        while code is None:
            code = job.poll()
            if os.getppid() != self.parent:
                self._stop()
            if self.until is not None and not asked:
                job.send_signal(signal.SIGTERM)
                asked = True
            if self.until is not None and time.monotonic() > self.until:
                self._kill()
            time.sleep(PAUSE)
        self._sweep()
        return code if code >= 0 else 128 - code

    def _tie(self) -> None:
        """Let the command die with the guard, should somebody kill that."""
        ask_kernel(PR_SET_PDEATHSIG, signal.SIGKILL)

    def _stop(self) -> None:
        self.until = self.until or time.monotonic() + self.grace

    def _kill(self) -> None:
        for process in self._descendants():
            with suppress(psutil.Error):
                process.kill()

    def _sweep(self) -> None:
        """Wait until all that the command started is gone; kill what stays."""
        until = time.monotonic() + LEAVING
        while self._descendants():
            if time.monotonic() > until:
                self._kill()
            with suppress(ChildProcessError):
                os.waitpid(-1, os.WNOHANG)
            time.sleep(PAUSE)

    def _descendants(self) -> list[psutil.Process]:
        return psutil.Process().children(recursive=True)


def main(argv: list[str]) -> int:
    """Run what the arguments say."""
    return Guard(int(argv[0]), float(argv[1])).run(argv[2:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
