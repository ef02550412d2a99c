"""Processes whose calls of the C library go through faults.c first, Rust's and C++'s like Python's.

A library is preloaded when a process starts, and processes of a drill are forked: so the whole drill runs again in a
process that was started with it, and what that one tells is passed on.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipelines.jobs.drill.telling import Telling

SOURCE = Path(__file__).with_name("faults.c")
CHECKOUT = Path(__file__).parents[3]
PRELOAD = "LD_PRELOAD"


class NotHereError(OSError):
    """The library cannot be made or preloaded here."""


def is_preloaded() -> bool:
    """Say whether this process was started with the library."""
    return hasattr(ctypes.CDLL(None), "fault_arm")


def library() -> ctypes.CDLL:
    """Give the library of this process, which was started with it."""
    return ctypes.CDLL(None)


def made(folder: Path) -> Path:
    """Compile the library.

    Args:
        folder: takes it.

    Raises:
        NotHereError: that is not possible here; says why.
    """
    if not sys.platform.startswith("linux"):
        raise NotHereError(f"calls are counted by a library of Linux, and this is {sys.platform}")
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise NotHereError("there is no cc here")
    to = folder / "faults.so"
    words = [compiler, "-shared", "-fPIC", "-O1", "-w", "-o", str(to), str(SOURCE), "-ldl"]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603 - the system's compiler
    if ran.returncode:
        raise NotHereError(f"{compiler}: {' '.join(ran.stderr.split())[:200]}")
    return to


def run_preloaded(module: str, words: Sequence[str], echo: Callable[[str], None]) -> int:
    """Run a module as a program that has the library, and pass on each line that it prints.

    Args:
        module: as `python -m` takes it.
        words: its arguments.
        echo: where lines go.

    Returns:
        Its exit code.

    Raises:
        NotHereError: the library cannot be made here.
    """
    with tempfile.TemporaryDirectory(prefix="pulseline-faults-") as folder:
        paths = os.pathsep.join(filter(None, (str(CHECKOUT), os.environ.get("PYTHONPATH"))))
        known = os.environ | {PRELOAD: str(made(Path(folder))), "PYTHONPATH": paths}
        command = [sys.executable, "-m", module, *words]
        with subprocess.Popen(command, env=known, stdout=subprocess.PIPE, text=True) as ran:  # noqa: S603 - our own
            for line in ran.stdout or ():
                echo(line.rstrip("\n"))
        return ran.returncode


def drill_preloaded(telling: Telling, seeds: Sequence[int], base: Path | None, at_once: int) -> int:
    """Have the command that was typed drill its part in a program that has the library.

    Returns:
        Its exit code; 0 where the library cannot be made here, which is said.
    """
    words = ["drill", telling.part, "--at-once", str(at_once)]
    words += [word for seed in seeds for word in ("--seed", str(seed))]
    words += [*(["--keep", str(base)] if base else []), *(["--json"] if telling.as_json else [])]
    try:
        return run_preloaded("pipelines.cli", words, telling.echo)
    except NotHereError as why:
        telling.echo(f"drill {telling.part}: skipped, for it needs Linux and a C compiler: {why}")
        return 0
