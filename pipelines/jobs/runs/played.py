"""The range of a recorded feed that a run was asked to play: kept in the run's folder, for it to go on from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pipelines.engine.files import durable

if TYPE_CHECKING:
    from pathlib import Path

FILE = "range.json"


def keep_range(root: Path, first: int, last: int) -> None:
    """Keep the range of a run, on disk when this returns.

    Args:
        root: the run's folder; made when it is not there.
        first: its first reading, in ticks.
        last: its last one, in ticks.
    """
    durable.make_folder(root)
    durable.replace(root / FILE, json.dumps([first, last]).encode())


def read_range(root: Path) -> tuple[int, int] | None:
    """Give the range of a run, its first and last reading, in ticks; None where none was kept or can be read."""
    try:
        first, last = json.loads((root / FILE).read_text(encoding="utf-8"))
        return int(first), int(last)
    except (OSError, ValueError, TypeError):
        return None
