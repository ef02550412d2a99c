"""The `pulseline` command. Nothing heavy is imported before a command needs it, so help answers at once."""

from __future__ import annotations

import typer

from pipelines.cli import bench, drill, flows, proofs, queries, runs, upkeep

app = typer.Typer(
    name="pulseline",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="Heartbeats, ordered merges and CTIs for Spark: stream and backfill give the same rows, byte for byte.",
    epilog="Exit codes: 0 fine, 1 a check failed, 2 wrong use, 3 a run failed, 130 interrupted. "
    "PULSELINE_DEBUG=1 prints the traceback of whatever goes wrong, PULSELINE_LOG=info what a run does inside.",
)
for family in (runs, queries, proofs, upkeep):
    app.add_typer(family.app)
for name, group in {"flows": flows, "drill": drill, "bench": bench}.items():
    app.add_typer(group.app, name=name)


def main() -> None:
    """Run the command line."""
    try:
        app()
    finally:
        _let_go()


def _let_go() -> None:
    """End at once where threads are left that Python would wait for, behind a command that failed over a store."""
    import os
    import sys
    import threading

    left = [each for each in threading.enumerate() if each is not threading.main_thread() and not each.daemon]
    ended = sys.exc_info()[1]
    if left and isinstance(ended, SystemExit) and ended.code and "://" in os.environ.get("PULSELINE_HOME", ""):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ended.code if isinstance(ended.code, int) else 1)
