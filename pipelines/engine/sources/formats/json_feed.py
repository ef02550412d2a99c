"""Files of JSON lines as a recorded feed: the declared columns; a line that is anything else is told of that line."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pipelines.engine.columnar.columns import TIME, UNREADABLE
from pipelines.engine.columnar.text_times import read_times
from pipelines.engine.landing.errors import TimezoneMissingError
from pipelines.engine.landing.file_rows import with_unreadable
from pipelines.engine.landing.told_rows import alone, beside, in_file, new_name, note_new, told_column, told_line
from pipelines.engine.landing.types import declared_type
from pipelines.engine.landing.undeclared import JSON, NOTHING, texts_of
from pipelines.engine.sources.columns import spoilt
from pipelines.engine.sources.files import ListedFiles, bytes_of, called, find_files
from pipelines.engine.sources.formats.json_rows import read_json
from pipelines.engine.sources.recorded_feed import recorded
from pipelines.engine.sources.recording import recorded_terms
from pipelines.engine.sources.rows_feed import Feed
from pipelines.flows.feeds.json import JsonSpec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pipelines.engine.landing.file_rows import ColumnTerms, FileRows, Line
    from pipelines.engine.landing.source_feed import SourceFeed
    from pipelines.engine.sources.opening import Opening
    from pipelines.flows.model import Source


class JsonFeed(Feed):
    """JSON lines; their columns are those declared."""

    named = True

    def __init__(self, files: Sequence[Path], spec: JsonSpec, terms: ColumnTerms, base: Path) -> None:
        """Read nothing yet."""
        self._files, self._spec, self._terms, self._base = list(files), spec, terms, base
        self._listed = ListedFiles(files, base)
        self.schema = pa.schema([(name, declared_type(spelled)) for name, spelled in spec.types.items()])
        self._held: tuple[str, list[pa.RecordBatch]] | None = None

    def fingerprint(self) -> str:
        """Give digits that change with the files or with how they are read."""
        spec = self._spec
        return self._listed.fingerprint([list(spec.types.items()), spec.timezone, spec.missing, spec.retyped])

    def size(self) -> int:
        """Give the bytes of the files."""
        return bytes_of(self._files)

    def read(self, where: pa.compute.Expression | None = None) -> Iterator[pa.RecordBatch]:
        """Give the rows that `where` allows, file by file, line by line, with what is told of them beside.

        The files are read once and kept, as long as they stand still.

        Raises:
            TimezoneMissingError: the first time has no zone, and the feed names none.
        """
        seen = self.fingerprint()
        if self._held is None or self._held[0] != seen:
            self._held = seen, list(self._parsed())
        for batch in self._held[1]:
            yield batch if where is None else batch.filter(where)

    def _parsed(self) -> Iterator[pa.RecordBatch]:
        zoned: set[str] = set()
        for file in self._files:
            where = called(file, self._base)
            yield from (in_file(batch, where) for batch in self._file(file, where, zoned))

    def _file(self, file: Path, where: str, zoned: set[str]) -> Iterator[pa.RecordBatch]:
        data = file.read_bytes()
        try:
            text = gzip.decompress(data) if file.suffix == ".gz" else data
        except (OSError, EOFError, zlib.error):
            yield alone(with_unreadable(self.schema), spoilt(where, data, "it is no gzip, or not all of one"))
            return
        if not text.strip():
            yield alone(with_unreadable(self.schema), spoilt(where, text, "it is empty"))
            return
        came = read_json(text, self.schema, self._spec.timezone, self._terms)
        if self._spec.timezone is None:
            self._check_zones(file, came.rows, zoned)
        if came.lines or came.undeclared:
            yield self._with_lines(where, came)
        else:
            yield from came.rows.combine_chunks().to_batches()

    def _with_lines(self, where: str, came: FileRows) -> pa.RecordBatch:
        """Lay out all rows of a file; those that are lines have nothing but the times by which they are placed."""
        lost = sorted({line.number for line in came.lines} - set(came.numbers.tolist()))
        every = np.sort(np.concatenate([came.numbers, np.array(lost, dtype=np.int64)]))
        order = np.argsort(np.concatenate([came.numbers, lost]), kind="stable")
        raws = {line.number: line.raw for line in came.lines}
        rows = pa.concat_tables([came.rows, _times_of([raws[at] for at in lost], self.schema, self._spec.timezone)])
        told: dict[int, list[Line]] = {}
        for line in came.lines:
            place = int(np.searchsorted(every, line.number))
            told.setdefault(place, []).append(told_line(f"{where}, row {line.number}", line))
        new = {name: column for name, column in came.undeclared.items() if column.kind != NOTHING}
        if new:
            told[0] = [*note_new(where, {name: column.kind for name, column in new.items()}), *told.get(0, [])]
        laid = rows.take(pa.array(order)).combine_chunks()
        arrays = [column.combine_chunks() for column in laid.columns]
        arrays.append(told_column(told, len(every)))
        names = [*beside(with_unreadable(self.schema)).names]
        for name, column in new.items():
            texts = pa.concat_arrays([texts_of(column, as_json=True), pa.nulls(len(lost), pa.string())])
            arrays.append(texts.take(pa.array(order)))
            names.append(new_name(JSON, name))
        return pa.RecordBatch.from_arrays(arrays, names=names)

    def _check_zones(self, file: Path, rows: pa.Table, zoned: set[str]) -> None:
        zoned |= {field.name for field in self.schema if field.type == TIME and rows[field.name].null_count < len(rows)}
        for told in rows[UNREADABLE].drop_null().to_pylist():
            for column, text in json.loads(told).items():
                example = read_times(pa.array([text]), None)[1]
                if example is not None and column not in zoned:
                    raise TimezoneMissingError(str(file), column, example)


def _times_of(lines: Sequence[bytes], schema: pa.Schema, timezone: str | None) -> pa.Table:
    """Give, of lines that do not land, the times that can be read, and null for all else."""
    objects = [_object(line) for line in lines]
    columns = []
    for field in schema:
        if field.type == TIME:
            texts = [text if isinstance(text := came.get(field.name), str) else None for came in objects]
            columns.append(read_times(pa.array(texts, pa.string()), timezone)[0])
        else:
            columns.append(pa.nulls(len(lines), field.type))
    return pa.Table.from_arrays([*columns, pa.nulls(len(lines), pa.string())], schema=with_unreadable(schema))


def _object(line: bytes) -> dict[str, object]:
    try:
        came = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return came if isinstance(came, dict) else {}


def open_source(source: Source, opening: Opening) -> SourceFeed:
    """Open files that a flow names."""
    spec = JsonSpec.of(source.feed)
    files = find_files(spec.paths, opening.base, spec.kind)
    return recorded(source, JsonFeed(files, spec, recorded_terms(source), opening.base))
