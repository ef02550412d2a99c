"""A folder in which files arrive: each is read once, by path, size and hash, when it is seen to stand still.

Nothing is remembered here but the last look; which files have landed is what the landing's manifests say.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import zlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.engine.column_errors import OtherColumnsError
from pipelines.engine.csv_rows import read_csv
from pipelines.engine.file_rows import DROPPED, NOTED, FileRows, Line, Terms, read_parquet, with_unreadable
from pipelines.engine.json_rows import read_json
from pipelines.engine.known_files import FileFate, FileLanded, KnownFiles
from pipelines.engine.landed_types import declared_type, landed_type
from pipelines.engine.landing_errors import (
    ColumnsUnknownError,
    ColumnTypeError,
    FeedMissingError,
    FeedUnreadableError,
)
from pipelines.engine.undeclared import together
from pipelines.flows.model import Missing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pipelines.engine.column_errors import Breach
    from pipelines.engine.undeclared import Undeclared
    from pipelines.flows.model import FeedSpec
    from pipelines.operators.rows import Longs

UNFINISHED = (".tmp", ".part")
HIDDEN = (".", "_")
RAW_BYTES = 1 << 20
"""How much of an unreadable file goes to the ledger; its name, size and hash do in any case."""


class Seen(NamedTuple):
    """A file as a look sees it; two looks that see the same see a file that stands still."""

    size: int
    changed: int


@dataclass(frozen=True, kw_only=True)
class Arrivals:
    """What a look at a folder found."""

    rows: pa.Table
    """The feed's columns and UNREADABLE, in the order (file name, row)."""
    places: Longs
    """Place of each row among all that arrived, from 1; lines have taken theirs."""
    lines: tuple[Line, ...]
    """Rows and files to be told in the ledger."""
    files: tuple[FileLanded, ...]
    """The files that were dealt with."""
    left: int
    """How many files stand still and wait for a later reading: not 0 only where a limit was reached."""
    undeclared: Mapping[str, Undeclared]
    """Columns of the rows that nobody declared."""
    unsettled: tuple[str, ...]
    """Files that were seen for the first time, grew since the last look, or could not be opened."""


class FolderFeed:
    """A folder of arriving files.

    Safe to stop anywhere: a look changes nothing on disk, and a file counts as landed when a manifest says so. A file
    is read whole, and lands in one sequence: it must fit into memory.

    Args:
        spec: what the flow says; `format` and, but for Parquet, `types`.
        base: the folder that the path begins in: the flow file's own.
        schema: the feed's columns as they landed before, where it has no declared types.

    Raises:
        FeedMissingError: there is no such folder.
        ColumnsUnknownError: neither types, nor `schema`, nor a first file say which columns it has.
    """

    def __init__(self, spec: FeedSpec, base: Path, schema: pa.Schema | None = None) -> None:
        """Find the folder and its columns; read no row."""
        self._spec, self._folder = spec, base / spec.paths[0]
        if not self._folder.is_dir():
            raise FeedMissingError(spec.paths[0], str(base))
        self.schema = self._declared() or schema or self._first()
        """The feed's columns, by its own names, with the types they land with."""
        self._last: dict[str, Seen] = {}
        self._touched: dict[str, Seen] = {}

    def arrivals(
        self, known: KnownFiles, terms: Terms, limit_rows: int | None = None, limit_files: int | None = None
    ) -> Arrivals:
        """Look at the folder, and read the files that are new and stood still since the last look.

        A look costs a directory listing; a file is read when its path is new, or its size or time of change is. The
        first look therefore finds nothing but what may land at the next.

        Args:
            known: the files that sequences have dealt with; not changed.
            terms: what becomes of columns that are not the feed's; of this look alone.
            limit_rows: no further file is read once this many rows are.
            limit_files: no more files than this are read.

        Raises:
            FeedMissingError: the folder is gone.
            TimezoneMissingError: Parquet times have no zone, and the feed names none.
        """
        looked = self._look()
        fresh = sorted(path for path, seen in looked.items() if not self._is_done(path, seen, known))
        ready = [path for path in fresh if self._last.get(path) == looked[path]]
        self._last = looked
        taken = _Taken(self.schema, known, terms)
        unsettled = sorted(set(fresh) - set(ready))
        for done, path in enumerate(ready):
            if taken.is_full(limit_rows, limit_files):
                return taken.arrivals(len(ready) - done, unsettled)
            if not self._take(path, looked[path], taken):
                unsettled.append(path)
        return taken.arrivals(0, unsettled)

    def _is_done(self, path: str, seen: Seen, known: KnownFiles) -> bool:
        before = known.at(path)
        return (before is not None and (before.size, before.changed) == seen) or self._touched.get(path) == seen

    def _look(self) -> dict[str, Seen]:
        try:
            return dict(_files(self._folder, ""))
        except FileNotFoundError as error:
            raise FeedMissingError(self._spec.paths[0], str(self._folder.parent)) from error

    def _take(self, path: str, seen: Seen, taken: _Taken) -> bool:
        """Deal with one file; say whether it stood still."""
        try:
            data = (self._folder / path).read_bytes()
            now = _seen((self._folder / path).stat())
        except OSError:
            return False
        if now != seen or len(data) != seen.size:
            return False
        file = _File(path, seen, hashlib.sha256(data).hexdigest())
        fate = taken.fate_of(file)
        if fate is None:
            self._touched[path] = seen
        elif fate is FileFate.LANDED:
            try:
                taken.land(file, self._read(path, data, taken.terms))
            except (FeedUnreadableError, ColumnTypeError) as error:
                taken.refuse(file, data, error)
        else:
            taken.report(file, fate)
        return True

    def _read(self, path: str, data: bytes, terms: Terms) -> FileRows:
        spec = self._spec
        if spec.format == "parquet":
            return read_parquet(path, data, self.schema, spec.timezone, terms)
        if path.endswith(".gz"):
            data = _unpacked(path, data)
        if spec.format == "csv":
            return read_csv(path, data, self.schema, spec, terms)
        return read_json(data, self.schema, spec.timezone, terms)

    def _declared(self) -> pa.Schema | None:
        types = self._spec.types
        return pa.schema([(name, declared_type(spelled)) for name, spelled in types.items()]) if types else None

    def _first(self) -> pa.Schema:
        for path in sorted(self._look()):
            try:
                first = pq.read_schema(self._folder / path)
            except (pa.ArrowException, OSError):
                continue
            return pa.schema([(column.name, landed_type(path, column.name, column.type)) for column in first])
        raise ColumnsUnknownError(str(self._folder))


@dataclass(frozen=True)
class _File:
    path: str
    seen: Seen
    sha256: str

    def landed(self, rows: int, fate: FileFate) -> FileLanded:
        size, changed = self.seen
        return FileLanded(path=self.path, size=size, sha256=self.sha256, rows=rows, changed=changed, fate=fate)


@dataclass
class _Taken:
    """What the files read so far hold together."""

    schema: pa.Schema
    known: KnownFiles
    terms: Terms
    count: int = 0
    tables: list[pa.Table] = field(default_factory=list)
    places: list[Longs] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    files: list[FileLanded] = field(default_factory=list)
    undeclared: list[tuple[int, Mapping[str, Undeclared]]] = field(default_factory=list)
    contents: dict[str, str] = field(default_factory=dict)

    def is_full(self, limit_rows: int | None, limit_files: int | None) -> bool:
        rows_full = limit_rows is not None and self.count >= limit_rows
        return rows_full or (limit_files is not None and len(self.files) >= limit_files)

    def fate_of(self, file: _File) -> FileFate | None:
        """Judge a file by its content; None where it is what it was."""
        before, twin = self.known.at(file.path), self._twin(file)
        if twin == file.path or (before is not None and before.sha256 == file.sha256):
            return None
        if before is not None and before.holds_rows:
            return FileFate.CHANGED
        return FileFate.LANDED if twin is None else FileFate.SAME

    def _twin(self, file: _File) -> str | None:
        return self.known.landed_as(file.sha256) or self.contents.get(file.sha256)

    def land(self, file: _File, came: FileRows) -> None:
        self.tables.append(came.rows)
        self.places.append(came.numbers + self.count)
        self.undeclared.append((came.rows.num_rows, came.undeclared))
        self.lines += [line.at(self.count + line.number, f"{file.path}, row {line.number}") for line in came.lines]
        self.count += came.count
        self.files.append(file.landed(came.count, FileFate.LANDED))
        if came.count:
            self.contents[file.sha256] = file.path

    def refuse(self, file: _File, data: bytes, error: Exception) -> None:
        """Tell of a file that does not land; where the flow says to stop at what is wrong with it, that is told too."""
        told = f"{file.path} ({file.seen.size} bytes, sha256 {file.sha256}): {error}"
        breach = error.breach if isinstance(error, OtherColumnsError) else None
        is_lacking = breach is not None and breach.setting == "missing"
        stops = breach if not is_lacking or self.terms.missing is Missing.STOP else None
        reason = "missing_column" if is_lacking else "unreadable_file"
        self._tell(reason, DROPPED, data[:RAW_BYTES], told, file.path, stops)
        self.files.append(file.landed(1, FileFate.UNREADABLE))

    def report(self, file: _File, fate: FileFate) -> None:
        now: dict[str, object] = {"file": file.path, "size": file.seen.size, "sha256": file.sha256}
        if fate is FileFate.SAME:
            raw = json.dumps(now | {"same_as": self._twin(file)}).encode()
            self._tell("same_content", NOTED, raw, f"{file.path} has the content of {self._twin(file)}")
            self.files.append(file.landed(0, fate))
            return
        before = self.known.at(file.path)
        was = {"size": before.size, "sha256": before.sha256} if before else {}
        raw = json.dumps(now | {"landed": was}).encode()
        self._tell("file_changed", DROPPED, raw, f"{file.path} changed after it had landed")
        self.files.append(file.landed(1, fate))

    def _tell(  # noqa: PLR0913 - a line of the ledger
        self, reason: str, action: str, raw: bytes, problem: str, where: str = "", breach: Breach | None = None
    ) -> None:
        self.count += 1
        line = Line(number=self.count, reason=reason, action=action, raw=raw, problem=problem)
        self.lines.append(replace(line, where=where, breach=breach))

    def arrivals(self, left: int, unsettled: list[str]) -> Arrivals:
        schema = with_unreadable(self.schema)
        return Arrivals(
            rows=pa.concat_tables([schema.empty_table(), *self.tables]),
            places=np.concatenate([np.zeros(0, dtype=np.int64), *self.places]),
            lines=tuple(self.lines),
            files=tuple(self.files),
            left=left,
            undeclared=together(self.undeclared),
            unsettled=tuple(sorted(unsettled)),
        )


def _files(folder: Path | str, under: str) -> Iterator[tuple[str, Seen]]:
    """Give the files of a folder and the folders in it, but for hidden and unfinished ones."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(HIDDEN) or entry.name.endswith(UNFINISHED):
                continue
            try:
                if entry.is_dir():
                    yield from _files(entry.path, f"{under}{entry.name}/")
                elif entry.is_file():
                    yield under + entry.name, _seen(entry.stat())
            except FileNotFoundError:
                continue


def _seen(stat: os.stat_result) -> Seen:
    return Seen(stat.st_size, stat.st_mtime_ns)


def _unpacked(path: str, data: bytes) -> bytes:
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise FeedUnreadableError(path, "gzip", str(error)) from error
