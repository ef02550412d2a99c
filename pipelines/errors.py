"""What every error of ours is: facts in fields, one sentence made of them, and how a command ends that it reaches."""

from __future__ import annotations

from dataclasses import Field, fields, is_dataclass
from enum import IntEnum
from typing import ClassVar


class Exit(IntEnum):
    """Exit codes of every command."""

    FINE = 0
    CHECK_FAILED = 1
    """A check was made and did not hold."""
    WRONG_USE = 2
    """The command, its arguments or a file it reads make no sense; nothing was done."""
    RUN_FAILED = 3
    """The work was begun and could not be finished; running it again goes on from there."""


class PulselineError(Exception):
    """An error whose own sentence says all: what is required, what came, what to do.

    One with facts is a dataclass with `eq=False`, for no two errors are the same, and not frozen, for whoever passes an
    error on sets its traceback. It comes back out of a pickle, as from a worker of Spark, by its fields.
    """

    code: ClassVar[Exit] = Exit.RUN_FAILED
    is_of_work: ClassVar[bool] = True
    """Whether less work may come further: what says that nobody works at all says so of each part."""
    says: ClassVar[str] = ""
    """The sentence, with fields in braces; an error that must reckon first has a `__str__` of its own."""

    def __str__(self) -> str:
        """Fill the facts into `says`; one that has none says what it was raised with."""
        if not self.says:
            return super().__str__()
        return self.says.format(**{field.name: getattr(self, field.name) for field in _facts(self)})

    def __reduce__(self) -> tuple[object, ...]:
        """Make it again of its facts, whether they were given by place or by name."""
        if not _facts(self):
            return super().__reduce__()  # type: ignore[return-value]
        return type(self), tuple(getattr(self, field.name) for field in _facts(self) if field.init)


def _facts(error: object) -> tuple[Field[object], ...]:
    return fields(error) if is_dataclass(error) else ()
