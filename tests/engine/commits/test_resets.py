"""Which states a run can go back to, and what the log says of a run that did."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.engine.commits import errors as refusals
from pipelines.engine.commits import steps
from pipelines.engine.commits.entry import CommitKind
from pipelines.engine.commits.history import LogState
from pipelines.engine.commits.incremental import Following
from pipelines.engine.commits.resets import (
    newest_drain,
    newest_reset,
    newest_state,
    state_at,
    state_at_sequence,
    way_back,
)
from tests.engine.commits.test_housekeeping import ACTS, play, stamped
from tests.wide import drawn as examples_of


@settings(max_examples=examples_of(40, 100), deadline=None)
@given(ACTS)
def test_spans_follow_one_another_and_every_carry_has_one_line(acts: list[tuple[str, int, int]]) -> None:
    state = LogState.of(play(acts))
    assert all(before.span.end == after.span.start for before, after in pairwise(state.published))
    for row in state.published:
        base, deltas = state.carry_line(row.commit)
        assert base == 0 or state.has_base(base)
        assert {base, *deltas} - {0} <= state.carried
        assert not any(state.commits[delta].leaves_carry for delta in deltas)


@settings(max_examples=examples_of(40, 100), deadline=None)
@given(ACTS, st.integers(0, 12))
def test_a_reset_leaves_what_was_published_up_to_its_state(acts: list[tuple[str, int, int]], place: int) -> None:
    rows = play(acts)
    before = LogState.of(rows)
    targets = [0, *(row.commit for row in before.published)]
    target = targets[place % len(targets)]
    try:
        stamped(rows, steps.reset(before, before.next_number, target))
    except refusals.CommitError:
        return
    after = Following.of(rows)
    kept = [row.commit for row in before.published][: len(after.published) - 1]
    reset = after.published[-1]
    assert reset.kind is CommitKind.RESET
    assert [row.commit for row in after.published[:-1]] == kept
    assert {*kept, *reset.supersedes} == before.visible
    assert after.carry_line(reset.commit) == before.carry_line(reset.parent)
    assert newest_state(after) == newest_reset(after) == reset.commit
    assert all(before.commits[number].kind is not CommitKind.INTERVAL for number in reset.supersedes)


def test_a_state_is_found_by_what_it_covers() -> None:
    state = LogState.of(play([("epoch", 0, 1), ("idle", 0, 1), ("epoch", 0, 1)]))
    ends = [row.span.end for row in state.published]
    assert [state_at(state, end) for end in ends] == [1, 2, 3]
    assert state_at(state, ends[1] + 10) == 3
    with pytest.raises(refusals.BeforeStatesError):
        state_at(state, ends[0] - 1)
    with pytest.raises(refusals.BeforeStatesError):
        state_at_sequence(state, 0)
    with pytest.raises(refusals.NoStateError, match="nothing is published"):
        state_at(LogState.of([]), 5)


def test_a_reset_covers_nothing_itself() -> None:
    rows = play([("epoch", 0, 1), ("epoch", 0, 1), ("reset", 1, 1), ("reset", 1, 1)])
    state = LogState.of(rows)
    assert [row.commit for row in state.published] == [1, 4]
    assert [newest_drain(state, number) for number in (0, 1, 2, 3, 4)] == [0, 1, 2, 2, 2]
    assert way_back(state, 4).target == 1


def test_a_pending_commit_is_given_up_first() -> None:
    rows = play([("epoch", 0, 1)])
    facts = {"kind": CommitKind.EPOCH, "parent": 1, "sequences": [2], "plan": "{}", "fingerprint": "print"}
    state = LogState.of(rows)
    tip = state.tip
    assert tip is not None
    span = type(tip.span)(tip.span.end, tip.span.end + 1)
    stamped(rows, steps.intend(state, 2, span, **facts))  # type: ignore[arg-type]
    with pytest.raises(refusals.PendingCommitError):
        steps.reset(LogState.of(rows), 3, 1)
