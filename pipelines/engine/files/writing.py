"""The files that one task writes: a Parquet file a table, its row groups laid out for whoever reads them next."""

from __future__ import annotations

import secrets
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import IO, TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.engine.columnar.columns import NOT_HASHED
from pipelines.engine.columnar.content import ContentHash, content_hash
from pipelines.engine.columnar.keys import bucket_of, canonical_keys
from pipelines.engine.files.background import Turns
from pipelines.engine.files.checksums import SummedFile
from pipelines.engine.files.folders import CARRY, UNNAMED
from pipelines.engine.files.stored import is_stored

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pipelines.engine.files.hashed import HashedFile

COMPRESSION = "zstd"
COMPRESSION_LEVEL = 1
CONSTANT = frozenset({"commit"})
"""Columns of whole numbers that are alike in all rows of a file."""
NO_ROWS = ContentHash(0, 0, 0)
FEW = 8_192
"""Rows from which on a row group is worth its while at a cut."""
MANY = 65_536
"""Rows from which on a row group, and a thread, is worth its while."""


class QuietWriter(pq.ParquetWriter):  # type: ignore[misc] # Arrow's Python part has no types
    """A writer that says nothing more when it goes: what a full disk refused was raised where it was written."""

    def __del__(self) -> None:
        """Close what nobody closed."""
        with suppress(OSError):
            super().__del__()


def open_writer(
    path: Path | IO[bytes] | HashedFile | SummedFile, schema: pa.Schema, *, store_schema: bool, statistics: bool = True
) -> pq.ParquetWriter:
    """Open a Parquet file for rows in order: whole numbers and times as differences, the rest compressed.

    Differences of neighbours are small where rows are in order, and packing them costs less than a compressor does.

    Args:
        path: of the file, or the file, which stays open.
        schema: of its rows.
        store_schema: keep what only Arrow knows of the types, for whoever must get them back exactly.
        statistics: say of each row group between what its values lie; of many small ones that is half of a file.
    """
    paths = Counter(path for field in schema for path in _leaves(field.name, field.type))
    # A column may be called what a part of a struct is: to Parquet they are one path, so neither is packed.
    alone = {path for path, times in paths.items() if times == 1} - CONSTANT
    stepping = [field.name for field in schema if field.name in alone and _is_stepping(field.type)]
    others = [path for path in paths if path not in stepping]
    alike = [field.name for field in schema if field.name in CONSTANT or pa.types.is_string(field.type)]
    return QuietWriter(
        path,
        schema,
        compression=dict.fromkeys(stepping, "none") | dict.fromkeys(others, COMPRESSION),
        compression_level=dict.fromkeys(others, COMPRESSION_LEVEL),
        use_dictionary=alike,
        column_encoding=dict.fromkeys(stepping, "DELTA_BINARY_PACKED"),
        store_schema=store_schema,
        write_statistics=statistics,
        # A bit that changes between the look at a file's hash and its reading is found where it is read.
        write_page_checksum=True,
    )


def _leaves(path: str, kind: pa.DataType) -> Iterator[str]:
    """Name the columns that Parquet makes of one field."""
    if pa.types.is_struct(kind):
        for field in kind:
            yield from _leaves(f"{path}.{field.name}", field.type)
    elif pa.types.is_list(kind):
        yield from _leaves(f"{path}.list.element", kind.value_type)
    else:
        yield path


def _is_stepping(kind: pa.DataType) -> bool:
    is_signed = pa.types.is_signed_integer(kind) and kind.bit_width >= 32  # noqa: PLR2004 - as Parquet stores it
    return bool(is_signed or pa.types.is_timestamp(kind) or pa.types.is_date32(kind))


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How the next reader wants the row groups: by the bucket of these key columns, of so many."""

    key: tuple[str, ...] = ()
    buckets: int = 1


@dataclass(frozen=True, kw_only=True)
class Written:
    """One file as the driver needs to know it; small, because it comes back from a worker."""

    table: str
    """Folder of the table, relative to the root: `streams/beating`."""
    name: str
    """Path below the table's folder."""
    rows: int
    size: int
    groups: tuple[int, ...]
    """Bucket of each row group, for the layout that was asked for."""
    hash: str
    """Text of the content hash of its rows; empty where none was taken."""


@dataclass
class TableFile:
    """One file of one table, made when the first row comes; content is hashed on the way.

    The rows of a carry are held against no hash: the name of its file tells the sum of its bytes.

    Args:
        root: of the run.
        table: folder of the table, relative to the root.
        stem: file name up to its random part.
        layout: of the row groups.
        leave_out: columns outside the content hash; None: the content is not hashed.
    """

    root: Path
    table: str
    stem: str
    layout: Layout = field(default_factory=Layout)
    leave_out: frozenset[str] | None = NOT_HASHED
    content: ContentHash = NO_ROWS
    rows: int = 0

    def __post_init__(self) -> None:
        self._is_carry = self.table.startswith(CARRY)
        self._name = "" if self._is_carry else f"{UNNAMED}/{self.stem}-{secrets.token_hex(4)}.parquet"
        self._writer: pq.ParquetWriter | None = None
        self._file: IO[bytes] | SummedFile | None = None
        self._groups: list[int] = []
        self._writing, self._hashing = Turns(), Turns()
        self._few: list[pa.Table] = []
        self._hashed = 0
        """Of those that wait, how many at the beginning are hashed already."""
        self._before_cut = NO_ROWS

    def write(self, rows: pa.Table) -> None:
        """Append rows in their order; few wait for others, many are written and hashed by threads of their own.

        Columns may be encoded as dictionaries, as `kind` is: what is written and hashed is the same.

        Raises:
            OSError: rows, or earlier ones, cannot be written.
        """
        if not rows.num_rows:
            return
        self.rows += rows.num_rows
        self._few.append(rows)
        if sum(each.num_rows for each in self._few) >= MANY:
            self._hashing.give(partial(self._hash, self._not_hashed()))
            self._writing.give(partial(self._append, self._together()))

    def cut(self) -> ContentHash:
        """Give the content hash of the rows since the last cut, or since ever; the file goes on.

        Raises:
            OSError: earlier rows cannot be written.
        """
        self._hashing.wait()
        if len(self._few) > self._hashed:
            self._hash(self._not_hashed())
        found, self._before_cut = self.content - self._before_cut, self.content
        if sum(each.num_rows for each in self._few) >= FEW:
            # Whoever reads what lies between two cuts of many reads little else.
            self._writing.wait()
            self._append(self._together())
        return found

    def _not_hashed(self) -> pa.Table:
        """Give, as one table, the rows that wait and are not hashed, which they will be now."""
        fresh = self._few[self._hashed :]
        together = fresh[0] if len(fresh) == 1 else pa.concat_tables(fresh).combine_chunks()
        self._few[self._hashed :] = [together]
        self._hashed = len(self._few)
        return together

    def _together(self) -> pa.Table:
        """Take the rows that wait; where they are many small tables, as one."""
        few, self._few, self._hashed = self._few, [], 0
        return few[0] if len(few) == 1 else pa.concat_tables(few).combine_chunks()

    def _append(self, rows: pa.Table) -> None:
        if self._writer is None:
            path = self.root / self.table / self._name
            (path if self._is_carry else path.parent).mkdir(parents=True, exist_ok=True)
            if self._is_carry:
                self._file = SummedFile(path, self.stem)
            elif is_stored(path):
                self._file = path.open("wb")
            self._writer = open_writer(self._file or path, rows.schema, store_schema=False)
        for bucket, part in _by_bucket(rows, self.layout):
            self._writer.write_table(part, row_group_size=part.num_rows)
            self._groups.append(bucket)

    def _hash(self, rows: pa.Table) -> None:
        if self.leave_out is not None:
            self.content += content_hash(rows, leave_out=self.leave_out)

    def close(self) -> Written | None:
        """Finish the file; None where no row came.

        Raises:
            OSError: rows cannot be written.
        """
        self._writing.finish()
        self._hashing.finish()
        if len(self._few) > self._hashed:
            self._hash(self._not_hashed())
        if self._few:
            self._append(self._together())
        if self._writer is None:
            return None
        self._writer.close()
        if isinstance(self._file, SummedFile):
            self._name, size = self._file.finish(), self._file.size
        elif self._file is None:
            size = (self.root / self.table / self._name).stat().st_size
        else:
            size = self._file.tell()
            self._file.close()
        told = "" if self.leave_out is None else self.content.text
        groups = tuple(self._groups)
        return Written(table=self.table, name=self._name, rows=self.rows, size=size, groups=groups, hash=told)


def _by_bucket(rows: pa.Table, layout: Layout) -> Iterator[tuple[int, pa.Table]]:
    if layout.buckets == 1 or not layout.key:
        yield 0, rows
        return
    for bucket, places in enumerate(bucket_rows(rows, layout.key, layout.buckets)):
        if len(places):
            yield bucket, rows.take(pa.array(places))


def bucket_rows(rows: pa.Table, key: Sequence[str], buckets: int) -> list[np.ndarray]:
    """Give the row numbers of each bucket, in order."""
    of = bucket_of(canonical_keys([rows[name].combine_chunks() for name in key]), buckets)
    return [np.flatnonzero(of == bucket) for bucket in range(buckets)]


def only_bucket(rows: pa.Table, key: Sequence[str], bucket: int, buckets: int) -> pa.Table:
    """Give the rows whose key lies in a bucket; all of them where there is one bucket or no key."""
    if buckets == 1 or not key or not rows.num_rows:
        return rows
    return rows.take(pa.array(bucket_rows(rows, key, buckets)[bucket]))
