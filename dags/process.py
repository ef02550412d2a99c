"""The operators that run Pulseline's commands as processes of their own: lists of words, no shell, nothing left behind.

What a command prints is the task's log; its last JSON line is the task's result. Exit code 1 (a check failed) and 2
(wrong use) fail the task at once, for trying again would change nothing; others let Airflow try again.
"""

from __future__ import annotations

import datetime as dt
import json
import sys
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowRescheduleException,
    AirflowSkipException,
)

from dags.running import GRACE, Running

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

TURN = 3.0
"""Seconds between two looks at the runs before."""
AGAIN = dt.timedelta(seconds=5)
OPEN = ("running", "queued")


class JobOperator(BaseOperator):
    """Runs commands of Pulseline one after the other; the first that fails ends the task.

    Args:
        commands: words of each command, after `pulseline`; they may hold templates, each of which stays one word.
        asked: what the task `request` found out; its `commands` for this task come behind the others, and a sentence
            for this task in its `skip` skips it.
        module: what the words are given to.
        grace: seconds that a command has to stop.
    """

    template_fields: Sequence[str] = ("commands", "asked")
    ui_color = "#e8f0fe"
    final: tuple[int, ...] = (1, 2)
    """Exit codes that another try would give again."""

    def __init__(
        self,
        *,
        commands: Sequence[Sequence[str]] = (),
        asked: Any = None,  # noqa: ANN401 - a result to come, and a mapping when the task runs
        module: str = "pipelines.cli",
        grace: float = GRACE,
        **kwargs: Any,  # noqa: ANN401 - Airflow's own
    ) -> None:
        super().__init__(**kwargs)
        self.commands, self.asked, self.module, self.grace = commands, asked, module, grace
        self._running: Running | None = None
        self._stopped = False

    def execute(self, context: Context) -> dict[str, Any]:
        """Run the commands; give what the last one found out, and tell it to the task's assets."""
        asked = self.asked or {}
        if self.task_id in asked.get("skip", {}):
            raise AirflowSkipException(asked["skip"][self.task_id])
        result: dict[str, Any] = {}
        for words in [*self.commands, *asked.get("commands", {}).get(self.task_id, [])]:
            result = self._run(words)
        for asset in self.outlets:
            context["outlet_events"][asset].extra = result | {"report": _tab(context)}
        return result

    def on_kill(self) -> None:
        """Stop what runs; Airflow calls this when the task is cleared, marked, timed out or ended."""
        self._stopped = True
        if self._running is not None:
            self.log.info("stopping: the command has %.0f s to end by itself", self.grace)
            self._running.stop()

    def _run(self, words: Sequence[str]) -> dict[str, Any]:
        begun = time.monotonic()
        self.log.info("%s %s", self.module, " ".join(words))
        self._running = Running([sys.executable, "-m", self.module, *words], self.grace)
        try:
            for line in self._running.lines():
                self.log.info("%s", line)
        except BaseException:
            self._running.stop()
            raise
        finally:
            code = self._running.wait()
        self.log.info("ended with %s after %.1f s", code, time.monotonic() - begun)
        self._judge(code, self._running)
        return self._running.result()

    def _judge(self, code: int, running: Running) -> None:
        last = running.last[-1] if running.last else "it said nothing"
        if self._stopped or running.asked:
            raise AirflowException(f"stopped before it was done; the last that it said: {last}")
        if code in self.final:
            raise AirflowFailException(last)
        if code:
            raise AirflowException(f"exit code {code}: {last}")


class RequestOperator(JobOperator):
    """Has a request checked, in its turn: no run of a DAG begins while an earlier one is under way.

    Airflow's backfill starts ten runs at once unless it is told otherwise, whatever `max_active_runs` of the DAG says.
    With `max_active_tis_per_dag=1` the next run waits here, and the others wait in Airflow. One that came too early, or
    has one before it that was cleared, gives up its place.
    """

    template_fields: Sequence[str] = ()
    final: tuple[int, ...] = (1, 2, 3)

    def __init__(self, *, kind: str, flow: str, **kwargs: Any) -> None:  # noqa: ANN401 - Airflow's own
        super().__init__(module="pipelines.jobs.commands.request", max_active_tis_per_dag=1, **kwargs)
        self.kind, self.flow = kind, flow

    def execute(self, context: Context) -> dict[str, Any]:
        """Wait for the runs before, then check."""
        while not self._stopped and (before := _under_way(context)):
            self.log.info("waiting for %s, which comes before and is not done", before)
            if not _begun(context, before, self.task_id):
                raise AirflowRescheduleException(dt.datetime.now(dt.UTC) + AGAIN)  # type: ignore[no-untyped-call]
            time.sleep(TURN)
        self.commands = [[self.kind, self.flow, *_told(context)]]
        return super().execute(context)


def _begun(context: Context, run_id: str, task_id: str) -> bool:
    """Say whether a run of the same DAG has had its turn, and is not waiting for it."""
    states = context["ti"].get_task_states(context["dag_run"].dag_id, task_ids=[task_id], run_ids=[run_id])
    return bool(states.get(run_id, {}).get(task_id) == "success")


def _tab(context: Context) -> str:
    """Give the address of the run's tab **Pulseline**, under Airflow's own."""
    run = context["dag_run"]
    return f"/dags/{run.dag_id}/runs/{quote(run.run_id, safe='')}/plugin/pulseline-run"


def _told(context: Context) -> list[str]:
    """Spell what Airflow knows of the run, as one word each."""
    run = context["dag_run"]
    events = [event.extra for found in context["triggering_asset_events"].values() for event in found]
    said = [{key: event[key] for key in ("run", "start", "end") if key in event} for event in events]
    interval = [run.data_interval_start, run.data_interval_end]
    start, end = ("" if moment is None else moment.isoformat() for moment in interval)
    return [
        f"--conf={json.dumps(run.conf or {})}",
        f"--start={start}",
        f"--end={end}",
        f"--by={run.run_type.value}",
        f"--events={json.dumps(said)}",
    ]


def _under_way(context: Context) -> str | None:
    """Name a run of the same DAG that comes before and is not done; None where there is none."""
    instance = context["ti"]
    found = (instance.get_previous_dagrun(state=state) for state in OPEN)
    return next((run.run_id for run in found if run is not None), None)
