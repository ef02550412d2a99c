"""The body of a loop: the streams of its module, built over what goes round, and held to what may stand in one.

Rules of docs/semantics.md: X5
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pipelines.flows.errors import one_of
from pipelines.flows.feeds.spec import NOWHERE
from pipelines.flows.model import Flow, Source, main_of
from pipelines.operators.specs import SPECS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pipelines.flows.model import Stream
    from pipelines.flows.streams import Draft

WITHIN = tuple(
    name
    for name, spec in SPECS.items()
    if spec.written and spec.inputs != "none" and not (spec.remembers or spec.awaits_promises or spec.quarantines)
)
"""Operators that a row of another turn cannot meet in: they look at one row at a time, and have one output."""


def loop_body(drafted: Draft, flow: Flow, build: Callable[[Draft, Flow], Stream]) -> Mapping[str, Stream]:
    """Build the streams of a loop's module.

    Args:
        drafted: the loop.
        flow: the sources, and the streams before it.
        build: makes one stream over those before it.

    Raises:
        FlowError: an operator that remembers, rows that do not come back as they went in, or times that go back below
            a promise.
    """
    read, entry = drafted.inputs[0], drafted.made["entry"]
    within = Flow(name=flow.name, sources={entry: _stand_in(flow, read, entry)}, streams={})
    drafts = {each.name: each for each in drafted.body}
    for name in in_order(drafts):
        each = drafts[name]
        if each.operator not in WITHIN:
            does = "sets rows aside" if SPECS[each.operator].quarantines else "remembers rows"
            came = f"`{each.operator}`, which {does}, within a loop"
            raise each.section.wrong(each.operator, came, one_of(WITHIN))
        within = replace(within, file_order=tuple(drafts), streams={**within.streams, name: build(each, within)})
    entered, back = flow.owner(read), within.owner(drafted.made["back"])
    if (back.shape, back.event_id) != (entered.shape, entered.event_id):
        came = f"`{drafted.made['back']}`, which gives rows of another shape than `{read}`,"
        raise drafted.section.wrong("module", came, "a module that gives back what it can take in")
    shifted = [each for each in within.streams.values() if getattr(each.policy, "shift", 0) < 0]
    if shifted and flow.promises(read):
        each = drafts[shifted[0].name]
        came = f"a shift into the past within a loop, while CTIs of `{read}` pass by,"
        raise each.section.wrong("shift", came, "a shift of 0 or more, or a `shift_time` behind the loop")
    return within.streams


def _stand_in(flow: Flow, read: str, entry: str) -> Source:
    """Give what the streams of a loop read: rows of what the loop reads, under the name that its module has for them.

    Args:
        flow: with what it reads.
        read: the source or stream.
        entry: that name.
    """
    made: Any = flow.owner(read)
    key, feed = flow.key_of(read), NOWHERE
    return Source(name=entry, feed=feed, key=key, time="", arrival="", shape=made.shape, event_id=made.event_id)


def in_order(drafts: Mapping[str, Draft]) -> list[str]:
    """Sort streams behind what they read, else in the order of the file.

    Raises:
        FlowError: streams read each other.
    """
    waiting = {name: {main_of(read) for read in drafted.inputs} & set(drafts) for name, drafted in drafts.items()}
    done: list[str] = []
    while waiting:
        ready = next((name for name, reads in waiting.items() if reads <= set(done)), None)
        if ready is None:
            raise _cycle(drafts, waiting)
        done.append(ready)
        del waiting[ready]
    return done


def _cycle(drafts: Mapping[str, Draft], waiting: dict[str, set[str]]) -> Exception:
    """Say which streams read each other; each that waits waits for one that waits, so walking on comes back."""
    path = [next(iter(waiting))]
    while path.count(path[-1]) == 1:
        path.append(min(waiting[path[-1]] & set(waiting)))
    circle = path[path.index(path[-1]) :]
    told = " reads ".join(f"`{name}`" for name in circle)
    drafted = drafts[circle[0]]
    expected = "streams that do not read themselves; rows that are to come back go through a `loop`"
    return drafted.section.wrong(drafted.operator, f"a cycle, {told},", expected)
