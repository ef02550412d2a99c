"""Cuts, buckets and engines do not matter: the same content hashes of every table, whatever the flow and its rows."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.jobs.drawn import CUTS, END, KINDS, ROWS, START, Row, feed, flows
from tests.jobs.trials import PARCELS, SPANS, WHOLE, Trial, cut, parcels, trial

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from tests.conftest import LentSpark

FEW = settings(
    max_examples=4,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # an example is three runs: shrinking one takes minutes
    suppress_health_check=[HealthCheck.too_slow],
)


def placed(folder: str, flow: str, rows: Sequence[Row], others: Sequence[Row]) -> Trial:
    """Write a drawn flow and its feeds."""
    return trial(Path(folder), flow, {"rows": feed(rows), "others": feed(others)})


@pytest.mark.parametrize("kind", KINDS)
def test_cuts_and_buckets_do_not_matter(kind: str) -> None:
    @FEW
    @given(flow=flows(kind), rows=ROWS, others=ROWS, cuts=CUTS, ends=st.booleans())
    def holds(flow: str, rows: list[Row], others: list[Row], cuts: list[int], ends: bool) -> None:  # noqa: FBT001
        final = END - 1 if ends else None
        with tempfile.TemporaryDirectory() as folder:
            here = placed(folder, flow, rows, others)
            whole = here.run("whole", [(START, END)], buckets=1, final=final)
            assert here.run("cut", cut(START, END, cuts), buckets=7, final=final) == whole
            assert here.run("buckets", [(START, END)], buckets=16, final=final) == whole

    holds()
