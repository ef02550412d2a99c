"""Parquet files by their paths, of this machine or of a store: what Arrow itself does only for the former."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from pipelines.engine.files.stored import each_at_once, for_arrow, is_stored, path_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path


def write_table(rows: pa.Table, path: Path, **how: Any) -> int:  # noqa: ANN401 - what Arrow's own takes
    """Write rows into a file; give its size in bytes.

    Args:
        rows: of the file.
        path: of the file; its folder is there.
        how: as `pyarrow.parquet.write_table` has it.
    """
    if not is_stored(path):
        pq.write_table(rows, path, **how)
        return path.stat().st_size
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, **how)
    return path.write_bytes(sink.getvalue().to_pybytes())


def dataset(files: Sequence[str | Path], schema: pa.Schema | None = None) -> ds.Dataset:
    """Open Parquet files as one dataset.

    Args:
        files: their paths, all of this machine or all of a store; at least one.
        schema: of their rows; that of the first one unless given.

    Raises:
        FileNotFoundError: one is not there.
    """
    if not is_stored(files[0]):
        return ds.dataset([str(file) for file in files], schema=schema, format="parquet")
    kind = ds.ParquetFileFormat()
    parts = [kind.make_fragment(found) for found in each_at_once(for_arrow, files, stored=True)]
    return ds.FileSystemDataset(parts, schema or parts[0].physical_schema, kind)


def size_of(file: str | Path) -> int:
    """Give the size of a file in bytes.

    Raises:
        FileNotFoundError: it is not there.
    """
    return path_of(file).stat().st_size


def rows_of_named(schema: pa.Schema, named: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read the files that a column `file` names, in a worker of Spark's: it has no package but those of tasks.

    Args:
        schema: of their rows.
        named: paths, all of this machine or all of a store.
    """
    for batch in named:
        for file in batch["file"].to_pylist():
            yield from dataset([file], schema).to_batches()
