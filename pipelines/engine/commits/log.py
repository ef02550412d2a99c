"""The table `commits` itself: its rows in and out, and the one way to append to it.

Every append is the version behind the one that was last read: of two that append behind the same version the second is
refused, so a row follows what its writer has seen, or is not written. A row is on disk when its append returns.
"""

from __future__ import annotations

import datetime as dt
import json
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.clock import wall_now
from pipelines.engine.columnar.columns import TIME, canonical_json
from pipelines.engine.commits.delta_log import checkpoint, clean_log, create, exists
from pipelines.engine.commits.entry import FORMAT, NO_SPAN, CommitKind, Entry, Span, State
from pipelines.engine.commits.errors import NewerHomeError, OlderHomeError
from pipelines.engine.commits.incremental import Following
from pipelines.engine.commits.paths import (
    CommitsChangedError,
    CommitsLostError,
    ConcurrentAddError,
    NewFile,
    RootGoneError,
    TableMissingError,
    commits_path,
    ledger_path,
)
from pipelines.engine.commits.table_log import NO_VERSION, TableChange, TableLog
from pipelines.engine.files.durable import sync_files
from pipelines.engine.files.parquet import dataset
from pipelines.engine.files.small import read_whole, write_summed
from pipelines.engine.files.stored import is_stored

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pipelines.engine.commits.history import LogState

SCHEMA = pa.schema(
    [
        pa.field("entry", pa.int64()),
        pa.field("commit", pa.int64()),
        pa.field("state", pa.string()),
        pa.field("kind", pa.string()),
        pa.field("parent", pa.int64()),
        pa.field("span_start", TIME),
        pa.field("span_end", TIME),
        pa.field("sequences", pa.string()),
        pa.field("plan", pa.string()),
        pa.field("fingerprint", pa.string()),
        pa.field("token", pa.int64()),
        pa.field("counts", pa.string()),
        pa.field("hashes", pa.string()),
        pa.field("carry_hash", pa.string()),
        pa.field("verdict", pa.string()),
        pa.field("supersedes", pa.string()),
        pa.field("durations", pa.string()),
        pa.field("detail", pa.string()),
        pa.field("files", pa.string()),
        pa.field("settled", pa.string()),
        pa.field("at", TIME),
    ]
)
FORMATS = frozenset({0, FORMAT})
"""Formats of a run's folder that this code goes on with; 0 stands for a log without rows."""
UNREADABLE = (pa.ArrowException, OSError, ValueError, LookupError)
"""What reading rows ends with where bits have changed: Arrow has no one error for that, and a row may say anything."""
MANY_FILES = 200
KEEP_LOG = dt.timedelta(minutes=2)
"""A reader takes a moment from finding a checkpoint to reading the versions after it; nobody travels in this log."""
TICK = dt.timedelta(microseconds=1)
FULL_FILE = 4_000_000
"""Bytes from which on a file of the log is left as it is: some ten thousand rows."""
PLAIN = ("entry", "commit", "parent", "plan", "fingerprint", "token", "carry_hash", "verdict", "files", "settled", "at")
MAPPINGS = ("counts", "hashes", "durations", "detail")
LISTS = ("sequences", "supersedes")


def to_table(entry: Entry) -> pa.Table:
    """Give a row of the log as the table has it."""
    row: dict[str, object] = {name: getattr(entry, name) for name in PLAIN}
    row |= {name: canonical_json(dict(getattr(entry, name))) for name in MAPPINGS}
    row |= {name: canonical_json(list(getattr(entry, name))) for name in LISTS}
    known = entry.span != NO_SPAN
    row |= {"span_start": entry.span.start if known else None, "span_end": entry.span.end if known else None}
    row |= {"state": str(entry.state), "kind": str(entry.kind)}
    columns = [_column(row[field.name], field.type) for field in SCHEMA]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def _column(value: object, kind: pa.DataType) -> pa.Array:
    return pa.array([value], pa.int64()).cast(kind) if pa.types.is_timestamp(kind) else pa.array([value], kind)


def from_table(table: pa.Table) -> list[Entry]:
    """Read rows of the table `commits`."""
    columns = [_plain(table[field.name], field.type) for field in SCHEMA]
    return [_entry(dict(zip(SCHEMA.names, row, strict=True))) for row in zip(*columns, strict=True)]


def _plain(column: pa.ChunkedArray, kind: pa.DataType) -> list[object]:
    plain: list[object] = column.cast(pa.int64() if pa.types.is_timestamp(kind) else kind).to_pylist()
    return plain


def _entry(row: Mapping[str, object]) -> Entry:
    facts: dict[str, object] = {name: row[name] for name in PLAIN}
    facts |= {name: json.loads(str(row[name])) for name in MAPPINGS}
    facts |= {name: tuple(json.loads(str(row[name]))) for name in LISTS}
    start, end = row["span_start"], row["span_end"]
    facts["span"] = NO_SPAN if start is None else Span(start, end)  # type: ignore[arg-type]
    return Entry(state=State(str(row["state"])), kind=CommitKind(str(row["kind"])), **facts)  # type: ignore[arg-type]


class CommitLog:
    """The table `commits` of a root: read it, and append to what was last read.

    Rows that were read once are kept, and those appended here are never read: asking again costs the files that came
    since, whatever the age of the log. For one thread.
    """

    def __init__(self, root: Path, formats: frozenset[int] = FORMATS) -> None:
        """Take the root; the table may not exist yet.

        Args:
            root: the run's folder.
            formats: of the folder that are not refused when the log is read; 0 stands for an empty log.
        """
        self._root, self._formats = root, formats
        self.path = commits_path(root)
        self._table = TableLog(self.path, watched=True)
        self._version = NO_VERSION
        self._files: set[str] = set()
        self._state = Following()
        self._own: tuple[list[Entry], str] | None = None

    def rows(self) -> tuple[Entry, ...]:
        """Read the log's rows, in its order."""
        return tuple(self.state().entries)

    def state(self) -> LogState:
        """Read what the log says now.

        Raises:
            OlderHomeError: the folder was made by code from before this format.
            NewerHomeError: it was made by code from after it.
            CommitsLostError: it was there, and is gone.
            CommitsChangedError: somebody else changed its rows or columns.
            RootGoneError: with the whole folder.
        """
        if not self._table.look():
            if self._version != NO_VERSION:
                self._require_root()
                raise CommitsLostError(str(self.path), "the whole table")
            self.require_none()
        elif self._table.version != self._version:
            for each in (each for each in self._table.foreign if each.harm):
                raise CommitsChangedError(str(self.path), each.words)
            self._read()
        found = self._state.format
        if found not in self._formats:
            raise (OlderHomeError if found < FORMAT else NewerHomeError)(str(self._root), found, FORMAT)
        return self._state

    def is_current(self) -> bool:
        """Say whether what was read last is all that the log has now."""
        there = is_stored(self.path) or all((self.path / name).exists() for name in self._files)
        return there and self._table.is_current()

    def _read(self) -> None:
        own, self._own = self._own, None
        version = self._table.version
        if own and version == self._version + 1:
            # Our append came, and nothing else did.
            self._files.add(own[1])
            rows = own[0]
        else:
            files = set(self._table.files)
            rows, self._files = self._rows_of(files - self._files), files
        self._state, self._version = self._state.then(rows), version

    def _rows_of(self, files: set[str]) -> list[Entry]:
        """Read the rows that are not known yet; every version of the table holds all rows before its newest."""
        if not files:
            return []
        try:
            fresh = self._later(sorted(files))
        except FileNotFoundError as error:
            self._require_root()
            gone = next((name for name in sorted(files) if not (self.path / name).exists()), str(error))
            raise CommitsLostError(str(self.path), gone) from None
        except UNREADABLE as problem:
            # A disk that fails says so itself.
            if isinstance(problem, OSError) and problem.errno is not None:
                raise
            torn = next((name for name in sorted(files) if not self._is_whole(name)), "one of its files")
            raise CommitsLostError(str(self.path), torn, f"cannot be read ({problem})") from None
        rows = [fresh[entry] for entry in sorted(fresh)]
        for place, row in enumerate(rows, self._state.newest_entry + 1):
            if row.entry != place:
                # A version that says what another did leaves out what its own did.
                raise CommitsLostError(str(self.path), f"row {place}")
        return rows

    def _require_root(self) -> None:
        """See that the run's folder is still there."""
        if not is_stored(self._root) and not self._root.exists():
            raise RootGoneError(str(self._root)) from None

    def _later(self, files: Sequence[str]) -> dict[int, Entry]:
        table = read_whole([str(self.path / name) for name in files], SCHEMA)
        later = table.filter(pc.greater(table["entry"], self._state.newest_entry))
        return {row.entry: row for row in from_table(later)}

    def _is_whole(self, name: str) -> bool:
        try:
            self._later([name])
        except UNREADABLE:
            return False
        return True

    def require_none(self) -> None:
        """See that where there is no log there never was one: tables follow what it says.

        Raises:
            CommitsLostError: a table has followed a commit.
        """
        ledger = TableLog(ledger_path(self._root))
        if ledger.look() and ledger.settled():
            raise CommitsLostError(str(self.path), "the whole table")

    def create(self) -> None:
        """Make the table unless it is there, with the row that tells the folder's format.

        Raises:
            CommitsLostError: it was there, for other tables stand.
        """
        if not exists(self.path):
            self.require_none()
            create(self.path, SCHEMA)
        if not self.state().entries:
            row = Entry(state=State.FORMAT, kind=CommitKind.HOUSE, detail={"format": FORMAT}, at=wall_now())
            with suppress(ConcurrentAddError):
                # Somebody else made it at the same time.
                self.append(row)

    def append(self, entry: Entry) -> Entry:
        """Append a row behind the last one that `state` has shown; on disk when this returns.

        Args:
            entry: the row; its place is set here.

        Returns:
            The row with its place.

        Raises:
            ConcurrentAddError: somebody appended since `state`; nothing was written.
            TableMissingError: there was no table when `state` was asked.
        """
        return self.append_all([entry])[0]

    def append_all(self, entries: Sequence[Entry]) -> list[Entry]:
        """Append rows, all of them or none; arguments and errors as those of `append`."""
        if self._table.version == NO_VERSION:
            raise TableMissingError(str(self.path))
        rows = [replace(entry, entry=self._state.newest_entry + 1 + place) for place, entry in enumerate(entries)]
        if self._table.version != self._version:
            # What `append` follows must be what was judged, whoever looked at the table since.
            raise ConcurrentAddError(str(self.path), self._version + 1, "rows came that were not read yet")
        table = pa.concat_tables([to_table(row) for row in rows]).combine_chunks()
        file = self._write(f"e{rows[0].entry:08d}", table)
        self._commit(TableChange(adds=[file]))
        self._own = (from_table(table), file.name)
        return rows

    def _commit(self, change: TableChange) -> None:
        try:
            self._table.commit(change, {})
        except ConcurrentAddError:
            for file in change.adds:
                (self.path / file.name).unlink(missing_ok=True)
            raise

    def _write(self, stem: str, table: pa.Table) -> NewFile:
        file, size = write_summed(table, self.path, stem)
        sync_files(self.path, [file])
        return NewFile(name=file.name, rows=table.num_rows, size=size)

    def compact(self) -> None:
        """Put the rows into few files once they lie in many; nobody's reading or appending is disturbed.

        A thousand small files are read in half a second, one in a few milliseconds. A file that is full stays.

        Raises:
            ConcurrentAddError: somebody appended meanwhile; nothing was changed.
        """
        self.state()
        small = [file for file in self._table.files.values() if file.size < FULL_FILE]
        if len(small) < MANY_FILES:
            return
        rows = dataset(sorted(str(file.path) for file in small), SCHEMA).to_table().sort_by("entry")
        file = self._write(f"k{rows['entry'][0].as_py():08d}", rows)
        self._commit(TableChange(adds=[file], removes=small, moves_rows=False, says="OPTIMIZE"))
        self.state()

    def keep_young(self, age: dt.timedelta) -> None:
        """Write a checkpoint, and remove versions and files that nobody needs any more.

        Args:
            age: how long files that were put together stay for readers that still have them open.
        """
        checkpoint(self.path)
        clean_log(self.path, KEEP_LOG)
        self.state()
        limit = (wall_now() - age // TICK) * 1_000
        for file in self.path.glob("*.parquet"):
            # An append by somebody who asks for the lease is a file before it is a row of the log.
            if file.name not in self._table.files and file.stat().st_mtime_ns < limit:
                file.unlink(missing_ok=True)
