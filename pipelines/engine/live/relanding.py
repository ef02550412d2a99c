"""Have what landed again from its feed, where it can no longer be read; what was there is kept below the run's folder.

An interval that is published lands again in its place, and counts only if the commit that ran over it gives the same
rows over what lands now. What nobody has seen yet is put aside with all behind it, and the next driver lands it again:
cuts do not matter.
"""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

from pipelines.engine.commits.entry import CommitKind, State
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.files.durable import make_folder, move, sync_folder
from pipelines.engine.landing.arrived import Standing
from pipelines.engine.landing.errors import LandingError
from pipelines.engine.landing.index import INTERVAL
from pipelines.engine.landing.manifest import alone_in, load_manifest, shelves
from pipelines.engine.landing.progress import SourceProgress
from pipelines.engine.landing.source_feed import Reading
from pipelines.engine.landing.write import write_sequence
from pipelines.engine.live.checkpoints import forget_checkpoints
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


def can_go_aside(landing: Path, state: LogState, number: int) -> bool:
    """Say whether a landed sequence and all behind it can be put aside, where its feeds are recorded.

    No commit that was published, also one that a reset took back, may have run over it, no buffer may hold it, and no
    commit that is written may wait over it: that one is published without looking at what landed.

    Raises:
        LandingError: what says where the buffers are cannot be read.
    """
    counts = (row for row in state.commits.values() if row.state in {State.PUBLISHED, State.WRITTEN})
    return number > max((max(row.sequences, default=0) for row in counts), default=0) and len(shelves(landing)) == 1


def put_aside_from(driver: Driver, number: int) -> int:
    """Put a landed sequence that cannot be read, and all behind it, aside: whoever goes on lands them again.

    Cut short, a part of them stands as it was, and is put aside the next time.

    Args:
        driver: holds the lease.
        number: of the sequence.

    Returns:
        How many were put aside; 0 where a commit has taken it since it was looked at.
    """
    root, pending = driver.root, driver.pending()
    if not can_go_aside(landed_path(root), driver.state(), number):
        return 0
    if pending is not None and max(pending.sequences, default=0) >= number:
        driver.abandon(pending.commit, why="what it was to run over cannot be read, and lands again")
    forget_checkpoints(root)
    landing, aside = landed_path(root), root / DAMAGED
    make_folder(aside)
    numbers = sorted((each for each in alone_in(landing) if each >= number), reverse=True)
    for each in numbers:
        driver.state()
        move(landing / f"{each:08}", aside / f"{each:08}-{time.time_ns() // 1_000}")
    return len(numbers)


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
        move(landing / made.name, damaged / f"{made.name}-{time.time_ns() // 1_000}")
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
