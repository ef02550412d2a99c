"""Landing: the rows of an interval become a closed, immutable sequence of files, once for each content.

One caller at a time: whoever holds the run's lease. Nothing that was closed is ever overwritten; late data makes a new
version of its interval, as a new sequence.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.engine.columns import ticks
from pipelines.engine.content import ContentHash, content_hash
from pipelines.engine.landing_errors import FeedChangedError
from pipelines.engine.manifests import (
    LEDGER_FILE,
    check_files,
    close_sequence,
    file_digest,
    new_folder,
    sequences,
    sync_folder,
)
from pipelines.engine.sequence import LandedFile, LandedSource, RowGroup, Sequence
from pipelines.engine.stamping import LANDED_LEDGER, bucketed, landed_row_schema, stamp

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pipelines.engine.recording import Recording
    from pipelines.flows.model import Flow

VERSION = 1
"""Raise it when the same feed and flow would land as other rows."""
GROUP_ROWS = 1_048_576


class _Arrived(NamedTuple):
    recording: Recording
    rows: pa.Table
    ledger: pa.Table
    content: ContentHash
    feed: str
    declared: str


def land_interval(  # noqa: PLR0913 - where, what, and of what span
    landing: Path, flow: Flow, start: int, end: int, feeds: Mapping[str, Recording], final: int | None = None
) -> Sequence:
    """Land what arrived in [start, end), as a new sequence or the one that holds exactly this already.

    Where neither the feeds' files nor what the flow says of the sources changed since the interval's newest version,
    nothing is read. Where they did and the rows are the same, that version still stands.

    Args:
        landing: the folder of the landing's sequences; made when it is not there.
        flow: its sources and number of buckets.
        start: in ticks.
        end: the closing reading, in ticks; exclusive.
        feeds: what `open_recordings` gave, by source.
        final: arrival of the final punctuation, behind all rows of the interval; None where the feed goes on.

    Returns:
        The closed sequence.

    Raises:
        LandingError: a feed cannot be read or changed meanwhile, or the landing is broken.
    """
    before = sequences(landing)
    versions = [each for each in before if (each.kind, each.start, each.end) == ("interval", start, end)]
    newest = versions[-1] if versions and versions[-1].final == final else None
    if newest is not None and _untouched(newest, flow, feeds):
        return check_files(newest)
    arrived = {name: _arrive(feeds[name], start, end) for name in flow.sources}
    ledger = _ledger([each.ledger for each in arrived.values()])
    if newest is not None and _same(newest, flow, arrived, content_hash(ledger)):
        return check_files(newest)
    folder = new_folder(landing, len(before) + 1)
    sequence = Sequence(
        folder=folder,
        id=len(before) + 1,
        kind="interval",
        start=start,
        end=end,
        version=len(versions) + 1,
        buckets=flow.buckets,
        sources={name: _write_source(folder, flow, name, each) for name, each in arrived.items()},
        ledger=_write_ledger(folder, ledger),
        final=final,
    )
    close_sequence(sequence)
    return sequence


def landed_content(sequence: Sequence) -> dict[str, ContentHash]:
    """Give the content hash of each source of a sequence and, as `ledger`, of its ledger lines."""
    return {**{name: landed.content for name, landed in sequence.sources.items()}, "ledger": sequence.ledger.content}


def _declared(recording: Recording) -> str:
    """Digest what decides, beside the feed's rows, what lands: the source as the flow declares it, and this code."""
    source = recording.source
    said = [VERSION, source.key, source.shape.name, source.time, source.end, source.arrival, source.edge]
    told = json.dumps([*said, source.event_id, dict(source.rename), source.feed.timezone])
    return hashlib.sha256(told.encode()).hexdigest()


def _untouched(newest: Sequence, flow: Flow, feeds: Mapping[str, Recording]) -> bool:
    if newest.buckets != flow.buckets or set(newest.sources) != set(flow.sources):
        return False
    return all(
        (landed.feed, landed.declared) == (feeds[name].fingerprint(), _declared(feeds[name]))
        for name, landed in newest.sources.items()
    )


def _same(newest: Sequence, flow: Flow, arrived: Mapping[str, _Arrived], ledger: ContentHash) -> bool:
    stood = {name: (landed.content, landed.columns) for name, landed in newest.sources.items()}
    came = {name: (each.content, _columns(each.recording.schema)) for name, each in arrived.items()}
    return newest.buckets == flow.buckets and stood == came and newest.ledger.content == ledger


def _arrive(recording: Recording, start: int, end: int) -> _Arrived:
    feed = recording.fingerprint()
    stamped = stamp(recording.source, recording.between(start, end), recording.orphans(), start, end)
    if recording.fingerprint() != feed:
        raise FeedChangedError(recording.source.name)
    content = content_hash(stamped.rows)
    return _Arrived(recording, stamped.rows, stamped.ledger, content, feed, _declared(recording))


def _ledger(ledgers: list[pa.Table]) -> pa.Table:
    return pa.concat_tables([LANDED_LEDGER.empty_table(), *ledgers])


def _columns(schema: pa.Schema) -> tuple[tuple[str, str], ...]:
    return tuple((field.name, str(field.type)) for field in schema)


def _write_source(folder: Path, flow: Flow, name: str, arrived: _Arrived) -> LandedSource:
    path = folder / f"{name}.parquet"
    groups = []
    schema = landed_row_schema(arrived.recording.schema)
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for bucket, rows in bucketed(arrived.rows, flow.sources[name].key, flow.buckets):
            for part in _parts(rows):
                writer.write_table(part, row_group_size=GROUP_ROWS)
                groups.append(_group(bucket, part))
    return LandedSource(
        **vars(_known(path, arrived.rows.num_rows, arrived.content)),
        feed=arrived.feed,
        declared=arrived.declared,
        columns=_columns(arrived.recording.schema),
        row_groups=tuple(groups),
    )


def _parts(rows: pa.Table) -> Iterator[pa.Table]:
    for at in range(0, rows.num_rows, GROUP_ROWS):
        yield rows.slice(at, GROUP_ROWS)


def _group(bucket: int, rows: pa.Table) -> RowGroup:
    first, last = ticks(rows["arrival"][:1])[0], ticks(rows["arrival"][-1:])[0]
    return RowGroup(bucket=bucket, rows=rows.num_rows, first=int(first), last=int(last))


def _write_ledger(folder: Path, ledger: pa.Table) -> LandedFile:
    path = folder / LEDGER_FILE
    pq.write_table(ledger, path, compression="zstd")
    return _known(path, ledger.num_rows, content_hash(ledger))


def _known(path: Path, rows: int, content: ContentHash) -> LandedFile:
    """Have a file on disk, and give how to know it again."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
    sync_folder(path.parent)
    size = path.stat().st_size
    return LandedFile(file=path.name, rows=rows, size=size, sha256=file_digest(path), content=content)
