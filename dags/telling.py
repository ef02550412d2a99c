"""Who is told that days failed, and what: the sentence, three rows, a link; once a cause, not once a task.

The notifiers are those of `[pulseline] alerts` in Airflow's configuration; see `dags.patience`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow.sdk.configuration import conf

from dags.patience import notify
from dags.running import FOUND, SAID
from dags.turns import ASKS
from pipelines.jobs.environment.asked_for import RUN_URL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.sdk import Context

ROWS = 3
"""Rows that break an expectation and are told."""
JUDGES, PUBLISHES = "check", "publish"
"""Tasks that share a cause: what does not hold is told where a person is asked, and an answer tells nobody."""
LOG = logging.getLogger(__name__)


def failed(context: Context) -> None:
    """Tell that a task failed for good, unless another one tells of the same cause."""
    instance = context["ti"]
    found = _pulled(context, instance.task_id, FOUND) or {}
    is_asked = instance.task_id == JUDGES and bool(found.get("question"))
    is_answered = instance.task_id == PUBLISHES and bool(_pulled(context, ASKS, "return_value"))
    if not is_asked and not is_answered:
        said = found.get("sentence") or _pulled(context, instance.task_id, SAID) or context.get("exception")
        tell(context, f"{instance.task_id} failed: {said or 'its log says why'}", found)


def tell(context: Context, sentence: str, found: Mapping[str, Any]) -> None:
    """Tell the notifiers something; one that cannot be reached is in the log, and fails nothing.

    Args:
        context: of the task.
        sentence: what happened.
        found: what the task found out; `offenders` are rows that break an expectation, in words.
    """
    rows = [f"  {row}" for row in found.get("offenders", ())[:ROWS]]
    text = "\n".join([f"{context['ti'].dag_id}: {sentence}", *rows, link(context)])
    try:
        notify({**context, "exception": text})
    except Exception:
        LOG.exception("nobody could be told: %s", text)


def link(context: Context) -> str:
    """Give the address of the tab that shows the run."""
    return f"{_base()}{_run(context)}/plugin/pulseline-run"


def run_address(context: Context) -> dict[str, str]:
    """Name the page of the run, as a variable of a command's environment; nothing where no address of Airflow is known.

    What the command makes remembers it, and the report leads there.

    Args:
        context: of the task.
    """
    base = _base()
    return {RUN_URL: f"{base}{_run(context)}"} if base and "ti" in context else {}


def _base() -> str:
    return str(conf.get("api", "base_url", fallback="") or "").rstrip("/")


def _run(context: Context) -> str:
    instance = context["ti"]
    return f"/dags/{quote(instance.dag_id)}/runs/{quote(instance.run_id, safe='')}"


def _pulled(context: Context, task: str, key: str) -> Any:  # noqa: ANN401 - whatever a task kept
    try:
        return context["ti"].xcom_pull(task_ids=task, key=key)
    except Exception:  # noqa: BLE001 - what cannot be asked for is not told
        return None
