"""How a live source is at this moment, in a small file of the run's folder that `pulseline status` reads.

Nothing is decided by it: it may be old, or missing.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pipelines.engine.files.durable import whole

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = "sources"


def state_path(root: Path, source: str) -> Path:
    """Name the file of a source in a run's folder."""
    return root / FOLDER / f"{source}.json"


def write_state(root: Path, source: str, **facts: object) -> None:
    """Replace what is said of a source; where the storage does not take it, what was said stays."""
    path = state_path(root, source)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole(path) as draft:
            draft.write_text(json.dumps(facts), encoding="utf-8")


def read_state(root: Path, source: str) -> dict[str, Any] | None:
    """Give what was last said of a source; None where nothing can be read."""
    try:
        said = json.loads(state_path(root, source).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return said if isinstance(said, dict) else None


def read_states(root: Path) -> dict[str, dict[str, Any]]:
    """Give what was last said of every source of a run that says anything, by name."""
    names = sorted(path.stem for path in (root / FOLDER).glob("*.json"))
    return {name: state for name in names if (state := read_state(root, name)) is not None}
