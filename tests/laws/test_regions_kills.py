"""A run in legs that is killed anywhere, or loses its tickets, and goes on: the bytes of one that ran in one piece."""

from __future__ import annotations

import datetime as dt
import shutil
import signal
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.leg_roots import leg_root, roots_of
from pipelines.engine.live import legs
from pipelines.engine.live.crossed import laid_again
from pipelines.engine.live.crossing import QUEUE, tickets_in
from pipelines.engine.live.legs import open_legs
from pipelines.engine.tasks.local import CoreEngine
from pipelines.flows.legs import in_legs
from pipelines.jobs.runs.readings import land_readings, runner_of
from tests.forked import ended
from tests.laws.killed_regions import regional
from tests.laws.killed_stream import READINGS
from tests.laws.test_kills import assert_nothing_twice
from tests.laws.trials import BEGIN, CORE, WHOLE, Trial, parcels, trial

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pipelines.engine.tasks.task import Done, Task

FLOW = """\
flow: parcels
every: 1h
buckets: 3
sources:
  parcels: {feed: {parquet: parcels.parquet}, key: depot, time: sent, arrival: seen}
modules:
  timely:
    inputs: [came]
    streams:
      beating: {heartbeat: came, interval: 5m, slack: 30s}
      ordered: {merge: beating, ports_by: {depot: [east, north, south, west]}}
      punctual: {advance_time: ordered, every: {events: 7}, delay: 10m, late: divert}
    outputs: {kept: punctual, late: punctual.diverted}
streams:
  heavy: {filter: parcels, where: number % 3 <> 1}
  calm: {merge: heavy, ports_by: {depot: [east, north, south, west]}}
  timed: {module: timely, inputs: {came: heavy}, parallel: true, most_behind: 20}
  first: {filter: timed.kept, where: number >= 0}
  both: {interleave: [first, calm]}
"""
POINTS = {"ticket": 3, "reading": 4, "waiting": 0}
"""Where to die, and how often to come past it before."""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """Give the parcels, with the run `whole`: one interval on core."""
    made = trial(tmp_path_factory.mktemp("killed"), FLOW, {"parcels": parcels()})
    made.ran("whole", WHOLE)
    return made


def assert_the_same(here: Trial, run: str) -> None:
    assert here.hashes(run, WHOLE) == here.hashes("whole", WHOLE)
    for root in roots_of(here.root(run)):
        assert_nothing_twice(root)


@pytest.mark.parametrize("point", POINTS)
def test_killed_in_legs_and_started_again(here: Trial, point: str) -> None:
    code, said = ended("tests.laws.killed_regions", str(here.base), point, point, str(POINTS[point]))
    assert code == -signal.SIGKILL, said

    told: list[str] = []
    regional(here, point, told.append)
    assert_the_same(here, point)
    if point == "ticket":
        assert any("made from the log of commits" in line for line in told)


class Dies(CoreEngine):
    """Ends as the process does when it is killed."""

    def run(self, tasks: Sequence[Task]) -> list[Done]:
        """Do nothing, ever."""
        raise KeyboardInterrupt(len(tasks))


def test_a_leg_that_died_over_more_rows_than_may_wait_keeps_nobody_waiting(here: Trial) -> None:
    wanted = here.wanted("stuck")
    wanted = replace(wanted, flow=replace(here.flow, legs=in_legs(here.flow)))
    with open_driver(wanted.root, flow=wanted.flow.name) as driver:
        last = land_readings(wanted, BEGIN, READINGS).last_id
        main = runner_of(wanted, driver)
        with open_legs(main, wanted.root, lambda _: Dies()) as legs:
            legs.begin(lambda _: None)
            main.advance(0, last // 2)
            assert legs.main.full is not None, "more rows wait than may"
            with pytest.raises(KeyboardInterrupt):
                legs.others[0].step(last)
    told: list[str] = []
    with open_driver(wanted.root, flow=wanted.flow.name) as driver:
        main = runner_of(wanted, driver)
        with open_legs(main, wanted.root, lambda _: CORE) as legs:
            legs.begin(told.append)
            assert any(line.startswith("finished commit") for line in told)
            legs.catch_up(last)
            assert legs.main.full is None
    regional(here, "stuck")
    assert_the_same(here, "stuck")


def test_a_queue_that_is_gone_is_made_from_the_log(here: Trial) -> None:
    behind(here, "gone")
    for root in roots_of(here.root("gone")):
        shutil.rmtree(root / QUEUE, ignore_errors=True)
    told: list[str] = []
    regional(here, "gone", told.append)

    assert f"{len(READINGS)} tickets of main for timed were made from the log of commits" in told
    assert_the_same(here, "gone")


@pytest.mark.parametrize("left", [b"", b'{"commit": 5, "fir', b"{}", b"[]", b"null"], ids=bytes.decode)
def test_a_torn_ticket_is_made_from_the_log(here: Trial, left: bytes) -> None:
    run = f"torn-{left.hex()[:12]}"
    behind(here, run)
    torn = max((here.root(run) / QUEUE / "timed").glob("*.json"))
    torn.write_bytes(left)
    assert len([*tickets_in(torn.parent)]) == len([*torn.parent.glob("*.json")]) - 1
    told: list[str] = []
    regional(here, run, told.append)
    assert "1 ticket of main for timed was made from the log of commits" in told
    assert_the_same(here, run)


def test_what_was_read_leaves_the_newest_ticket_alone(here: Trial) -> None:
    regional(here, "read")
    queues = [folder for root in roots_of(here.root("read")) for folder in (root / QUEUE).glob("*")]

    assert len(queues) == 3
    assert [len([*tickets_in(folder)]) for folder in queues] == [1, 1, 1]


def test_tables_that_are_put_in_order_keep_what_a_leg_has_not_read(here: Trial) -> None:
    """The first leg is through, its tables are compacted and swept at once, and nobody has read a row of it."""
    files = behind(here, "swept", keep=dt.timedelta(0))

    assert files
    assert all(file.exists() for file in files)
    regional(here, "swept")
    assert_the_same(here, "swept")


def test_a_queue_that_is_gone_when_all_was_read_and_swept_hinders_nobody(here: Trial) -> None:
    """As behind a reset to where all legs stand: the newest ticket is gone, and so are the files that it named."""
    regional(here, "equal", upto=len(READINGS) - 1)
    for root in roots_of(here.root("equal")):
        tickets = [ticket for queue in (root / QUEUE).glob("*") for ticket in tickets_in(queue)]
        named = {
            root / "streams" / at / each.name for ticket in tickets for at, of in ticket.files.items() for each in of
        }
        shutil.rmtree(root / QUEUE, ignore_errors=True)
        swept(here, root)
        assert not any(file.exists() for file in named if file.parent.parent.name == "heavy")
    told: list[str] = []
    regional(here, "equal", told.append)
    assert not [line for line in told if "made from the log" in line]
    assert_the_same(here, "equal")


def test_a_leg_that_is_gone_is_made_again_out_of_tables_that_were_put_together_and_swept(
    here: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tickets and the files that they named are gone, too: rows that cross are written once more."""
    regional(here, "gone-leg", upto=len(READINGS) - 1)
    root = here.root("gone-leg")
    shutil.rmtree(root / QUEUE)
    swept(here, root)
    for leg in ("timed", "main-2"):
        shutil.rmtree(leg_root(root, leg))
    again: list[str] = []

    def counted(*words: object) -> object:
        again.append(str(words[2]))
        return laid_again(*words)  # type: ignore[arg-type]

    monkeypatch.setattr(legs, "laid_again", counted)
    told: list[str] = []
    regional(here, "gone-leg", told.append)
    assert any("of main for timed were made from the log of commits" in line for line in told), told
    assert {*again} == {"heavy"}
    assert_the_same(here, "gone-leg")


def swept(here: Trial, root: Path) -> None:
    """Put the tables of a leg together, and sweep what they were before."""
    with open_driver(root, flow=here.flow.name) as driver:
        for _ in range(3):
            driver.keep_house(every=1, keep=dt.timedelta(0))


def behind(here: Trial, run: str, keep: dt.timedelta | None = None) -> list[Path]:
    """Let the first leg alone go on, and its tables be put in order; give the files that wait to be read."""
    wanted = here.wanted(run)
    wanted = replace(wanted, flow=replace(here.flow, legs=in_legs(here.flow)))
    with open_driver(wanted.root, flow=wanted.flow.name) as driver:
        last = land_readings(wanted, BEGIN, READINGS).last_id
        runner = runner_of(wanted, driver)
        with open_legs(runner, wanted.root, lambda _: CORE) as legs:
            legs.begin(lambda _: None)
            while runner.upto < last:
                runner.advance(runner.upto, runner.upto + 1)
            if keep is not None:
                driver.keep_house(every=1, keep=keep)
            return [
                queue.root / "streams" / stream / file.name
                for queue in legs.main.outs
                for ticket in queue.waiting
                for stream, files in ticket.files.items()
                for file in files
            ]
