"""Ports of a merge that a row too far ahead has led: taken back when the merge is told to believe less.

A merge compares a row below its own port's maximum as that maximum. Where a row of another century has left, all that
comes behind it in its port waits until the others have come as far; the row itself is gone, so nobody can judge it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pipelines.engine.columnar.columns import ticks, times
from pipelines.operators.rows import NULL

if TYPE_CHECKING:
    from collections.abc import Sequence

PORTS, LEFT = "ports", "left"
"""The part of a merge's carry that says of each port up to where its rows have left, and the column that says so."""


def too_far(ports: pa.Table, latest: int) -> pa.Table:
    """Give the ports that were led past an instant.

    Args:
        ports: the part of a carry.
        latest: in ticks.
    """
    return ports.filter(pa.array(ticks(ports[LEFT]) > latest))


def led_back(ports: pa.Table, group: Sequence[str], latest: int) -> pa.Table:
    """Give the ports of a merge, none of them past an instant: where one is, it stands where its group has come to.

    What the others let go of last is what the port's rows are compared as, at least, so they leave at once where they
    are old, and what leaves stays in the order of what it is compared by.

    Args:
        ports: the part of a carry.
        group: the columns that tell groups apart.
        latest: in ticks.
    """
    left = ticks(ports[LEFT])
    wrong = left > latest
    if not wrong.any():
        return ports
    groups = list(zip(*(ports[name].to_pylist() for name in group), strict=True)) if group else [()] * len(left)
    come: dict[tuple[object, ...], int] = {}
    for at, value in zip(groups, np.where(wrong, NULL, left).tolist(), strict=True):
        come[at] = max(come.get(at, NULL), value)
    back = np.where(wrong, [come[at] for at in groups], left)
    return ports.set_column(ports.column_names.index(LEFT), LEFT, times(back))
