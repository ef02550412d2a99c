r"""# Backfill: a flow over recorded days.

Each day is landed, run, checked, published, and gets a page.

## When all is well

* **By hand**: press *Trigger*, choose the days, press *Trigger* again. Nothing chosen means what is due up to
  yesterday, as *every day* has it below.
* **Many days, in order**: *Trigger* → *Backfill*, or by command, where both days are run and a date without an offset
  means UTC:

      pulseline airflow backfill create --dag-id backfill_flights \
        --from-date 2013-01-01T00:00-05:00 --to-date 2013-01-05T00:00-05:00

  Days go one after the other, for each takes up the carry of the day before, however many runs Airflow starts at once.
* **What is not as it should be**: the tab **Plan** shows each day, published, stale and why, held, missing, red or
  planned, and what running costs; its button, or *Run the plan* in the form, runs the rest in order. What only follows
  is left alone where the carry comes out as it was.
* **Every day**, where the flow does not say that its sources end: Airflow starts yesterday's run after midnight. It
  begins where what is published ends, so a day that was missed is filled before it; at first where the sources start,
  which is `starts:` of the flow, else the first row. A run that fills ends with the day of the newest row: nothing is
  published behind that, and where nothing has come at all it is green, its tasks skipped, and `request` says so. With
  nothing to fill, yesterday is run though no row came, and a check of that day warns of it (`rows_land`).

| task | does |
| --- | --- |
| `request` | waits for runs that were due before, whoever made them, then says what is wrong with the form |
| `run` | lands and runs the days; of several, each but the last is checked and published on the way |
| `check` | judges the last day with Great Expectations, before anybody can see it |
| `approve` | waits for a person where a blocking expectation failed; skipped where nothing is held |
| `publish` | lets readers see it, or rejects it, as the person answered |
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
* `check`: an expectation failed: its last line has its sentence, how many rows break it, and what landed. `approve`
  then waits, see below. Where it is skipped nothing was judged: clear `check`.
* `publish`: the day was rejected: the last line says by whom, why, and what did not hold. The tab shows the rows and
  those around them. What was published before stays. Mend the cause, then clear `run` and what follows, or trigger
  with *Run again what is published*.
* `approve`: somebody marked it, and nothing was decided. Clear it to be asked again.
* Killed in the middle, cleared, or marked: nothing half done is ever seen. Run it again.

## When it waits for you

`approve` stands under *Required Actions*, of all DAGs and of the run, with the expectations that do not hold and their
figures. Choose *Publish* or *Reject* and say why; an answer without a reason is asked again, and so is one in the very
second of the question, which Airflow may lose with the process that asked; the tab then says so. *Publish* ends the run
green, though `check` stays red, and the asset's event has `reason` and `by`; *Reject* ends it red. Whoever may trigger
may answer. Airflow with `simple_auth_manager_all_admins` knows nobody by name, and the record then says *Anonymous*.

It takes no slot, no process and no lease while it waits. The days behind it wait, too, for each takes up the carry of
the day before, and look again once a minute. A run from a shell over the same flow does not wait: it rejects what its
check did not pass. You may answer from a shell, too, `pulseline publish FLOW --commit N --accept "REASON" --by NAME`;
`approve` then waits all the same, and what it is told changes nothing any more. Of a run over several days only the
last one waits: one before it that does not hold is rejected, and the run ends there.

## Good to know

`max_active_runs` is 1. A day that is published already is skipped with a sentence, unless it is stale or forced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import DAG, TriggerRule

from dags.approval import ApproveOperator
from dags.process import JobOperator, RequestOperator
from dags.wiring import approval_form, backfill_form, days_of, publishes, usual

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
        approve = ApproveOperator(
            task_id="approve", judged="check", params=approval_form(), trigger_rule=TriggerRule.ONE_FAILED
        )
        publish = JobOperator(
            task_id="publish",
            commands=[["publish", flow.called, "--commit", COMMIT, "--json"]],
            trigger_rule=TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS,
            ran=run.output,
            answer=approve.output,
            outlets=[publishes(flow, "backfill")],
        )
        report = JobOperator(task_id="report", asked=request.output).as_teardown()

        request >> run >> check >> approve >> publish >> report
        run >> publish
    return dag
