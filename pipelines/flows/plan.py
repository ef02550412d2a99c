"""Which operators run together, and in what order: the stages of a flow.

A *stage* is what one set of tasks does. Rows lie in buckets by the hash of a key, so all rows of one key are in one
bucket, and whatever works key by key can work bucket by bucket: a task takes one bucket, opens its row groups, and
runs a whole chain of operators over them in one pass, with no row leaving the process between two operators. That
holds exactly as long as the operators of the chain share the key. So:

- streams that feed each other, or read the same, *and* have the same key stand in one stage, which reads what they
  share once; a stage has one task for each bucket;
- a stream with another key begins another stage: a second set of tasks, over the files that the first one wrote;
- stream-wide operators (no key) see every row in one order, so their stage is one task. Those that feed each other
  share it: an ordered merge without groups and the CTIs behind it are one pass;
- a metronome reads no rows, only the clock, so any task can run it: it is a stream-wide stage of its own, or stands in
  the stage of the merge that reads it;
- streams of two legs, where a run has legs (`flows/legs.py`), never share a stage: each leg runs its own stages;
- what an operator sets aside (`punctual.diverted`) is written by the task that runs the operator, and belongs to its
  stage; who reads it with the same key stands there too.

Streams of a stage that only read the same, and feed nothing to each other, need not be of one task: where a stage has
fewer tasks than there are cores it is cut into such parts (`cut`), instances of a module for one.

The flights, for one: `beating` works per airport and is stage 0, four buckets, four tasks; `ordered` and `punctual`
are stream-wide, stage 1, one task that reads what stage 0 wrote.

Why stages never wait for each other in a circle: the key of a stream is the key of its inputs or a part of it, in the
same order (`reading` refuses all else), so along rows keys only get shorter. CTIs alone can go the other way: a stream
with a key may import those of a stream without one. Streams of one key are therefore not put into one stage where a
stream of another key lies between them, and a stage stands behind all that it reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipelines.flows.model import main_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipelines.flows.model import Flow


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Streams that one set of tasks makes."""

    index: int
    """Place among the stages, from 0."""
    key: tuple[str, ...]
    """What the rows are bucketed by; () is one task."""
    streams: tuple[str, ...]
    """Named streams in the order in which a task runs their operators."""
    sides: tuple[str, ...]
    """Side streams that these operators write."""
    reads: tuple[str, ...]
    """Sources, and streams and side streams of earlier stages."""
    leg: str = ""
    """The leg that runs it; empty where a flow runs in one piece."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The stages of a flow, each behind all that it reads."""

    stages: tuple[Stage, ...]

    def stage_of(self, name: str) -> Stage:
        """Give the stage that writes a stream or side stream.

        Raises:
            KeyError: no stage does (a source, or no such name).
        """
        for stage in self.stages:
            if name in stage.streams or name in stage.sides:
                return stage
        raise KeyError(name)

    def waves(self, leg: str = "") -> Iterator[tuple[Stage, ...]]:
        """Give the stages of a leg in groups: those of one read nothing of each other, only of groups before it."""
        waiting = [stage for stage in self.stages if stage.leg == leg]
        while waiting:
            unwritten = {name for stage in waiting for name in (*stage.streams, *stage.sides)}
            ready = tuple(stage for stage in waiting if unwritten.isdisjoint(stage.reads))
            waiting = [stage for stage in waiting if stage not in ready]
            yield ready

    def readers_of(self, name: str) -> tuple[Stage, ...]:
        """Give the stages that read a source or the files of an earlier stage's stream."""
        return tuple(stage for stage in self.stages if name in stage.reads)


def plan(flow: Flow) -> Plan:
    """Divide the streams of a flow into stages.

    Args:
        flow: validated, so that its streams are in topological order and keys only get shorter along a path.

    Returns:
        Every stream in exactly one stage.
    """
    behind = _behind(flow)
    groups: list[list[str]] = []
    for name in flow.streams:
        group = [name]
        for other in [other for other in groups if _joins(flow, name, other)]:
            if not _tangled(behind, [*other, *group]):
                groups.remove(other)
                group = [*other, *group]
        groups.append(group)
    place = {name: number for number, name in enumerate(flow.streams)}
    waiting = [sorted(group, key=place.__getitem__) for group in groups]
    waiting.sort(key=lambda group: (-len(flow.key_of(group[0])), place[group[0]]))
    ordered: list[list[str]] = []
    while waiting:
        done = {name for group in ordered for name in group}
        ready = next(group for group in waiting if {b for name in group for b in behind[name]} <= done | set(group))
        waiting.remove(ready)
        ordered.append(ready)
    return Plan(stages=tuple(stage_with(flow, index, group) for index, group in enumerate(ordered)))


def _behind(flow: Flow) -> dict[str, set[str]]:
    """Give for each stream all streams whose rows or CTIs reach it."""
    found: dict[str, set[str]] = {}
    for name, stream in flow.streams.items():
        read = {main_of(each) for each in stream.inputs} & found.keys()
        found[name] = read.union(*(found[each] for each in read))
    return found


def _tangled(behind: dict[str, set[str]], group: list[str]) -> bool:
    """Say whether a stream that is not of the group lies between two that are."""
    inside = set(group)
    outside: set[str] = set().union(*(behind[name] for name in group)) - inside
    return any(behind[name] & inside for name in outside)


def _joins(flow: Flow, name: str, group: list[str]) -> bool:
    if flow.key_of(group[0]) != flow.key_of(name) or flow.legs.get(group[0]) != flow.legs.get(name):
        return False
    read = flow.streams[name].inputs
    fed = not {main_of(each) for each in read}.isdisjoint(group)
    return fed or any(not set(read).isdisjoint(flow.streams[other].inputs) for other in group)


def cut(flow: Flow, stage: Stage, most: int) -> tuple[Stage, ...]:
    """Cut a stage into as many as its parts allow, of about as many streams each.

    Args:
        flow: whose stage it is.
        stage: of its plan.
        most: stages to make of it, from 1, which leaves it as it is.

    Returns:
        Stages of the same place and key, each reading what its own streams read.
    """
    parts = parts_of(flow, stage)
    heaps: list[list[str]] = [[] for _ in range(min(most, len(parts)))]
    if len(heaps) == 1:
        return (stage,)
    for part in sorted(parts, key=len, reverse=True):
        min(heaps, key=len).extend(part)
    return tuple(stage_with(flow, stage.index, [name for name in stage.streams if name in heap]) for heap in heaps)


def parts_of(flow: Flow, stage: Stage) -> tuple[tuple[str, ...], ...]:
    """Group the streams of a stage so that none feeds one of another group."""
    groups: list[set[str]] = []
    for name in stage.streams:
        fed = {main_of(each) for each in flow.streams[name].inputs}
        met = [group for group in groups if not fed.isdisjoint(group)]
        groups = [*(group for group in groups if group not in met), {name}.union(*met)]
    return tuple(tuple(name for name in stage.streams if name in group) for group in groups)


def stage_with(flow: Flow, index: int, names: Sequence[str]) -> Stage:
    """Give the stage, or the part of one, that some streams of a flow make.

    Args:
        flow: whose streams they are.
        index: place of the stage.
        names: streams of one key and leg, in the order of the flow.
    """
    streams = [flow.streams[name] for name in names]
    read = dict.fromkeys(name for stream in streams for name in stream.inputs)
    outside = [name for name in read if main_of(name) not in names]
    return Stage(
        index=index,
        key=flow.key_of(names[0]),
        streams=tuple(names),
        sides=tuple(side for stream in streams for side in stream.sides),
        reads=tuple(outside),
        leg=flow.legs.get(names[0], ""),
    )
