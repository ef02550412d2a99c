"""A CSV file row by row: the rows that cannot be read are told, and the others are what they are without them."""

from __future__ import annotations

import csv
import io
import json
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from pipelines.engine.columnar.columns import TIME
from pipelines.engine.columnar.text_times import read_values, remember_unread, told_texts, zoned_times
from pipelines.engine.landing.column_errors import Breach
from pipelines.engine.landing.file_rows import DROPPED, Line, with_unreadable
from pipelines.engine.landing.told_rows import beside, new_name, note_new, told_column
from pipelines.engine.landing.types import spelled_type
from pipelines.engine.sources.formats.csv_quotes import ends_between_quotes
from pipelines.engine.sources.formats.csv_rows import other_fields
from pipelines.flows.feeds.spec import Retyped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from pipelines.engine.landing.file_rows import ColumnTerms
    from pipelines.engine.sources.columns import Fit
    from pipelines.flows.feeds.csv_text import CsvText
    from pipelines.operators.rows import Longs

BLOCK_BYTES = 16 << 20
EXACT_BYTES = 128 << 20
"""Of a larger file a row's bytes are spelt from its fields: to find them as they stand means to read it once more."""
BYTEWISE = "latin-1"
"""Gives every byte a letter, and back."""
HEADER = 1
"""Arrow counts the header as a row."""


class Mending:
    """The rows of one file, by Arrow's own idea of what a row is, so that no row that was read before becomes another.

    Args:
        file: its path.
        where: what a person calls it.
        names: its columns.
        schema: those of the feed.
        spec: delimiter, nulls and timezone.
        terms: what becomes of a value that is not of its declared type.
    """

    def __init__(  # noqa: PLR0913 - a file, and what it is read as
        self,
        file: Path,
        where: str,
        names: tuple[str, ...],
        schema: pa.Schema,
        spec: CsvText,
        terms: ColumnTerms,
    ) -> None:
        """Read nothing yet."""
        self._file, self._where, self._names, self._schema = file, where, names, schema
        self._spec, self._terms = spec, terms
        self._opened_at = 0
        """Number of the row that begins a quote which nothing closes: all that stands behind it is its last value."""
        self._odd: dict[int, tuple[str, bytes]] = {}
        self.rows = 0
        """How many rows of the file were given, or told."""

    def batches(self, fitting: Fit, skip: int, zones: set[str]) -> Iterator[pa.RecordBatch]:
        """Give the rows with TOLD beside them.

        Args:
            fitting: how the file's columns fit.
            skip: how many rows at its beginning are known to be whole, and were given.
            zones: columns of which a time with a zone was read.

        Raises:
            ArrowInvalid: the rows behind those given cannot be told from one another.
        """
        self.rows, number = skip, 0
        for batch, is_last in with_last(self._open(self._names, self._note)):
            numbers = self._numbers(number, batch.num_rows)
            number = int(numbers[-1])
            last = batch.column(len(self._names) - 1)[-1].as_py() if is_last else None
            if number > max(self._odd, default=0) and ends_between_quotes(self._file, self._spec.delimiter, last):
                self._opened_at = number
            if number > skip:
                fresh = numbers > skip
                yield self._laid(batch.filter(pa.array(fresh)), numbers[fresh], number, fitting, zones)
        last = max(self._odd, default=0)
        if last > self.rows:
            nothing = pa.record_batch({name: pa.nulls(0, pa.string()) for name in self._unique()})
            yield self._laid(nothing, np.zeros(0, dtype=np.int64), last, fitting, zones)

    def _open(self, names: Sequence[str], odd: Callable[[pcsv.InvalidRow], str]) -> Iterator[pa.RecordBatch]:
        columns = [f"{place}" for place in range(len(names))]
        for batch in pcsv.open_csv(
            str(self._file),
            read_options=pcsv.ReadOptions(
                use_threads=False,
                block_size=BLOCK_BYTES,
                encoding=BYTEWISE,
                column_names=columns,
                skip_rows_after_names=1,
            ),
            parse_options=pcsv.ParseOptions(
                delimiter=self._spec.delimiter, newlines_in_values=True, invalid_row_handler=odd
            ),
            convert_options=pcsv.ConvertOptions(
                column_types=dict.fromkeys(columns, pa.string()),
                null_values=[text.encode().decode(BYTEWISE) for text in self._spec.nulls],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        ):
            if batch.num_rows:
                yield batch

    def _unique(self) -> list[str]:
        return [f"{place}" for place in range(len(self._names))]

    def _note(self, row: pcsv.InvalidRow) -> str:
        raw = row.text.encode(BYTEWISE)
        self._odd[row.number - HEADER] = other_fields(row.actual_columns, row.expected_columns, raw), raw
        return "skip"

    def _numbers(self, after: int, count: int) -> Longs:
        """Number the next rows that are whole, from 1."""
        odd = np.array(sorted(at for at in self._odd if at > after), dtype=np.int64)
        every = np.arange(after + 1, after + 1 + count + len(odd))
        return np.setdiff1d(every, odd)[:count]

    def _laid(self, texts: pa.RecordBatch, numbers: Longs, upto: int, fitting: Fit, zones: set[str]) -> pa.RecordBatch:
        """Lay out the rows up to a number: those that were read, and null for the others, which are told."""
        odd = [at for at in self._odd if self.rows < at <= upto]
        every = np.sort(np.concatenate([numbers, np.array(odd, dtype=np.int64)]))
        read = _Read(texts, self._names, self._schema, self._spec.timezone, zones)
        new = {name: read.text(name) for name in fitting.new}
        problems = self._problems(read, numbers, odd, fitting)
        lines = self._lines(problems, texts, numbers)
        if fitting.new and not self.rows:
            lines.setdefault(1, [])[:0] = note_new(self._where, dict.fromkeys(fitting.new, "string"))
        places = np.full(len(every), -1)
        places[np.searchsorted(every, numbers)] = np.arange(len(numbers))
        index = pa.array(places, mask=places < 0)
        told = told_column({int(np.searchsorted(every, at)): said for at, said in lines.items()}, len(every))
        columns = [column.take(index) for column in (*read.columns, *new.values())]
        columns.insert(len(self._schema) + 1, told)
        names = [*beside(with_unreadable(self._schema)).names, *(new_name("string", name) for name in new)]
        self.rows = upto
        return pa.RecordBatch.from_arrays(columns, names=names)

    def _problems(self, read: _Read, numbers: Longs, odd: list[int], fitting: Fit) -> dict[int, Line]:
        """Say by number what is wrong with rows."""
        stops = self._terms.retyped is Retyped.STOP
        found = {at: _unreadable(self._odd[at][0]) for at in odd}
        for row, (problem, breach) in read.wrong.items():
            found[int(numbers[row])] = _unreadable(problem, breach if stops else None)
        if self._opened_at in numbers:
            found[self._opened_at] = _unreadable("its quotes do not pair")
        if fitting.wrong is not None:
            found |= {int(at): fitting.wrong for at in (*numbers, *odd)}
        return found

    def _lines(self, problems: dict[int, Line], texts: pa.RecordBatch, numbers: Longs) -> dict[int, list[Line]]:
        raws = self._raws({at for at in problems if at not in self._odd}, texts, numbers)
        raws |= {at: self._odd[at][1] for at in problems if at in self._odd}
        return {at: [replace(line, raw=raws[at]).at(at, f"{self._where}, row {at}")] for at, line in problems.items()}

    def _raws(self, wanted: set[int], texts: pa.RecordBatch, numbers: Longs) -> dict[int, bytes]:
        """Give the bytes of rows, by number."""
        if not wanted:
            return {}
        if self._file.stat().st_size > EXACT_BYTES:
            rows = {int(at): row for row, at in enumerate(numbers)}
            return {at: self._respelt(texts, rows[at]) for at in wanted}
        found: dict[int, bytes] = {}

        def keep(row: pcsv.InvalidRow) -> str:
            if row.number - HEADER in wanted:
                found[row.number - HEADER] = row.text.encode(BYTEWISE)
            return "skip"

        # With a column more than there are, Arrow gives the text of every row as one that is odd.
        deque(self._open([*self._names, ""], keep), maxlen=0)
        return found

    def _respelt(self, texts: pa.RecordBatch, row: int) -> bytes:
        told = io.StringIO()
        values = [column[row].as_py() for column in texts.columns]
        null = next(iter(self._spec.nulls), "")
        writer = csv.writer(told, delimiter=self._spec.delimiter, lineterminator="")
        writer.writerow([null if value is None else value for value in values])
        return told.getvalue().encode(BYTEWISE)


class _Read:
    """Columns of text, read as their types."""

    def __init__(
        self, texts: pa.RecordBatch, names: Sequence[str], schema: pa.Schema, timezone: str | None, zones: set[str]
    ) -> None:
        self._texts, self._names = texts, list(names)
        self.wrong: dict[int, tuple[str, Breach | None]] = {}
        """By row, from 0: what is wrong with it."""
        unread: dict[int, dict[str, str]] = {}
        self.columns: list[pa.Array] = []
        """Those of the feed, and UNREADABLE."""
        for field in schema:
            if field.name not in self._names:
                self.columns.append(pa.nulls(texts.num_rows, field.type))
            elif pa.types.is_binary(field.type):
                self.columns.append(_bytes(self._column(field.name)))
            elif field.type == TIME:
                text = self.text(field.name)
                self.columns.append(zoned_times(text, field.name, timezone, zones))
                remember_unread(unread, field.name, text, self.columns[-1])
            else:
                self.columns.append(self._values(field))
        self.columns.append(told_texts(unread, texts.num_rows))

    def text(self, name: str) -> pa.Array:
        """Give a column as text; what is no UTF-8 becomes null, and its row wrong."""
        column = self._column(name)
        if pc.all(pc.string_is_ascii(column)).as_py() in {True, None}:
            return column
        found: list[str | None] = []
        for row, text in enumerate(column.to_pylist()):
            try:
                found.append(None if text is None else text.encode(BYTEWISE).decode())
            except UnicodeDecodeError:
                found.append(None)
                self.wrong[row] = (f"`{name}` is no UTF-8", None)
        return pa.array(found, pa.string())

    def _column(self, name: str) -> pa.Array:
        return self._texts.column(self._names.index(name))

    def _values(self, field: pa.Field) -> pa.Array:
        text = self.text(field.name)
        values = read_values(text, field.type)
        if values.null_count != text.null_count:
            for row in np.flatnonzero(np.asarray(pc.and_(values.is_null(), text.is_valid()))).tolist():
                came = json.dumps(text[row].as_py(), ensure_ascii=False)
                breach = Breach("retyped", field.name, spelled_type(field.type), f"it is {came}")
                self.wrong.setdefault(row, (f"`{field.name}` is {came}, no {field.type}", breach))
        return values


def with_last(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, bool]]:
    """Say of each of some batches whether it is the last."""
    before = next(batches, None)
    for batch in batches:
        if before is not None:
            yield before, False
        before = batch
    if before is not None:
        yield before, True


def _bytes(column: pa.Array) -> pa.Array:
    return pa.array([None if text is None else text.encode(BYTEWISE) for text in column.to_pylist()], pa.binary())


def _unreadable(problem: str, breach: Breach | None = None) -> Line:
    return Line(number=0, reason="unreadable_row", action=DROPPED, raw=b"", problem=problem, breach=breach)
