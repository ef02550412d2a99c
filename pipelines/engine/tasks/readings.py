"""Where a task reads its clock: often enough that little comes due at once, and which spans nobody listened in.

The spacing of readings changes nothing, so a task may make as many as it likes. It makes one wherever else more timers
would leave in one window than fit into memory: a silent year at an interval of a second is many windows.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipelines.engine.files.ordered import OrderedInput
    from pipelines.engine.tasks.link import Link

    Spans = Sequence[tuple[int, int]]

MOST_TIMERS = 262_144
"""Timers that one window may bring, as many as a block has rows; those of one instant leave together in any case."""


def spaced(since: int, until: int, most: float, timers: Callable[[int], float]) -> int:
    """Give the reading at which to stop first, so that at most so many timers come before it.

    Safe for any estimate that does not fall: too many readings cost time, too few memory, and neither changes a row.
    Timers mostly come evenly, so every other guess goes by their number, and few are needed. The edge: what comes due
    in one instant cannot be divided, so a window of one tick may bring more.

    >>> spaced(0, 1_000, 100, lambda until: until / 2) in range(100, 201)
    True
    >>> spaced(0, 1_000, 100, lambda until: 0 if until <= 700 else 1e6), spaced(700, 1_000, 100, lambda until: 1e6)
    (700, 701)

    Args:
        since: the reading before, in ticks.
        until: the reading at which the window would end.
        most: how many timers are allowed.
        timers: gives at most how many timers come due before an instant; never fewer for a later one.

    Returns:
        A reading above `since`, `until` at the latest; at least half of `most` come before it where it is earlier and
        they do not come all at once.
    """
    low, high, few, many = since, until, 0.0, timers(until)
    if many <= most:
        return until
    evenly = True
    while high - low > 1:
        part = (0.75 * most - few) / (many - few) if evenly else 0.5
        middle = min(max(low + int((high - low) * part), low + 1), high - 1)
        found, evenly = timers(middle), not evenly
        if most / 2 <= found <= most:
            return middle
        low, high, few, many = (middle, high, found, many) if found <= most else (low, middle, few, found)
    return max(low, since + 1)


def burden(
    links: Sequence[Link], inputs: Sequence[OrderedInput], key: Sequence[str], since: int
) -> Callable[[int], float]:
    """Give the estimate for `spaced`: at most how many timers a window brings to a task.

    A key of the window's rows may be new, so each counts as one that is silent from the window's begin on. What one row
    alone may bring is bounded by its heartbeat's `max_catch_up`.

    Args:
        links: the operators of the task.
        inputs: what it reads, with the rows of the window read ahead.
        key: columns that all operators of the task work by; () is one key.
        since: the reading before the window, in ticks.
    """
    most_rows = sum(source.waiting for source in inputs)

    @cache
    def most_keys() -> int:
        return sum(source.distinct(key) for source in inputs)

    def timers(until: int, begun: int) -> float:
        return float(sum(link.operator.timers(since, until, begun) for link in links))

    def found(until: int) -> float:
        rough = timers(until, most_rows)
        if rough <= MOST_TIMERS:
            return rough
        return timers(until, min(most_keys(), sum(source.count(until) for source in inputs)))

    return found


def common(spans: Sequence[Spans]) -> list[tuple[int, int]]:
    """Give the spans that lie in each of several lists of spans.

    >>> common([[(0, 10), (20, 30)], [(5, 25)]])
    [(5, 10), (20, 25)]

    Args:
        spans: at least one list, each ascending and disjoint.
    """
    first, *others = spans
    found = list(first)
    for other in others:
        met = ((max(a, c), min(b, d)) for a, b in found for c, d in other)
        found = [(start, end) for start, end in met if start < end]
    return found
