# ruff: noqa: INP001 - a script beside the documents whose figures it makes, no package
"""Measure what compiling the scans costs a machine that has none of their code yet.

.venv/bin/python -m docs.measure_compile

Each line is one operator, as the first run of a flow would meet them, one after the other: what operators share is
compiled with the first that needs it. Seconds are of the processor: a busy machine tells nearly what an idle one does.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from typing import TYPE_CHECKING

from pipelines.operators.code_folder import CHOSEN

if TYPE_CHECKING:
    from collections.abc import Callable


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def seconds(work: Callable[[], object]) -> float:
    """Give the seconds of the processor that some work takes."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def main() -> None:
    """Compile every scan into an empty folder, and print what each took."""
    with tempfile.TemporaryDirectory() as folder:
        # The folder is chosen when the first scan is imported.
        os.environ[CHOSEN] = folder
        from pipelines.operators.registry import OPERATORS, warm_up

        total = 0.0
        for name, kind in OPERATORS.items():
            taken = seconds(lambda name=name: warm_up([name]))  # type: ignore[misc]
            total += taken
            # Others have the scan of one that is named.
            if kind.smallest is not None:
                say(f"{name}: {taken:.1f} s")
        say(f"all scans: {total:.1f} s")


if __name__ == "__main__":
    main()
