"""The legs of a live run: each goes on by epochs of its own, behind what it reads, along the same landed sequences.

An epoch of a leg covers the sequences from where the leg is to the oldest of what it reads, so what meets in it meets
in the same order as in one piece, whoever was faster. A leg whose reader is too far behind begins no epoch. The leg
that is furthest behind never waits: what it writes is read by none that has less.

Rules of docs/semantics.md: X7, X8
"""

from __future__ import annotations

import json
import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from pipelines.engine.columnar.clock import wall_now
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.errors import CommitError
from pipelines.engine.commits.leg_roots import leg_root, note_legs, put_gone_aside, require_own
from pipelines.engine.files import durable
from pipelines.engine.landing.manifest import read_sequence
from pipelines.engine.live.crossed import laid_again
from pipelines.engine.live.crossing import WAITS, Crossing, Queue, landed_rows
from pipelines.engine.live.epochs import EpochRunner
from pipelines.engine.live.queries import STOPPED, StreamStopped
from pipelines.engine.tasks.stages import layout_of
from pipelines.flows.legs import MAIN, legs_of
from pipelines.flows.plan import plan
from pipelines.operators.plain_words import counted
from pipelines.operators.rows import TICKS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pipelines.engine.commits.entry import Entry
    from pipelines.engine.files.writing import Layout, Written
    from pipelines.engine.live.crossing import Ticket
    from pipelines.engine.tasks.stages import Engine
    from pipelines.flows.legs import Leg
    from pipelines.flows.model import Flow

LOOK = 0.05
"""Seconds after which whoever waits looks again, told or not."""


@dataclass(eq=False)
class LegAheadError(CommitError):
    """A leg has taken more than what it reads has come to.

    Facts: the leg, the last sequence that it has taken, the other, and its last one.
    """

    leg: str
    taken: int
    writer: str
    published: int
    says = (
        "leg {leg} must not stand beyond {writer}, which it reads; it has taken sequence {taken}, and {writer} stands "
        "at {published}: a reset was cut short, {writer} is an older copy, or its folder was lost; pulseline reset "
        "FLOW takes {leg} back behind it"
    )


@dataclass(eq=False)
class RunningLeg:
    """A leg that is under way."""

    leg: Leg
    runner: EpochRunner
    outs: tuple[Queue, ...]
    """What it hands to others."""
    waits_since: float | None = None
    """Since when it has waited for a reader, on the monotonic clock."""
    error: BaseException | None = None

    @property
    def full(self) -> Queue | None:
        """Give a queue that is full, which keeps the leg from its next epoch."""
        return next((queue for queue in self.outs if queue.is_full), None)

    @property
    def queues(self) -> tuple[Queue, ...]:
        """Give the queues that the leg reads."""
        crossing = self.runner.crossing
        return () if crossing is None else tuple(crossing.queues.values())

    @property
    def waiting(self) -> list[Ticket]:
        """Give the tickets that it has not taken, of all its queues."""
        return [ticket for queue in self.queues for ticket in queue.waiting]

    @property
    def behind(self) -> int:
        """Count the sequences that the leg could take."""
        crossing = self.runner.crossing
        return 0 if crossing is None else max(0, crossing.upto - self.runner.upto)

    def step(self, most: int) -> bool:
        """Run the next epoch over at most so many sequences; say whether there was one."""
        crossing = self.runner.crossing
        if crossing is None or not self.behind or self.full is not None:
            return False
        upto = self.runner.upto
        self.runner.advance(upto, min(crossing.upto, upto + most))
        crossing.cover(self.runner.upto)
        return True

    def hand(self, entry: Entry, written: Mapping[str, Sequence[Written]]) -> None:
        """Hand a published commit to all that read it."""
        for queue in self.outs:
            queue.offer(entry, written, landed_rows(entry))


@dataclass(eq=False)
class Legs:
    """All legs of a run, under the leases of their roots.

    Made by `open_legs`; `begin` finishes what earlier drivers left.
    """

    main: RunningLeg
    others: tuple[RunningLeg, ...]
    """Each behind all that it reads."""
    gone: tuple[str, ...]
    """Of which nothing was left: what they had published they make again."""
    asked: threading.Event
    """Set by whoever wants the run to stop."""
    _moved: threading.Condition = field(default_factory=threading.Condition)
    _threads: list[threading.Thread] = field(default_factory=list)
    _stopping: threading.Event = field(default_factory=threading.Event)
    _gates: dict[str, threading.Lock] = field(default_factory=dict)

    @property
    def all(self) -> tuple[RunningLeg, ...]:
        """Give every leg, the one that takes what lands first."""
        return (self.main, *self.others)

    @property
    def upto(self) -> int:
        """Give the last sequence that every leg has taken."""
        return min(each.runner.upto for each in self.all)

    def begin(self, tell: Callable[[str], object]) -> None:
        """Finish the commits that were pending, and have every ticket there that a reader has to take.

        A leg stands behind what it reads, so what it finishes finds its tickets.

        Args:
            tell: told what had to be done.

        Raises:
            LegMixedError: the folder of one holds another.
            LegAheadError: a reset was cut short between two legs.
            TableAheadError: an older copy of a leg's commits stands there.
        """
        for each in self.all:
            require_own(each.runner.root, each.leg.name, each.leg.streams, each.runner.driver.state())
        for each in self.all:
            # Of a driver that was killed while it waited.
            (each.runner.root / WAITS).unlink(missing_ok=True)
            each.runner.last_sequence()
            self._see_not_ahead(each)
            done = each.runner.finish_pending() if each is not self.main else None
            if done is not None:
                tell(f"finished commit {done.commit} of {each.leg.name}, which an earlier run left behind")
                each.runner.last_sequence()
                if each.runner.crossing is not None:
                    # Who writes for it has counted these tickets as waiting, and would wait for them for ever.
                    each.runner.crossing.cover(each.runner.upto)
            self._resume(each, tell)
        for leg in self.gone:
            tell(f"nothing was left of leg {leg}: what it had published it makes again")

    def _see_not_ahead(self, each: RunningLeg) -> None:
        runners = {other.leg.name: other.runner for other in self.all}
        for writer in each.leg.reads:
            if each.runner.upto > runners[writer].upto:
                # An older copy of the log alone is told by its tables; a reset takes a leg back before its readers.
                runners[writer].driver.agree()
                upto = runners[writer].upto
                raise LegAheadError(each.leg.name, each.runner.upto, writer, upto)

    def _resume(self, each: RunningLeg, tell: Callable[[str], object]) -> None:
        state = each.runner.driver.state()
        readers = {other.leg.name: other.runner for other in self.others}

        def buckets(row: Entry) -> int:
            return read_sequence(each.runner.landing, row.sequences[-1]).buckets

        for queue in each.outs:
            made = queue.resume(state, readers[queue.reader.name].last_sequence(), buckets)
            if made and state.tip is not None:
                was = "was" if made == 1 else "were"
                whose = f"of {each.leg.name} for {queue.reader.name}"
                tell(f"{counted(made, 'ticket')} {whose} {was} made from the log of commits")

    def start(self, most: int, behind: Callable[[RunningLeg], object] = lambda _: None) -> None:
        """Let every leg but the first go on by itself, each in a thread of its own.

        Args:
            most: sequences of one epoch at most.
            behind: told behind each epoch of a leg.
        """
        for each in self.others:
            thread = threading.Thread(target=self._go_on, args=(each, most, behind), name=f"leg-{each.leg.name}")
            self._threads.append(thread)
            thread.start()

    def _go_on(self, each: RunningLeg, most: int, behind: Callable[[RunningLeg], object]) -> None:
        try:
            while not self._stopping.is_set():
                with self.gate(each.leg.region):
                    moved = not self._stopping.is_set() and each.step(most)
                self._note(each)
                if moved:
                    behind(each)
                    self.tell_all()
                else:
                    self._wait()
        except BaseException as problem:  # noqa: BLE001 - whoever watches raises it
            each.error = problem

    def gate(self, region: str) -> threading.Lock:
        """Give what two legs of one region pass one at a time."""
        return self._gates.setdefault(region, threading.Lock())

    def _note(self, each: RunningLeg) -> None:
        """Say on disk for whom a leg waits, when it begins to and when it ends to."""
        full = each.full
        if (full is None) == (each.waits_since is None):
            return
        each.waits_since = None if full is None else time.monotonic()
        file = each.runner.root / WAITS
        if full is None:
            file.unlink(missing_ok=True)
            return
        rows, most = sum(ticket.rows for ticket in full.waiting), full.reader.most_behind
        facts = {"leg": full.reader.name, "since_at": wall_now(), "rows": rows, "most_behind": most}
        durable.replace(file, json.dumps(facts).encode())

    def advance_main(self, after: int, upto: int) -> None:
        """Run an epoch of the leg that takes what lands, once its readers have room.

        Raises:
            StreamStopped: somebody asked to stop before.
        """
        while self.main.full is not None:
            if self._stopping.is_set() or self.asked.is_set() or self.failed is not None:
                raise StreamStopped(STOPPED)
            self._note(self.main)
            self._wait()
        self._note(self.main)
        with self.gate(self.main.leg.region):
            self.main.runner.advance(after, upto)
        self.tell_all()

    def await_all(self) -> None:
        """Wait until every leg has taken what the first one has, or somebody asks to stop.

        Raises:
            BaseException: what ended a leg.
        """
        while self.upto < self.main.runner.upto and self.failed is None and not self.asked.is_set():
            self._wait()
        if self.failed is not None:
            raise self.failed

    def catch_up(self, most: int) -> None:
        """Let every leg take what the first one has, one after the other, in this thread."""
        while self.upto < self.main.runner.upto:
            for each in self.others:
                each.step(most)

    def lines(self) -> Iterator[str]:
        """Say of each leg that is behind how far, and of each that waits for whom."""
        for each in self.all:
            waiting = each.waiting
            if rows := sum(ticket.rows for ticket in waiting):
                seconds = (wall_now() - min(ticket.at for ticket in waiting)) / TICKS_PER_SECOND
                yield f"{each.leg.name}: {rows:,} rows behind, for {seconds:,.0f} s"
            full = each.full
            if full is not None and each.waits_since is not None:
                seconds = time.monotonic() - each.waits_since
                yield f"{each.leg.name} waits for {full.reader.name} since {seconds:,.0f} s; the landing goes on"

    @property
    def behind(self) -> dict[str, int]:
        """Give how many rows wait for each leg that is behind."""
        waiting = {each.leg.name: sum(ticket.rows for ticket in each.waiting) for each in self.all}
        return {leg: rows for leg, rows in waiting.items() if rows}

    def tell_all(self) -> None:
        """Have whoever waits look again."""
        with self._moved:
            self._moved.notify_all()

    def _wait(self) -> None:
        with self._moved:
            self._moved.wait(LOOK)

    @property
    def failed(self) -> BaseException | None:
        """Give what ended a leg."""
        return next((each.error for each in self.others if each.error is not None), None)

    def ask_to_stop(self) -> None:
        """Let every leg end its epoch and begin no other."""
        self._stopping.set()
        self.tell_all()

    def stop(self) -> None:
        """Wait for the epochs under way."""
        self.ask_to_stop()
        for thread in self._threads:
            thread.join()

    @contextmanager
    def under_way(self, most: int, behind: Callable[[RunningLeg], object] = lambda _: None) -> Iterator[None]:
        """Let the other legs go on in threads while the block runs, and wait for their epochs at its end.

        Args:
            most: sequences in one epoch at most.
            behind: told behind each epoch of a leg.

        Raises:
            BaseException: what ended a leg, rather than that the first one was stopped by it.
        """
        self.start(most, behind)
        try:
            yield
        except StreamStopped:
            if self.failed is None:
                raise
        finally:
            self.stop()
        if self.failed is not None:
            raise self.failed


@contextmanager
def open_legs(
    main: EpochRunner,
    root: Path,
    engine: Callable[[int], Engine],
    asked: threading.Event | None = None,
    published: Callable[[Entry], None] = lambda _: None,
) -> Iterator[Legs]:
    """Hold the leases of all legs of a run, whose own is held already, while the block runs.

    Args:
        main: runs the epochs of the leg that takes what lands; its flow says the legs.
        root: the run's folder.
        engine: given a number of rows, who runs an epoch's tasks.
        asked: set by whoever wants the run to stop.
        published: told of each commit of the other legs, by the threads that they run in.
    """
    flow = main.flow
    legs = legs_of(flow)
    note_legs(root, legs)
    gone = put_gone_aside(root, main.driver.state())
    layouts = _layouts(flow)
    queues = {
        (writer, reader.name): Queue(
            leg_root(root, writer), writer, reader, layouts, partial(laid_again, leg_root(root, writer), flow)
        )
        for reader in legs
        for writer in reader.reads
    }
    with ExitStack() as leases:
        running = []
        for leg in legs:
            runner = main
            if leg.name != MAIN:
                driver = leases.enter_context(
                    open_driver(leg_root(root, leg.name), flow=flow.name, under=main.driver.state)
                )
                crossing = Crossing(leg, {writer: queues[writer, leg.name] for writer in leg.reads})
                runner = EpochRunner(
                    driver=driver,
                    flow=flow,
                    landing=main.landing,
                    engine=engine,
                    now=main.now,
                    published=published,
                    crossing=crossing,
                )
            outs = tuple(queue for (writer, _), queue in queues.items() if writer == leg.name)
            each = RunningLeg(leg, runner, outs)
            runner.handed = each.hand
            running.append(each)
        yield Legs(running[0], tuple(running[1:]), gone, asked or threading.Event())


def _layouts(flow: Flow) -> Callable[[str, int], Layout]:
    stages = plan(flow)

    def layout(stream: str, buckets: int) -> Layout:
        return layout_of(stages, stages.stage_of(stream), stream, buckets)

    return layout
