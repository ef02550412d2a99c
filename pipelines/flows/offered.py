"""Which expectations a flow may ask for: the list that `python -m expectations.catalogue` writes, and others' classes.

A class of another package has the name by which Python imports it. What it is nobody knows before a job looks it up
(`expectations.others`): a flow is read where the package may not be installed.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

FILE = "offered.json"
CLASS = re.compile(r"([^\W\d]\w*\.)+Expect\w+")
"""How the class of another package is written."""
OF = " of "
"""Stands between the name and the module of an expectation of another package where people read it."""


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


def offer_of(name: str) -> Offer:
    """Give what is known of an expectation by its name: of another package's what all of Great Expectations' take.

    Raises:
        KeyError: there is none.
    """
    return OTHER if is_other(name) else offers()[name]


def is_other(name: str) -> bool:
    """Say whether an expectation is a class of another package than Great Expectations."""
    return "." in name


def told_name(name: str) -> str:
    """Give the name of an expectation as people read it, which begins as all do.

    >>> told_name("bank.checks.ExpectColumnValuesToBeIban"), told_name("expect_column_to_exist")
    ('expect_column_values_to_be_iban of bank.checks', 'expect_column_to_exist')
    """
    module, dot, kind = name.rpartition(".")
    return f"{snake(kind)}{OF}{module}" if dot else name


def snake(kind: str) -> str:
    """Give the name that Great Expectations call a class by.

    >>> snake("ExpectColumnPairValuesAToBeGreaterThanB")
    'expect_column_pair_values_a_to_be_greater_than_b'
    """
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", kind)).lower()


def _offer(said: dict[str, Any]) -> Offer:
    arguments = {
        name: Argument(tuple(each["takes"]) if isinstance(each["takes"], list) else each["takes"], each["required"])
        for name, each in said["arguments"].items()
    }
    return Offer(said["says"], said["rows"], said["needs"], arguments, said["refused"])


OTHER = Offer(
    says="",
    rows=True,
    needs="",
    arguments={
        "column": Argument("column", required=False),
        "column_A": Argument("column", required=False),
        "column_B": Argument("column", required=False),
        "column_list": Argument("columns", required=False),
        "mostly": Argument("share", required=False),
    },
    refused="",
)
"""What is known of a class that nobody has looked up: where its columns stand, and no more."""
