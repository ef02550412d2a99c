"""The operators that run Pulseline's commands as processes of their own: lists of words, no shell, nothing left behind.

What a command prints is the task's log, its last JSON line is the task's result, its last words are kept for the tab.
Exit code 1 (a check failed) and 2 (wrong use) fail the task at once, for trying again would change nothing; others let
Airflow try again.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowRescheduleException,
    AirflowRuntimeError,
    AirflowSkipException,
    ErrorType,
)

from dags.announced import announce
from dags.deployed import environment
from dags.lineage import parent_of
from dags.running import FOUND, GRACE, SAID, Running
from dags.telling import run_address
from dags.turns import comes_first
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.settings import CONFIG

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

    from dags.turns import First

TURN = 3.0
"""Seconds between two looks at the runs before."""
AWAY = 180.0
"""Seconds in which an API server that was away is asked again: each of Airflow's own tries asks for some ten."""
AGAIN, LATER = dt.timedelta(seconds=5), dt.timedelta(minutes=1)
"""Until one that gave up its place looks again; later where the run before waits for a person, who may take days."""
BETWEEN, MOST = 3.0, 1_000
"""Seconds between two that are kept, and characters of one."""


TOLD = ("run", "start", "end", "commit", "verdict")
"""What of an asset's event is passed on."""


class JobOperator(BaseOperator):
    """Runs commands of Pulseline one after the other; the first that fails ends the task.

    Args:
        commands: words of each command, after `pulseline`; they may hold templates, each of which stays one word.
        asked: what the task `request` found out; its `commands` for this task come behind the others, and a sentence
            for this task in its `skip` skips it.
        ran: what the task `run` found out; its `commits` were published on the way, for the events of the assets.
        answer: words that end each of `commands`, which a person's answer gave; None where nobody was asked.
        module: what the words are given to.
        grace: seconds that a command has to stop.
        config: the folder of flows and environments, for the commands; None where they find it by themselves.
    """

    template_fields: Sequence[str] = ("commands", "asked", "ran", "answer")
    ui_color = "#e8f0fe"
    final: tuple[int, ...] = (1, 2)
    """Exit codes that another try would give again."""

    def __init__(  # noqa: PLR0913 - what it runs, and what of the tasks before it
        self,
        *,
        commands: Sequence[Sequence[str]] = (),
        asked: Any = None,  # noqa: ANN401 - a result to come, and a mapping when the task runs
        ran: Any = None,  # noqa: ANN401 - likewise
        answer: Any = None,  # noqa: ANN401 - likewise
        module: str = "pipelines.cli",
        grace: float = GRACE,
        config: str | None = None,
        **kwargs: Any,  # noqa: ANN401 - Airflow's own
    ) -> None:
        super().__init__(**kwargs)
        self.commands, self.asked, self.ran, self.answer = commands, asked, ran, answer
        self.module, self.grace, self.config = module, grace, config
        self._running: Running | None = None
        self._kept = 0.0
        self._stopped = False

    def execute(self, context: Context) -> dict[str, Any]:
        """Run the commands; give what the last one found out, and tell it to the task's assets."""
        asked = self.asked or {}
        if self.task_id in asked.get("skip", {}):
            raise AirflowSkipException(asked["skip"][self.task_id])
        own = [[*words, *(self.answer or ())] for words in self.commands]
        every = [*own, *asked.get("commands", {}).get(self.task_id, [])]
        if not every:
            raise AirflowSkipException("nothing was begun, so there is nothing to do")
        result = self._run_all(every, context)
        ran = self.ran or {}
        announce(self.outlets, context, asked | ran, [*ran.get("commits", []), result])
        return result

    def on_kill(self) -> None:
        """Stop what runs; Airflow calls this when the task is cleared, marked, timed out or ended."""
        self._stopped = True
        if self._running is not None:
            self.log.info("stopping: the command has %.0f s to end by itself", self.grace)
            self._running.stop()

    def _run_all(self, every: Sequence[Sequence[str]], context: Context) -> dict[str, Any]:
        """Run commands up to the first that fails; give what the last one found out."""
        result: dict[str, Any] = {}
        for words in every:
            result = self._run(words, context)
        return result

    def _run(self, words: Sequence[str], context: Context) -> dict[str, Any]:
        begun = time.monotonic()
        self.log.info("%s %s", self.module, " ".join(words))
        self._running = Running([sys.executable, "-m", self.module, *words], self.grace, self._environment(context))
        try:
            for line in self._running.lines():
                self.log.info("%s", line)
                self._keep(context, line)
        except BaseException:
            self._running.stop()
            raise
        finally:
            code = self._running.wait()
        self.log.info("ended with %s after %.1f s", code, time.monotonic() - begun)
        self._judge(code, self._running, context)
        return self._running.result()

    def _environment(self, context: Context) -> dict[str, str]:
        """Give the environment of a command; another try would not mend what is wrong with it."""
        own = {} if self.config is None else {CONFIG: self.config}
        try:
            return environment(os.environ) | parent_of(context) | run_address(context) | own
        except WrongUse as error:
            raise AirflowFailException(str(error)) from None

    def _keep(self, context: Context, line: str, *, now: bool = False) -> None:
        """Keep a line where the tab finds it while the task runs, and behind one that failed."""
        words = bool(line.strip()) and not line.startswith("{")
        if "ti" in context and words and (now or time.monotonic() > self._kept + BETWEEN):
            self._kept = time.monotonic()
            context["ti"].xcom_push(SAID, line[:MOST])

    def _judge(self, code: int, running: Running, context: Context) -> None:
        last = running.last[-1] if running.last else "it said nothing"
        if code:
            found = running.result()
            last = str(found.get("sentence") or last)
            self._keep(context, last, now=True)
            if "ti" in context:
                context["ti"].xcom_push(FOUND, found)
        if self._stopped or running.asked:
            raise AirflowException(f"stopped before it was done; the last that it said: {last}")
        if code in self.final:
            raise AirflowFailException(last)
        if code:
            raise AirflowException(f"exit code {code}: {last}")


class EachOperator(JobOperator):
    """Runs all of its commands, whatever one of them finds: a day that does not hold keeps no other unchecked."""

    def _run_all(self, every: Sequence[Sequence[str]], context: Context) -> dict[str, Any]:
        result: dict[str, Any] = {}
        failed: list[str] = []
        for words in every:
            try:
                result = self._run(words, context)
            except AirflowFailException as failure:
                failed.append(str(failure))
        if failed:
            sentence = "; ".join(failed) if len(every) == 1 else f"{len(failed)} of {len(every)}: {'; '.join(failed)}"
            self._keep(context, sentence, now=True)
            raise AirflowFailException(sentence)
        return result


class RequestOperator(JobOperator):
    """Has a request checked, in its turn: no run of a DAG begins while an earlier one is under way.

    Airflow's backfill starts ten runs at once unless it is told otherwise, whatever `max_active_runs` of the DAG says.
    With `max_active_tis_per_dag=1` the next run waits here, and the others wait in Airflow. One that came too early,
    has one before it that was cleared, or one that waits for a person, gives up its place.
    """

    template_fields: Sequence[str] = ()
    final: tuple[int, ...] = (1, 2, 3)

    def __init__(self, *, kind: str, flow: str, **kwargs: Any) -> None:  # noqa: ANN401 - Airflow's own
        super().__init__(module="pipelines.jobs.commands.request", max_active_tis_per_dag=1, **kwargs)
        self.kind, self.flow = kind, flow

    def execute(self, context: Context) -> dict[str, Any]:
        """Wait for the runs before, then check."""
        while not self._stopped and (first := self._first(context)):
            line = f"waiting for {first.run_id}, which comes before and is not done"
            self.log.info(line)
            self._keep(context, line)
            if not first.begun or first.asks:
                pause = LATER if first.asks else AGAIN
                raise AirflowRescheduleException(dt.datetime.now(dt.UTC) + pause)  # type: ignore[no-untyped-call]
            time.sleep(TURN)
        self.commands = [[self.kind, self.flow, *_told(context)]]
        return super().execute(context)

    def _first(self, context: Context) -> First | None:
        """Give the run that comes before; an API server that is away, as while it is started again, is asked again."""
        until = time.monotonic() + AWAY
        while True:
            try:
                return comes_first(context, self.task_id)
            except AirflowRuntimeError as error:
                away = error.error.error is ErrorType.API_SERVER_ERROR
                if not away or self._stopped or time.monotonic() > until:
                    raise
                self.log.info("Airflow's API server does not answer, and is asked again: %s", error)
                time.sleep(TURN)


def _told(context: Context) -> list[str]:
    """Spell what Airflow knows of the run, as one word each."""
    run = context["dag_run"]
    events = [event.extra for found in context["triggering_asset_events"].values() for event in found]
    said = [{key: event[key] for key in TOLD if key in event} for event in events]
    interval = [run.data_interval_start, run.data_interval_end]
    start, end = ("" if moment is None else moment.isoformat() for moment in interval)
    return [
        f"--conf={json.dumps(run.conf or {})}",
        f"--start={start}",
        f"--end={end}",
        f"--by={run.run_type.value}",
        f"--as={run.run_id}",
        f"--events={json.dumps(said)}",
    ]
