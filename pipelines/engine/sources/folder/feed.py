"""A folder in which files arrive: each is read once, by path, size and hash, when it is seen to stand still.

Nothing is remembered here but the last look; which files have landed is what the landing's manifests say.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.engine.columnar.clock import wall_now
from pipelines.engine.landing.column_errors import OtherColumnsError
from pipelines.engine.landing.errors import (
    ColumnsUnknownError,
    ColumnTypeError,
    FeedMissingError,
    FeedUnreadableError,
    in_ledger,
)
from pipelines.engine.landing.file_rows import (
    DROPPED,
    NOTED,
    ColumnTerms,
    FileRows,
    Line,
    read_parquet,
    with_unreadable,
)
from pipelines.engine.landing.seen_files import FileFate, FileLanded, KnownFiles
from pipelines.engine.landing.types import declared_type, landed_type
from pipelines.engine.landing.undeclared import together
from pipelines.engine.sources.formats.csv_rows import read_csv
from pipelines.engine.sources.formats.json_rows import read_json
from pipelines.engine.sources.listing import LARGE, FolderLook, look, read_below, unpacked
from pipelines.flows.feeds.spec import Missing
from pipelines.operators.rows import MAX_TIME, MIN_TIME

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pipelines.engine.landing.column_errors import Breach
    from pipelines.engine.landing.undeclared import Undeclared
    from pipelines.engine.sources.listing import Seen
    from pipelines.flows.feeds.folder import FolderSpec
    from pipelines.operators.rows import Longs

NOTHING = FolderLook({}, {}, ())
RAW_BYTES = 1 << 20
"""How much of an unreadable file goes to the ledger; its name, size and hash do in any case."""


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
        now: reads the wall clock, in ticks.

    Raises:
        FeedMissingError: there is no such folder, and nothing else says which columns it has.
        ColumnsUnknownError: neither types, nor `schema`, nor a first file say which columns it has.
    """

    def __init__(
        self, spec: FolderSpec, base: Path, schema: pa.Schema | None = None, now: Callable[[], int] = wall_now
    ) -> None:
        """Find the folder and its columns; read no row."""
        self._spec, self._folder = spec, base / spec.paths[0]
        self.schema = self._declared() or schema or self._first()
        """The feed's columns, by its own names, with the types they land with."""
        self._now, self._at = now, MIN_TIME
        self._found = NOTHING
        self._gone: FeedMissingError | None = None
        self._standing: dict[str, _Standing] = {}
        self._is_fresh = False
        """Whether nothing was made of the last look yet."""
        self._touched: dict[str, Seen] = {}

    def look(self) -> int:
        """See which files are there, and how they stand; give when that was, in ticks.

        That the folder is gone is told by `arrivals`, whose reading it is that brings nothing.
        """
        self._gone = None
        try:
            self._found = self._look()
        except FeedMissingError as gone:
            self._found, self._gone = NOTHING, gone
        self._at = max(self._at, self._now())
        before = self._standing
        self._standing = {
            path: before[path].again() if path in before and before[path].seen == seen else _Standing(seen, self._at)
            for path, seen in self._found.files.items()
        }
        self._is_fresh = True
        return self._at

    def arrivals(
        self,
        known: KnownFiles,
        terms: ColumnTerms,
        limit_rows: int | None = None,
        before: int = MAX_TIME,
    ) -> Arrivals:
        """Read the files that are new and stood still between two looks; look first, where nobody has.

        A look costs a directory listing; a file is read when its path is new, or its size or time of change is. The
        first look therefore finds nothing but what may land at the next.

        Args:
            known: the files that sequences have dealt with; not changed.
            terms: what becomes of columns that are not the feed's; of this look alone.
            limit_rows: no further file is read once this many rows are.
            before: only files that were first seen before this instant as they are now, in ticks.

        Raises:
            FeedMissingError: the folder is gone.
            TimezoneMissingError: Parquet times have no zone, and the feed names none.
        """
        if not self._is_fresh:
            self.look()
        self._is_fresh = False
        if self._gone is not None:
            raise self._gone
        found = self._found
        looked = found.files
        fresh = sorted(path for path, seen in looked.items() if not self._is_done(path, seen, known))
        ready = [path for path in fresh if self._standing[path].is_twice and self._standing[path].since < before]
        taken = _TakenFiles(self.schema, known, terms)
        unsettled = [*sorted(set(fresh) - set(ready)), *found.closed]
        for done, path in enumerate(ready):
            if taken.is_full(limit_rows):
                return taken.arrivals(len(ready) - done, unsettled)
            why = found.refused.get(path) or self._too_large(looked[path])
            if why is not None:
                taken.leave(path, looked[path], why)
            elif not self._take(path, looked[path], taken):
                unsettled.append(path)
        return taken.arrivals(0, unsettled)

    def _is_done(self, path: str, seen: Seen, known: KnownFiles) -> bool:
        before = known.at(path)
        return (before is not None and (before.size, before.changed) == seen) or self._touched.get(path) == seen

    def _look(self) -> FolderLook:
        try:
            return look(self._folder)
        except OSError as error:
            raise FeedMissingError(self._spec.paths[0], str(self._folder.parent)) from error

    def _too_large(self, seen: Seen) -> str | None:
        most = self._spec.max_bytes
        return None if seen.size <= most else f"a file must have {LARGE.format(most)}; it has {seen.size:,}"

    def _take(self, path: str, seen: Seen, taken: _TakenFiles) -> bool:
        """Deal with one file; say whether it stood still."""
        try:
            data = read_below(self._folder, path, seen)
        except OSError:
            return False
        if data is None:
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

    def _read(self, path: str, data: bytes, terms: ColumnTerms) -> FileRows:
        spec = self._spec
        if spec.format == "parquet":
            return read_parquet(path, data, self.schema, spec.timezone, terms)
        if path.endswith(".gz"):
            data = unpacked(path, data, spec.max_bytes)
        if spec.format == "csv" and not data:
            raise FeedUnreadableError(path, "CSV that begins with the names of its columns", "it is empty")
        if spec.format == "csv":
            return read_csv(path, data, self.schema, spec, terms)
        return read_json(data, self.schema, spec.timezone, terms)

    def _declared(self) -> pa.Schema | None:
        types = self._spec.types
        return pa.schema([(name, declared_type(spelled)) for name, spelled in types.items()]) if types else None

    def _first(self) -> pa.Schema:
        found = self._look()
        for path in sorted(found.files.keys() - found.refused.keys()):
            try:
                first = pq.read_schema(self._folder / path)
            except (pa.ArrowException, UnicodeError, OSError):
                continue
            return pa.schema([(column.name, landed_type(path, column.name, column.type)) for column in first])
        raise ColumnsUnknownError(str(self._folder))


class _Standing(NamedTuple):
    """How a file was seen last."""

    seen: Seen
    since: int
    """When it was first seen so, in ticks."""
    is_twice: bool = False
    """Whether a later look saw it so, too."""

    def again(self) -> _Standing:
        return self._replace(is_twice=True)


@dataclass(frozen=True)
class _File:
    path: str
    seen: Seen
    sha256: str

    def landed(self, rows: int, fate: FileFate) -> FileLanded:
        size, changed = self.seen
        return FileLanded(path=self.path, size=size, sha256=self.sha256, rows=rows, changed=changed, fate=fate)


@dataclass
class _TakenFiles:
    """What the files read so far hold together."""

    schema: pa.Schema
    known: KnownFiles
    terms: ColumnTerms
    count: int = 0
    tables: list[pa.Table] = field(default_factory=list)
    places: list[Longs] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    files: list[FileLanded] = field(default_factory=list)
    undeclared: list[tuple[int, Mapping[str, Undeclared]]] = field(default_factory=list)
    contents: dict[str, str] = field(default_factory=dict)

    def is_full(self, limit_rows: int | None) -> bool:
        return limit_rows is not None and self.count >= limit_rows

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
        told = f"{file.path} ({file.seen.size} bytes, sha256 {file.sha256}): {in_ledger(error)}"
        breach = error.breach if isinstance(error, OtherColumnsError) else None
        is_lacking = breach is not None and breach.setting == "missing"
        stops = breach if not is_lacking or self.terms.missing is Missing.STOP else None
        reason = "missing_column" if is_lacking else "unreadable_file"
        self._tell(reason, DROPPED, data[:RAW_BYTES], told, file.path, stops)
        self.files.append(file.landed(1, FileFate.UNREADABLE))

    def leave(self, path: str, seen: Seen, why: str) -> None:
        """Tell of a file that is left where it is, unread."""
        self._tell("unreadable_file", DROPPED, b"", f"{path}: {why}", path)
        self.files.append(_File(path, seen, "").landed(1, FileFate.UNREADABLE))

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
