"""Have what landed again from its feed, where it can no longer be read; what was there is kept below the run's folder.

What a commit has run over lands again in its place: where its manifest stands, only if it holds what that says;
an interval without, only if the commit gives the same rows over what lands now. What nobody has seen yet is put aside
with all behind it, and the next driver lands it again: cuts do not matter.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pipelines.engine.columnar.clock import wall_now
from pipelines.engine.commits.entry import CommitKind, State
from pipelines.engine.commits.history import OPEN_STATES
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.files.durable import make_folder, move, remove_folder
from pipelines.engine.files.packed import in_segment
from pipelines.engine.landing.arrived import Standing
from pipelines.engine.landing.errors import LandingError
from pipelines.engine.landing.index import INTERVAL, stands_as
from pipelines.engine.landing.manifest import alone_in, load_manifest, shelves, stands_alone
from pipelines.engine.landing.progress import SourceProgress
from pipelines.engine.landing.source_feed import Reading
from pipelines.engine.landing.write import write_sequence
from pipelines.engine.live.checkpoints import forget_checkpoints
from pipelines.engine.live.remaking import NotTheSameError, worked_the_same
from pipelines.engine.sources.catalog import open_recorded
from pipelines.engine.tasks.standing import flow_begun

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pipelines.engine.commits.driver import Driver
    from pipelines.engine.commits.entry import Entry
    from pipelines.engine.commits.history import LogState
    from pipelines.engine.landing.sequence import LandedSequence, LandedSource
    from pipelines.engine.landing.write import Spans
    from pipelines.engine.tasks.stages import Engine
    from pipelines.flows.model import Flow

DRAFT = "landed-again"
"""Folder below the run's in which an interval lands until it is known to be the same."""
READY = "landed-same"
"""Folder below the run's in which what landed again and was found the same stands until it is in its place."""
DAMAGED = "landed-damaged"
"""Folder below the run's in which what could not be read stays."""


@dataclass(eq=False)
class LandedOtherwiseError(LandingError):
    """A sequence was to land again as it had, and other rows land now.

    Facts: its number, and the source of which they are.
    """

    number: int
    source: str
    says = (
        "sequence {number} must land again with the rows that it had, and of {source} there are others now, so nothing "
        "was put in its place: put the feed's files back as they were, or `landed` out of a copy of the run's folder"
    )


@dataclass(eq=False)
class GivesOthersError(LandingError):
    """An interval landed again, and its commit gives other rows over what its feeds have now.

    Facts: the commit, and the table of which they are.
    """

    commit: int
    table: str
    says = (
        "commit {commit} must give the rows of {table} that it gave, and what its feeds have now of its interval gives "
        "others, so nothing was put in the place of what landed for it: put the feeds' files back as they were, or "
        "replace the interval by what arrives now (pulseline run FLOW with its --start and --end, and --accept-loss)"
    )


def can_land_again(entry: Entry) -> bool:
    """Say whether what a commit ran over can be had again from its feeds: an interval of feeds that are recorded."""
    return entry.kind is CommitKind.INTERVAL and len(entry.sequences) == 1 and bool(entry.plan)


def free_from(landing: Path, state: LogState) -> int | None:
    """Give the first landed sequence that can be put aside with all behind it, where its feeds are recorded.

    No commit that was published, also one that a reset took back, has run over it, and no commit that is written waits
    over it: that one is published without looking at what landed. None where buffers hold what landed.

    Raises:
        LandingError: what says where the buffers are cannot be read.
    """
    return None if len(shelves(landing)) > 1 else state.last_sequence(State.PUBLISHED, State.WRITTEN) + 1


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
    free = free_from(landed_path(root), driver.state())
    if free is None or number < free:
        return 0
    if pending is not None and max(pending.sequences, default=0) >= number:
        driver.abandon(pending.commit, why="what it was to run over cannot be read, and lands again")
    forget_checkpoints(root)
    landing = landed_path(root)
    numbers = sorted((each for each in alone_in(landing) if each >= number), reverse=True)
    for each in numbers:
        driver.state()
        _move_aside(root, landing / f"{each:08}")
    return len(numbers)


def _move_aside(root: Path, sequence: Path) -> None:
    make_folder(root / DAMAGED)
    move(sequence, root / DAMAGED / f"{sequence.name}-{wall_now()}")


def land_again(driver: Driver, commit: int, base: Path, engine: Engine) -> None:
    """Land the interval of a published commit again, and put it in the place of what cannot be read.

    Args:
        driver: holds the lease.
        commit: its number.
        base: the folder that the feeds' paths are relative to.
        engine: who runs the tasks by which it is seen to be the same.

    Raises:
        GivesOthersError: the commit gives other rows over what lands now; nothing was put in place.
        LandingError: the feed cannot be read.
    """
    root, state = driver.root, driver.state()
    with _draft(root) as draft:
        made = _landed(root, state, state.commits[commit], draft, base)
        try:
            worked_the_same(root, state, state.commits[commit], (made,), engine)
        except NotTheSameError as other:
            raise GivesOthersError(commit, other.table) from other
        driver.state()
        _put_in_place(root, made.folder)


def is_ready(root: Path, number: int) -> bool:
    """Say whether a sequence that is not there landed again and was found the same: a repair was cut short then."""
    return not stands_alone(landed_path(root), number) and stands_alone(root / READY, number)


def can_land_in_place(landing: Path, number: int) -> bool:
    """Say whether a landed sequence can land again in its place, where its feeds are recorded: by its manifest.

    That says of which span it was, and what it held.
    """
    made = _as_it_was(landing, number)
    return made is not None and made.removed is None and _is_alone(landing, number)


def can_stand_in(landing: Path, state: LogState, number: int) -> bool:
    """Say whether what its feeds have now may land in the place of a sequence, whatever it held.

    That is of an interval, nothing that is published was made of it, and its manifest is gone or cannot be read.
    """
    return _made_of(state, number) is not None and _as_it_was(landing, number) is None and _is_alone(landing, number)


def _is_alone(landing: Path, number: int) -> bool:
    return len(shelves(landing)) == 1 and not in_segment(landing, number)


def _made_of(state: LogState, number: int) -> Entry | None:
    """Give the newest commit of an interval that was made of a sequence, where none of those counts, or may yet."""
    made = [row for row in state.commits.values() if number in row.sequences]
    counts = {row.commit for row in state.published}
    if any(row.commit in counts or row.state in OPEN_STATES for row in made):
        return None
    return next((row for row in reversed(made) if can_land_again(row)), None)


def land_in_place(driver: Driver, number: int, base: Path) -> None:
    """Land a sequence again, and put it in the place of what cannot be read: of one whose manifest stands, the same.

    One that is ready only goes there. In the place of one of which nothing is published, and of whose rows nobody knows
    any more, what its feeds have now stands in, so that what comes behind it can be read.

    Args:
        driver: holds the lease.
        number: of the sequence.
        base: the folder that the feeds' paths are relative to.

    Raises:
        LandedOtherwiseError: other rows land now; nothing was put in place.
        LandingError: a feed cannot be read.
    """
    root, state = driver.root, driver.state()
    if is_ready(root, number):
        _finish(root, f"{number:08}")
        return
    landing = landed_path(root)
    entry = _made_of(state, number) if can_stand_in(landing, state, number) else None
    if entry is not None:
        with _draft(root) as draft:
            _put_in_place(root, _landed(root, state, entry, draft, base).folder)
        return
    before = load_manifest(landing, number)
    plans = (row.plan for row in reversed(list(state.commits.values())) if number in row.sequences and row.plan)
    flow = flow_begun(root, str(next(plans, state.newest_plan)), lambda: before)
    with _draft(root) as draft:
        standing = Standing.FIRST if number == 1 else Standing.LATER
        made = _written(
            draft,
            number,
            replace(flow, buckets=before.buckets),
            Reading(before.start, before.end, before.buckets, standing),
            base,
            kind=before.kind,
            version=before.version,
            final=before.final,
            blind={name: landed.blind_spans for name, landed in before.sources.items()},
        )
        for name in sorted({*before.sources, *made.sources}):
            if not _same(before.sources.get(name), made.sources.get(name)):
                raise LandedOtherwiseError(number, name)
        if before.ledger.content != made.ledger.content:
            raise LandedOtherwiseError(number, "the ledger")
        driver.state()
        _put_in_place(root, made.folder)


def _same(one: LandedSource | None, other: LandedSource | None) -> bool:
    return one is not None and other is not None and stands_as(one) == stands_as(other)


def _written(  # noqa: PLR0913 - all that a sequence is, but its rows
    draft: Path,
    number: int,
    flow: Flow,
    reading: Reading,
    base: Path,
    *,
    kind: str,
    version: int,
    final: int | None,
    blind: Mapping[str, Spans],
) -> LandedSequence:
    """Land what the feeds have of a span; see `write_sequence`."""
    feeds = open_recorded(flow, base)
    arrived = {name: feeds[name].arrive(reading, SourceProgress()) for name in flow.sources}
    return write_sequence(
        draft,
        number,
        flow,
        arrived,
        kind=kind,
        start=reading.start,
        end=reading.end,
        version=version,
        final=final,
        blind=blind,
    )


@contextmanager
def _draft(root: Path) -> Iterator[Path]:
    """Give an empty folder to land in, and leave none."""
    draft = root / DRAFT
    remove_folder(draft, ignore_errors=True)
    make_folder(draft)
    try:
        yield draft
    finally:
        remove_folder(draft, ignore_errors=True)


def _put_in_place(root: Path, made: Path) -> None:
    """Put what was found the same in the place of what cannot be read: between the two, it stands in `READY`."""
    remove_folder(root / READY, ignore_errors=True)
    make_folder(root / READY)
    move(made, root / READY / made.name)
    _finish(root, made.name)


def _finish(root: Path, name: str) -> None:
    landing = landed_path(root)
    if (landing / name).exists():
        _move_aside(root, landing / name)
    make_folder(landing)
    move(root / READY / name, landing / name)
    remove_folder(root / READY, ignore_errors=True)


def _landed(root: Path, state: LogState, entry: Entry, draft: Path, base: Path) -> LandedSequence:
    number, landing = entry.sequences[0], landed_path(root)
    flow = flow_begun(root, str(entry.plan), lambda: load_manifest(landing, number))
    before = _as_it_was(landing, number)
    standing = Standing.LATER if state.parent_of(entry.commit) else Standing.FIRST
    return _written(
        draft,
        number,
        flow,
        Reading(entry.span.start, entry.span.end, flow.buckets, standing),
        base,
        kind=INTERVAL,
        version=before.version if before else _version(state, entry),
        final=before.final if before else None,
        blind={},
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
