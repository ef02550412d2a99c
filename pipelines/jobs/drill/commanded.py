"""A seed whose command runs in a process of its own: heard until it ends, and asked about what it left."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pipelines.errors import Exit
from pipelines.jobs.drill.processes import answer, end_of, killed, started
from pipelines.jobs.drill.telling import Drilled, Undone
from pipelines.jobs.environment.exits import DEBUG, exit_code_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.process import BaseProcess
    from pathlib import Path

    from pipelines.jobs.drill.loops import Here

PATIENCE = 60.0
"""Seconds that a process may take."""
BREATH = 0.02
"""Seconds for which a process is heard before something else may be done to it."""
TRACEBACK = "Traceback (most recent call last)"


@dataclass
class Commanded:
    """What the seeds of a drill share that types commands."""

    number: int
    base: Path
    done: Drilled = field(init=False)
    told: dict[int, str] = field(default_factory=dict)
    """What each commit was when it was told as published."""

    def __post_init__(self) -> None:
        self.done = Drilled(self.number)

    @property
    def log(self) -> Path:
        """Give where its processes write what they print."""
        return self.base / f"seed-{self.number}.log"

    def typed(self, what: str, work: Callable[..., None], *facts: Any) -> int:  # noqa: ANN401 - of the work
        """Run a command to its end; give its exit code.

        Args:
            what: names it.
            work: what its process does; given a pipe that takes commits as they are told, and `facts`.
            facts: can be pickled.

        Raises:
            Undone: it hung.
        """
        child, pipe = started(self.log, work, *facts)
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            self.between(child)
            try:
                while pipe.poll(BREATH):
                    self._take(*pipe.recv())
            except EOFError:
                child.join(max(0.0, until - time.monotonic()))
                break
        if child.exitcode is not None:
            return child.exitcode
        killed(child)
        raise Undone(f"{what} is not done after {PATIENCE:.0f} s: {end_of(self.log)}")

    def between(self, child: BaseProcess) -> None:
        """Do something to a process while it runs."""

    def end(self) -> None:
        """Do nothing: `typed` ends the process that it began."""

    def said_badly(self) -> bool:
        """Say whether a process ended with anything but a sentence."""
        said = self.log.read_text(errors="replace")
        return (TRACEBACK in said or DEBUG in said) and not os.environ.get(DEBUG)

    def judge_end(self, code: int) -> None:
        """Note where a process ended otherwise than well or with one sentence."""
        if code not in {0, Exit.RUN_FAILED}:
            self.done.differences.append(f"ended with {code}")
        if self.said_badly():
            self.done.differences.append("no sentence")

    def asked(self, question: Callable[..., Any], *facts: Any) -> Any:  # noqa: ANN401 - what the question gives
        """Ask something in a process of its own.

        Raises:
            Undone: there was no answer.
        """
        try:
            return answer(self.log, PATIENCE, question, *facts)
        except (EOFError, TimeoutError) as problem:
            raise Undone(str(problem)) from problem

    def _take(self, number: int, content: str) -> None:
        if self.told.setdefault(number, content) != content:
            self.done.differences.append(f"commit {number} was published twice, with other content")


def as_command(work: Callable[[], None], here: Here) -> None:
    """Do something, and end this process as a command does.

    Args:
        work: may raise.
        here: the home that is in use.
    """
    os.environ["PULSELINE_HOME"] = str(here.home)
    try:
        work()
    except Exception as error:  # noqa: BLE001 - as the command line does
        code, line = exit_code_of(error)
        print(line, flush=True)  # noqa: T201 - standard output is this process's log
        raise SystemExit(code) from None
