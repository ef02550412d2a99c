"""What a run does inside, line by line on standard error, for whoever asks for it by PULSELINE_LOG."""

from __future__ import annotations

import datetime as dt
import logging
import os
import sys

from pipelines.flows.errors import nearest, one_of
from pipelines.jobs.environment.errors import WrongUse

LOG = "PULSELINE_LOG"
LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
NAMES = ("pipelines", "expectations")
"""Loggers above all of ours."""


class UtcFormatter(logging.Formatter):
    """Format lines with their instant in UTC, to the millisecond, as ISO 8601 has it."""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: ARG002, N802 - logging's
        """Give the instant of a record."""
        return f"{dt.datetime.fromtimestamp(record.created, dt.UTC):%Y-%m-%dT%H:%M:%S}.{record.msecs:03.0f}Z"


def log_to_stderr() -> None:
    """Have our loggers write to standard error from the level on that PULSELINE_LOG names; nothing where it is not set.

    Whoever calls us from Python, Airflow among them, has handlers of its own and needs none of this.

    Raises:
        WrongUse: it names no level.
    """
    said = os.environ.get(LOG, "").strip()
    if not said:
        return
    level = LEVELS.get(said.lower())
    if level is None:
        near = nearest(said, LEVELS)
        hint = f"; did you mean `{near}`?" if near else ""
        raise WrongUse(f"{LOG} must be {one_of(LEVELS)}; it is `{said}`{hint}")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(UtcFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    for name in NAMES:
        logger = logging.getLogger(name)
        logger.setLevel(level)
        if not logger.handlers:
            logger.addHandler(handler)
            logger.propagate = False
