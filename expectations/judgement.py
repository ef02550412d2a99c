"""What came of one expectation: what is kept of it, told, and asked by the gate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

Keep = Callable[[str, str, "pa.Table"], None]
"""Takes a stream, the name of an expectation, and all rows that break it, in stream order."""


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What came of one expectation."""

    expectation: str
    table: str
    severity: str
    """`blocking`, or `warning`."""
    sentence: str
    """What must hold, in words."""
    remedy: str
    held: bool
    looked_at: int
    """Rows that it is about."""
    unexpected: int
    """Rows that break it; of an account, rows that are missing or too many, or that a merge holds; of a check that
    speaks of a column or table as a whole, none."""
    rows: tuple[dict[str, Any], ...] = ()
    """The first rows that break it, as `offenders` gives them; of an account, its figures; of a column, what was
    seen."""
