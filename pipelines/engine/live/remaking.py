"""Have the files of a published commit again, from the landing and under the plan of its intent.

The tasks run as they did, from the carry that the commit began from, and count only if every content hash is the one
that the commit's row tells. So what is had again is what was lost, or it is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from pipelines.engine.columnar.content import ContentHash
from pipelines.engine.commits.entry import CommitKind, Entry, State
from pipelines.engine.commits.errors import CommitError
from pipelines.engine.commits.file_lists import lists_to_json
from pipelines.engine.commits.paths import landed_path, run_root
from pipelines.engine.files.durable import sync_files
from pipelines.engine.files.folders import CARRY
from pipelines.engine.files.writing import NO_ROWS
from pipelines.engine.landing.manifest import read_sequence
from pipelines.engine.live.crossed import PublishedSpan
from pipelines.engine.live.epochs import spans_over
from pipelines.engine.sources.landed_schema import payloads_over
from pipelines.engine.tasks.carry import Writes
from pipelines.engine.tasks.commit_work import AN_INTERVAL, Sequences, WorkTerms, commit_work
from pipelines.engine.tasks.outcomes import commit_hashes
from pipelines.engine.tasks.standing import flow_begun

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pipelines.engine.commits.driver import Driver
    from pipelines.engine.commits.history import LogState
    from pipelines.engine.landing.sequence import LandedSequence
    from pipelines.engine.tasks.stages import Engine, Outcome
    from pipelines.engine.tasks.task import CommitShare
    from pipelines.flows.model import Flow


@dataclass(eq=False)
class NotTheSameError(CommitError):
    """A commit that was worked on again gave other rows than it did.

    Facts: the commit, the table, and both content hashes.
    """

    commit: int
    table: str
    stands: str
    came: str
    says = (
        "commit {commit} must give the rows of {table} that it gave ({stands}); it gives others ({came}), so nothing "
        "was put in their place: an operator has changed since; use the version that wrote it, or run its span again"
    )


class Unlike(NamedTuple):
    """A table of which a commit that was worked on again gave other rows."""

    table: str
    """A stream, `ledger`, or `carry`."""
    stands: str
    """Text of the content hash that the commit's row tells."""
    came: str


def can_be_remade(state: LogState, commit: int) -> bool:
    """Say whether a commit's rows come of a plan and of landed sequences, and so can be had again."""
    row = state.commits.get(commit)
    return row is not None and bool(row.plan) and row.kind in {CommitKind.INTERVAL, CommitKind.EPOCH}


def remake(driver: Driver, commit: int, tables: Collection[str], engine: Engine) -> None:
    """Work on a published commit again, and put what comes of it in place of its lost files.

    Args:
        driver: holds the lease.
        commit: its number.
        tables: those whose files are lost, named by their folders below the root.
        engine: who runs the tasks.

    Raises:
        NotTheSameError: the rows are not those that the commit gave.
        LandingError: what had landed cannot be read.
        TableError: the carry to begin from is gone too.
    """
    state = driver.state()
    entry = state.commits[commit]
    landed = landed_path(run_root(driver.root))
    parts = tuple(read_sequence(landed, number) for number in entry.sequences)
    files = worked_the_same(driver.root, state, entry, parts, engine).new_files()
    for name in sorted(tables):
        made = [file._replace(first=commit, last=commit) for file in files.get(name, [])]
        sync_files(driver.root, [driver.root / name / file.name for file in made])
        driver.tables.note(
            Entry(
                state=State.COMPACTED,
                kind=CommitKind.HOUSE,
                files=lists_to_json(driver.root, 0, {name: made}),
                detail={"table": name, "covers": [[commit, commit]], "out": [], "why": "made again"},
            )
        )


def worked_the_same(
    root: Path, state: LogState, entry: Entry, parts: tuple[LandedSequence, ...], engine: Engine
) -> Outcome:
    """Work on a published commit again, over these sequences, and see that it gives what it gave; nothing is changed.

    Raises:
        NotTheSameError: the rows are not those that the commit gave.
        LandingError: what had landed cannot be read.
        TableError: the carry to begin from is gone too.
    """
    outcome = _worked(root, state, entry, parts, engine)
    for other in _unlike(state, entry, outcome.shares[entry.commit]):
        raise NotTheSameError(entry.commit, *other)
    return outcome


def worked_aside(  # noqa: PLR0913 - a commit, what it is made of, and where it goes
    root: Path, state: LogState, entry: Entry, parts: tuple[LandedSequence, ...], engine: Engine, folder: Path
) -> tuple[Outcome, list[Unlike]]:
    """Work on a commit again, into a folder that is not the run's, and hold what comes against what it said.

    Args:
        root: the run's folder, or of one of its legs; only read.
        state: its log.
        entry: the commit.
        parts: its sequences.
        engine: who runs the tasks.
        folder: takes the files, laid out as the run's are.

    Returns:
        The files, and the tables of which the content is another.

    Raises:
        LandingError: what had landed cannot be read.
        TableError: the carry to begin from is gone.
    """
    outcome = _worked(root, state, entry, parts, engine, folder)
    return outcome, list(_unlike(state, entry, outcome.shares[entry.commit]))


def _worked(  # noqa: PLR0913 - as above
    root: Path,
    state: LogState,
    entry: Entry,
    parts: tuple[LandedSequence, ...],
    engine: Engine,
    into: Path | None = None,
) -> Outcome:
    flow = flow_begun(root, str(entry.plan), lambda: parts[0])
    entry = replace(entry, parent=state.parent_of(entry.commit))
    with TemporaryDirectory(prefix="pulseline-remade-") as folder:
        terms = replace(_terms(root, flow, state, entry, parts, Path(folder)), into=into)
        worked = commit_work(root, flow, entry, Sequences(parts), state, engine, payloads_over(flow, parts), terms)
    return worked.outcome


def _terms(  # noqa: PLR0913 - what a commit was made of
    root: Path, flow: Flow, state: LogState, entry: Entry, parts: tuple[LandedSequence, ...], folder: Path
) -> WorkTerms:
    """Give the terms on which a commit was worked on; what crossed to its leg is read out of the others' tables."""
    if entry.kind is not CommitKind.EPOCH:
        return AN_INTERVAL
    run = run_root(root)
    behind = run != root
    return WorkTerms(
        blind=spans_over(landed_path(run), parts),
        writes=Writes.BOTH if state.is_folded(entry.commit) else Writes.DELTA,
        leg=root.name if behind else "",
        queued=PublishedSpan(run, flow, entry.span, parts[0].buckets, folder) if behind else None,
    )


def _unlike(state: LogState, entry: Entry, share: CommitShare) -> Iterator[Unlike]:
    """Give the tables of which the content is not what the row of a commit tells."""
    came = commit_hashes(share)
    for name, stands in entry.hashes.items():
        if came.get(name, NO_ROWS.text) != stands:
            yield Unlike(name, stands, came.get(name, NO_ROWS.text))
    parent = state.commits.get(entry.parent) if entry.kind is CommitKind.EPOCH else None
    before = ContentHash.from_text(parent.carry_hash) if parent and parent.carry_hash else NO_ROWS
    carry = (before + share.carry).text
    if entry.carry_hash is not None and carry != entry.carry_hash:
        yield Unlike(CARRY, entry.carry_hash, carry)
