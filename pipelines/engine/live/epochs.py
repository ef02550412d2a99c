"""Epochs, the commits of a stream: a small one runs in the driver's process, and Spark then does no more than start it.

Each takes closed sequences in their order and runs the flow over them. The caller's `engine` says by the number of rows
who runs the tasks: few run right here, for Spark would need longer to hand them out; more go to Spark's executors.

Spark's batch ids mean nothing here. An epoch keeps, of the sequences it was given, those after the last published one;
it is done when none is left. The tables are the truth: a lost checkpoint is made anew, and one that is ahead of the
tables is refused.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from pipelines.engine.columnar.content import ContentHash
from pipelines.engine.commits.carry_format import UPGRADES, require_current
from pipelines.engine.commits.errors import CommitError
from pipelines.engine.commits.history import CommitKind, Span, State
from pipelines.engine.commits.paths import TableAheadError
from pipelines.engine.commits.plan import plan_of
from pipelines.engine.files.writing import NO_ROWS
from pipelines.engine.landing.index import READING, Landing, joined
from pipelines.engine.landing.manifest import is_closed, load_manifest, read_sequence
from pipelines.engine.live.lateness import lateness
from pipelines.engine.sources.landed_schema import payloads_over
from pipelines.engine.tasks.carry import Writes
from pipelines.engine.tasks.commit_work import Sequences, WorkTerms, commit_work
from pipelines.engine.tasks.stages import create_tables
from pipelines.engine.tasks.standing import flow_begun
from pipelines.flows.definition import fingerprint_of
from pipelines.flows.legs import MAIN
from pipelines.operators.rows import INFINITY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from pipelines.engine.commits.driver import Driver
    from pipelines.engine.commits.history import Entry, LogState
    from pipelines.engine.files.writing import Written
    from pipelines.engine.landing.sequence import LandedSequence
    from pipelines.engine.landing.write import Spans
    from pipelines.engine.live.crossing import Crossing
    from pipelines.engine.tasks.stages import Engine
    from pipelines.flows.model import Flow

FOLD_EVERY = 50
"""Epochs between two bases of the carry: whoever starts anew reads at most so many deltas."""
SMALL_EPOCH = 50_000
"""Rows up to which an epoch's tasks run in the driver, where handing them out would cost more than running them."""
UNKNOWN_DUE = -INFINITY


@dataclass(eq=False)
class SequencesAheadError(CommitError):
    """An epoch was planned from sequences beyond what the tables hold."""

    first: int
    last: int
    published: int

    def __str__(self) -> str:
        return (
            f"an epoch must go on from the last published sequence, {self.published}; the checkpoint plans sequences "
            f"{self.first} to {self.last}, so {self.published + 1} to {self.first - 1} would be lost: the "
            "checkpoint is not of these tables; remove the run's folder `checkpoints` and start again"
        )


@dataclass(eq=False)
class SequenceGapError(CommitError):
    """A sequence does not begin where the tables end.

    Instants in ticks.
    """

    sequence: int
    start: int
    published: int

    def __str__(self) -> str:
        """Say what came."""
        from pipelines.engine.columnar.columns import instant_text

        return (
            f"sequence {self.sequence} must begin where what came before it ends, {instant_text(self.published)}; "
            f"it begins at {instant_text(self.start)}: the landing and the tables are not of one run; put back the "
            "sequences that landed in this one, out of a copy of its folder"
        )


@dataclass(eq=False)
class PendingIntervalError(CommitError):
    """A stream found an interval that a backfill began and did not finish.

    Keep the commit's number, and how far it has come.
    """

    commit: int
    state: State

    def __str__(self) -> str:
        if self.state is State.WRITTEN:
            return (
                f"commit {self.commit} must be published or rejected before a stream goes on; it is an interval of a "
                f"backfill that waits to be checked: pulseline check FLOW --commit {self.commit}, then publish it"
            )
        return (
            f"commit {self.commit} must be finished by what began it; it is an interval of a backfill: "
            "pulseline run over the same span first"
        )


def nothing_else(_: Sequence[int], __: Exception) -> bool:
    """Say that what a landing holds is to be had nowhere else."""
    return False


@dataclass
class EpochRunner:
    """Runs the epochs of one flow under one lease.

    Args:
        driver: holds the lease.
        flow: what runs; a commit that is pending from before is finished under its own plan.
        landing: folder of the sequences.
        engine: who runs the tasks of an epoch.
        now: what time it is on the flow's clock, and how much faster than the wall that clock runs.
        blind: gives, per source, the spans in which nobody listened that matter to a sequence; the landing's manifests
            are read for them unless given.
    """

    driver: Driver
    flow: Flow
    landing: Path
    engine: Callable[[int], Engine]
    now: Callable[[], tuple[int, float]] = lambda: (0, 1.0)
    blind: Callable[[LandedSequence], Mapping[str, Spans]] | None = None
    secure: Callable[[Sequence[int]], None] = lambda _: None
    """Given the sequences of an epoch before it is published: has them where what is published has to be."""
    published: Callable[[Entry], None] = lambda _: None
    open: Callable[[int], LandedSequence] | None = None
    """Gives a closed sequence whose files can be trusted; the landing's own unless given."""
    doubt: Callable[[Sequence[int], Exception], bool] = nothing_else
    """Asked when the reading of sequences failed: says whether they are to be had now, from there or elsewhere."""
    crossing: Crossing | None = None
    """What other legs hand to the one that runs here; None where the flow runs in one piece, and of what lands."""
    handed: Callable[[Entry, Mapping[str, Sequence[Written]]], None] = lambda _, __: None
    """Told, right behind its publication, which files a commit wrote, by table."""
    upto: int = field(default=0, init=False)
    """The last sequence that is known to be published; any thread may look."""
    _next_due: int = field(default=UNKNOWN_DUE, init=False)
    _session: str = field(default="", init=False)
    _kept: int = field(default=0, init=False)
    """The last commit that was worked on here; since then nothing was due."""
    _since_base: int = field(default=0, init=False)
    _files: Mapping[str, Sequence[Written]] = field(default_factory=dict, init=False)
    """What the commit that was worked on last wrote."""
    _ran: str = field(default="", init=False)
    """Fingerprint of the plan that ran last: its tables are there, and its operators are the ones that are kept."""

    @property
    def root(self) -> Path:
        """Give the run's folder."""
        return self.driver.root

    def last_sequence(self) -> int:
        """Give the last sequence that a published commit holds; 0 before the first."""
        state = self.driver.state()
        self.upto = state.tip.upto if state.tip else 0
        if state.tip is not None and state.tip.kind is CommitKind.INTERVAL:
            self.upto = self._before_readings(state, state.tip)
        return self.upto

    def _before_readings(self, state: LogState, tip: Entry) -> int:
        """Give the last sequence before what a stream landed behind an interval that was run again, and landed anew."""
        landed = [number for row in state.commits.values() if row.span == tip.span for number in row.sequences]
        between = range(min(landed, default=tip.upto) + 1, tip.upto)
        return next((number - 1 for number in between if self._is_streamed(number)), tip.upto)

    def is_quiet(self, last: int, reading: int) -> bool:
        """Say whether all sequences are published, and silence alone makes nothing leave before a reading.

        Args:
            last: id of the last closed sequence.
            reading: in ticks.
        """
        return self.upto >= last and self._next_due >= reading

    def finish_pending(self) -> Entry | None:
        """Finish the commit that an earlier driver left, under its own plan.

        Raises:
            PlanChangedError: this code can no longer run that plan.
            PendingIntervalError: it is an interval of a backfill.
            TableAheadError: a table has it or a later one: an older copy of `commits` stands there.
        """
        pending = self.driver.pending()
        if pending is None:
            return None
        if pending.kind is CommitKind.ADOPT:
            self.driver.abandon(pending.commit, why="the carry was not wholly taken over")
            return None
        if pending.kind is not CommitKind.EPOCH:
            raise PendingIntervalError(pending.commit, pending.state)
        if pending.state is State.WRITTEN or pending.plan is None:
            return self.driver.publish(pending.commit)
        try:
            self.driver.agree(pending.commit)
        except TableAheadError:
            # Whoever was overtaken on its last step has taken it meanwhile, and the tables are right.
            if self.driver.pending() == pending:
                raise
            return self.finish_pending()
        flow = flow_begun(self.root, pending.plan, lambda: self._opened(pending.sequences[-1]))
        entry = pending.under(fingerprint_of(flow))
        done = self._worked(flow, entry)
        if self._ran != fingerprint_of(self.flow):
            self._next_due = UNKNOWN_DUE
        return done

    def advance(self, after: int, upto: int) -> Entry | None:
        """Run one epoch over the sequences after `after` up to `upto`, less those that are published already.

        Sequences with another number of buckets are an epoch of their own.

        Returns:
            The last published commit; None where nothing was left to do.

        Raises:
            SequencesAheadError: sequences between the published ones and `after` would be lost.
            SequenceGapError: the first sequence does not begin where the tables end.
        """
        done = self.last_sequence()
        if any(
            self._is_streamed(number) or not is_closed(self.landing, number) for number in range(done + 1, after + 1)
        ):
            raise SequencesAheadError(after + 1, upto, done)
        landed = [self._opened(number) for number in range(max(done, after) + 1, upto + 1)]
        streamed = tuple(sequence for sequence in landed if sequence.kind == READING)
        # Where the flow's number of buckets was changed between two sequences, the layout of their files changes too.
        entries = [self.play(tuple(parts)) for _, parts in groupby(streamed, key=lambda sequence: sequence.buckets)]
        # What an interval landed that was run again under the stream is none of its sequences.
        self.upto = max(self.upto, upto)
        return entries[-1] if entries else None

    def _is_streamed(self, number: int) -> bool:
        """Say whether a sequence is there, and a stream's: an interval's may have been run again under it."""
        return is_closed(self.landing, number) and load_manifest(self.landing, number).kind == READING

    def play(self, parts: tuple[LandedSequence, ...]) -> Entry:
        """Run one epoch over sequences that follow one another, whatever closed them.

        Args:
            parts: at least one, all with the same number of buckets; only the last may have the final punctuation.

        Raises:
            SequenceGapError: the first does not begin where the tables end.
            CommitError: the carry to begin from is not of the format that is written now.
        """
        sequences, numbers = Sequences(parts), [sequence.id for sequence in parts]
        span = Span(sequences.parts[0].start, sequences.parts[-1].end)
        tip = self.driver.state().tip
        _see_no_gap(parts, span.start if tip is None else tip.span.end)
        rows = self._rows(sequences)
        if rows == 0 and self._next_due >= span.end and sequences.parts[-1].final is None:
            return self._idle(span, numbers)
        if tip is not None:
            require_current(self.driver.state(), tip.commit)
        self._prepare(self.flow, sequences)
        entry = self.driver.intent(
            self.driver.next_number(),
            span,
            tip.commit if tip else 0,
            numbers,
            plan_of(self.flow, UPGRADES.current),
            fingerprint_of(self.flow),
            kind=CommitKind.EPOCH,
        )
        return self._worked(self.flow, entry, sequences)

    def _opened(self, number: int) -> LandedSequence:
        return read_sequence(self.landing, number) if self.open is None else self.open(number)

    def _worked(self, flow: Flow, entry: Entry, sequences: Sequences | None = None) -> Entry:
        """Work on a commit; where its sequences prove to be damaged meanwhile, again with what can be had of them."""
        while True:
            landed = sequences or Sequences(tuple(self._opened(number) for number in entry.sequences))
            try:
                done = self._work(flow, entry, landed)
            except Exception as problem:
                if not self.doubt(entry.sequences, problem):
                    raise
                sequences = None
            else:
                # Not among what is begun again: the commit is published, whatever comes of this.
                self.handed(done, self._files)
                self.upto = entry.sequences[-1]
                self.published(done)
                return done

    def _idle(self, span: Span, numbers: Sequence[int]) -> Entry:
        """Publish an epoch with no row and nothing due: one row, and no table is touched."""
        self.secure(numbers)
        entry = self.driver.idle(self.driver.next_number(), span, numbers, {})
        self.handed(entry, {})
        self.upto = numbers[-1]
        self.published(entry)
        return entry

    def _work(self, flow: Flow, entry: Entry, sequences: Sequences) -> Entry:
        schemas, crossing = self._prepare(flow, sequences), self.crossing
        folded = self._since_base + 1 >= FOLD_EVERY
        rows = self._rows(sequences)
        terms = WorkTerms(
            blind=self._blind(sequences),
            writes=Writes.BOTH if folded else Writes.DELTA,
            session=self._session,
            kept=self._kept,
            leg="" if crossing is None else crossing.leg.name,
            queued=None if crossing is None else crossing.over(sequences),
            rows=rows,
        )
        engine, state = self.engine(rows), self.driver.state()
        worked = commit_work(self.root, flow, entry, sequences, state, engine, schemas, terms)
        outcome, carry = worked.outcome, self._carry_before(entry.parent) + worked.share.carry
        begun = time.perf_counter()
        self.secure(entry.sequences)
        durations = {
            "tasks_ms": round(worked.seconds * 1000),
            "secured_ms": round((time.perf_counter() - begun) * 1000),
        }
        done = self.driver.written_and_published(
            entry.commit,
            outcome.new_files(),
            worked.counts,
            worked.hashes,
            carry.text,
            durations,
            detail={
                "lateness": lateness(outcome, *self.now()),
                "newest": outcome.newest,
                **({"folded": True} if folded else {}),
            },
        )
        self._since_base = 0 if folded else self._since_base + 1
        self._next_due, self._kept, self._files = outcome.next_due, entry.commit, outcome.files
        return done

    def _rows(self, sequences: Sequences) -> int:
        """Count the rows that sequences bring: those that landed, or that cross to this leg."""
        return sequences.rows() if self.crossing is None else self.crossing.rows(sequences)

    def _blind(self, sequences: Sequences) -> dict[str, Spans]:
        """Give the spans in which nobody listened: of every sequence of the epoch, and what reaches the first."""
        if self.blind is None:
            index = Landing(self.landing)
            self.blind = partial(_manifest_spans, index)
        return _together(map(self.blind, sequences.parts))

    def _prepare(self, flow: Flow, sequences: Sequences) -> dict[str, pa.Schema]:
        """Have the tables of a plan there, and keep no operators of another one; give the payload of each source.

        Raises:
            LandedColumnError: a column landed with a type that is not the flow's, nor becomes it.
        """
        schemas = payloads_over(flow, sequences.parts)
        if self._ran != fingerprint_of(flow):
            leg = (self.crossing.leg.name if self.crossing else MAIN) if flow.legs else ""
            create_tables(self.root, flow, schemas, leg=leg)
            self._ran, self._session, self._kept = fingerprint_of(flow), uuid.uuid4().hex, 0
        return schemas

    def _carry_before(self, parent: int) -> ContentHash:
        entry = self.driver.state().commits.get(parent)
        return ContentHash.from_text(entry.carry_hash) if entry and entry.carry_hash else NO_ROWS


def _see_no_gap(parts: tuple[LandedSequence, ...], begin: int) -> None:
    for part, expected in zip(parts, (begin, *(each.end for each in parts)), strict=False):
        if part.start != expected:
            raise SequenceGapError(part.id, part.start, expected)


def spans_over(landing: Path, parts: Sequence[LandedSequence]) -> dict[str, Spans]:
    """Give, per source, the spans in which nobody listened that matter to sequences, as their manifests say.

    Args:
        landing: folder of the sequences.
        parts: which.
    """
    index = Landing(landing)
    return _together(_manifest_spans(index, part) for part in parts)


def _together(found: Iterable[Mapping[str, Spans]]) -> dict[str, Spans]:
    together: dict[str, list[tuple[int, int]]] = {}
    for each in found:
        for name, spans in each.items():
            together.setdefault(name, []).extend(spans)
    return {name: joined(spans) for name, spans in together.items()}


def _manifest_spans(index: Landing, sequence: LandedSequence) -> dict[str, Spans]:
    index.refresh()
    return {name: index.blind_before(name, sequence.id) for name in sequence.sources}
