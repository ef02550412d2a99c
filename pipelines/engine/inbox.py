"""A source under the real clock, as landing sees it: the files that arrived in its folder, stamped with a reading."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pipelines.engine.arrived import Arrived, declared
from pipelines.engine.columns import canonical_json, times
from pipelines.engine.content import content_hash
from pipelines.engine.csv_feed import UNREADABLE
from pipelines.engine.folder_feed import FolderFeed
from pipelines.engine.recording import landed_schema
from pipelines.engine.stamping import LANDED_LEDGER, OPERATOR, stamp_arrivals

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pipelines.engine.file_rows import Line
    from pipelines.engine.known_files import KnownFiles
    from pipelines.flows.model import Flow, Source


class Inbox:
    """The folder of one source.

    Args:
        source: what the flow says of it.
        base: the folder that its path begins in: the flow file's own.
        payload: with which it landed before, where it did: a folder without declared types keeps its columns.

    Raises:
        LandingError: the folder is missing, or its columns are not what the source says of them.
    """

    def __init__(self, source: Source, base: Path, payload: pa.Schema | None = None) -> None:
        """Check the folder's columns against what the source says of them; read no row."""
        self.source = source
        self._feed = FolderFeed(source.feed, base, None if payload is None else _by_feed_names(source, payload))
        self.schema = landed_schema(source, self._feed.schema)
        """The payload as it lands."""

    def arrive(
        self, end: int, known: KnownFiles, limit_rows: int | None = None, limit_files: int | None = None
    ) -> Arrived:
        """Look at the folder and give what lands in the sequence that closes at `end`.

        All of it arrives one tick before that; places are by file name and row. A line of the ledger that stands for a
        row or a file that could not be read takes a place like a row.

        Args:
            end: the closing reading, in ticks.
            known: the files that earlier sequences dealt with.
            limit_rows: no further file is read once this many rows are.
            limit_files: no more files than this are read.

        Raises:
            LandingError: the folder is gone.
        """
        came = self._feed.arrivals(known, limit_rows, limit_files)
        rows = came.rows.rename_columns([*self.schema.names, UNREADABLE])
        stamped = stamp_arrivals(self.source, rows, came.places, end - 1, _told(self.source, came.lines, end - 1))
        return Arrived(
            schema=self.schema,
            rows=stamped.rows,
            ledger=stamped.ledger,
            content=content_hash(stamped.rows),
            feed="",
            declared=declared(self.source),
            files=came.files,
            left=came.left,
            unsettled=came.unsettled,
        )


def open_inboxes(flow: Flow, base: Path, payloads: Mapping[str, pa.Schema]) -> dict[str, Inbox]:
    """Open the folders of all sources of a flow under the real clock, by source.

    Args:
        flow: validated.
        base: the folder that relative paths begin in: the flow file's own.
        payloads: with which sources landed before.

    Raises:
        LandingError: a folder is missing, or does not have what its source says of it.
    """
    return {name: Inbox(source, base, payloads.get(name)) for name, source in flow.sources.items()}


def _by_feed_names(source: Source, payload: pa.Schema) -> pa.Schema:
    back = {to: came for came, to in source.rename.items()}
    return pa.schema([field.with_name(back.get(field.name, field.name)) for field in payload])


def _told(source: Source, lines: tuple[Line, ...], instant: int) -> pa.Table:
    """Write the ledger's lines of what has no payload: what it was stands in `row`, its bytes in `raw`."""
    count = len(lines)
    instants = times(np.full(count, instant, dtype=np.int64))
    known: dict[str, object] = {
        "stream": [source.name] * count,
        "operator": [OPERATOR] * count,
        "reason": [line.reason for line in lines],
        "action": [line.action for line in lines],
        "source": [source.name] * count,
        "landed_at": instants,
        "landed_place": [line.number for line in lines],
        "arrival": instants,
        "place": [line.number for line in lines],
        "row": [canonical_json({"problem": line.problem}) for line in lines],
        "raw": [line.raw for line in lines],
    }
    columns = [
        pa.array(known[field.name], field.type) if field.name in known else pa.nulls(count, field.type)
        for field in LANDED_LEDGER
    ]
    return pa.Table.from_arrays(columns, schema=LANDED_LEDGER)
