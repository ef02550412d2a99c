"""Processes of a drill: forked from one that has imported everything, with all that they print in a file."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess
    from pathlib import Path

PARTS = ("power", "neighbours", "failing", "stepped", "live", "input", "stored")
PRELOADED = [f"pipelines.jobs.drill.{part}" for part in PARTS]
END = 400
"""Characters of a log that are told."""


def started(log: Path, work: Callable[..., None], *facts: Any) -> tuple[BaseProcess, Connection]:  # noqa: ANN401 - its facts
    """Start a process that may tell through a pipe.

    Args:
        log: takes what it prints.
        work: given the pipe's end, and `facts`.
        facts: can be pickled.

    Returns:
        The process, and where to hear it.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    mine, its = context.Pipe(duplex=False)
    child = context.Process(target=_logged, args=(log, work, its, *facts))
    child.start()
    its.close()
    return child, mine


def answer(log: Path, patience: float, question: Callable[..., Any], *facts: Any) -> Any:  # noqa: ANN401 - of the question
    """Ask something in a process of its own, so that nothing stays open here.

    Args:
        log: takes what it prints.
        patience: seconds.
        question: given `facts`.
        facts: can be pickled.

    Raises:
        TimeoutError: there was no answer in time.
        EOFError: it ended without one.
    """
    child, pipe = started(log, _answering, question, *facts)
    try:
        if not pipe.poll(patience):
            raise TimeoutError(f"{question.__name__} gave no answer within {patience:.0f} s: {end_of(log)}")
        return pipe.recv()
    except EOFError as error:
        raise EOFError(f"{question.__name__} ended without an answer: {end_of(log)}") from error
    finally:
        killed(child)


def signalled(child: BaseProcess, number: signal.Signals) -> None:
    """Send a signal to a process; one that has just ended is gone, for the server that forked it has taken it up."""
    with suppress(ProcessLookupError):
        os.kill(child.pid or 0, number)


def killed(child: BaseProcess) -> int | None:
    """Have a process gone; give its exit code."""
    child.kill()
    child.join()
    return child.exitcode


def end_of(log: Path) -> str:
    """Give the end of what was printed, in one line."""
    text = log.read_text(errors="replace") if log.exists() else ""
    return " ".join(text[-END:].split())


def _answering(pipe: Connection, question: Callable[..., Any], *facts: Any) -> None:  # noqa: ANN401 - its facts
    pipe.send(question(*facts))


def _logged(log: Path, work: Callable[..., None], *facts: Any) -> None:  # noqa: ANN401 - its facts
    with log.open("ab") as written:
        os.dup2(written.fileno(), sys.stdout.fileno())
        os.dup2(written.fileno(), sys.stderr.fileno())
    work(*facts)
