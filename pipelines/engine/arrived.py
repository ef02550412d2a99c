"""What of a source goes into one sequence: stamped rows and ledger, however they came in."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, NamedTuple

from pipelines.engine.content import ContentHash, content_hash
from pipelines.engine.landing_errors import FeedChangedError
from pipelines.engine.stamping import stamp

if TYPE_CHECKING:
    import pyarrow as pa

    from pipelines.engine.known_files import FileLanded
    from pipelines.engine.recording import Recording
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
    content: ContentHash
    """Of the rows."""
    feed: str
    """Fingerprint of the feed that was read; empty for a folder, whose files are named instead."""
    declared: str
    files: tuple[FileLanded, ...] = ()
    """Of a folder: the files that were dealt with."""
    left: int = 0
    """Of a folder: how many files wait for a later reading because a limit was reached."""
    unsettled: tuple[str, ...] = ()
    """Of a folder: files that still change."""


def arrive(recording: Recording, start: int, end: int) -> Arrived:
    """Give what arrived in [start, end) by the feed's own account.

    Args:
        recording: the feed.
        start: in ticks.
        end: in ticks, exclusive.

    Raises:
        FeedChangedError: the feed changed meanwhile.
    """
    feed = recording.fingerprint()
    stamped = stamp(recording.source, recording.between(start, end), recording.orphans(), start, end)
    if recording.fingerprint() != feed:
        raise FeedChangedError(recording.source.name)
    return Arrived(
        recording.schema, stamped.rows, stamped.ledger, content_hash(stamped.rows), feed, declared(recording.source)
    )


def declared(source: Source) -> str:
    """Digest what decides, beside the feed's rows, what lands: the source as the flow declares it, and this code."""
    said = [VERSION, source.key, source.shape.name, source.time, source.end, source.arrival, source.edge]
    told = json.dumps([*said, source.event_id, dict(source.rename), source.feed.timezone])
    return hashlib.sha256(told.encode()).hexdigest()
