"""Which expectations a flow may ask for: the list that `python -m expectations.catalogue` writes."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

FILE = "offered.json"


class Argument(NamedTuple):
    """One thing that an expectation is told."""

    takes: str | tuple[str, ...]
    """`column`, `columns`, `number`, `whole number`, `share`, `truth`, `text`, `texts`, `value` (a number or an
    instant), `values`, `pairs`, `ranges`, `object`, or the words to choose from."""
    required: bool


class Offer(NamedTuple):
    """One expectation of Great Expectations."""

    says: str
    rows: bool
    """It says of each row whether it fits; others speak of the table or a column as a whole."""
    needs: str
    """What its columns must be: `text`, `number`, or empty."""
    arguments: dict[str, Argument]
    refused: str
    """Why it is not offered; empty where it is."""


@cache
def offers() -> dict[str, Offer]:
    """Give all that Great Expectations has, by name, also what is refused."""
    said: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name(FILE).read_text(encoding="utf-8"))
    return {name: _offer(each) for name, each in said.items()}


def _offer(said: dict[str, Any]) -> Offer:
    arguments = {
        name: Argument(tuple(each["takes"]) if isinstance(each["takes"], list) else each["takes"], each["required"])
        for name, each in said["arguments"].items()
    }
    return Offer(said["says"], said["rows"], said["needs"], arguments, said["refused"])
