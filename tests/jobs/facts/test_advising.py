"""What a delay would have done is what the operator does under it: late events, waits, and the smallest delay."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.jobs.facts import advising
from pipelines.jobs.facts.advising import FEW, Delays, History, written_up
from pipelines.operators.advance_time import AdvanceTime, AdvanceTimePolicy, Late, PromiseAtEnd
from pipelines.operators.rows import INFINITY, NULL, OUT, Kind, Reason, Rows, Shape
from tests.wide import drawn as examples_of

if TYPE_CHECKING:
    from pipelines.operators.rows import Records

POINTS = AdvanceTimePolicy(shape=Shape.POINT, late=Late.DROP, events=1)
TIMES = st.one_of(st.just(NULL), st.integers(0, 40))


def history(*rows: tuple[int, int, int, int, int], timelines: int = 1) -> History:
    """Make a history of (kind, timeline, arrival, time, end)."""
    columns = np.array(rows, dtype=np.int64).reshape(-1, 5).T
    kind, timeline, arrival, time, end = (np.ascontiguousarray(column) for column in columns)
    return History(
        kind=kind.astype(np.int8),
        timeline=timeline,
        arrival=arrival,
        event_time=time,
        event_end=end,
        timelines=timelines,
    )


def points(*rows: tuple[int, int]) -> History:
    """Make a history of points of one timeline: (arrival, time)."""
    return history(*((Kind.DATA, 0, arrival, time, NULL) for arrival, time in rows))


def operated(policy: AdvanceTimePolicy, rows: History, final: int | None) -> Records:
    """Run the operator over a history; every edge is an event of its own."""
    steering = [] if final is None else [(Kind.FINAL, final)]
    size, more = len(rows), len(steering)
    zero, null = np.zeros(size + more, dtype=np.int64), np.full(more, NULL)
    edges = (rows.kind == Kind.START) | (rows.kind == Kind.END)
    laid = Rows(
        np.append(rows.kind, np.array([kind for kind, _ in steering], dtype=np.int8)),
        np.append(rows.timeline, zero[:more]),
        zero,
        np.append(rows.arrival, np.array([at for _, at in steering], dtype=np.int64)),
        zero,
        np.append(rows.event_time, null),
        np.append(rows.event_end, null),
        np.append(np.where(edges, np.arange(1, size + 1), 0), zero[:more]),
    )
    for column in laid:
        column.setflags(write=False)
    operator = AdvanceTime(policy)
    operator.grow(rows.timelines, size + 1)
    return np.concatenate([np.zeros(0, dtype=OUT), *(out.copy() for out in operator.feed(laid))])


def waits(out: Records, policy: AdvanceTimePolicy) -> tuple[list[int], int]:
    """Give, from what the operator gave, how long each event on time waited, and how many were never released."""
    found, left = [], 0
    for at, row in enumerate(out):
        lasting = policy.shape == Shape.INTERVAL and row["kind"] == Kind.DATA
        event = row["kind"] in (Kind.DATA, Kind.START) and row["reason"] in (Reason.NONE, Reason.MAX_AHEAD)
        if not event or (lasting and row["event_end"] == NULL):
            continue
        behind = (
            each["arrival"] - row["arrival"]
            for each in out[at + 1 :]
            if each["kind"] == Kind.CTI
            and each["key"] == row["key"]
            and each["event_time"] > row["event_time"]
            and each["reason"] == Reason.NONE
        )
        wait = next(behind, None)
        left += wait is None
        found += [] if wait is None else [int(wait)]
    return sorted(found), left


@st.composite
def histories(draw: st.DrawFn) -> tuple[AdvanceTimePolicy, History, int | None]:
    """Draw a policy and rows: late, ahead, tied, without time, with timers and CTIs of their own."""
    shape = draw(st.sampled_from(list(Shape)))
    events, duration = draw(st.tuples(st.none() | st.integers(1, 4), st.none() | st.integers(1, 9)).filter(any))
    policy = AdvanceTimePolicy(
        shape=shape,
        late=draw(st.sampled_from(list(Late))),
        events=events,
        duration=duration,
        max_ahead=draw(st.none() | st.integers(0, 20)),
        at_end=draw(st.sampled_from(list(PromiseAtEnd))),
    )
    data = Kind.START if shape is Shape.EDGE else Kind.DATA
    kinds = st.sampled_from([data] * 6 + [Kind.TIMER, Kind.CTI])
    drawn = draw(st.lists(st.tuples(kinds, st.integers(0, 1), st.integers(0, 4), TIMES, TIMES), max_size=24))
    rows, arrival = [], 0
    for kind, timeline, step, time, end in drawn:
        arrival += step
        instant = 7 if kind in {Kind.TIMER, Kind.CTI} and time == NULL else time
        rows.append((int(kind), timeline, arrival, instant, end if shape is Shape.INTERVAL else NULL))
    final = arrival + 1 if policy.at_end is PromiseAtEnd.INFINITY and draw(st.booleans()) else None
    return policy, history(*rows, timelines=2), final


@settings(max_examples=examples_of(50, 150), deadline=None)
@given(histories(), st.integers(-12, 45), st.sampled_from([0, FEW]))
def test_every_delay_does_what_the_operator_does(
    drawn: tuple[AdvanceTimePolicy, History, int | None], delay: int, few: int
) -> None:
    policy, rows, final = drawn
    with patch.object(advising, "FEW", few):
        delays = Delays(policy, rows, final=final)
    out = operated(replace(policy, delay=delay), rows, final)
    assert delays.late(delay) == int((out["reason"] == Reason.LATE).sum())
    assert delays.untimed(delay) == int((out["reason"] == Reason.NULL_TIME).sum())
    found, left = waits(out, policy)
    wait = delays.wait(delay)
    assert wait.left == left
    if found:
        assert (wait.half, wait.most) == (found[-(-len(found) // 2) - 1], found[-(-len(found) * 99 // 100) - 1])
    else:
        assert (wait.half, wait.most) == (None, None)


def test_an_interval_without_an_end_may_be_late_and_otherwise_has_no_time() -> None:
    policy = AdvanceTimePolicy(shape=Shape.INTERVAL, late=Late.DROP, duration=1)
    rows = history((Kind.CTI, 0, 1, 7, NULL), (Kind.DATA, 0, 2, 0, NULL), (Kind.DATA, 0, 3, 9, NULL))
    delays = Delays(policy, rows)
    assert (delays.late(0), delays.untimed(0), delays.wait(0).left) == (1, 1, 0)


@settings(max_examples=examples_of(30, 80), deadline=None)
@given(histories(), st.sampled_from([Fraction(1, 2), Fraction(9, 10), Fraction(1)]))
def test_the_smallest_delay_is_enough_and_a_tick_less_is_not(
    drawn: tuple[AdvanceTimePolicy, History, int | None], share: Fraction
) -> None:
    policy, rows, final = drawn
    delays = Delays(policy, rows, final=final)
    if not delays.events:
        return
    allowed = delays.events - -(-share.numerator * delays.events // share.denominator)
    smallest = delays.smallest(share)
    if smallest is None:
        assert delays.hopeless > allowed
    elif smallest == NULL:
        assert delays.late(-(10**15)) <= allowed
    else:
        assert delays.late(smallest) <= allowed < delays.late(smallest - 1)


def test_end_edges_are_judged_by_their_end() -> None:
    policy = AdvanceTimePolicy(shape=Shape.EDGE, late=Late.DROP, events=1)
    rows = history((Kind.START, 0, 1, 10, NULL), (Kind.START, 0, 2, 30, NULL), (Kind.END, 0, 3, 10, 18))
    delays = Delays(policy, rows)
    assert delays.needs.tolist() == [NULL, -20, 12]
    assert (delays.late(11), delays.late(12)) == (1, 0)


def test_the_promise_that_governs_is_the_newest_and_not_the_last_events() -> None:
    """The third event stands behind the first, though the second moved no time."""
    delays = Delays(POINTS, points((1, 20), (2, 5), (3, 12)))
    assert delays.needs.tolist() == [NULL, 15, 8]
    assert [delays.late(delay) for delay in (7, 8, 14, 15)] == [2, 1, 1, 0]


def test_a_cti_of_the_input_makes_late_whatever_the_delay() -> None:
    rows = history((Kind.CTI, 0, 1, 50, NULL), (Kind.DATA, 0, 2, 20, NULL), (Kind.DATA, 0, 3, 60, NULL))
    delays = Delays(POINTS, rows)
    assert delays.hopeless == 1
    assert delays.late(10**12) == 1
    assert delays.smallest(Fraction(1)) is None
    assert delays.smallest(Fraction(1, 2)) == -40


def test_a_span_counts_its_events_and_keeps_the_promises_of_all() -> None:
    rows = points((1, 20), (5, 10), (6, 25), (9, 40))
    assert Delays(POINTS, rows, since=5, until=9).needs.tolist() == [10, -5]
    assert Delays(POINTS, rows, since=5, until=9).wait(10) == (1, 3, 0)


def test_no_row_is_no_event() -> None:
    delays = Delays(POINTS, points())
    assert (delays.events, delays.late(0), delays.wait(0)) == (0, 0, (None, None, 0))
    assert delays.ladder(5) == [0, 5]


@pytest.mark.parametrize(
    ("ticks", "rounded"),
    [(0, 0), (-7, 0), (1, 1), (999, 1_000), (61_000_000, 120_000_000), (3_601_000_000, 4_500_000_000)],
)
def test_a_delay_is_rounded_up_to_what_people_write(ticks: int, rounded: int) -> None:
    assert written_up(ticks) == rounded


def test_the_ladder_has_the_current_delay_and_ends_where_nobody_is_late() -> None:
    second = 1_000_000
    rows = points(*((number * second, (number - number % 7 * 3) * second) for number in range(1, 60)))
    delays = Delays(POINTS, rows)
    rungs = delays.ladder(8 * second, 3)
    assert rungs == sorted(set(rungs))
    assert {0, 3, 8 * second} <= set(rungs)
    assert delays.late(rungs[-1]) == 0
    assert delays.late(rungs[-2]) > 0
    assert INFINITY not in rungs
