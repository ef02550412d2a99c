"""The laws that the operators' docstrings name, each a property of the same words.

Rules of docs/semantics.md: S13, S17, S21, H1, H2, H5, H13, H14, N1, N2, N3, M1, M8, M11, A4, A8, A12, A17, R8
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import ceil
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.operators.advance_time import AdvanceTimePolicy
from pipelines.operators.heartbeat import HeartbeatPolicy
from pipelines.operators.merge import MergedCtis, MergePolicy
from pipelines.operators.metronome import MetronomePolicy
from pipelines.operators.registry import OPERATORS
from pipelines.operators.rows import INFINITY, MAX_TIME, NULL, Kind, Reason, Shape
from tests.operators import test_deduplicate, test_dispatch, test_interleave, test_loop, test_quarantine, test_relations
from tests.operators.driving import STEERING, Between, Drive, Job, Outcome, run
from tests.operators.lawful import BETWEEN, CAPACITIES, CUTS, assert_cuts_do_not_matter, jobs
from tests.operators.scenarios import SCENARIOS
from tests.transcripts_model import IMPORTED, LEDGER, MAIN, SIDE, Given, Left

if TYPE_CHECKING:
    from collections.abc import Sequence


def data(rows: Sequence[Given]) -> list[Given]:
    return [row for row in rows if row.kind not in STEERING]


def by_key(rows: Sequence[Given]) -> dict[str, list[Given]]:
    found: dict[str, list[Given]] = {}
    for row in data(rows):
        found.setdefault(row.key, []).append(row)
    return found


EVENTS = (Kind.DATA, Kind.START, Kind.END)


def moment(row: Given | Left) -> int:
    """Give the time of a row that a promise is held against."""
    return row.end if row.kind is Kind.END else row.time


def made(rows: Sequence[Left]) -> list[Left]:
    return [row for row in rows if row.id is None]


# ---- heartbeat


@given(jobs("heartbeat"))
def test_heartbeat__data_order_and_content_unchanged(job: Job) -> None:
    came = {key: [(r.kind, r.id, r.at, r.time, r.end) for r in rows] for key, rows in by_key(job.rows).items()}
    main = {key: [row for row in rows if row.id is not None] for key, rows in run(job).main.items()}

    assert {key: [(r.kind, r.id, r.at, r.time, r.end) for r in rows] for key, rows in main.items()} == came


@given(jobs("heartbeat"))
def test_heartbeat__timers_strictly_increase_and_are_multiples(job: Job) -> None:
    assert isinstance(job.policy, HeartbeatPolicy)
    for rows in run(job).main.values():
        timers = [row.time for row in made(rows)]

        assert all(one < other for one, other in pairwise(timers))
        assert all(timer % job.policy.interval == 0 for timer in timers)


@given(jobs("heartbeat"))
def test_heartbeat__no_timer_is_followed_by_an_in_order_row_with_a_smaller_timestamp_unless_the_slack_ran_out(
    job: Job,
) -> None:
    assert isinstance(job.policy, HeartbeatPolicy)
    policy = replace(job.policy, expire=None)
    outcome = run(job._replace(policy=policy))
    for key, rows in outcome.main.items():
        doubted = {row.id for row in outcome.left.get((LEDGER, key), ())}
        anchor: Left | None = None
        ran_out: dict[int, bool] = {}
        for row in rows:
            if row.id is None:
                assert anchor is not None
                ran_out[row.time] = row.due == slack_over(policy, anchor, row.time) and row.at >= row.due
            elif in_order(row, anchor) and row.id not in doubted:
                assert all(over for time, over in ran_out.items() if time > row.time)
                anchor = row


def in_order(row: Left, anchor: Left | None) -> bool:
    return row.kind in (Kind.DATA, Kind.START) and row.time != NULL and (anchor is None or row.time >= anchor.time)


def slack_over(policy: HeartbeatPolicy, anchor: Left, due: int) -> int:
    return anchor.at + ceil((due - anchor.time + policy.slack) / Fraction(*policy.acceleration))


@given(jobs("heartbeat"))
def test_heartbeat__removing_null_and_out_of_order_rows_changes_no_timer(job: Job) -> None:
    assert isinstance(job.policy, HeartbeatPolicy)
    job = job._replace(policy=replace(job.policy, expire=None))
    outcome, gone = run(job), set()
    for key, rows in outcome.main.items():
        doubted = {row.id for row in outcome.left.get((LEDGER, key), ())}
        anchor: Left | None = None
        for row in rows:
            if row.id is None or row.id in doubted:
                continue
            if in_order(row, anchor):
                anchor = row
            else:
                gone.add(row.id)
    fewer = run(job._replace(rows=tuple(row for row in job.rows if row.id not in gone)))

    assert timers(fewer) == timers(outcome)


@given(jobs("heartbeat"))
def test_heartbeat__two_successive_rows_that_max_catch_up_refuses_never_agree_within_it(job: Job) -> None:
    assert isinstance(job.policy, HeartbeatPolicy)
    policy = replace(job.policy, expire=None)
    outcome = run(job._replace(policy=policy))
    for key, rows in outcome.main.items():
        doubted = {row.id: row.reason for row in outcome.left.get((LEDGER, key), ())}
        anchor: Left | None = None
        refused: Left | None = None
        for row in rows:
            if row.id is None or not in_order(row, anchor) or doubted.get(row.id) is Reason.MAX_AHEAD:
                continue
            if row.id not in doubted:
                anchor, refused = row, None
                continue
            assert refused is None or announced(policy, refused, row) > policy.max_catch_up
            refused = row


def announced(policy: HeartbeatPolicy, one: Left, other: Left) -> int:
    """Count the multiples between two rows, without those that the clock alone would have announced by then."""
    since, last = (one, other) if one.time <= other.time else (other, one)
    overdue = since.time // policy.interval
    while (
        overdue < last.time // policy.interval
        and slack_over(policy, since, (overdue + 1) * policy.interval) <= other.at
    ):
        overdue += 1
    return last.time // policy.interval - overdue


def timers(outcome: Outcome) -> dict[str, list[tuple[int, int, int]]]:
    found = {key: [(row.time, row.at, row.due) for row in made(rows)] for key, rows in outcome.main.items()}
    return {key: rows for key, rows in found.items() if rows}


@given(jobs("heartbeat"), CUTS, BETWEEN, CAPACITIES)
def test_heartbeat__cuts_do_not_matter(job: Job, cuts: list[int], between: Between, capacity: int) -> None:
    assert_cuts_do_not_matter(job, cuts, between, capacity)


@given(jobs("heartbeat"))
def test_heartbeat__readings_do_not_matter(job: Job) -> None:
    last = len(job.rows) - 1
    fewer = tuple(row for i, row in enumerate(job.rows) if row.kind is not Kind.READING or i == last)

    assert run(job._replace(rows=fewer)) == run(job)


# ---- metronome


@given(jobs("metronome"))
def test_metronome__timers_strictly_increase_and_are_multiples(job: Job) -> None:
    assert isinstance(job.policy, MetronomePolicy)
    times = [row.time for row in run(job).all]

    assert all(one < other for one, other in pairwise(times))
    assert all(time % job.policy.interval == 0 for time in times)


@given(jobs("metronome"))
def test_metronome__each_multiple_between_the_first_reading_and_the_last_leaves_once(job: Job) -> None:
    assert isinstance(job.policy, MetronomePolicy)
    interval = job.policy.interval
    began = job.rows[0].at if job.rows and job.rows[0].kind is Kind.READING else MAX_TIME
    closed = next((row.at + 1 for row in job.rows if row.kind is Kind.FINAL), job.rows[-1].at if job.rows else began)
    multiples = range(-(-began // interval) * interval, closed, interval)
    on_time = {time: next((b for a, b in spans(job) if a <= time < b), time) for time in multiples}
    wanted = [(time, at, time) for time, at in on_time.items() if at < closed]

    assert [(row.time, row.at, row.due) for row in run(job).all] == wanted


def spans(job: Job) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in job.blind:
        if joined and joined[-1][1] == start:
            start = joined.pop()[0]  # noqa: PLW2901 - the span before goes on
        joined.append((start, end))
    return joined


@given(jobs("metronome"), CUTS, BETWEEN, CAPACITIES)
def test_metronome__cuts_do_not_matter(job: Job, cuts: list[int], between: Between, capacity: int) -> None:
    assert_cuts_do_not_matter(job, cuts, between, capacity)


@given(jobs("metronome"))
def test_metronome__readings_do_not_matter(job: Job) -> None:
    last = len(job.rows) - 1
    fewer = tuple(row for i, row in enumerate(job.rows) if row.kind is not Kind.READING or i in (0, last))

    assert run(job._replace(rows=fewer)) == run(job)


# ---- merge


@given(jobs("merge"))
def test_merge__rows_in_rows_out_rows_set_aside_rows_held_ledger(job: Job) -> None:
    outcome = run(job)
    took = {row.id for row in data(job.rows) if row.kind is not Kind.CTI}
    went = [row.id for row in outcome.all if row.id in took and (row.stream != LEDGER or row.action == "dropped")]
    aside = [row.id for row in outcome.all if row.stream == SIDE]

    assert Counter(took) == Counter([*went, *(name for name in outcome.held if name in took)])
    assert sorted(map(str, aside)) == sorted(str(row.id) for row in outcome.all if row.action == "diverted")


def too_far(job: Job, row: Given) -> bool:
    assert isinstance(job.policy, MergePolicy)
    value, bound = row.end if row.kind is Kind.END else row.time, job.policy.max_ahead
    return bound is not None and row.kind in (Kind.DATA, Kind.START, Kind.END) and value - row.at > bound


@given(jobs("merge"))
def test_merge__without_the_rows_that_are_too_far_ahead_all_others_leave_as_they_do(job: Job) -> None:
    gone = {row.id for row in data(job.rows) if row.port in job.ports and too_far(job, row)}
    bare = run(job._replace(rows=tuple(row for row in job.rows if row.kind in STEERING or row.id not in gone)))
    outcome = run(job)

    assert {row.id for row in outcome.all if row.reason is Reason.MAX_AHEAD} == gone
    assert (outcome.main, outcome.held) == (bare.main, bare.held)


@given(jobs("merge"))
def test_merge__each_port_keeps_its_order(job: Job) -> None:
    outcome = run(job)
    for key, rows in by_key(job.rows).items():
        held = [name for name in outcome.held if name in {row.id for row in rows}]
        leaving = [*(str(row.id) for row in outcome.main.get(key, ())), *held]
        for port in job.ports:
            taken = [row for row in rows if row.port == port and row.kind is not Kind.CTI]
            came = [row.id for row in taken if not too_far(job, row)]

            assert [name for name in leaving if name in came] == came


@given(jobs("merge"))
def test_merge__rows_leave_in_the_order_of_the_values_they_are_compared_by(job: Job) -> None:
    compared: dict[str, int] = {}
    highest: dict[tuple[str, str], int] = {}
    for row in data(job.rows):
        if too_far(job, row):
            continue
        value = row.end if row.kind is Kind.END else row.time
        value = max(value, highest.get((row.key, row.port), NULL))
        compared[row.id] = highest[row.key, row.port] = value
    for rows in run(job).main.values():
        left = [compared[row.id] for row in rows if row.id is not None]

        assert left == sorted(left)


@given(jobs("merge"), CUTS, BETWEEN, CAPACITIES)
def test_merge__cuts_do_not_matter(job: Job, cuts: list[int], between: Between, capacity: int) -> None:
    assert_cuts_do_not_matter(job, cuts, between, capacity)


@given(jobs("merge"))
def test_merge__ctis_strictly_increase(job: Job) -> None:
    assert isinstance(job.policy, MergePolicy)
    outcome = run(job)
    for key, rows in by_key(job.rows).items():
        sent = [row.time for row in outcome.main.get(key, ()) if row.kind is Kind.CTI]
        newest = dict.fromkeys(job.ports, NULL)
        for row in rows:
            if row.kind is Kind.CTI and row.port in newest and row.id not in outcome.held:
                newest[row.port] = max(newest[row.port], row.time)
        oldest = min(newest.values()) if job.policy.ctis is MergedCtis.OLDEST else NULL

        assert all(one < other for one, other in pairwise(sent))
        assert (sent or [NULL])[-1] == oldest


@given(jobs("merge"))
def test_merge__no_event_leaves_behind_a_cti_if_none_comes_behind_one_at_its_port(job: Job) -> None:
    promised: dict[tuple[str, str], int] = {}
    kept = []
    for row in job.rows:
        port = (row.key, row.port)
        if row.kind is Kind.CTI:
            promised[port] = max(promised.get(port, NULL), row.time)
        if row.kind not in EVENTS or moment(row) == NULL or moment(row) >= promised.get(port, NULL):
            kept.append(row)
    for rows in run(job._replace(rows=tuple(kept))).main.values():
        newest = NULL
        for left in rows:
            newest = left.time if left.kind is Kind.CTI else newest

            assert left.kind not in EVENTS or moment(left) == NULL or moment(left) >= newest


# ---- advance_time


@given(jobs("advance_time"))
def test_advance_time__ctis_strictly_increase(job: Job) -> None:
    for rows in run(job).main.values():
        ctis = [row.time for row in rows if row.kind is Kind.CTI]

        assert all(one < other for one, other in pairwise(ctis))


@given(jobs("advance_time"))
def test_advance_time__no_event_leaves_with_a_start_end_edge_an_end_before_the_cti_already_sent(job: Job) -> None:
    for rows in run(job).main.values():
        promised = NULL
        for row in rows:
            if row.kind is Kind.CTI:
                promised = row.time
            moment = row.end if row.kind is Kind.END else row.time
            timeless = NULL in (row.time, moment) or (
                row.kind is Kind.DATA and shape(job) is Shape.INTERVAL and row.end == NULL
            )

            assert row.kind is Kind.TIMER or timeless or moment >= promised


def shape(job: Job) -> Shape:
    assert isinstance(job.policy, AdvanceTimePolicy)
    return job.policy.shape


@given(jobs("advance_time"))
def test_advance_time__every_input_leaves_or_is_in_the_ledger(job: Job) -> None:
    came = Counter(row.id for row in data(job.rows) if row.port != IMPORTED)
    outcome = run(job).all
    left = Counter(row.id for row in outcome if row.stream in (MAIN, SIDE) and row.id is not None)
    dropped = Counter(row.id for row in outcome if row.action == "dropped")
    diverted = Counter(row.id for row in outcome if row.action == "diverted")

    assert left + dropped == came
    assert diverted == Counter(row.id for row in outcome if row.stream == SIDE)


@given(jobs("advance_time"))
def test_advance_time__no_interval_event_leaves_empty(job: Job) -> None:
    lifetimes = [
        (row.time, row.end)
        for rows in run(job).main.values()
        for row in rows
        if row.kind is Kind.DATA and shape(job) is Shape.INTERVAL and NULL not in (row.time, row.end)
    ]

    assert all(start < end for start, end in lifetimes)


@given(jobs("advance_time"), CUTS, BETWEEN, CAPACITIES)
def test_advance_time__cuts_do_not_matter(job: Job, cuts: list[int], between: Between, capacity: int) -> None:
    assert_cuts_do_not_matter(job, cuts, between, capacity)


# ---- the lists


def words(law: str) -> str:
    return "_".join(re.findall(r"\w+", law.lower()))


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_laws_in_a_docstring_are_the_laws_that_are_tested(operator: str) -> None:
    paragraph = re.search(r"Laws: (.*?)\.\n", OPERATORS[operator].__doc__ or "", re.DOTALL)
    assert paragraph is not None
    named = [words(law) for law in paragraph[1].split(";")]
    others = (test_relations, test_deduplicate, test_interleave, test_dispatch, test_loop, test_quarantine)
    laws = (*globals(), *(name for module in others for name in vars(module)))
    tested = [name.removeprefix(f"test_{operator}__") for name in laws if name.startswith(f"test_{operator}__")]

    assert named == tested


@pytest.mark.parametrize("operator", OPERATORS)
@given(st.data())
def test_whoever_heard_nothing_awaits_nothing(operator: str, data: st.DataObject) -> None:
    assert Drive(data.draw(jobs(operator))).next_due == INFINITY


@pytest.mark.parametrize("operator", OPERATORS)
@given(st.data())
def test_silence_makes_nothing_leave_before_next_due_and_something_at_it(operator: str, data: st.DataObject) -> None:
    job = data.draw(jobs(operator))
    drive = Drive(job)
    drive.feed(job.rows)
    due, last = drive.next_due, job.rows[-1] if job.rows else None
    if due >= MAX_TIME or last is None or last.kind is not Kind.READING:
        return

    assert due >= last.at
    assert drive.feed([last._replace(at=due)]) == []
    assert drive.feed([last._replace(at=due + 1)]) != []


@pytest.mark.parametrize("operator", OPERATORS)
@given(st.data(), st.integers(1, 60))
def test_silence_brings_no_more_timers_than_the_operator_estimates(
    operator: str, data: st.DataObject, steps: int
) -> None:
    job = data.draw(jobs(operator))
    drive = Drive(job)
    drive.feed(job.rows)
    last = job.rows[-1] if job.rows else None
    if last is None or last.kind is not Kind.READING:
        return
    step = getattr(job.policy, "interval", 1)
    until = min(last.at + max(1, step * steps // 2), MAX_TIME)
    if last.at < drive.next_due <= MAX_TIME:
        until = data.draw(st.sampled_from((until, drive.next_due)))
    estimate = drive.timers(last.at, until)
    came = [row for row in drive.feed([last._replace(at=until)]) if row.kind is Kind.TIMER and row.stream == MAIN]

    assert len(came) <= estimate * (1 + 1e-9)
    assert operator != "metronome" or bool(came) == (estimate > 0)


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_drawn_jobs_reach_what_the_laws_speak_of(operator: str) -> None:
    outcomes = [run(SCENARIOS[operator](Random(seed))) for seed in range(400)]  # noqa: S311 - the same jobs each time
    reasons = {row.reason for outcome in outcomes for row in outcome.all} - {Reason.NONE}

    assert reasons == REASONS[operator]
    assert any(outcome.held for outcome in outcomes) == (operator in HOLDING)


HOLDING = ("merge", "union", "join", "window")
MEETING = {
    Reason.LATE,
    Reason.LATE_END,
    Reason.ORPHAN_END,
    Reason.ID_REUSED,
    Reason.EMPTY,
    Reason.NULL_TIME,
    Reason.LATE_CTI,
}
REASONS = {
    "heartbeat": {Reason.MAX_AHEAD, Reason.MAX_CATCH_UP, Reason.EXPIRED},
    "metronome": set(),
    "merge": {Reason.UNKNOWN_PORT, Reason.MAX_AHEAD},
    "advance_time": set(Reason)
    - {Reason.NONE, Reason.MAX_CATCH_UP, Reason.EXPIRED, Reason.UNKNOWN_PORT, Reason.AFTER_END}
    - {Reason.FILTERED, Reason.MAX_WINDOWS, Reason.OUT_OF_TIME, Reason.DURATION_SET, Reason.DUPLICATE}
    - {Reason.NULL_DISPATCH, Reason.LOOP_LIMIT, Reason.QUARANTINED},
    "filter": {Reason.FILTERED, Reason.LATE_CTI},
    "quarantine": {Reason.QUARANTINED, Reason.LATE_CTI},
    "project": {Reason.LATE_CTI},
    "shift_time": {Reason.OUT_OF_TIME, Reason.LATE_CTI},
    "alter_duration": {Reason.OUT_OF_TIME, Reason.DURATION_SET, Reason.LATE_CTI},
    "union": MEETING,
    "interleave": set(),
    "join": MEETING,
    "window": MEETING | {Reason.MAX_WINDOWS},
    "deduplicate": {Reason.DUPLICATE},
    "dispatch": set(),
    "loop": {Reason.LOOP_LIMIT, Reason.LATE_CTI},
}
