"""What of a source goes into one sequence: stamped rows and ledger, however they came in."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, NamedTuple

from pipelines.engine.content import ContentHash, content_hash
from pipelines.engine.landing_errors import FeedChangedError
from pipelines.engine.referring import refer
from pipelines.engine.stamping import LANDED_LEDGER, Stamped, landed_row_schema, stamp

if TYPE_CHECKING:
    import pyarrow as pa

    from pipelines.engine.known_files import FileLanded
    from pipelines.engine.positions import Position
    from pipelines.engine.recording import Recording
    from pipelines.engine.references import ReferencedRows
    from pipelines.flows.model import Source

VERSION = 1
"""Raise it when the same feed and flow would land as other rows."""


class Arrived(NamedTuple):
    """Rows of one source that belong to one span."""

    schema: pa.Schema
    """The payload."""
    rows: pa.Table
    """Stamps and payload, in the order (arrival, place)."""
    ledger: pa.Table
    content: ContentHash | None
    """Of the rows; None where they lie in files of the feed."""
    feed: str
    """Fingerprint of the feed that was read; empty for a folder, whose files are named instead."""
    declared: str
    files: tuple[FileLanded, ...] = ()
    """Of a folder: the files that were dealt with."""
    left: int = 0
    """Of a folder: how many files wait for a later reading because a limit was reached."""
    unsettled: tuple[str, ...] = ()
    """Of a folder: files that still change."""
    referenced: ReferencedRows | None = None
    """The rows, where they lie in files of the feed; `rows` has none then."""
    copied: str = ""
    """Why rows that were to be landed by reference are copied."""
    positions: tuple[Position, ...] = ()
    """Of a source that is read along: how far it was read."""
    blind: tuple[tuple[int, int], ...] = ()
    """Spans of ticks in which the source itself was not heard; they may reach beyond the reading."""
    added: tuple[tuple[str, str], ...] = ()
    """Name and kind of each column that rows brought and nobody declared (`undeclared`)."""
    others: pa.Table | None = None
    """Those of them that have values, for each of `rows`; no part of `content`."""
    punctuations: int = 0
    """How many window punctuations came."""


def arrive(recording: Recording, start: int, end: int, buckets: int = 0) -> Arrived:
    """Give what arrived in [start, end) by the feed's own account; where its files can stand for it, nothing is read.

    Args:
        recording: the feed.
        start: in ticks.
        end: in ticks, exclusive.
        buckets: of the landing; a feed's files can stand for one, and rows are copied for another number.

    Raises:
        FeedChangedError: the feed changed meanwhile.
    """
    feed = recording.fingerprint()
    arrived = _found(recording, start, end, buckets)
    if recording.fingerprint() != feed:
        raise FeedChangedError(recording.source.name)
    return arrived._replace(feed=feed)


def _found(recording: Recording, start: int, end: int, buckets: int) -> Arrived:
    referenced: ReferencedRows | str = ""
    if recording.files:
        referenced = refer(recording, start, end) if buckets == 1 else "rows are cut by their key, into several buckets"
    if isinstance(referenced, str):
        stamped = stamp(recording.source, recording.between(start, end), recording.orphans(), start, end)
        return _arrived(recording, stamped, content_hash(stamped.rows))._replace(copied=referenced)
    nothing = Stamped(landed_row_schema(recording.schema).empty_table(), LANDED_LEDGER.empty_table())
    if not referenced.files:
        return _arrived(recording, nothing, content_hash(nothing.rows))
    return _arrived(recording, nothing, None)._replace(referenced=referenced)


def _arrived(recording: Recording, stamped: Stamped, content: ContentHash | None) -> Arrived:
    found = Arrived(recording.schema, stamped.rows, stamped.ledger, content, "", declared(recording.source))
    return found._replace(punctuations=stamped.punctuations)


def declared(source: Source) -> str:
    """Digest what decides, beside the feed's rows, what lands: the source as the flow declares it, and this code."""
    said = [VERSION, source.key, source.shape.name, source.time, source.end, source.arrival, source.edge]
    told = json.dumps([*said, source.event_id, dict(source.rename), source.feed.timezone])
    return hashlib.sha256(told.encode()).hexdigest()
