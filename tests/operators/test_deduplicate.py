"""The laws of deduplicate, held against a judge that keeps a plain list and looks through all of it.

Rules of docs/semantics.md: S21, D2, D5
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given

from pipelines.operators.deduplicate import DeduplicatePolicy
from pipelines.operators.rows import NULL, Kind
from tests.operators.driving import STEERING, Between, Job, run
from tests.operators.lawful import BETWEEN, CAPACITIES, CUTS, assert_cuts_do_not_matter, jobs
from tests.transcripts_model import LEDGER, Given


@dataclass
class Remembered:
    """A row that the judge remembers."""

    row: Given
    of: Given
    by_arrival: bool
    clock: int
    stands: bool
    open: bool
    passed: bool
    named: bool


class Judge:
    """Looks through everything for each row of one key.

    Args:
        policy: what was chosen.
    """

    def __init__(self, policy: DeduplicatePolicy) -> None:
        """Remember nothing."""
        self._policy, self._time, self._heard = policy, NULL, NULL
        self._all: list[Remembered] = []

    def duplicate_of(self, row: Given) -> Given | None:
        """Say which row stands where this one is a duplicate."""
        clock, by_arrival = self._clock(row)
        self._heard = max(self._heard, row.at)
        self._time = self._time if by_arrival else max(self._time, clock)
        self._forget()
        if row.kind in (Kind.TIMER, Kind.CTI):
            return None
        found = self._end(row, clock, by_arrival) if row.kind is Kind.END else self._begin(row, clock, by_arrival)
        self._forget()
        return found

    def _clock(self, row: Given) -> tuple[int, bool]:
        clock, bound = row.end if row.kind is Kind.END else row.time, self._policy.max_ahead
        ahead = row.kind not in (Kind.TIMER, Kind.CTI) and bound is not None and clock - row.at > bound
        return (row.at, True) if clock == NULL or ahead else (clock, False)

    def _forget(self) -> None:
        def lasts(each: Remembered) -> bool:
            now = self._heard if each.by_arrival else self._time
            return each.open or now <= each.clock + self._policy.within

        self._all = [each for each in self._all if lasts(each)]

    def _same(self, row: Given) -> tuple[object, ...]:
        return (row.on,) if self._policy.on else (row.on, row.time, row.end, row.value)

    def _begin(self, row: Given, clock: int, by_arrival: bool) -> Given | None:  # noqa: FBT001 - a fact
        stood = next((each for each in self._all if each.stands and self._same(each.row) == self._same(row)), None)
        of = None
        if stood is not None:
            arrivals = by_arrival or self._clock(stood.row)[1]
            apart = row.at - stood.row.at if arrivals else row.time - stood.row.time
            if abs(apart) <= self._policy.within:
                of = stood.of
            elif apart > 0:
                stood.stands = False
                self._all = [each for each in self._all if each is not stood or each.named]
        stands = of is None and (stood is None or not stood.stands)
        before = next((each for each in self._all if each.named and each.row.event == row.event), None)
        opens = row.kind is Kind.START and (of is None or before is None or not before.open)
        if before is not None and opens:
            before.named = before.open = False
        if stands or opens:
            it = Remembered(row, of or row, by_arrival, clock, stands, opens, of is None, opens)
            self._all.append(it)
        return of

    def _end(self, row: Given, clock: int, by_arrival: bool) -> Given | None:  # noqa: FBT001 - a fact
        event = next((each for each in self._all if each.named and each.row.event == row.event), None)
        if event is None:
            return None
        was_open, event.open = event.open, False
        if was_open:
            event.clock, event.by_arrival = clock, by_arrival
        return None if was_open and event.passed else event.of


def came(job: Job) -> list[Given]:
    return [row for row in job.rows if row.kind not in STEERING]


@given(jobs("deduplicate"))
def test_deduplicate__what_leaves_is_unchanged_and_in_order(job: Job) -> None:
    facts = {row.id: (number, row.kind, row.at, row.time, row.end) for number, row in enumerate(came(job))}
    for rows in run(job).main.values():
        left = [(row.kind, row.at, row.time, row.end) for row in rows]
        known = [facts[row.id or ""] for row in rows]

        assert left == [each[1:] for each in known]
        assert known == sorted(known)


@given(jobs("deduplicate"))
def test_deduplicate__every_input_leaves_or_is_in_the_ledger(job: Job) -> None:
    assert sorted(row.id or "" for row in run(job).all) == sorted(row.id for row in came(job))


@given(jobs("deduplicate"))
def test_deduplicate__no_two_rows_that_are_the_same_leave_within_the_span_while_the_first_is_remembered(
    job: Job,
) -> None:
    assert isinstance(job.policy, DeduplicatePolicy)
    judges: dict[str, Judge] = {}
    found = [(row, judges.setdefault(row.key, Judge(job.policy)).duplicate_of(row)) for row in came(job)]
    dropped = {row.id: row.other for row in run(job).all if row.stream == LEDGER}

    assert dropped == {row.id: of.id for row, of in found if of is not None}


@given(jobs("deduplicate"), CUTS, BETWEEN, CAPACITIES)
def test_deduplicate__cuts_do_not_matter(job: Job, cuts: list[int], between: Between, capacity: int) -> None:
    assert_cuts_do_not_matter(job, cuts, between, capacity)
