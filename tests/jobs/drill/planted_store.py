"""Bugs that are put into processes of the drill `store`: what a drill that cannot fail would not find."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.engine.commits import housekeeping, sweep
from pipelines.engine.files.stored import StorePath

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable
    from pathlib import Path

    from pipelines.engine.commits.history import LogState
    from pipelines.engine.commits.table_log import TableLog


def foreign() -> None:
    """Have a write whose answer was lost taken for another's, as by whoever does not read what stands there."""

    def standing(path: StorePath) -> tuple[bytes | None, str]:
        return (b"another's", "") if path.is_file() else (None, "")

    StorePath._standing = standing  # type: ignore[assignment, method-assign]


def hasty() -> None:
    """Have files removed that a listing does not name which was read a while ago: newer commits may have named them."""
    known: list[LogState] = []

    def swept(
        root: Path, keep: dt.timedelta, state: LogState, log_of: Callable[[Path], TableLog] = sweep.opened
    ) -> sweep.Swept:
        known.append(state)
        return sweep.sweep(root, keep, known[max(len(known) - 2, 0)], log_of)

    sweep._is_open = lambda *_: False
    housekeeping.sweep = swept  # type: ignore[attr-defined]
