"""What one reading lands: everything that came in before it, as one closed sequence.

The landing itself says where it stands, so a reading that was planned twice lands once, and one that was planned and
never landed is landed by the next: cuts do not matter.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pipelines.engine.clock import wall_now
from pipelines.engine.columns import instant_text
from pipelines.engine.landing_errors import LandingError
from pipelines.flows.model import Clock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pipelines.engine.inbox import Inbox
    from pipelines.engine.landing import Landing
    from pipelines.engine.recording import Recording
    from pipelines.engine.sequence import Sequence
    from pipelines.flows.model import Flow


class StreamEndedError(LandingError):
    """Something is to land after the final punctuation."""

    def __init__(self, final: int, reading: int) -> None:
        """Keep the facts as attributes, in ticks."""
        super().__init__(final, reading)
        self.final, self.reading = final, reading

    def __str__(self) -> str:
        """Say what to do."""
        return (
            f"a stream must be silent after its end; this one ended at {instant_text(self.final)} and is to land "
            f"{instant_text(self.reading)}: play it into a run of its own (--run NAME)"
        )


LIMIT_ROWS = 1_000_000
"""Rows of a folder that one reading lands; one that leaves files behind makes the landing blind until it is through."""


class LiveLanding:
    """The landing of a live flow, one sequence a reading.

    Under the wall clock it records when it was blind: between its last reading before it stopped and the first after,
    and as long as it knows that files wait. A simulated clock knows no blind spans.

    Args:
        landing: what is landed already.
        flow: its sources and buckets.
        feeds: what `open_recordings` or `open_inboxes` gave, by source.
        start: the reading to go on from, in ticks.
        limit_rows: of each folder and reading.
        held: raises where the lease of the run is lost; asked before each reading lands. The landing runs beside the
            epochs, so it must be a driver's `state` of its own.
    """

    def __init__(  # noqa: PLR0913 - what a landing is made of
        self,
        landing: Landing,
        flow: Flow,
        feeds: Mapping[str, Recording | Inbox],
        start: int,
        limit_rows: int = LIMIT_ROWS,
        held: Callable[[], object] = lambda: None,
    ) -> None:
        """Land nothing yet."""
        self._landing, self._flow, self._feeds, self._limit = landing, flow, feeds, limit_rows
        self._held = held
        self._live = flow.clock is Clock.WALL
        self._deaf = set(flow.sources) if self._live and landing.last_reading() is not None else set()
        self._born = wall_now()
        self.last = start
        """The last reading, in ticks."""
        self.at = 0.0
        """Monotonic time at which it was landed, in seconds; 0 before the first."""
        self.backlog = 0
        """Files that wait to be landed."""

    def land(self, _: int, reading: int, final: int | None = None) -> Sequence | None:
        """Close the sequence of everything before a reading; None where that was done before.

        Args:
            _: the reading before as Spark planned it; the landing knows better.
            reading: in ticks.
            final: arrival of the final punctuation, where the stream ends here.

        Raises:
            LeaseLostError: another driver has taken the lease.
            StreamEndedError: the final punctuation has landed.
            LandingError: a feed cannot be read.
        """
        if reading <= self.last:
            return None
        self._held()
        ended = self._landing.final
        if ended is not None:
            raise StreamEndedError(ended, reading)
        blind = dict.fromkeys(self._deaf, ((self.last, reading),))
        sequence, waiting = self._landing.land(
            self._flow, self.last, reading, self._feeds, blind, final, self._limit if self._live else None
        )
        if reading >= self._born:
            # An earlier reading was planned by a process that died: nobody listened until this one began.
            self._deaf = {name for name, (left, _) in waiting.items() if left and self._live}
        self.backlog = sum(left + len(unsettled) for left, unsettled in waiting.values())
        self.last, self.at = reading, time.monotonic()
        return sequence
