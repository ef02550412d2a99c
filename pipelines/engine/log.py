"""The table `commits` itself: its rows in and out, and the one way to append to it.

Every append is a transaction of one application from the handle that was last read: of two that append from handles of
one age delta-rs refuses the second, so a row follows what its writer has seen, or is not written.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import DeltaTable

from pipelines.engine.columns import TIME, canonical_json
from pipelines.engine.entries import NO_SPAN, CommitKind, Entry, Span, State
from pipelines.engine.following import Following
from pipelines.engine.handles import Handle
from pipelines.engine.tables import (
    UNHOOKED,
    ConcurrentAddError,
    NewFile,
    TableMissingError,
    commits_path,
    create,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pipelines.engine.history import LogState

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
        pa.field("at", TIME),
    ]
)
APPLICATION = "commits"
MANY_FILES = 200
FULL_FILE = 4_000_000
"""Bytes from which on a file of the log is left as it is: some ten thousand rows."""
PLAIN = ("entry", "commit", "parent", "plan", "fingerprint", "token", "carry_hash", "verdict", "at")
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
    columns = [pa.array([row[field.name]], _stored(field.type)).cast(field.type) for field in SCHEMA]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def _stored(kind: pa.DataType) -> pa.DataType:
    return pa.int64() if pa.types.is_timestamp(kind) else kind


def from_table(table: pa.Table) -> list[Entry]:
    """Read rows of the table `commits`."""
    whole = pa.schema([pa.field(field.name, _stored(field.type)) for field in SCHEMA])
    return [_entry(row) for row in table.select(SCHEMA.names).cast(whole).to_pylist()]


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

    def __init__(self, root: Path) -> None:
        """Take the root; the table may not exist yet."""
        self.path = commits_path(root)
        self._handle = Handle(self.path)
        self._version = self._handle.version
        self._files: set[str] = set()
        self._state = Following()
        self._own: tuple[Entry, str] | None = None

    def rows(self) -> tuple[Entry, ...]:
        """Read the log's rows, in its order."""
        return tuple(self.state().entries)

    def state(self) -> LogState:
        """Read what the log says now."""
        table = self._handle.look()
        if table is not None and table.version() != self._version:
            self._read(table)
        return self._state

    def _read(self, table: DeltaTable) -> None:
        own, self._own = self._own, None
        if own and table.version() == self._version + 1:
            # Our append came, and nothing else did.
            self._files.add(own[1])
            rows = [own[0]]
        else:
            # The URIs are percent-encoded where the folder's name has a space; the files' own names are plain.
            files = {str(self.path / uri.rpartition("/")[2]) for uri in table.file_uris()}
            rows, self._files = self._rows_of(files - self._files), files
        self._state, self._version = self._state.then(rows), table.version()

    def _rows_of(self, files: set[str]) -> list[Entry]:
        """Read the rows that are not known yet; every version of the table holds all rows before its newest."""
        if not files:
            return []
        later = pc.field("entry") > self._state.newest_entry
        fresh = {row.entry: row for row in from_table(ds.dataset(sorted(files), schema=SCHEMA).to_table(filter=later))}
        return [fresh[entry] for entry in sorted(fresh)]

    def create(self) -> None:
        """Make the table unless it is there."""
        create(self.path, SCHEMA)

    def compact(self) -> None:
        """Put the rows into few files once they lie in many; nobody's reading or appending is disturbed.

        A thousand small files are read in half a second, one in a few milliseconds. A file that is full stays.
        """
        self.state()
        if len(self._files) < MANY_FILES:
            return
        DeltaTable(str(self.path)).optimize.compact(target_size=FULL_FILE, post_commithook_properties=UNHOOKED)
        self.state()

    def append(self, entry: Entry) -> Entry:
        """Append a row behind the last one that `state` has shown.

        Args:
            entry: the row; its place is set here.

        Returns:
            The row with its place.

        Raises:
            ConcurrentAddError: somebody appended since `state`; nothing was written.
            TableMissingError: there was no table when `state` was asked.
        """
        if self._handle.version < 0:
            raise TableMissingError(str(self.path))
        row = replace(entry, entry=self._state.newest_entry + 1)
        if self._handle.version != self._version:
            # What `append` follows must be what was judged, whoever looked at the table since.
            raise ConcurrentAddError(str(self.path), row.entry, "rows came that were not read yet")
        table = to_table(row)
        file = self._write(row, table)
        try:
            self._handle.append([file], APPLICATION, row.entry)
        except ConcurrentAddError:
            (self.path / file.name).unlink(missing_ok=True)
            raise
        self._own = (from_table(table)[0], str(self.path / file.name))
        return row

    def keep_young(self) -> None:
        """Write a checkpoint of the table when the last one is some versions old."""
        self._handle.keep_young()
        self.state()

    def _write(self, row: Entry, table: pa.Table) -> NewFile:
        file = self.path / f"e{row.entry:08d}-{uuid.uuid4().hex[:8]}.parquet"
        pq.write_table(table, file)
        return NewFile(name=file.name, rows=1, size=file.stat().st_size)
