"""# Stream: a flow live on Spark.

What comes in lands, is run epoch by epoch, and is published at once.

## When all is well

Press *Trigger*. A recorded feed needs the range to play; a folder needs nothing. The task `stream` runs until it is
stopped, or until what the form says: its log is the stream's status line, every two seconds. When it ends by itself,
its XCom is `pulseline status`, the flow's asset has a new event, and `report` makes the page of the tab **Pulseline**.

**To stop it**, mark `stream` as success or failed. **To go on**, trigger with the same run name: the range may stay
empty, for the tables know it. Nothing is lost and nothing is seen twice.

## What happens when something dies

| what | then |
| --- | --- |
| the task is marked or cleared | the command ends its epoch and goes, within 20 s, else it is killed |
| the task's process is killed | the command sees it and goes in the same way; Airflow tries again 15 s later |
| the scheduler dies | so does what it started, then the command; the next scheduler tries again |
| the machine dies | the next try finishes what was pending, and goes on |

Never two at once: each try takes the lease of the tables or is refused, with who holds it and since when.

## When a task is red

* `request`: its last line says which word of the form is wrong.
* `stream`, *must have one driver at a time*: a backfill or another stream works on this run. Wait, or stop that.
* `stream`, anything else: its last line says what to do; clear it, and it goes on where it was.
"""

from airflow.sdk import DAG

from dags.process import JobOperator, RequestOperator
from dags.wiring import PATIENT, published, stream_form
from pipelines.jobs.environment.offered import offered_flows

for flow in offered_flows():
    with DAG(
        dag_id=f"stream_{flow.name}",
        dag_display_name=f"{flow.name}: stream",
        description=flow.about,
        doc_md=__doc__,
        schedule=None,
        max_active_runs=1,
        is_paused_upon_creation=False,
        params=stream_form(),
        tags=["pulseline", "stream", flow.name],
        default_args=PATIENT,
    ):
        request = RequestOperator(task_id="request", kind="stream", flow=flow.called)
        stream = JobOperator(task_id="stream", asked=request.output, outlets=[published(flow, "stream")])
        report = JobOperator(task_id="report", asked=request.output).as_teardown()

        request >> stream >> report
