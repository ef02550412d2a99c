"""# Replay: a recording played again, and compared.

What a run took in is played through the flow as it is now, into a run of its own; then both runs are held against each
other, stream by stream and to the byte. The recording is only read.

## When all is well

Press *Trigger*, choose the run whose recording is played, press *Trigger* again. Without *From* and *To* it is all that
is published. Both name a state: the number of a commit (0 is the beginning), `sequence:40`, or a date or instant in the
flow's timezone, which means the newest commit that covers no more than that.

| task | does |
| --- | --- |
| `request` | reads the form again, looks the two states up, and says in seconds what cannot be played, and why |
| `replay` | `pulseline replay`: plays, then compares; green where both runs have the same rows of every table |
| `report` | makes the page of the new run; it is the tab **Pulseline** |

The log of `replay` ends with a table of both runs; its XCom is `pulseline status` of the new one, whose rows can be
looked at: `pulseline show FLOW STREAM --run replay`. It stays until the next replay into that name replaces it.

**To stop it**, mark `replay` as failed: the command ends at once. The recording is as it was; what was played so far
stays in the new run, and counts for nothing. **To begin again**, clear `replay` or trigger: it plays from *From* on.

## When a task is red

Options that a message names are fields of the form: `--from` is *From*, `--into` is *Into*.

* `replay`, *DIFFERENT*: both runs were played to their ends, and do not have the same rows. Above it the log names for
  each table that differs the first such row of both, how many others there are, and the cause:
    * *the flow has changed (delay 2h → 1h)*: this is what the change does. Where it is meant,
      `pulseline apply FLOW --run RUN` takes it into use; else put the old setting back.
    * *an operator has another version than when this was recorded*: CHANGELOG.md says what has changed. The rows that
      are published stay; `pulseline reset FLOW --run RUN --to COMMIT` and a new stream replace them, or for days a
      backfill with *Run again what is published*.
    * *nothing in the flow or in the operators' versions explains it*: a defect. Keep both runs, and report both rows.
* `request`, *run ... is there already*: that run was made by a stream or a backfill, which a replay never replaces.
  Choose another name for *Into*.
* `request`, *what is to be played again must still be kept*: rows of the recording were removed, as `landed: keep` of
  the environment says. Its last line has the first state that can still be played from: give that as *From*.
* `request`, *landed under another declaration*: a source's key, time or columns are declared otherwise than when it
  landed, and landed rows are stamped. Put the declaration back and trigger again, or run or stream the flow into a run
  of its own: *Run* of `stream_...`, or `pulseline run FLOW --run NAME`.
* `request`, anything else: its last line says which word of the form is wrong, or what there is to be played.
* `replay`, *must have one driver at a time*: somebody replays into that run from a shell. Wait, or choose another name.
* `replay`, anything else: its last line says what to do; clear it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import DAG

from dags.process import JobOperator, RequestOperator
from dags.wiring import replay_form, usual

if TYPE_CHECKING:
    from pipelines.jobs.environment.offered import Offered


def replay_dag(flow: Offered) -> DAG:
    """Make the DAG of a flow."""
    with DAG(
        **usual("replay", flow, __doc__),
        schedule=None,
        is_paused_upon_creation=False,
        params=replay_form(),
    ) as dag:
        request = RequestOperator(task_id="request", kind="replay", flow=flow.called)
        replay = JobOperator(task_id="replay", asked=request.output)
        report = JobOperator(task_id="report", asked=request.output).as_teardown()

        request >> replay >> report
    return dag
