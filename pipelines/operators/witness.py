"""The witness: counts, of what an operator lets out, the rows that break its own promise.

A scan that works lets none out, and Great Expectations judge the tables afterwards. This count costs a pass over the
rows as they leave, so a stream, which publishes at once, says of every commit whether both invariants held in it.

Rules of docs/semantics.md: H5, A8
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pipelines.operators.compiled import compiled
from pipelines.operators.rows import NULL, Kind
from pipelines.operators.specs import SPECS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipelines.operators.leaving import Leaving
    from pipelines.operators.rows import Longs, Records

DATA, START, END, TIMER, CTI = (int(kind) for kind in (Kind.DATA, Kind.START, Kind.END, Kind.TIMER, Kind.CTI))


def bounds(operator: str, records: Mapping[str, Records]) -> Longs | None:
    """Give what each key was promised before the rows that come, in ticks; None where an operator promises nothing.

    Args:
        operator: its name.
        records: its carry, before the rows are fed.
    """
    spec = SPECS[operator]
    kept = records.get(spec.promised_in) if spec.promised else None
    return None if kept is None else kept[spec.promised].copy()


def breaks(operator: str, main: Leaving, bound: Longs, keys: int) -> int:
    """Count the rows of the main stream that break a promise, in the order in which they leave.

    A timer must lie beyond the timer before it of its key; an event must not start, an end edge not end, before a CTI
    that was sent before it.

    Args:
        operator: one that makes a promise.
        main: rows that leave, in order.
        bound: from `bounds`; keys that came since were promised nothing.
        keys: how many keys there are now.
    """
    known = np.full(max(keys, len(bound)), NULL, dtype=np.int64)
    known[: len(bound)] = bound
    return int(backward_timers(main, known) if operator == "heartbeat" else broken_promises(main, known))


@compiled
def backward_timers(main, bound):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Count the timers of this operator that do not move their key's time forward."""
    count = 0
    for i in range(len(main.kind)):
        # Only its own timers, which have no row: those that came in are another's, and may go back.
        if main.kind[i] == TIMER and main.src[i] < 0:
            if main.event_time[i] <= bound[main.key[i]]:
                count += 1
            else:
                bound[main.key[i]] = main.event_time[i]
    return count


@compiled
def broken_promises(main, bound):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Count the events behind a CTI."""
    count = 0
    for i in range(len(main.kind)):
        newest, kind, time = bound[main.key[i]], main.kind[i], main.event_time[i]
        if kind == CTI:
            bound[main.key[i]] = max(newest, time)
        elif kind == DATA or kind == START or kind == END:
            # An end edge is judged by its end: its start left under an older promise.
            at = main.event_end[i] if kind == END else time
            if at != NULL and at < newest:
                count += 1
    return count
