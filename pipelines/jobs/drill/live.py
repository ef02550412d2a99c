"""`pulseline drill live`: drawn feeds over a folder, a socket and a topic, under kills, pauses and restarts.

Right is: each row once and as it was sent, none before it was sent, nothing set aside that was on time, and the same
rows when the recording is played again or backfilled.
"""

from __future__ import annotations

import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pipelines.jobs.drill.heard import Heard, judged, spooled
from pipelines.jobs.drill.listening import Pace, listening, noted
from pipelines.jobs.drill.loops import Here
from pipelines.jobs.drill.processes import answer, end_of, killed, signalled, started
from pipelines.jobs.drill.seeds import one
from pipelines.jobs.drill.senders import FolderSender, KafkaSender, Sender, SocketSender
from pipelines.jobs.drill.shapes import FeedShape
from pipelines.jobs.drill.telling import Drilled, Telling, Undone, drilling
from pipelines.jobs.drill.witness import CutAt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess
    from pathlib import Path

KINDS = ("folder", "socket")
KAFKA = "kafka"
PATIENCE = 90.0
"""Seconds that a seed may take."""
ANSWERS = 60.0
"""Seconds that the judge may take."""
FAULTS = 5
"""Of one seed at most."""
QUIET = (0.1, 1.2)
"""Seconds between two faults."""
ASLEEP = (0.1, 1.5)
"""Seconds that a process is stopped."""
AWAY = ((0.0, 0.6), (0.0, 0.6), (2.5, 3.5))
"""Seconds between the end of a process and the start of the next: mostly few."""
STEPS = 40
"""That a process may go after a told commit before it kills itself."""


@dataclass
class LiveSeed:
    """A live run that is disturbed, as one seed draws it."""

    number: int
    base: Path
    brokers: str = ""
    """Of Kafka; none: folders and sockets alone."""
    work: Callable[..., None] | None = None
    """What the processes do; `listening` unless given."""
    done: Drilled = field(init=False)
    told: dict[int, str] = field(default_factory=dict)
    """What each commit was when it was told as published."""
    needed: set[int] = field(default_factory=set)
    """Numbers of rows that are known to have come."""
    began: float = 0.0
    """When the last process was started, by the monotonic clock."""
    starts: int = 0
    is_asked: bool = False
    """Whether the process was asked to stop, so that its end is not that of the run."""
    child: BaseProcess | None = None
    pipes: list[Connection] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Draw the shape of the feed; kinds of feeds take turns, so that few seeds see all."""
        self.done, self.drawn = Drilled(self.number), random.Random(self.number)  # noqa: S311 - to be drawn again
        kinds = (*KINDS, KAFKA) if self.brokers else KINDS
        self.shape = FeedShape(self.drawn, kinds[self.number % len(kinds)])
        self.home = self.base / f"seed-{self.number}"
        self.here = Here(self.home / "flow.yaml", self.home)
        self.over = self.home / "over"

    def run(self) -> None:
        """Send, disturb, and hold the end against what was sent.

        Raises:
            Undone: a process ended with an error, or not in time.
        """
        self.home.mkdir(parents=True)
        sender = self._sender()
        try:
            self.here.file.write_text(self.shape.flow(sender.place()))
            self._disturbed(sender)
        finally:
            self.end()
            sender.close()
        if sender.failed:
            raise Undone(sender.failed)
        heard = Heard(self.shape, sender.sent, frozenset(self.needed), frozenset(sender.slow), self.starts)
        self.done.differences += answer(self._log, ANSWERS, judged, self.here, heard, self.told)

    def _sender(self) -> Sender:
        if self.shape.kind == "folder":
            return FolderSender(self.shape, self.number, self.home)
        if self.shape.kind == "socket":
            return SocketSender(self.shape, self.number)
        return KafkaSender(self.shape, self.number, self.brokers)

    def _disturbed(self, sender: Sender) -> None:
        """Disturb the processes until the last row was sent; then let one come to its end."""
        until, left, quiet = time.monotonic() + PATIENCE, self.drawn.randint(1, FAULTS), 0.0
        self._start(self.drawn.random() < 0.5)  # noqa: PLR2004 - a coin
        while (code := self._child.exitcode) != 0 or self.is_asked or not self.over.exists():
            time.sleep(0.005)
            self._hear()
            if time.monotonic() > until:
                raise Undone(f"not done after {PATIENCE:.0f} s: {end_of(self._log)}")
            if not sender.is_alive:
                # A process takes long to start where the machine is busy: rows come when one listens.
                if noted(self.here).exists() or code is not None:
                    sender.start()
                    quiet = time.monotonic() + self.drawn.uniform(*QUIET)
            elif code is not None:
                self._again(code, sender)
            elif sender.over.is_set():
                self._finish(sender)
            elif left and time.monotonic() > quiet:
                self._disturb()
                left, quiet = left - 1, time.monotonic() + self.drawn.uniform(*QUIET)
        self._hear()
        self._must(sender)

    def _finish(self, sender: Sender) -> None:
        if isinstance(sender, SocketSender):
            sender.finish()
        self.over.touch()

    def _again(self, code: int, sender: Sender) -> None:
        """Start a process again where one was killed or asked to stop."""
        # One that was asked to stop before it listened ends as the system has it.
        if code not in {0, -signal.SIGKILL, -signal.SIGTERM}:
            raise Undone(f"a process ended with {code}: {end_of(self._log)}")
        if code == -signal.SIGKILL:
            self.done.faults["killed"] += 1
        if self.shape.kind == "socket":
            self.needed |= spooled(self.here.root, self.shape)
        time.sleep(self.drawn.uniform(*self.drawn.choice(AWAY)))
        self._start(not sender.over.is_set() and self.drawn.random() < 0.3)  # noqa: PLR2004 - about a third

    def _start(self, kills_itself: bool) -> None:  # noqa: FBT001 - drawn
        """Start a process, one that may kill itself at a step."""
        at = CutAt(self.drawn.randrange(4), self.drawn.randrange(1, STEPS)) if kills_itself else None
        pace = Pace(self.drawn.choice((0.02, 0.1, 0.3)), self.drawn.choice((1, 1, 3)))
        self.began, self.starts, self.is_asked = time.monotonic(), self.starts + 1, False
        self.child, pipe = started(self._log, self.work or listening, self.here, pace, at, self.over)
        self.pipes.append(pipe)

    def _disturb(self) -> None:
        """Kill the process, ask it to stop, or let it sleep."""
        how = self.drawn.choice(("killed", "asked to stop", "asleep"))
        if how == "killed":
            # Counted when it is seen to have ended, as those are that kill themselves.
            self._child.kill()
        elif how == "asked to stop":
            self._child.terminate()
            self.is_asked = True
            self.done.faults[how] += 1
        else:
            self.done.faults[how] += 1
            signalled(self._child, signal.SIGSTOP)
            time.sleep(self.drawn.uniform(*ASLEEP))
            signalled(self._child, signal.SIGCONT)

    def _must(self, sender: Sender) -> None:
        """Note the rows that have to be there: all, but for a socket, of which a broken connection may lose some."""
        first = 0
        if isinstance(sender, SocketSender):
            first = sender.last if sender.accepted > self.began else len(sender.sent)
        self.needed |= set(range(first, len(sender.sent)))

    def _hear(self) -> None:
        """Take in what is told."""
        for pipe in self.pipes:
            try:
                while pipe.poll(0.0):
                    number, content = pipe.recv()
                    if self.told.setdefault(number, content) != content:
                        self.done.differences.append(f"commit {number} was published twice, with other content")
            except EOFError:
                continue

    @property
    def _child(self) -> BaseProcess:
        if self.child is None:
            raise Undone("no process was started")
        return self.child

    @property
    def _log(self) -> Path:
        return self.base / f"seed-{self.number}.log"

    def end(self) -> None:
        """Leave no process behind."""
        if self.child is not None:
            killed(self.child)


def drill_live(  # noqa: PLR0913 - the command's options
    seeds: Sequence[int],
    base: Path | None,
    at_once: int,
    brokers: str,
    as_json: bool,  # noqa: FBT001 - the command's flag
    echo: Callable[[str], None],
) -> int:
    """Disturb live runs and hold what they publish against what was sent.

    Args:
        seeds: which.
        base: where runs and logs are kept; nowhere unless given.
        at_once: how many run at the same time.
        brokers: of Kafka, as host:port; none: folders and sockets alone, which is said.
        as_json: one object a line instead of words.
        echo: where lines go.

    Returns:
        0, or 1 where a row was lost, doubled, changed, early or set aside wrongly, or a seed did not end.
    """
    telling = Telling("live", as_json, echo)
    kinds = "folders, sockets and topics" if brokers else "folders and sockets; Kafka is left out: no --brokers"
    telling.begin(f"{len(seeds)} seeds: {kinds}")
    with drilling(base) as folder:
        folder.mkdir(parents=True, exist_ok=True)
        return telling.through(heard([LiveSeed(number, folder, brokers) for number in seeds], at_once))


def heard(seeds: Sequence[LiveSeed], at_once: int) -> Iterator[Drilled]:
    """Run seeds of one folder to their ends.

    Args:
        seeds: in one folder.
        at_once: how many run at the same time.
    """
    with ThreadPoolExecutor(at_once) as pool:
        yield from pool.map(lambda seed: one(seed, seed.run), seeds)
