"""Parquet files by their paths, of this machine or of a store: what Arrow itself does only for the former."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from pipelines.engine.files.checksums import as_written, require_as_written
from pipelines.engine.files.stored import each_at_once, for_arrow, is_stored, path_of
from pipelines.errors import PulselineError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from pathlib import Path


def write_table(rows: pa.Table, path: Path, **how: Any) -> int:  # noqa: ANN401 - what Arrow's own takes
    """Write rows into a file; give its size in bytes.

    Args:
        rows: of the file.
        path: of the file; its folder is there.
        how: as `pyarrow.parquet.write_table` has it.
    """
    if not is_stored(path):
        pq.write_table(rows, path, write_page_checksum=True, **how)
        return path.stat().st_size
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, write_page_checksum=True, **how)
    return path.write_bytes(sink.getvalue().to_pybytes())


def dataset(files: Sequence[str | Path], schema: pa.Schema | None = None) -> ds.Dataset:
    """Open Parquet files as one dataset; those whose names tell the sum of their bytes are read to their end for that.

    Args:
        files: their paths, all of this machine or all of a store; at least one.
        schema: of their rows; that of the first one unless given.

    Raises:
        FileNotFoundError: one is not there.
        pyarrow.ArrowInvalid: the name of one says another sum of its bytes.
    """
    # Bits that a disk has changed are an error, not another value.
    kind = ds.ParquetFileFormat(
        default_fragment_scan_options=ds.ParquetFragmentScanOptions(page_checksum_verification=True)
    )
    if not is_stored(files[0]):
        for file in files:
            require_as_written(file)
        return ds.dataset([str(file) for file in files], schema=schema, format=kind)
    parts = [kind.make_fragment(found) for found in each_at_once(as_written, files, stored=True)]
    return ds.FileSystemDataset(parts, schema or parts[0].physical_schema, kind)


@dataclass(eq=False)
class FileDamagedError(PulselineError):
    """A Parquet file of a run is there and is not what was written."""

    file: str
    problem: str
    says = (
        "{file} must be as it was written, and cannot be read ({problem}): pulseline doctor FLOW --deep says what can "
        "be had again, and pulseline doctor FLOW --deep --repair has it; a published day is made anew by running it "
        "again"
    )


@contextmanager
def naming_the_damaged(files: Sequence[str | Path]) -> Iterator[None]:
    """Name the file that is the cause where some are read and one is damaged: Arrow mostly says only what it met.

    Raises:
        FileDamagedError: one of the files cannot be read by itself either.
    """
    try:
        yield
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        for file in files:
            problem = damage_of(file)
            if problem is not None:
                raise FileDamagedError(str(file), problem) from error
        raise


def read_rows(
    files: Sequence[str | Path],
    schema: pa.Schema | None = None,
    columns: Sequence[str] | None = None,
    where: ds.Expression | None = None,
) -> pa.Table:
    """Read rows of Parquet files.

    Args:
        files: their paths, all of this machine or all of a store; at least one.
        schema: of their rows; that of the first one unless given.
        columns: which; all unless given.
        where: which rows.

    Raises:
        FileNotFoundError: one is not there.
        FileDamagedError: one is not as it was written.
    """
    with naming_the_damaged(files):
        return dataset(files, schema).to_table(columns=columns, filter=where)


def count_by_footers(files: Sequence[str], column: str) -> tuple[Counter[Any], list[str]]:
    """Count rows by the value of a column without reading any, where footers say that all of a row group have the same.

    Args:
        files: their paths, all of this machine or all of a store.
        column: a plain one.

    Returns:
        Rows by value, and the files of which footers do not say it: none of their rows are counted.

    Raises:
        FileNotFoundError: one is not there.
        FileDamagedError: one is not as it was written.
    """
    counts: Counter[Any] = Counter()
    unsaid = []
    with naming_the_damaged(files):
        footers = each_at_once(_footer, files, stored=bool(files) and is_stored(files[0]))
        for file, footer in zip(files, footers, strict=True):
            found = _said(footer, column)
            if found is None:
                unsaid.append(file)
            else:
                counts.update(found)
    return counts, unsaid


def _footer(file: str) -> pq.FileMetaData:
    (whole,) = dataset([file]).get_fragments()
    return whole.metadata


def _said(footer: pq.FileMetaData, column: str) -> Counter[Any] | None:
    """Count the rows of a file by the value of a column; None where its footer does not say it."""
    at = {footer.schema.column(place).path: place for place in range(len(footer.schema))}.get(column)
    found: Counter[Any] = Counter()
    for group in range(footer.num_row_groups if at is not None else 0):
        part = footer.row_group(group)
        told = part.column(at).statistics
        if not part.num_rows:
            continue
        if not (told and told.has_min_max and told.min == told.max and told.has_null_count and not told.null_count):
            return None
        found[told.min] += part.num_rows
    return None if at is None else found


def damage_of(file: str | Path) -> str | None:
    """Say why a file that is there cannot be read; None where it can, or where it is the disk that fails.

    All of it is read: its pages have checksums, and some files' names tell the sum of all bytes.
    """
    try:
        _ = dataset([file]).to_table().column_names
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            return None
        # What it says comes behind the file's name, which is said already.
        return " ".join(str(error).split()).rpartition("': ")[2].rstrip(".")
    return None


def false_bounds(file: str | Path, rows: pa.Table) -> str | None:
    """Name a column of which a footer says narrower bounds than its rows have: by them readers leave row groups out.

    Args:
        file: its path.
        rows: all of it, in its order; columns that are left out are not looked at.

    Returns:
        The path of the first such column; None where there is none.
    """
    footer, begun = pq.read_metadata(for_arrow(file)), 0
    for place in range(footer.num_row_groups):
        said = footer.row_group(place)
        sink = pa.BufferOutputStream()
        # Whoever wrote them has reckoned them; who writes the same rows reckons the same.
        pq.write_table(rows.slice(begun, said.num_rows), sink, row_group_size=max(1, said.num_rows), compression="none")
        own = _bounds(pq.read_metadata(pa.BufferReader(sink.getvalue())))
        try:
            told = _bounds(footer, place)
        except UnicodeDecodeError:
            return "a column whose name nobody can read"
        for name in own:
            if name in told and not told[name].hold(own[name]):
                return name
        begun += said.num_rows
    return None


class _Bounds(NamedTuple):
    """Between what the values of a column lie, and how many are null."""

    least: Any
    largest: Any
    nulls: int | None

    def hold(self, own: _Bounds) -> bool:
        """Say whether all values lie within: another version of a library may round the bounds of long texts."""
        return bool(self.least <= own.least and own.largest <= self.largest) and self.nulls in {None, own.nulls}

    @classmethod
    def of(cls, said: pq.Statistics) -> _Bounds:
        """Take them from a footer."""
        if said.physical_type == "FIXED_LEN_BYTE_ARRAY":
            # A decimal.
            least, largest = (int.from_bytes(each, "big", signed=True) for each in (said.min_raw, said.max_raw))
            return cls(least, largest, said.null_count)
        return cls(said.min_raw, said.max_raw, said.null_count)


def _bounds(footer: pq.FileMetaData, place: int = 0, wanted: Collection[str] | None = None) -> dict[str, _Bounds]:
    """Give the bounds of each column of a row group, of which somebody wrote them.

    Args:
        footer: of a file.
        place: of the row group.
        wanted: columns that have been read, all unless given: at the others a damaged footer may end the process.
    """
    if place >= footer.num_row_groups:
        return {}
    group, paths = footer.row_group(place), [footer.schema.column(at).path for at in range(footer.num_columns)]
    columns = [group.column(at) for at, path in enumerate(paths) if wanted is None or path in wanted]
    said = ((each.path_in_schema, each.statistics) for each in columns)
    return {path: _Bounds.of(each) for path, each in said if each and each.has_min_max}


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
