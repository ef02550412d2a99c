"""How jobs end: exit codes, and the errors that only jobs raise."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of every command."""

    FINE = 0
    CHECK_FAILED = 1
    """A check was made and did not hold."""
    WRONG_USE = 2
    """The command, its arguments or a file it reads make no sense; nothing was done."""
    RUN_FAILED = 3
    """The work was begun and could not be finished; running it again goes on from there."""


class JobError(Exception):
    """A job cannot do what was asked; every error that jobs raise is one of these."""

    code = Exit.RUN_FAILED


class WrongUse(JobError, ValueError):  # noqa: N818 - says what the user did
    """What was asked for makes no sense."""

    code = Exit.WRONG_USE
