"""# Quality: what is published, judged by Great Expectations.

Behind the gate of each backfilled day, behind every stream, and behind each complete day of one that goes on.

## When all is well

It runs by itself when a backfill or a stream of the flow has published: over each span that they name, else over all
that is published. What its gate has just judged is not judged again: `check` is skipped and says so.

A stream without an end is checked day by day, where `promises_` is unpaused: once a day, as soon as that is complete.
Where several days became complete at once, one run checks all of them, and names each that does not hold.

By hand: press *Trigger*, choose a run and a span; *Compute some days again* holds a sample of them against what comes
of the same landed rows now.

| task | does |
| --- | --- |
| `request` | reads the form, or what the assets said, and says in two seconds what is wrong with it |
| `check` | `pulseline check`: every expectation over the span, with the last timer and CTI before it |
| `report` | makes the page again, with what was found; it is the tab **Pulseline** |

## When a task is red

* `request`: its last line says which word of the form is wrong, or that there is no such run.
* `check`: an expectation failed on rows that are published. The tab shows them, with the rows around them and the
  timer or CTI that governed. Mend the cause, then backfill the days with *Run again what is published*.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import DAG

from dags.process import EachOperator, JobOperator, RequestOperator
from dags.wiring import days_to_check, published, quality_form, usual

if TYPE_CHECKING:
    from pipelines.jobs.environment.offered import Offered


def quality_dag(flow: Offered) -> DAG:
    """Make the DAG of a flow."""
    with DAG(
        **usual("quality", flow, __doc__),
        schedule=(published(flow, "backfill") | published(flow, "stream") | days_to_check(flow)),
        is_paused_upon_creation=False,
        params=quality_form(),
    ) as dag:
        request = RequestOperator(task_id="request", kind="quality", flow=flow.called)
        check = EachOperator(task_id="check", asked=request.output)
        report = JobOperator(task_id="report", asked=request.output).as_teardown()

        request >> check >> report
    return dag
