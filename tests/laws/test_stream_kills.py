"""A stream that is killed anywhere and started again: the bytes of an undisturbed backfill, and nothing twice."""

from __future__ import annotations

import signal

import pytest

from pipelines.engine.commits.history import State
from pipelines.engine.commits.readers import log_state
from tests.forked import ended
from tests.laws.killed_stream import READINGS
from tests.laws.streamed import Restart, streamed
from tests.laws.test_kills import assert_nothing_twice
from tests.laws.trials import BEGIN, PARCELS, WHOLE, Trial, parcels, trial

POINTS = {
    "landing": (4, None),
    "intent": (3, State.INTENT),
    "tasks": (5, State.INTENT),
    "folded": (1, State.INTENT),
    "unpublished": (3, State.INTENT),
    "published": (3, None),
    "looked": (3, None),
    "settling": (3, None),
    "done": (3, None),
}
"""Where to die: how often to come past it before, and what is left pending."""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """Give the parcels, with the run `whole`: one interval on core."""
    made = trial(tmp_path_factory.mktemp("killed"), PARCELS, {"parcels": parcels()})
    made.ran("whole", WHOLE)
    return made


def killed(here: Trial, run: str, point: str, skip: int) -> None:
    """Run a stream that dies at a point."""
    code, said = ended("tests.laws.killed_stream", str(here.base), run, point, str(skip))
    assert code == -signal.SIGKILL, said


@pytest.mark.parametrize("point", POINTS)
def test_killed_and_started_again(here: Trial, point: str) -> None:
    skip, left = POINTS[point]
    killed(here, point, point, skip)
    pending = log_state(here.root(point)).pending
    assert (pending.state if pending else None) is left
    streamed(here, point, BEGIN, READINGS, restart=Restart.EVERY_EPOCH, most=3)
    assert here.hashes(point, WHOLE) == here.hashes("whole", WHOLE)
    assert_nothing_twice(here.root(point))


@pytest.mark.exhaustive
def test_killed_again_and_again(here: Trial) -> None:
    for point in ("intent", "unpublished", "published", "settling", "done"):
        killed(here, "often", point, 0)
    streamed(here, "often", BEGIN, READINGS)
    assert here.hashes("often", WHOLE) == here.hashes("whole", WHOLE)
    assert_nothing_twice(here.root("often"))
