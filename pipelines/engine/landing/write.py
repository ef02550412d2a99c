"""The files of a sequence: rows by bucket, ledger lines, and the manifest that closes it; no file without rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.engine.columnar.columns import ticks
from pipelines.engine.columnar.content import ContentHash, content_hash
from pipelines.engine.files.hashed import HashedFile
from pipelines.engine.files.writing import open_writer
from pipelines.engine.landing.manifest import LEDGER, close_sequence, file_in, new_sequence
from pipelines.engine.landing.sequence import (
    NO_FILE,
    LandedFile,
    LandedSequence,
    LandedSource,
    RowGroup,
    spelled_schema,
)
from pipelines.engine.landing.stamp import LANDED_LEDGER, bucketed, landed_row_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pipelines.engine.landing.arrived import Arrived
    from pipelines.flows.model import Flow

Spans = tuple[tuple[int, int], ...]
GROUP_ROWS = 1_048_576


def write_sequence(  # noqa: PLR0913 - all that a sequence is
    landing: Path,
    number: int,
    flow: Flow,
    arrived: Mapping[str, Arrived],
    *,
    kind: str,
    start: int,
    end: int,
    version: int,
    final: int | None,
    blind: Mapping[str, Spans] | None = None,
) -> LandedSequence:
    """Write the files of a sequence and close it; where there are no rows and no lines, the manifest is all there is.

    Args:
        landing: the folder of the landing's sequences.
        number: of the sequence.
        flow: its keys and number of buckets.
        arrived: by source, what is in it.
        kind: `interval` or `reading`.
        start: in ticks.
        end: the closing reading, in ticks.
        version: of the same interval.
        final: arrival of the final punctuation; None where the stream goes on.
        blind: by source, the spans of ticks in which nobody listened.

    Raises:
        SequenceClosedError: it is closed already, or another closed it meanwhile.
    """
    spans = blind or {}
    with new_sequence(landing, number) as folder:
        sequence = LandedSequence(
            folder=folder,
            id=number,
            kind=kind,
            start=start,
            end=end,
            version=version,
            buckets=flow.buckets,
            sources={
                name: _write_source(folder, flow, name, each, spans.get(name, ())) for name, each in arrived.items()
            },
            ledger=_write_ledger(folder, ledger_of(arrived)),
            final=final,
        )
        return close_sequence(sequence)


def ledger_of(arrived: Mapping[str, Arrived]) -> pa.Table:
    """Give the ledger lines of all sources."""
    return pa.concat_tables([LANDED_LEDGER.empty_table(), *(each.ledger for each in arrived.values())])


def columns_of(schema: pa.Schema) -> tuple[tuple[str, str], ...]:
    """Name columns and types."""
    return tuple((field.name, str(field.type)) for field in schema)


def _write_source(folder: Path, flow: Flow, name: str, arrived: Arrived, blind: Spans) -> LandedSource:
    row_groups: tuple[RowGroup, ...] = ()
    known = vars(_nothing(arrived.content))
    if arrived.rows.num_rows:
        path = file_in(folder, name)
        with HashedFile(path) as file:
            row_groups = _write_rows(file, flow, name, arrived)
        known = vars(_known(path, file, arrived.rows.num_rows, arrived.content))
    elsewhere = 0 if arrived.referenced is None else arrived.referenced.rows
    return LandedSource(
        **known | {"rows": known["rows"] + elsewhere},
        row_groups=row_groups,
        feed=arrived.feed,
        declared=arrived.declared,
        columns=columns_of(arrived.schema),
        schema=spelled_schema(arrived.schema),
        blind_spans=blind,
        files=arrived.files,
        positions=arrived.positions,
        referenced=arrived.referenced,
        copied=arrived.copied,
        added=arrived.added,
        whole=whole_content(arrived),
        punctuations=arrived.punctuations,
        came=arrived.came,
    )


def whole_content(arrived: Arrived) -> ContentHash | None:
    """Hash rows with the columns that nobody declared; None where there are none of these."""
    if arrived.others is None or not arrived.rows.num_rows:
        return None
    return content_hash(_with_others(arrived))


def _write_rows(file: HashedFile, flow: Flow, name: str, arrived: Arrived) -> tuple[RowGroup, ...]:
    groups, landed = [], _with_others(arrived)
    with open_writer(file, _file_schema(arrived), store_schema=True) as writer:
        for bucket, rows in bucketed(landed, flow.sources[name].key, flow.buckets):
            for part in _parts(rows):
                writer.write_table(part, row_group_size=GROUP_ROWS)
                groups.append(_group(bucket, part))
    return tuple(groups)


def _file_schema(arrived: Arrived) -> pa.Schema:
    """Give the columns of a source's file: those that nobody declared stand behind the others."""
    others = () if arrived.others is None else arrived.others.schema
    return pa.schema([*landed_row_schema(arrived.schema), *others])


def _with_others(arrived: Arrived) -> pa.Table:
    if arrived.others is None:
        return arrived.rows
    return pa.Table.from_arrays([*arrived.rows.columns, *arrived.others.columns], schema=_file_schema(arrived))


def _parts(rows: pa.Table) -> Iterator[pa.Table]:
    for at in range(0, rows.num_rows, GROUP_ROWS):
        yield rows.slice(at, GROUP_ROWS)


def _group(bucket: int, rows: pa.Table) -> RowGroup:
    first, last = ticks(rows["arrival"][:1])[0], ticks(rows["arrival"][-1:])[0]
    return RowGroup(bucket=bucket, rows=rows.num_rows, first=int(first), last=int(last))


def _write_ledger(folder: Path, ledger: pa.Table) -> LandedFile:
    path, content = file_in(folder, LEDGER), content_hash(ledger)
    if not ledger.num_rows:
        return _nothing(content)
    with HashedFile(path) as file:
        pq.write_table(ledger, file, compression="zstd", write_page_checksum=True)
    return _known(path, file, ledger.num_rows, content)


def _nothing(content: ContentHash | None) -> LandedFile:
    """Say what stands for a file where there are no rows, and so no file."""
    return LandedFile(file=NO_FILE, rows=0, size=0, sha256="", content=content)


def _known(path: Path, file: HashedFile, rows: int, content: ContentHash | None) -> LandedFile:
    """Say how to know a file again."""
    return LandedFile(file=path.name, rows=rows, size=file.size, sha256=file.sha256, content=content)
