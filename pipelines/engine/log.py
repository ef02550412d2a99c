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
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import DeltaTable

from pipelines.engine.columns import TIME, canonical_json
from pipelines.engine.history import NO_SPAN, CommitKind, Entry, LogState, Span, State
from pipelines.engine.tables import (
    ConcurrentAddError,
    NewFile,
    TableMissingError,
    append,
    commits_path,
    create,
    open_table,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

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

    Rows that were read once are kept; asking again costs a millisecond and the files that came since.
    """

    def __init__(self, root: Path) -> None:
        """Take the root; the table may not exist yet."""
        self.path = commits_path(root)
        self._table: DeltaTable | None = None
        self._files: frozenset[str] = frozenset()
        self._state = LogState.of([])

    def rows(self) -> tuple[Entry, ...]:
        """Read the log's rows, in its order."""
        return self.state().entries

    def state(self) -> LogState:
        """Read what the log says now."""
        if self._table is None:
            self._table = open_table(self.path)
        else:
            self._table.update_incremental()
        if self._table is not None:
            self._read(self._table)
        return self._state

    def _read(self, table: DeltaTable) -> None:
        files = frozenset(table.file_uris())
        if files == self._files:
            return
        fresh = from_table(ds.dataset(sorted(files - self._files), schema=SCHEMA).to_table())
        known = {row.entry: row for row in (*self._state.entries, *fresh)}
        self._state, self._files = LogState.of(known.values()), files

    def create(self) -> None:
        """Make the table unless it is there."""
        create(self.path, SCHEMA)

    def compact(self) -> None:
        """Put the rows into one file once they lie in many; nobody's reading or appending is disturbed.

        A thousand small files are read in half a second, one in a few milliseconds.
        """
        if self._table is not None and len(self._files) >= MANY_FILES:
            DeltaTable(str(self.path)).optimize.compact()

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
        if self._table is None:
            raise TableMissingError(str(self.path))
        row = replace(entry, entry=self._state.newest_entry + 1)
        file = self._write(row)
        try:
            append(self._table, self.path, [file], APPLICATION, row.entry)
        except ConcurrentAddError:
            (self.path / file.name).unlink(missing_ok=True)
            raise
        return row

    def _write(self, row: Entry) -> NewFile:
        table = to_table(row)
        file = self.path / f"e{row.entry:08d}-{uuid.uuid4().hex[:8]}.parquet"
        pq.write_table(table, file)
        return NewFile(name=file.name, rows=1, size=file.stat().st_size)
