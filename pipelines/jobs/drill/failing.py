"""`pulseline drill errno`: one call of the file system fails; what was told is there, and typed again, all is well.

Every loop that writes runs in a real process. One call below its home ends with an error, once: Python's, delta-rs's or
Arrow's, for all of them go through the C library. Right is that the command ends with one sentence or goes on, and that
the same command then comes to the end of a calm run.
"""

from __future__ import annotations

import ctypes
import errno
import os
import random
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from pipelines.jobs.drill.commanded import Commanded, as_command
from pipelines.jobs.drill.fed import ROWS
from pipelines.jobs.drill.judging import hashed, lost
from pipelines.jobs.drill.loops import FED, Here, folder_of, prepare
from pipelines.jobs.drill.preloaded import drill_preloaded, is_preloaded, library
from pipelines.jobs.drill.processes import end_of
from pipelines.jobs.drill.seeds import small_calm, to_their_ends
from pipelines.jobs.drill.telling import Drilled, Telling, Undone, drilling
from pipelines.jobs.drill.witness import Witness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from multiprocessing.connection import Connection
    from pathlib import Path

    from pipelines.engine.columnar.content import ContentHash
    from pipelines.engine.commits.entry import Entry

FIRED = "fault: "
"""How the library begins the line in which it says which call failed."""
EARLY = 0.5
"""Of the faults."""
STARTS = 2
"""Of one seed at most in which a call fails, behind the first."""


class FailingCall(IntEnum):
    """Calls of the file system that go wrong alike; numbered as in faults.c."""

    OPEN = 0
    """A file that is there, or a folder."""
    CREATE = 1
    READ = 2
    WRITE = 3
    """Also the size and the times of a file."""
    SYNC = 4
    NAME = 5
    """Rename and link."""
    REMOVE = 6
    FOLDER = 7
    """Make one."""
    LOOK = 8
    """What there is to know of a file: stat and its kin."""


class How(IntEnum):
    """What becomes of the call; numbered as in faults.c."""

    REFUSED = 0
    """It is not done."""
    UNHEARD = 1
    """It is done, and told as failed: an answer that was lost on the way, as a network file system may."""
    SHORT = 2
    """Half of it is written, and told so."""


ERRORS: Mapping[FailingCall, tuple[int, ...]] = {
    FailingCall.OPEN: (errno.EIO, errno.EACCES, errno.ESTALE),
    FailingCall.CREATE: (errno.EIO, errno.EACCES, errno.ESTALE, errno.ENOSPC),
    FailingCall.READ: (errno.EIO, errno.ESTALE),
    FailingCall.WRITE: (errno.EIO, errno.ESTALE, errno.ENOSPC),
    FailingCall.SYNC: (errno.EIO, errno.ESTALE, errno.ENOSPC),
    FailingCall.NAME: (errno.EIO, errno.EACCES, errno.ESTALE, errno.ENOSPC),
    FailingCall.REMOVE: (errno.EIO, errno.EACCES, errno.ESTALE),
    FailingCall.FOLDER: (errno.EIO, errno.EACCES, errno.ESTALE, errno.ENOSPC),
    FailingCall.LOOK: (errno.EIO, errno.EACCES, errno.ESTALE),
}
HOWS: Mapping[FailingCall, tuple[How, ...]] = {
    FailingCall.WRITE: (How.REFUSED, How.SHORT),
    FailingCall.NAME: (How.REFUSED, How.UNHEARD),
    FailingCall.REMOVE: (How.REFUSED, How.UNHEARD),
    FailingCall.FOLDER: (How.REFUSED, How.UNHEARD),
}
MOST: Mapping[FailingCall, int] = {
    FailingCall.OPEN: 60,
    FailingCall.CREATE: 30,
    FailingCall.READ: 200,
    FailingCall.WRITE: 60,
    FailingCall.SYNC: 40,
    FailingCall.NAME: 12,
    FailingCall.REMOVE: 8,
    FailingCall.FOLDER: 12,
    FailingCall.LOOK: 200,
}
"""Calls of a kind that are let through at most: about those of a commit."""


@dataclass(frozen=True)
class Fault:
    """One call that fails."""

    call: FailingCall
    skipped: int
    """Calls of its kind that pass before."""
    number: int
    """The errno."""
    how: How
    told: int
    """Commits that are told before the calls are counted."""

    def __str__(self) -> str:
        """Name it as it is counted."""
        named = "short" if self.how is How.SHORT else errno.errorcode[self.number]
        return f"{self.call.name.lower()} {named}{', done' if self.how is How.UNHEARD else ''}"

    def arm(self, home: Path) -> None:
        """Have it come in this process, which has the library, below a folder."""
        skipped = ctypes.c_long(self.skipped)
        library().fault_arm(os.fsencode(home), int(self.call), skipped, self.number, int(self.how))


def fault(drawn: random.Random, call: FailingCall, told: int) -> Fault:
    """Draw a fault of a kind, behind so many told commits; half of them early, where the few steps are that matter."""
    skipped = int(MOST[call] ** drawn.random()) - 1 if drawn.random() < EARLY else drawn.randrange(MOST[call])
    return Fault(call, skipped, drawn.choice(ERRORS[call]), drawn.choice(HOWS.get(call, (How.REFUSED,))), told)


class Armed(Witness):
    """Tells commits as they are published, and has a call fail after some of them."""

    def __init__(self, home: Path, pipe: Connection, fault: Fault | None) -> None:
        """Take the folder below which the call fails; None for a calm process."""
        super().__init__(home, pipe, None)
        self._home, self._fault, self._count = home, fault, 0
        self._arm()

    def tell(self, entry: Entry) -> None:
        """Tell a commit."""
        super().tell(entry)
        self._count += 1
        self._arm()

    def _arm(self) -> None:
        if self._fault is not None and self._fault.told == self._count:
            self._fault.arm(self._home)


@dataclass
class FailingSeed(Commanded):
    """A run of which one call fails, as one seed draws it."""

    work: Callable[..., None] | None = None
    """What the process does; `working` unless given."""
    only: tuple[FailingCall, ...] = tuple(FailingCall)

    def __post_init__(self) -> None:
        """Draw the faults, one a start; loops and kinds of calls take turns, so that few seeds see all."""
        super().__post_init__()
        drawn = random.Random(self.number)  # noqa: S311 - to be drawn again
        self.kind = list(FED)[self.number % len(FED)]
        commits = FED[self.kind].commits
        self.faults = [fault(drawn, self.only[self.number % len(self.only)], drawn.randrange(commits))]
        # What a start reads of the start before is read before anything is told.
        self.faults += [fault(drawn, drawn.choice(self.only), 0) for _ in range(drawn.randint(1, STARTS))]

    @property
    def here(self) -> Here:
        """Give where the loop runs."""
        return Here(folder_of(self.base, FED[self.kind]) / "flow.yaml", self.base / f"seed-{self.number}")

    def run(self, wanted: Mapping[str, ContentHash]) -> None:
        """Let calls fail, type the same command again each time, and hold the end against a calm run's.

        Raises:
            Undone: a process hung, or the last one ended with an error.
        """
        for each in self.faults:
            self._judge(each, self._run(each))
            self.done.differences += self.asked(lost, self.here, self.told)
            if self.done.differences:
                return
        code = self._run(None)
        if code:
            raise Undone(f"{self.kind}, typed again, ended with {code}: {end_of(self.log)}")
        found = self.asked(hashed, self.here)
        self.done.differences += [name for name in wanted if found.get(name) != wanted[name].text]
        self.done.differences += self.asked(lost, self.here, self.told)

    def _run(self, fault: Fault | None) -> int:
        return self.typed(self.kind, self.work or working, self.kind, self.here, fault)

    def _judge(self, of: Fault, code: int) -> None:
        """See how a process ended of which a call failed: well, or with one sentence."""
        said = self.log.read_text(errors="replace").splitlines()
        fired = [line for line in said if line.startswith(FIRED)]
        if len(fired) > self.done.faults.total():
            self.done.faults[str(of)] += 1
        self.done.told = " ".join([f"{self.kind}, {'; '.join(map(str, self.faults))};", *fired, end_of(self.log)])
        self.judge_end(code)


def working(pipe: Connection, kind: str, here: Here, fault: Fault | None) -> None:
    """Do the work of a loop, in a process that was forked for it, and end as a command does."""
    as_command(lambda: FED[kind].loop(here, Armed(here.home, pipe, fault)), here)


def drill_errno(
    seeds: Sequence[int],
    base: Path | None,
    at_once: int,
    as_json: bool,  # noqa: FBT001 - the command's flag
    echo: Callable[[str], None],
) -> int:
    """Have one call of the file system fail under every kind of loop, and hold what is left against what was told.

    Args:
        seeds: which.
        base: where feeds, logs and runs are kept; nowhere unless given.
        at_once: how many run at the same time.
        as_json: one object a line instead of words.
        echo: where lines go.

    Returns:
        0, also where no call can be made to fail, which is said; 1 where something was lost, hung or ended wildly.
    """
    telling = Telling("errno", as_json, echo)
    if not is_preloaded():
        return drill_preloaded(telling, seeds, base, at_once)
    telling.begin(f"{len(seeds)} seeds: {ROWS:,} rows, {len(FED)} loops, one call of the file system fails in each")
    with drilling(base) as folder:
        return telling.through(failed([FailingSeed(number, folder) for number in seeds], at_once))


def failed(seeds: Sequence[FailingSeed], at_once: int) -> Iterator[Drilled]:
    """Run seeds of one folder to their ends, after the calm run that they are held against.

    Args:
        seeds: in one folder.
        at_once: how many run at the same time.
    """
    base = seeds[0].base
    prepare(base, FED.values())
    yield from to_their_ends(seeds, at_once, small_calm(base))
