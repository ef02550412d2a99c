"""The witness counts what breaks a promise, whatever operator let it out, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from pipelines.operators.leaving import Gathering
from pipelines.operators.merge import Merge, MergedCtis, MergePolicy
from pipelines.operators.rows import NULL, OUT, Fate, Kind
from pipelines.operators.witness import bounds, breaks

if TYPE_CHECKING:
    from pipelines.operators.leaving import Leaving

Left = tuple[Kind, int, int | None, int | None]
"""Kind, key, event time, event end."""


def rows(*left: Left, src: int = -1) -> Leaving:
    out = np.zeros(len(left), dtype=OUT)
    out["src"] = src
    for row, (kind, key, time, end) in zip(out, left, strict=True):
        row["kind"], row["key"] = kind, key
        row["event_time"], row["event_end"] = (NULL if at is None else at for at in (time, end))
    gathering = Gathering(Fate.MAIN, 1)
    gathering.add(out)
    return gathering.rows()


def timers(*of: tuple[int, int]) -> list[Left]:
    return [(Kind.TIMER, key, at, None) for key, at in of]


@pytest.mark.parametrize(
    ("left", "count"),
    [
        (timers((0, 11), (1, 5), (0, 12), (1, 6)), 0),
        (timers((0, 10), (0, 11)), 1),
        (timers((0, 12), (0, 11), (0, 12), (0, 13)), 2),
        (timers((2, 1), (2, 1)), 1),
        ([(Kind.DATA, 0, 3, None)], 0),
    ],
)
def test_timers_that_do_not_increase_per_key(left: list[Left], count: int) -> None:
    bound = np.array([10, NULL], dtype=np.int64)
    assert breaks("heartbeat", rows(*left), bound, 3) == count


def test_timers_of_another_heartbeat_are_not_this_ones() -> None:
    assert breaks("heartbeat", rows(*timers((0, 3)), src=7), np.array([10], dtype=np.int64), 1) == 0


@pytest.mark.parametrize(
    ("left", "count"),
    [
        ([(Kind.DATA, 0, 10, None), (Kind.CTI, 0, 12, None), (Kind.DATA, 0, 12, None)], 0),
        ([(Kind.DATA, 0, 9, None), (Kind.CTI, 0, 12, None), (Kind.START, 0, 11, None)], 2),
        ([(Kind.END, 0, 3, 10), (Kind.END, 0, 11, 9)], 1),
        ([(Kind.DATA, 0, None, None), (Kind.TIMER, 0, 3, None), (Kind.DATA, 1, 3, None)], 0),
    ],
)
def test_events_behind_a_cti(left: list[Left], count: int) -> None:
    assert breaks("advance_time", rows(*left), np.array([10], dtype=np.int64), 2) == count


def test_a_merge_promises_what_its_ports_do_and_without_theirs_nothing() -> None:
    for ctis, wanted in ((MergedCtis.PASS, None), (MergedCtis.OF_PARTS, None), (MergedCtis.OLDEST, [NULL])):
        merge = Merge(MergePolicy(ports=2, ctis=ctis))
        merge.grow(1)
        known = bounds("merge", merge.records)
        assert (known if known is None else known.tolist()) == wanted
