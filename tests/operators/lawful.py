"""What laws of all operators are drawn from, and the one law that all have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from tests.operators.driving import Between, Job, run
from tests.operators.scenarios import SCENARIOS

if TYPE_CHECKING:
    from collections.abc import Sequence

CUTS = st.lists(st.integers(0, 30), max_size=5)
BETWEEN = st.sampled_from(Between)
CAPACITIES = st.sampled_from((1, 2, 3, 5, 1_000))


def jobs(operator: str) -> st.SearchStrategy[Job]:
    """Draw jobs of an operator."""
    return st.randoms(use_true_random=False).map(SCENARIOS[operator])


def assert_cuts_do_not_matter(job: Job, cuts: Sequence[int], between: Between, capacity: int) -> None:
    """Run a job whole and cut, and compare."""
    assert run(job, cuts, between, capacity) == run(job)
