"""What one reading lands: everything that came in before it, as one closed sequence.

The landing itself says where it stands, so a reading that was planned twice lands once, and one that was planned and
never landed is landed by the next: cuts do not matter.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pipelines.engine.columnar.clock import wall_now
from pipelines.engine.columnar.columns import canonical_json, instant_text, times
from pipelines.engine.commits.entry import State
from pipelines.engine.landing.errors import LandingError, NoRoomError, SequenceClosedError
from pipelines.engine.landing.file_rows import NOTED
from pipelines.engine.landing.manifest import is_closed
from pipelines.engine.landing.stamp import LANDED_LEDGER, OPERATOR
from pipelines.errors import Exit
from pipelines.flows.feeds.spec import Clock
from pipelines.operators.rows import MAX_TIME, TICKS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from pipelines.engine.columnar.clock import WallClock
    from pipelines.engine.commits.history import LogState
    from pipelines.engine.landing.index import Backlog, Landing
    from pipelines.engine.landing.sequence import LandedSequence
    from pipelines.engine.landing.shelves import Gap
    from pipelines.engine.landing.source_feed import SourceFeed
    from pipelines.engine.landing.write import Spans
    from pipelines.flows.model import Flow


@dataclass(eq=False)
class StreamEndedError(LandingError):
    """Something is to land after the final punctuation.

    In ticks.
    """

    final: int
    reading: int

    def __str__(self) -> str:
        return (
            f"a stream must be silent after its end; this one ended at {instant_text(self.final)} and is to land "
            f"{instant_text(self.reading)}: play it into a run of its own (--run NAME)"
        )


@dataclass(eq=False)
class LandingBehindError(LandingError):
    """Sequences that the run has published are no longer in its landing, so what lands next would take their numbers.

    Facts: the landing, and the last sequence that is published.
    """

    landing: str
    last: int
    code = Exit.RUN_FAILED
    says = (
        "{landing} must hold every sequence that is published, up to {last}, and that one is not there: rows that "
        "land now would get numbers that are taken, and never be read; put `landed` back out of a copy of the run's "
        "folder, or make a run of its own anew (--run NAME); pulseline doctor FLOW says what is missing"
    )


def require_landed(landing: Path, state: LogState) -> None:
    """See that a landing has come as far as what is published, before anything lands in it.

    Args:
        landing: the folder of the run's sequences.
        state: the run's log.

    Raises:
        LandingBehindError: it has not: the newest sequences were lost, or an older copy was put there.
    """
    last = state.last_sequence(State.PUBLISHED)
    if last and not is_closed(landing, last):
        raise LandingBehindError(str(landing), last)


WAIT = 0.1
"""Seconds between two looks whether there is room."""
LIMIT_ROWS = 1_000_000
"""Rows of a source that one reading lands; one that leaves some behind makes the landing blind until it is through."""
BACK = 2
"""How many readings are blind once the landing looks again: a file that came meanwhile lands at its second look."""
REST = 5 * TICKS_PER_SECOND
"""For how long no sequence is closed where nothing comes and nothing is due: half of the least after which `status`
says that the landing has stopped. After a crash it is blind from the last sequence on."""
LATE = 2 * TICKS_PER_SECOND
"""How long after the one before a reading comes of a landing that slept, unless it is read in longer steps."""


class LiveLanding:
    """The landing of a live flow, one sequence a reading.

    Under the wall clock it records when it was blind: between its last reading before it stopped, or slept, and the
    second after, as long as it knows that something waits, and where a source says that it was not heard. A simulated
    clock knows no blind spans.

    Args:
        landing: what is landed already.
        flow: its sources and buckets.
        feeds: what `open_sources` gave, by source.
        start: the reading to go on from, in ticks.
        limit_rows: of each live source and reading.
        held: raises where the lease of the run is lost; asked before each reading lands. The landing runs beside the
            epochs, so it must be a driver's `state` of its own.
        stopped: says whether to wait for room no longer.
        clock: read, once the sources have been looked at, for the reading that closes a sequence; unless given, that
            is the one that was planned.
        late: how long after the one before a reading comes of a landing that slept, in ticks; never, unless given.
        may_rest: says whether silence alone makes nothing leave before a reading, so that it need not be landed where
            nothing came: cuts do not matter. Never, unless given.
    """

    def __init__(  # noqa: PLR0913 - what a landing is made of
        self,
        landing: Landing,
        flow: Flow,
        feeds: Mapping[str, SourceFeed],
        start: int,
        limit_rows: int = LIMIT_ROWS,
        held: Callable[[], object] = lambda: None,
        stopped: Callable[[], bool] = lambda: False,
        clock: WallClock | None = None,
        late: int = MAX_TIME,
        may_rest: Callable[[int], bool] = lambda _: False,
    ) -> None:
        """Land nothing yet."""
        self._landing, self._flow, self._feeds, self._limit = landing, flow, feeds, limit_rows
        self._held, self._stopped, self._clock = held, stopped, clock
        self._live = flow.clock is Clock.WALL
        self._late, self._born, self._may_rest = late, wall_now(), may_rest
        self._waking = BACK if landing.last_reading() is not None else 0
        """How many readings are blind yet, for all sources."""
        self._behind: set[str] = set()
        """The sources of which rows were left by the last reading."""
        self.readings = 0
        """How many of its own readings this has landed."""
        self.last = start
        """The last reading that closed a sequence, in ticks."""
        self.looked = start
        """The last reading at which the sources were looked at, in ticks."""
        self.at = 0.0
        """Monotonic time at which it was landed, in seconds; 0 before the first."""
        self.backlog = 0
        """What waits to be landed: files of folders, bytes of spools, rows of topics."""
        self.left = 0
        """What of it the last reading could have read and had no room for; the rest is not ready."""
        self.full = ""
        """Why the sources wait, where the buffers have no room."""

    def listen(self) -> None:
        """Begin to hear sources that speak without being asked; `close` ends it.

        Raises:
            LandingError: what a source sent before and has not landed is not there any more.
        """
        for name, feed in self._feeds.items():
            feed.listen(self._landing.known(name))

    def close(self) -> None:
        """Hear no source any more; what was heard is kept."""
        for feed in self._feeds.values():
            feed.close()

    def look(self) -> int:
        """See what live sources hold; give an instant, in ticks, at which all of that had come.

        Raises:
            LandingError: a source cannot be read.
        """
        return max(feed.look(self._landing.known(name)) for name, feed in self._feeds.items())

    def _closing(self, planned: int) -> int:
        """Read the clock, behind all that the sources hold.

        Who plans a reading does not know when it will land: Spark may have planned it before a crash, or plan for
        seconds. So it says that it is time to land, and what lands arrives when it was seen.

        Raises:
            ClockJumpError: the clock moved in a way that time does not.
        """
        return planned if self._clock is None else self._clock.read(max(planned, self.look() + 1))

    def land(self, _: int, reading: int, final: int | None = None) -> LandedSequence | None:
        """Close the sequence of everything before a reading; None where that was done before, or nothing came.

        Args:
            _: the reading before as Spark planned it; the landing knows better.
            reading: as it was planned, in ticks; the one that closes the sequence is not before it.
            final: arrival of the final punctuation, where the stream ends here.

        Raises:
            LeaseLostError: another driver has taken the lease.
            StreamEndedError: the final punctuation has landed.
            ClockJumpError: the clock moved in a way that time does not.
            LandingError: a feed cannot be read.
        """
        if reading <= self.last:
            return None
        self._held()
        ended = self._landing.final
        if ended is not None:
            raise StreamEndedError(ended, reading)
        reading = self._closing(reading)
        if reading - self.looked > self._late:
            self._waking = BACK
        blind = dict.fromkeys(self._deaf(), ((self.last, reading),))
        try:
            sequence, waiting = self._when_there_is_room(reading, blind, final)
        except NoRoomError:
            return None
        if reading >= self._born:
            # An earlier reading was planned by a process that died: nobody listened until this one began.
            self._waking = max(self._waking - 1, 0)
            self.readings += 1
            self._behind = {name for name, (left, _) in waiting.items() if left}
        self.left = sum(left for left, _ in waiting.values())
        self.backlog = sum(left + len(unsettled) for left, unsettled in waiting.values())
        self.looked, self.at = reading, time.monotonic()
        if sequence is not None:
            # Not always the reading: of two drivers that closed it the first one decides.
            self.last = self.looked = sequence.end
        return sequence

    def _rests(self, reading: int, final: int | None) -> bool:
        """Say whether a reading need not be landed if nothing comes."""
        heard = self._live and not self._waking and not self._behind
        return heard and final is None and reading - self.last < REST and self._may_rest(reading)

    def _deaf(self) -> Iterable[str]:
        """Name the sources of which nobody knows what they would have brought by the next reading."""
        if not self._live:
            return ()
        return self._flow.sources if self._waking else self._behind

    def _when_there_is_room(
        self, reading: int, blind: Mapping[str, Spans], final: int | None
    ) -> tuple[LandedSequence | None, Backlog]:
        """Land a reading; while the buffers have no room nothing is read, so the source is pushed back."""
        buffers = self._landing.buffers
        gaps = () if buffers is None else buffers.untold()
        told = _lost_lines(self._flow, gaps, reading - 1) if gaps else None
        while True:
            try:
                limit = self._limit if self._live else None
                landed = self._landing.land(
                    self._flow,
                    self.last,
                    reading,
                    self._feeds,
                    blind,
                    final,
                    limit,
                    told,
                    may_rest=self._rests(reading, final),
                )
            except NoRoomError as full:
                self.full = full.why
                self._waking = BACK
                # A recorded feed is read by its own clock, so waiting costs nothing; the wall clock moves on.
                if self._live or self._stopped():
                    raise
                time.sleep(WAIT)
                self._held()
            except SequenceClosedError:
                # Another driver was faster. One that was overtaken stops here; whoever overtook goes on behind it.
                self._held()
            else:
                self.full = ""
                if buffers is not None:
                    buffers.tell_of_gaps()
                return landed


def _lost_lines(flow: Flow, gaps: tuple[Gap, ...], instant: int) -> pa.Table:
    """Write the ledger's lines of sequences that are gone; their places, from 0 down, come before those of all rows."""
    source, count = next(iter(flow.sources)), len(gaps)
    at, numbers = times(np.full(count, instant, dtype=np.int64)), list(range(1 - count, 1))
    said = {"stream": source, "operator": OPERATOR, "reason": "buffers_lost", "action": NOTED, "source": source}
    known: dict[str, object] = {name: [text] * count for name, text in said.items()}
    known |= {"landed_at": at, "arrival": at, "landed_place": numbers, "place": numbers, "key": ["{}"] * count}
    known["row"] = [
        canonical_json(
            {
                "first_sequence": gap.first,
                "last_sequence": gap.last,
                "problem": f"sequences {gap.first} to {gap.last} were in no buffer any more, and were given up",
            }
        )
        for gap in gaps
    ]
    columns = [
        pa.array(known[field.name], field.type) if field.name in known else pa.nulls(count, field.type)
        for field in LANDED_LEDGER
    ]
    return pa.Table.from_arrays(columns, schema=LANDED_LEDGER)
