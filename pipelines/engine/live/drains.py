"""When a stream drains: which closed sequences its next epoch takes, so that it ends in a consistent state.

A region without a policy takes whatever is closed. One that drains at punctuations takes sequences up to the one that
holds the next of them, one that drains by period up to the first that closes when the period is over. The clock is
the readings that close sequences, so the same landing drains at the same places.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pipelines.engine.commits.resets import newest_reset
from pipelines.engine.landing.manifest import load_manifest
from pipelines.operators.replay import ReplayPolicy, Trigger

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pipelines.engine.commits.history import LogState
    from pipelines.engine.landing.sequence import LandedSequence


class Replayed(NamedTuple):
    """What is played again since the newest reset: its punctuations do not drain, and the period counts from it."""

    upto: int = 0
    """The last sequence that had closed when the region was reset; 0 where it never was."""


def replayed_since(state: LogState) -> Replayed:
    """Say what is played again since the newest reset."""
    reset = newest_reset(state)
    landed = state.commits[reset].detail.get("landed", 0) if reset else 0
    return Replayed(landed if isinstance(landed, int) else 0)


class Drains:
    """Plans the epochs of a region, one after the other.

    Each manifest is looked at once, however often it is asked. A final punctuation drains under every policy, for
    nothing comes behind it.

    Args:
        policy: when the region drains.
        landing: the folder of the sequences.
        replayed: what was landed before the newest reset.
    """

    def __init__(self, policy: ReplayPolicy, landing: Path, replayed: Replayed) -> None:
        """Plan nothing yet."""
        self._policy, self._landing, self._replayed = policy, landing, replayed
        self._after = self._looked = -1
        self._found: int | None = None
        self._since: int | None = None

    def next(self, after: int, closed: int) -> int:
        """Give the last sequence of the next epoch; `after` where the region does not drain yet.

        Args:
            after: the last sequence that a consistent state covers.
            closed: the last closed sequence.
        """
        if after != self._after:
            self._after = self._looked = after
            self._found = self._since = None
        while self._found is None and self._looked < closed:
            self._looked += 1
            if self._drains(load_manifest(self._landing, self._looked)):
                self._found = self._looked
        return after if self._found is None else self._found

    def _drains(self, sequence: LandedSequence) -> bool:
        if sequence.final is not None:
            return True
        if self._policy.trigger is Trigger.OPERATOR:
            return sequence.id > self._replayed.upto and sequence.punctuations > 0
        # A period is there under the trigger PERIODIC alone.
        return self._policy.period is not None and sequence.end >= self._counted_from(sequence) + self._policy.period

    def _counted_from(self, first: LandedSequence) -> int:
        """Give the end of the last consistent state or reset, by the readings; in ticks."""
        if self._since is None:
            known = max(self._after, self._replayed.upto)
            self._since = load_manifest(self._landing, known).end if known else first.start
        return self._since


def to_options(policy: ReplayPolicy | None, replayed: Replayed) -> dict[str, str]:
    """Give a policy as options of a Spark source; `from_options` reads them back."""
    if policy is None:
        return {}
    return {
        "trigger": policy.trigger.value,
        **({} if policy.period is None else {"period": str(policy.period)}),
        "replayed": str(replayed.upto),
    }


def from_options(options: Mapping[str, str], landing: Path) -> Drains | None:
    """Give what `to_options` gave; None where the region has no policy."""
    if "trigger" not in options:
        return None
    period = options.get("period")
    policy = ReplayPolicy(trigger=Trigger(options["trigger"]), period=None if period is None else int(period))
    return Drains(policy, landing, Replayed(int(options["replayed"])))
