"""CSV files as a feed: declared types, and times that are read one by one where a file has some that are none."""

from __future__ import annotations

import csv
import gzip
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv as pcsv

from pipelines.engine.columns import TIME
from pipelines.engine.feed_files import files_fingerprint
from pipelines.engine.landed_types import declared_type
from pipelines.engine.landing_errors import FeedUnreadableError, TimezoneMissingError
from pipelines.engine.text_times import read_times, remember_unread, told_texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pipelines.flows.model import FeedSpec

UNREADABLE = "<unreadable>"
"""The column beside the feed's own that keeps, as JSON, what could not be read in a row."""
BLOCK_BYTES = 16 << 20
HELD_BYTES = 128 << 20
"""Files up to this size in all are parsed once and kept; larger ones are parsed again each time they are read."""


class CsvFeed:
    """CSV files with one header; columns without a declared type are strings."""

    def __init__(self, files: Sequence[Path], spec: FeedSpec) -> None:
        """Read the headers, and see that all are the first one's."""
        self._files, self._spec = list(files), spec
        names = _header(self._files[0], spec.delimiter)
        for file in self._files:
            _check_header(file, _header(file, spec.delimiter), names, spec)
        self.schema = pa.schema([(name, declared_type(spec.types.get(name, "string"))) for name in names])
        self._held: tuple[str, pa.Table] | None = None

    def fingerprint(self) -> str:
        """Give digits that change with the files or with how they are read."""
        spec = self._spec
        return files_fingerprint(self._files, [dict(spec.types), spec.delimiter, list(spec.nulls), spec.timezone])

    def read(self, where: pa.compute.Expression | None = None) -> Iterator[pa.RecordBatch]:
        """Give the rows that `where` allows, file by file, line by line, and the column UNREADABLE.

        Raises:
            FeedUnreadableError: a value that is no time is not of its declared type.
            TimezoneMissingError: a time has no zone, and the feed names none.
        """
        if sum(file.stat().st_size for file in self._files) > HELD_BYTES:
            for batch in self._parsed():
                yield from _those(pa.Table.from_batches([batch]), where)
            return
        yield from _those(self._table(), where)

    def _table(self) -> pa.Table:
        seen = self.fingerprint()
        if self._held is None or self._held[0] != seen:
            schema = self.schema.append(pa.field(UNREADABLE, pa.string()))
            self._held = seen, pa.Table.from_batches(self._parsed(), schema)
        return self._held[1]

    def _parsed(self) -> Iterator[pa.RecordBatch]:
        for file in self._files:
            try:
                for batch in self._open(file):
                    yield self._with_times(batch)
            except (pa.ArrowInvalid, UnicodeDecodeError) as error:
                raise FeedUnreadableError(str(file), "CSV of the declared types, in UTF-8", str(error)) from error

    def _open(self, file: Path) -> Iterator[pa.RecordBatch]:
        typed = {field.name: pa.string() if field.type == TIME else field.type for field in self.schema}
        yield from pcsv.open_csv(
            str(file),
            read_options=pcsv.ReadOptions(block_size=BLOCK_BYTES),
            parse_options=pcsv.ParseOptions(delimiter=self._spec.delimiter, newlines_in_values=True),
            convert_options=pcsv.ConvertOptions(
                column_types=typed,
                null_values=list(self._spec.nulls),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )

    def _with_times(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        lost: dict[int, dict[str, str]] = {}
        columns = list(batch.columns)
        for place, field in enumerate(self.schema):
            if field.type == TIME:
                columns[place] = self._times(batch.column(place), field.name)
                remember_unread(lost, field.name, batch.column(place), columns[place])
        raw = told_texts(lost, batch.num_rows)
        return pa.RecordBatch.from_arrays([*columns, raw], schema=self.schema.append(pa.field(UNREADABLE, pa.string())))

    def _times(self, texts: pa.Array, column: str) -> pa.Array:
        found, example = read_times(texts, self._spec.timezone)
        if example is not None:
            raise TimezoneMissingError(str(self._files[0]), column, example)
        return found


def _those(table: pa.Table, where: pa.compute.Expression | None) -> list[pa.RecordBatch]:
    batches: list[pa.RecordBatch] = (table if where is None else table.filter(where)).to_batches()
    return batches


def _header(file: Path, delimiter: str) -> list[str]:
    opener = gzip.open if file.suffix == ".gz" else open
    with opener(file, "rt", encoding="utf-8-sig", newline="") as lines:
        return next(csv.reader(lines, delimiter=delimiter), [])


def _check_header(file: Path, came: list[str], names: list[str], spec: FeedSpec) -> None:
    found = f"its header is {', '.join(came)}"
    if came != names:
        raise FeedUnreadableError(str(file), f"CSV with the header {', '.join(names)}", found)
    twice = [name for place, name in enumerate(came) if name in came[:place]]
    if twice or not came:
        problem = f"two columns are `{twice[0]}`" if twice else "it is empty"
        raise FeedUnreadableError(str(file), "CSV whose first line names each column once", problem)
    for name in spec.types:
        if name not in names:
            raise FeedUnreadableError(str(file), f"CSV with the declared column `{name}`", found)
