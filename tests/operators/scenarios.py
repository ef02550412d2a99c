"""Random jobs for the laws, drawn so that they reach the edges: of readable time, of a buffer, of a rule.

Each takes any source of randomness with the methods of `random.Random`: Hypothesis's, whose draws shrink, or a seeded
one, so that two processes can draw the same job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.operators.advance_time import AdvanceTimePolicy, Late, LateEnd
from pipelines.operators.advance_time import AtEnd as AtEndOfTime
from pipelines.operators.heartbeat import HeartbeatPolicy
from pipelines.operators.merge import AtEnd, MergePolicy
from pipelines.operators.metronome import MetronomePolicy
from pipelines.operators.rows import INFINITY, MAX_TIME, MIN_TIME, NULL, Kind, Shape
from tests.operators.driving import Job
from tests.transcripts_model import IMPORTED, Given

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

SPAN = 120
"""Arrivals of a job lie within so many steps, so that no clock rings more than a few hundred times."""
SCALES = (1, 1, 1, 1_000_000, 10**13)
ORIGINS = (0, 0, -37, 10**15)


class Ground:
    """Where on the axis of time a job takes place, and the arrivals of its rows.

    Args:
        random: where draws come from.
    """

    def __init__(self, random: Random) -> None:
        """Choose the place."""
        self.random = random
        self.scale = random.choice(SCALES)
        origin = random.choice((*ORIGINS, MIN_TIME, MAX_TIME - SPAN * self.scale))
        self.at = self.first = origin
        self._places: dict[int, int] = {}

    def arrive(self) -> tuple[int, int]:
        """Give the next arrival and its place; ties are common."""
        step = self.random.choice((0, 0, 0, 1, 2, 9)) * self.scale
        self.at = min(self.at + step, self.first + SPAN * self.scale, MAX_TIME)
        self._places[self.at] = self._places.get(self.at, 0) + 1
        return self.at, self._places[self.at]

    def time(self) -> int:
        """Give an event time near the last arrival; now and then none, poison, or an edge of readable time."""
        draw = self.random.randint(0, 19)
        if draw == 0:
            return NULL
        if draw == 1:
            return self.random.choice((MIN_TIME, MIN_TIME + 1, -1, 0, MAX_TIME - 1, MAX_TIME))
        near = self.at + self.random.randint(-30, 30) * self.scale + self.random.choice((0, 0, 0, 1, -1))
        return min(max(near, MIN_TIME), MAX_TIME)

    def reading(self) -> Given | None:
        """Give a reading at or past the last arrival, strictly after the one before; None where there is no room."""
        if self.at >= MAX_TIME:
            return None
        self.at = min(self.at + self.random.choice((1, 1, 3 * self.scale)), MAX_TIME)
        self._places.clear()
        return Given(Kind.READING, "reading", "", "", self.at, 0, NULL, NULL, "")

    def end(self) -> Given:
        """Give the final punctuation."""
        return Given(Kind.FINAL, "final", "", "", self.at, 0, NULL, NULL, "")


def heartbeat(random: Random) -> Job:
    """Draw a job for a heartbeat: ties, poison, blind spans, retired keys, odd ratios."""
    ground = Ground(random)
    acceleration = random.choice(((1, 1), (1, 1), (3, 1), (1, 3), (7, 5), (10**9, 10**9 - 1)))
    policy = HeartbeatPolicy(
        interval=random.choice((2, 3, 10, 25)) * ground.scale + random.choice((0, 1)),
        slack=random.choice((0, 0, 1, 7, 40)) * ground.scale,
        acceleration=acceleration,
        max_ahead=random.choice((None, 0, 15, 60)) and random.choice((None, 15, 60 * ground.scale)),
        max_catch_up=random.choice((0, 1, 3, 20)),
        expire=random.choice((None, None, 5, 30 * ground.scale)),
    )
    blind = _blind(ground) if random.randint(0, 2) == 0 else ()
    kinds = (Kind.DATA,) * 8 + (Kind.START, Kind.END, Kind.TIMER, Kind.CTI)
    rows = _rows(ground, random.randint(0, 14), _keys(random), kinds, lambda _: "")
    return Job("heartbeat", policy, (*rows, *_close(ground)), (), blind)


def merge(random: Random) -> Job:
    """Draw a job for a merge: many ties, values that go back, ports nobody declared, flushes."""
    ground = Ground(random)
    ports = tuple("pqrst"[: random.choice((1, 2, 2, 3, 5))])
    at_end = random.choice((AtEnd.HOLD, AtEnd.FLUSH))
    strange = ("?",) if random.randint(0, 2) == 0 else ()
    kinds = (Kind.DATA,) * 4 + (Kind.TIMER, Kind.START, Kind.END)
    rows = _rows(ground, random.randint(0, 20), _keys(random), kinds, lambda _: random.choice((*ports, *strange)))
    return Job("merge", MergePolicy(ports=len(ports), at_end=at_end), (*rows, *_close(ground)), ports)


def advance_time(random: Random) -> Job:
    """Draw a job for advancing time: every shape and policy, reused and orphaned ids, CTIs of all three ways."""
    ground, shape = Ground(random), random.choice(tuple(Shape))
    policy = AdvanceTimePolicy(
        shape=shape,
        late=random.choice(tuple(Late)),
        events=random.choice((None, 1, 2, 5)),
        duration=random.choice((None, 1, 10 * ground.scale)),
        delay=random.choice((0, 0, 5 * ground.scale, -1, -20 * ground.scale, MAX_TIME - MIN_TIME)),
        late_end=random.choice(tuple(LateEnd)),
        at_end=random.choice(tuple(AtEndOfTime)),
        max_ahead=random.choice((None, None, 0, 20 * ground.scale)),
    )
    kinds = ((Kind.START, Kind.END) * 4 if shape is Shape.EDGE else (Kind.DATA,) * 8) + (Kind.TIMER, Kind.CTI)
    rows = _rows(ground, random.randint(0, 16), _keys(random), kinds, lambda kind: _way(random, kind))
    return Job("advance_time", policy, (*(_promise(random, row) for row in rows), *_close(ground)))


def metronome(random: Random) -> Job:
    """Draw a job for a metronome: readings near and far, blind spans, an end."""
    ground = Ground(random)
    interval = random.choice((2, 3, 10, 25)) * ground.scale + random.choice((0, 1))
    blind = _blind(ground) if random.randint(0, 1) else ()
    rows = []
    for _ in range(random.randint(1, 9)):
        ground.arrive()
        rows += [reading] if (reading := ground.reading()) else []
    return Job("metronome", MetronomePolicy(interval=interval), (*rows, *_close(ground)), (), blind)


SCENARIOS: dict[str, Callable[[Random], Job]] = {
    "heartbeat": heartbeat,
    "metronome": metronome,
    "merge": merge,
    "advance_time": advance_time,
}


def _keys(random: Random) -> tuple[str, ...]:
    return tuple(f"k{i}" for i in range(random.choice((1, 1, 2, 3, 40))))


def _way(random: Random, kind: Kind) -> str:
    return IMPORTED if kind is Kind.CTI and random.randint(0, 1) else ""


def _promise(random: Random, row: Given) -> Given:
    """Let a CTI stand at infinity now and then."""
    return row._replace(time=INFINITY) if row.kind is Kind.CTI and random.randint(0, 9) == 0 else row


def _rows(
    ground: Ground, count: int, keys: tuple[str, ...], kinds: tuple[Kind, ...], port: Callable[[Kind], str]
) -> list[Given]:
    random, rows = ground.random, []
    for number in range(count):
        if random.randint(0, 5) == 0 and (reading := ground.reading()):
            rows.append(reading)
        kind, (at, place) = random.choice(kinds), ground.arrive()
        time = ground.time()
        end = NULL if kind is Kind.START else _end(ground, time)
        event = random.choice("abc") if kind in (Kind.START, Kind.END) else ""
        rows.append(Given(kind, f"r{number}", random.choice(keys), port(kind), at, place, time, end, event))
    return rows


def _end(ground: Ground, time: int) -> int:
    if time == NULL or ground.random.randint(0, 9) == 0:
        return NULL
    return min(max(time + ground.random.randint(-3, 40) * ground.scale, MIN_TIME), MAX_TIME)


def _close(ground: Ground) -> list[Given]:
    end = [ground.end()] if ground.random.randint(0, 2) == 0 else []
    ground.at = min(ground.at + ground.random.choice((0, 10, 60)) * ground.scale, MAX_TIME)
    reading = ground.reading()
    return end + ([reading] if reading else [])


def _blind(ground: Ground) -> tuple[tuple[int, int], ...]:
    cuts = sorted(ground.random.sample(range(SPAN), 4))
    spans = [tuple(ground.first + at * ground.scale for at in pair) for pair in (cuts[:2], cuts[2:])]
    if ground.random.randint(0, 2) == 0:
        spans[1] = (spans[0][1], spans[1][1])
    return tuple((start, end) for start, end in spans)
