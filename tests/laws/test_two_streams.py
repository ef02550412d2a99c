"""Two drivers on one run: the first is stopped, overtaken and woken, and ends with its sentence; nothing is mixed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipelines.engine.commits import lease
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.errors import LeaseHeldError, LeaseLostError
from pipelines.engine.commits.lease import Claim
from pipelines.engine.commits.readers import log_state
from pipelines.engine.landing.index import Landing
from pipelines.jobs.commands.stream import Live, Session
from pipelines.jobs.runs.readings import land_readings, runner_of
from tests.laws.killed_stream import READINGS
from tests.laws.test_kills import assert_nothing_twice
from tests.laws.trials import BEGIN, PARCELS, WHOLE, Trial, parcels, trial

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import LentSpark

CHECKOUT = Path(__file__).parents[2]
POINTS = {"intent": 3, "tasks": 5, "folded": 1, "unpublished": 3, "looked": 3, "settling": 3, "done": 3}
"""Where the first driver stops: how often it comes past it before."""
ALWAYS = frozenset({"looked", "settling", "unpublished"})
"""Between a look at a table and its transaction, between two tables, and before what is written is published; the
others are in `make check-all`."""
EVERY_POINT = [pytest.param(point, marks=() if point in ALWAYS else pytest.mark.exhaustive) for point in sorted(POINTS)]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """Give the parcels, with the run `whole`: one interval on core."""
    made = trial(tmp_path_factory.mktemp("two"), PARCELS, {"parcels": parcels()})
    made.ran("whole", WHOLE)
    return made


class Stopped:
    """A stream in a process of its own that stands still at a point."""

    def __init__(self, here: Trial, run: str, point: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.laws.stopped_stream", str(here.base), run, point, str(POINTS[point])],
            cwd=CHECKOUT,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait(self) -> None:
        """Wait until it stands still."""
        _, status = os.waitpid(self.process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), status

    def wake(self) -> tuple[int, str]:
        """Let it go on, and give its exit code and what it said."""
        self.process.send_signal(signal.SIGCONT)
        _, said = self.process.communicate(timeout=120)
        return self.process.returncode, said


@pytest.fixture
def stopped(here: Trial, request: pytest.FixtureRequest) -> Iterator[tuple[Stopped, str]]:
    """Give a stopped stream and its run; it is ended with the test, whatever came of it."""
    run = request.node.name
    first = Stopped(here, run, request.param)
    first.wait()
    yield first, run
    if first.process.poll() is None:
        first.process.kill()
        first.process.communicate()


def overtake(here: Trial, run: str, claim: Claim) -> None:
    """Run what is left of a stream under a lease of one's own, and land nothing more than the readings."""
    wanted = here.wanted(run)
    with open_driver(wanted.root, flow=wanted.flow.name, claim=claim) as driver:
        last = land_readings(wanted, BEGIN, READINGS).last_id
        runner = runner_of(wanted, driver)
        while runner.last_sequence() < last:
            runner.advance(runner.last_sequence(), runner.last_sequence() + 1)


def assert_overtaken(here: Trial, run: str, first: Stopped) -> None:
    """Wake the first driver; it must say who overtook it, publish nothing and end as a failed run."""
    before = log_state(here.root(run)).entries
    code, said = first.wake()
    assert code == 3, said
    assert "flow parcels must be written under its newest lease, number 2; this driver has number 1" in said
    assert f"was overtaken by process {os.getpid()} on " in said
    assert said.strip().endswith("nothing more was published, end this process")
    assert log_state(here.root(run)).entries == before
    assert here.hashes(run, WHOLE) == here.hashes("whole", WHOLE)
    assert_nothing_twice(here.root(run))


@pytest.mark.parametrize("stopped", EVERY_POINT, indirect=True)
def test_a_stream_that_was_stopped_and_overtaken_ends_with_its_sentence(
    here: Trial, stopped: tuple[Stopped, str]
) -> None:
    first, run = stopped
    with pytest.raises(LeaseHeldError, match=f"process {first.process.pid} "):
        overtake(here, run, Claim.ASK)
    overtake(here, run, Claim.TAKE_OVER)
    assert_overtaken(here, run, first)


@pytest.mark.parametrize("stopped", ["settling"], indirect=True)
def test_a_stream_that_did_not_renew_its_lease_is_succeeded_without_asking(
    here: Trial, stopped: tuple[Stopped, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, run = stopped
    monkeypatch.setattr(lease, "LAPSES_AFTER", 1_000_000)
    time.sleep(1.1)
    overtake(here, run, Claim.ASK)
    assert_overtaken(here, run, first)


def test_a_stream_that_was_overtaken_lands_nothing_more(here: Trial, spark: LentSpark) -> None:
    wanted = here.wanted("landing")
    live = Live(flow=wanted.flow, root=wanted.root, base=here.base, spark=spark, start=BEGIN)
    with open_driver(wanted.root, flow=wanted.flow.name) as driver:
        session = Session(live, driver, lambda _: None)
        session.lander.land(BEGIN, READINGS[0])
        overtake(here, "landing", Claim.TAKE_OVER)
        with pytest.raises(LeaseLostError, match="nothing more was published"):
            session.lander.land(READINGS[0], READINGS[-1] + 1)
    assert Landing(wanted.landing).last_reading() == READINGS[-1]
    assert here.hashes("landing", WHOLE) == here.hashes("whole", WHOLE)
