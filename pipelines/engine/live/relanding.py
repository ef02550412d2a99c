"""Have a landed interval again from its feed, where what landed can no longer be read.

It counts only if the commit that ran over it gives the same rows over what lands now; what was there before is kept
below the run's folder.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from pipelines.engine.commits.entry import CommitKind
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.files.durable import make_folder, sync_folder
from pipelines.engine.landing.arrived import Standing
from pipelines.engine.landing.errors import LandingError
from pipelines.engine.landing.index import INTERVAL
from pipelines.engine.landing.manifest import load_manifest
from pipelines.engine.landing.progress import SourceProgress
from pipelines.engine.landing.source_feed import Reading
from pipelines.engine.landing.write import write_sequence
from pipelines.engine.live.remaking import worked_the_same
from pipelines.engine.sources.catalog import open_recorded
from pipelines.engine.tasks.standing import flow_begun

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.engine.commits.driver import Driver
    from pipelines.engine.commits.entry import Entry
    from pipelines.engine.commits.history import LogState
    from pipelines.engine.landing.sequence import LandedSequence
    from pipelines.engine.tasks.stages import Engine

DRAFT = "landed-again"
"""Folder below the run's in which an interval lands until it is known to be the same."""
DAMAGED = "landed-damaged"
"""Folder below the run's in which what could not be read stays."""


def can_land_again(entry: Entry) -> bool:
    """Say whether what a commit ran over can be had again from its feeds: an interval of feeds that are recorded."""
    return entry.kind is CommitKind.INTERVAL and len(entry.sequences) == 1 and bool(entry.plan)


def land_again(driver: Driver, commit: int, base: Path, engine: Engine) -> None:
    """Land the interval of a published commit again, and put it in the place of what cannot be read.

    Args:
        driver: holds the lease.
        commit: its number.
        base: the folder that the feeds' paths are relative to.
        engine: who runs the tasks by which it is seen to be the same.

    Raises:
        NotTheSameError: the commit gives other rows over what lands now; nothing was put in place.
        LandingError: the feed cannot be read.
    """
    root, state = driver.root, driver.state()
    draft = root / DRAFT
    shutil.rmtree(draft, ignore_errors=True)
    make_folder(draft)
    made = _landed(root, state, state.commits[commit], draft, base)
    worked_the_same(root, state, state.commits[commit], (made,), engine)
    driver.state()
    _put_in_place(root, made.folder)
    shutil.rmtree(draft)


def _put_in_place(root: Path, made: Path) -> None:
    landing, damaged = landed_path(root), root / DAMAGED
    if (landing / made.name).exists():
        make_folder(damaged)
        shutil.rmtree(damaged / made.name, ignore_errors=True)
        (landing / made.name).rename(damaged / made.name)
    make_folder(landing)
    made.rename(landing / made.name)
    sync_folder(landing)


def _landed(root: Path, state: LogState, entry: Entry, draft: Path, base: Path) -> LandedSequence:
    number, landing = entry.sequences[0], landed_path(root)
    flow = flow_begun(root, str(entry.plan), lambda: load_manifest(landing, number))
    feeds, before = open_recorded(flow, base), _as_it_was(landing, number)
    standing = Standing.LATER if state.parent_of(entry.commit) else Standing.FIRST
    reading = Reading(entry.span.start, entry.span.end, flow.buckets, standing)
    return write_sequence(
        draft,
        number,
        flow,
        {name: feeds[name].arrive(reading, SourceProgress()) for name in flow.sources},
        kind=INTERVAL,
        start=reading.start,
        end=reading.end,
        version=before.version if before else _version(state, entry),
        final=before.final if before else None,
    )


def _as_it_was(landing: Path, number: int) -> LandedSequence | None:
    """Give what the manifest says, where that can still be read."""
    try:
        return load_manifest(landing, number)
    except (LandingError, OSError, ValueError):
        return None


def _version(state: LogState, entry: Entry) -> int:
    """Say how often the interval had landed."""
    landed = {row.sequences for row in state.commits.values() if row.span == entry.span and row.sequences}
    return sum(sequences <= entry.sequences for sequences in landed)
