"""What commands print of the demo: it runs in a folder of its own, without Spark, and is gone afterwards."""

from __future__ import annotations

import re
import shlex
import tempfile
import textwrap
from functools import cache

from typer.testing import CliRunner

from pipelines.cli import app

RUNS = (
    "run flights --start 2013-01-01 --end 2013-01-08 --engine core --no-check",
    "run punctuality --start 2013-01-02 --end 2013-01-03 --engine core --no-check",
)
WIDEST = 150
"""Characters of a line."""
COLUMNS = 100
"""Where the last column of a table begins at most."""
GAP = re.compile(r" {2,}(?=\S)")


@cache
def answers(commands: tuple[str, ...]) -> dict[str, str]:
    """Give what commands print once the week has run, by command; long lines go on below their last column.

    Args:
        commands: as typed behind `pulseline`.

    Raises:
        RuntimeError: a command failed.
    """
    with tempfile.TemporaryDirectory() as home:
        runner = CliRunner(env={"PULSELINE_HOME": home, "PULSELINE_CONFIG": None, "COLUMNS": None})
        every = (*RUNS, *commands)
        return dict(zip(every, (_told(runner, command) for command in every), strict=True))


def _told(runner: CliRunner, command: str) -> str:
    done = runner.invoke(app, shlex.split(command))
    if done.exit_code:
        raise RuntimeError(f"`pulseline {command}` must end well; it ended with {done.exit_code}: {done.output}")
    return "\n".join(_fitted(line) for line in done.output.splitlines())


def _fitted(line: str) -> str:
    if len(line) <= WIDEST:
        return line
    if line.startswith("─"):
        return line[:WIDEST]
    columns = [gap.end() for gap in GAP.finditer(line[:COLUMNS])]
    below = " " * (columns[-1] if columns else 0)
    return textwrap.fill(line, WIDEST, subsequent_indent=below, break_on_hyphens=False)
