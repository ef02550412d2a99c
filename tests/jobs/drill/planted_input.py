"""Processes that try inputs with a bug in the product: what a drill that cannot fail would not find."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from pipelines.engine.sources.formats import csv_rows
from pipelines.engine.tasks import expressions
from pipelines.flows.feeds import reads
from pipelines.flows.type_names import read_type
from pipelines.jobs.drill.input import working

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.engine.tasks.expressions import Reckoned
    from pipelines.flows.type_names import TypeName
    from pipelines.jobs.drill.fuzzed import FuzzedPlace, Tried

FIELDS = 8
"""Of a row of the drill."""


def silent(kind: str, place: FuzzedPlace) -> Tried:
    """Leave records of too few fields out without a word."""
    records = csv_rows.records
    csv_rows.records = lambda data: [each for each in records(data) if each.count(b",") + 1 >= FIELDS]
    return working(kind, place)


def floored(kind: str, place: FuzzedPlace) -> Tried:
    """Give the rest of a division the sign of what it was divided by, as Python does."""

    def rest(left: NDArray[np.int64], right: NDArray[np.int64]) -> Reckoned:
        return np.mod(left, np.where(right == 0, 1, right)), right == 0

    expressions.RECKONED["%"] = rest
    return working(kind, place)


def raising(kind: str, place: FuzzedPlace) -> Tried:
    """Raise what Python raises where a type cannot be read."""

    def read(text: str) -> TypeName:
        found = read_type(text)
        if found is None:
            raise KeyError(text)
        return found

    pytest.MonkeyPatch().setattr(reads, "read_type", read)
    return working(kind, place)


def endless(kind: str, place: FuzzedPlace) -> Tried:
    """Read no flow to its end."""
    while kind == "flows":
        pass
    return working(kind, place)
