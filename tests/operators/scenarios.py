"""Random jobs for the laws, drawn so that they reach the edges: of readable time, of a buffer, of a rule.

Each takes any source of randomness with the methods of `random.Random`: Hypothesis's, whose draws shrink, or a seeded
one, so that two processes can draw the same job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.operators.advance_time import AdvanceTimePolicy, Late, LateEnd, PromiseAtEnd
from pipelines.operators.alter_duration import AlterDurationPolicy
from pipelines.operators.deduplicate import DeduplicatePolicy
from pipelines.operators.dispatch import DispatchPolicy, DispatchStyle
from pipelines.operators.filter import FilterPolicy
from pipelines.operators.heartbeat import HeartbeatPolicy
from pipelines.operators.interleave import InterleavePolicy
from pipelines.operators.join import JoinPolicy
from pipelines.operators.loop import LoopPolicy
from pipelines.operators.merge import Ahead, MergeAtEnd, MergedCtis, MergePolicy
from pipelines.operators.metronome import MetronomePolicy
from pipelines.operators.project import ProjectPolicy
from pipelines.operators.quarantine import QuarantinePolicy, Rule
from pipelines.operators.rows import INFINITY, MAX_TIME, MIN_TIME, NULL, Kind, Shape
from pipelines.operators.shift_time import ShiftTimePolicy
from pipelines.operators.union import UnionPolicy
from pipelines.operators.window import WindowPolicy
from tests.operators.driving import Job
from tests.transcripts_model import IMPORTED, REFUSED, TOO_OFTEN, Given

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
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
    """Draw a job for a merge: many ties, values that go back, ports nobody declared, flushes, CTIs of each way."""
    ground = Ground(random)
    ports = tuple("pqrst"[: random.choice((1, 2, 2, 3, 5))])
    at_end = random.choice((MergeAtEnd.HOLD, MergeAtEnd.FLUSH))
    strange = ("?",) if random.randint(0, 2) == 0 else ()
    ctis = random.choice((MergedCtis.PASS, MergedCtis.OLDEST, MergedCtis.OLDEST, MergedCtis.OF_PARTS))
    kinds = (Kind.DATA,) * 4 + (Kind.TIMER, Kind.START, Kind.END) + (Kind.CTI,) * (0 if ctis is MergedCtis.PASS else 4)
    rows = _rows(ground, random.randint(0, 20), _keys(random), kinds, lambda _: random.choice((*ports, *strange)))
    rows = [_promise(random, row._replace(time=row.at) if _is_timeless_cti(row) else row) for row in rows]
    bound = random.choice(((None, Ahead.DROP), (0, Ahead.DIVERT), (3, Ahead.DROP), (15 * ground.scale, Ahead.DIVERT)))
    policy = MergePolicy(ports=len(ports), at_end=at_end, max_ahead=bound[0], ahead=bound[1], ctis=ctis)
    return Job("merge", policy, (*rows, *_close(ground)), ports)


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
        at_end=random.choice(tuple(PromiseAtEnd)),
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


def passing(random: Random) -> Job:
    """Draw a job for a filter: some rows are refused, whatever they are."""
    rows = _passing_rows(random)
    events = (Kind.DATA, Kind.START, Kind.END)
    refused = [row._replace(port=REFUSED) if row.kind in events and random.randint(0, 2) == 0 else row for row in rows]
    return Job("filter", FilterPolicy(where="true"), tuple(refused))


def quarantine(random: Random) -> Job:
    """Draw a job for a quarantine: some rows break a check, whatever they are."""
    return Job("quarantine", QuarantinePolicy(rules=(Rule("a check", "true"),)), passing(random).rows)


def loop(random: Random) -> Job:
    """Draw a job for a loop: some rows went round as often as they may."""
    rows = (row._replace(port=TOO_OFTEN) if row.port == REFUSED else row for row in passing(random).rows)
    return Job("loop", LoopPolicy(entry="x", out="out", back="back"), tuple(rows))


def project(random: Random) -> Job:
    """Draw a job for a projection, which leaves everything as it is that a scan sees."""
    return Job("project", ProjectPolicy(columns=("x=1",)), tuple(_passing_rows(random)))


def shift_time(random: Random) -> Job:
    """Draw a job for a shift: near, far, and beyond the edges of readable time."""
    shift = random.choice((0, 1, -1, 10**7, -(10**13), MAX_TIME - MIN_TIME, MIN_TIME - MAX_TIME, 10**15))
    return Job("shift_time", ShiftTimePolicy(shift=shift), tuple(_passing_rows(random)))


def alter_duration(random: Random) -> Job:
    """Draw a job for a duration: one tick, and all readable time."""
    duration = random.choice((1, 10**6, 10**13, MAX_TIME - MIN_TIME))
    return Job("alter_duration", AlterDurationPolicy(duration=duration), tuple(_passing_rows(random)))


def union(random: Random) -> Job:
    """Draw a job for a union: two sides or three, each of a shape of its own, timers, open events, late rows."""
    ports = tuple("pqr"[: random.choice((2, 2, 3))])
    shapes = tuple(random.choice(tuple(Shape)) for _ in ports)
    return Job(
        "union", UnionPolicy(shapes=shapes), tuple(meeting_rows(random, dict(zip(ports, shapes, strict=True)))), ports
    )


def interleave(random: Random) -> Job:
    """Draw a job for an interleave: two sides or three of one shape, timers, CTIs of some sides or of all."""
    ports = tuple("pqr"[: random.choice((2, 2, 3))])
    rows = meeting_rows(random, dict.fromkeys(ports, random.choice(tuple(Shape))))
    return Job("interleave", InterleavePolicy(ports=len(ports)), tuple(rows), ports)


def join(random: Random) -> Job:
    """Draw a job for a join: every pair of shapes, values that are equal, that are not, and null."""
    shapes = {port: random.choice(tuple(Shape)) for port in "lr"}
    rows = meeting_rows(random, shapes, random.choice((("",), ("a", "b"), ("a", "a", "a", None))))
    return Job("join", JoinPolicy(shapes=tuple(shapes.values())), tuple(rows), tuple(shapes))


def deduplicate(random: Random) -> Job:
    """Draw a job for a deduplicate: rows that come again soon and late, without a time, far ahead, and edges."""
    ground = Ground(random)
    policy = DeduplicatePolicy(
        within=random.choice((1, 5, 20, 200)) * ground.scale,
        on=random.choice((("x",), ("x",), ())),
        max_ahead=random.choice((None, 0, 15 * ground.scale)),
        max_kept=100,
    )
    kinds = (*random.choice(((Kind.DATA,) * 8, (Kind.START, Kind.END) * 4)), Kind.TIMER, Kind.CTI)
    rows = _rows(ground, random.randint(0, 24), _keys(random)[:3], kinds, lambda _: "")
    told: list[Given] = []
    for row in rows:
        told.append(_promise(random, _again(random, row, [each for each in told if each.kind is row.kind])))
    return Job("deduplicate", policy, (*told, *_close(ground)))


def _again(random: Random, row: Given, before: Sequence[Given]) -> Given:
    """Give a row as it is, or as one of its kind that came before."""
    if row.kind in (Kind.CTI, Kind.TIMER):
        return row._replace(time=row.at if row.time == NULL else row.time)
    if before and random.randint(0, 2):
        one = random.choice(before)
        return row._replace(key=one.key, time=one.time, end=one.end, event=one.event, on=one.on)
    return row._replace(on=random.choice(("a", "b", None)))


MEASURES = (
    "rows=count",
    "known=count(whole)",
    "sum=sum(whole)",
    "least=min(whole)",
    "most=max(real)",
    "mean=mean(real)",
)


def window(random: Random) -> Job:
    """Draw a job for windows: tumbling, hopping and with gaps, over every shape, by group."""
    ground, shape = Ground(random), random.choice(tuple(Shape))
    size = max(1, random.choice((1, 3, 10, 25)) * ground.scale + random.choice((0, 0, 1, -1)))
    hop = random.choice((size, size, max(1, size // 3), max(1, size // 2), 2 * size, size + 1, 7 * ground.scale))
    policy = WindowPolicy(shape=shape, size=size, hop=hop, measures=MEASURES, max_windows=random.choice((1, 4, 60, 60)))
    rows = meeting_rows(random, {"": shape}, random.choice((("",), ("a", "b"), ("a", "b", "c", None))), ground)
    return Job("window", policy, tuple(rows))


def meeting_rows(
    random: Random, shapes: Mapping[str, Shape], on: Sequence[str | None] = ("",), ground: Ground | None = None
) -> list[Given]:
    """Draw rows of sides with CTIs near the arrivals, so that some events are late and most can meet.

    Args:
        random: where draws come from.
        shapes: of the events of each side.
        on: what rows are matched or grouped by.
        ground: where on the axis of time they lie; drawn unless given.
    """
    ground, keys = ground or Ground(random), _keys(random)[: random.choice((1, 1, 3))]
    rows: list[Given] = []
    for number in range(random.randint(0, 40)):
        if random.randint(0, 9) == 0 and (reading := ground.reading()):
            rows.append(reading)
        (at, place), port = ground.arrive(), random.choice(tuple(shapes))
        edges = shapes[port] is Shape.EDGE
        kind = random.choice(
            (*((Kind.START, Kind.END) * 4 if edges else (Kind.DATA,) * 8), *(Kind.CTI,) * 5, Kind.TIMER)
        )
        time, end = _lifetime(ground, kind)
        event = random.choice("ab") if kind in (Kind.START, Kind.END) else ""
        value = random.choice((None, 0, 1, 2, -5, 2**62))
        given = Given(kind, f"r{number}", random.choice(keys), port, at, place, time, end, event)
        rows.append(given._replace(on=random.choice(on), value=value))
    return [*rows, *_close(ground)]


def _lifetime(ground: Ground, kind: Kind) -> tuple[int, int]:
    """Give the time and end of a row whose kind says which it has."""
    random, scale = ground.random, ground.scale
    if kind is Kind.CTI:
        moved = min(max(ground.at + random.randint(-25, 5) * scale, MIN_TIME), MAX_TIME)
        return (INFINITY if random.randint(0, 29) == 0 else moved), NULL
    time = ground.time()
    if kind is Kind.TIMER:
        return (ground.at if time == NULL else time), NULL
    if kind is Kind.START:
        return time, NULL
    end = _end(ground, time)
    return (random.choice((NULL, time)), end) if kind is Kind.END else (time, end)


def _passing_rows(random: Random) -> list[Given]:
    ground = Ground(random)
    kinds = (Kind.DATA,) * 4 + (Kind.START, Kind.END, Kind.TIMER, Kind.CTI, Kind.CTI)
    rows = _rows(ground, random.randint(0, 14), _keys(random), kinds, lambda _: "")
    timed = [
        row if row.time != NULL or row.kind not in (Kind.CTI, Kind.TIMER) else row._replace(time=row.at) for row in rows
    ]
    return [*(_promise(random, row) for row in timed), *_close(ground)]


def dispatch(random: Random) -> Job:
    """Draw a job for a dispatch: each style that one row or their number says, rows for one instance and for all."""
    style = random.choice((DispatchStyle.IN_TURN, DispatchStyle.BROADCAST, DispatchStyle.NUMERIC))
    ports = tuple("012"[: random.choice((1, 2, 3))])
    numeric = "n" if style is DispatchStyle.NUMERIC else ""
    policy = DispatchPolicy(
        style=style, instances=len(ports), instance=random.randrange(len(ports)), numeric=numeric, of=()
    )
    places = (*ports, "") if style is DispatchStyle.NUMERIC else ("",)
    rows = meeting_rows(random, dict.fromkeys(places, random.choice(tuple(Shape))))
    return Job("dispatch", policy, tuple(rows), ports if style is DispatchStyle.NUMERIC else ())


SCENARIOS: dict[str, Callable[[Random], Job]] = {
    "heartbeat": heartbeat,
    "metronome": metronome,
    "merge": merge,
    "advance_time": advance_time,
    "filter": passing,
    "quarantine": quarantine,
    "project": project,
    "shift_time": shift_time,
    "alter_duration": alter_duration,
    "union": union,
    "interleave": interleave,
    "join": join,
    "window": window,
    "deduplicate": deduplicate,
    "dispatch": dispatch,
    "loop": loop,
}


def _keys(random: Random) -> tuple[str, ...]:
    return tuple(f"k{i}" for i in range(random.choice((1, 1, 2, 3, 40))))


def _way(random: Random, kind: Kind) -> str:
    return IMPORTED if kind is Kind.CTI and random.randint(0, 1) else ""


def _is_timeless_cti(row: Given) -> bool:
    return row.kind is Kind.CTI and row.time == NULL


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
