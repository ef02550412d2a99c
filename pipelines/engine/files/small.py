"""Small Parquet files, read whole one after another: threads and buffers cost more than the few rows in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.engine.files.checksums import as_written, summed_name
from pipelines.engine.files.parquet import size_of
from pipelines.engine.files.stored import each_at_once, is_stored

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SMALL = 1_000_000
"""Bytes of all files together up to which they are small."""


def are_small(files: Sequence[str]) -> bool:
    """Say whether files are small together.

    Args:
        files: their paths.

    Raises:
        FileNotFoundError: one is not there.
    """
    return sum(each_at_once(size_of, files, stored=bool(files) and is_stored(files[0]))) <= SMALL


def read_whole(files: Sequence[str], schema: pa.Schema | None = None) -> pa.Table:
    """Read all rows of files, with the columns of all; a row has nulls where its file lacks one.

    Args:
        files: their paths; at least one unless there is a schema.
        schema: columns that the result has in any case, before all others.

    Raises:
        FileNotFoundError: one is not there.
        pyarrow.ArrowInvalid: the name of one says another sum of its bytes.
    """
    tables = [] if schema is None else [schema.empty_table()]
    tables += each_at_once(_read, files, stored=bool(files) and is_stored(files[0]))
    return pa.concat_tables(tables, promote_options="default")


def _read(file: str) -> pa.Table:
    return pq.ParquetFile(as_written(file), pre_buffer=False, page_checksum_verification=True).read(use_threads=False)


def write_summed(rows: pa.Table, folder: Path, stem: str, **how: Any) -> tuple[Path, int]:  # noqa: ANN401 - as below
    """Write rows into a file whose name says the sum of its bytes: pages have one, footers and headers of pages none.

    Args:
        rows: of the file.
        folder: where it comes.
        stem: how its name begins.
        how: as `pyarrow.parquet.write_table` has it.

    Returns:
        Its path, and its size in bytes; it is not synced.
    """
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, write_page_checksum=True, **how)
    content = sink.getvalue().to_pybytes()
    file = folder / summed_name(stem, content)
    file.write_bytes(content)
    return file, len(content)
