"""How the columns of a file fit those of its recorded feed: what it lacks, what it brings, why no row of it lands."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pipelines.engine.landing.column_errors import Breach
from pipelines.engine.landing.file_rows import DROPPED, Line
from pipelines.engine.landing.types import spelled_type
from pipelines.flows.feeds.spec import Missing

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from pipelines.engine.landing.file_rows import ColumnTerms

RAW_BYTES = 1 << 20
"""How much of a file that cannot be read goes to the ledger."""


class Fit(NamedTuple):
    """How a file's columns fit."""

    lacking: tuple[str, ...] = ()
    """Columns of the feed that the file does not have, and its rows have null in."""
    new: tuple[str, ...] = ()
    """Columns that nobody declared, and that land beside the others."""
    wrong: Line | None = None
    """Why none of its rows lands."""

    @property
    def is_plain(self) -> bool:
        """Say whether the file has the feed's columns and no others."""
        return self == Fit()


def fit(schema: pa.Schema, came: Sequence[str], terms: ColumnTerms) -> Fit:
    """Hold the columns of a file against those of its feed, in whatever order they stand.

    Args:
        schema: the feed's columns.
        came: the file's.
        terms: what becomes of a missing column, and which new ones may land.
    """
    has = f"it has {', '.join(came) or 'none'}"
    twice = [name for place, name in enumerate(came) if name in came[:place]]
    if twice:
        return Fit(wrong=_wrong("unreadable_row", f"two columns are `{twice[0]}`"))
    lacking = tuple(name for name in schema.names if name not in came)
    if lacking and terms.missing is not Missing.NULL:
        required = f"there, as {spelled_type(schema.field(lacking[0]).type)}"
        breach = Breach("missing", lacking[0], required, has) if terms.missing is Missing.STOP else None
        return Fit(wrong=_wrong("missing_column", f"no `{lacking[0]}`: {has}", breach))
    new = tuple(name for name in came if name not in schema.names)
    refused = [name for name in new if not terms.admit(name)]
    if refused:
        problem = f"{has}; nobody declared `{refused[0]}`, and it cannot land beside them"
        return Fit(wrong=_wrong("unreadable_row", problem))
    return Fit(lacking, new)


def _wrong(reason: str, problem: str, breach: Breach | None = None) -> Line:
    return Line(number=0, reason=reason, action=DROPPED, raw=b"", problem=problem, breach=breach)


def spoilt(where: str, raw: bytes, problem: str) -> Line:
    """Give the line that stands for a file, or the rest of one, that cannot be read."""
    told = f"{where}: {problem}"
    return Line(number=1, reason="unreadable_file", action=DROPPED, raw=raw[:RAW_BYTES], problem=told, where=where)
