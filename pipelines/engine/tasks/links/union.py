"""The link of a union."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.engine.tasks.links.meeting import MeetingLink, same_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from pipelines.flows.model import Stream


class UnionLink(MeetingLink):
    """Rows of all sides, which have the same columns."""

    @staticmethod
    def made(stream: Stream, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """Give its payload columns; see `Link.made`."""
        return same_columns(stream, inputs)
