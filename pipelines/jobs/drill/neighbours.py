"""`pulseline drill neighbours`: others at the same tables, who optimize, vacuum, clone, look, overtake and wake up.

Readers look all the time, and each look must be a whole settled state. Whatever the neighbours do, the run comes to the
end of a calm one.
"""

from __future__ import annotations

import random
import signal
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import psutil

from pipelines.engine.commits.errors import LeaseHeldError
from pipelines.engine.commits.lease import Claim, Holder
from pipelines.engine.commits.paths import MOST, FileMissingError, ForeignWriteError, data_tables, table_name
from pipelines.engine.commits.readers import log_state
from pipelines.jobs.drill.acts import (
    ACTS,
    SPARK_ACTS,
    TAKES_FILES,
    WRITES,
    Spark,
    asked_second,
    done,
    repaired,
    version_of,
)
from pipelines.jobs.drill.fed import ROWS, SMALL, feed
from pipelines.jobs.drill.judging import hashed, instants, lost
from pipelines.jobs.drill.looking import READERS, TableLook, looking, looks_now, wrong
from pipelines.jobs.drill.loops import KINDS, Here
from pipelines.jobs.drill.processes import answer, end_of, killed, signalled, started
from pipelines.jobs.drill.seeds import small_calm, to_their_ends
from pipelines.jobs.drill.telling import Drilled, Telling, Undone, drilling
from pipelines.jobs.drill.witness import CutAt, Sleeper

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess
    from pathlib import Path

    from pipelines.engine.columnar.content import ContentHash

LOOPS = ("stream", "rerun and sweep", "reset", "backfill")
PATIENCE = 240.0
"""Seconds that a seed may take."""
ANSWERS = 60.0
"""Seconds that a question or an act may take."""
OVERTAKES = 20.0
"""Seconds that one who overtakes may take: one who was stopped with the run's lock in hand is woken first."""
PAUSE = 0.1
"""Seconds between two readings, in which others get a turn."""
QUIET = (0.05, 0.5)
"""Seconds between two acts of the neighbours."""
STEPS = 40
"""That a process may go after a told commit before it is stopped."""
EARLY = 3
"""Among so many seeds, one in which a user writes as soon as something is told."""
SPARK_TURNS = 4
"""Acts of Spark in one seed at most: each takes longer than a commit."""
STARTS = 5
"""Times that a command is typed again: a neighbour may take away files that no log names yet, which it says by name."""


@dataclass
class NeighboursSeed:
    """A run among neighbours, as one seed draws it."""

    number: int
    base: Path
    spark: Spark | None = None
    work: Callable[..., None] | None = None
    """What the processes do; `working` unless given."""
    done: Drilled = field(init=False)
    told: dict[int, str] = field(default_factory=dict)
    """What each commit was when it was told as published."""
    looks: list[TableLook] = field(default_factory=list)
    children: list[BaseProcess] = field(default_factory=list)
    pipes: list[Connection] = field(default_factory=list)
    asleep: BaseProcess | None = None
    written: Path | None = None
    """The table that a user wrote to."""
    spoiled: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By table: the versions between which it held what a user wrote."""
    starts: int = 0
    asked: int = 0
    """Times that Spark was asked for something."""

    def __post_init__(self) -> None:
        """Draw the step at which the first process is stopped; loops take turns, so that few seeds see all."""
        self.done, self.drawn = Drilled(self.number), random.Random(self.number)  # noqa: S311 - to be drawn again
        self.kind = LOOPS[self.number % len(LOOPS)]
        file = self.base / KINDS[self.kind].every / "flow.yaml"
        self.here = Here(file, self.base / f"seed-{self.number}", pause=PAUSE)
        self.stop = CutAt(self.drawn.randrange(KINDS[self.kind].commits - 1), self.drawn.randrange(1, STEPS))

    def run(self, wanted: Mapping[str, ContentHash]) -> None:
        """Let the command run among its neighbours to its end, and hold that, and every look, against what is right.

        Raises:
            Undone: a process ended with an error, or not in time.
        """
        self.here.home.mkdir(parents=True)
        until = time.monotonic() + PATIENCE
        self._start(looking, self.here.root)
        child = self._start(self.work or working, self.kind, self.here, self.stop)
        quiet = time.monotonic()
        while (code := child.exitcode) != 0:
            self._hear()
            if time.monotonic() > until:
                raise Undone(f"{self.kind} is not done after {PATIENCE:.0f} s: {end_of(self._newest_log)}")
            if code is not None:
                child = self._again(code)
            elif self.asleep is None and _sleeps(child):
                child = self._overtake(child)
            elif time.monotonic() > quiet and data_tables(self.here.root):
                self._disturb()
                quiet = time.monotonic() + self.drawn.uniform(*QUIET)
        self._judge(wanted)

    def _judge(self, wanted: Mapping[str, ContentHash]) -> None:
        self._woken()
        self._hear()
        self._repair()
        found = answer(self._log, ANSWERS, hashed, self.here)
        self.done.differences += [name for name in wanted if found.get(name) != wanted[name].text]
        self.done.differences += answer(self._log, ANSWERS, lost, self.here, self.told)
        last = answer(self._log, ANSWERS, looks_now, self.here.root)
        self.done.differences += answer(self._log, ANSWERS, judged, self.here.root, [*self._seen(), *last])[:3]
        if not TAKES_FILES.intersection(self.done.faults):
            self.done.differences += answer(self._log, ANSWERS, instants, self.here)[:3]

    def _seen(self) -> list[TableLook]:
        """Give the looks at what nobody else wrote."""
        spoiled = {name: range(first + 1, last) for name, (first, last) in self.spoiled.items()}
        return [each for each in self.looks if each.version not in spoiled.get(each.table, ())]

    def _start(self, work: Callable[..., None], *facts: object) -> BaseProcess:
        child, pipe = started(self._log_of(len(self.children)), work, *facts)
        self.children.append(child)
        self.pipes.append(pipe)
        return child

    def _again(self, code: int) -> BaseProcess:
        """Type the same command again, where a neighbour took a file away that no log named yet, or wrote rows."""
        self.starts += 1
        said = end_of(self._newest_log)
        missing = FileMissingError.__name__ in said and TAKES_FILES.intersection(self.done.faults)
        foreign = ForeignWriteError.__name__ in said and self.written
        # One who was stopped before it had the lease, and woken, may be faster than who came to overtake.
        faster = LeaseHeldError.__name__ in said and self.asleep is not None
        if foreign:
            self.done.faults["refused by name"] += 1
            self._repair()
        if self.starts > STARTS or not (missing or foreign or faster):
            raise Undone(f"{self.kind} ended with {code}: {said}")
        self.done.faults["typed again"] += 1
        here = replace(self.here, claim=Claim.TAKE_OVER) if faster else self.here
        return self._start(self.work or working, self.kind, here, None)

    def _repair(self) -> None:
        """Have put right what a user wrote; looks at versions between are no finding."""
        if self.written is None:
            return
        name = table_name(self.here.root, self.written)
        code, said = answer(self._log, ANSWERS, repaired, self.here.file, self.here.home)
        self.spoiled[name] = self.spoiled[name][0], answer(self._log, ANSWERS, version_of, self.written)
        self.written = None
        if code:
            self.done.differences.append(f"doctor did not repair {name}: {said[-300:]}")

    def _overtake(self, sleeper: BaseProcess) -> BaseProcess:
        """Let another process take over from one that is stopped, and wake it somewhere on the way."""
        self._hear()
        self.asleep = sleeper
        self.done.faults["stopped, overtaken and woken"] += 1
        self.here = replace(self.here, claim=Claim.TAKE_OVER)
        child = self._start(self.work or working, self.kind, self.here, None)
        count, wakes = len(self.told), self.drawn.randrange(3)
        until = time.monotonic() + OVERTAKES
        while child.exitcode is None and time.monotonic() < until:
            self._hear()
            if len(self.told) >= count + wakes and self._holder() == child.pid:
                break
            time.sleep(0.01)
        signalled(sleeper, signal.SIGCONT)
        self.here = replace(self.here, claim=Claim.ASK)
        return child

    def _holder(self) -> int:
        lease = log_state(self.here.root).lease
        return Holder.read(lease.detail).pid if lease else 0

    def _woken(self) -> None:
        """See that who was woken has given up by itself."""
        if self.asleep is not None:
            self.asleep.join(ANSWERS)
            if self.asleep.exitcode is None:
                self.done.differences.append("who was overtaken and woken does not end")

    def _disturb(self) -> None:
        """Do one thing to one table, or ask for the lease."""
        with_spark = self.spark is not None and not self.spark.missing and self.asked < SPARK_TURNS
        writes = tuple(WRITES) if self.told and not self.spoiled else ()
        others = (*ACTS, *(SPARK_ACTS if with_spark else ()), "second driver")
        # Late in a run no commit is left that could refuse a write.
        early = writes and self.number % EARLY == 0
        kind = self.drawn.choice(writes if early else (*writes, *others))
        table = self.drawn.choice(data_tables(self.here.root))
        if kind == "second driver":
            self._ask_second()
        elif kind in WRITES:
            self._write(kind, table)
        elif kind in ACTS:
            self._count(kind, answer(self._log, ANSWERS, done, kind, table))
        elif self.spark:
            self.asked += 1
            self._count(kind, self.spark.act(kind, table, self.here.home / f"clone-{self.asked}"))

    def _write(self, kind: str, table: Path) -> None:
        """Have a user write to a table, once."""
        before = answer(self._log, ANSWERS, version_of, table)
        refused = answer(self._log, ANSWERS, done, kind, table)
        self._count(kind, refused)
        if not refused:
            self.written, self.spoiled = table, {table_name(self.here.root, table): (before, MOST)}

    def _count(self, kind: str, refused: str) -> None:
        self.done.faults[kind if not refused else f"{kind}, refused"] += 1

    def _ask_second(self) -> None:
        """Ask for the lease while somebody surely holds it."""
        if self.asleep is None and self._holder() == self.children[-1].pid:
            self.done.faults["second driver"] += 1
            said = answer(self._log, ANSWERS, asked_second, self.here.root, "drilled")
            child = self.children[-1]
            if said and not _sleeps(child):
                # One that is done has let go of its lease a moment before its process ends; who sleeps renews none.
                child.join(ANSWERS)
                self.done.differences += [] if child.exitcode == 0 else [said]

    def _hear(self) -> None:
        """Take in looks and what is told."""
        for pipe in self.pipes:
            try:
                while pipe.poll(0.002):
                    self._take(pipe.recv())
            except EOFError:
                continue

    def _take(self, said: TableLook | tuple[int, str]) -> None:
        if isinstance(said, TableLook):
            self.looks.append(said)
        elif self.told.setdefault(*said) != said[1]:
            self.done.differences.append(f"commit {said[0]} was published twice, with other content")

    @property
    def _log(self) -> Path:
        return self.base / f"seed-{self.number}.log"

    @property
    def _newest_log(self) -> Path:
        return self._log_of(len(self.children) - 1)

    def _log_of(self, place: int) -> Path:
        """Name what a process prints to: who is woken late says so in words of its own, behind another's."""
        return self.base / f"seed-{self.number}-{place}.log"

    def end(self) -> None:
        """Leave no process behind."""
        for child in self.children:
            killed(child)


def _sleeps(child: BaseProcess) -> bool:
    try:
        return psutil.Process(child.pid).status() == psutil.STATUS_STOPPED
    except psutil.NoSuchProcess:
        return False


def working(pipe: Connection, kind: str, here: Here, at: CutAt | None) -> None:
    """Do the work of a loop, in a process that was forked for it, which stops itself at a step."""
    witness = Sleeper(here.home, pipe, at)
    witness.watch()
    KINDS[kind].loop(here, witness)


def judged(root: Path, looks: list[TableLook]) -> list[str]:
    """Say what is wrong with looks at a run's tables."""
    return list(wrong(looks, log_state(root)))


def drill_neighbours(
    seeds: Sequence[int],
    base: Path | None,
    at_once: int,
    as_json: bool,  # noqa: FBT001 - the command's flag
    echo: Callable[[str], None],
) -> int:
    """Run small flows among neighbours, and hold every look and the end against what is right.

    Args:
        seeds: which.
        base: where runs are kept; nowhere unless given.
        at_once: how many run at the same time.
        as_json: one object a line instead of words.
        echo: where lines go.

    Returns:
        0, or 1 where a look was no whole settled state, or a seed differs or did not end.
    """
    telling = Telling("neighbours", as_json, echo)
    with drilling(base) as folder:
        folder.mkdir(parents=True, exist_ok=True)
        spark = Spark(folder)
        try:
            without = f"; Spark is left out: {spark.missing}" if spark.missing else ""
            telling.begin(f"{len(seeds)} seeds: {ROWS:,} rows, readers: {', '.join(READERS)}{without}")
            return telling.through(among([NeighboursSeed(number, folder, spark) for number in seeds], at_once))
        finally:
            spark.close()


def among(seeds: Sequence[NeighboursSeed], at_once: int) -> Iterator[Drilled]:
    """Run seeds of one folder to their ends, after the calm run that they are held against.

    Args:
        seeds: in one folder.
        at_once: how many run at the same time.
    """
    base = seeds[0].base
    for kind in LOOPS:
        feed(base / KINDS[kind].every, SMALL, KINDS[kind].every, KINDS[kind].buffers)
    yield from to_their_ends(seeds, at_once, small_calm(base))
