"""Whether sources and keys give anything: flowing, silent, disconnected or retired, since when, and what to do.

A page is read later than it is made, so the section says of which instant it speaks. Of many keys it counts the states
and names those of the longest silence.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from expectations.report.words import SECOND, count, counted, duration, listed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from expectations.report.facts import ReportFacts
    from expectations.report.words import ReportClock

TONES = {"flowing": "good", "silent": "open", "disconnected": "bad"}
"""How a state looks; every other is `past`."""
MISSED = ("silent", "disconnected", "retired")
"""States in which something is missed of a key."""
ALONE = "the only one"


@dataclass(frozen=True, kw_only=True)
class KeyPresence:
    """One key that is not flowing."""

    name: str
    """Its values; empty where all rows are of one key."""
    state: str
    since: int | None
    last: int | None
    """When its last row came in."""


@dataclass(frozen=True, kw_only=True)
class KeysPresence:
    """The keys of a source, as its heartbeat has them."""

    stream: str
    """The heartbeat's."""
    states: Mapping[str, int]
    """How many keys, by state."""
    longest: tuple[KeyPresence, ...] = ()
    """Those of the longest silence, the longest first."""
    remedies: Mapping[str, str] = field(default_factory=dict)
    """What to do, by state; none of a state in which nothing is to do."""


@dataclass(frozen=True, kw_only=True)
class SourcePresence:
    """One source: what holds of it, since when, why, and what to do; None where nothing is known or to do."""

    name: str
    state: str
    since: int | None
    why: str
    do: str | None
    keys: KeysPresence | None = None


@dataclass(frozen=True, kw_only=True)
class PresenceTable:
    """What holds of the sources of a live run at one instant."""

    at: int
    """On the flow's clock, in ticks."""
    recorded: bool
    """Whether that clock is of a recording that is played."""
    sources: tuple[SourcePresence, ...]


@dataclass(frozen=True, kw_only=True)
class StateLine:
    """A row of a table: who, what holds, how it looks, since when, and why or what to do."""

    name: str
    state: str
    tone: str
    since: str
    lasted: str
    words: tuple[str, str]
    """Of a source why, of a key when its last row came; then what to do."""


@dataclass(frozen=True, kw_only=True)
class KeysView:
    """The keys of one source: their numbers in a sentence, and a line for each of the longest silences."""

    source: str
    sentence: str
    lines: tuple[StateLine, ...]


@dataclass(frozen=True, kw_only=True)
class PresenceView:
    """What the template writes."""

    lead: str
    sources: tuple[StateLine, ...]
    keys: tuple[KeysView, ...]


def presence_view(facts: ReportFacts, clock: ReportClock) -> PresenceView | None:
    """Tell what holds of each source and key; none where nothing ever ran live."""
    found = facts.presence
    if found is None:
        return None
    whose = "on the recording's clock" if found.recorded else "when this page was made"
    return PresenceView(
        lead=f"As it stood at {clock.instant(_second(found.at))}, {whose}. Silent is not disconnected: a silent source "
        "is listened to and gives nothing new.",
        sources=tuple(_source(each, found.at, clock) for each in found.sources),
        keys=tuple(_keys(each.name, each.keys, found.at, clock) for each in found.sources if each.keys is not None),
    )


def _source(source: SourcePresence, at: int, clock: ReportClock) -> StateLine:
    return _line(source.name, source.state, source.since, at, clock, (source.why, source.do or "nothing"))


def _keys(name: str, keys: KeysPresence, at: int, clock: ReportClock) -> KeysView:
    numbers = listed([f"{count(number)} {state}" for state, number in keys.states.items()])
    every = sum(keys.states.values())
    untold = sum(keys.states.get(state, 0) for state in MISSED) - len(keys.longest)
    rest = f" ({counted(untold, 'more is', 'more are')} not flowing)" if untold else ""
    named = f" Those of the longest silence{rest}:" if keys.longest else ""
    lines = tuple(_key(key, keys.remedies.get(key.state, "nothing"), at, clock) for key in keys.longest)
    sentence = f"{counted(every, 'key')} in {keys.stream}: {numbers}.{named}"
    return KeysView(source=name, sentence=sentence, lines=lines)


def _key(key: KeyPresence, do: str, at: int, clock: ReportClock) -> StateLine:
    last = "not known" if key.last is None else clock.instant(_second(key.last))
    return _line(key.name or ALONE, key.state, key.since, at, clock, (last, do))


def _line(name: str, state: str, since: int | None, at: int, clock: ReportClock, words: tuple[str, str]) -> StateLine:  # noqa: PLR0913 - one row
    lasted = "" if since is None else f"for {duration(max(_second(at) - _second(since), 0))}"
    return StateLine(
        name=name,
        state=state,
        tone=TONES.get(state, "past"),
        since="not known" if since is None else clock.instant(_second(since)),
        lasted=lasted,
        words=words,
    )


def _second(tick: int) -> int:
    return tick // SECOND * SECOND
