"""A commit worked on, whoever drives it: its sequences through the flow, and what the commit then says of itself.

A backfill commits an interval over one sequence, a stream an epoch over several, and `doctor` has either made again.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pipelines.engine.tasks.carry import Writes
from pipelines.engine.tasks.outcomes import add_landing_ledger, commit_counts, commit_hashes
from pipelines.engine.tasks.stages import Work, run_stages
from pipelines.flows.definition import flow_to_json
from pipelines.flows.legs import MAIN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from pipelines.engine.commits.entry import Entry
    from pipelines.engine.commits.history import LogState
    from pipelines.engine.landing.sequence import Chain, LandedSequence
    from pipelines.engine.landing.write import Spans
    from pipelines.engine.tasks.stages import Engine, Outcome, Queued
    from pipelines.engine.tasks.task import CommitShare
    from pipelines.flows.model import Flow


@dataclass(frozen=True)
class Sequences:
    """Closed sequences that follow one another, read as one."""

    parts: tuple[LandedSequence, ...]

    @property
    def buckets(self) -> int:
        """Give the number of buckets of the landing."""
        return self.parts[0].buckets

    def inputs(self, source: str, bucket: int) -> list[Chain]:
        """Give the files of a source's bucket as one chain, for each sequence comes after the one before."""
        files = tuple(file for part in self.parts for chain in part.inputs(source, bucket) for file in chain)
        return [files] if files else []

    def rows(self) -> int:
        """Count the rows and ledger lines of all sources."""
        return sum(source.rows for part in self.parts for source in part.sources.values()) + sum(
            part.ledger.rows for part in self.parts
        )


@dataclass(frozen=True, kw_only=True)
class WorkTerms:
    """What the commit of an interval that a run works on is not worked on with."""

    blind: Mapping[str, Spans] = field(default_factory=dict)
    """By source, the spans in which nobody listened."""
    writes: Writes = Writes.BASE
    """Whether the whole carry is written, or what changed of it."""
    session: str = ""
    """Under which tasks of one process keep their operators; empty where they do not."""
    kept: int = 0
    """The commit whose operators are kept."""
    leg: str = ""
    """The leg that works, where the flow has legs and it is not the one that takes what lands."""
    queued: Queued | None = None
    """What crosses to it."""
    rows: int | None = None
    """Rows that it takes in, where they are not those that landed."""
    into: Path | None = None
    """Folder that takes the files of a commit that is only looked at; else the run has them."""


AN_INTERVAL = WorkTerms()


@dataclass(frozen=True, kw_only=True)
class Worked:
    """What became of a commit's work; its files are written, and no table has them yet."""

    outcome: Outcome
    share: CommitShare
    counts: dict[str, dict[str, int]]
    hashes: dict[str, str]
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Together:
    """What became of the work of several commits in one go; each file holds rows of all of them."""

    outcome: Outcome
    counts: tuple[dict[str, dict[str, int]], ...]
    """Of each commit, in order."""
    hashes: tuple[dict[str, str], ...]
    carries: tuple[str, ...]
    """Content hash of the carry at each."""
    seconds: float


def commit_work(  # noqa: PLR0913 - what a commit is made of
    root: Path,
    flow: Flow,
    entry: Entry,
    landed: Sequences,
    state: LogState,
    engine: Engine,
    schemas: Mapping[str, pa.Schema],
    terms: WorkTerms = AN_INTERVAL,
    progress: Callable[[str], None] = lambda _: None,
) -> Worked:
    """Run a commit's sequences through its flow, and add what the landing set aside to its ledger.

    Safe to do again: files that were not added to their tables do not exist for readers.

    Args:
        root: the run's folder.
        flow: under whose plan the commit stands; its tables are there.
        entry: the commit, at intent.
        landed: its sequences.
        state: of the log of commits.
        engine: who runs the tasks.
        schemas: payload of each source.
        terms: of a stream's commit, or of one that is worked on again.
        progress: told in a few words what runs now.

    Raises:
        CommitError: the carry to begin from is not of the format that is written now.
    """
    begun = time.perf_counter()
    outcome = _run(root, flow, (entry,), landed, state, engine, schemas, terms, progress)
    # What lands is told once: by the leg that takes it, or by the flow in one piece.
    taken = () if terms.leg else landed.parts
    add_landing_ledger(terms.into or root, [(entry.commit, part) for part in taken], outcome)
    share = outcome.shares[entry.commit]
    counts, hashes = commit_counts(taken, share), commit_hashes(share)
    seconds = time.perf_counter() - begun
    return Worked(outcome=outcome, share=share, counts=counts, hashes=hashes, seconds=seconds)


def commits_work(  # noqa: PLR0913 - what commits are made of
    root: Path,
    flow: Flow,
    entries: Sequence[Entry],
    landed: Sequences,
    state: LogState,
    engine: Engine,
    schemas: Mapping[str, pa.Schema],
    progress: Callable[[str], None] = lambda _: None,
) -> Together:
    """Run intervals that follow one another through a flow in one go, a commit each.

    Cuts do not matter: rows, ledger, counts and carry of each are what they would be if it ran alone, but files are
    shared, and operators stay in memory from one to the next.

    Args:
        root: the run's folder.
        flow: under whose plan the commits stand; its tables are there.
        entries: the commits, in order.
        landed: the sequence of each.
        state: of the log of commits.
        engine: who runs the tasks.
        schemas: payload of each source.
        progress: told in a few words what runs now.

    Raises:
        CommitError: the carry to begin from is not of the format that is written now.
        FullError: an operator holds more than it may, in one of them.
    """
    begun = time.perf_counter()
    outcome = _run(root, flow, entries, landed, state, engine, schemas, AN_INTERVAL, progress)
    numbered = list(zip((entry.commit for entry in entries), landed.parts, strict=True))
    add_landing_ledger(root, numbered, outcome)
    shares = [outcome.shares[number] for number, _ in numbered]
    return Together(
        outcome=outcome,
        counts=tuple(commit_counts((part,), share) for (_, part), share in zip(numbered, shares, strict=True)),
        hashes=tuple(commit_hashes(share) for share in shares),
        carries=tuple(share.carry.text for share in shares),
        seconds=time.perf_counter() - begun,
    )


def _run(  # noqa: PLR0913 - what commits are made of
    root: Path,
    flow: Flow,
    entries: Sequence[Entry],
    landed: Sequences,
    state: LogState,
    engine: Engine,
    schemas: Mapping[str, pa.Schema],
    terms: WorkTerms,
    progress: Callable[[str], None],
) -> Outcome:
    first, last = entries[0], entries[-1]
    work = Work(
        root=root,
        definition=json.dumps(flow_to_json(flow)),
        schemas=schemas,
        commit=first.commit,
        parent=first.parent,
        start=first.span.start,
        close=last.span.end,
        landed=landed,
        state=state,
        blind=terms.blind,
        final=landed.parts[-1].final,
        writes=terms.writes,
        session=terms.session,
        kept=terms.kept,
        leg=terms.leg or (MAIN if flow.legs else ""),
        queued=terms.queued,
        into=terms.into,
        rows=landed.rows() if terms.rows is None else terms.rows,
        cuts=tuple((entry.commit, entry.span.end) for entry in entries) if len(entries) > 1 else (),
    )
    return run_stages(work, engine, progress)
