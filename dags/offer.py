"""All DAGs of one flow, for the file that Airflow parses; where the flow is wrong, that file alone cannot be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dags.backfill import backfill_dag
from dags.maintain import maintain_dag
from dags.promises import promises_dag
from dags.quality import quality_dag
from dags.replay import replay_dag
from dags.stream import stream_dag
from pipelines.jobs.environment.offered import offered

if TYPE_CHECKING:
    from airflow.sdk import DAG


def dags_of(called: str, config: str | None = None) -> dict[str, DAG]:
    """Make the DAGs of a flow, by their ids.

    Args:
        called: the name of its file.
        config: the folder of its configuration; None for that of this process.

    Raises:
        FlowError: the file is wrong; Airflow shows the sentence.
        WrongUse: the flow cannot be offered.
    """
    flow = offered(called, config)
    made = [make(flow) for make in (stream_dag, replay_dag, quality_dag, promises_dag, maintain_dag)]
    made += [backfill_dag(flow)] if flow.recorded else []
    return {dag.dag_id: dag for dag in made}
