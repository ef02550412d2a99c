"""Processes for tests that kill them, forked from one that has imported what they need: a start takes no seconds."""

from __future__ import annotations

import os
import runpy
import sys
import tempfile
from multiprocessing import get_context
from pathlib import Path

PRELOADED = [
    "tests.engine.commits.driver_process",
    "tests.engine.commits.housekeeping_process",
    "tests.laws.killed_transcript",
    "tests.laws.killed_live",
    "tests.laws.killed_stream",
    "tests.laws.planned_live",
    "pipelines.jobs.drill.drilled",
    "pipelines.jobs.drill.power",
]


def ended(module: str, *words: str, timeout: float = 120) -> tuple[int | None, str]:
    """Run a module as a program in a process of its own, and wait for its end.

    Args:
        module: its name.
        words: arguments.
        timeout: seconds.

    Returns:
        Its exit code, negative for a signal, None where it has not ended; and what it printed.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "said"
        process = context.Process(target=_run, args=(said, module, words))
        process.start()
        process.join(timeout)
        code = process.exitcode
        if code is None:
            process.kill()
            process.join()
        return code, said.read_text(errors="replace") if said.exists() else ""


def _run(said: Path, module: str, words: tuple[str, ...]) -> None:
    with said.open("wb") as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())
    sys.argv = [module, *words]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
