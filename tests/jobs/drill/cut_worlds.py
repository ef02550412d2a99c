"""Runs whose power is cut at drawn steps, on a disk that keeps nothing but what was synced; and what must be left.

A run goes on in this process; at each drawn step what a cut would leave is put aside. Then each of these is held
against what had been told until there, opened by plain readers, taken up by the next driver and gone on with.
"""

from __future__ import annotations

import copy
import datetime as dt
import json
import os
import random
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable

from pipelines.engine.commits import file_lists, housekeeping, lease
from pipelines.engine.commits.delta_log import SETTLED, checkpoint, clean_log, create, exists, mend
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.log import CommitLog
from pipelines.engine.commits.paths import stream_path
from pipelines.engine.commits.quality import Quality, read_quality, write_quality
from pipelines.engine.commits.readers import log_state
from pipelines.engine.commits.table_log import TableChange, TableLog
from pipelines.engine.files import durable
from pipelines.flows.definition import flow_from_json
from pipelines.jobs.commands.upgrade import upgrade_flow
from pipelines.jobs.drill.older_home import older_state, unpack
from pipelines.jobs.drill.strict import ENDS, DiskLoss, Journal
from pipelines.jobs.drill.witness import point_of
from pipelines.jobs.proofs.parity import table_hashes
from tests.engine.commits.settled_world import Reaper, World
from tests.engine.commits.test_table_log import SCHEMA, new_file
from tests.jobs.commands.test_upgrade import HASHES
from tests.laws.trials import BEGIN, HOUR

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from pipelines.engine.commits.entry import Entry


@dataclass
class Cuts:
    """Sees each sync below a folder, and puts aside what a cut would leave before and behind it.

    Args:
        root: the folder; what lies there is on disk.
        base: takes what is left.
        number: of the seed.
        every: of so many steps one is cut at.
        without: points whose syncs are left out.
        note: gives what has been told until now.
    """

    root: Path
    base: Path
    number: int
    every: int
    without: frozenset[str]
    note: Callable[[], object]
    left: list[tuple[Path, Any]] = field(default_factory=list)
    points: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Draw nothing yet."""
        self.drawn, self.journal = random.Random(self.number), Journal(self.root)  # noqa: S311 - seeds draw cuts
        self.loss = tuple(DiskLoss)[self.number % len(DiskLoss)]

    @contextmanager
    def watching(self) -> Iterator[None]:
        """See every sync while the block runs."""
        with pytest.MonkeyPatch.context() as patch:
            for name in ENDS:
                patch.setattr(os, name, self.journal.watched(getattr(os, name)))
            patch.setattr(os, "fsync", self._synced)
            # Without the call that syncs all at once, which would hide who forgot what.
            patch.setattr(durable, "_syncfs", lambda: None)
            yield

    def _synced(self, handle: int) -> None:
        point = point_of(sys._getframe(1))
        self.points.add(point)
        self.cut()
        if point not in self.without:
            self.journal.sync(handle)
        self.cut()

    def cut(self) -> None:
        """Cut here, if that is drawn."""
        if self.drawn.randrange(self.every) == 0:
            into = self.base / f"{self.number}-{len(self.left)}"
            into.mkdir(parents=True)
            self.journal.leave(into, self.loss, random.Random(self.number))  # noqa: S311 - as above
            self.left.append((into, self.note()))


@dataclass
class Told:
    """What had been told at a cut: rows of `commits`, and what the world's tasks had written."""

    rows: tuple[Entry, ...]
    world: World


def history(  # noqa: PLR0913 - a history, its cuts and what is left out
    number: int, base: Path, without: frozenset[str], keep: dt.timedelta, acts: int, every: int
) -> tuple[list[str], set[str]]:
    """Let a random history happen, cut it, and say what is wrong with what is left, and which points synced."""
    with pytest.MonkeyPatch.context() as patch:
        rng, rows = random.Random(number), list[tuple["Entry", ...]]()  # noqa: S311 - seeds draw histories
        patch.setattr(housekeeping, "FEW", 2)
        patch.setattr(file_lists, "SHORT", rng.choice([1, 200]))
        appended = CommitLog.append

        def append(log: CommitLog, entry: Entry) -> Entry:
            done = appended(log, entry)
            rows.append((done,))
            return done

        patch.setattr(CommitLog, "append", append)
        disk = base / "disk"
        world = World(disk / "home" / "flow" / "run", rng, keep, Reaper())
        world.root.mkdir(parents=True)

        def note() -> Told:
            kept = World(world.root, random.Random(number), keep, Reaper(), said=list(world.said))  # noqa: S311
            kept.rows, kept.carry = copy.deepcopy((world.rows, world.carry))
            return Told(tuple(row for (row,) in rows), kept)

        cuts = Cuts(disk, base / "left", number, every, without, note)
        with cuts.watching():
            world.start()
            for _ in range(acts):
                world.happen()
                cuts.cut()
            world.leave()
            cuts.cut()
    return [problem for left in cuts.left for problem in judged(*left)], cuts.points


def judged(left: Path, told: Told) -> list[str]:
    """Say what is wrong with what a cut left."""
    world = told.world
    world.root = left / "home" / "flow" / "run"
    try:
        there = {row.entry: row for row in log_state(world.root).entries}
        gone = [row.entry for row in told.rows if there.get(row.entry) != row]
        if gone:
            return [f"{len(gone)} of {len(told.rows)} rows of `commits` that were appended are gone"]
        if not there:
            return []
        world.said.append("cut")
        world.check()
        gone_on(world)
    except Exception as problem:  # noqa: BLE001 - whatever keeps a reader from reading is the finding
        return [f"{type(problem).__name__}: {' '.join(str(problem).split())[:300]} after {world.said}"]
    finally:
        world.end()
    return []


def gone_on(world: World) -> None:
    """Have the next driver go on, and see that all is well then, too."""
    driver = world.take()
    pending = driver.pending()
    if pending:
        driver.abandon(pending.commit, why="cut")
    world.check()
    world._epoch(driver)
    world.seen.clear()
    world.check()


def cut_short(number: int, base: Path, without: frozenset[str], work: Work) -> tuple[list[str], set[str]]:
    """Do something small on such a disk, cut it at drawn steps, and say what is wrong with what is left."""
    disk = base / "disk"
    disk.mkdir(parents=True)
    told: list[Any] = []
    work.begin(disk)
    cuts = Cuts(disk, base / "left", number, work.every, without, lambda: list(told))
    with cuts.watching():
        for each in work.does(disk):
            told.append(each)
            cuts.cut()
    problems = []
    for left, known in cuts.left:
        try:
            work.judge(left, known)
        except Exception as problem:  # noqa: BLE001 - whatever keeps it from being right is the finding
            problems.append(f"{type(problem).__name__}: {' '.join(str(problem).split())[:300]}")
    return problems, cuts.points


@dataclass(frozen=True)
class Work:
    """Something that is done on a disk."""

    does: Callable[[Path], Iterable[Any]]
    """Given the disk; gives each thing that is told as done."""
    judge: Callable[[Path, list[Any]], None]
    """Raises where what is left is not right; given what was told."""
    begin: Callable[[Path], object] = lambda _: None
    """What lies there before."""
    every: int = 3
    """Of so many steps one is cut at."""


# --- a table's log, its checkpoints, and those of others


def logged(disk: Path, shorten: Callable[[Path], object] = checkpoint) -> Iterator[int]:
    """Append to a table, with checkpoints now and then, and clean its log behind each."""
    path = disk / "run" / "streams" / "s"
    create(path, SCHEMA)
    for commit in range(1, 9):
        log = TableLog(path)
        log.look()
        log.commit(TableChange(adds=[new_file(path, commit, commit)]), {SETTLED: commit})
        yield commit
        if commit % 2 == 0:
            shorten(path)
            clean_log(path, dt.timedelta(0))


def neighbours_checkpoint(path: Path) -> None:
    """Write one as others do."""
    DeltaTable(str(path)).create_checkpoint()


def judge_log(left: Path, told: list[int]) -> None:
    """See that others can open the table, that it has what was told, and that it can be gone on with."""
    path = left / "run" / "streams" / "s"
    if not told and not exists(path):
        return
    has_all(path, told)
    mend(path)
    has_all(path, told)
    log = TableLog(path)
    assert log.look()
    assert len(log.files) >= len(told)


def has_all(path: Path, told: list[int]) -> None:
    """See that anybody who opens a table finds what was told, or one commit more."""
    table = DeltaTable(str(path))
    assert len(table.file_uris()) >= len(told)
    assert table.transaction_version(SETTLED) in {told[-1] if told else None, len(told) + 1}


def judge_mended(left: Path, told: list[int]) -> None:
    """See the same behind the next start alone: a checkpoint of others may be torn until then."""
    path = left / "run" / "streams" / "s"
    mend(path)
    if told:
        has_all(path, told)


def make_run(disk: Path) -> None:
    """Have a run's folder there."""
    (disk / "run").mkdir()


LOG_WORK = Work(logged, judge_log, make_run)
NEIGHBOUR_WORK = Work(lambda disk: logged(disk, neighbours_checkpoint), judge_mended, make_run)


# --- what was judged


def judging(disk: Path) -> Iterator[tuple[int, bool]]:
    """Judge three commits, and one of them again."""
    root = disk / "run"
    for commit, held in ((1, True), (2, True), (3, True), (2, False)):
        write_quality(root, [quality(commit, held=held)])
        yield commit, held


def quality(commit: int, *, held: bool) -> Quality:
    """Give what came of an expectation."""
    return Quality(
        expectation="e",
        table="s",
        severity="warning",
        sentence="",
        remedy="",
        held=held,
        looked_at=1,
        unexpected=0,
        rows=(),
        start=0,
        end=1,
        commit=commit,
        at=0,
    )


def judge_quality(left: Path, told: list[tuple[int, bool]]) -> None:
    """See that what was told is found."""
    if told:
        found = {row.commit: row.held for row in read_quality(left / "run")}
        wanted = dict(told)
        may_differ = {2} if len(told) == 3 else set()
        assert {commit for commit, held in wanted.items() if found.get(commit) != held} <= may_differ


QUALITY_WORK = Work(judging, judge_quality, make_run)


# --- a home of the older format


def upgrading(disk: Path) -> Iterator[str]:
    """Upgrade it."""
    upgrade_here(disk)
    yield "upgraded"


def upgrade_here(disk: Path) -> None:
    """Type the command, in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PULSELINE_HOME", str(disk / "home"))
        # A cut is followed by another boot, in which the holder of the lease is no more.
        patch.setattr(lease, "is_held", lambda *_: False)
        upgrade_flow("parcels", "live", dry_run=False, echo=lambda _: None)


def judge_upgrade(left: Path, told: list[str]) -> None:
    """See that it is the older one or the new one, that the command ends, and what it has then."""
    root = left / "home" / "parcels" / "live"
    older = older_state(root)
    assert not (told and older), "it was told as upgraded"
    if older is not None:
        upgrade_here(left)
    flow = flow_from_json(json.loads(str(log_state(root).commits[3].plan))["flow"])
    found = {name: content.text for name, content in table_hashes(root, flow, BEGIN, BEGIN + 2 * HOUR).items()}
    assert found == HASHES, found
    for name in flow.tables():
        files = DeltaTable(str(stream_path(root, name))).file_uris()
        rows = ds.dataset(files, format="parquet").count_rows() if files else 0
        assert rows == int(HASHES[name].partition(":")[0]), name


UPGRADE_WORK = Work(upgrading, judge_upgrade, lambda disk: unpack(disk / "home" / "parcels" / "live"), every=60)


# --- the first start of a run


def starting(disk: Path) -> Iterator[int]:
    """Take the lease of a run that was never there."""
    with open_driver(disk / "home" / "flow" / "run", flow="flow") as driver:
        yield driver.token


def judge_start(left: Path, told: list[int]) -> None:
    """See that the lease that was told stands in `commits`."""
    if told:
        row = log_state(left / "home" / "flow" / "run").lease
        assert row is not None
        assert row.token == told[-1]


START_WORK = Work(starting, judge_start)
