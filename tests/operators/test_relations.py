"""The laws of what events go through under CTIs, and brute-force judges of all that comes of them.

Rules of docs/semantics.md: S20, S21, P2, P3, P4, U2, U3, U5, U6, J1, J2, J4, J5, W1, W3, W4
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from pipelines.operators.alter_duration import AlterDurationPolicy
from pipelines.operators.join import JoinPolicy
from pipelines.operators.rows import INFINITY, MAX_TIME, MIN_TIME, NULL, Kind, Reason, Shape
from pipelines.operators.shift_time import ShiftTimePolicy
from pipelines.operators.union import UnionPolicy
from pipelines.operators.window import WindowPolicy
from tests.operators.driving import STEERING, Between, Job, Outcome, run
from tests.operators.judging import Windows, joined, united
from tests.operators.lawful import BETWEEN, CAPACITIES, CUTS, assert_cuts_do_not_matter, jobs
from tests.transcripts_model import LEDGER, MAIN, REFUSED, Given, Left

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

EDGES = (Kind.START, Kind.END)


def rows_by_key(job: Job) -> dict[str, list[Given]]:
    found: dict[str, list[Given]] = {}
    for row in job.rows:
        if row.kind not in STEERING:
            found.setdefault(row.key, []).append(row)
    return found


def dropped(outcome: Outcome) -> Counter[str]:
    return Counter(str(row.id) for row in outcome.all if row.action == "dropped")


def left(outcome: Outcome) -> Counter[str]:
    return Counter(str(row.id) for row in outcome.all if row.stream == MAIN and row.id is not None)


def assert_ctis_strictly_increase(job: Job) -> None:
    for rows in run(job).main.values():
        ctis = [row.time for row in rows if row.kind is Kind.CTI]

        assert all(one < other for one, other in pairwise(ctis))


def assert_nothing_starts_behind_a_cti(job: Job) -> None:
    for rows in run(job).main.values():
        promised = NULL
        for row in rows:
            if row.kind is Kind.CTI:
                promised = row.time

            assert row.kind is Kind.TIMER or row.time >= promised


def assert_every_input_leaves_or_is_in_the_ledger(job: Job) -> None:
    outcome = run(job)

    assert left(outcome) + dropped(outcome) == Counter(row.id for rows in rows_by_key(job).values() for row in rows)


def assert_order_is_unchanged(job: Job) -> None:
    outcome = run(job)
    for key, rows in rows_by_key(job).items():
        stayed = dropped(outcome)

        assert [row.id for row in outcome.main.get(key, ())] == [row.id for row in rows if row.id not in stayed]


# ---- filter


@given(jobs("filter"))
def test_filter__every_input_leaves_or_is_in_the_ledger(job: Job) -> None:
    assert_every_input_leaves_or_is_in_the_ledger(job)
    refused = {row.id for row in job.rows if row.port == REFUSED}

    assert {row.id for row in run(job).all if row.reason is Reason.FILTERED} == refused


@given(jobs("filter"))
def test_filter__order_is_unchanged(job: Job) -> None:
    assert_order_is_unchanged(job)


@given(jobs("filter"), CUTS, BETWEEN, CAPACITIES)
def test_filter__cuts_do_not_matter(job: Job, cuts: list[int], between: Between, capacity: int) -> None:
    assert_cuts_do_not_matter(job, cuts, between, capacity)


# ---- project


@given(jobs("project"))
def test_project__rows_in_rows_out(job: Job) -> None:
    assert_every_input_leaves_or_is_in_the_ledger(job)
    late = [row.id for row in run(job).all if row.reason is Reason.LATE_CTI]

    assert sorted(dropped(run(job))) == sorted(str(name) for name in late)


@given(jobs("project"))
def test_project__order_is_unchanged(job: Job) -> None:
    assert_order_is_unchanged(job)


@given(jobs("project"), CUTS, BETWEEN, CAPACITIES)
def test_project__cuts_do_not_matter(job: Job, cuts: list[int], between: Between, capacity: int) -> None:
    assert_cuts_do_not_matter(job, cuts, between, capacity)


# ---- shift_time


@given(jobs("shift_time"))
def test_shift_time__durations_are_unchanged(job: Job) -> None:
    assert isinstance(job.policy, ShiftTimePolicy)
    came, shift = {row.id: row for row in job.rows}, job.policy.shift
    for row in (row for rows in run(job).main.values() for row in rows if row.kind is not Kind.CTI):
        given_row = came[str(row.id)]
        for now, before in ((row.time, given_row.time), (row.end, given_row.end)):
            assert now == (before if before == NULL else before + shift)


@given(jobs("shift_time"))
def test_shift_time__ctis_strictly_increase(job: Job) -> None:
    assert_ctis_strictly_increase(job)


@given(jobs("shift_time"))
def test_shift_time__every_input_leaves_or_is_in_the_ledger(job: Job) -> None:
    assert_every_input_leaves_or_is_in_the_ledger(job)
    assert isinstance(job.policy, ShiftTimePolicy)
    came, shift = {row.id: row for row in job.rows}, job.policy.shift
    for row in run(job).all:
        if row.reason is Reason.OUT_OF_TIME:
            moved = [at + shift for at in (came[str(row.id)].time, came[str(row.id)].end) if at != NULL]

            assert any(not MIN_TIME <= at <= MAX_TIME for at in moved)


@given(jobs("shift_time"), CUTS, BETWEEN, CAPACITIES)
def test_shift_time__cuts_do_not_matter(job: Job, cuts: list[int], between: Between, capacity: int) -> None:
    assert_cuts_do_not_matter(job, cuts, between, capacity)


# ---- alter_duration


@given(jobs("alter_duration"))
def test_alter_duration__starts_and_ctis_are_unchanged(job: Job) -> None:
    assert isinstance(job.policy, AlterDurationPolicy)
    came = {row.id: row for row in job.rows}
    for row in (row for rows in run(job).main.values() for row in rows):
        given_row = came[str(row.id)]

        assert row.time == given_row.time
        if given_row.kind in (Kind.DATA, Kind.START) and row.time != NULL:
            assert (row.kind, row.end) == (Kind.DATA, row.time + job.policy.duration)


@given(jobs("alter_duration"))
def test_alter_duration__every_input_leaves_or_is_in_the_ledger(job: Job) -> None:
    assert_every_input_leaves_or_is_in_the_ledger(job)


@given(jobs("alter_duration"), CUTS, BETWEEN, CAPACITIES)
def test_alter_duration__cuts_do_not_matter(job: Job, cuts: list[int], between: Between, capacity: int) -> None:
    assert_cuts_do_not_matter(job, cuts, between, capacity)


# ---- union


def shapes_of(job: Job) -> dict[str, Shape]:
    assert isinstance(job.policy, UnionPolicy | JoinPolicy)
    return dict(zip(job.ports, job.policy.shapes, strict=True))


def ledger_of(outcome: Outcome, key: str) -> Counter[tuple[str, Reason]]:
    return Counter((str(row.id), row.reason) for row in outcome.left.get((LEDGER, key), ()))


def newest_cti(rows: Sequence[Left]) -> int:
    return max([NULL, *(row.time for row in rows if row.kind is Kind.CTI)])


@given(jobs("union"))
def test_union__ctis_strictly_increase(job: Job) -> None:
    assert_ctis_strictly_increase(job)


@given(jobs("union"))
def test_union__no_event_leaves_with_a_start_before_the_cti_already_sent(job: Job) -> None:
    assert_nothing_starts_behind_a_cti(job)


@given(jobs("union"))
def test_union__every_input_leaves_is_held_or_is_in_the_ledger(job: Job) -> None:
    outcome = run(job)
    for key, rows in rows_by_key(job).items():
        verdict, main = united(rows, shapes_of(job)), outcome.main.get(key, [])
        mine = {row.id for row in rows}

        assert Counter((row.id, row.time, row.end) for row in main if row.kind is not Kind.CTI) == verdict.results
        assert ledger_of(outcome, key) == verdict.ledger
        assert {name for name in outcome.held if name in mine} == verdict.held
        assert newest_cti(main) == verdict.cti


@given(jobs("union"), st.randoms(use_true_random=False))
def test_union__the_set_of_results_is_the_same_for_every_interleaving(job: Job, random: Random) -> None:
    assert_interleavings_do_not_matter(job, random)


@given(jobs("union"), CUTS, BETWEEN, CAPACITIES)
def test_union__cuts_do_not_matter(job: Job, cuts: list[int], between: Between, capacity: int) -> None:
    assert_cuts_do_not_matter(job, cuts, between, capacity)


def test_rows_released_together_leave_by_start_then_in_the_order_in_which_they_came() -> None:
    policy = UnionPolicy(shapes=(Shape.POINT, Shape.POINT))
    rows = [point("c", "q", 5), point("a", "p", 5), point("b", "q", 3), cti("p", 9), cti("q", 7)]

    assert [row.id for row in run(Job("union", policy, numbered(rows), ("p", "q"))).all] == ["b", "c", "a", None]


def assert_interleavings_do_not_matter(job: Job, random: Random) -> None:
    """Let two interleavings, both with each side's order and an end of all promises, give the same set of results."""
    ends = [
        Given(Kind.CTI, f"end {key}{port}", key, port, 0, 0, INFINITY, NULL, "")
        for key in rows_by_key(job)
        for port in job.ports
    ]
    came = [*(row for rows in rows_by_key(job).values() for row in rows), *ends]
    one, other = (results(run(job._replace(rows=numbered(interleaved(came, random))))) for _ in range(2))

    assert one == other


def results(outcome: Outcome) -> dict[str, Counter[tuple[object, ...]]]:
    found: dict[str, Counter[tuple[object, ...]]] = {"ledger": Counter(), "results": Counter()}
    for row in outcome.all:
        if row.stream == LEDGER:
            found["ledger"][row.key, row.id, row.reason] += 1
        elif row.kind not in (Kind.CTI, Kind.TIMER):
            found["results"][row.key, row.id, row.other, row.time, row.end] += 1
    assert not outcome.held
    return found


def interleaved(rows: Sequence[Given], random: Random) -> list[Given]:
    """Shuffle rows so that those of one key and side keep their order."""
    waiting: dict[tuple[str, str], list[Given]] = {}
    for row in rows:
        waiting.setdefault((row.key, row.port), []).append(row)
    found = []
    while waiting:
        chosen = random.choice(sorted(waiting))
        found.append(waiting[chosen].pop(0))
        if not waiting[chosen]:
            del waiting[chosen]
    return found


def numbered(rows: Sequence[Given]) -> tuple[Given, ...]:
    return tuple(row._replace(at=at, place=1) for at, row in enumerate(rows))


def point(name: str, port: str, time: int) -> Given:
    return Given(Kind.DATA, name, "k", port, 0, 0, time, NULL, "")


def lasting(name: str, port: str, time: int, end: int) -> Given:
    return Given(Kind.DATA, name, "k", port, 0, 0, time, end, "")


def edge(name: str, port: str, *, time: int = NULL, end: int = NULL) -> Given:
    """Give a start edge, or the end edge of that name, which says its own instant alone."""
    kind = Kind.START if end == NULL else Kind.END
    return Given(kind, name if end == NULL else f"{name}/end", "k", port, 0, 0, time, end, name)


def cti(port: str, time: int) -> Given:
    return Given(Kind.CTI, f"cti {port} {time}", "k", port, 0, 0, time, NULL, "")


# ---- join


@given(jobs("join"))
def test_join__ctis_strictly_increase(job: Job) -> None:
    assert_ctis_strictly_increase(job)


@given(jobs("join"))
def test_join__no_event_leaves_with_a_start_before_the_cti_already_sent(job: Job) -> None:
    assert_nothing_starts_behind_a_cti(job)


@given(jobs("join"))
def test_join__no_interval_event_leaves_empty(job: Job) -> None:
    outcome = run(job)
    for key, rows in rows_by_key(job).items():
        verdict, main = joined(rows, shapes_of(job)), outcome.main.get(key, [])
        pairs = [(row.id, row.other, row.time, row.end) for row in main if row.kind is not Kind.CTI]
        mine = {row.id for row in rows}

        assert all(start < end for *_, start, end in pairs)
        assert Counter(pairs) == verdict.results
        assert ledger_of(outcome, key) == verdict.ledger
        assert {name for name in outcome.held if name in mine} == verdict.held
        assert newest_cti(main) == verdict.cti


@given(jobs("join"), st.randoms(use_true_random=False))
def test_join__the_set_of_results_is_the_same_for_every_interleaving(job: Job, random: Random) -> None:
    assert_interleavings_do_not_matter(job, random)


@given(jobs("join"), CUTS, BETWEEN, CAPACITIES)
def test_join__cuts_do_not_matter(job: Job, cuts: list[int], between: Between, capacity: int) -> None:
    assert_cuts_do_not_matter(job, cuts, between, capacity)


@given(jobs("join"))
def test_results_of_a_join_that_start_together_leave_by_left_row_then_by_right_row(job: Job) -> None:
    place = {row.id: number for number, row in enumerate(job.rows)}
    for rows in run(job).main.values():
        pairs = [row for row in rows if row.kind is not Kind.CTI]
        order = [(row.at, row.time, place[str(row.id)], place[str(row.other)]) for row in pairs]

        assert order == sorted(order)


# ---- window


@given(jobs("window"))
def test_window__ctis_strictly_increase(job: Job) -> None:
    assert_ctis_strictly_increase(job)


@given(jobs("window"))
def test_window__no_event_leaves_with_a_start_before_the_cti_already_sent(job: Job) -> None:
    assert_nothing_starts_behind_a_cti(job)


@given(jobs("window"))
def test_window__every_event_is_in_each_window_that_it_overlaps_exactly_once_or_is_in_the_ledger(job: Job) -> None:
    assert isinstance(job.policy, WindowPolicy)
    outcome = run(job)
    for key, rows in rows_by_key(job).items():
        judge = Windows(job.policy)
        verdict = judge.judge(rows)
        main = outcome.main.get(key, [])
        mine = {row.id for row in rows}

        assert [told(row) for row in main] == judge.left
        assert ledger_of(outcome, key) == verdict.ledger
        assert {name for name in outcome.held if name in mine} == verdict.held


def told(row: Left) -> tuple[object, ...]:
    return (row.at, row.time) if row.kind is Kind.CTI else (row.at, row.time, row.end, row.on, row.values)


@given(jobs("window"), CUTS, BETWEEN, CAPACITIES)
def test_window__cuts_do_not_matter(job: Job, cuts: list[int], between: Between, capacity: int) -> None:
    assert_cuts_do_not_matter(job, cuts, between, capacity)


COUNTED = ("rows=count",)


def test_windows_keep_thousands_of_groups_open_between_blocks() -> None:
    policy = WindowPolicy(shape=Shape.POINT, size=10, hop=10, measures=COUNTED)
    rows = [point(f"e{i}", "", i % 7)._replace(on=f"g{i % 1_300}") for i in range(3_900)]
    job = Job("window", policy, numbered([*rows, cti("", 10)]))
    whole = run(job)

    assert [(row.on, row.values) for row in whole.all if row.kind is Kind.DATA] == [
        (f"g{i}", (3,)) for i in range(1_300)
    ]
    assert run(job, (1_100, 1_101, 2_600, 3_900), Between.RESTART) == whole


def test_an_event_is_in_each_of_thousands_of_windows_once() -> None:
    policy = WindowPolicy(shape=Shape.INTERVAL, size=2, hop=1, measures=COUNTED, max_windows=9_000)
    rows = [lasting("long", "", 0, 2_500), lasting("short", "", 1_000, 1_700), cti("", 1_200), cti("", INFINITY)]
    job = Job("window", policy, numbered(rows))
    whole = run(job)
    found = {row.time: row.values for row in whole.all if row.kind is Kind.DATA}

    assert found == {start: (2 if 999 <= start < 1_700 else 1,) for start in range(-1, 2_500)}
    assert run(job, (1, 2, 3), Between.RESTART) == whole
