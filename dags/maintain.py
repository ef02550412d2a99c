"""# Maintain: tables and history of all runs of a flow in order, daily.

Runs put small files together and sweep what nobody reads any more by themselves, every so many commits. This does it
for those that make few commits, or none any more; it changes no row and no hash.

## When all is well

It is paused at first: unpause it, and it runs each night (UTC).

| task | does |
| --- | --- |
| `maintain` | `pulseline maintain`: small files put together, old files and landed rows removed, a look at all |

Its result says by run how many files and bytes there were before and after, and what was freed. Versions of tables stay
readable for a week; landed rows as long as `landed: keep` of the settings says. A run at which a driver is at work is
left alone, for that keeps it in order itself.

## When a task is red

* *The doctor's sentence*: something keeps a run from going on, such as a file that is gone. `pulseline doctor FLOW`
  says what can be had again.
* *nothing was run yet*: run the flow first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import DAG

from dags.process import JobOperator
from dags.wiring import DAILY, LONG_AGO, usual

if TYPE_CHECKING:
    from pipelines.jobs.environment.offered import Offered


def maintain_dag(flow: Offered) -> DAG:
    """Make the DAG of a flow."""
    with DAG(
        **usual("maintain", flow, __doc__),
        schedule=DAILY,
        start_date=LONG_AGO,
        catchup=False,
        is_paused_upon_creation=True,
    ) as dag:
        JobOperator(task_id="maintain", commands=[["maintain", flow.called, "--json"]])
    return dag
