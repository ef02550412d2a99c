"""How many buckets a run of a flow has that says `buckets: auto`: chosen when the run begins, and kept.

A bucket for each 64 MB of the recorded inputs, as they lie there, and at most four for each core. Where nobody knows
how much will come, the number of a flow that says nothing. It changes no row, so whoever goes on with a run, on
whatever machine, takes the number that its commits and sequences have.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pipelines.engine.landing.manifest import sequences
from pipelines.flows.model import AUTO_BUCKETS, Flow
from pipelines.flows.reading import MOST_BUCKETS
from pipelines.jobs.runs.in_use import as_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from pipelines.engine.commits.history import LogState
    from pipelines.engine.landing.source_feed import SourceFeed

BYTES = 64 << 20
"""Of the inputs, for each bucket."""
PER_CORE = 4
"""Buckets, at most."""


def with_buckets(
    flow: Flow,
    state: LogState,
    landing: Path,
    feeds: Callable[[], Iterable[SourceFeed]],
    cores: Callable[[], int],
) -> Flow:
    """Give a flow with a number of buckets: its own, else that of the run, else what its inputs are worth.

    Args:
        flow: validated.
        state: the log of the run, under its lease.
        landing: the folder of its sequences.
        feeds: opens its sources, where a number has to be chosen.
        cores: says how many tasks its engine runs at once, where that matters.
    """
    if flow.buckets != AUTO_BUCKETS:
        return flow
    kept = as_run(flow, state).buckets or next((each.buckets for each in reversed(sequences(landing))), AUTO_BUCKETS)
    return replace(flow, buckets=kept or worth([feed.size() for feed in feeds()], cores))


def worth(sizes: Iterable[int | None], cores: Callable[[], int]) -> int:
    """Give the number of buckets that inputs are worth.

    Args:
        sizes: bytes of each source; None where rows come once, and nobody knows how many.
        cores: says how many tasks run at once, where that matters.

    >>> worth([10], lambda: 2), worth([5 << 26, 1], lambda: 8), worth([100 << 26], lambda: 2), worth([None], lambda: 8)
    (1, 6, 8, 4)
    """
    known = [size for size in sizes if size is not None]
    if not known:
        return Flow.buckets
    wanted = max(1, -(-sum(known) // BYTES))
    return wanted if wanted <= PER_CORE else min(wanted, PER_CORE * cores(), MOST_BUCKETS)
