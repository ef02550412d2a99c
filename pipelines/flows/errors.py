"""What can be wrong with a flow, said in one line: the place, what came, what was expected, the nearest right word."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipelines.errors import Exit, PulselineError

if TYPE_CHECKING:
    from collections.abc import Iterable

LIKENESS = 0.6
"""How alike two words must be (`difflib`, 0 to 1) for one to be offered for the other."""


class FlowsError(PulselineError):
    """Anything that the flow layer refuses."""

    code = Exit.WRONG_USE


@dataclass(eq=False)
class FlowError(FlowsError, ValueError):
    """A flow file that is wrong somewhere.

    >>> print(FlowError("flights.yaml", 9, "`heartbeet` in stream `beating`", "an operator", "heartbeat"))
    flights.yaml:9: `heartbeet` in stream `beating`, expected an operator; did you mean `heartbeat`?
    """

    file: str
    """The flow file, as it was given."""
    line: int
    """Where in it, from 1."""
    came: str
    """What stands there."""
    expected: str
    """What should stand there."""
    nearest: str | None = None
    """The right word that looks most like what came, where there is one."""

    def __str__(self) -> str:
        hint = f"; did you mean `{self.nearest}`?" if self.nearest else ""
        return f"{self.file}:{self.line}: {self.came}, expected {self.expected}{hint}"


@dataclass(eq=False)
class DurationError(FlowsError, ValueError):
    """A duration that cannot be read, or is no whole number of microseconds.

    `nearest` is the right word that looks most like what came, where there is one.
    """

    came: str
    expected: str
    nearest: str | None = None

    def __str__(self) -> str:
        hint = f"; did you mean `{self.nearest}`?" if self.nearest else ""
        return f"{self.came}, expected {self.expected}{hint}"


@dataclass(eq=False)
class GridError(FlowsError, ValueError):
    """A span of dates that does not lie on the flow's grid.

    `before` and `after` are the nearest instants that do, as ISO 8601 in the flow's timezone; None where there is no
    such choice.
    """

    came: str
    expected: str
    before: str | None = None
    after: str | None = None

    def __str__(self) -> str:
        hint = f"; the nearest are {self.before} and {self.after}" if self.before and self.after else ""
        return f"{self.came}, expected {self.expected}{hint}"


@dataclass(eq=False)
class DefinitionError(FlowsError, ValueError):
    """A stored definition of a flow that this version cannot read."""

    problem: str
    code = Exit.RUN_FAILED
    says = "the stored flow cannot be read: {problem}; run it with the version that wrote it"


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """Find the choice that looks most like `word`, if one does.

    >>> nearest("Slak", ["interval", "slack"])
    'slack'
    >>> nearest("zebra", ["interval", "slack"]) is None
    True
    """
    lowered = {choice.lower(): choice for choice in choices}
    found = difflib.get_close_matches(word.lower(), lowered, n=1, cutoff=LIKENESS)
    return lowered[found[0]] if found else None


def one_of(choices: Iterable[str]) -> str:
    """Spell a choice for a person.

    >>> one_of(["a"]), one_of(["a", "b", "c"])
    ('`a`', 'one of `a`, `b`, `c`')
    """
    spelled = [f"`{choice}`" for choice in choices]
    return spelled[0] if len(spelled) == 1 else "one of " + ", ".join(spelled)
