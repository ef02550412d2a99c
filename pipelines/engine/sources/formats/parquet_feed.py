"""Parquet files as a feed: the columns of the first; what is wrong with one row, or one file, is told of that alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from pipelines.engine.landing.column_errors import Breach
from pipelines.engine.landing.errors import FeedUnreadableError
from pipelines.engine.landing.file_rows import DROPPED, Line, with_unreadable
from pipelines.engine.landing.told_rows import alone, beside, in_file, new_name, note_new, told_column
from pipelines.engine.landing.types import landed_column, landed_type, spelled_type, told_unreadable, unreadable
from pipelines.engine.sources.columns import RAW_BYTES, Fit, fit, spoilt
from pipelines.engine.sources.files import ListedFiles, bytes_of, called, find_files
from pipelines.engine.sources.footers import footer_of
from pipelines.engine.sources.recorded_feed import recorded
from pipelines.engine.sources.recording import recorded_terms
from pipelines.engine.sources.rows_feed import BATCH, Feed
from pipelines.flows.feeds.parquet import ParquetSpec
from pipelines.flows.feeds.spec import Retyped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pipelines.engine.landing.file_rows import ColumnTerms
    from pipelines.engine.landing.source_feed import SourceFeed
    from pipelines.engine.sources.opening import Opening
    from pipelines.flows.model import Source


class FileShape(NamedTuple):
    """A file, and how its columns are those of the feed."""

    path: Path
    where: str
    columns: pa.Schema | None
    """None where the file cannot be read."""
    problem: str = ""
    fit: Fit = Fit()
    retyped: tuple[str, ...] = ()
    """Columns of another type than the feed's."""

    @property
    def is_plain(self) -> bool:
        """Say whether the file has the feed's columns, of its types, and no others."""
        return self.columns is not None and self.fit.is_plain and not self.retyped


class ParquetFeed(Feed):
    """Parquet files; row groups that `where` rules out are not read."""

    named = True

    def __init__(self, files: Sequence[Path], spec: ParquetSpec, terms: ColumnTerms, base: Path) -> None:
        """Read the files' footers.

        Raises:
            FeedUnreadableError: none of them is Parquet.
        """
        self._paths, self._spec, self._terms = tuple(files), spec, terms
        self._listed = ListedFiles(files, base)
        seen = [(file, *_columns(file)) for file in files]
        first = next((columns for _, columns, _ in seen if columns is not None), None)
        if first is None:
            raise FeedUnreadableError(str(files[0]), "Parquet", seen[0][2])
        self.schema = first
        self._shapes = [self._shape(file, called(file, base), columns, why) for file, columns, why in seen]
        self.files = tuple(
            shape.path for shape in self._shapes if shape.is_plain and _names(shape.columns) == _names(first)
        )
        """Those with exactly the feed's columns, in the order of their rows."""
        self.odd = len(self.files) < len(self._shapes)
        """Whether there are others."""

    def fingerprint(self) -> str:
        """Give digits that change with the files or with how they are read."""
        return self._listed.fingerprint(["parquet", self._spec.missing, self._spec.retyped])

    def size(self) -> int:
        """Give the bytes of the files."""
        return bytes_of(self._paths)

    def read(self, where: pa.compute.Expression | None = None) -> Iterator[pa.RecordBatch]:
        """Give the rows that `where` allows, file by file, as they stand in them, with what is told of them beside."""
        yield from self._read(self._shapes, where)

    def read_odd(self, where: pa.compute.Expression | None = None) -> Iterator[pa.RecordBatch]:
        """Give the rows of the files that have not exactly the feed's columns."""
        yield from self._read([shape for shape in self._shapes if shape.path not in self.files], where)

    def read_doubtful(self) -> Iterator[pa.RecordBatch]:
        """Give those again: of the others nothing can be told but their times."""
        return self.read_odd()

    def _read(self, shapes: Sequence[FileShape], where: pa.compute.Expression | None) -> Iterator[pa.RecordBatch]:
        for shape in shapes:
            try:
                if shape.columns is not None:
                    footer_of(shape.path)
                batches = self._plain(shape, where) if shape.is_plain else self._odd(shape, where)
                yield from (in_file(batch, shape.where) for batch in batches)
            except (pa.ArrowException, UnicodeError, OSError) as error:
                raise FeedUnreadableError(
                    str(shape.path), "Parquet whose pages can be read", "those of this one cannot"
                ) from error

    def _plain(self, shape: FileShape, where: pa.compute.Expression | None) -> Iterator[pa.RecordBatch]:
        recorded = ds.dataset([str(shape.path)], schema=self.schema, format="parquet")
        for fragment in recorded.get_fragments():
            yield from fragment.to_batches(schema=self.schema, filter=where, batch_size=BATCH)

    def _odd(self, shape: FileShape, where: pa.compute.Expression | None) -> Iterator[pa.RecordBatch]:
        if shape.columns is None:
            yield alone(with_unreadable(self.schema), spoilt(shape.where, _head(shape.path), shape.problem))
            return
        filterable = not shape.retyped and shape.fit.wrong is None and not shape.fit.lacking
        with pq.ParquetFile(shape.path) as file:
            counts = [file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)]
            starts = np.concatenate([[0], np.cumsum(counts)]).tolist()
            for group in _groups(shape.path, where) if filterable else range(len(counts)):
                at = starts[group]
                for batch in file.iter_batches(BATCH, row_groups=[group], use_threads=False):
                    yield _OddRows(self, shape, batch, at).laid()
                    at += batch.num_rows

    def _shape(self, file: Path, where: str, columns: pa.Schema | None, problem: str) -> FileShape:
        if columns is None:
            return FileShape(file, where, None, problem)
        fitting = fit(self.schema, columns.names, self._terms)
        if fitting.wrong is None:
            fitting = self._landable(where, columns, fitting)
        retyped = [name for name in self.schema.names if columns.get_all_field_indices(name)]
        other = tuple(name for name in retyped if columns.field(name).type != self.schema.field(name).type)
        return FileShape(file, where, columns, "", fitting, other)

    def _landable(self, where: str, columns: pa.Schema, fitting: Fit) -> Fit:
        """Refuse the rows of a file with a column that nobody declared and whose type does not land."""
        valued = tuple(name for name in fitting.new if not pa.types.is_null(columns.field(name).type))
        for name in valued:
            try:
                landed_type(where, name, columns.field(name).type)
                self._see_zone(columns.field(name))
            except ValueError as error:
                problem = f"nobody declared `{name}`, and it cannot land beside the others ({error})"
                return Fit(wrong=Line(number=0, reason="unreadable_row", action=DROPPED, raw=b"", problem=problem))
        return fitting._replace(new=valued)

    def _see_zone(self, field: pa.Field) -> None:
        if self._spec.timezone is None and pa.types.is_timestamp(field.type) and field.type.tz is None:
            raise ValueError("its times have no timezone, and the feed names none")

    def read_as(self, shape: FileShape, name: str, column: pa.Array) -> tuple[pa.Array, pa.Array | None]:
        """Give a column as it lands, null where a value is not of its type, and what its unreadable times were."""
        wanted = landed_type(shape.where, name, self.schema.field(name).type)
        if pa.types.is_null(column.type):
            return pa.nulls(len(column), wanted), None
        try:
            self._see_zone(pa.field(name, column.type))
            landed = landed_column(column, landed_type(shape.where, name, column.type), self._spec.timezone)
        except ValueError:
            return pa.nulls(len(column), wanted), None
        if landed.type == wanted:
            return landed, unreadable(column, landed)
        temporal = [pa.types.is_temporal(kind) for kind in (landed.type, wanted)]
        if any(temporal) and not all(temporal) and not pa.types.is_string(landed.type):
            return pa.nulls(len(column), wanted), None
        return _cast(landed, wanted), None

    @property
    def terms(self) -> ColumnTerms:
        """Give what becomes of rows with other columns."""
        return self._terms

    @property
    def timezone(self) -> str | None:
        """Give the timezone of times that carry none."""
        return self._spec.timezone


class _OddRows:
    """Some rows of a file whose columns are not exactly the feed's."""

    def __init__(self, feed: ParquetFeed, shape: FileShape, came: pa.RecordBatch, at: int) -> None:
        self._feed, self._shape, self._came, self._at = feed, shape, came, at
        self._problems: dict[int, Line] = {}
        self._lost: dict[str, pa.Array] = {}

    def laid(self) -> pa.RecordBatch:
        feed, shape, rows = self._feed, self._shape, self._came.num_rows
        columns = [self._column(field) for field in feed.schema]
        new = [self._new(name) for name in shape.fit.new]
        if shape.fit.wrong is not None:
            self._problems = dict.fromkeys(range(rows), shape.fit.wrong)
        lines = self._lines()
        if shape.fit.new and self._at == 0 and rows:
            kinds = {name: kind for name, kind, _ in new}
            lines[0] = [*note_new(shape.where, kinds), *lines.get(0, [])]
        schema = pa.schema([field.with_type(came.type) for field, came in zip(feed.schema, columns, strict=True)])
        names = [*beside(with_unreadable(schema)).names, *(new_name(kind, name) for name, kind, _ in new)]
        told = [told_unreadable(self._lost, rows), told_column(lines, rows)]
        return pa.RecordBatch.from_arrays([*columns, *told, *(column for _, _, column in new)], names=names)

    def _column(self, field: pa.Field) -> pa.Array:
        places = self._came.schema.get_all_field_indices(field.name)
        if not places:
            return pa.nulls(self._came.num_rows, field.type)
        came = self._came.column(places[0])
        if came.type == field.type:
            return came
        landed, lost = self._feed.read_as(self._shape, field.name, came)
        if lost is not None:
            self._lost[field.name] = lost
        wrong = pc.and_(landed.is_null(), came.is_valid())
        if lost is not None:
            wrong = pc.and_(wrong, lost.is_null())
        for row in np.flatnonzero(np.asarray(wrong)).tolist():
            self._retyped(row, field.name, came, landed.type)
        return landed

    def _retyped(self, row: int, name: str, came: pa.Array, wanted: pa.DataType) -> None:
        value = json.dumps(came[row].as_py(), default=str, ensure_ascii=False)
        required = spelled_type(wanted)
        stops = self._feed.terms.retyped is Retyped.STOP
        breach = Breach("retyped", name, required, f"it is {came.type} ({value})") if stops else None
        problem = f"`{name}` is {value} ({came.type}), no {required}"
        line = Line(number=0, reason="unreadable_row", action=DROPPED, raw=b"", problem=problem, breach=breach)
        self._problems.setdefault(row, line)

    def _new(self, name: str) -> tuple[str, str, pa.Array]:
        came = self._came.column(self._came.schema.get_field_index(name))
        kind = landed_type(self._shape.where, name, came.type)
        landed = landed_column(came, kind, self._feed.timezone)
        lost = unreadable(came, landed)
        if lost is not None:
            self._lost[name] = lost
        return name, spelled_type(kind), landed

    def _lines(self) -> dict[int, list[Line]]:
        rows = sorted(self._problems)
        if not rows:
            return {}
        table = pa.Table.from_batches([self._came.take(pa.array(rows))])
        raws = _json(table)
        return {row: [self._told(row, self._problems[row], raw)] for row, raw in zip(rows, raws, strict=True)}

    def _told(self, row: int, line: Line, raw: bytes) -> Line:
        number = self._at + row + 1
        said = Line(number=number, reason=line.reason, action=line.action, raw=raw, problem=line.problem)
        return Line(**vars(said.at(number, f"{self._shape.where}, row {number}")) | {"breach": line.breach})


def _json(rows: pa.Table) -> list[bytes]:
    """Spell rows as the ledger does; a value that does not land stands as text."""
    return [
        json.dumps(row, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str).encode()
        for row in map(dict, (zip(rows.schema.names, values, strict=True) for values in _values(rows)))
    ]


def _values(rows: pa.Table) -> Iterator[tuple[object, ...]]:
    return zip(*(column.to_pylist() for column in rows.columns), strict=True)


def _cast(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Cast values; one that cannot be cast becomes null."""
    try:
        return column.cast(wanted)
    except pa.ArrowException:
        if len(column) == 1:
            return pa.nulls(1, wanted)
        half = len(column) // 2
        return pa.concat_arrays([_cast(column[:half], wanted), _cast(column[half:], wanted)])


def _groups(path: Path, where: pa.compute.Expression | None) -> list[int]:
    """Number the row groups that `where` does not rule out."""
    (fragment,) = ds.dataset([str(path)], format="parquet").get_fragments()
    parts = fragment.split_by_row_group() if where is None else fragment.split_by_row_group(where)
    return [group.id for part in parts for group in part.row_groups]


def _columns(file: Path) -> tuple[pa.Schema | None, str]:
    try:
        return pq.read_schema(file).remove_metadata(), ""
    except (pa.ArrowException, UnicodeError, OSError) as error:
        # Of bits that make no sense Arrow says the same as of a disk that fails, but for the number of the error.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        return None, "its footer cannot be read"


def _names(columns: pa.Schema | None) -> list[str]:
    return [] if columns is None else columns.names


def _head(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(RAW_BYTES)


def open_source(source: Source, opening: Opening) -> SourceFeed:
    """Open files that a flow names."""
    spec = ParquetSpec.of(source.feed)
    files = find_files(spec.paths, opening.base, spec.kind)
    return recorded(source, ParquetFeed(files, spec, recorded_terms(source), opening.base))
