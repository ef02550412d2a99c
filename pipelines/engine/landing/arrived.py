"""What of a source goes into one sequence: stamped rows and ledger, however they came in."""

from __future__ import annotations

import hashlib
import json
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

    from pipelines.engine.columnar.content import ContentHash
    from pipelines.engine.landing.progress import Position
    from pipelines.engine.landing.references import ReferencedRows
    from pipelines.engine.landing.seen_files import FileCame, FileLanded
    from pipelines.flows.model import Source

VERSION = 2
"""Raise it when the same feed and flow would land as other rows."""


class Standing(Enum):
    """Where a span stands in its run."""

    FIRST = "first"
    """Nothing lands before it."""
    LATER = "later"
    """Another may."""


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
    came: tuple[FileCame, ...] = ()
    """Of recorded files whose rows are copied: those that the rows came from."""


def is_declared(source: Source, told: str | None) -> bool:
    """Say whether rows landed as a source is declared, in the first span of their run or in a later one.

    Args:
        source: as the flow declares it.
        told: what the manifest keeps from `declared`.
    """
    return told in {declared(source, standing) for standing in Standing}


def declared(source: Source, standing: Standing = Standing.LATER) -> str:
    """Digest what decides, beside the feed's rows, what lands: the source as the flow declares it, and this code."""
    said = [VERSION, source.key, source.shape.name, source.time, source.end, source.arrival, source.edge]
    history = [] if source.history is None else [source.history, standing.value]
    told = json.dumps([*said, source.event_id, dict(source.rename), source.feed.timezone, *history])
    return hashlib.sha256(told.encode()).hexdigest()
