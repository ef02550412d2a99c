"""`pulseline drill store`: an object store fails under a home, and its process is killed; the rows stay what they are.

What fails is drawn by seed, in a proxy before an emulator: answers are lost behind what was done, or cut, or come late,
or say that nothing was done. A process may stop over it, with a sentence; the next one goes on from there.
"""

from __future__ import annotations

import datetime as dt
import os
import random
import time
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from pipelines.engine.commits.readers import log_state
from pipelines.engine.files.stored import path_of
from pipelines.engine.live.upkeep import Upkeep
from pipelines.engine.tasks.local import CoreEngine
from pipelines.errors import PulselineError
from pipelines.flows.reading import read_flow
from pipelines.jobs.drill.drilled import live
from pipelines.jobs.drill.fed import ROWS, SMALL, SPAN, feed, readings
from pipelines.jobs.drill.processes import answer, end_of, killed, started
from pipelines.jobs.drill.seeds import calm, to_their_ends
from pipelines.jobs.drill.telling import Drilled, Telling, Undone, drilling
from pipelines.jobs.drill.witness import content_of
from pipelines.jobs.proofs.emulator import BUCKET, access_to, emulator
from pipelines.jobs.proofs.parity import table_hashes
from pipelines.jobs.proofs.store_proxy import StoreCall, StoreFault, StoreProxy
from pipelines.jobs.runs.backfill import Backfill, run_backfill
from pipelines.operators.rows import TICKS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from multiprocessing.connection import Connection
    from pathlib import Path

    from pipelines.engine.columnar.content import ContentHash
    from pipelines.engine.commits.driver import Driver
    from pipelines.engine.commits.entry import Entry

KINDS = ("batch", "stream", "upkeep")
EVERY = 120 * TICKS_PER_SECOND
"""An interval of a backfill."""
CUTS = 10
"""Sequences that a stream lands."""
STARTS = 12
"""Of a seed at most; the last ones are not disturbed."""
CALM = 3
PATIENCE = 400.0
"""Seconds that a process may take."""
STOPPED = 3
"""Exit code of a process that stopped with a sentence."""
KILLED_WITHIN = 4.0
"""Seconds, from its start, in which a process is killed that is."""
OFTEN = {
    StoreFault.LOST: 5,
    StoreFault.LATE: 4,
    StoreFault.CUT: 2,
    StoreFault.CONFLICT: 2,
    StoreFault.REFUSED: 2,
    StoreFault.FAILED: 3,
    StoreFault.SLOW: 2,
}
"""How often kinds of faults are drawn, beside each other."""
OF_WRITES = frozenset({StoreFault.CONFLICT, StoreFault.REFUSED})
SPELLS = {StoreFault.BUSY: (0.2, 2.0), StoreFault.EXPIRED: (0.5, 1.5)}
"""What holds for all calls of a while: between how many seconds."""


@dataclass
class Weather:
    """What a store does, as a seed draws it: single calls fail, and now and then all of them for a while."""

    drawn: random.Random
    share: float
    """Of the calls, those that fail."""
    spell: tuple[StoreFault, float] | None = None
    """What holds for all calls, and until when."""
    clear: bool = False

    def __call__(self, call: StoreCall) -> StoreFault | None:
        """Say what happens to a call."""
        if self.clear:
            return None
        if self.spell and time.monotonic() < self.spell[1]:
            return self.spell[0]
        if self.drawn.random() < self.share / 40:
            kind = self.drawn.choice(tuple(SPELLS))
            self.spell = kind, time.monotonic() + self.drawn.uniform(*SPELLS[kind])
            return kind
        if self.drawn.random() >= self.share * (3 if call.is_conditional else 1):
            return None
        kind = self.drawn.choices(tuple(OFTEN), tuple(OFTEN.values()))[0]
        return None if kind in OF_WRITES and not call.is_conditional else kind


@dataclass
class StoreSeed:
    """A run in a store that fails, as one seed draws it."""

    number: int
    base: Path
    behind: int
    """Port of the store."""
    plant: Callable[[], object] | None = None
    """Puts a bug into each process; can be pickled."""
    done: Drilled = field(init=False)
    told: dict[int, str] = field(default_factory=dict)
    """What each commit was when it was told as published."""

    def __post_init__(self) -> None:
        """Draw what runs and how much fails; kinds take turns, so that few seeds see all."""
        self.done, self.drawn = Drilled(self.number), random.Random(self.number)  # noqa: S311 - to be drawn again
        self.kind = KINDS[self.number % len(KINDS)]
        self.weather = Weather(random.Random(-1 - self.number), self.drawn.choice((0.01, 0.03, 0.08)))  # noqa: S311
        self.root = f"s3://{BUCKET}/seed-{self.number}/drilled/main"

    def run(self, wanted: Mapping[str, ContentHash]) -> None:
        """Start the same process until it has come to its end, and hold the end against a calm run's.

        Raises:
            Undone: a process ended otherwise than with a sentence, or none came to its end.
        """
        with StoreProxy(self.behind).listening() as proxy:
            proxy.disturbing = self.weather
            for start in range(STARTS):
                self.weather.clear = start >= STARTS - CALM
                if self._come_to_its_end(proxy.port):
                    break
            else:
                raise Undone(f"{self.kind} came to no end in {STARTS} starts: {end_of(self._log)}")
            self.done.faults += proxy.faults
        found, lost = answer(self._log, PATIENCE, judged, self.base, self.root, access_to(self.behind), self.told)
        self.done.differences += lost + [name for name in wanted if found.get(name) != wanted[name].text]

    def _come_to_its_end(self, port: int) -> bool:
        facts = self.kind, self.base / "calm" / "flow.yaml", self.root, access_to(port), self.plant
        child, mine = started(self._log, working, *facts)
        until = time.monotonic() + PATIENCE
        dies = self.drawn.random() < 0.5 and not self.weather.clear  # noqa: PLR2004 - one of two
        end = time.monotonic() + self.drawn.uniform(0, KILLED_WITHIN) if dies else until
        while child.exitcode is None and time.monotonic() < end:
            self._heard(mine)
        if dies and child.exitcode is None:
            self.done.faults["killed"] += 1
        hung = not dies and child.exitcode is None
        code = child.exitcode if child.exitcode is not None else killed(child)
        self._heard(mine)
        if hung or code not in {0, STOPPED, -9}:
            raise Undone(f"{self.kind} {'hung' if hung else f'ended with {code}'}: {end_of(self._log)}")
        self.done.faults["stopped"] += code == STOPPED
        return code == 0

    def _heard(self, pipe: Connection) -> None:
        try:
            while pipe.poll(0.01):
                number, content = pipe.recv()
                if self.told.setdefault(number, content) != content:
                    self.done.differences.append(f"commit {number} was published twice, with other content")
        except EOFError:
            time.sleep(0.01)

    def end(self) -> None:
        """Leave nothing: its objects go with the store."""

    @property
    def _log(self) -> Path:
        return self.base / f"seed-{self.number}.log"


def working(  # noqa: PLR0913 - a process, and where it works
    pipe: Connection,
    kind: str,
    file: Path,
    root: str,
    access: Mapping[str, str],
    plant: Callable[[], object] | None,
) -> None:
    """Do the work of a run, in a process that was forked for it; an error of ours is a sentence, and ends it."""
    os.environ.update(access)
    if plant is not None:
        plant()
    wanted = Backfill(flow=read_flow(file, {}), root=path_of(root), base=file.parent, engine=CoreEngine())
    try:
        if kind == "batch":
            tip = log_state(wanted.root).tip
            run_backfill(wanted, list(pairwise(range(tip.span.end if tip else SPAN[0], SPAN[1] + 1, EVERY))))
        else:
            between = _kept if kind == "upkeep" else _untouched
            live(
                wanted, readings(CUTS), published=lambda row: pipe.send((row.commit, content_of(row))), between=between
            )
    except PulselineError as problem:
        print(problem, flush=True)  # noqa: T201 - standard output is this process's log
        os._exit(STOPPED)
    os._exit(0)


def _told(pipe: Connection, row: Entry) -> None:
    pipe.send((row.commit, content_of(row)))


def _kept(driver: Driver) -> None:
    Upkeep(driver).keep(every=2, keep=dt.timedelta(0))


def _untouched(_: Driver) -> None:
    """Leave the tables as they are."""


def judged(
    base: Path, root: str, access: Mapping[str, str], told: Mapping[int, str]
) -> tuple[dict[str, str], list[str]]:
    """Hash every table of a run, and its carry, and say what of what was told is not there."""
    os.environ.update(access)
    found, state = path_of(root), log_state(path_of(root))
    lost = [
        f"commit {number} is another than was told"
        for number, content in told.items()
        if number not in state.commits or content_of(state.commits[number]) != content
    ]
    flow = read_flow(base / "calm" / "flow.yaml", {})
    return {name: each.text for name, each in table_hashes(found, flow, *SPAN).items()}, lost


def drill_store(
    seeds: Sequence[int],
    base: Path | None,
    at_once: int,
    as_json: bool,  # noqa: FBT001 - the command's flag
    echo: Callable[[str], None],
) -> int:
    """Disturb a store under runs, kill them, and hold their ends against a calm run on this machine's disk.

    Args:
        seeds: which.
        base: where feeds and logs are kept; nowhere unless given.
        at_once: how many run at the same time.
        as_json: one object a line instead of words.
        echo: where lines go.

    Returns:
        0; 1 where something was lost, is another, or came to no end.
    """
    telling = Telling("store", as_json, echo)
    telling.begin(f"{len(seeds)} seeds: {ROWS:,} rows, {', '.join(KINDS)}, in a store that fails, killed now and then")
    with drilling(base) as folder, emulator() as behind:
        return telling.through(disturbed([StoreSeed(number, folder, behind) for number in seeds], at_once))


def disturbed(seeds: Sequence[StoreSeed], at_once: int) -> Iterator[Drilled]:
    """Run seeds of one folder to their ends, after the calm run that they are held against.

    Args:
        seeds: in one folder.
        at_once: how many run at the same time.
    """
    folder = seeds[0].base / "calm"
    yield from to_their_ends(seeds, at_once, calm(feed(folder, SMALL, buffers=1), folder / "run", folder))
