"""Where readings come from: a clock is a source, and its offset is the reading.

A wall clock reads the machine's; a simulated clock plays recorded time, moved by wall time times a speed. Both only
ever give readings that increase, across restarts too: they go on from the last reading that was recorded.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pipelines.errors import PulselineError
from pipelines.operators.rows import TICKS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Callable

NANOS_PER_TICK = 1_000
DEFAULT_MAX_JUMP = 3_600 * TICKS_PER_SECOND


@dataclass(eq=False)
class ClockJumpError(PulselineError, RuntimeError):
    """The wall clock moved in a way that time does not.

    In ticks.
    """

    reading: int
    expected: int
    allowed: int

    def __str__(self) -> str:
        from pipelines.engine.columnar.columns import instant_text

        return (
            f"the clock must move with the machine's monotonic clock; it reads {instant_text(self.reading)} where "
            f"{instant_text(self.expected)} was expected, and max_jump allows {self.allowed / TICKS_PER_SECOND:g} s: "
            "nothing was landed under that reading; set the machine's clock right and start the stream again"
        )


class Readings(Protocol):
    """Whoever says what time it is."""

    def read(self, last: int) -> int:
        """Give a reading after `last`, or `last` where time has not moved; in ticks."""


def wall_now() -> int:
    """Read the machine's clock, in ticks: all of the product that asks it what time it is does so here."""
    return time.time_ns() // NANOS_PER_TICK


def monotonic_now() -> int:
    """Read a clock that nobody can set, in ticks; all processes of one boot of the machine read the same one."""
    return time.monotonic_ns() // NANOS_PER_TICK


BEGAN_APART = wall_now() - monotonic_now()
"""How the two clocks stood to each other when this process began, in ticks."""


@dataclass
class GuardedClock:
    """The machine's clock, held against one that nobody can set.

    Args:
        max_jump: how far it may move away from the monotonic clock, in ticks.
        wall: reads the clock.
        monotonic: reads the clock that nobody can set.
    """

    max_jump: int = DEFAULT_MAX_JUMP
    wall: Callable[[], int] = wall_now
    monotonic: Callable[[], int] = monotonic_now

    def __post_init__(self) -> None:
        """Note how the two clocks stand to each other.

        The machine's were looked at when the process began: a leap while a command starts is one, too, and all of its
        guards see the same.
        """
        machines = self.wall is wall_now and self.monotonic is monotonic_now
        self._apart = BEGAN_APART if machines else self.wall() - self.monotonic()

    def _look(self) -> tuple[int, int]:
        """Give the wall's time, and what it would be had nobody set it."""
        return self.wall(), self.monotonic() + self._apart


@dataclass
class WallClock(GuardedClock):
    """The machine's clock, which stops whoever reads it where it was set."""

    def read(self, last: int) -> int:
        """Give the wall's time, or `last` while the wall is behind it.

        Raises:
            ClockJumpError: the wall moved away from the monotonic clock, or stands far behind the last reading.
        """
        now, expected = self._look()
        if abs(now - expected) > self.max_jump:
            raise ClockJumpError(now, expected, self.max_jump)
        if last - now > self.max_jump:
            raise ClockJumpError(now, last, self.max_jump)
        return max(now, last)


@dataclass
class SteadyClock(GuardedClock):
    """The machine's clock for whoever cannot stop at a jump: it goes on as before one that is too large."""

    def __call__(self) -> int:
        """Give the wall's time, or what it would be had nobody set it."""
        now, expected = self._look()
        return now if abs(now - expected) <= self.max_jump else expected


@dataclass
class SimulatedClock:
    """Recorded time up to `end`, moved by wall time times `speed`; after a restart it goes on from the last reading.

    Args:
        end: the last reading, in ticks.
        speed: recorded time per wall time; 0 jumps to the end at once.
        monotonic: reads a clock that nobody can set, in ticks.
    """

    end: int
    speed: float = 1.0
    monotonic: Callable[[], int] = monotonic_now

    def __post_init__(self) -> None:
        """Start when the first reading is asked for."""
        self._begun: tuple[int, int] | None = None

    def read(self, last: int) -> int:
        """Give the recorded time that it is now."""
        if self.speed == 0:
            return max(last, self.end)
        if self._begun is None:
            self._begun = (self.monotonic(), last)
        wall, recorded = self._begun
        now = recorded + int((self.monotonic() - wall) * self.speed)
        return max(last, min(now, self.end))
