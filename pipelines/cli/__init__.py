"""The `pulseline` command. Nothing heavy is imported before a command needs it, so help answers at once."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import typer
from typer.main import get_command_name

from pipelines.cli import bench, drill, flows, proofs, queries, runs, upkeep

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FAMILIES = (runs.app, queries.app, proofs.app, upkeep.app)
GROUPS = {"flows": flows.app, "drill": drill.app, "bench": bench.app}


def _command_line(families: Iterable[typer.Typer], groups: Mapping[str, typer.Typer]) -> typer.Typer:
    made = typer.Typer(
        name="pulseline",
        no_args_is_help=True,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        help="Heartbeats, ordered merges and CTIs for Spark: stream and backfill give the same rows, byte for byte.",
        epilog="Exit codes: 0 fine, 1 a check failed, 2 wrong use, 3 a run failed, 130 interrupted. "
        "PULSELINE_DEBUG=1 prints the traceback of whatever goes wrong, PULSELINE_LOG=info what a run does inside.",
    )
    for family in families:
        made.add_typer(family)
    for name, group in groups.items():
        made.add_typer(group, name=name)
    return made


app = _command_line(FAMILIES, GROUPS)


def main() -> None:
    """Run the command line."""
    try:
        asked(sys.argv[1] if len(sys.argv) > 1 else "")()
    finally:
        _let_go()


def asked(word: str) -> typer.Typer:
    """Give the command line that has this command alone: making all of them takes a tenth of a second."""
    if word in GROUPS:
        return _command_line((), {word: GROUPS[word]})
    for family in FAMILIES:
        for each in family.registered_commands:
            if each.callback and word == (each.name or get_command_name(each.callback.__name__)):
                alone = typer.Typer()
                alone.registered_commands = [each]
                return _command_line((alone,), {})
    return app


def _let_go() -> None:
    """End a command as it ended; what libraries keep for the process is not taken down piece by piece.

    Python would look through all of it for circles, seconds long behind Great Expectations, and what libraries of
    stores keep aborts some process in hundreds when it is torn down, after all is done. Threads are waited for, but
    those that a failed command over a store has left may hang.
    """
    import atexit
    import os
    import threading

    ended = sys.exc_info()[1]
    if not isinstance(ended, SystemExit):
        return
    code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    left = [each for each in threading.enumerate() if each is not threading.main_thread() and not each.daemon]
    if not (left and code and "://" in os.environ.get("PULSELINE_HOME", "")):
        # What Python itself calls at an end.
        threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001
        atexit._run_exitfuncs()  # noqa: SLF001
    with suppress(OSError):
        # Nobody may read any more.
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)
