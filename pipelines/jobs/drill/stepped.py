"""`pulseline drill clock`: wall clocks that step and leap, drivers that sleep, and others that ask for their lease.

A recorded feed knows no wall clock, so whatever it does the end is that of a calm run. Under the real clock each row
lands once, arrivals never decrease, none lies before its row was sent nor under a time that was not to be believed, and
a clock that leaps ends the stream with one sentence.
"""

from __future__ import annotations

import ctypes
import random
import signal
import time
from dataclasses import dataclass, field
from threading import Thread
from typing import TYPE_CHECKING

from pipelines.engine.columnar.clock import NANOS_PER_TICK
from pipelines.engine.commits.lease import read_renewal
from pipelines.engine.commits.readers import log_state
from pipelines.errors import Exit
from pipelines.jobs.drill.acts import asked_second
from pipelines.jobs.drill.commanded import Commanded, as_command
from pipelines.jobs.drill.fed import ROWS
from pipelines.jobs.drill.inbox import FILES, INBOX, FilledInbox, listen, unlike
from pipelines.jobs.drill.judging import hashed, lost
from pipelines.jobs.drill.loops import FED, Here, folder_of, prepare
from pipelines.jobs.drill.preloaded import drill_preloaded, is_preloaded, library
from pipelines.jobs.drill.processes import end_of, signalled
from pipelines.jobs.drill.seeds import small_calm, to_their_ends
from pipelines.jobs.drill.telling import Drilled, Telling, Undone, drilling
from pipelines.jobs.drill.witness import Witness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess
    from pathlib import Path

    from pipelines.engine.columnar.content import ContentHash

SECOND = 1_000_000_000
"""Nanoseconds."""
HOUR, YEAR = 3_600 * SECOND, 365 * 86_400 * SECOND
SMALL_STEPS = (SECOND // 20, 3 * SECOND)
"""Steps that nobody notices; one back holds the readings up until the clock is past the last one."""
LEAPS = (2 * HOUR, 30 * YEAR)
STEPS, NAPS = 3, 2
"""Of one process at most."""
LOOKS = 100
"""At the clock, within which its steps come."""
SLEEPS = (0.1, 0.8)
"""Seconds that a driver is stopped for at least; longer where somebody asks for its lease meanwhile."""
WAKES = (0.2, 3.0)
"""Seconds from a start, or from waking, to the next nap."""
EARLY = 3
"""Among so many seeds, one whose process is stopped as soon as it has the lease: others may be done before they are."""
STARTS = 8
"""Times that a live command is typed again: a clock that leaps ends it, and somebody sets the clock right."""
LEAPT = "the clock must move with"
"""How the sentence begins that a stream ends with whose clock leaps."""


@dataclass(frozen=True)
class SteppedClock:
    """The wall clock of one process: how far it stands beside the machine's, in nanoseconds."""

    start: int = 0
    steps: tuple[tuple[int, int], ...] = ()
    """After how many looks at it, and where it stands from then on."""

    def set(self) -> None:
        """Have this process, which has the library, go by it."""
        for looked, shift in ((0, self.start), *self.steps):
            library().clock_step(ctypes.c_long(looked), ctypes.c_longlong(shift))

    @property
    def believed(self) -> list[int]:
        """Give where it may stand when something lands, in nanoseconds."""
        return [each for each in (self.start, *(to for _, to in self.steps)) if abs(each - self.start) < HOUR]


def small(drawn: random.Random) -> int:
    """Draw a step that is believed."""
    return drawn.choice((-1, 1)) * drawn.randrange(*SMALL_STEPS)


def leap(drawn: random.Random) -> int:
    """Draw a step of hours, days or years."""
    least, most = LEAPS
    return drawn.choice((-1, 1)) * int(least * (most / least) ** drawn.random())


def clock(drawn: random.Random, starts: Sequence[int]) -> SteppedClock:
    """Draw the clock of a process that starts with one of some."""
    start = drawn.choice(starts)
    looks = sorted(drawn.sample(range(1, LOOKS), drawn.randint(1, STEPS)))
    return SteppedClock(start, tuple((looked, start + drawn.choice((small, leap))(drawn)) for looked in looks))


@dataclass
class SteppedSeed(Commanded):
    """A run whose clock is another one, as one seed draws it; every other one is live."""

    work: Callable[..., None] | None = None
    """What the process does; `working` or `listening` unless given."""
    ask: Callable[[Path, str], str] = asked_second
    """How somebody asks for the lease while a driver sleeps."""
    awake: float = field(default=0.0)
    """Monotonic time at which the process may be stopped, in seconds."""
    naps: int = 0
    is_soon: bool = False
    """Whether the next nap comes with the lease."""

    def __post_init__(self) -> None:
        """Draw nothing but the loop yet."""
        super().__post_init__()
        self.drawn = random.Random(self.number)  # noqa: S311 - to be drawn again
        self.live = self.number % 2 == 1
        self.kind = "inbox" if self.live else list(FED)[self.number // 2 % len(FED)]

    @property
    def here(self) -> Here:
        """Give where it runs."""
        if self.live:
            return Here(self.base / f"live-{self.number}" / "flow.yaml", self.base / f"seed-{self.number}")
        return Here(folder_of(self.base, FED[self.kind]) / "flow.yaml", self.base / f"seed-{self.number}")

    def run(self, wanted: Mapping[str, ContentHash]) -> None:
        """Run it under its clock, and hold the end against what is right.

        Raises:
            Undone: a process hung, or ended with what it should not.
        """
        self.done.told = self.kind
        if self.live:
            self._run_live()
        else:
            self._run_recorded(wanted)
        self.done.differences += self.asked(lost, self.here, self.told)

    def _run_recorded(self, wanted: Mapping[str, ContentHash]) -> None:
        """Run a loop over a recorded feed, then type it again under the right clock."""
        for each in (clock(self.drawn, (0, small(self.drawn), leap(self.drawn))), SteppedClock()):
            code = self._start(each)
            if code:
                raise Undone(f"{self.kind} ended with {code}: {end_of(self.log)}")
            found = self.asked(hashed, self.here)
            self.done.differences += [name for name in wanted if found.get(name) != wanted[name].text]

    def _run_live(self) -> None:
        """Listen to a folder until all is published, setting the clock right when it was refused."""
        inbox = FilledInbox(self.here.file.parent, self.drawn.random())
        sender = Thread(target=inbox.send)
        sender.start()
        back = -abs(leap(self.drawn))
        believed: list[int] = []
        clocks = [clock(self.drawn, (0, small(self.drawn), back)), clock(self.drawn, (0, small(self.drawn), back))]
        for each in (*clocks, *[SteppedClock()] * STARTS):
            code = self._start(each)
            believed += each.believed
            if not code:
                break
            self._judge_leap(code)
        else:
            raise Undone(f"it did not end in {STARTS} starts: {end_of(self.log)}")
        sender.join()
        bounds = (min(believed) // NANOS_PER_TICK, max(believed) // NANOS_PER_TICK)
        self.done.differences += self.asked(unlike, self.here, inbox.sent, bounds)

    def _judge_leap(self, code: int) -> None:
        """See that a live process ended because its clock had leapt, and said so.

        Raises:
            Undone: it ended for another reason.
        """
        self.judge_end(code)
        if code != Exit.RUN_FAILED or LEAPT not in end_of(self.log):
            raise Undone(f"{self.kind} ended with {code}: {end_of(self.log)}")
        self.done.faults["refused by name"] += 1

    def _start(self, of: SteppedClock) -> int:
        self.naps, self.awake = self.drawn.randint(0, NAPS), time.monotonic() + self.drawn.uniform(*WAKES)
        self.is_soon = self.number % EARLY == 0
        self.naps = max(self.naps, int(self.is_soon))
        self._count(of)
        return self.typed(self.kind, self.work or (listening if self.live else working), self.kind, self.here, of)

    def _count(self, of: SteppedClock) -> None:
        for at, before in ((of.start, 0), *((to, of.start) for _, to in of.steps)):
            if at != before:
                self.done.faults["step" if abs(at - before) < HOUR else "leap"] += 1

    def between(self, child: BaseProcess) -> None:
        """Stop a process for a while; somebody with a clock of his own asks for its lease meanwhile."""
        if not self.naps or child.exitcode is not None:
            return
        if time.monotonic() < self.awake and not (self.is_soon and self._is_held()):
            return
        self.is_soon = False
        signalled(child, signal.SIGSTOP)
        try:
            self._sleep()
        finally:
            signalled(child, signal.SIGCONT)
        self.naps, self.awake = self.naps - 1, time.monotonic() + self.drawn.uniform(*WAKES)

    def _is_held(self) -> bool:
        renewal = read_renewal(self.here.root)
        return renewal is not None and renewal.state == "held" and renewal.token == log_state(self.here.root).token

    def _sleep(self) -> None:
        self.done.faults["nap"] += 1
        time.sleep(self.drawn.uniform(*SLEEPS))
        if not self._is_held():
            return
        self.done.faults["second driver"] += 1
        said = self.asked(asking, self.ask, self.here.root, clock(self.drawn, (0, leap(self.drawn))))
        if said:
            self.done.differences.append(said)


def asking(ask: Callable[[Path, str], str], root: Path, of: SteppedClock) -> str:
    """Ask for the lease of a run under a clock; give nothing where that is refused."""
    of.set()
    return ask(root, "drilled")


def working(pipe: Connection, kind: str, here: Here, of: SteppedClock) -> None:
    """Do the work of a loop under a clock, in a process that was forked for it."""
    of.set()
    as_command(lambda: FED[kind].loop(here, Witness(here.home, pipe, None)), here)


def listening(pipe: Connection, _: str, here: Here, of: SteppedClock) -> None:
    """Listen to a folder under a clock until all is published, in a process that was forked for it."""
    of.set()
    as_command(lambda: listen(here, Witness(here.home, pipe, None)), here)


def drill_clock(
    seeds: Sequence[int],
    base: Path | None,
    at_once: int,
    as_json: bool,  # noqa: FBT001 - the command's flag
    echo: Callable[[str], None],
) -> int:
    """Run loops and live flows under clocks that step and leap, and hold their ends against what is right.

    Args:
        seeds: which.
        base: where feeds, logs and runs are kept; nowhere unless given.
        at_once: how many run at the same time.
        as_json: one object a line instead of words.
        echo: where lines go.

    Returns:
        0, also where no clock can be set, which is said; 1 where an end was not right, or something hung.
    """
    telling = Telling("clock", as_json, echo)
    if not is_preloaded():
        return drill_preloaded(telling, seeds, base, at_once)
    telling.begin(f"{len(seeds)} seeds: {ROWS:,} recorded rows in {len(FED)} loops, or {FILES} files that arrive")
    with drilling(base) as folder:
        return telling.through(shifted([SteppedSeed(number, folder) for number in seeds], at_once))


def shifted(seeds: Sequence[SteppedSeed], at_once: int) -> Iterator[Drilled]:
    """Run seeds of one folder to their ends, after the calm run that they are held against.

    Args:
        seeds: in one folder.
        at_once: how many run at the same time.
    """
    base = seeds[0].base
    prepare(base, FED.values())
    for seed in seeds:
        if seed.live:
            seed.here.file.parent.mkdir(parents=True)
            seed.here.file.write_text(INBOX)
    yield from to_their_ends(seeds, at_once, small_calm(base))
