"""Parameters of a run: what `--param name=value` says `${name}` stands for, before what the flow's file says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pipelines.jobs.environment.errors import WrongUse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

GIVEN = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*=(.*)", re.DOTALL)


def parameters_of(words: Iterable[str]) -> dict[str, str]:
    """Read `name=value` words; whether the flow has such parameters is for its reader to say.

    >>> parameters_of(["pace=10s", "gap = 1m30s"])
    {'pace': '10s', 'gap': '1m30s'}

    Args:
        words: as they were typed behind `--param`.

    Raises:
        WrongUse: a word without name or value, or one name twice.
    """
    found: dict[str, str] = {}
    for word in words:
        read = GIVEN.fullmatch(word)
        if read is None or not read[2].strip():
            raise WrongUse(f"--param must be name=value, such as --param interval=10s; it is `{word}`")
        if read[1] in found:
            raise WrongUse(f"--param must give each parameter once; `{read[1]}` came twice")
        found[read[1]] = read[2].strip()
    return found


def parameter_words(given: Mapping[str, str]) -> list[str]:
    """Spell parameters as a command takes them.

    >>> parameter_words({"pace": "10s"})
    ['--param', 'pace=10s']
    """
    return [word for name, value in given.items() for word in ("--param", f"{name}={value}")]
