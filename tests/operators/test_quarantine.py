"""The laws of quarantine: nothing is lost between its two streams, and both keep the order of the input.

Rules of docs/semantics.md: P1, P5
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hypothesis import given

from pipelines.operators.rows import Kind, Reason
from tests.operators.driving import Between, Job, run
from tests.operators.lawful import BETWEEN, CAPACITIES, CUTS, assert_cuts_do_not_matter, jobs
from tests.operators.test_relations import rows_by_key
from tests.transcripts_model import MAIN, REFUSED, SIDE, Given

if TYPE_CHECKING:
    from collections.abc import Sequence


def _late_ctis(rows: Sequence[Given]) -> set[str]:
    """Name the CTIs that would not move the time of one key forward."""
    newest, late = None, set()
    for row in rows:
        if row.kind is Kind.CTI:
            if newest is not None and row.time <= newest:
                late.add(row.id)
            newest = row.time if newest is None else max(newest, row.time)
    return late


@given(jobs("quarantine"))
def test_quarantine__every_input_leaves_in_one_stream_or_the_other(job: Job) -> None:
    all_rows = run(job).all
    left = Counter(row.id for row in all_rows if row.stream in (MAIN, SIDE))
    gone = Counter(row.id for row in all_rows if row.reason is Reason.LATE_CTI)
    aside = {row.id for row in all_rows if row.reason is Reason.QUARANTINED}

    assert left + gone == Counter(row.id for rows in rows_by_key(job).values() for row in rows)
    assert aside == {row.id for row in job.rows if row.port == REFUSED}
    assert aside == {row.id for row in all_rows if row.stream == SIDE}


@given(jobs("quarantine"))
def test_quarantine__the_order_of_both_is_that_of_the_input(job: Job) -> None:
    all_rows = run(job).all
    for key, rows in rows_by_key(job).items():
        late = _late_ctis(rows)
        for stream, refused in ((MAIN, False), (SIDE, True)):
            told = [row.id for row in all_rows if row.stream == stream and row.key == key]

            assert told == [row.id for row in rows if (row.port == REFUSED) is refused and row.id not in late]


@given(jobs("quarantine"), CUTS, BETWEEN, CAPACITIES)
def test_quarantine__cuts_do_not_matter(job: Job, cuts: list[int], between: Between, capacity: int) -> None:
    assert_cuts_do_not_matter(job, cuts, between, capacity)
