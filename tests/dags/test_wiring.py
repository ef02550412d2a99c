"""What all DAGs of a flow share: whose they are, and which slots their tasks take."""

from __future__ import annotations

import configparser
import datetime as dt
from typing import TYPE_CHECKING

import pytest
from airflow.sdk.definitions._internal.abstractoperator import DEFAULT_OWNER, DEFAULT_POOL_NAME

from dags.backfill import backfill_dag
from dags.local.place import Place
from dags.local.settings import write_settings
from dags.maintain import maintain_dag
from dags.pools import SLOTS, STREAMS
from dags.promises import promises_dag
from dags.quality import quality_dag
from dags.replay import replay_dag
from dags.stream import stream_dag
from pipelines.jobs.environment.offered import Offered

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from airflow.sdk import DAG

MAKERS = (backfill_dag, stream_dag, replay_dag, quality_dag, promises_dag, maintain_dag)
STARTS = dt.datetime(2013, 1, 1, tzinfo=dt.UTC)


def flow(owner: str = "") -> Offered:
    """Give a flow as a scheduler sees it."""
    return Offered(called="trips", name="trips", about="Trips.", owner=owner, starts=STARTS)


@pytest.mark.parametrize("make", MAKERS)
def test_the_owner_of_a_flow_owns_its_dags(make: Callable[[Offered], DAG]) -> None:
    assert {task.owner for task in make(flow("Team Trips")).tasks} == {"Team Trips"}
    assert {task.owner for task in make(flow()).tasks} == {DEFAULT_OWNER}


@pytest.mark.parametrize("make", MAKERS)
def test_only_what_streams_takes_a_slot_of_the_streams(make: Callable[[Offered], DAG]) -> None:
    pools = {task.task_id: task.pool for task in make(flow()).tasks}
    streams = [task for task, pool in pools.items() if pool == STREAMS]
    assert streams == (["stream"] if make is stream_dag else [])
    assert set(pools.values()) <= {STREAMS, DEFAULT_POOL_NAME}


def test_streams_leave_slots_to_all_other_tasks(tmp_path: Path) -> None:
    place = Place(tmp_path / "airflow")
    write_settings(place, 8080, "postgresql://here")
    found = configparser.RawConfigParser()
    found.read(place.folder / "airflow.cfg")
    assert found.getint("core", "parallelism") - SLOTS >= SLOTS
