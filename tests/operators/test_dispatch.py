"""The laws of dispatch: what goes to which instance.

Rules of docs/semantics.md: X13
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given

from pipelines.operators.dispatch import DispatchPolicy, DispatchStyle
from pipelines.operators.rows import Kind
from tests.operators.driving import STEERING, Between, Job, run
from tests.operators.lawful import BETWEEN, CAPACITIES, CUTS, assert_cuts_do_not_matter, jobs


def of_instances(job: Job) -> list[dict[str, list[str | None]]]:
    """Give, by instance and key, the ids of what leaves."""
    policy = job.policy
    assert isinstance(policy, DispatchPolicy)
    runs = (run(job._replace(policy=replace(policy, instance=number))) for number in range(policy.instances))
    return [{key: [row.id for row in rows] for key, rows in outcome.main.items()} for outcome in runs]


@given(jobs("dispatch"))
def test_dispatch__each_row_of_data_goes_to_one_instance_or_to_all_and_ctis_go_to_all(job: Job) -> None:
    assert isinstance(job.policy, DispatchPolicy)
    found, dealt = of_instances(job), dict.fromkeys((row.key for row in job.rows), 0)
    for row in (row for row in job.rows if row.kind not in STEERING):
        got = [number for number, each in enumerate(found) if row.id in each.get(row.key, [])]
        to = job.ports.index(row.port) if row.port in job.ports else None
        if job.policy.style is DispatchStyle.IN_TURN and row.kind not in (Kind.TIMER, Kind.CTI):
            to, dealt[row.key] = dealt[row.key] % job.policy.instances, dealt[row.key] + 1
        elif row.kind is Kind.CTI or job.policy.style is not DispatchStyle.NUMERIC:
            to = None

        assert got == (list(range(job.policy.instances)) if to is None else [to])


@given(jobs("dispatch"))
def test_dispatch__order_is_unchanged(job: Job) -> None:
    for each in of_instances(job):
        for key, ids in each.items():
            came = [row.id for row in job.rows if row.kind not in STEERING and row.key == key]

            assert ids == [name for name in came if name in ids]


@given(jobs("dispatch"), CUTS, BETWEEN, CAPACITIES)
def test_dispatch__cuts_do_not_matter(job: Job, cuts: list[int], between: Between, capacity: int) -> None:
    assert_cuts_do_not_matter(job, cuts, between, capacity)
