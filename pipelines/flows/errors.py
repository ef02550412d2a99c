"""What can be wrong with a flow, said in one line: the place, what came, what was expected, the nearest right word."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

LIKENESS = 0.6
"""How alike two words must be (`difflib`, 0 to 1) for one to be offered for the other."""


class FlowsError(Exception):
    """Anything that the flow layer refuses."""


class FlowError(FlowsError, ValueError):
    """A flow file that is wrong somewhere.

    >>> print(FlowError("flights.yaml", 9, "`heartbeet` in stream `beating`", "an operator", "heartbeat"))
    flights.yaml:9: `heartbeet` in stream `beating`, expected an operator; did you mean `heartbeat`?
    """

    def __init__(self, file: str, line: int, came: str, expected: str, nearest: str | None = None) -> None:
        """Keep the facts as attributes.

        Args:
            file: the flow file, as it was given.
            line: where in it, from 1.
            came: what stands there.
            expected: what should stand there.
            nearest: the right word that looks most like what came, where there is one.
        """
        super().__init__(file, line, came, expected, nearest)
        self.file, self.line, self.came, self.expected, self.nearest = file, line, came, expected, nearest

    def __str__(self) -> str:
        """Say it in one line."""
        hint = f"; did you mean `{self.nearest}`?" if self.nearest else ""
        return f"{self.file}:{self.line}: {self.came}, expected {self.expected}{hint}"


class DurationError(FlowsError, ValueError):
    """A duration that cannot be read, or is no whole number of microseconds.

    `nearest` is the right word that looks most like what came, where there is one.
    """

    def __init__(self, came: str, expected: str, nearest: str | None = None) -> None:
        """Keep the facts as attributes."""
        super().__init__(came, expected, nearest)
        self.came, self.expected, self.nearest = came, expected, nearest

    def __str__(self) -> str:
        """Say it in one line."""
        hint = f"; did you mean `{self.nearest}`?" if self.nearest else ""
        return f"{self.came}, expected {self.expected}{hint}"


class GridError(FlowsError, ValueError):
    """A span of dates that does not lie on the flow's grid.

    `before` and `after` are the nearest instants that do, as ISO 8601 in the flow's timezone; None where there is no
    such choice.
    """

    def __init__(self, came: str, expected: str, before: str | None = None, after: str | None = None) -> None:
        """Keep the facts as attributes."""
        super().__init__(came, expected, before, after)
        self.came, self.expected, self.before, self.after = came, expected, before, after

    def __str__(self) -> str:
        """Say it in one line."""
        hint = f"; the nearest are {self.before} and {self.after}" if self.before and self.after else ""
        return f"{self.came}, expected {self.expected}{hint}"


class DefinitionError(FlowsError, ValueError):
    """A stored definition of a flow that this version cannot read."""

    def __init__(self, problem: str) -> None:
        """Keep the facts as attributes."""
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        """Say it in one line."""
        return f"the stored flow cannot be read: {self.problem}; run it with the version that wrote it"


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
