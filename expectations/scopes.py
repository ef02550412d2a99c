"""Along which rows of a stream timers increase and promises bind: read from the flow, never from rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.flows.model import Source, is_side
from pipelines.operators.rows import Shape
from pipelines.operators.specs import SPECS

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipelines.flows.model import Flow, Stream

PORT = "port"
"""The column that a merge of streams adds."""


def timer_scope(flow: Flow, name: str) -> tuple[str, ...] | None:
    """Name the columns that tell the timers of one heartbeat and key from all others in a stream.

    From a merge on these are the port and, where several keys share a port, the key: each key has a clock of its own.

    Args:
        flow: the model.
        name: a stream or side stream.

    Returns:
        The columns; () is one clock for all. None where the stream has no timers, or where nothing tells them apart any
        more: a heartbeat over timers, ports of which a later merge of streams took the name, and a projection of a
        stream whose key is shorter than what tells them apart.
    """
    known: dict[str, tuple[str, ...] | None] = {}

    def look(read: str) -> tuple[str, ...] | None:
        if read not in known:
            known[read] = _scope(flow, read, look)
        return known[read]

    return look(name)


def _scope(flow: Flow, name: str, look: Callable[[str], tuple[str, ...] | None]) -> tuple[str, ...] | None:
    """Give the scope of one stream's timers, by those of what it reads."""
    made = flow.owner(name)
    if isinstance(made, Source) or is_side(name):
        return None
    if made.operator == "metronome":
        return ()
    if made.operator == "heartbeat":
        return None if flow.has_timers(made.inputs[0]) else made.by
    if made.operator == "merge":
        return _merged(flow, made, look)
    scope = look(made.inputs[0]) if len(made.feeding) == 1 and flow.has_timers(name) else None
    if SPECS[made.operator].names_columns and scope is not None and not {*scope} <= {*made.by}:
        # A timer keeps the key of its stream and no other column, not even one that is projected under its own name.
        return None
    return scope


def _merged(flow: Flow, stream: Stream, look: Callable[[str], tuple[str, ...] | None]) -> tuple[str, ...] | None:
    scopes = [look(name) for name in stream.inputs if flow.has_timers(name)]
    known = [scope for scope in scopes if scope is not None]
    if not known or len(known) < len(scopes):
        return None
    port = PORT if stream.ports is None or stream.ports.column is None else stream.ports.column
    if port == PORT and any(PORT in scope for scope in known):
        return None
    return tuple(dict.fromkeys((port, *(column for scope in known for column in scope))))


def timer_interval(flow: Flow, name: str) -> int | None:
    """Give the interval, in ticks, of which all timers of a stream are multiples; None where it does not make them all.

    Asked where timers are made: further on they may have been shifted, and those of several intervals meet.
    """
    made = flow.owner(name)
    if isinstance(made, Source) or is_side(name) or not SPECS[made.operator].has_timers:
        return None
    if any(flow.has_timers(read) for read in made.inputs):
        return None
    interval: int = getattr(made.policy, "interval")  # noqa: B009 - of each policy of an operator with timers
    return interval


def has_lifetimes(flow: Flow, name: str) -> bool:
    """Say whether events of a stream end, and its operator lets none leave that ends as it starts."""
    made = flow.owner(name)
    if isinstance(made, Source) or is_side(name):
        return False
    spec = SPECS[made.operator]
    return spec.promises and (spec.lasting or made.shape is Shape.INTERVAL)


def awaits_promises(flow: Flow, name: str) -> bool:
    """Say whether the events of a stream leave only when they have been promised: results of windows and pairs."""
    made = flow.owner(name)
    return not (isinstance(made, Source) or is_side(name)) and SPECS[made.operator].awaits_promises


def promise_scope(flow: Flow, name: str) -> tuple[str, ...] | None:
    """Name the columns of one timeline of promises; () is one for all, None where nobody answers for any."""
    made = flow.owner(name)
    if isinstance(made, Source) or is_side(name):
        return None
    spec = SPECS[made.operator]
    if not is_answered(flow, name):
        return None
    if made.policy.promises is not None:
        return made.by if made.policy.promises else None
    if spec.keeps_promises:
        return promise_scope(flow, made.inputs[0])
    return made.by if spec.promises else None


def is_answered(flow: Flow, name: str) -> bool:
    """Say whether somebody answers for the CTIs of a stream: an operator that lets no event by behind one of its own.

    A source's own CTIs are its word alone: what only hands them on, or takes the oldest of several, keeps them where
    the source does.
    """
    left, seen = [name], set[str]()
    while left:
        each = left.pop()
        if each in seen:
            continue
        seen.add(each)
        made = flow.owner(each)
        if isinstance(made, Source) or is_side(each):
            return False
        if not SPECS[made.operator].promises:
            left += made.feeding
    return True
