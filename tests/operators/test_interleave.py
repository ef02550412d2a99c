"""The laws of interleave, as far as one operator can be asked: rows come to it in turn already.

Rules of docs/semantics.md: X1, X10
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given

from pipelines.operators.rows import NULL, Kind
from tests.operators.driving import STEERING, Between, Job, run
from tests.operators.lawful import BETWEEN, CAPACITIES, CUTS, assert_cuts_do_not_matter, jobs

if TYPE_CHECKING:
    from tests.transcripts_model import Given


def of_key(job: Job, key: str) -> list[Given]:
    return [row for row in job.rows if row.kind not in STEERING and row.key == key]


@given(jobs("interleave"))
def test_interleave__every_row_of_data_and_every_timer_leaves_each_side_s_in_its_order(job: Job) -> None:
    outcome = run(job)
    for key in {row.key for row in job.rows if row.kind not in STEERING}:
        came = [(row.id, row.kind, row.at, row.time) for row in of_key(job, key) if row.kind is not Kind.CTI]
        left = [row for row in outcome.main.get(key, []) if row.kind is not Kind.CTI]

        assert [(row.id, row.kind, row.at, row.time) for row in left] == came


@given(jobs("interleave"))
def test_interleave__ctis_strictly_increase(job: Job) -> None:
    outcome = run(job)
    for key in {row.key for row in job.rows if row.kind not in STEERING}:
        sent = [(row.at, row.time) for row in outcome.main.get(key, []) if row.kind is Kind.CTI]
        newest = dict.fromkeys(job.ports, NULL)
        wanted: list[tuple[int, int]] = []
        for row in of_key(job, key):
            if row.kind is Kind.CTI:
                newest[row.port] = max(newest[row.port], row.time)
                older = min(newest.values())
                if older > max([NULL, *(time for _, time in wanted)]):
                    wanted.append((row.at, older))

        assert sent == wanted


@given(jobs("interleave"), CUTS, BETWEEN, CAPACITIES)
def test_interleave__cuts_do_not_matter(job: Job, cuts: list[int], between: Between, capacity: int) -> None:
    assert_cuts_do_not_matter(job, cuts, between, capacity)
