"""A source under the real clock, as landing sees it: the files that arrived in its folder, stamped with a reading."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pipelines.engine.columnar.clock import wall_now
from pipelines.engine.landing.errors import FeedMissingError
from pipelines.engine.sources.folder.feed import FolderFeed
from pipelines.engine.sources.live import ComesOnce, Gathered, arrived_rows, landed_payload, terms_of
from pipelines.engine.sources.recording import landed_schema
from pipelines.flows.feeds.folder import FolderSpec
from pipelines.operators.rows import MIN_TIME

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pipelines.engine.landing.arrived import Arrived
    from pipelines.engine.landing.file_rows import Line
    from pipelines.engine.landing.progress import SourceProgress
    from pipelines.engine.landing.source_feed import Reading, SourceFeed
    from pipelines.engine.sources.opening import Opening
    from pipelines.flows.model import Source

LEFT = frozenset({"file_changed", "unreadable_file"})
"""Reasons of files whose rows stand in no stream and, one by one, in no ledger."""
TOLD = 3
"""How many of them a reading names."""
BACK = 2
"""How many readings are blind from when a folder is back: a file lands when two looks have seen it stand still."""


class Inbox(ComesOnce):
    """The folder of one source.

    While the folder is not there, readings go on without it, and are blind: so are the one in which it is back and the
    next, which lands what came meanwhile.

    Args:
        source: what the flow says of it.
        base: the folder that its path begins in: the flow file's own.
        payload: with which it landed before, where it did: a folder without declared types keeps its columns.
        tell: told a line when the folder goes, and when it is back.
        now: reads the wall clock, in ticks.

    Raises:
        LandingError: the folder is missing, or its columns are not what the source says of them.
    """

    def __init__(
        self,
        source: Source,
        base: Path,
        payload: pa.Schema | None = None,
        tell: Callable[[str], None] = lambda _: None,
        now: Callable[[], int] = wall_now,
    ) -> None:
        """Check the folder's columns against what the source says of them; read no row."""
        self.source, self._tell = source, tell
        self._deaf, self._heard = 0, MIN_TIME
        if payload is None and not (base / source.feed.paths[0]).is_dir():
            raise FeedMissingError(source.feed.paths[0], str(base))
        self._feed = FolderFeed(
            FolderSpec.of(source.feed), base, None if payload is None else _by_feed_names(source, payload), now
        )
        self.schema = landed_schema(source, self._feed.schema)
        """The payload as it lands."""

    def arrive(self, reading: Reading, known: SourceProgress) -> Arrived:
        """Look at the folder and give what lands in the sequence that closes at a reading.

        All of it arrives one tick before that, and was seen before that as it is; places are by file name and row. A
        line of the ledger that stands for a row or a file that could not be read takes a place like a row.

        Args:
            reading: the span; no further file is read once its limit of rows is reached.
            known: what earlier sequences dealt with.

        Raises:
            LandingError: a file has what the source stops at.
        """
        end = reading.end
        try:
            came = self._feed.arrivals(known.files, terms_of(self.source), reading.limit_rows, before=end)
        except FeedMissingError as gone:
            return self._nothing(end, gone)
        blind = ((self._heard, end),) if self._deaf else ()
        if self._deaf == BACK:
            self._tell(f"source {self.source.name}: {self.source.feed.paths[0]} is back")
        self._deaf = max(self._deaf - 1, 0)
        self._warn(came.lines)
        self._heard = end
        return arrived_rows(
            self.source,
            self.schema,
            came,
            end,
            files=came.files,
            blind=blind,
            left=came.left,
            unsettled=came.unsettled,
        )

    def _warn(self, lines: Sequence[Line]) -> None:
        """Tell of files that nobody takes: the ledger has a line for each, and their rows are nowhere."""
        left = [line.problem for line in lines if line.reason in LEFT]
        for problem in left[:TOLD]:
            self._tell(f"source {self.source.name}: {problem}; what is new in it is not taken, and the ledger says so")
        if len(left) > TOLD:
            self._tell(f"source {self.source.name}: and {len(left) - TOLD} files more: see the ledger")

    def look(self, known: SourceProgress) -> int:  # noqa: ARG002 - part of the protocol
        """See which files are there, and how they stand; see `SourceFeed.look`."""
        return self._feed.look()

    def _nothing(self, end: int, gone: FeedMissingError) -> Arrived:
        """Give a reading of which nobody knows what it would have brought."""
        if self._deaf < BACK:
            self._tell(f"source {self.source.name}: {gone}; its time is blind until it is back")
        self._deaf = BACK
        nothing = Gathered(self._feed.schema, terms_of(self.source))
        gone_now = (self.source.feed.paths[0],)
        return arrived_rows(self.source, self.schema, nothing, end, blind=((self._heard, end),), unsettled=gone_now)

    def listen(self, known: SourceProgress) -> None:
        """Do nothing: files wait in their folder."""

    def close(self) -> None:
        """Do nothing: nothing is open between two looks."""


def _by_feed_names(source: Source, payload: pa.Schema) -> pa.Schema:
    back = {to: came for came, to in source.rename.items()}
    return pa.schema([field.with_name(back.get(field.name, field.name)) for field in payload])


def open_source(source: Source, opening: Opening) -> SourceFeed:
    """Open a folder; one without declared columns keeps those with which it landed before."""
    landed = opening.payloads.get(source.name)
    declared = landed_payload(source) if landed is None and source.feed.types else landed
    return Inbox(source, opening.base, declared, opening.tell)
