"""Small Parquet files, read whole one after another: threads and buffers cost more than the few rows in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.engine.files.parquet import size_of
from pipelines.engine.files.stored import each_at_once, for_arrow, is_stored

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    """
    tables = [] if schema is None else [schema.empty_table()]
    tables += each_at_once(_read, files, stored=bool(files) and is_stored(files[0]))
    return pa.concat_tables(tables, promote_options="default")


def _read(file: str) -> pa.Table:
    whole = pq.ParquetFile(for_arrow(file), pre_buffer=False, page_checksum_verification=True)
    return whole.read(use_threads=False)
