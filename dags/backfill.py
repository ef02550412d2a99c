r"""# Backfill: a flow over recorded days.

Each day is landed, run, checked, published, and gets a page.

## When all is well

* **By hand**: press *Trigger*, choose the days, press *Trigger* again. Nothing chosen means the run's data interval.
* **Many days, in order**: *Trigger* → *Backfill*, or by command, where both days are run and a date without an offset
  means UTC:

      pulseline airflow backfill create --dag-id backfill_flights \
        --from-date 2013-01-01T00:00-05:00 --to-date 2013-01-05T00:00-05:00

  Days go one after the other, for each takes up the carry of the day before, however many runs Airflow starts at once.
* **Every day**, where the flow does not say that its sources end: Airflow starts yesterday's run after midnight. It
  begins where what is published ends, at first where the sources start, so a day that was missed is filled before it.

| task | does |
| --- | --- |
| `request` | waits for runs that were due before, whoever made them, then says what is wrong with the form |
| `run` | lands and runs the days; of several, each but the last is checked and published on the way |
| `check` | judges the last day with Great Expectations, before anybody can see it |
| `publish` | lets readers see it, or rejects it when a blocking expectation failed |
| `report` | makes the pages, whatever happened; skipped where nothing was begun |

The tab **Pulseline** of a run shows how far it is while it runs, or the sentence that refused it, and then its page as
it was, which never changes: what a red run found is still there when the day ran again. *As it is now* stands on top.

The result of `publish` (counts, content hashes) is its XCom. The flow's asset has an event for each commit that was
published, with its span, counts and hashes.

## When a task is red

* `request`: its last line says which word of the form is wrong, or which earlier days must be run first. Nothing was
  begun: trigger again.
* `run`: *must have one driver at a time* means that a stream or a backfill works on these tables: wait, or stop it.
  Anything else: clear the task, it goes on where it was.
* `check`, `publish`: an expectation failed: the last line has its sentence, how many rows break it, what landed, and
  the command that runs the day again. The tab shows the rows and those around them. What was published before
  stays. Mend the cause, then clear `run` and what follows, or trigger with *Run again what is published*.
* Killed in the middle, cleared, or marked: nothing half done is ever seen. Run it again.

## Good to know

`max_active_runs` is 1. A day that is published already is skipped with a sentence, unless it is stale or forced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import DAG, TriggerRule

from dags.process import JobOperator, RequestOperator
from dags.wiring import backfill_form, days_of, publishes, usual

if TYPE_CHECKING:
    from pipelines.jobs.environment.offered import Offered

COMMIT = "{{ ti.xcom_pull(task_ids='run')['commits'][-1]['commit'] }}"


def backfill_dag(flow: Offered) -> DAG:
    """Make the DAG of a flow."""
    with DAG(
        **usual("backfill", flow, __doc__),
        schedule=days_of(flow),
        start_date=flow.starts,
        catchup=False,
        is_paused_upon_creation=flow.grows,
        params=backfill_form(),
    ) as dag:
        request = RequestOperator(task_id="request", kind="backfill", flow=flow.called)
        run = JobOperator(task_id="run", asked=request.output)
        check = JobOperator(task_id="check", commands=[["check", flow.called, "--commit", COMMIT, "--json"]])
        publish = JobOperator(
            task_id="publish",
            commands=[["publish", flow.called, "--commit", COMMIT, "--json"]],
            trigger_rule=TriggerRule.ALL_DONE_MIN_ONE_SUCCESS,
            ran=run.output,
            outlets=[publishes(flow, "backfill")],
        )
        report = JobOperator(task_id="report", asked=request.output).as_teardown()

        request >> run >> check >> publish >> report
        run >> publish
    return dag
