"""What a page remembers of an expectation: how it went by interval, and what changed since the verdicts before.

An interval that was judged several times counts as it was judged last; what was found of it before is not forgotten, so
what a second run has mended is said to be fixed, and when something first failed stays known.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

from expectations.laws import BLOCKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

MOST = 400
"""Intervals that are remembered: the newest."""
Span = tuple[int, int]


class VerdictOutcome(StrEnum):
    """What came of one verdict."""

    HELD = "held"
    """Nothing breaks it."""
    WARNED = "warned"
    """It does not hold, and only warns."""
    BROKEN = "broken"
    """It does not hold, and blocks."""


class VerdictStanding(StrEnum):
    """How an expectation stands beside the interval before."""

    HOLDS = "holds"
    """As before."""
    FIXED = "fixed"
    """It did not hold in the interval before, or when this one was judged before."""
    NEW = "newly failing"
    """It held in the interval before, or nobody had judged it yet."""
    STILL = "still failing"
    """Neither in the interval before nor now."""


@dataclass(frozen=True, kw_only=True)
class PastVerdict:
    """What came of one expectation in one interval, span or commit."""

    start: int
    """Of the span, in ticks."""
    end: int
    commit: int | None
    """The commit that was judged; None where a span was."""
    at: int
    """Wall time of the judgement, in ticks."""
    held: bool
    severity: str
    """`blocking`, or `warning`."""
    looked_at: int
    unexpected: int
    stands: bool = True
    """Whether the rows that were judged are there still: no other commit took their place."""

    @property
    def span(self) -> Span:
        """Give [start, end), in ticks."""
        return self.start, self.end

    def covers(self, other: PastVerdict) -> bool:
        """Say whether the span of another verdict lies within its own."""
        return self.start <= other.start and other.end <= self.end

    @property
    def outcome(self) -> VerdictOutcome:
        """Say what came of it."""
        if self.held:
            return VerdictOutcome.HELD
        return VerdictOutcome.BROKEN if self.severity == BLOCKING else VerdictOutcome.WARNED

    @property
    def share(self) -> float | None:
        """Give the share of the rows that break it, from 0 to 1; None where it is not about rows, or held."""
        if self.held or not self.unexpected or not self.looked_at:
            return None
        return min(1.0, self.unexpected / self.looked_at)


@dataclass(frozen=True)
class Memory:
    """All verdicts of one expectation on one stream.

    >>> day = lambda n, held, at: PastVerdict(
    ...     start=n, end=n + 1, commit=None, at=at, held=held, severity="blocking", looked_at=4, unexpected=1 - held
    ... )
    >>> memory = Memory((day(0, True, 1), day(1, False, 2), day(2, False, 3)))
    >>> str(memory.standing), memory.since.start, memory.first_failed.start, memory.last_failed.start
    ('still failing', 1, 1, 2)
    >>> str(Memory((*memory.verdicts, day(2, True, 4))).standing)
    'fixed'
    """

    verdicts: tuple[PastVerdict, ...] = ()

    @cached_property
    def points(self) -> tuple[PastVerdict, ...]:
        """Give the newest verdict of each interval, in the order of time.

        A longer span whose intervals have verdicts of their own is left out, unless it alone found something.
        """
        return tuple(each for each in self._newest if each.span not in self._wide)

    @cached_property
    def _newest(self) -> list[PastVerdict]:
        newest = {each.span: each for each in sorted(self.verdicts, key=lambda each: each.at)}
        return sorted(newest.values(), key=lambda each: (each.end, each.at, -each.start))[-MOST:]

    @cached_property
    def _covered(self) -> dict[Span, bool]:
        """Say of each longer span whose parts have verdicts of their own, which cover it, whether these tell of it."""
        ends = self._newest
        shortest = min((each.end - each.start for each in ends), default=0)
        # What is shorter than two others has no parts: days are looked at once, not with all others.
        wide = {each: _parts_of(each, ends) for each in ends if each.end - each.start >= 2 * shortest}
        longer = {each.span for each, parts in wide.items() if parts}
        return {
            each.span: each.held or not all(part.held for part in parts if part.span not in longer)
            for each, parts in wide.items()
            if parts
        }

    @cached_property
    def _wide(self) -> set[Span]:
        """Give the longer spans that are told by their parts."""
        return {span for span, is_told in self._covered.items() if is_told}

    def before(self, place: int) -> PastVerdict | None:
        """Give the verdict of the interval before a point, or of the same one where it is the first.

        An interval is held against one, and what alone found something of many against another that did, if any.
        """
        earlier = self._place_before(place)
        return self.judged_before(place) if earlier is None else self.points[earlier]

    def _place_before(self, place: int) -> int | None:
        alone = [each.span in self._covered for each in self.points[: place + 1]]
        alike = [earlier for earlier, each in enumerate(alone[:-1]) if each == alone[-1]]
        return max(alike, default=place - 1 if place else None)

    def judged_before(self, place: int) -> PastVerdict | None:
        """Give what was found of a point's interval when it was last judged before."""
        now = self.points[place]
        earlier = (each for each in self.verdicts if each.span == now.span and each.at < now.at)
        return max(earlier, key=lambda each: each.at, default=None)

    def standing_at(self, place: int) -> VerdictStanding:
        """Say how a point stands beside the one before."""
        now, before, again = self.points[place], self.before(place), self.judged_before(place)
        failed = [each is not None and not each.held for each in (before, again)]
        if now.held and before is not None and self._was_found_behind(before, now):
            # Nothing was wrong there when this was judged.
            failed[0] = False
        if now.held:
            return VerdictStanding.FIXED if any(failed) else VerdictStanding.HOLDS
        return VerdictStanding.STILL if failed[0] else VerdictStanding.NEW

    @property
    def standing(self) -> VerdictStanding:
        """Say how the newest interval stands beside the one before."""
        return self.standing_at(len(self.points) - 1) if self.points else VerdictStanding.HOLDS

    @property
    def since(self) -> PastVerdict | None:
        """Give the first of the intervals in which it has failed without a break up to now; None where it holds."""
        return self.since_at(len(self.points) - 1)

    def since_at(self, place: int) -> PastVerdict | None:
        """Give the first of the points in which it failed without a break up to one of them; None where it held."""
        found, at = None, place if self.points else None
        while at is not None and not self.points[at].held:
            found, at = self.points[at], self._place_before(at)
        return found

    @cached_property
    def failures(self) -> tuple[PastVerdict, ...]:
        """Give each verdict that found something, in the order of time; of a span that its parts tell, those."""
        found = (each for each in self.verdicts if not each.held and each.span not in self._wide)
        return tuple(sorted(found, key=lambda each: (each.end, each.at)))

    def found_at(self, at: int) -> tuple[PastVerdict, ...]:
        """Give the points of which a check of a longer span tells that they fail, and no verdict of their own does.

        Args:
            at: when the check was made, in ticks.
        """
        wide = [each for each in self.verdicts if each.at == at and each.span in self._covered and not each.held]
        return tuple(
            point
            for place, point in enumerate(self.points)
            if not point.held and point.stands and point.commit is None and not self._failed_before(place)
            if any(each.span != point.span and each.covers(point) for each in wide)
        )

    def _was_found_behind(self, failed: PastVerdict, now: PastVerdict) -> bool:
        """Say whether a failure was found by a check of a longer span, later than another interval was judged."""
        if failed.held or failed.commit is not None:
            return False
        first = [each for each in self.verdicts if each.span == failed.span and not each.held]
        wide = [each for each in self.verdicts if each.span in self._covered and not each.held and each.covers(failed)]
        return len(first) == 1 and any(each.at >= now.at for each in wide)

    def _failed_before(self, place: int) -> bool:
        before = self.judged_before(place)
        return before is not None and not before.held

    @property
    def first_failed(self) -> PastVerdict | None:
        """Give the earliest failure that is known."""
        return self.failures[0] if self.failures else None

    @property
    def last_failed(self) -> PastVerdict | None:
        """Give the latest failure that is known."""
        return self.failures[-1] if self.failures else None

    def is_mended(self, failure: PastVerdict) -> bool:
        """Say whether the interval of a failure was judged again and holds."""
        return any(each.held and each.at > failure.at for each in self.verdicts if each.span == failure.span)


def _parts_of(wide: PastVerdict, every: Iterable[PastVerdict]) -> list[PastVerdict]:
    """Give the verdicts of parts of a span where they cover it; else none."""
    parts = [each for each in every if each.span != wide.span and wide.start <= each.start and each.end <= wide.end]
    reached = wide.start
    for each in sorted(parts, key=lambda each: each.start):
        if each.start > reached:
            return []
        reached = max(reached, each.end)
    return parts if reached >= wide.end else []


@dataclass(frozen=True, kw_only=True)
class VerdictChanges:
    """What changed with the newest verdicts, beside those before; each is stream and name of an expectation."""

    now: Span
    """The interval that was judged last."""
    before: Span
    """The one that it is held against; the same where it was judged again."""
    broken: tuple[tuple[str, str], ...] = ()
    """Newly failing."""
    fixed: tuple[tuple[str, str], ...] = ()
    still: tuple[tuple[str, str, Span], ...] = ()
    """Failing as before, and the interval since which."""
    together: Mapping[tuple[str, str], Span] = field(default_factory=dict)
    """Those that fail of several intervals together and not of the last one, and of which."""
    earlier: tuple[tuple[str, str, Span], ...] = ()
    """What the newest check, of many intervals, alone found of another than is told, and of which."""


def changes(memories: Mapping[tuple[str, str], Memory], *, of_last: bool = False) -> VerdictChanges | None:
    """Say what the newest verdicts found otherwise than those before.

    The interval that was judged last is held against the one before it; one in the middle of the history, which was
    judged again, against what was found of it before.

    Args:
        memories: by stream and name of an expectation.
        of_last: tell of the last interval, whichever was judged last: the page of one is about that.

    Returns:
        None where there is nothing to hold the newest verdicts against.
    """
    every = [each for memory in memories.values() for each in memory.points]
    if not every:
        return None
    newest, last = max(every, key=lambda each: (each.at, each.end)), max(each.end for each in every)
    again = _judged_again(memories, newest.span) if newest.end < last and not of_last else []
    found = _changes(again or _gone_on(memories, last))
    if found is not None:
        first = dict(_asked_first(memories, newest.span if again else None, last))
        together = {name: span for name, span in first.items() if span != found.now}
        found = replace(found, broken=(*found.broken, *first), together={**found.together, **together})
    if found is None or of_last:
        return found
    at = max(each.at for memory in memories.values() for each in memory.verdicts)
    return replace(found, earlier=tuple(_found_earlier(memories, at, found)))


def _found_earlier(
    memories: Mapping[tuple[str, str], Memory], at: int, told: VerdictChanges
) -> Iterator[tuple[str, str, Span]]:
    """Give what the newest check found of intervals before the last, or but for one that was judged again."""
    since = {(table, name): span for table, name, span in told.still}
    is_again = told.now == told.before
    for name, memory in memories.items():
        upto = since.get(name, told.now)
        # What is fixed did not hold in the interval before: that is said.
        said = told.now if is_again else told.before if name in told.fixed else None
        found = (point.span for point in memory.found_at(at) if is_again or point.span < upto)
        yield from ((*name, span) for span in found if span != said)


@dataclass(frozen=True, kw_only=True)
class HeldAgainst:
    """An expectation in an interval, held against what was found before."""

    name: tuple[str, str]
    now: PastVerdict
    before: PastVerdict
    standing: VerdictStanding
    since: Span
    """The first interval in which it has failed without a break."""


def _gone_on(memories: Mapping[tuple[str, str], Memory], end: int) -> list[HeldAgainst]:
    """Hold the last interval against the one before it."""
    found = []
    for name, memory in memories.items():
        place = len(memory.points) - 1
        is_asked = place >= 0 and memory.points[place].end == end and memory.points[place].stands
        before = memory.before(place) if is_asked else None
        if before is not None:
            found.append(_compared(name, memory, place, before, memory.standing_at(place)))
    # What was never asked of an interval before is held against itself: that says nothing of the others.
    return [each for each in found if each.before.span != each.now.span] or found


def _asked_first(
    memories: Mapping[tuple[str, str], Memory], again: Span | None, end: int
) -> Iterator[tuple[tuple[str, str], Span]]:
    """Name what newly fails and is held against nothing, and of which span: it was never asked of that before.

    Args:
        memories: by stream and name of an expectation.
        again: the interval in the middle of the history that was judged last; None where that is the last one.
        end: of the last one.
    """
    for name, memory in memories.items():
        for place, each in enumerate(memory.points):
            is_asked = each.span == again if again else place == len(memory.points) - 1 and each.end == end
            if each.held or not each.stands or not is_asked:
                continue
            known = memory.judged_before(place) if again else memory.before(place)
            if known is None and memory.standing_at(place) is VerdictStanding.NEW:
                yield name, each.span


def _judged_again(memories: Mapping[tuple[str, str], Memory], span: Span) -> list[HeldAgainst]:
    """Hold an interval against what was found of it before."""
    found = []
    for name, memory in memories.items():
        # What nobody asked of its rows of now says nothing of them.
        place = next((place for place, each in enumerate(memory.points) if each.span == span and each.stands), None)
        before = None if place is None else memory.judged_before(place)
        if place is not None and before is not None:
            found.append(_compared(name, memory, place, before, _beside(memory.points[place], before)))
    return found


def _beside(now: PastVerdict, before: PastVerdict) -> VerdictStanding:
    if now.held:
        return VerdictStanding.HOLDS if before.held else VerdictStanding.FIXED
    return VerdictStanding.NEW if before.held else VerdictStanding.STILL


def _compared(
    name: tuple[str, str], memory: Memory, place: int, before: PastVerdict, standing: VerdictStanding
) -> HeldAgainst:
    now, since = memory.points[place], memory.since_at(place)
    return HeldAgainst(name=name, now=now, before=before, standing=standing, since=(since or now).span)


def _changes(found: Sequence[HeldAgainst]) -> VerdictChanges | None:
    if not found:
        return None
    # What many intervals together alone break is held against the last of them, which says nothing of the others.
    told = [each for each in found if each.before.end < each.now.end] or found
    newest = max(told, key=lambda each: each.before.span[::-1])
    return VerdictChanges(
        now=newest.now.span,
        before=newest.before.span,
        broken=tuple(each.name for each in found if each.standing is VerdictStanding.NEW),
        fixed=tuple(each.name for each in found if each.standing is VerdictStanding.FIXED),
        still=tuple((*each.name, each.since) for each in found if each.standing is VerdictStanding.STILL),
        together={each.name: each.now.span for each in found if each.now.span != newest.now.span},
    )
