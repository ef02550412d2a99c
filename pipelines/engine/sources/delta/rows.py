"""The rows of a file of a Delta table: removed ones are left out, columns it lacks are null or the log's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs

from pipelines.engine.columnar.columns import TIME
from pipelines.engine.landing.errors import FeedUnreadableError
from pipelines.engine.sources.delta.log import partition_value
from pipelines.engine.sources.footers import footer_of
from pipelines.engine.sources.rows_feed import BATCH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipelines.engine.sources.delta.log import DataFile, TableShape

PARQUET = ds.ParquetFileFormat(read_options=ds.ParquetReadOptions(coerce_int96_timestamp_unit="us"))
"""Spark writes times of 96 bits, which in nanoseconds would end in 2262."""


def rows_of(
    file: DataFile,
    shape: TableShape,
    columns: pa.Schema,
    committed: tuple[str, int] | None,
    where: pc.Expression | None = None,
) -> Iterator[pa.RecordBatch]:
    """Give the rows of a file, as they stand in it; those that `where` refuses may be left out, or not.

    Args:
        file: of a version.
        shape: of that version or a later one.
        columns: that are wanted.
        committed: name of a column that says when they were committed, and that instant, in ticks.
        where: on these columns.

    Raises:
        FileNotFoundError: it is gone.
        FeedUnreadableError: it cannot be read.
    """
    try:
        footer_of(file.path)
        fragment = PARQUET.make_fragment(
            str(file.path), pyarrow.fs.LocalFileSystem(), partition_expression=_constants(file, shape, committed)
        )
        at = 0
        masked = file.keep is not None
        for batch in fragment.to_batches(schema=columns, filter=None if masked else where, batch_size=BATCH):
            kept = batch.filter(_mask(file.keep, at, batch.num_rows)) if masked else batch
            at += batch.num_rows
            yield kept
    except FileNotFoundError:
        raise
    except (pa.ArrowException, UnicodeError, OSError) as error:
        declared = "Parquet with the table's columns"
        raise FeedUnreadableError(str(file.path), declared, "it cannot be read as such") from error


def _constants(file: DataFile, shape: TableShape, committed: tuple[str, int] | None) -> pc.Expression:
    """Give what is the same in all rows of a file, as Arrow fills columns with."""
    found = ds.scalar(True)  # noqa: FBT003 - an expression
    values = {
        name: partition_value(file.partition.get(name), shape.schema.field(name).type) for name in shape.partitions
    }
    if committed is not None:
        values[committed[0]] = pa.scalar(committed[1], pa.int64()).cast(TIME)
    for name, value in values.items():
        found = found & (ds.field(name) == value if value.is_valid else ds.field(name).is_null())
    return found


def _mask(keep: pa.Array, at: int, rows: int) -> pa.Array:
    """Give which of some rows are kept; a mask ends with the last row that is not."""
    said = keep[at : at + rows]
    return pa.concat_arrays([said, pa.repeat(pa.scalar(True), rows - len(said))])  # noqa: FBT003 - a value
