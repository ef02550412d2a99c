"""# Stream: a flow live on Spark.

What comes in lands, is run epoch by epoch, and is published at once.

## When all is well

Press *Trigger*. A recorded feed needs the range to play; a folder needs nothing. The task `stream` runs until it is
stopped, or until what the form says: its log is the stream's status line, every two seconds. When it ends by itself,
its XCom is `pulseline status`, the flow's asset has a new event if anything was published, and `report` makes the page
of the tab **Pulseline**.

Streams have slots of their own (the pool `pulseline_streams`, three of them): none keeps a backfill waiting.

**To stop it**, mark `stream` as success or failed. **To go on**, trigger with the same run name: the range may stay
empty, for the tables know it. Nothing is lost and nothing is seen twice.

## What happens when something dies

| what | then |
| --- | --- |
| the task is marked or cleared | the command ends its epoch and goes, within 20 s, else it is killed |
| the task's process is killed | the command sees it and goes in the same way; Airflow tries again 5 s later |
| the stream fails | it is tried again for ever, 5 s later where it had worked a while, else after up to five minutes |
| the scheduler dies | so does what it started, then the command; the next scheduler tries again |
| the machine dies | the next try finishes what was pending, and goes on |

The fourth failure, and each twelfth after it, is told to the notifiers that Airflow's configuration names:
`[pulseline] alerts = [{"classpath": "airflow.providers.slack.notifications.slack.SlackNotifier", "kwargs": {...}}]`.

Never two at once: each try takes the lease of the tables or is refused, with who holds it and since when.

## When a task is red

* `request`: its last line says which word of the form is wrong.
* `stream`, *must have one driver at a time*: a backfill or another stream works on this run. Wait, or stop that.
* `stream`, anything else: its last line says what to do; clear it, and it goes on where it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import DAG

from dags.process import JobOperator, RequestOperator
from dags.wiring import STREAMING, publishes, stream_form, usual

if TYPE_CHECKING:
    from pipelines.jobs.environment.offered import Offered


def stream_dag(flow: Offered) -> DAG:
    """Make the DAG of a flow."""
    with DAG(
        **usual("stream", flow, __doc__),
        schedule=None,
        is_paused_upon_creation=False,
        params=stream_form(),
    ) as dag:
        request = RequestOperator(task_id="request", kind="stream", flow=flow.called)
        stream = JobOperator(task_id="stream", asked=request.output, outlets=[publishes(flow, "stream")], **STREAMING)
        report = JobOperator(task_id="report", asked=request.output).as_teardown()

        request >> stream >> report
    return dag
