"""What is published of a run, without a JVM, also where a table does not exist yet or is about to follow its commits.

Files are found through the Delta log and `commits`, and read by pyarrow (`DeltaTable.to_pyarrow_table` aborts the
interpreter at exit with pyarrow 26). Plain readers need none of this: a table holds what is settled.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from pipelines.engine.columnar.columns import LEDGER_SCHEMA, NOT_HASHED, ORDER_FIELDS
from pipelines.engine.columnar.content import content_hash
from pipelines.engine.commits.delta_log import SETTLED, snapshot
from pipelines.engine.commits.entry import LEDGER, START_OF_RUN
from pipelines.engine.commits.file_lists import FileLists, counts_at, visible_at
from pipelines.engine.commits.history import by_span
from pipelines.engine.commits.leg_roots import root_of, roots_of
from pipelines.engine.commits.log import CommitLog
from pipelines.engine.commits.paths import (
    COMMIT,
    ActiveFile,
    TableLostError,
    carry_path,
    ledger_path,
    stream_path,
    table_name,
)
from pipelines.engine.files.parquet import FileDamagedError, dataset, naming_the_damaged, read_rows
from pipelines.engine.files.small import are_small, read_whole

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from pipelines.engine.commits.history import CarryLine, Entry, LogState
    from pipelines.engine.commits.paths import NewFile

CHANGE = "change"
BASE = "base"
GONE = "gone"
ROW = "__pulseline_row"
NO_CARRY = pa.schema([pa.field(COMMIT, pa.int64()), pa.field(CHANGE, pa.string())])
"""What is said of a part of a carry that has no row."""


KEPT = 8
"""Logs of commits that a thread keeps: a comparison goes to and fro between two or three runs."""
_KEPT = threading.local()


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

        Raises:
            FileDamagedError: a file is not as it was written.
        """
        wanted = self.schema if columns is None else pa.schema([self.schema.field(name) for name in columns])
        if not self.files:
            return wanted.empty_table()
        if not self.exact:
            mine = pc.field(COMMIT).isin(pa.array(self.commits, pa.int64()))
            where = mine if where is None else mine & where
        return read_rows(self.files, self.schema, wanted.names, where)


def holds(file: ActiveFile, commits: Sequence[int]) -> bool:
    """Say whether a file may hold rows of one of some commits.

    Args:
        file: with the smallest and the largest commit in it.
        commits: ascending.
    """
    place = bisect_left(commits, file.first)
    return place < len(commits) and commits[place] <= file.last


def rows_of(root: Path, path: Path, commits: Sequence[int], otherwise: pa.Schema, state: LogState) -> Published:
    """Find the files that hold rows of some commits.

    What is settled lies in the table; what is written, not settled yet, or superseded since the state was read lies in
    the files that `commits` names, which stay for as long as a table's versions do.

    Args:
        root: the run's folder.
        path: the table's folder.
        commits: their numbers, published or not.
        otherwise: the columns to answer with where there is no table.
        state: the log, as it was when the commits were chosen.

    Raises:
        TableLostError: a file is not there.
    """
    wanted = tuple(sorted(commits))
    table = snapshot(path)
    if table is None:
        lists = FileLists(root, state)
        for commit in wanted:
            if lists.holder(table_name(root, path), commit):
                # Its rows are there and its log is not: that is no table without rows.
                raise TableLostError(str(path), commit)
        return Published((), wanted, otherwise, exact=True)
    settled = table.applications.get(SETTLED, 0)
    now = log_state(root) if settled > _newest(state) else state
    inside = frozenset(each for each in wanted if counts_at(now, each, settled))
    files = [_TableFile.of(file) for file in table.files.values() if holds(file, sorted(inside))]
    lists = FileLists(root, now)
    beside = [commit for commit in wanted if commit not in inside]
    more = {file.name: file for commit in beside for file in lists.holder(table_name(root, path), commit)}
    for file in more.values():
        if not (path / file.name).exists():
            raise TableLostError(str(path), next(c for c in beside if file.first <= c <= file.last))
    files += [_TableFile(str(path / file.name), file.first, file.last) for file in more.values()]
    bounds = tuple((file.first, file.last) for file in files)
    exact = all(first == last for first, last in bounds)
    return Published(tuple(file.path for file in files), wanted, table.schema, exact, bounds)


class _TableFile(NamedTuple):
    path: str
    first: int
    last: int

    @classmethod
    def of(cls, file: ActiveFile) -> _TableFile:
        return cls(str(file.path), file.first, file.last)


def rows_of_file(path: Path, file: NewFile, columns: Collection[str] | None) -> pa.Table:
    """Read a file of a table as it lies there; turns, which stand beside the columns of its table, are in no hash.

    Args:
        path: the table's folder.
        file: which.
        columns: those of the table; None where nobody knows them, and all are read.

    Raises:
        TableLostError: it is not there.
        FileDamagedError: it is not as it was written.
    """
    there = path / file.name
    if not there.exists():
        raise TableLostError(str(path), file.first)
    with naming_the_damaged([there]):
        data = dataset([there])
        names = data.schema.names
        if COMMIT not in names:
            raise FileDamagedError(str(there), f"it has no column {COMMIT}")
        return data.to_table(columns=[name for name in names if columns is None or name in columns])


def _are_of(commits: pa.ChunkedArray, file: NewFile) -> bool:
    if commits.type != pa.int64() or commits.null_count:
        return False
    found = pc.min_max(commits).as_py()
    return not len(commits) or (file.first <= found["min"] and found["max"] <= file.last)


def are_as_hashed(rows: pa.Table, file: NewFile) -> bool:
    """Say whether the rows of a file have the content that was said when it was written, if anything was.

    The number of a commit is in no hash, but a file says of which ones it is.
    """
    if COMMIT in rows.column_names and not _are_of(rows[COMMIT], file):
        return False
    return not file.hash or file.hash == content_hash(rows, leave_out=NOT_HASHED).text


def _newest(state: LogState) -> int:
    """Give the commit that was published last as a state knows it."""
    newest = state.newest_published
    return newest.commit if newest else START_OF_RUN


def settled_commits(root: Path, path: Path, state: LogState) -> list[int]:
    """Give the commits whose rows a table holds as it stands, in the order of their spans: what any reader sees of it.

    Args:
        root: the run's folder.
        path: the table's folder.
        state: the log; read again where the table is ahead of it.

    Raises:
        TableLostError: there is no table, though published commits wrote rows of it, or one that was further once.
    """
    table = snapshot(path)
    if table:
        require_not_older(root, path, table.version, state)
    wrote = [] if table else [row.commit for row in state.published if row.rows_of(path.name)]
    if wrote:
        raise TableLostError(str(path), wrote[-1])
    settled = table.applications.get(SETTLED, 0) if table else 0
    now = log_state(root) if settled > _newest(state) else state
    return [row.commit for row in sorted((now.commits[each] for each in visible_at(now, settled)), key=by_span)]


def require_not_older(root: Path, path: Path, version: int, state: LogState) -> None:
    """See that a table has not lost its newest versions: what they brought would be missing without a word.

    Args:
        root: the run's folder.
        path: the table's folder.
        version: its newest one.
        state: the log, read before the table.

    Raises:
        TableLostError: it was further at a commit that is settled.
    """
    if state.is_older(table_name(root, path), version):
        raise TableLostError(str(path), state.recorded.commit)


def _visible(state: LogState, start: int | None, end: int | None) -> list[Entry]:
    return [
        row
        for row in state.published
        if (end is None or row.span.start < end) and (start is None or start < row.span.end)
    ]


def _whole(  # noqa: PLR0913 - which table, and what it must hold
    root: Path, path: Path, name: str, entries: Sequence[Entry], otherwise: pa.Schema, state: LogState
) -> Published:
    """Find the rows of published commits, and see that there is a file for each that counted any."""
    found = rows_of(root, path, [entry.commit for entry in entries], otherwise, state)
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
    """Read what the commits of a root say; empty where there are none.

    What was read last is kept for the thread, and given again while nothing was appended; a state never moves on.
    """
    kept: dict[Path, CommitLog] = _KEPT.__dict__.setdefault("logs", {})
    log = kept.pop(root, None)
    if log is None or not log.is_current():
        log = CommitLog(root)
    state = log.state()
    kept[root] = log
    for oldest in list(kept)[:-KEPT]:
        del kept[oldest]
    return state


def published(
    root: Path, stream: str, start: int | None = None, end: int | None = None, *, state: LogState | None = None
) -> Published:
    """Find what readers see of a stream, in whichever leg of a run it is made.

    Args:
        root: the run's folder; where the log is given, the root that it is of.
        stream: name of a stream, also `<stream>.diverted`.
        start: only commits that end after this instant, in ticks.
        end: only commits that start before this instant, in ticks.
        state: the log, where the caller has read it.

    Raises:
        TableLostError: rows of a published commit are not in the table.
    """
    root = root if state else root_of(root, stream)
    known = state or log_state(root)
    return _whole(root, stream_path(root, stream), stream, _visible(known, start, end), pa.schema(ORDER_FIELDS), known)


def published_ledger(
    root: Path, start: int | None = None, end: int | None = None, *, state: LogState | None = None
) -> Published:
    """Find what readers see of the ledger; arguments and errors as those of `published`."""
    known = state or log_state(root)
    return _whole(root, ledger_path(root), LEDGER, _visible(known, start, end), LEDGER_SCHEMA, known)


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
    """Read the published rows of the ledger, of all legs of a run, by arrival; arguments as those of `published`."""
    roots = (root,) if state else roots_of(root)
    rows = pa.concat_tables([published_ledger(each, start, end, state=state).scan() for each in roots])
    return rows.sort_by([(name, "ascending") for name in LEDGER_ORDER])


@dataclass(frozen=True)
class CarryFiles:
    """Files of one part of a carry."""

    files: tuple[str, ...]
    """Paths of Parquet files; one that was put together holds other commits' rows too."""
    commits: tuple[int, ...]
    """Those whose rows count."""

    def rows(self, *, of_base: bool) -> pa.Table:
        """Read the rows of the commits that a base has, or that deltas have, in no particular order.

        Raises:
            FileDamagedError: a file is not as it was written.
        """
        if not self.files:
            return NO_CARRY.empty_table()
        with naming_the_damaged(self.files):
            return self._rows(of_base=of_base)

    def _rows(self, *, of_base: bool) -> pa.Table:
        commits = pa.array(self.commits, pa.int64())
        if are_small(self.files):
            rows = read_whole(self.files)
            is_wanted = pc.equal(rows[CHANGE], BASE) if of_base else pc.not_equal(rows[CHANGE], BASE)
            return rows.filter(pc.and_(pc.is_in(rows[COMMIT], commits), is_wanted))
        where = pc.field(CHANGE) == BASE if of_base else pc.field(CHANGE) != BASE
        data = dataset(self.files)
        schema = pa.unify_schemas([part.physical_schema for part in data.get_fragments()])
        return data.replace_schema(schema).to_table(filter=pc.field(COMMIT).isin(commits) & where)


@dataclass(frozen=True)
class Carry:
    """Where one part of a stream's carry at a commit stands."""

    line: CarryLine
    base: CarryFiles
    """Rows of the base commit; those whose `change` is `base` count."""
    deltas: CarryFiles
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
    known = state or log_state(root)
    return carry_on(root, stream, part, known.carry_line(commit), FileLists(root, known))


def carry_on(root: Path, stream: str, part: str, line: CarryLine, lists: FileLists) -> Carry:
    """Find the files that hold a part of the carry on a line of commits, as their lists name them."""
    path = carry_path(root, stream, part)
    table = table_name(root, path)

    def files(commits: Sequence[int]) -> CarryFiles:
        named = {file.name for commit in commits for file in lists.holder(table, commit)}
        return CarryFiles(tuple(str(path / name) for name in sorted(named)), tuple(commits))

    return Carry(line, files([line.base] if line.base else []), files(line.deltas))


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
    base, deltas = carry.base.rows(of_base=True), carry.deltas.rows(of_base=False)
    if not deltas.num_rows:
        return base
    return newest_rows(base if base.num_rows else deltas.schema.empty_table(), deltas, carry.line, key)


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
