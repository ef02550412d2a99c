"""Runs that a command makes anew each time: a mark says whose they are, and no other folder is ever removed.

`pulseline demo`, `parity` and `replay` make such runs. A run without the command's mark is somebody's, whatever its
name is; one with the mark may still be in somebody's hands, so it goes only under its own lease.
"""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

from pipelines.engine.commits.driver import open_driver
from pipelines.engine.files import durable
from pipelines.engine.files.stored import is_stored
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.runs.replaced import FILE

if TYPE_CHECKING:
    from pathlib import Path

GONE = ".gone"
"""Beside the runs, where one goes in one step before it is removed."""


def mark_file(root: Path, command: str) -> Path:
    """Name the file by which a command knows a run that it made."""
    return root / f"{command}.json"


def is_remade(root: Path, command: str) -> bool:
    """Say whether a folder is free for a command to make a run in: its own, empty, or not there."""
    mark = mark_file(root, command)
    if mark.exists() or not root.exists():
        return True
    # What a command left that was killed while it wrote its mark, or refused before it began anything.
    return root.is_dir() and all(each.name == FILE or each.name.startswith(f".{mark.name}.") for each in root.iterdir())


def require_remade(root: Path, command: str) -> None:
    """See that a run may be made anew by a command.

    Raises:
        WrongUse: it is there and the command did not make it.
    """
    if not is_remade(root, command):
        raise WrongUse(
            f"pulseline {command} makes run `{root.name}` of {root.parent.name} anew each time, and so must have made "
            f"the one that is there; {root} has no mark of it: give that folder another name, or remove it if nobody "
            "needs it"
        )


def make_anew(root: Path, flow: str, command: str, **facts: object) -> None:
    """Give a command an empty folder with its mark, in place of what it made there before.

    Killed anywhere, the next call can do the same.

    Args:
        root: of the run.
        flow: its name.
        command: `demo`, `parity` or `replay`.
        facts: what the mark tells beside.

    Raises:
        WrongUse: what is there was not made by the command.
        LeaseHeldError: somebody holds the lease of what is there.
    """
    clear(root, flow, command)
    # Before anything else is there: a run that was stopped early must still be known as the command's.
    durable.make_folder(root)
    told = {"made_by": f"pulseline {command}", "note": "the next call removes this run"}
    durable.replace(mark_file(root, command), json.dumps(told | facts).encode())


def clear(root: Path, flow: str, command: str) -> None:
    """Remove what a command made before; see `make_anew`.

    Raises:
        WrongUse: what is there was not made by the command.
        LeaseHeldError: somebody holds the lease of what is there.
    """
    require_remade(root, command)
    gone = root.parent / GONE / root.name
    durable.remove_folder(gone, ignore_errors=True)
    if mark_file(root, command).exists():
        # Whoever holds the lease is at work there. It is given back first, for that is written down too.
        with open_driver(root, flow=flow):
            gone.parent.mkdir(exist_ok=True)
        if is_stored(root):
            # The mark goes last: what is left of a run that was made here is still known for one.
            durable.remove_folder(root, but=mark_file(root, command))
            durable.remove_folder(durable.of_this_machine(root), ignore_errors=True)
            mark_file(root, command).unlink()
            return
        root.rename(gone)
        shutil.rmtree(gone)
    with suppress(OSError):
        gone.parent.rmdir()
