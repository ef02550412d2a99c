"""Footers of a feed's Parquet files: each is seen to be whole before Arrow is asked what lies where.

Arrow throws where a footer is damaged, and not everywhere does it catch: whoever asks for a column's statistics, or
scans with a filter, then loses the whole process, or waits for ever. Where it opens the readers of columns, it catches.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.engine.columnar.columns import TIME
from pipelines.engine.landing.errors import FeedUnreadableError
from pipelines.operators.rows import MAX_TIME, MIN_TIME

if TYPE_CHECKING:
    from pathlib import Path

BUFFER = 4_096
"""Bytes that are read ahead of a column that nobody reads."""


class ColumnBounds(NamedTuple):
    """What the values of a column lie between in a row group."""

    nulls: int
    low: int = MIN_TIME
    """In ticks; readable where no value is a time, or there is none."""
    high: int = MAX_TIME

    @property
    def readable(self) -> bool:
        """Say whether all values are times that can be read."""
        return self.low >= MIN_TIME and self.high <= MAX_TIME


class Footer(NamedTuple):
    """A file as it is now, and what its footer says."""

    path: str
    size: int
    changed: int
    touched: int
    """Times of change of its rows and of anything about it, in nanoseconds."""
    said: pq.FileMetaData

    def bounds(self, group: int, field: pa.Field) -> ColumnBounds:
        """Give what the values of a column lie between in a row group: its statistics, where they are exact."""
        return _bounds(self.path, self.size, self.changed, self.touched, group, field)

    def column(self, group: int, name: str) -> pa.ChunkedArray:
        """Read a column of a row group."""
        with pq.ParquetFile(self.path) as file:
            return file.read_row_group(group, columns=[name], use_threads=False)[name]


def footer_of(path: Path) -> Footer:
    """Give a file as it is now; its footer is read and checked once a process and change.

    Raises:
        FeedUnreadableError: it does not describe the columns of its row groups.
        OSError: its storage fails.
    """
    seen = path.stat()
    return _footer(str(path.absolute()), seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)


@lru_cache(maxsize=1_024)
def _footer(path: str, size: int, changed: int, touched: int) -> Footer:
    try:
        return Footer(path, size, changed, touched, _checked(path))
    except (pa.ArrowException, UnicodeError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise FeedUnreadableError(path, "Parquet whose footer can be read", "this one cannot") from error


def _checked(path: str) -> pq.FileMetaData:
    """Read a footer, and open a reader of each column of each row group, which reads no page."""
    with pq.ParquetFile(path, buffer_size=BUFFER, pre_buffer=False) as file:
        said = file.metadata
        kinds = [said.schema.column(at).physical_type for at in range(said.num_columns)]
        for group in range(said.num_row_groups):
            # Batches of no rows, which the reader beneath allows: it opens the columns and ends.
            for _ in file.reader.iter_batches(0, [group], use_threads=False):
                pass
            columns = said.row_group(group)
            found = [columns.column(at).physical_type for at in range(said.num_columns)]
            if found != kinds:
                raise pa.ArrowInvalid(f"row group {group} has columns of {found}, and the file of {kinds}")
        return said


@lru_cache(maxsize=65_536)
def _bounds(path: str, size: int, changed: int, touched: int, group: int, field: pa.Field) -> ColumnBounds:  # noqa: PLR0913 - a column of a file as it is
    footer = _footer(path, size, changed, touched)
    return _exact(footer.said, group, field) or _read(footer.column(group, field.name))


def _exact(said: pq.FileMetaData, group: int, field: pa.Field) -> ColumnBounds | None:
    """Give what statistics say, None where they do not say it exactly."""
    places = [at for at in range(said.num_columns) if said.schema.column(at).path == field.name]
    if len(places) != 1:
        return None
    column = said.row_group(group).column(places[0])
    found = column.statistics
    if found is None or not found.has_null_count:
        return None
    if field.type != TIME or found.null_count == column.num_values:
        return ColumnBounds(found.null_count)
    in_ticks = json.loads(said.schema.column(places[0]).logical_type.to_json()).get("timeUnit") == "microseconds"
    return ColumnBounds(found.null_count, found.min_raw, found.max_raw) if in_ticks and found.has_min_max else None


def _read(column: pa.ChunkedArray) -> ColumnBounds:
    if column.type != TIME or column.null_count == len(column):
        return ColumnBounds(column.null_count)
    ends = pc.min_max(column.cast(pa.int64()))
    return ColumnBounds(column.null_count, ends["min"].as_py(), ends["max"].as_py())
