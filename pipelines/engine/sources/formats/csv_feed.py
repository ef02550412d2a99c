"""CSV files as a feed: declared types; what is wrong with one row, or one file, is told of that alone."""

from __future__ import annotations

import csv
import gzip
import zlib
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.csv as pcsv

from pipelines.engine.columnar.columns import TIME
from pipelines.engine.columnar.text_times import ZonelessError, read_values, remember_unread, told_texts, zoned_times
from pipelines.engine.landing.errors import FeedUnreadableError, TimezoneMissingError
from pipelines.engine.landing.file_rows import with_unreadable
from pipelines.engine.landing.told_rows import alone, beside, in_file, new_name, note_new, told_column
from pipelines.engine.landing.types import declared_type
from pipelines.engine.sources.columns import RAW_BYTES, Fit, fit, spoilt
from pipelines.engine.sources.files import ListedFiles, bytes_of, called, find_files
from pipelines.engine.sources.formats.csv_mending import BYTEWISE, Mending, with_last
from pipelines.engine.sources.formats.csv_quotes import ends_between_quotes, is_cut_between_quotes
from pipelines.engine.sources.recorded_feed import recorded
from pipelines.engine.sources.recording import recorded_terms
from pipelines.engine.sources.rows_feed import Feed
from pipelines.flows.feeds.csv import CsvSpec
from pipelines.flows.feeds.spec import Missing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pipelines.engine.landing.file_rows import ColumnTerms
    from pipelines.engine.landing.source_feed import SourceFeed
    from pipelines.engine.sources.opening import Opening
    from pipelines.flows.model import Source

BLOCK_BYTES = 16 << 20
HELD_BYTES = 128 << 20
"""Files up to this size in all are parsed once and kept; larger ones are parsed again each time they are read."""
BOM = b"\xef\xbb\xbf".decode(BYTEWISE)
HEADS = {
    b"\xff\xfe": "it is UTF-16, no UTF-8",
    b"\xfe\xff": "it is UTF-16, no UTF-8",
    b"\x1f\x8b": "it is gzip, and its name does not end in .gz",
}
"""What a file is that is no text in UTF-8, by how it begins."""
WRONG = (pa.ArrowInvalid, UnicodeDecodeError, OSError, EOFError, zlib.error)


class Header(NamedTuple):
    """The first line of a file."""

    names: tuple[str, ...]
    problem: str = ""
    """Why it cannot be read."""


class CsvFeed(Feed):
    """CSV files whose columns are those of the first that has all declared ones; undeclared ones there are strings."""

    named = True

    def __init__(self, files: Sequence[Path], spec: CsvSpec, terms: ColumnTerms, base: Path) -> None:
        """Read the headers.

        Raises:
            FeedUnreadableError: none of them names the declared columns.
        """
        self._files, self._spec, self._terms, self._base = list(files), spec, terms, base
        self._listed = ListedFiles(files, base)
        headers = {file: _header(file, spec.delimiter) for file in self._files}
        names = _columns(headers, spec)
        self.schema = pa.schema([(name, declared_type(spec.types.get(name, "string"))) for name in names])
        fits = {file: fit(self.schema, header.names, terms) for file, header in headers.items() if not header.problem}
        self._shapes = {file: (headers[file], fits.get(file, Fit())) for file in self._files}
        self._held: tuple[str, list[pa.RecordBatch]] | None = None

    def fingerprint(self) -> str:
        """Give digits that change with the files or with how they are read."""
        spec = self._spec
        said = [dict(spec.types), spec.delimiter, list(spec.nulls), spec.timezone, spec.missing, spec.retyped]
        return self._listed.fingerprint(said)

    def size(self) -> int:
        """Give the bytes of the files."""
        return bytes_of(self._files)

    def read(self, where: pa.compute.Expression | None = None) -> Iterator[pa.RecordBatch]:
        """Give the rows that `where` allows, file by file, line by line, with what is told of them beside.

        Raises:
            TimezoneMissingError: the first time has no zone, and the feed names none.
        """
        for batch in self._batches():
            yield batch if where is None else batch.filter(where)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        if sum(file.stat().st_size for file in self._files) > HELD_BYTES:
            yield from self._parsed()
            return
        seen = self.fingerprint()
        if self._held is None or self._held[0] != seen:
            self._held = seen, list(self._parsed())
        yield from self._held[1]

    def _parsed(self) -> Iterator[pa.RecordBatch]:
        zones: set[str] = set()
        for file, (header, fitting) in self._shapes.items():
            where = called(file, self._base)
            try:
                batches = _CsvFile(file, where, self, header, fitting, zones).batches()
                yield from (in_file(batch, where) for batch in batches)
            except ZonelessError as found:
                raise TimezoneMissingError(str(file), found.column, found.example) from None

    @property
    def spec(self) -> CsvSpec:
        """Give what the flow says."""
        return self._spec

    @property
    def terms(self) -> ColumnTerms:
        """Give what becomes of rows with other columns."""
        return self._terms


class _CsvFile:
    """One file: read at once as its declared types, and from where that fails on row by row."""

    def __init__(  # noqa: PLR0913 - a file, and what it is read as
        self, file: Path, where: str, feed: CsvFeed, header: Header, fitting: Fit, zones: set[str]
    ) -> None:
        self._file, self._where, self._feed, self._header, self._fit = file, where, feed, header, fitting
        self._zones, self._rows = zones, 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        if self._header.problem:
            line = spoilt(self._where, _head(self._file), self._header.problem)
            yield alone(with_unreadable(self._feed.schema), line)
            return
        if self._fit.wrong is None:
            try:
                for batch, is_last in with_last(self._opened()):
                    if is_last and self._swallows(batch):
                        break
                    yield self._with_times(batch)
                    self._rows += batch.num_rows
                else:
                    return
            except WRONG:
                pass
        yield from self._mended()

    def _swallows(self, batch: pa.RecordBatch) -> bool:
        """Say whether the last row of a file begins a quote that nothing closes; of text it may be of any length."""
        name = self._header.names[-1]
        if name not in batch.schema.names:
            return False
        if not pa.types.is_string(batch.schema.field(name).type):
            return bool(batch.num_rows) and is_cut_between_quotes(self._file, self._feed.spec.delimiter)
        last = batch.column(name)[-1].as_py() if batch.num_rows else None
        return ends_between_quotes(self._file, self._feed.spec.delimiter, last)

    def _mended(self) -> Iterator[pa.RecordBatch]:
        """Read row by row what the reader of whole columns did not give."""
        mending = Mending(
            self._file, self._where, self._header.names, self._feed.schema, self._feed.spec, self._feed.terms
        )
        try:
            for batch in mending.batches(self._fit, self._rows, self._zones):
                yield batch
                self._rows = mending.rows
        except WRONG:
            problem = f"row {self._rows + 1}, and all behind it: the file cannot be read on"
            yield alone(with_unreadable(self._feed.schema), spoilt(self._where, _head(self._file), problem))

    def _opened(self) -> Iterator[pa.RecordBatch]:
        spec, schema, beside_it = self._feed.spec, self._feed.schema, dict.fromkeys(self._fit.new, pa.string())
        typed = {field.name: pa.string() if _is_text_first(field.type) else field.type for field in schema}
        yield from pcsv.open_csv(
            str(self._file),
            read_options=pcsv.ReadOptions(block_size=BLOCK_BYTES),
            parse_options=pcsv.ParseOptions(delimiter=spec.delimiter, newlines_in_values=True),
            convert_options=pcsv.ConvertOptions(
                column_types=typed | beside_it,
                null_values=list(spec.nulls),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                include_columns=[*schema.names, *self._fit.new],
                include_missing_columns=True,
            ),
        )

    def _with_times(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        lost: dict[int, dict[str, str]] = {}
        schema = self._feed.schema
        columns = list(batch.columns)[: len(schema)]
        for place, field in enumerate(schema):
            if field.type == TIME:
                columns[place] = zoned_times(batch.column(place), field.name, self._feed.spec.timezone, self._zones)
                remember_unread(lost, field.name, batch.column(place), columns[place])
            elif _is_text_first(field.type):
                columns[place] = read_values(batch.column(place), field.type)
                if columns[place].null_count != batch.column(place).null_count:
                    raise pa.ArrowInvalid(f"a value of `{field.name}` is no {field.type}")
        raw = told_texts(lost, batch.num_rows)
        found = pa.RecordBatch.from_arrays([*columns, raw], schema=with_unreadable(schema))
        return self._with_new(found, batch) if self._fit.new else found

    def _with_new(self, found: pa.RecordBatch, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Set the columns that nobody declared beside the others."""
        notes = {0: note_new(self._where, dict.fromkeys(self._fit.new, "string"))} if self._rows == 0 else {}
        arrays = [*found.columns, told_column(notes, batch.num_rows)]
        names = [*beside(found.schema).names, *(new_name("string", name) for name in self._fit.new)]
        return pa.RecordBatch.from_arrays([*arrays, *batch.columns[len(self._feed.schema) :]], names=names)


def _is_text_first(kind: pa.DataType) -> bool:
    """Say whether a column is read out of text here; Arrow's reader of CSV lands decimals with too many digits."""
    return bool(kind == TIME or pa.types.is_decimal(kind))


def _head(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(RAW_BYTES)


def _header(file: Path, delimiter: str) -> Header:
    opener = gzip.open if file.suffix == ".gz" else open
    try:
        with opener(file, "rt", encoding=BYTEWISE, newline="") as lines:
            names = next((line for line in csv.reader(lines, delimiter=delimiter) if line), [])
        found = [name.encode(BYTEWISE).decode() for name in _without_bom(names, delimiter)]
    except (UnicodeDecodeError, csv.Error, gzip.BadGzipFile, EOFError, zlib.error) as error:
        return Header((), f"its first line cannot be read: {_wrong(error, _head(file))}")
    return Header(tuple(found), "" if found else "it is empty")


def _wrong(error: Exception, head: bytes) -> str:
    """Say in our own words what is wrong with a first line: the ledger has them."""
    told = next((told for begins, told in HEADS.items() if head.startswith(begins)), "")
    if isinstance(error, UnicodeDecodeError):
        return told or "it is no UTF-8"
    return "its quotes do not pair" if isinstance(error, csv.Error) else "it is no gzip, or not all of one"


def _without_bom(names: list[str], delimiter: str) -> list[str]:
    """Give the names without the mark that some programs begin UTF-8 with, before which quotes would not count."""
    if not names or not names[0].startswith(BOM):
        return names
    first = next(csv.reader([names[0].removeprefix(BOM)], delimiter=delimiter), [""])
    return [*first, *names[1:]]


def _columns(headers: dict[Path, Header], spec: CsvSpec) -> list[str]:
    """Give the columns of the feed: those of the first file that names each once, and all declared ones among them."""
    problems = {file: _problem(header, spec) for file, header in headers.items()}
    first = next((file for file, problem in problems.items() if problem is None), None)
    if first is None:
        file, problem = next(iter(problems.items()))
        raise FeedUnreadableError(str(file), *(problem or ("", "")))
    names = headers[first].names
    return [*names, *(name for name in spec.types if name not in names)]


def _problem(header: Header, spec: CsvSpec) -> tuple[str, str] | None:
    came = header.names
    twice = [name for place, name in enumerate(came) if name in came[:place]]
    if twice or header.problem:
        problem = f"two columns are `{twice[0]}`" if twice else header.problem
        return "CSV whose first line names each column once", problem
    lacking = [name for name in spec.types if name not in came]
    if lacking and spec.lacking is not Missing.NULL:
        return f"CSV with the declared column `{lacking[0]}`", f"its header is {', '.join(came)}"
    return None


def open_source(source: Source, opening: Opening) -> SourceFeed:
    """Open files that a flow names."""
    spec = CsvSpec.of(source.feed)
    files = find_files(spec.paths, opening.base, spec.kind)
    return recorded(source, CsvFeed(files, spec, recorded_terms(source), opening.base))
