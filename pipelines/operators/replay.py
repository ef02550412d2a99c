"""Replay: a region that can be reset, fed by a source that cannot send anything twice (IBM Streams' ReplayableStart).

The protocol alone, over opaque items: no storage, no clock. A marker gives every item to a sequence, three buffers keep
it, a selector forwards what one of them says. The engine does the same with files, and asks `counts` and `selected`
here which of its buffers may speak.

Rules of docs/semantics.md: R1, R2, R3, R4, R5, R6
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from pipelines.operators.rows import PolicyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

BUFFERS = 3
PLACES = 4
"""Places that must not fail together: one for the marker, one for each buffer."""


class Trigger(Enum):
    """What makes a region drain."""

    OPERATOR = "operatorDriven"
    """Each window punctuation, and the final one, once it is forwarded."""
    PERIODIC = "periodic"
    """The clock: when a period is over, counted from the end of the last consistent state or reset."""
    FINAL = "final"
    """The final punctuation alone: what came is consistent when all of it has come."""


class Punctuation(Enum):
    """A mark in a stream that is no tuple; it is forwarded in its place, and kept and replayed like one."""

    WINDOW = "window"
    """A unit of work is complete."""
    FINAL = "final"
    """Nothing comes behind it."""


DRAINING = {
    Trigger.OPERATOR: frozenset(Punctuation),
    Trigger.FINAL: frozenset({Punctuation.FINAL}),
    Trigger.PERIODIC: frozenset[Punctuation](),
}
"""Punctuations behind which a region drains."""


@dataclass(frozen=True, kw_only=True)
class ReplayPolicy:
    """How a region drains, and on how many places it stands.

    >>> ReplayPolicy(trigger=Trigger.OPERATOR, places=3)
    Traceback (most recent call last):
    ...
    pipelines.operators.rows.PolicyError: places must be at least 4, one for the marker and one for each of 3 buffers; it is 3

    Raises:
        PolicyError: there are fewer than four places, or the period is not above zero or there without a use.
    """  # noqa: E501 - a message is one line

    trigger: Trigger
    period: int | None = None
    """In ticks, under PERIODIC; None where whoever runs the region asks for each drain."""
    places: int = PLACES

    def __post_init__(self) -> None:
        if self.places < PLACES:
            required = f"at least {PLACES}, one for the marker and one for each of {BUFFERS} buffers"
            raise PolicyError("places", required, self.places)
        if self.period is not None and (self.period <= 0 or self.trigger is not Trigger.PERIODIC):
            raise PolicyError("period", "above zero, and only where the trigger is periodic", self.period)


class Forwarded(NamedTuple):
    """The selector sent an item downstream."""

    item: Any


class Drained(NamedTuple):
    """The region is consistent: all that was forwarded so far is processed and kept."""

    sequence: int


class Reset(NamedTuple):
    """The region went back to a consistent state; 0 is the beginning."""

    sequence: int


Output = Forwarded | Drained | Reset


@dataclass(eq=False)
class AllBuffersLostError(RuntimeError):
    """No buffer can speak: what came since the last consistent state is gone."""

    consistent: int
    """Id of the newest consistent state."""
    current: int
    """Id of the sequence in which they were lost."""
    lost: int
    """How many items that sequence and those before it, back to the consistent state, held."""

    def __str__(self) -> str:
        """Say what is gone, and what is not."""
        return (
            f"one of {BUFFERS} buffers must keep what no consistent state covers; none does: {self.lost} items "
            f"behind consistent state {self.consistent} are gone (now at {self.current}). All up to there is safe. "
            "Accept the loss to go on from there"
        )


def counts(restarted: int | None, consistent: int) -> bool:
    """Say whether a buffer may speak: it never restarted, or a drain has completed since.

    >>> counts(None, 0), counts(2, 2), counts(2, 3)
    (True, False, True)

    Args:
        restarted: id of the newest consistent state when it restarted; None where it never did.
        consistent: id of the newest consistent state now.
    """
    return restarted is None or consistent > restarted


def selected(restarted: Sequence[int | None], consistent: int) -> int | None:
    """Give the first buffer that may speak, None where none may.

    >>> selected([0, None, 0], 0)
    1

    Args:
        restarted: of each buffer, as `counts` takes it.
        consistent: id of the newest consistent state.
    """
    return next((place for place, each in enumerate(restarted) if counts(each, consistent)), None)


@dataclass
class _Buffer:
    """What one buffer keeps, by sequence; silent from a restart until a drain has completed."""

    kept: dict[int, list[Any]] = field(default_factory=dict)
    restarted: int | None = None

    def collect(self, sequence: int, item: object, consistent: int) -> None:
        if counts(self.restarted, consistent):
            self.kept.setdefault(sequence, []).append(item)

    def replay(self) -> list[Any]:
        return [item for sequence in sorted(self.kept) for item in self.kept[sequence]]

    def retire(self, consistent: int) -> None:
        self.kept = {sequence: items for sequence, items in self.kept.items() if sequence > consistent}


class Region:
    """A region from its marker to its sink, as the items and faults come in.

    Every method gives what leaves, in order. Items that were forwarded since the newest consistent state are forwarded
    again after a reset, so what stands behind the region must go back to that state too; then each counts once.

    Sequence ids begin at 1. A drain that completes makes the region consistent at the current id and takes the next; a
    reset takes a new one as well, so ids of consistent states have gaps and never repeat.

    Args:
        policy: what makes it drain.
        now: in ticks, where the period counts from.

    Source: IBM Streams 4.2 and 4.3, ReplayableStart and consistent regions.

    Laws:
        undisturbed items leave once and in order: without a reset, what leaves is what came.
        a reset loses nothing and doubles nothing: what left since it is what came behind the consistent state.
        ids increase: consistent states have strictly increasing ids, and a reset names one of them.
        two buffers may fail: as long as one may speak, the same leaves as if none had failed, resets apart.
        nothing covered is kept: behind a drain the buffers hold nothing.
    """

    def __init__(self, policy: ReplayPolicy, now: int = 0) -> None:
        """Begin at the beginning: consistent at 0, with nothing."""
        self.policy = policy
        self.consistent, self.current = 0, 1
        self._since = now
        self._behind = 0
        self._buffers = [_Buffer() for _ in range(BUFFERS)]

    @property
    def needed(self) -> list[Any]:
        """Give the items that a reset would forward again; all else may be freed."""
        speaking = self._speaking()
        return [] if speaking is None else self._buffers[speaking].replay()

    def take(self, item: object, *, completes: bool = True) -> list[Output]:
        """Take one item of the source, a tuple or a `Punctuation`, and forward it; a punctuation may drain.

        Args:
            item: of any type.
            completes: as for `drain`, where it drains.

        Raises:
            AllBuffersLostError: no buffer may speak; the item is not taken.
        """
        # Asked first: an item that no buffer keeps could not be sent again (R6).
        if self._speaking() is None:
            raise self._lost()
        for buffer in self._buffers:
            buffer.collect(self.current, item, self.consistent)
        self._behind += 1
        out: list[Output] = [Forwarded(item)]
        if isinstance(item, Punctuation) and item in DRAINING[self.policy.trigger]:
            out += self._drain() if completes else self.reset()
        return out

    def drain(self, *, completes: bool = True) -> list[Output]:
        """Drain because the clock says so; a region that its operator drives does not listen.

        Args:
            completes: False where something fails before the state is kept; the region is then reset.
        """
        if self.policy.trigger is not Trigger.PERIODIC:
            return []
        return self._drain() if completes else self.reset()

    def listen(self, now: int, *, completes: bool = True) -> list[Output]:
        """Hear the clock, and drain where a period is over.

        Args:
            now: in ticks.
            completes: as for `drain`, of the last of several.
        """
        out: list[Output] = []
        while self.policy.period is not None and now >= self._since + self.policy.period:
            self._since += self.policy.period
            fails = not completes and now < self._since + self.policy.period
            out += self.reset(now) if fails else self._drain()
        return out

    def reset(self, now: int | None = None) -> list[Output]:
        """Go back to the newest consistent state and forward again what came since; replayed punctuations do not drain.

        Args:
            now: in ticks, where a period counts from; None leaves it.

        Raises:
            AllBuffersLostError: no buffer holds what is to be forwarded again.
        """
        self.current += 1
        self._since = self._since if now is None else now
        if self._speaking() is None:
            raise self._lost()
        return [Reset(self.consistent), *(Forwarded(item) for item in self.needed)]

    def fail(self, buffers: Iterable[int], now: int | None = None) -> list[Output]:
        """Lose all that some buffers hold; they are restarted, and silent until a drain has completed.

        Args:
            buffers: places from 0 to 2.
            now: as for `reset`.

        Raises:
            AllBuffersLostError: none is left that may speak.
        """
        for place in buffers:
            self._buffers[place] = _Buffer(restarted=self.consistent)
        return self.reset(now)

    def accept_loss(self) -> int:
        """Go on from the newest consistent state without what is lost, and give how many items that were.

        All buffers begin anew, and count.
        """
        lost, self._behind = self._behind, 0
        self._buffers = [_Buffer() for _ in range(BUFFERS)]
        return lost

    def _speaking(self) -> int | None:
        return selected([buffer.restarted for buffer in self._buffers], self.consistent)

    def _lost(self) -> AllBuffersLostError:
        return AllBuffersLostError(self.consistent, self.current, self._behind)

    def _drain(self) -> list[Output]:
        if self._speaking() is None:
            raise self._lost()
        self.consistent, self.current, self._behind = self.current, self.current + 1, 0
        for buffer in self._buffers:
            buffer.retire(self.consistent)
        return [Drained(self.consistent)]
