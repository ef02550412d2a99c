"""A source under the real clock, as landing sees it: the files that arrived in its folder, stamped with a reading."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pipelines.engine.folder_feed import FolderFeed
from pipelines.engine.live_feed import arrived_rows, terms_of
from pipelines.engine.recording import landed_schema

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.engine.arrived import Arrived
    from pipelines.engine.positions import Known
    from pipelines.flows.model import Source


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

    def arrive(self, end: int, known: Known, limit_rows: int | None = None, limit_files: int | None = None) -> Arrived:
        """Look at the folder and give what lands in the sequence that closes at `end`.

        All of it arrives one tick before that; places are by file name and row. A line of the ledger that stands for a
        row or a file that could not be read takes a place like a row.

        Args:
            end: the closing reading, in ticks.
            known: what earlier sequences dealt with.
            limit_rows: no further file is read once this many rows are.
            limit_files: no more files than this are read.

        Raises:
            LandingError: the folder is gone, or a file is not what the source stops at.
        """
        came = self._feed.arrivals(known.files, terms_of(self.source), limit_rows, limit_files)
        return arrived_rows(
            self.source,
            self.schema,
            came,
            end,
            files=came.files,
            left=came.left,
            unsettled=came.unsettled,
        )

    def listen(self, known: Known) -> None:
        """Do nothing: files wait in their folder."""

    def close(self) -> None:
        """Do nothing: nothing is open between two looks."""


def _by_feed_names(source: Source, payload: pa.Schema) -> pa.Schema:
    back = {to: came for came, to in source.rename.items()}
    return pa.schema([field.with_name(back.get(field.name, field.name)) for field in payload])
