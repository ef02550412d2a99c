"""The laws of loop, as far as one operator can be asked: rows come to it round by round already.

Rules of docs/semantics.md: X5
"""

from __future__ import annotations

from hypothesis import given

from pipelines.operators.rows import NULL, Kind, Reason
from tests.operators.driving import STEERING, Between, Job, run
from tests.operators.lawful import BETWEEN, CAPACITIES, CUTS, assert_cuts_do_not_matter, jobs
from tests.transcripts_model import LEDGER, TOO_OFTEN


@given(jobs("loop"))
def test_loop__every_row_leaves_or_is_in_the_ledger(job: Job) -> None:
    outcome = run(job)
    for key in {row.key for row in job.rows if row.kind not in STEERING}:
        rows = [row for row in job.rows if row.kind not in STEERING and row.key == key]
        newest, leaving = NULL, []
        for row in rows:
            leaves = row.time > newest if row.kind is Kind.CTI else row.port != TOO_OFTEN
            newest = max(newest, row.time) if row.kind is Kind.CTI else newest
            leaving += [row.id] * leaves
        dropped = [row.id for row in outcome.left.get((LEDGER, key), [])]

        assert [row.id for row in outcome.main.get(key, [])] == leaving
        assert dropped == [row.id for row in rows if row.id not in leaving]


@given(jobs("loop"))
def test_loop__a_row_that_went_round_too_often_is_told_of(job: Job) -> None:
    told = sorted(row.id or "" for row in run(job).all if row.reason is Reason.LOOP_LIMIT)

    assert told == sorted(row.id for row in job.rows if row.port == TOO_OFTEN)


@given(jobs("loop"), CUTS, BETWEEN, CAPACITIES)
def test_loop__cuts_do_not_matter(job: Job, cuts: list[int], between: Between, capacity: int) -> None:
    assert_cuts_do_not_matter(job, cuts, between, capacity)
