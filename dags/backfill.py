r"""# Backfill: a flow over recorded days.

Each day is landed, run, checked, published, and gets a page.

## When all is well

* **By hand**: press *Trigger*, choose the days, press *Trigger* again. Nothing chosen means the run's data interval.
* **Many days, in order**: *Trigger* → *Backfill*, or by command, where both days are run and a date without an offset
  means UTC:

      pulseline airflow backfill create --dag-id backfill_flights \
        --from-date 2013-01-01T00:00-05:00 --to-date 2013-01-05T00:00-05:00

  Days go one after the other, for each takes up the carry of the day before, however many runs Airflow starts at once.
* **Every day**, where the flow does not say that its sources end: Airflow starts yesterday's run after midnight.

| task | does |
| --- | --- |
| `request` | waits for earlier runs, then reads the form again and says in two seconds what is wrong with it |
| `run` | lands and runs the days; of several, each but the last is checked and published on the way |
| `check` | judges the last day with Great Expectations, before anybody can see it |
| `publish` | lets readers see it, or rejects it when a blocking expectation failed |
| `report` | makes the pages, whatever happened; they are the tab **Pulseline** of this DAG and of each run |

The result of `publish` (counts, content hashes) is its XCom and the event of the flow's asset.

## When a task is red

* `request`: its last line says which word of the form is wrong, or which earlier days must be run first. Nothing was
  begun: trigger again.
* `run`: *must have one driver at a time* means that a stream or a backfill works on these tables: wait, or stop it.
  Anything else: clear the task, it goes on where it was.
* `check`, `publish`: an expectation failed. The tab shows the rows and those around them. What was published before
  stays. Mend the cause, then clear `run` and what follows, or trigger with *Run again what is published*.
* Killed in the middle, cleared, or marked: nothing half done is ever seen. Run it again.

## Good to know

`max_active_runs` is 1. A day that is published already is skipped with a sentence, unless it is stale or forced.
"""

from airflow.sdk import DAG, TriggerRule

from dags.process import JobOperator, RequestOperator
from dags.wiring import PATIENT, backfill_form, days_of, published
from pipelines.jobs.environment.offered import recorded_flows

COMMIT = "{{ ti.xcom_pull(task_ids='run')['commits'][-1]['commit'] }}"

for flow in recorded_flows():
    with DAG(
        dag_id=f"backfill_{flow.name}",
        dag_display_name=f"{flow.name}: backfill",
        description=flow.about,
        doc_md=__doc__,
        schedule=days_of(flow),
        start_date=flow.starts,
        catchup=False,
        max_active_runs=1,
        is_paused_upon_creation=flow.grows,
        params=backfill_form(),
        tags=["pulseline", "backfill", flow.name],
        default_args=PATIENT,
    ):
        request = RequestOperator(task_id="request", kind="backfill", flow=flow.called)
        run = JobOperator(task_id="run", asked=request.output)
        check = JobOperator(task_id="check", commands=[["check", flow.called, "--commit", COMMIT, "--json"]])
        publish = JobOperator(
            task_id="publish",
            commands=[["publish", flow.called, "--commit", COMMIT, "--json"]],
            trigger_rule=TriggerRule.ALL_DONE_MIN_ONE_SUCCESS,
            outlets=[published(flow, "backfill")],
        )
        report = JobOperator(task_id="report", asked=request.output).as_teardown()

        request >> run >> check >> publish >> report
        run >> publish
