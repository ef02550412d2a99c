"""Every transcript once more, as a stream: an epoch a step, a new driver a step, on Spark, and through a kill."""

from __future__ import annotations

import signal
from itertools import product
from typing import TYPE_CHECKING

import pytest

from pipelines.engine.commits.history import State
from pipelines.engine.commits.readers import log_state
from tests.forked import ended
from tests.laws.killed_transcript import PER_OPERATOR, chosen
from tests.laws.shared_transcripts import assert_told, shared
from tests.laws.streamed_transcripts import Cut, Driven, Live, longest
from tests.laws.test_kills import assert_nothing_twice

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from _pytest.mark.structures import ParameterSet

    from tests.conftest import LentSpark
    from tests.laws.shared_transcripts import Shared, Told

TIMED = ("heartbeat", "metronome", "merge", "advance_time")
RELATING = ("import", "union", "join", "window")
PASSING = ("filter", "quarantine", "project", "shift_time", "alter_duration", "deduplicate")
EVERY = (*TIMED, *RELATING, *PASSING)
QUERIED = ("heartbeat", "merge", "join")
POINTS = ("intent", "looked", "unpublished")
"""Where the documents of an operator are killed, one each."""
KILLED = [("heartbeat", 0), ("metronome", 1), ("merge", 1), ("advance_time", 2), ("union", 0), ("window", 2)]
"""Each point twice; what the other operators are at it is in `make check-all`."""
KILLED_TOO = [case for case in product((*TIMED, *RELATING), range(PER_OPERATOR)) if case not in KILLED]
KILLED_TOO += [(kind, 0) for kind in PASSING] + [("deduplicate", 1), ("deduplicate", 2)]


def exhaustive(cases: Iterable[object]) -> list[ParameterSet]:
    """Leave cases to `make check-all`."""
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.exhaustive) for case in cases
    ]


FEW_STEPS = 6


def hold(groups: list[Shared], cut: Cut, driven: Driven) -> None:
    """Run documents as streams, and see that each holds and that each reading made a commit."""
    found: Told = {}
    for group in groups:
        live = Live(group, cut)
        live.land()
        live.run(driven)
        found |= live.told()
        sequences = [entry.sequences for entry in log_state(live.root).published]
        assert sequences == [(number,) for number in range(1, len(live.readings) + 1)]
    assert_told(groups, found)


MOST_LOST = 3
"""Steps of a document that are no commit: what begins or ends it in the instant of its neighbour."""


@pytest.mark.parametrize(("part", "driven"), [(0, Driven.ONE), *exhaustive([*product(range(12), Driven)][1:])])
def test_transcripts_hold_as_a_stream_with_an_epoch_for_every_step(tmp_path: Path, part: int, driven: Driven) -> None:
    hold(shared(tmp_path, 2)[part::12], Cut.STEPS, driven)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("cut", "driven", "buckets"), [*product(Cut, Driven, [1, 3])])
def test_transcripts_hold_as_a_stream_however_it_is_cut_and_driven(
    tmp_path: Path, cut: Cut, driven: Driven, buckets: int
) -> None:
    hold(shared(tmp_path, buckets), cut, driven)


def test_most_steps_are_commits_of_their_own(tmp_path: Path) -> None:
    lives = [Live(group) for group in shared(tmp_path, 1) if len(group.documents) == 1]
    lost = [len(live.group.documents[0].steps) - len(live.readings) for live in lives]
    assert max(lost) <= MOST_LOST
    assert sum(len(live.readings) for live in lives) > 0.85 * sum(len(live.group.documents[0].steps) for live in lives)


@pytest.mark.parametrize("kind", [*QUERIED, *exhaustive(each for each in EVERY if each not in QUERIED)])
def test_transcripts_hold_as_a_query_on_spark(tmp_path: Path, spark: LentSpark, kind: str) -> None:
    (live,) = longest(shared(tmp_path, 2), kind, 1, most=FEW_STEPS)
    live.land()
    live.query(spark)
    assert len(log_state(live.root).published) == len(live.readings)
    assert_told([live.group], live.told())


def killed(folder: Path, kind: str, rank: int, point: str, skip: int) -> None:
    """Run documents in a process that dies at a point."""
    code, said = ended("tests.laws.killed_transcript", str(folder), kind, str(rank), point, str(skip))
    assert code == -signal.SIGKILL, said


@pytest.mark.parametrize(("kind", "rank"), [*KILLED, *exhaustive(KILLED_TOO)])
def test_transcripts_hold_through_a_kill(tmp_path: Path, kind: str, rank: int) -> None:
    live = chosen(tmp_path, kind, rank)
    half = len(live.readings) // 2
    killed(tmp_path, kind, rank, POINTS[rank], half)
    state = log_state(live.root)
    left = None if POINTS[rank] == "looked" else State.INTENT
    assert (state.pending.state if state.pending else None) is left
    begun = len(state.published) + (left is not None)
    assert 1 < begun <= len(live.readings), "killed in a commit behind the first"
    live.run(Driven.ANEW)
    assert_told([live.group], live.told())
    assert_nothing_twice(live.root)
