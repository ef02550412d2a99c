"""`pulseline stream`: a flow live on Spark, landing and epochs under one lease, with a line that says what it does."""

from __future__ import annotations

import datetime as dt
import signal
import threading
import time
from collections import deque
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pipelines.engine.columnar.clock import DEFAULT_MAX_JUMP, WallClock, wall_now
from pipelines.engine.columnar.columns import instant_text
from pipelines.engine.commits.driver import CommitLog, Driver, open_driver
from pipelines.engine.commits.history import START_OF_RUN, CommitKind
from pipelines.engine.commits.lease import Claim
from pipelines.engine.commits.leg_roots import covered_by_all
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.commits.readers import log_state
from pipelines.engine.commits.resets import newest_reset
from pipelines.engine.landing.errors import BuffersLostError
from pipelines.engine.landing.index import Landing
from pipelines.engine.live.checkpoints import forget_checkpoints
from pipelines.engine.live.drains import Drains, replayed_since, to_options
from pipelines.engine.live.epochs import SMALL_EPOCH, EpochRunner, nothing_else
from pipelines.engine.live.landing import BACK, LATE, LiveLanding, require_landed
from pipelines.engine.live.legs import open_legs
from pipelines.engine.live.queries import (
    FLOW,
    Gate,
    LiveQuery,
    StreamStopped,
    flow_query,
    landing_query,
)
from pipelines.engine.live.upkeep import Upkeep
from pipelines.engine.sources.catalog import open_sources
from pipelines.engine.sources.opening import Loss, Opening
from pipelines.engine.tasks.local import CoreEngine
from pipelines.engine.tasks.spark import QUICK_START
from pipelines.flows.durations import parse
from pipelines.flows.feeds.spec import Clock
from pipelines.flows.grid import intervals
from pipelines.jobs.commands.metrics import EVERY as METRICS_EVERY
from pipelines.jobs.commands.metrics import write_metrics
from pipelines.jobs.environment.buffer_settings import Buffering, open_buffers
from pipelines.jobs.environment.engines import BATCH, engine_named
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.parameters import parameters_of
from pipelines.jobs.environment.settings import command, load_flow, read_settings
from pipelines.jobs.runs.bucketing import with_buckets
from pipelines.jobs.runs.counts import counted
from pipelines.jobs.runs.feeds import open_feeds
from pipelines.jobs.runs.in_legs import wants_regions, with_legs
from pipelines.jobs.runs.in_use import as_run, require_in_use
from pipelines.jobs.runs.known import require_own_landing
from pipelines.jobs.runs.lineage import followed
from pipelines.jobs.runs.lineage_job import Job
from pipelines.jobs.runs.looked_up import require_others
from pipelines.jobs.runs.played import keep_range, read_range
from pipelines.jobs.runs.replaced import keep_own_file, require_own_file
from pipelines.jobs.runs.stop_note import forget_stop, noted_stop
from pipelines.operators.plain_words import counted as number_of
from pipelines.operators.rows import TICKS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from pipelines.engine.buffers.buffers import Buffers
    from pipelines.engine.commits.history import Entry, LogState
    from pipelines.engine.landing.source_feed import SourceFeed
    from pipelines.engine.live.legs import Legs, RunningLeg
    from pipelines.engine.tasks.spark import SparkEngine
    from pipelines.flows.model import Flow

MOST_SEQUENCES = 64
LATE_TRIGGERS = 4
"""So many times what lies between two readings, one of them comes of a driver that slept."""
HOUSE_EVERY = 100
"""Commits between two times that the driver puts its tables in order."""


@dataclass(frozen=True, kw_only=True)
class Live:
    """What is to run live, and until when."""

    flow: Flow
    root: Path
    base: Path
    spark: SparkEngine
    start: int | None = None
    """First reading of a recorded range, in ticks; None where the tables or the wall clock say it."""
    end: int | None = None
    """Last reading of a recorded range, in ticks; None under the wall clock."""
    speed: float = 1.0
    trigger: int = TICKS_PER_SECOND // 2
    """Between two readings, in ticks."""
    lasts: float | None = None
    """Seconds after which it stops by itself."""
    until_caught_up: bool = False
    available_now: bool = False
    after_backfill: bool = False
    most_sequences: int = MOST_SEQUENCES
    claim: Claim = Claim.ASK
    buffering: Buffering = field(default_factory=Buffering)
    accept_loss: bool = False
    keep_landed: int | None = None
    """How long landed rows that a commit covers are kept, in ticks; None for ever."""


@dataclass
class Figures:
    """What the status line says, gathered from published commits of all legs, each of which has a thread."""

    published: deque[tuple[float, Entry]] = field(default_factory=lambda: deque(maxlen=200))
    commits: int = 0
    rows: int = 0
    timers: int = 0
    newest: dict[str, dict[str, int]] = field(default_factory=dict)
    begun: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, entry: Entry) -> None:
        """Take in a published commit of the leg that takes what lands."""
        with self._lock:
            self.published.append((time.monotonic(), entry))
            self.rows += sum(counted(entry, "landed").values())
        self.add_of_leg(entry)

    def add_of_leg(self, entry: Entry) -> None:
        """Take in a published commit of any leg: what came of rows that have landed once."""
        with self._lock:
            self.commits += 1
            late = entry.detail.get("lateness", {})
            self.timers += late.get("timers", 0) if isinstance(late, dict) else 0
            newest = entry.detail.get("newest", {})
            for name, found in newest.items() if isinstance(newest, dict) else ():
                self.newest.setdefault(name, {}).update(found)

    def line(self, reading: int | None, full: str = "", waiting: int = 0) -> str:
        """Say what the stream does now, in one line.

        Args:
            reading: the newest, in ticks.
            full: why the sources wait, where they do.
            waiting: sequences that have landed and wait until the region drains.
        """
        if not self.commits and not full and not waiting:
            return f"starting, {time.monotonic() - self.begun:.0f} s: the first reading, then the first epoch"
        with self._lock:
            recent = [(at, entry) for at, entry in self.published if at > time.monotonic() - 10]
            events = [each["event"] for each in self.newest.values() if "event" in each]
            ctis = [each["cti"] for each in self.newest.values() if "cti" in each]
        span = max(1.0, time.monotonic() - recent[0][0]) if recent else 1.0
        rows = sum(sum(counted(entry, "landed").values()) for _, entry in recent)
        found = [entry.detail.get("lateness", {}) for _, entry in recent]
        late = [float(each["p99_ms"]) for each in found if isinstance(each, dict) and "p99_ms" in each]
        parts = [
            f"waits: {full}" if full else "",
            waiting_text(waiting),
            f"reading {instant_text(reading)[:19]}Z" if reading is not None else "no reading yet",
            f"{rows / span:,.0f} rows/s",
            f"{len(recent) / span:.1f} commits/s",
            f"{self.rows:,} rows, {self.timers:,} timers",
            f"newest event {instant_text(max(events))[:19]}Z" if events else "",
            # As far as all streams that promise have promised.
            f"CTI {instant_text(min(ctis))[:19]}Z" if ctis else "",
            f"heartbeats at most {max(late):,.0f} ms late (p99, last 10 s)" if late else "",
        ]
        return "  ".join(part for part in parts if part)


class Session:
    """A live run between its start and its end, in this process.

    Args:
        live: what runs.
        driver: holds the lease.
        tell: told a line now and then.
        asked: set by whoever wants it to stop.
    """

    def __init__(
        self, live: Live, driver: Driver, tell: Callable[[str], None], asked: threading.Event | None = None
    ) -> None:
        """Find where the tables stand, and finish what an earlier driver left."""
        self.driver, self.tell = driver, tell
        self.live = live = self._with_buckets(live)
        self.figures = Figures()
        self.asked, self.stopping = asked or threading.Event(), threading.Event()
        self.buffers = self._settled()
        self.landing = Landing(landed_path(live.root), self.buffers)
        self._upkeep = Upkeep(driver)
        self.runner = EpochRunner(
            driver=driver,
            flow=live.flow,
            landing=landed_path(live.root),
            engine=self._engine,
            blind=self._blind,
            published=self.figures.add,
            open=self.buffers.open if self.buffers else None,
            doubt=self.buffers.doubt if self.buffers else nothing_else,
            secure=self.buffers.secure if self.buffers else lambda _: None,
        )
        require_landed(self.landing.path, driver.state())
        self._core, self._gate = CoreEngine(), Gate()
        pending = self.runner.finish_pending()
        if pending is not None:
            tell(f"finished commit {pending.commit}, which an earlier run left behind")
        tip = driver.state().tip
        require_in_use(driver.state(), tip.commit if tip else START_OF_RUN, live.flow, live.root.name, tell)
        keep_own_file(live.root, live.flow)
        if live.start is not None and live.end is not None:
            keep_range(live.root, live.start, live.end)
        if self.landing.final is not None and self._taken() >= self.landing.last_id:
            ended = instant_text(self.landing.final)
            raise WrongUse(f"this stream ended at {ended}, and all of it is published: --run NAME for a run of its own")
        self._all_landed: int | None = None
        """The last sequence when nothing was left to land."""
        self._replayed = replayed_since(driver.state())
        self._drains = Drains(live.flow.region, self.landing.path, self._replayed) if live.flow.region else None
        self.start = self._first_reading()
        loss = Loss.ACCEPT if live.accept_loss else Loss.STOP
        feeds = open_feeds(live.flow, live.base, live.root, self.landing, tell, loss)
        watching = Driver(live.root, live.flow.name, CommitLog(live.root), driver.token)
        self.lander = LiveLanding(
            self.landing,
            live.flow,
            feeds,
            self.start,
            held=watching.state,
            stopped=self.stopping.is_set,
            clock=WallClock(DEFAULT_MAX_JUMP) if live.flow.clock is Clock.WALL else None,
            late=max(LATE, LATE_TRIGGERS * live.trigger),
            may_rest=self._may_rest,
        )
        # An epoch that is finished for an earlier driver, above, is late by no clock of this one.
        self.runner.now = self._now
        self.legs: Legs | None = None

    def _with_buckets(self, live: Live) -> Live:
        def feeds() -> Iterable[SourceFeed]:
            return open_sources(live.flow, Opening(base=live.base, root=live.root)).values()

        landed = landed_path(live.root)
        return replace(live, flow=with_buckets(live.flow, self.driver.state(), landed, feeds, live.spark.cores))

    def _settled(self) -> Buffers | None:
        """Give the buffers of a flow that has any, whole and alike.

        Raises:
            BuffersLostError: none may speak for what no commit covers, and nobody accepted that.
        """
        live = self.live
        if live.flow.buffers == 1:
            return None
        guard = Driver(live.root, live.flow.name, CommitLog(live.root), self.driver.token)
        buffers = open_buffers(live.root, live.buffering, self.tell, held=guard.state)
        try:
            buffers.settle()
        except BuffersLostError:
            if not live.accept_loss:
                raise
        else:
            return buffers
        lost = buffers.accept_loss()
        forget_checkpoints(live.root)
        self.tell(
            f"sequences {lost[0]} to {lost[1]} are given up; the ledger will say so" if lost else "nothing is lost"
        )
        return buffers

    def _first_reading(self) -> int:
        """Give the reading to go on from: where the landing stands, or where the run is to begin.

        Raises:
            WrongUse: the run has a backfill that was not asked to be gone on from, or no beginning is known.
        """
        live, tip = self.live, self.driver.state().tip
        if tip is not None and not live.after_backfill and is_backfilled(self.driver.state(), tip):
            raise WrongUse(
                f"this run was backfilled up to {instant_text(tip.span.end)}: add --after-backfill to go on from "
                "there, or --run NAME for a run of its own"
            )
        if tip is None and live.after_backfill:
            raise WrongUse("--after-backfill needs a published interval, and this run has none: pulseline run it first")
        landed = self.landing.last_reading()
        known = [instant for instant in (landed, tip.span.end if tip else None) if instant is not None]
        if known:
            return max(known)
        if live.start is not None:
            return live.start
        if live.flow.clock is Clock.WALL:
            return wall_now()
        raise WrongUse("a recorded feed needs --start and --end, the range to play")

    def _taken(self) -> int:
        """Give the last sequence that the run has taken, in all its legs."""
        return covered_by_all(self.live.root, self.runner.last_sequence())

    def _engine(self, rows: int) -> CoreEngine | SparkEngine:
        return self._core if rows <= SMALL_EPOCH else self.live.spark

    def _may_rest(self, reading: int) -> bool:
        """Say whether a reading at which nothing came may be passed over; a region counts its drains by readings."""
        runners = [each.runner for each in self.legs.all] if self.legs else [self.runner]
        return self._drains is None and all(each.is_quiet(self.landing.last_id, reading) for each in runners)

    def _now(self) -> tuple[int, float]:
        if self.live.flow.clock is Clock.WALL:
            return wall_now(), 1.0
        reading, at = self.lander.last, self.lander.at
        speed = self.live.speed or 1.0
        return (reading + int((time.monotonic() - at) * TICKS_PER_SECOND * speed), speed) if at else (0, 1.0)

    def _blind(self, sequence: object) -> dict[str, tuple[tuple[int, int], ...]]:
        number = sequence.id  # type: ignore[attr-defined]
        return {name: self.landing.blind_before(name, number) for name in self.live.flow.sources}

    def queries(self) -> tuple[LiveQuery, LiveQuery]:
        """Give the landing query and the flow query, not started yet."""
        live, spark, gate = self.live, self.live.spark.session(), self._gate
        if live.flow.clock is Clock.WALL:
            clock = {"clock": "wall", "max_jump": str(DEFAULT_MAX_JUMP)}
        else:
            speed = 0.0 if live.available_now else live.speed
            clock = {"clock": "simulated", "end": str(live.end or self.start), "speed": str(speed)}
        landing = landing_query(spark, live.root, clock, self.start, self.lander.land, gate)
        flow = flow_query(
            spark,
            live.root,
            landed_path(live.root),
            self.runner.last_sequence(),
            live.most_sequences,
            self._advance,
            gate,
            newest_reset(self.driver.state()),
            to_options(live.flow.region, self._replayed),
        )
        landing.watched = flow.watched = live.spark.watched
        landing.overtaken = flow.overtaken = self.driver.token if live.claim is Claim.TAKE_OVER else 0
        return landing, flow

    def _advance(self, after: int, upto: int) -> None:
        if self.legs is None:
            self.runner.advance(after, upto)
        else:
            self.legs.advance_main(after, upto)
        # A region that drains seldom covers many sequences with a commit, and each is a folder until it is compacted.
        every = max(1, HOUSE_EVERY // max(1, upto - after))
        keep = dt.timedelta(microseconds=self.live.flow.keep_versions)
        self._upkeep.keep(every=every, keep=keep, rows=self.live.keep_landed)
        if self.buffers is not None:
            self.buffers.cover()

    def caught_up(self) -> bool:
        """Say whether everything that can be landed is landed and published."""
        if self.live.end is not None and self.lander.last < self.live.end:
            return False
        # What waits is known behind the second reading: a file counts as complete when two looks saw it alike.
        if self.live.flow.clock is Clock.WALL and self.lander.readings < BACK:
            return False
        if self.lander.backlog:
            self._all_landed = None
            return False
        if self._all_landed is None:
            self._all_landed = self.landing.last_id
        # Readings go on: what they bring, timers among it, came later than all that was there.
        drained, last = self.runner.upto, self._all_landed
        waits = self._drains is not None and self._drains.next(drained, last) == drained
        upto = self.legs.upto if self.legs else drained
        return last > 0 and upto >= (min(drained, last) if waits else last)

    def _waiting(self) -> int:
        return 0 if self._drains is None else self.landing.last_id - self.runner.upto

    def drain_if_full(self) -> None:
        """Publish where the buffers have no room: what the region waits for could not come in any more.

        Raises:
            BaseException: what the epoch raised.
        """
        if not self.lander.full:
            return
        if self.legs is not None and self.legs.main.full is not None:
            return
        with suppress(StreamStopped), self._gate.through(FLOW):
            upto, last = self.runner.last_sequence(), self.landing.last_id
            if upto < last:
                self._advance(upto, last)
                self.tell(f"the buffers are full: sequences up to {last} are published, whatever the region waits for")

    def run(self) -> None:
        """Run until somebody asks to stop, or what was asked for is done.

        Raises:
            BaseException: what ended a query.
        """
        landing, flow = self.queries()
        if self.landing.final is not None:
            # The stream has ended: what a reset took back is played again, and nothing else comes in.
            flow.start(None, self.tell)
            flow.wait()
            return
        self.lander.listen()
        try:
            self._run(landing, flow)
            if waiting := self._waiting():
                told = "and no reader sees them before; pulseline status says when it does"
                self.tell(f"{waiting_text(waiting)}, {told}")
        finally:
            self.lander.close()

    @contextmanager
    def in_legs(self) -> Iterator[None]:
        """Let the legs of the flow, where it has any, go on beside the first one while the block runs."""
        if not self.live.flow.legs:
            yield
            return
        with open_legs(self.runner, self.live.root, self._engine, self.asked, self.figures.add_of_leg) as legs:
            legs.begin(self.tell)
            self.legs = legs
            with legs.under_way(self.live.most_sequences, self._keep_leg):
                yield
                if self.live.available_now or self.landing.final is not None:
                    legs.await_all()
            if behind := legs.behind:
                told = ", ".join(f"{leg} is {number_of(rows, 'row')} behind" for leg, rows in behind.items())
                self.tell(f"{told}: the next start goes on there")

    def _keep_leg(self, leg: RunningLeg) -> None:
        keep = dt.timedelta(microseconds=self.live.flow.keep_versions)
        leg.runner.driver.keep_house(every=HOUSE_EVERY, keep=keep)

    def _run(self, landing: LiveQuery, flow: LiveQuery) -> None:
        if self.live.available_now:
            if any(source.feed.is_endless for source in self.live.flow.sources.values()):
                raise WrongUse(
                    "--available-now takes what is there and ends, and a socket never says what is: --for 10m"
                )
            # A file counts as complete when two readings in a row saw it alike, so a folder is looked at twice.
            for query in (landing, landing, flow) if self.live.flow.clock is Clock.WALL else (landing, flow):
                query.start(None, self.tell)
                while query.running and not self.asked.wait(0.05):
                    self.drain_if_full()
                query.wait()
            return
        landing.start(f"{self.live.trigger // 1000} milliseconds", self.tell)
        flow.start("100 milliseconds", self.tell)
        try:
            self._watch(landing, flow)
        finally:
            if landing.running and flow.running:
                self.tell("stopping: the epoch under way ends, then nothing is left to do")
            self.stopping.set()
            if self.legs is not None:
                self.legs.ask_to_stop()
            landing.stop()
            flow.stop()
        for query in (landing, flow):
            query.failed()

    def _watch(self, landing: LiveQuery, flow: LiveQuery) -> None:
        begun = said = measured = time.monotonic()
        while landing.running and flow.running and not self.asked.wait(0.2):
            if self.legs is not None and self.legs.failed is not None:
                raise self.legs.failed
            now = time.monotonic()
            if self._drains is not None:
                self.drain_if_full()
            if now - said >= 2:  # noqa: PLR2004 - seconds between two lines
                self.tell(self.figures.line(self.lander.looked, self.lander.full, self._waiting()))
                for line in self.legs.lines() if self.legs else ():
                    self.tell(line)
                said = now
            if now - measured >= METRICS_EVERY:
                with suppress(OSError):
                    write_metrics(self.live.flow.name, self.live.root.name, self.live.root)
                measured = now
            if self.live.lasts is not None and now - begun >= self.live.lasts:
                return
            if self.live.until_caught_up and self.caught_up():
                return


def waiting_text(waiting: int) -> str:
    """Say how many sequences have landed and wait until the region drains; nothing where none do."""
    return f"{number_of(waiting, 'sequence waits', 'sequences wait')} until the region drains" if waiting else ""


def is_backfilled(state: LogState, tip: Entry) -> bool:
    """Say whether a run ends with an interval, as it was or under a changed flow; a reset to one is a stream's."""
    while tip.kind is CommitKind.ADOPT and tip.parent in state.commits:
        tip = state.commits[tip.parent]
    return tip.kind is CommitKind.INTERVAL


def run_live(live: Live, tell: Callable[[str], None]) -> Figures:
    """Run a flow live and give what it did.

    SIGINT and SIGTERM stop it cleanly; it goes on from there when it is started again.
    """
    require_own_landing(live.root, "stream")
    asked = threading.Event()
    with (
        _signals(asked, signal.SIGTERM),
        followed(_job_of(live)),
        open_driver(live.root, flow=live.flow.name, claim=live.claim) as driver,
        noted_stop(live.root, driver.state),
    ):
        session = Session(live, driver, tell, asked)
        forget_stop(live.root)
        try:
            # Spark puts a handler of its own in the place of whoever listens to SIGINT before it starts.
            live.spark.session()
            with _signals(asked, signal.SIGINT), session.in_legs():
                session.run()
        except Exception:
            # A service that is stopped sends its signal to all its processes, and Spark's ends on the spot.
            if live.spark.has_ended and not asked.is_set():
                from pipelines.engine.tasks.spark import SparkEndedError

                raise SparkEndedError(str(live.spark.log)) from None
            if not asked.is_set() or live.spark.is_running:
                raise
            tell("Spark ended with the signal that stopped this: the next start finishes what its last epoch had begun")
    tell(session.figures.line(session.lander.looked))
    return session.figures


def _job_of(live: Live) -> Job:
    """Give a stream as catalogues are told of it."""
    return Job(
        flow=live.flow,
        root=live.root,
        base=live.base,
        command="stream",
        engine=BATCH,
        span=None if live.start is None or live.end is None else (live.start, live.end),
        is_live=True,
    )


class _signals:  # noqa: N801 - used as a statement
    """Turn a signal into a wish to stop, where this is the main thread."""

    def __init__(self, asked: threading.Event, number: signal.Signals) -> None:
        self._asked, self._number = asked, number
        self._before: dict[int, object] = {}

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            self._before[self._number] = signal.signal(self._number, lambda *_: self._asked.set())

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class StreamRequest:
    """What the command was told; the words are the options' own."""

    flow: str
    run: str = "main"
    start: str | None = None
    end: str | None = None
    speed: float = 1.0
    trigger: str = "500ms"
    lasts: str | None = None
    until_caught_up: bool = False
    available_now: bool = False
    after_backfill: bool = False
    take_over: bool = False
    accept_loss: bool = False
    regions: str = "on"
    params: Sequence[str] = ()


def _seconds(lasts: str | None) -> float | None:
    """Read how long a stream is to run.

    Raises:
        WrongUse: no time at all.
    """
    if lasts is None:
        return None
    ticks = parse(lasts)
    if ticks <= 0:
        raise WrongUse(
            f"--for must be above zero, such as 10m; it is `{lasts}`; without it a stream runs until stopped"
        )
    return ticks / TICKS_PER_SECOND


def stream_flow(asked: StreamRequest, echo: Callable[[str], None]) -> None:
    """Run a flow live from the command line."""
    settings = read_settings()
    flow = load_flow(settings, asked.flow, parameters_of(asked.params))
    for warning in flow.warnings:
        echo(f"warning: {warning}")
    lasts = _seconds(asked.lasts)
    root = settings.root(flow.name, asked.run)
    state = log_state(root)
    flow = with_legs(as_run(flow, state), root, state, regions=wants_regions(asked.regions))
    require_own_landing(root, "stream")
    require_own_file(root, flow)
    require_others(flow)
    if state.stale:
        see = command("status", asked.flow, run=asked.run)
        echo(
            f"note: {number_of(len(state.stale), 'published commit')} began from what was replaced since, and this "
            f"stream goes on from what they made: {see} names what makes them anew"
        )
    first, last = played_range(flow, root, asked.start, asked.end)
    spark = engine_named(BATCH, settings.master, settings.spark_log, {**QUICK_START, **settings.spark})
    live = Live(
        flow=flow,
        root=root,
        base=settings.feeds_base(flow),
        spark=spark,  # type: ignore[arg-type]
        start=first,
        end=last,
        speed=asked.speed,
        trigger=parse(asked.trigger),
        lasts=lasts,
        until_caught_up=asked.until_caught_up,
        available_now=asked.available_now,
        after_backfill=asked.after_backfill,
        claim=Claim.TAKE_OVER if asked.take_over else Claim.ASK,
        buffering=Buffering.of(settings),
        accept_loss=asked.accept_loss,
        keep_landed=settings.keep_landed,
    )
    if flow.buffers > 1:
        live.buffering.require_apart(root)
        for warning in live.buffering.warnings(root):
            echo(f"warning: {warning}")
    echo(f"{flow.name} live into run `{asked.run}`: Spark starts, which takes some seconds; Ctrl-C stops it cleanly")
    try:
        figures = run_live(live, echo)
    finally:
        spark.close()
    echo(f"published {number_of(figures.commits, 'commit')}, {number_of(figures.rows, 'row')}")
    named = f"{asked.flow} --run {asked.run}"
    echo(f"next: pulseline status {named}, or pulseline show {asked.flow} {list(flow.streams)[-1]} --run {asked.run}")


def played_range(flow: Flow, root: Path, start: str | None, end: str | None) -> tuple[int | None, int | None]:
    """Give the range of a recorded feed to play; the one of the start before where none is given now.

    Raises:
        WrongUse: only one end of the range is given, or one is given under the wall clock.
        GridError: an end lies off the flow's grid.
    """
    if flow.clock is Clock.WALL:
        if start or end:
            raise WrongUse("--start and --end are the range of a recorded feed; this flow runs under the wall clock")
        return None, None
    if start and end:
        spans = intervals(flow, start, end)
        return spans[0][0], spans[-1][1]
    if start or end:
        raise WrongUse("a range has two ends: give --start and --end, or neither to go on in the range before")
    if before := read_range(root):
        return before
    raise WrongUse("a recorded feed needs --start and --end, the range to play")
