"""# Promises: complete days, each announced once.

Every minute this looks how far the promises (CTIs) of the runs `main` and `live` reach. A day of the flow's timezone
that those of one of the two have passed is complete there: no event of it will come any more. It becomes a partition of
the asset *FLOW, complete days*, once, whatever is killed. The key is the day, such as `2013-01-01`; the extra has the
run whose tables have it, its span, counts and content hashes.

## When all is well

It is paused at first: unpause it where somebody waits for complete days. Such a DAG is scheduled on partitions:

    from airflow.sdk import Asset, PartitionedAssetTimetable

    days = Asset(name="flights, complete days", uri="pulseline://flights/days", group="pulseline")
    with DAG("report", schedule=PartitionedAssetTimetable(assets=days)): ...

and reads `dag_run.partition_key`. A plain `schedule=[days]` never runs for a partition; *FLOW by backfill* and
*FLOW by stream* have plain events of each run, as before.

| task | does |
| --- | --- |
| `look` | holds the tables against the run's ledger and Airflow's events; gives the days that are due, 31 at most |
| `announce` | a task a day: one event, with the day as its partition; skipped where nothing is due |

A day of which a stream published something, which it does unchecked, is also told to `quality_`, once, without a
partition: it checks that day while the stream goes on. What a gate has judged is not told there.

The last day of a backfill is complete when the next one has run, for CTIs lag behind by the flow's `delay`. A flow of
streams that promise nothing, or only key by key, has no complete days, and `look` says so. While something is stale,
nothing new is announced.

## When something falls silent

With `[pulseline] on_silence = 15m` in Airflow's configuration, `look` also tells the notifiers of `[pulseline] alerts`
what has made no progress for so long while a stream runs: a source, the promises of a stream, the commits; of a source
under which the flow says `on_silence`, also each key. It tells once, and once again when it speaks; a stream that does
not run is told of by its own task.

## When a task is red

* `look`: its last line says what is wrong. Nothing was announced; the next minute looks again.
* `announce`: clear it, or leave it: what was not announced is due again a minute later.

## Good to know

A day that is run again is not announced again. `announced.json` in the run's folder is the ledger; with it and
Airflow's events both gone, all days are due again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import DAG

from dags.complete import AnnounceOperator, LookOperator
from dags.wiring import EVERY_MINUTE, LONG_AGO, complete_days, tells_of_days, usual

if TYPE_CHECKING:
    from pipelines.jobs.environment.offered import Offered


def promises_dag(flow: Offered) -> DAG:
    """Make the DAG of a flow."""
    with DAG(
        **usual("promises", flow, __doc__),
        schedule=EVERY_MINUTE,
        start_date=LONG_AGO,
        catchup=False,
        is_paused_upon_creation=True,
    ) as dag:
        look = LookOperator(task_id="look", flow=flow.called, asset=complete_days(flow))
        AnnounceOperator.partial(task_id="announce", **tells_of_days(flow)).expand(day=look.output)
    return dag
