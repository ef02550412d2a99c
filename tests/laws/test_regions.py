"""Parallel regions change no row, whoever goes first and however little may wait, and never get stuck.

Rules of docs/semantics.md: X7, X8, X12
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipelines.flows.legs import MAIN
from tests.laws.drawn import CUTS, END, KINDS, ROWS, START, feed, flows
from tests.laws.regional import apart, in_regions
from tests.laws.streamed import streamed
from tests.laws.trials import cut, trial
from tests.wide import drawn as examples_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pipelines.engine.live.legs import Legs, RunningLeg
    from tests.laws.drawn import Row


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples_of(2, 3), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), rows=ROWS, others=ROWS, cuts=CUTS)
def test_regions__change_no_row(  # noqa: PLR0913 - everything that must not matter
    kind: str,
    data: st.DataObject,
    rows: Sequence[Row],
    others: Sequence[Row],
    cuts: list[int],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder: Path = tmp_path_factory.mktemp("regions")
    here = trial(folder, data.draw(flows(kind)), {"rows": feed(rows), "others": feed(others)})
    regions = {name: data.draw(st.sampled_from([MAIN, "one", "two"])) for name in here.flow.streams}
    legs = apart(here.flow, regions)
    final = data.draw(st.sampled_from([None, END - 1]))
    readings = [end for _, end in cut(START, END, cuts)]

    def choose(able: Sequence[RunningLeg]) -> tuple[RunningLeg, int]:
        return data.draw(st.sampled_from(able)), data.draw(st.integers(1, 3))

    def stop(_: Legs) -> bool:
        return data.draw(st.integers(0, 4)) == 0

    bound = data.draw(st.sampled_from([None, 1, 20]))
    streamed(here, "whole", START, readings, final=final)
    while not in_regions(here, "legs", START, readings, legs, choose, final=final, most_behind=bound, stop=stop):
        pass

    assert here.hashes("legs", [(START, END)]) == here.hashes("whole", [(START, END)])


STUCK = """\
flow: stuck
buckets: 3
sources:
  rows: {feed: {parquet: rows.parquet}, key: gate, time: sent, arrival: seen}
streams:
"""


@settings(max_examples=examples_of(3, 5), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), rows=ROWS, bound=st.integers(1, 3))
def test_regions__are_never_stuck(
    data: st.DataObject, rows: Sequence[Row], bound: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Streams that read any two before them; whoever may go on, goes on as far as it likes, and all come to the end."""
    names = ["rows"]
    text = STUCK
    for number in range(data.draw(st.integers(3, 6))):
        reads = sorted({*data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=2))})
        given = f"interleave: [{', '.join(reads)}]" if len(reads) > 1 else f"filter: {reads[0]}, where: number >= 0"
        text += f"  s{number}: {{{given}}}\n"
        names.append(f"s{number}")
    here = trial(tmp_path_factory.mktemp("stuck"), text, {"rows": feed(rows)})
    regions = {name: data.draw(st.sampled_from([MAIN, "one", "two", "three"])) for name in here.flow.streams}

    def choose(able: Sequence[RunningLeg]) -> tuple[RunningLeg, int]:
        return data.draw(st.sampled_from(able)), data.draw(st.integers(1, 2))

    readings = [START + (END - START) * part // 6 for part in range(1, 7)]
    # It asserts of each step that somebody can go on.
    assert in_regions(here, "legs", START, readings, apart(here.flow, regions), choose, most_behind=bound)
