"""Whose turn it is among the runs of a DAG: whoever has begun, then whoever was due first, whoever made them.

Airflow's backfill starts ten runs at once unless it is told otherwise, whatever `max_active_runs` of the DAG says, and
a run without a logical date has no place among the others. All have an instant from which on they may run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from airflow.sdk import Context
    from airflow.sdk.api.datamodels._generated import DagRun

ASKS, ASKING = "approve", "awaiting_input"
"""The task that may wait for a person, and its state then."""
OVER = frozenset({"success", "failed", "skipped", "upstream_failed", "removed"})
OPEN = frozenset({"running", "queued"})
BACKFILL = "backfill"


class Due(Protocol):
    """A run, as far as its place among others goes."""

    run_id: str
    run_after: Any


@dataclass(frozen=True)
class First:
    """A run that comes before another one."""

    run_id: str
    begun: bool
    """Whether it has had its turn, and does not wait for it."""
    asks: bool = False
    """Whether it waits for a person."""


def comes_first(context: Context, task_id: str) -> First | None:
    """Give the run of the same DAG that must be done first; None where it is this one's turn.

    Args:
        context: of the task that asks.
        task_id: of the task in which runs wait for their turn.
    """
    own, instance = context["dag_run"], context["ti"]
    if instance.get_dr_count(own.dag_id, states=sorted(OPEN)) <= 1:
        return None
    states = instance.get_task_states(own.dag_id)
    unfinished = {run_id: tasks for run_id, tasks in states.items() if not is_done(tasks)}
    begun = {run_id for run_id, tasks in unfinished.items() if tasks.get(task_id) == "success"}
    others = [_run(own.dag_id, run_id) for run_id in unfinished if run_id != own.run_id]
    asking = {run_id for run_id, tasks in unfinished.items() if tasks.get(ASKS) == ASKING}
    return first_of(own, others, begun, asking)


def is_done(tasks: Mapping[str, str | None]) -> bool:
    """Say whether nothing of a run is to come: of one of which a task was cleared, something is.

    >>> is_done({"run": "failed", "report": "success"}), is_done({"run": None, "report": "success"})
    (True, False)
    """
    return all(state in OVER for state in tasks.values())


def first_of(own: Due, others: Iterable[DagRun], begun: set[str], asking: Container[str] = ()) -> First | None:
    """Give the run that must be done before one.

    Args:
        own: the run that asks.
        others: runs of the same DAG that are not done.
        begun: ids of those that have had their turn.
        asking: ids of those that wait for a person.
    """
    open_runs = [run for run in others if run.state in OPEN]
    before = [run for run in open_runs if run.run_id in begun] or [
        # One that waits for room, which only this one's end may give, is no reason to wait.
        run
        for run in open_runs
        if _due(run) < _due(own) and (run.state == "running" or run.run_type == BACKFILL)
    ]
    first = min(before, key=_due, default=None)
    return None if first is None else First(first.run_id, first.run_id in begun, first.run_id in asking)


def _due(run: Due) -> tuple[Any, str]:
    return run.run_after, run.run_id


def _run(dag_id: str, run_id: str) -> DagRun:
    from airflow.sdk.execution_time.comms import GetDagRun
    from airflow.sdk.execution_time.task_runner import SUPERVISOR_COMMS

    found: Any = SUPERVISOR_COMMS.send(GetDagRun(dag_id=dag_id, run_id=run_id))
    return found  # type: ignore[no-any-return]
