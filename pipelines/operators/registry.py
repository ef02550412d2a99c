"""Which operators there are, by the word a flow calls them."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.operators.advance_time import AdvanceTime, AdvanceTimePolicy, Late
from pipelines.operators.alter_duration import AlterDuration
from pipelines.operators.deduplicate import Deduplicate, DeduplicatePolicy
from pipelines.operators.filter import Filter, FilterPolicy
from pipelines.operators.heartbeat import Heartbeat, HeartbeatPolicy
from pipelines.operators.join import Join, JoinPolicy
from pipelines.operators.leaving import Gathering
from pipelines.operators.merge import Merge, MergePolicy
from pipelines.operators.metronome import Metronome, MetronomePolicy
from pipelines.operators.project import Project
from pipelines.operators.rows import Fate, Kind, Rows, Shape, out_buffer
from pipelines.operators.shift_time import ShiftTime
from pipelines.operators.union import Union, UnionPolicy
from pipelines.operators.window import Window, WindowPolicy
from pipelines.operators.witness import bounds, breaks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipelines.operators.scan import Part

OPERATORS: Mapping[str, type[Any]] = MappingProxyType(
    {
        operator.name: operator
        for operator in (
            *(Heartbeat, Metronome, Merge, AdvanceTime),
            *(Filter, Project, ShiftTime, AlterDuration, Union, Join, Window, Deduplicate),
        )
    }
)


def parts_of(operator: str, policy: object) -> tuple[Part, ...]:
    """Give the parts of the carry that an operator has under a policy."""
    without = getattr(policy, "without", ())
    return tuple(part for part in OPERATORS[operator].parts if part.name not in without)


def warm_up() -> None:
    """Have every scan compiled, or loaded from the cache on disk, before the first row comes."""
    kind, zero = np.array([Kind.READING], dtype=np.int8), np.zeros(1, dtype=np.int64)
    for column in (kind, zero):
        column.setflags(write=False)
    rows = Rows(kind, zero, zero, zero, zero, zero, zero, zero)
    shortest = (
        Heartbeat(HeartbeatPolicy(interval=1)),
        Metronome(MetronomePolicy(interval=1)),
        Merge(MergePolicy(ports=1)),
        AdvanceTime(AdvanceTimePolicy(shape=Shape.POINT, late=Late.DROP)),
        Filter(FilterPolicy(where="true")),
        Union(UnionPolicy(shapes=(Shape.POINT, Shape.POINT))),
        Join(JoinPolicy(shapes=(Shape.POINT, Shape.POINT))),
        Window(WindowPolicy(shape=Shape.POINT, size=1, hop=1, measures=("events=count",))),
        Deduplicate(DeduplicatePolicy(within=1)),
    )
    for operator in shortest:
        operator.grow(1, 1)
        bound = bounds(operator.name, operator.records)
        left = Gathering(Fate.MAIN, 0)
        left.add(out_buffer(0))
        list(operator.feed(rows, 0))
        operator.next_due()
        if bound is not None:
            breaks(operator.name, left.rows(), bound, 1)
