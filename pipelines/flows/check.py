"""One check of a source or stream: an expectation with its arguments, and what becomes of rows that break it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping  # noqa: TC003 - the codec reads the types of fields
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from pipelines.flows.offered import OF, offer_of, offers

if TYPE_CHECKING:
    from pipelines.flows.model import Flow

OWN = "expect_"
"""How the names of a team's own checks begin, and none of those that every flow has."""
OF_INTERVALS = frozenset({"expect_table_row_count_to_be_between", "expect_table_row_count_to_equal"})
"""Checks whose arguments are of one interval, as the gate asks them: several intervals are asked one by one."""
BESIDE_OTHERS = frozenset(
    {
        "expect_column_values_to_be_unique",
        "expect_compound_columns_to_be_unique",
        "expect_column_value_z_scores_to_be_less_than",
        "expect_column_values_to_not_be_outliers",
    }
)
"""Checks by which a row breaks what it keeps among fewer others."""
IN_ORDER = ("expect_column_values_to_be_increasing", "expect_column_values_to_be_decreasing")
"""Asked in stream order, each key for itself."""


class Severity(IntEnum):
    """What becomes of an interval that breaks a check."""

    BLOCKING = 0
    """It is not published."""
    WARNING = 1
    """It is, and somebody should look."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """One expectation of a source or stream, as a flow says it."""

    name: str
    """As Great Expectations call it; of another package its class, with the module that it is imported from."""
    arguments: Mapping[str, Any] = field(hash=False)
    severity: str = "blocking"
    where: str = ""
    """An expression: the check is about rows of which it is true; empty for all events."""
    owner: str = ""
    """Whom to ask."""
    remedy: str = ""
    """What to do where it does not hold."""
    label: str = ""
    """The check among all of its table, by its name and what it is about."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Name the columns that it is about."""
        return columns_asked(self.name, self.arguments)

    @property
    def asks(self) -> str:
        """Give a mark of what it asks, of which rows: another severity, owner or remedy asks nothing else."""
        asked = json.dumps([self.name, dict(self.arguments), self.where], sort_keys=True, default=str)
        return hashlib.sha256(asked.encode()).hexdigest()[:16]

    @property
    def in_order(self) -> bool:
        """Say whether it holds each row against the one before it."""
        return self.name in IN_ORDER


def columns_asked(name: str, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Name the columns that an expectation is about; none where it speaks of whatever the table has."""
    if name.startswith("expect_table_") or name == "expect_column_to_exist":
        return ()
    takes = {argument: each.takes for argument, each in offer_of(name).arguments.items()}
    found: list[str] = []
    for argument, value in arguments.items():
        if takes.get(argument) in {"column", "columns"}:
            found += [value] if isinstance(value, str) else value
    return tuple(dict.fromkeys(found))


def with_checks(made: Flow, now: Flow) -> Flow:
    """Give a flow with what another one, of the same file, expects of its sources and streams, rows and volumes.

    Args:
        made: the flow that made some rows.
        now: the flow as its file has it now, whose checks count.
    """
    there = {*made.sources, *made.tables()}
    sources = {
        name: replace(source, volume=now.sources[name].volume if name in now.sources else source.volume)
        for name, source in made.sources.items()
    }
    return replace(
        made,
        sources=sources,
        expect={table: checks for table, checks in now.expect.items() if table in there},
    )


def is_of_each(expectation: str) -> bool:
    """Say whether an expectation is asked of each row, or of each interval: not of all rows together.

    One of another package may hold rows against each other, and nobody knows: what it found is of all.
    """
    name = expectation.partition("(")[0]
    if OF in name:
        return False
    offer = offers().get(name)
    return offer is None or (offer.rows and name not in BESIDE_OTHERS) or name in OF_INTERVALS
