"""A home that older code wrote, for drills: what it holds is told in `older/README.md`."""

from __future__ import annotations

import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.engine.commits.log import CommitLog
from pipelines.engine.commits.upgrade import OLDER
from pipelines.engine.files.durable import sync_file, sync_folder

if TYPE_CHECKING:
    from pipelines.engine.commits.history import LogState

OLDER_HOME = Path(__file__).parent / "older" / "older.tar.gz"
RUN = Path("older") / "runs" / "live"


def unpack(root: Path) -> None:
    """Put the stream of the older home where a run's folder is to be; on disk when this returns.

    Args:
        root: the run's folder, which is not there.
    """
    root.parent.mkdir(parents=True)
    with tempfile.TemporaryDirectory(dir=root.parent) as folder, tarfile.open(OLDER_HOME) as packed:
        packed.extractall(folder, filter="data")
        (Path(folder) / RUN).rename(root)
    for each in [*root.rglob("*"), root, *root.parents[:3]]:
        (sync_folder if each.is_dir() else sync_file)(each)


def write_flow(file: Path, name: str) -> None:
    """Write the flow of the older home, under a name."""
    with tarfile.open(OLDER_HOME) as packed:
        found = packed.extractfile("older/flow.yaml")
        text = found.read().decode() if found else ""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text.replace("flow: parcels", f"flow: {name}"))


def older_state(root: Path) -> LogState | None:
    """Read the log of a run's folder that was not taken over yet; None where it was."""
    found = CommitLog(root, frozenset({0, OLDER, OLDER + 1})).state()
    return found if found.format == OLDER else None
