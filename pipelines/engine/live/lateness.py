"""How late the timers of a commit were published, as its line in the log keeps it, and what many commits make of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pipelines.engine.tasks.stages import Outcome

STEPS = 40
"""Steps of lateness in a factor of ten: each is 6 % wider than the one before."""


def lateness(outcome: Outcome, now: int, speed: float) -> dict[str, object]:
    """Say how late the timers of a commit were published: published minus due, in wall-clock milliseconds.

    Args:
        outcome: of the commit's tasks.
        now: the instant of publishing on the flow's clock, in ticks; 0 where there is no clock.
        speed: how much faster than the wall that clock runs.

    Returns:
        `timers`, and where there are any `p50_ms`, `p99_ms`, `max_ms`, and `spread`: by step, how many were that late,
        so that many commits together have quantiles too.
    """
    due = np.concatenate([np.zeros(0, dtype=np.int64), *outcome.due])
    if not len(due) or not now:
        return {"timers": len(due)}
    # A clock that was set back is before what it has seen; nothing left before it was due.
    late = np.maximum(now - due, 0) / (speed or 1.0) / 1000
    p50, p99, top = (round(float(value), 1) for value in np.quantile(late, [0.5, 0.99, 1.0]))
    steps, numbers = np.unique(np.ceil(STEPS * np.log10(np.maximum(late, 1.0))).astype(np.int64), return_counts=True)
    spread = {str(step): int(number) for step, number in zip(steps, numbers, strict=True)}
    return {"timers": len(due), "p50_ms": p50, "p99_ms": p99, "max_ms": top, "spread": spread}


def late_at_most(step: str) -> float:
    """Give the lateness that nothing in a step of `lateness` is above, in milliseconds.

    >>> late_at_most("0"), late_at_most("80")
    (1.0, 100.0)
    """
    return float(10 ** (int(step) / STEPS))
