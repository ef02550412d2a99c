"""Several intervals in one go: every commit is what it would be alone, whatever goes wrong on the way."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from pipelines.engine.columnar.content import content_hash
from pipelines.engine.commits.driver import Driver, open_driver
from pipelines.engine.commits.history import State
from pipelines.engine.commits.paths import data_tables, stream_path
from pipelines.engine.commits.readers import log_state, read_carry
from pipelines.engine.commits.table_log import TableLog
from pipelines.engine.live.examining import Ill, examine_run
from pipelines.engine.tasks import stages
from pipelines.engine.tasks.local import CoreEngine
from pipelines.engine.tasks.spark import NoWorkersError
from pipelines.engine.tasks.stages import create_tables
from pipelines.jobs.runs.backfill import run_backfill
from pipelines.jobs.runs.gate import Checked, RejectedError
from tests.laws.trials import MINUTE, PARCELS, WHOLE, Trial, cut, parcels, trial

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa

    from pipelines.engine.commits.history import Entry, LogState
    from pipelines.engine.tasks.task import Done, Task
    from pipelines.jobs.runs.backfill import Backfill, Interval

START, END = WHOLE[0]
PARTS = cut(START, END, range(START, END, 20 * MINUTE))
"""Nine intervals, most of which end while rows are held and timers are due."""
SAME = ("span", "parent", "sequences", "fingerprint", "counts", "hashes", "carry_hash", "supersedes", "verdict", "plan")


@pytest.fixture
def here(tmp_path: Path) -> Trial:
    """Give the parcels, whose grid is thirds of hours."""
    text = PARCELS.replace("every: 1h", "every: 20m")
    return trial(tmp_path / "parcels", text, {"parcels": parcels()})


def together(here: Trial, run: str, most: int | None = None) -> Backfill:
    """Ask for intervals in one go."""
    return replace(here.wanted(run), at_once=most)


def state(here: Trial, run: str) -> LogState:
    return log_state(here.root(run))


def told(entries: Sequence[Entry]) -> list[dict[str, object]]:
    """Give what rows say that may not depend on how many were worked on in one go."""
    return [{name: getattr(entry, name) for name in SAME} for entry in entries]


@pytest.mark.parametrize("most", [2, 4, None])
def test_every_commit_says_what_it_says_when_it_runs_alone(here: Trial, most: int | None) -> None:
    alone = here.run("alone", PARTS)
    ran = run_backfill(together(here, "main", most), PARTS)
    assert [each.entry.commit for each in ran] == list(range(1, len(PARTS) + 1))
    assert told(state(here, "main").published) == told(state(here, "alone").published)
    assert here.hashes("main", PARTS) == alone
    for part in PARTS:
        assert here.hashes("main", [part]) == here.hashes("alone", [part])


def test_a_table_follows_in_one_transaction_with_one_file_a_task(here: Trial) -> None:
    run_backfill(together(here, "main"), PARTS)
    log = TableLog(stream_path(here.root("main"), "punctual"))
    assert log.look()
    assert (log.version, log.settled()) == (1, len(PARTS))
    assert len(log.files) == 1
    rows = [row for row in state(here, "main").entries if row.commit]
    assert [row.state for row in rows] == [State.INTENT, *[State.PUBLISHED] * len(PARTS)]


def test_the_carry_at_every_boundary_is_the_one_of_a_run_alone(here: Trial) -> None:
    here.ran("alone", PARTS)
    run_backfill(together(here, "main"), PARTS)
    for number in range(1, len(PARTS) + 1):
        rows = [read_carry(here.root(run), "ordered", "held", number) for run in ("main", "alone")]
        found = [content_hash(each, leave_out=frozenset({"position"})) for each in rows]
        assert found[0] == found[1]


@pytest.mark.parametrize("place", [0, 4, 8])
def test_one_of_them_can_be_run_again_alone(here: Trial, place: int) -> None:
    before = here.run("alone", PARTS)
    run_backfill(together(here, "main"), PARTS)
    here.ran("main", PARTS[place : place + 1])
    now = state(here, "main")
    assert now.commits[len(PARTS) + 1].supersedes == (place + 1,)
    assert not now.stale
    assert here.hashes("main", PARTS) == before
    assert here.hashes("main", [PARTS[place]]) == here.hashes("alone", [PARTS[place]])


@pytest.mark.parametrize("places", [[4, 5], [1, 7, 4, 0, 8, 4]])
def test_some_are_run_again_one_by_one_where_each_bucket_has_a_file(
    here: Trial, monkeypatch: pytest.MonkeyPatch, places: list[int]
) -> None:
    monkeypatch.setattr(stages, "FEW", -1)
    before = here.run("alone", PARTS)
    run_backfill(together(here, "main"), PARTS)
    log = TableLog(stream_path(here.root("main"), "beating"))
    assert log.look()
    assert len(log.files) > 1
    for place in places:
        here.ran("main", PARTS[place : place + 1])
        found = examine_run(here.root("main"), state(here, "main"))
        assert {each.ill for each in found} <= {Ill.STRAY}
    assert here.hashes("main", PARTS) == before
    with open_driver(here.root("main"), flow=here.flow.name) as driver:
        newest = driver.state().newest_published
        assert newest is not None
        for path in data_tables(here.root("main")):
            driver.tables.restore(path, newest.commit)
    assert here.hashes("main", PARTS) == before


def test_all_of_them_may_replace_what_ran_alone_and_the_other_way_round(here: Trial) -> None:
    before = here.run("main", PARTS)
    run_backfill(together(here, "main"), PARTS)
    assert here.hashes("main", PARTS) == before
    here.ran("main", PARTS)
    assert here.hashes("main", PARTS) == before
    run_backfill(together(here, "main", 4), PARTS)
    assert here.hashes("main", PARTS) == before
    assert not state(here, "main").stale


def test_landed_late_data_makes_a_version_of_its_interval_alone(here: Trial) -> None:
    run_backfill(together(here, "main"), PARTS)
    pq.write_table(parcels(seed=2), here.base / "parcels.parquet")
    run_backfill(together(here, "main"), PARTS)
    assert here.hashes("main", PARTS) == here.run("fresh", PARTS)


@dataclass
class Judge:
    """Refuses some intervals, and keeps which commits it was asked about."""

    refused: frozenset[Interval] = frozenset()
    asked: list[int] = field(default_factory=list)

    def __call__(self, number: int, known: LogState) -> list[Verdict]:
        """Judge a commit."""
        self.asked.append(number)
        entry = known.commits[number]
        return [Verdict(held=tuple(entry.span) not in self.refused)]


@dataclass(frozen=True)
class Verdict:
    """What was found of one expectation."""

    held: bool
    table: str = "punctual"
    severity: str = "blocking"
    sentence: str = "it is not refused"
    remedy: str = ""
    unexpected: int = 1


@pytest.mark.parametrize("place", [0, 1, 3, 8])
def test_what_is_refused_is_a_commit_of_its_own_and_what_came_before_is_published(here: Trial, place: int) -> None:
    gate = Checked(Judge(frozenset(PARTS[place : place + 1])))
    with pytest.raises(RejectedError) as refused:
        run_backfill(replace(together(here, "main"), gate=gate), PARTS)
    assert refused.value.commit == place + 1
    now = state(here, "main")
    assert [row.commit for row in now.published] == list(range(1, place + 1))
    assert {row.verdict for row in now.published} <= {"1 of 1 expectations hold"}
    assert now.commits[place + 1].state is State.REJECTED
    assert now.next_number == place + 2
    if place:
        assert here.hashes("main", PARTS[:place]) == here.run("alone", PARTS[:place])


def test_after_a_refusal_what_comes_behind_it_is_run_by_the_next_call(here: Trial) -> None:
    gate = Checked(Judge(frozenset(PARTS[3:4])))
    with pytest.raises(RejectedError):
        run_backfill(replace(together(here, "main"), gate=gate), PARTS)
    run_backfill(replace(together(here, "main"), gate=Checked(Judge())), PARTS[3:])
    assert here.hashes("main", PARTS) == here.run("alone", PARTS)


class Failing(CoreEngine):
    """Fails whenever a task has to do with an interval."""

    def __init__(self, interval: Interval) -> None:
        self.interval = interval

    def run(self, tasks: Sequence[Task]) -> list[Done]:
        """Run tasks, unless the interval is among what they span."""
        if any(task.start <= self.interval[0] < task.close for task in tasks):
            raise RuntimeError("no")
        return super().run(tasks)


def test_what_fails_in_one_of_them_is_said_by_that_one_and_what_came_before_is_published(here: Trial) -> None:
    wanted = replace(together(here, "main"), engine=Failing(PARTS[4]))
    with pytest.raises(RuntimeError, match="no"):
        run_backfill(wanted, PARTS)
    now = state(here, "main")
    assert [row.commit for row in now.published] == [1, 2, 3, 4]
    assert now.pending is not None
    assert now.pending.span == PARTS[4]
    run_backfill(together(here, "main"), PARTS[4:])
    assert here.hashes("main", PARTS) == here.run("alone", PARTS)


class Idle(CoreEngine):
    """A cluster on which nobody works, as after a minute."""

    def __init__(self) -> None:
        self.asked = 0

    def run(self, tasks: Sequence[Task]) -> list[Done]:
        """Refuse, as nobody works."""
        self.asked += len(tasks) > 0
        raise NoWorkersError("spark://here:7077", "here", 0)


def test_that_nobody_works_is_said_once_and_not_of_each_interval(here: Trial) -> None:
    idle = Idle()
    with pytest.raises(NoWorkersError, match="must begin a task within 60 s"):
        run_backfill(replace(together(here, "main"), engine=idle), PARTS)
    assert idle.asked == 1
    run_backfill(together(here, "main"), PARTS)
    assert here.hashes("main", PARTS) == here.run("alone", PARTS)


class Killed(BaseException):
    """Stands for the end of the process."""


def test_killed_before_they_count_one_intent_is_left_and_is_run_again(
    here: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(Driver, "publish_together", killed)
        with pytest.raises(Killed):
            run_backfill(together(here, "main"), PARTS)
    now = state(here, "main")
    assert not now.published
    assert [row.span for row in now.commits.values()] == PARTS[:1]
    run_backfill(together(here, "main"), PARTS)
    assert here.hashes("main", PARTS) == here.run("alone", PARTS)


@pytest.mark.parametrize("done", [0, 1, 3])
def test_killed_while_tables_follow_they_follow_later(here: Trial, monkeypatch: pytest.MonkeyPatch, done: int) -> None:
    before = here.run("main", PARTS[:3])
    commit, count = TableLog.commit, []

    def killed(log: TableLog, *given: object) -> int:
        if log.path.parent.name == "streams":
            count.append(1)
            if len(count) > done:
                raise Killed
        return commit(log, *given)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(TableLog, "commit", killed)
        with pytest.raises(Killed):
            run_backfill(together(here, "main"), PARTS)
    with open_driver(here.root("main"), flow=here.flow.name):
        pass
    assert here.hashes("main", PARTS[:3]) == before
    assert here.hashes("main", PARTS) == here.run("alone", PARTS)
    log = TableLog(stream_path(here.root("main"), "punctual"))
    assert log.look()
    assert log.settled() == 3 + len(PARTS)


def test_columns_of_a_table_are_looked_at_once_a_backfill(here: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[object] = []
    check = create_tables.__globals__["check_columns"]

    def counted(path: Path, schema: pa.Schema) -> None:
        looked.append(path)
        check(path, schema)

    monkeypatch.setitem(create_tables.__globals__, "check_columns", counted)
    here.ran("main", PARTS)
    days = len(looked)
    here.ran("other", PARTS[:2])
    assert days == len(looked) - days
