"""What one file that arrived holds: rows that can be read, and those that cannot, with their bytes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pipelines.engine.columnar.columns import UNREADABLE
from pipelines.engine.landing.column_errors import Breach, OtherColumnsError
from pipelines.engine.landing.errors import ColumnTypeError, FeedUnreadableError
from pipelines.engine.landing.types import (
    check_timezones,
    landed_column,
    landed_type,
    spelled_type,
    told_unreadable,
    unreadable,
)
from pipelines.engine.landing.undeclared import NOTHING, Names, Undeclared
from pipelines.flows.feeds.spec import Missing, Retyped
from pipelines.flows.region import PUNCTUATION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipelines.operators.rows import Longs

DROPPED, NOTED = "dropped", "noted"
PARQUET = "Parquet of the declared columns"


@dataclass(frozen=True)
class ColumnTerms:
    """What a feed says of columns that are not the declared ones; unless said, what recorded JSON lines have."""

    missing: Missing = Missing.NULL
    retyped: Retyped = Retyped.LEDGER
    names: Names | None = None
    """Undeclared columns that may land; None where none may."""
    edge: str = ""
    """The feed's column in which a row may say that it is a punctuation, which needs no other; empty for none."""

    def lacks(self, came: Mapping[str, object], declared: frozenset[str]) -> bool:
        """Say whether an object lacks a column that matters."""
        if self.missing is Missing.NULL or declared <= came.keys():
            return False
        return not self.edge or came.get(self.edge) != PUNCTUATION

    def admit(self, name: str) -> bool:
        """Say whether an undeclared column may land."""
        return self.names is not None and self.names.admit(name)


@dataclass(frozen=True, kw_only=True)
class Line:
    """A ledger line of the landing that stands for a row, or for a file, that has no payload."""

    number: int
    """Of the row, from 1, in its file; the place in its instant once it arrives."""
    reason: str
    action: str
    raw: bytes
    problem: str
    where: str = ""
    """Where the row stood, once that is known."""
    breach: Breach | None = None
    """Why the landing must stop here; None where it goes on."""

    def at(self, number: int, where: str) -> Line:
        """Give the line of a row in a file, or in what else was read, as one of all that arrived."""
        return replace(self, number=number, where=where, problem=f"{where}: {self.problem}")


@dataclass(frozen=True, kw_only=True)
class FileRows:
    """A file that was read."""

    rows: pa.Table
    """The declared columns and UNREADABLE, in the file's order."""
    numbers: Longs
    """Number of each of these rows in the file, from 1; those that are lines have theirs."""
    count: int
    """How many rows the file has, readable or not."""
    lines: tuple[Line, ...] = field(default=())
    undeclared: Mapping[str, Undeclared] = field(default_factory=dict)
    """By name: columns that nobody declared, of these rows."""


def with_unreadable(schema: pa.Schema) -> pa.Schema:
    """Give the columns of FileRows."""
    return schema.append(pa.field(UNREADABLE, pa.string()))


def check_columns(file: str, schema: pa.Schema, came: Sequence[str], kind: str, terms: ColumnTerms) -> None:
    """Refuse a file that does not have the declared columns, in whatever order, or has others that cannot land.

    Raises:
        OtherColumnsError: a declared column is missing, and that is not null.
        FeedUnreadableError: a column is there twice, or nobody declared it and it cannot land.
    """
    declared = f"{kind} with the columns {', '.join(schema.names)}"
    has = f"it has {', '.join(came) or 'none'}"
    lacking = [name for name in schema.names if name not in came]
    if lacking and terms.missing is not Missing.NULL:
        required = f"there, as {spelled_type(schema.field(lacking[0]).type)}"
        raise OtherColumnsError(file, declared, has, Breach("missing", lacking[0], required, has))
    if len(set(came)) != len(came):
        raise FeedUnreadableError(file, declared, has)
    for name in came:
        if name not in schema.names and not terms.admit(name):
            problem = f"{has}; nobody declared `{name}`, and it cannot land beside them"
            raise FeedUnreadableError(file, declared, problem)


def read_parquet(file: str, data: bytes, schema: pa.Schema, timezone: str | None, terms: ColumnTerms) -> FileRows:
    """Read a Parquet file whose columns have the declared names, in any order, and types that become the declared.

    Args:
        file: its name.
        data: its bytes.
        schema: the declared columns, of landed types.
        timezone: of times that carry none.
        terms: what becomes of other columns.

    Raises:
        FeedUnreadableError: it is no such file.
        TimezoneMissingError: it has times without a timezone, and the feed names none.
    """
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(pa.BufferReader(data))
    except (pa.ArrowException, UnicodeError, OSError) as error:
        raise FeedUnreadableError(file, PARQUET, "it cannot be read as Parquet") from error
    return read_rows(file, table, schema, timezone, terms)


def read_rows(file: str, table: pa.Table, schema: pa.Schema, timezone: str | None, terms: ColumnTerms) -> FileRows:
    """Give the rows of a table whose columns have the declared names, in any order, and types that become the declared.

    Args:
        file: what the table comes from.
        table: as it was read.
        schema: the declared columns, of landed types.
        timezone: of times that carry none.
        terms: what becomes of other columns.

    Raises:
        FeedUnreadableError: it is no such table.
        TimezoneMissingError: it has times without a timezone, and the feed names none.
    """
    try:
        check_columns(file, schema, table.schema.names, "Parquet", terms)
        for column in (table.schema.field(name) for name in schema.names if name in table.schema.names):
            check_timezones(file, column.name, column.type, timezone)
        rows = pa.Table.from_batches(
            [_landed(file, batch, schema, timezone, terms) for batch in table.to_batches()], with_unreadable(schema)
        )
        others = {name: table[name] for name in table.column_names if name not in schema.names}
        undeclared = {name: _undeclared(file, name, column, timezone) for name, column in others.items()}
    except (pa.ArrowException, UnicodeError, OSError) as error:
        raise FeedUnreadableError(file, PARQUET, "a value in it is not of its column's type") from error
    return FileRows(rows=rows, numbers=np.arange(1, rows.num_rows + 1), count=rows.num_rows, undeclared=undeclared)


def _landed(
    file: str, batch: pa.RecordBatch, schema: pa.Schema, timezone: str | None, terms: ColumnTerms
) -> pa.RecordBatch:
    columns, lost = [], {}
    for wanted in schema:
        if wanted.name not in batch.schema.names:
            columns.append(pa.nulls(batch.num_rows, wanted.type))
            continue
        came = batch.column(wanted.name)
        try:
            landed = landed_column(came, landed_type(file, wanted.name, came.type), timezone)
            columns.append(landed if landed.type == wanted.type else landed.cast(wanted.type))
        except (pa.ArrowException, ColumnTypeError) as error:
            if terms.retyped is not Retyped.STOP:
                raise
            required = spelled_type(wanted.type)
            own = isinstance(error, ColumnTypeError)
            why = str(error) if own else f"`{wanted.name}` has values that are no {required}"
            breach = Breach("retyped", wanted.name, required, f"it is {came.type} ({why})")
            raise OtherColumnsError(file, PARQUET, why, breach) from error
        text = unreadable(came, landed)
        if text is not None:
            lost[wanted.name] = text
    told = told_unreadable(lost, batch.num_rows)
    return pa.RecordBatch.from_arrays([*columns, told], schema=with_unreadable(schema))


def _undeclared(file: str, name: str, column: pa.ChunkedArray, timezone: str | None) -> Undeclared:
    """Give a column that nobody declared as it lands.

    Raises:
        ColumnTypeError: values of its type do not land.
        FeedUnreadableError: not all of its values do.
    """
    if pa.types.is_null(column.type):
        return Undeclared(NOTHING, pa.nulls(len(column)))
    kind, declared = (
        landed_type(file, name, column.type),
        f"Parquet whose column `{name}`, which nobody declared, lands",
    )
    if timezone is None and pa.types.is_timestamp(column.type) and column.type.tz is None:
        raise FeedUnreadableError(file, declared, "it has times without a timezone, and the feed names none")
    landed = pa.chunked_array([landed_column(chunk, kind, timezone) for chunk in column.chunks], kind)
    if landed.null_count != column.null_count:
        raise FeedUnreadableError(file, declared, "it has times outside the years 1 to 9999")
    return Undeclared(spelled_type(kind), landed.combine_chunks())
