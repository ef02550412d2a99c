"""What a run recorded between two of its states: the sequences that its published commits took in, in their order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

from pipelines.engine.commits.errors import BeforeStatesError
from pipelines.engine.commits.history import CommitKind
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.commits.plan import definition_of, planned
from pipelines.engine.commits.resets import BEGINNING, newest_state, place_of, state_at_sequence
from pipelines.engine.landing.arrived import is_declared
from pipelines.engine.landing.manifest import load_manifest, read_sequence
from pipelines.engine.sources.landed_schema import payloads_over
from pipelines.engine.tasks.carry_over import Ground
from pipelines.flows.definition import flow_from_json
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.facts.history import require_kept
from pipelines.jobs.facts.states import asked_state

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

    from pipelines.engine.commits.history import Entry
    from pipelines.engine.landing.sequence import LandedSequence
    from pipelines.flows.model import Flow
    from pipelines.jobs.runs.known import KnownRun


@dataclass(frozen=True, kw_only=True)
class RecordedPart:
    """A part of what a run took in, and what it had made of all before it."""

    known: KnownRun
    ground: Entry | None
    """The state that the part begins from; None for the beginning."""
    entries: tuple[Entry, ...]
    """The published commits behind it, in order."""
    widened: bool = False
    """Whether it reaches further than somebody asked for, to states that all legs of the run have."""

    @property
    def landing(self) -> Path:
        """Give the folder of the sequences."""
        return landed_path(self.known.root)

    @property
    def start(self) -> int:
        """Give where the part begins, in ticks."""
        return self.entries[0].span.start

    @property
    def end(self) -> int:
        """Give where it ends, in ticks."""
        return self.entries[-1].span.end

    @property
    def numbers(self) -> tuple[int, ...]:
        """Give the ids of the sequences, in the order in which they were taken in."""
        return tuple(number for row in self.entries for number in row.sequences)

    @property
    def state(self) -> Ground:
        """Give the state that the part begins from."""
        commit, sequence = (self.ground.commit, self.ground.upto) if self.ground else (BEGINNING, 0)
        main, *others = self.known.parts

        def of(part: KnownRun, number: int) -> Ground:
            return Ground(root=part.root, state=part.state, commit=number, end=self.start, sequence=sequence)

        grounds = {
            part.root: of(part, state_at_sequence(part.state, sequence) if sequence else BEGINNING) for part in others
        }
        roots = {name: self.known.of(name).root for name in self.known.streams} if grounds else {}
        elsewhere = {name: grounds[root] for name, root in roots.items() if root in grounds}
        return replace(of(main, commit), elsewhere=elsewhere)

    def sequences(self) -> Iterator[LandedSequence]:
        """Open the sequences one by one, in order.

        Raises:
            SequenceBrokenError: one is no longer there.
        """
        return (read_sequence(self.landing, number) for number in self.numbers)

    def payloads(self, flow: Flow) -> dict[str, pa.Schema]:
        """Give the payload of each source as the flow reads what landed, where the part begins.

        Raises:
            LandedColumnError: a column landed with a type that is not the flow's, nor becomes it.
            WrongUse: a source did not land, or landed otherwise than the flow says now.
        """
        first, last = (load_manifest(self.landing, number) for number in (self.numbers[0], self.numbers[-1]))
        for name, source in flow.sources.items():
            if name not in first.sources or name not in last.sources:
                raise WrongUse(f"a replay reads what landed; source {name} did not land in run `{self.known.run}`")
            if not any(is_declared(source, each.sources[name].declared) for each in (first, last)):
                raise WrongUse(
                    f"a replay reads what landed; source {name} landed under another declaration than the flow's now: "
                    "put that back, or run or stream the flow into a run of its own"
                )
        return payloads_over(flow, (last, first))

    def flows(self) -> list[Flow]:
        """Give the flows that the recording was made by, one after the other."""
        made = groupby((row for row in self.entries if row.plan), key=lambda row: row.fingerprint)
        return [flow_from_json(definition_of(next(rows))) for _, rows in made]

    def flow_at(self, commit: int) -> Flow | None:
        """Give the flow that the carry at a commit was made by; None where there is none."""
        row = planned(self.known.state, commit)
        return None if row is None else flow_from_json(definition_of(row))


def recorded(known: KnownRun, start: str | None, end: str | None) -> RecordedPart:
    """Find what a run recorded between two of its states.

    Args:
        known: the run.
        start: a commit's number (0: the beginning), `sequence:N`, or a date or instant; None for the beginning.
        end: as `start`; None for the newest state.

    Raises:
        WrongUse: nothing lies between the two, or rows of it are no longer kept.
        GridError: one of them is nothing of this kind.
        CommitError: there is no such state.
    """
    state = known.state
    if not state.published:
        raise WrongUse(known.nothing_yet())
    begins = BEGINNING if start is None else _from(known, start)
    ends = newest_state(state) if end is None else asked_state(known, state, end).commit
    common = _common(known, begins, ends)
    first, last = (_place(known, number) for number in common)
    rows = state.in_order
    entries = tuple(row for row in rows[first + 1 : last + 1] if row.kind in {CommitKind.INTERVAL, CommitKind.EPOCH})
    if not entries:
        raise WrongUse(
            f"a replay needs published commits between --from and --to; run `{known.run}` has none behind "
            f"{_named(rows, first)} up to {_named(rows, last)}: see {known.command('status')}"
        )
    ground = rows[first] if first >= 0 else None
    if ground is None and rows[0].kind is CommitKind.ADOPT:
        ground = rows[0]
    found = RecordedPart(known=known, ground=ground, entries=entries, widened=common != (begins, ends))
    require_kept(found.landing, state, found.numbers, "--from")
    return found


def _from(known: KnownRun, start: str) -> int:
    """Give the state that somebody names; before the first one there is only the beginning."""
    try:
        return asked_state(known, known.state, start).commit
    except BeforeStatesError:
        return BEGINNING


def _common(known: KnownRun, first: int, last: int) -> tuple[int, int]:
    """Give the states around two of a run that all of its legs have; themselves where it is in one piece.

    A leg that was behind took several commits of another in one, so it has no state between them.
    """
    if len(known.parts) == 1:
        return first, last
    rows = known.state.in_order
    begins, ends = (0 if each == BEGINNING else rows[place_of(known.state, each)].upto for each in (first, last))
    others = [{0, *(row.upto for row in part.state.in_order)} for part in known.parts[1:]]
    shared = [row for row in rows if all(row.upto in each for each in others)]
    if begins < ends and not all(begins in each for each in others):
        first = next((row.commit for row in reversed(shared) if row.upto < begins), BEGINNING)
    if begins < ends and not all(ends in each for each in others):
        last = next(row.commit for row in shared if row.upto > ends)
    return first, last


def _place(known: KnownRun, number: int) -> int:
    """Give the place of a state among the commits that readers see; -1 for the beginning."""
    return -1 if number == BEGINNING else place_of(known.state, number)


def _named(rows: Sequence[Entry], place: int) -> str:
    return f"commit {rows[place].commit}" if place >= 0 else "its beginning"
