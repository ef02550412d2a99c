"""`pulseline maintain`: tables and history of all runs of a flow put in order now, and what that freed.

Runs do this by themselves every so many commits; one that makes few, or none any more, is left as it lies otherwise.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from pipelines.engine.commits.errors import LeaseHeldError
from pipelines.engine.commits.readers import log_state
from pipelines.engine.files.stored import StorePath
from pipelines.engine.live.examining import examine_run
from pipelines.engine.live.upkeep import Upkeep
from pipelines.errors import Exit, PulselineError
from pipelines.jobs.commands.doctor import GRAVE
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.exits import named
from pipelines.jobs.environment.settings import read_settings
from pipelines.jobs.runs.held import held_legs
from pipelines.jobs.runs.known import flow_name, open_run, runs_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipelines.jobs.runs.known import KnownRun

    Facts = dict[str, Any]


def maintain(called: str, as_json: bool, echo: Callable[[str], None]) -> int:  # noqa: FBT001 - the command's flag
    """Put every run in order: small files together, old versions and landed rows removed, then a look at all of it.

    Args:
        called: name of the flow, or the path of its file.
        as_json: ends with one JSON object: files and bytes before and after, by run, and what the doctor found.
        echo: where lines go.

    Returns:
        1 where something keeps a run from going on, else 0.

    Raises:
        WrongUse: no such flow, or it was never run.
    """
    settings = read_settings()
    name = flow_name(settings, called)
    runs = runs_of(settings, name)
    if not runs:
        raise WrongUse(f"nothing of {name} was run yet, so there is nothing to maintain")
    found = {run: _kept_or_told(called, run, settings.keep_landed, echo) for run in runs}
    freed = sum(each["freed_bytes"] for each in found.values())
    echo(f"{name}, all runs: {_freed(freed)}")
    ill = [f"{run}: {sentence}" for run, each in found.items() for sentence in each["ill"]]
    for sentence in ill:
        echo(sentence)
    if as_json:
        last = {"sentence": ill[0]} if ill else {}
        echo(json.dumps({"flow": name, "freed_bytes": freed, "runs": found, **last}))
    return Exit.CHECK_FAILED if ill else Exit.FINE


def _kept_or_told(called: str, run: str, rows: int | None, echo: Callable[[str], None]) -> Facts:
    """Put a run in order; of one that cannot be read, say so: the others are put in order all the same."""
    try:
        return _kept(open_run(called, run), rows, echo)
    except PulselineError as problem:
        told = named(str(problem), called, run)
        echo(f"run {run}: left as it is")
        nothing = {"before": 0, "after": 0}
        return {"files": nothing, "bytes": nothing, "freed_bytes": 0, "left": told, "ill": [told]}


def _kept(known: KnownRun, rows: int | None, echo: Callable[[str], None]) -> Facts:
    before, left = _extent(known.root), list[str]()
    try:
        with ExitStack() as leases:
            held = held_legs(known, leases)
            left = [leg for leg, driver in held.items() if not Upkeep(driver).keep(every=1, rows=rows)]
            why = "a commit waits to be finished, or none was begun" if left else ""
            where = f" of {', '.join(left)}" if 0 < len(left) < len(held) else ""
    except LeaseHeldError:
        why, where = "a driver is at work, which keeps it in order itself", ""
    # Where a driver is at work, what has changed is its doing.
    after = before if why and not where else _extent(known.root)
    # Behind it the log says more: whoever takes the lease finishes what an earlier driver left.
    found = [(part.root, each) for part in known.parts for each in examine_run(part.root, log_state(part.root))]
    grave = [
        f"{(own / each.table).relative_to(known.root).as_posix()}: {each.sentence}; next: {known.command('doctor')}"
        for own, each in found
        if each.ill in GRAVE
    ]
    told = f"{before[0]:,} files became {after[0]:,}"
    if where:
        told += f"; what is{where} is left as it is ({why})"
    elif why:
        told = f"left as it is: {why}"
    echo(f"run {known.run}: {told}; {_freed(before[1] - after[1])}")
    return {
        "files": {"before": before[0], "after": after[0]},
        "bytes": {"before": before[1], "after": after[1]},
        "freed_bytes": before[1] - after[1],
        "left": why or None,
        "ill": grave,
    }


def _freed(size: int) -> str:
    if size >= 0:
        return f"{size:,} bytes freed"
    # What is put together stands beside what it replaces until nobody reads that any more.
    return f"{-size:,} bytes more for now, as what was replaced stays readable for a while"


def _extent(root: Path) -> tuple[int, int]:
    """Count the files below a folder, and their bytes."""
    if isinstance(root, StorePath):
        sizes = [found.st_size for _, found in root.below()]
    else:
        sizes = [file.stat().st_size for file in root.rglob("*") if file.is_file()]
    return len(sizes), sum(sizes)
