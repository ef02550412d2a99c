"""`pulseline drill power`: the power of a disk is cut, and what was told as published must be there."""

from __future__ import annotations

import random
import signal
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pipelines.jobs.drill.disk import Disk, DiskKind, why_no_cuts
from pipelines.jobs.drill.fed import ROWS
from pipelines.jobs.drill.judging import hashed, instants, lost
from pipelines.jobs.drill.loops import KINDS, OLDER_FLOW, Here, folder_of, prepare, upgraded
from pipelines.jobs.drill.older_home import unpack
from pipelines.jobs.drill.processes import answer, end_of, killed, started
from pipelines.jobs.drill.seeds import small_calm, to_their_ends
from pipelines.jobs.drill.strict import DiskLoss, Remembering, Strict
from pipelines.jobs.drill.telling import Drilled, Telling, Undone, drilling
from pipelines.jobs.drill.witness import CutAt, Witness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from multiprocessing.connection import Connection
    from pathlib import Path

    from pipelines.engine.columnar.content import ContentHash

PATIENCE = 60.0
"""Seconds that a process may take."""
CUTS = 3
"""Of one seed at most."""
OUTSIDE, AT_ONCE = 0.3, 0.6
"""Of the cuts, those that come at any instant; those up to the other figure come as soon as a commit was told."""
STEPS = (4, 16, 64)
"""Up to so many a process may go after a told commit before it is cut: a few mostly, for housekeeping takes many."""
MOMENT = 0.3
"""Seconds within which a cut from outside comes after a told commit: about what a commit takes."""
SELDOM, OFTEN = 300, 1
"""Seconds between two commits of ext4's journal: only what is synced stays; or names stay without their bytes."""


@dataclass
class PowerSeed:
    """A run whose power is cut, as one seed draws it."""

    number: int
    base: Path
    without: frozenset[str] = frozenset()
    """Points whose syncs are left out: a planted bug."""
    only: tuple[str, ...] = tuple(KINDS)
    """Kinds of loops."""
    mounted: str = ""
    """More options of the mount."""
    on: DiskKind = DiskKind.EXT4
    done: Drilled = field(init=False)
    told: dict[int, str] = field(default_factory=dict)
    """What each commit was when it was told as published."""

    def __post_init__(self) -> None:
        """Draw what its kind of loop and its disk are; loops take turns, so that few seeds see all."""
        self.done, self.drawn = Drilled(self.number), random.Random(self.number)  # noqa: S311 - to be drawn again
        self.kind = self.only[self.number % len(self.only)]
        self.disk = self._disk(self.base / f"seed-{self.number}")

    def _disk(self, folder: Path) -> Disk | Strict:
        if self.on is DiskKind.STRICT:
            return Strict(folder, self.number, self.drawn.choice(tuple(DiskLoss)))
        return Disk(folder, self.drawn.choice((SELDOM, OFTEN)), self.mounted)

    @property
    def here(self) -> Here:
        """Give where the loop runs."""
        kind = KINDS[self.kind]
        return Here(folder_of(self.base, kind) / "flow.yaml", self.disk.place / "home", span=kind.span)

    def run(self, wanted: Mapping[str, ContentHash]) -> None:
        """Cut the power a few times, with the same command after each, and hold the end against a calm run's.

        Raises:
            Undone: a process ended with an error, or not in time.
        """
        self.disk.make()
        if KINDS[self.kind].every == OLDER_FLOW:
            unpack(self.here.root)
            wanted = answer(self._log, PATIENCE, upgraded, replace(self.here, home=self.base / f"calm-{self.number}"))
        for _ in range(self.drawn.randint(1, CUTS)):
            over = self._cut()
            self.disk.recover()
            self.done.differences += self._asked(lost, self.told)
            if self.done.differences or over:
                break
        if not self.done.differences:
            self._run(None)
            found = self._asked(hashed)
            self.done.differences += [name for name in wanted if found.get(name) != wanted[name].text]
            self.done.differences += self._asked(lost, self.told) + self._asked(instants)[:3]

    def _cut(self) -> bool:
        """Let the loop run until its power is cut; say whether it had come to its end before."""
        self.done.faults[self.kind] += 1
        told = self.drawn.randrange(max(1, KINDS[self.kind].commits - len(self.told)))
        how = self.drawn.random()
        if how < OUTSIDE and self.on is DiskKind.EXT4:
            return self._run(None, (told, self.drawn.uniform(0, MOMENT)))
        return self._run(CutAt(told, 0 if how < AT_ONCE else self.drawn.randrange(self.drawn.choice(STEPS))))

    def _run(self, at: CutAt | None, after: tuple[int, float] | None = None) -> bool:
        """Run the command to its end, or to the cut.

        Args:
            at: where the process cuts its own power.
            after: how many commits it tells before its power is cut from outside, and seconds from there.

        Returns:
            Whether it came to its end; the power is cut then too, where it was to be.
        """
        child, mine = started(self._log, working, self.kind, self.here, self.disk, at, self.without)
        told, until, instant = 0, time.monotonic() + PATIENCE, None
        while child.exitcode is None and time.monotonic() < until:
            told += self._heard(mine, 0.005)
            if after and told >= after[0]:
                instant = instant or time.monotonic() + after[1]
                if time.monotonic() >= instant:
                    break
        hung = child.exitcode is None and time.monotonic() >= until
        ended = child.exitcode is not None
        if at or after:
            self.disk.cut()
        code = child.exitcode if ended else killed(child)
        self._heard(mine, 0.0)
        if hung:
            raise Undone(f"{self.kind} is not done after {PATIENCE:.0f} s: {end_of(self._log)}")
        if ended and code not in {0, -signal.SIGKILL}:
            # One that lived when its power was cut from outside may end as it likes.
            raise Undone(f"{self.kind} ended with {code}: {end_of(self._log)}")
        return ended and code == 0

    def _heard(self, pipe: Connection, seconds: float) -> int:
        """Take in what was told; say how much."""
        count = 0
        try:
            while pipe.poll(0.0 if count else seconds):
                number, content = pipe.recv()
                if self.told.setdefault(number, content) != content:
                    self.done.differences.append(f"commit {number} was published twice, with other content")
                count += 1
        except EOFError:
            time.sleep(seconds)
        return count

    def _asked(self, question: Callable[..., Any], *facts: Any) -> Any:  # noqa: ANN401 - what the question gives
        try:
            return answer(self._log, PATIENCE, question, self.here, *facts)
        except (EOFError, TimeoutError) as problem:
            raise Undone(str(problem)) from problem

    def end(self) -> None:
        """Leave nothing mounted."""
        self.disk.remove()

    @property
    def _log(self) -> Path:
        return self.base / f"seed-{self.number}.log"


def working(  # noqa: PLR0913 - a process, and what is done to it
    pipe: Connection, kind: str, here: Here, disk: Disk | Strict, at: CutAt | None, without: frozenset[str]
) -> None:
    """Do the work of a loop, in a process that was forked for it."""
    witness = Remembering(disk, pipe, at) if isinstance(disk, Strict) else Witness(disk.place, pipe, at)
    witness.watch(without)
    KINDS[kind].loop(here, witness)
    witness.end()


def drill_power(  # noqa: PLR0913 - the command's options
    seeds: Sequence[int],
    base: Path | None,
    at_once: int,
    as_json: bool,  # noqa: FBT001 - the command's flag
    echo: Callable[[str], None],
    on: DiskKind = DiskKind.EXT4,
) -> int:
    """Cut the power under every kind of loop, and hold what is left against what was told, and the end to a calm run's.

    Args:
        seeds: which.
        base: where feeds, logs and images are kept; nowhere unless given.
        at_once: how many run at the same time.
        as_json: one object a line instead of words.
        echo: where lines go.
        on: which kind of disk.

    Returns:
        0, also where no power can be cut, which is said; 1 where something was lost or did not end.
    """
    why = why_no_cuts() if on is DiskKind.EXT4 else ""
    if why:
        echo(
            f"drill power: skipped, for it needs root, Linux, ext4 and a loop device: {why}; `--disk strict` needs none"
        )
        return 0
    telling = Telling("power", as_json, echo)
    telling.begin(f"{len(seeds)} seeds: {ROWS:,} rows, {len(KINDS)} loops, the power cut up to {CUTS} times in each")
    with drilling(base) as folder:
        return telling.through(cut_down([PowerSeed(number, folder, on=on) for number in seeds], at_once))


def cut_down(seeds: Sequence[PowerSeed], at_once: int) -> Iterator[Drilled]:
    """Run seeds of one folder to their ends, after the calm run that they are held against.

    Args:
        seeds: in one folder.
        at_once: how many run at the same time.
    """
    base = seeds[0].base
    prepare(base, KINDS.values())
    yield from to_their_ends(seeds, at_once, small_calm(base))
