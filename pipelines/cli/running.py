"""How every command runs: what it prints, and what becomes of an error."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, ParamSpec

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")


def tell(text: str) -> None:
    """Print a text in which nothing steers the terminal, whatever a row says."""
    from pipelines.jobs.text.visible import visible

    typer.echo(visible(text))


def guarded(command: Callable[P, int | None]) -> Callable[P, None]:
    """Turn what a job raises into one line and an exit code."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        from pipelines.jobs.environment.access import kept
        from pipelines.jobs.environment.diagnostics import log_to_stderr
        from pipelines.jobs.environment.exits import exit_code_of, named
        from pipelines.jobs.text.visible import visible

        try:
            log_to_stderr()
            with kept():
                code = command(*args, **kwargs) or 0
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the one place that catches
            code, line = exit_code_of(error)
            if line:
                typer.echo(visible(named(line, kwargs.get("flow"), kwargs.get("run"))), err=True)
        raise typer.Exit(code)

    return run


def quick(command: Callable[P, int | None]) -> Callable[P, None]:
    """As `guarded`, for a command that looks at tables or writes a row: loading all that others need takes longer."""
    ready = guarded(command)

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        from pipelines.jobs.environment.quick_start import start_quickly

        start_quickly()
        ready(*args, **kwargs)

    return run
