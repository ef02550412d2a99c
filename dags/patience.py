"""How a stream is tried again: for ever, soon where it had worked and less and less often else; and who is told."""

from __future__ import annotations

import datetime as dt
import importlib
import json
import logging
from typing import TYPE_CHECKING, Any

from airflow.sdk import RetryPolicy
from airflow.sdk.configuration import conf
from airflow.sdk.definitions.retry_policy import RetryDecision

if TYPE_CHECKING:
    from airflow.sdk import Context

SOON, LATEST = dt.timedelta(seconds=5), dt.timedelta(minutes=5)
"""Between two tries: after one that had worked for a while, and at most."""
WORKED = dt.timedelta(minutes=5)
"""One that ran as long had worked."""
AFTER, AGAIN = 4, 12
"""The try that tells somebody, and how many more there are until the next that does."""
SECTION, OPTION, SILENCE = "pulseline", "alerts", "on_silence"
LOG = logging.getLogger(__name__)


class Patience(RetryPolicy):
    """Tries again for ever; the pause doubles, and is short again after a try that had worked."""

    def evaluate(
        self,
        exception: BaseException,
        try_number: int,
        max_tries: int,  # noqa: ARG002 - Airflow's own
        context: Context | None = None,
    ) -> RetryDecision:
        """Say when the next try is."""
        begun = None if context is None else context["ti"].start_date
        ran = dt.timedelta(0) if begun is None else dt.datetime.now(dt.UTC) - begun
        return RetryDecision.retry(pause(try_number, ran), str(exception)[:200])

    def serialize(self) -> dict[str, Any]:
        """Give nothing: there is nothing to set."""
        return {}


def pause(try_number: int, ran: dt.timedelta) -> dt.timedelta:
    """Give the time until the next try.

    Args:
        try_number: of the one that failed, from 1.
        ran: how long that one ran.

    >>> [pause(tries, dt.timedelta(seconds=9)).seconds for tries in (1, 2, 6, 7, 900)]
    [5, 10, 160, 300, 300]
    >>> pause(900, dt.timedelta(minutes=6)).seconds
    5
    """
    doubled = SOON * 2 ** min(try_number - 1, 10)
    return SOON if ran >= WORKED else min(doubled, LATEST)


def alert(context: Context) -> None:
    """Tell Airflow's notifiers that a stream failed several times, or for good; the log has it in any case.

    `[pulseline] alerts` of Airflow's configuration is a JSON list of `{"classpath": ..., "kwargs": {...}}`.
    """
    instance = context["ti"]
    tries = instance.try_number
    final = tries > instance.max_tries
    if not final and (tries < AFTER or (tries - AFTER) % AGAIN):
        return
    LOG.error("%s of %s has failed %d times: %s", instance.task_id, instance.dag_id, tries, context.get("exception"))
    notify(context)


def notify(context: Context) -> None:
    """Call the notifiers that Airflow's configuration names; `exception` of the context is what they are told.

    Raises:
        ExceptionGroup: some could not tell it; the others have.
    """
    problems = []
    for notifier in json.loads(conf.get(SECTION, OPTION, fallback="[]")):
        module, _, name = notifier["classpath"].rpartition(".")
        try:
            getattr(importlib.import_module(module), name)(**notifier.get("kwargs", {}))(context)
        except Exception as problem:  # noqa: BLE001 - whatever is wrong with one, the next is told
            problems.append(problem)
    if problems:
        raise ExceptionGroup("not every notifier could tell it", problems)


def silence() -> str:
    """Give how long something may be silent before somebody is told, such as 15m; empty where nobody is.

    `[pulseline] on_silence` of Airflow's configuration.
    """
    return str(conf.get(SECTION, SILENCE, fallback=""))
