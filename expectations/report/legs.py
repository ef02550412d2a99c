"""The section of a run in parallel regions: its legs from left to right, how far each is, and what waits before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from expectations.report.words import SECOND, count, counted, duration, listed

if TYPE_CHECKING:
    from expectations.report.facts import ReportFacts
    from expectations.report.words import ReportClock

KILOBYTE = 1_000
MOST_NAMED = 8
"""Streams of a leg that are named."""
NARROW = 2
"""Per cent of a bar that is seen where anything waits at all."""


@dataclass(frozen=True, kw_only=True)
class QueueFacts:
    """What waits between two legs."""

    writer: str
    crossing: tuple[str, ...]
    """Streams, and sources, that cross."""
    rows: int
    size: int
    """In bytes."""
    seconds: float
    """For how long the oldest of it has waited."""


@dataclass(frozen=True, kw_only=True)
class WaitFacts:
    """For whom a leg waits, since when, and why."""

    leg: str
    since: int
    """In ticks."""
    rows: int
    most: int


@dataclass(frozen=True, kw_only=True)
class LegFacts:
    """One leg of a run, as it was when the page was made."""

    name: str
    region: str
    streams: tuple[str, ...]
    commits: int
    sequence: int
    """The last sequence of the landing that it has taken."""
    upto: int | None
    """Up to where it has come, in ticks; None where it has taken nothing."""
    queues: tuple[QueueFacts, ...] = ()
    most: int | None = None
    """How many rows may wait for it, where that is known."""
    waits: WaitFacts | None = None


@dataclass(frozen=True, kw_only=True)
class QueueLine:
    """A queue as an arrow into a leg."""

    writer: str
    crossing: str
    tone: str
    words: str
    full: int | None
    """Per cent of what may wait; None where that is not known."""


@dataclass(frozen=True, kw_only=True)
class LegCard:
    """A leg as a box."""

    name: str
    of: str
    column: int
    streams: str
    stands: str
    queues: tuple[QueueLine, ...]
    waits: str


@dataclass(frozen=True, kw_only=True)
class LegsView:
    """What the template writes."""

    lead: str
    columns: int
    cards: tuple[LegCard, ...]


def legs_view(facts: ReportFacts, clock: ReportClock) -> LegsView | None:
    """Draw the legs of a run; none where it is in one piece."""
    if not facts.legs:
        return None
    columns = _columns(facts.legs)
    regions = list(dict.fromkeys(leg.region for leg in facts.legs))
    return LegsView(
        lead=f"{counted(len(facts.legs), 'leg')} (of {listed(regions)}), each with commits of its own, along the same "
        "landed sequences. What one has published for another waits in a queue.",
        columns=max(columns.values()),
        cards=tuple(_card(leg, columns[leg.name], facts.made_at, clock) for leg in facts.legs),
    )


def _columns(legs: tuple[LegFacts, ...]) -> dict[str, int]:
    """Give the column of each leg: one behind the last of those that it reads, which stand before it."""
    found: dict[str, int] = {}
    for leg in legs:
        found[leg.name] = 1 + max((found[queue.writer] for queue in leg.queues), default=0)
    return found


def _card(leg: LegFacts, column: int, now: int | None, clock: ReportClock) -> LegCard:
    reached = "has taken nothing yet" if leg.upto is None else f"up to {clock.instant(leg.upto // SECOND * SECOND)}"
    return LegCard(
        name=leg.name,
        of="" if leg.name == leg.region else f"of {leg.region}, behind the crossing",
        column=column,
        streams=_named(leg.streams) or "no stream: it takes what lands for the others",
        stands=f"{reached}; sequence {count(leg.sequence)}, {counted(leg.commits, 'commit')}",
        queues=tuple(_queue(queue, leg.most) for queue in leg.queues if queue.crossing),
        waits="" if leg.waits is None else _waits(leg.waits, now),
    )


def _named(names: tuple[str, ...]) -> str:
    more = f" and {counted(len(names) - MOST_NAMED, 'more', 'more')}" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _queue(queue: QueueFacts, most: int | None) -> QueueLine:
    bound = "" if most is None else f"; at most {counted(most, 'row')}"
    waiting = f"{counted(queue.rows, 'row')}, {_size(queue.size)}, {duration(round(queue.seconds) * SECOND)} behind"
    over = most is not None and queue.rows > most
    return QueueLine(
        writer=queue.writer,
        crossing=", ".join(queue.crossing),
        tone="bad" if over else "open" if queue.rows else "good",
        words=f"{waiting if queue.rows else 'nothing waits'}{bound}",
        full=None if most is None else min(100, max(NARROW * bool(queue.rows), round(100 * queue.rows / most))),
    )


def _waits(waits: WaitFacts, now: int | None) -> str:
    since = "" if now is None else f" since {duration(max(0, now - waits.since) // SECOND * SECOND)}"
    told = f"{counted(waits.rows, 'row')} behind, at most {count(waits.most)}"
    return f"waits for {waits.leg}{since}: {told}; the landing goes on"


def _size(size: int) -> str:
    """Write bytes as people do.

    >>> _size(800), _size(12_345), _size(2_345_678)
    ('800 bytes', '12 kB', '2.3 MB')
    """
    if size < KILOBYTE:
        return f"{size} bytes"
    thousands = size / KILOBYTE
    return f"{thousands:.0f} kB" if thousands < KILOBYTE else f"{thousands / KILOBYTE:.1f} MB"
