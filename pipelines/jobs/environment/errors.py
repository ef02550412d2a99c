"""The errors that only jobs raise."""

from __future__ import annotations

from pipelines.errors import Exit, PulselineError


class JobError(PulselineError):
    """A job cannot do what was asked; every error that jobs raise is one of these."""


class WrongUse(JobError, ValueError):  # noqa: N818 - says what the user did
    """What was asked for makes no sense."""

    code = Exit.WRONG_USE
