"""The section of a run's three buffers: the last consistent state, and how each buffer is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from expectations.report.words import count, counted

if TYPE_CHECKING:
    from expectations.report.facts import ReportFacts
    from expectations.report.words import ReportClock


@dataclass(frozen=True, kw_only=True)
class BufferFacts:
    """One buffer, as it was when the page was made."""

    name: str
    place: str
    speaks: bool
    """Whether what it holds may be read."""
    why: str
    """What was found when it was last quarantined; empty where it never was."""
    times: int
    """How often it was quarantined."""
    depth: int
    """Sequences."""
    uncovered: int
    """Of these, those that no commit covers."""
    size: int
    """In bytes."""


@dataclass(frozen=True, kw_only=True)
class RegionFacts:
    """The region that the buffers feed."""

    commit: int
    """The last consistent state: the newest published commit."""
    at: int | None
    """When that was published, in ticks."""
    in_flight: int
    """Rows that landed and no commit covers."""
    buffers: tuple[BufferFacts, ...]
    gaps: tuple[tuple[int, int], ...]
    """First and last sequence of each loss that somebody accepted."""


@dataclass(frozen=True, kw_only=True)
class BufferLine:
    """One line of the table."""

    name: str
    tone: str
    state: str
    words: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class BuffersView:
    """What the template writes."""

    lead: str
    lines: tuple[BufferLine, ...]


def buffers_view(facts: ReportFacts, clock: ReportClock) -> BuffersView | None:
    """Tell how the buffers of a run are; none where it has none."""
    region = facts.region
    if region is None:
        return None
    since = "" if region.at is None else f", published {clock.instant(region.at)}"
    state = f"The last consistent state is commit {region.commit}{since}" if region.commit else "None is consistent yet"
    lost = "".join(f" Sequences {first} to {last} were lost, and given up." for first, last in region.gaps)
    return BuffersView(
        lead=f"{state}; {counted(region.in_flight, 'row')} in flight. Any two of the three buffers may be lost.{lost}",
        lines=tuple(map(_line, region.buffers)),
    )


def _line(buffer: BufferFacts) -> BufferLine:
    again = f", was rebuilt {counted(buffer.times, 'time')}" if buffer.times else ""
    return BufferLine(
        name=buffer.name,
        tone="good" if buffer.speaks else "bad",
        state="whole" if buffer.speaks else "does not count",
        words=(
            count(buffer.depth),
            count(buffer.uncovered),
            count(buffer.size),
            f"{buffer.place}{again}" if buffer.speaks else f"{buffer.place}: {buffer.why}",
        ),
    )
