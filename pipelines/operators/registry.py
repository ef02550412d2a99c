"""Which operators there are, by the word a flow calls them."""

from __future__ import annotations

from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.operators.leaving import Gathering
from pipelines.operators.rows import Fate, Kind, Rows, out_buffer
from pipelines.operators.specs import SPECS
from pipelines.operators.witness import bounds, breaks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pipelines.operators.scan import CarryPart

OPERATORS: Mapping[str, type[Any]] = MappingProxyType(
    {name: getattr(import_module(f"pipelines.operators.{name}"), spec.title) for name, spec in SPECS.items()}
)


def parts_of(operator: str, policy: object) -> tuple[CarryPart, ...]:
    """Give the parts of the carry that an operator has under a policy."""
    without = getattr(policy, "without", ())
    return tuple(part for part in OPERATORS[operator].parts if part.name not in without)


def warm_up(names: Iterable[str] = OPERATORS) -> None:
    """Have scans compiled, or loaded from the cache on disk, before the first row comes.

    Args:
        names: of their operators; all of them, where it is not said.
    """
    kinds, zero = np.array([Kind.READING], dtype=np.int8), np.zeros(1, dtype=np.int64)
    # Read-only, as the engine's columns are: others are another type to Numba, which would compile everything again.
    for column in (kinds, zero):
        column.setflags(write=False)
    rows = Rows(kinds, zero, zero, zero, zero, zero, zero, zero)
    for name in names:
        kind = OPERATORS[name]
        if kind.smallest is None:
            continue
        operator = kind(kind.smallest)
        operator.grow(1, 1)
        bound = bounds(operator.name, operator.records)
        left = Gathering(Fate.MAIN, 0)
        left.add(out_buffer(0))
        list(operator.feed(rows, 0))
        operator.next_due()
        if bound is not None:
            breaks(operator.name, left.rows(), bound, 1)
