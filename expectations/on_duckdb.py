"""The judge without a JVM: the laws' SQL, translated from Spark's, on DuckDB in this process."""

from __future__ import annotations

import atexit
import os
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from expectations.given import Given, give
from expectations.laws import JUDGED, columns_of, kinds_of, marks
from expectations.views import DROPPED, LANDED, ROWS, STREAM, Counts, kinds_asked, needed_columns, told_by

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from expectations.laws import Law
    from expectations.views import Truth

LONELY: Final[dict[str, str | bool | int | float | list[str]]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}
"""DuckDB fetches extensions from elsewhere unless told not to."""


class Readable(Protocol):
    """Rows that lie in files."""

    def scan(self, columns: Sequence[str] | None = None, where: pc.Expression | None = None) -> pa.Table:
        """Read some columns, all unless given, of the rows of which a condition is true."""


@dataclass(frozen=True, kw_only=True)
class PlainView:
    """One table, read when something is asked."""

    rows: Readable
    before: pa.Table | None = None
    truth: Truth | None = None
    """Asked for `where` of a flow's own checks."""

    def marks(self, laws: Sequence[Law]) -> pd.DataFrame:
        """As `View` has it, with Arrow's types: of others pandas takes a missing value for a number."""
        rows = self._batch(columns_of(laws), pc.field("kind").isin(list(kinds_of(laws))))
        return as_pandas(answer(marks(laws, ROWS), rows))

    def ask(self, query: str, columns: Sequence[str]) -> pa.Table:
        """As `View` has it."""
        return answer(query, self._batch(columns))

    def whole(self, arrivals: Sequence[int]) -> pa.Table:
        """As `View` has it."""
        kind = self.rows.scan(["arrival"], pc.scalar(False)).schema.field("arrival").type  # noqa: FBT003 - no row
        return self.rows.scan(where=pc.field("arrival").isin(pa.array(arrivals, pa.int64()).cast(kind)))

    @property
    def schema(self) -> pa.Schema:
        """As `View` has it."""
        return self.rows.scan(where=pc.scalar(False)).schema  # noqa: FBT003 - no row

    def can_choose(self, where: str) -> bool:  # noqa: ARG002 - pandas cannot
        """As `View` has it."""
        return False

    knows_decimals: ClassVar[bool] = False

    def chosen(
        self,
        columns: Sequence[str] | None,
        where: str,
        key: Sequence[str] = (),
        how: Given = Given.NEAREST,
    ) -> pd.DataFrame:
        """As `View` has it."""
        wanted = None if columns is None else needed_columns((*columns, *key), where)
        kinds = kinds_asked(where)
        rows = self.rows.scan(wanted, None if kinds is None else pc.field("kind").isin(list(kinds)))
        if where and self.truth is not None:
            rows = rows.filter(self.truth(where, rows))
        frame = give(rows, columns or (), how)
        if columns is not None:
            at, _, *keys = told_by(key)
            frame = frame.append_column(at, ticks_of(rows["arrival"]))
            for name, column in zip(keys, key, strict=True):
                frame = frame.append_column(name, rows[column])
        return as_pandas(frame)

    def _batch(self, columns: Sequence[str], where: pc.Expression | None = None) -> pa.Table:
        rows = self.rows.scan(columns, where)
        judged = rows.append_column(JUDGED, pa.repeat(True, rows.num_rows))  # noqa: FBT003 - the value of the column
        if self.before is None:
            return judged
        known = [name for name in columns if name in self.before.column_names]
        before = self.before.select(known).append_column(JUDGED, pa.repeat(False, self.before.num_rows))  # noqa: FBT003
        return pa.concat_tables([judged, before], promote_options="permissive")


def ticks_of(instants: pa.ChunkedArray) -> pa.ChunkedArray:
    """Give instants as whole microseconds since 1970."""
    return instants.cast(pa.timestamp("us", "UTC")).cast(pa.int64())


def as_pandas(rows: pa.Table) -> pd.DataFrame:
    """Hand rows to pandas with their types as they are."""
    import pandas as pd

    return rows.to_pandas(types_mapper=pd.ArrowDtype)


def answer(query: str, rows: pa.Table) -> pa.Table:
    """Answer a query, in Spark's SQL, over rows that it calls `ROWS`."""
    with _database().cursor() as connection:
        connection.register(ROWS, rows)
        return connection.sql(translated(query)).to_arrow_table()


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """Open an empty database in memory, once a process: that takes longer than most answers.

    What does not fit into memory goes where temporary files go; DuckDB would take the folder that the command runs in.
    """
    spilled = Path(tempfile.gettempdir()) / f"pulseline-checks-{os.getpid()}"
    database = duckdb.connect(config={**LONELY, "temp_directory": str(spilled)})
    atexit.register(database.close)
    return database


@cache
def translated(query: str) -> str:
    """Translate a query from Spark's SQL to DuckDB's.

    >>> translated("SELECT `a` FROM `b`")
    'SELECT "a" FROM "b"'
    """
    import sqlglot

    (text,) = sqlglot.transpile(query, read="spark", write="duckdb")
    return text


def count_plain(tables: Mapping[str, Readable], landed: Mapping[str, Sequence[pa.Table]], ledger: Readable) -> Counts:
    """Count the rows of all tables.

    Args:
        tables: by stream and side stream.
        landed: by source, tables with a column `kind`.
        ledger: of the same commits.
    """
    counts: Counts = Counts()
    for name, rows in tables.items():
        add_kinds(counts, rows.scan(["kind"]), name, STREAM)
    for name, some in landed.items():
        for rows in some:
            add_kinds(counts, rows, name, LANDED)
    dropped = ledger.scan(["stream", "kind"], pc.field("action") == DROPPED)
    for row in dropped.group_by(["stream", "kind"]).aggregate([([], "count_all")]).to_pylist():
        counts[row["stream"], DROPPED, row["kind"]] += row["count_all"]
    return counts


def add_kinds(counts: Counts, rows: pa.Table, name: str, where: str) -> None:
    """Count rows by their kind, under a name and where they are."""
    for row in rows.group_by("kind").aggregate([([], "count_all")]).to_pylist():
        counts[name, where, row["kind"]] += row["count_all"]
