"""What readers see of a run: rows of published commits, without a JVM, also where a table does not exist yet.

Files are found through the Delta log and read by pyarrow (`DeltaTable.to_pyarrow_table` aborts the interpreter at exit
with pyarrow 26). The commits are read first, so a table's version is never older than what is published.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from pipelines.engine.columns import LEDGER_SCHEMA, ORDER_FIELDS
from pipelines.engine.entries import LEDGER
from pipelines.engine.log import CommitLog
from pipelines.engine.tables import (
    COMMIT,
    ActiveFile,
    TableLostError,
    active_files,
    carry_path,
    ledger_path,
    open_table,
    schema_of,
    stream_path,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pipelines.engine.history import CarryLine, Entry, LogState

CHANGE = "change"
BASE = "base"
GONE = "gone"
ROW = "__row"


@dataclass(frozen=True)
class Published:
    """The files of one table that hold rows of the wanted commits."""

    files: tuple[str, ...]
    """Paths of Parquet files; one that was compacted may hold other commits' rows too."""
    commits: tuple[int, ...]
    """The wanted commits, smallest first."""
    schema: pa.Schema
    exact: bool
    """Whether every row of the files is of a wanted commit."""
    bounds: tuple[tuple[int, int], ...] = ()
    """Of each file: the smallest and the largest commit in it."""

    def scan(self, columns: Sequence[str] | None = None, where: ds.Expression | None = None) -> pa.Table:
        """Read the rows of the wanted commits, in no particular order.

        Args:
            columns: names to read; all unless given.
            where: a condition on rows, pushed down to row groups.
        """
        wanted = self.schema if columns is None else pa.schema([self.schema.field(name) for name in columns])
        if not self.files:
            return wanted.empty_table()
        if not self.exact:
            mine = pc.field(COMMIT).isin(pa.array(self.commits, pa.int64()))
            where = mine if where is None else mine & where
        data = ds.dataset(list(self.files), schema=self.schema, format="parquet")
        return data.to_table(columns=wanted.names, filter=where)


def holds(file: ActiveFile, commits: Sequence[int]) -> bool:
    """Say whether a file may hold rows of one of some commits.

    Args:
        file: with the smallest and the largest commit in it.
        commits: ascending.
    """
    place = bisect_left(commits, file.first)
    return place < len(commits) and commits[place] <= file.last


def rows_of(path: Path, commits: Sequence[int], otherwise: pa.Schema) -> Published:
    """Find the files of a table that hold rows of some commits.

    Args:
        path: the table's folder.
        commits: their numbers.
        otherwise: the columns to answer with where there is no table.
    """
    wanted = tuple(sorted(commits))
    table = open_table(path)
    if table is None:
        return Published((), wanted, otherwise, exact=True)
    files = [file for file in active_files(table, path) if holds(file, wanted)]
    bounds = tuple((file.first, file.last) for file in files)
    exact = all(first == last for first, last in bounds)
    return Published(tuple(str(file.path) for file in files), wanted, schema_of(table), exact, bounds)


def _visible(state: LogState, start: int | None, end: int | None) -> list[Entry]:
    return [
        row
        for row in state.published
        if (end is None or row.span.start < end) and (start is None or start < row.span.end)
    ]


def _whole(path: Path, name: str, entries: Sequence[Entry], otherwise: pa.Schema) -> Published:
    """Find the rows of published commits, and see that there is a file for each that counted any."""
    found = rows_of(path, [entry.commit for entry in entries], otherwise)
    upto, ranges = 0, []
    for first, last in sorted(found.bounds):
        upto = max(upto, last)
        ranges.append((first, upto))
    for entry in entries:
        place = bisect_right(ranges, entry.commit, key=itemgetter(0))
        if entry.rows_of(name) and (not place or ranges[place - 1][1] < entry.commit):
            raise TableLostError(str(path), entry.commit)
    return found


def log_state(root: Path) -> LogState:
    """Read what the commits of a root say; empty where there are none."""
    return CommitLog(root).state()


def published(
    root: Path, stream: str, start: int | None = None, end: int | None = None, *, state: LogState | None = None
) -> Published:
    """Find what readers see of a stream.

    Args:
        root: the run's folder.
        stream: name of a stream, also `<stream>.diverted`.
        start: only commits that end after this instant, in ticks.
        end: only commits that start before this instant, in ticks.
        state: the log, where the caller has read it.

    Raises:
        TableLostError: rows of a published commit are not in the table.
    """
    entries = _visible(state or log_state(root), start, end)
    return _whole(stream_path(root, stream), stream, entries, pa.schema(ORDER_FIELDS))


def published_ledger(
    root: Path, start: int | None = None, end: int | None = None, *, state: LogState | None = None
) -> Published:
    """Find what readers see of the ledger; arguments and errors as those of `published`."""
    return _whole(ledger_path(root), LEDGER, _visible(state or log_state(root), start, end), LEDGER_SCHEMA)


def read_stream(  # noqa: PLR0913 - which rows, which columns, which order
    root: Path,
    stream: str,
    start: int | None = None,
    end: int | None = None,
    *,
    columns: Sequence[str] | None = None,
    key: Sequence[str] = (),
    state: LogState | None = None,
) -> pa.Table:
    """Read the published rows of a stream in its order, without those of superseded and open commits.

    A table that does not exist yet reads as no rows.

    Args:
        root: the run's folder.
        stream: name of a stream, also `<stream>.diverted`.
        start: only commits that end after this instant, in ticks.
        end: only commits that start before this instant, in ticks.
        columns: names to read; all unless given.
        key: key columns of a stream that is numbered per key, which stand between `arrival` and `place` in its order.
        state: the log, where the caller has read it.
    """
    order = ("arrival", *key, "place")
    found = published(root, stream, start, end, state=state)
    present = [name for name in order if name in found.schema.names]
    wanted = None if columns is None else list(dict.fromkeys([*columns, *present]))
    rows = found.scan(wanted).sort_by([(name, "ascending") for name in present])
    return rows if columns is None else rows.select(list(columns))


LEDGER_ORDER = ("arrival", "landed_at", "landed_place", "stream", "operator", "key", "place")


def read_ledger(
    root: Path, start: int | None = None, end: int | None = None, *, state: LogState | None = None
) -> pa.Table:
    """Read the published rows of the ledger by arrival; arguments as those of `published`."""
    rows = published_ledger(root, start, end, state=state).scan()
    return rows.sort_by([(name, "ascending") for name in LEDGER_ORDER])


@dataclass(frozen=True)
class Carry:
    """Where one part of a stream's carry at a commit stands."""

    line: CarryLine
    base: Published
    """Rows of the base commit; those whose `change` is `base` count."""
    deltas: Published
    """Rows of the commits after it; those whose `change` is not `base` count, the newest of a key last."""


def carry_files(root: Path, stream: str, part: str, commit: int, *, state: LogState | None = None) -> Carry:
    """Find the files that hold a part of the carry at a commit.

    Args:
        root: the run's folder.
        stream: name of the stream.
        part: name of the part, such as `state`.
        commit: the commit, published or not; 0 for the empty carry before a run's first.
        state: the log, where the caller has read it.
    """
    return carry_on(root, stream, part, (state or log_state(root)).carry_line(commit))


def carry_on(root: Path, stream: str, part: str, line: CarryLine) -> Carry:
    """Find the files that hold a part of the carry on a line of commits."""
    path = carry_path(root, stream, part)
    nothing = pa.schema([pa.field(COMMIT, pa.int64()), pa.field(CHANGE, pa.string())])
    base = rows_of(path, [line.base] if line.base else [], nothing)
    return Carry(line, base, rows_of(path, line.deltas, nothing))


def read_carry(  # noqa: PLR0913 - which carry, told apart by which columns
    root: Path, stream: str, part: str, commit: int, *, key: Sequence[str] = (), state: LogState | None = None
) -> pa.Table:
    """Read a part of the carry at a commit: the base, with what the deltas after it set or took away.

    Args:
        root: the run's folder.
        stream: name of the stream.
        part: name of the part, such as `state`.
        commit: the commit, published or not; 0 for the empty carry.
        key: the columns that tell two rows of the part apart; without any it has one row at most once a delta came.
        state: the log, where the caller has read it.

    Returns:
        The rows with all columns of the table, `commit` and `change` among them, in no particular order.
    """
    return taken_up(carry_files(root, stream, part, commit, state=state), key)


def taken_up(carry: Carry, key: Sequence[str]) -> pa.Table:
    """Read the rows of one part of the carry; arguments and result as those of `read_carry`."""
    base = carry.base.scan(where=pc.field(CHANGE) == BASE)
    deltas = carry.deltas.scan(where=pc.field(CHANGE) != BASE)
    return newest_rows(base, deltas, carry.line, key) if deltas.num_rows else base


def newest_rows(base: pa.Table, deltas: pa.Table, line: CarryLine, key: Sequence[str]) -> pa.Table:
    """Keep of each key the row of the latest commit on the line, and none where that says gone.

    Args:
        base: rows of the base.
        deltas: rows after it; at most one a key and commit.
        line: the commits, in the order in which they count.
        key: the columns that tell rows apart.
    """
    ranks = pc.fill_null(pc.index_in(deltas[COMMIT], pa.array(line.deltas, pa.int64())), -1)
    rows = pa.concat_tables([base, deltas.take(pc.sort_indices(ranks))])
    numbered = rows.append_column(ROW, pa.array(range(rows.num_rows), pa.int64()))
    newest = numbered.group_by(list(key)).aggregate([(ROW, "max")])[f"{ROW}_max"]
    kept = rows.take(newest)
    return kept.filter(pc.not_equal(kept[CHANGE], GONE))
