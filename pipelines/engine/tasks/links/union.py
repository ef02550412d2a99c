"""The link of a union."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.engine.tasks.links.meeting import MeetingLink
from pipelines.engine.tasks.payload import PayloadError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from pipelines.flows.model import Stream

SPOKEN = 3
"""How many columns are named of those that differ."""


class UnionLink(MeetingLink):
    """Rows of all sides, which have the same columns."""

    @staticmethod
    def made(stream: Stream, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """Give its payload columns; see `Link.made`."""
        first = inputs[0]
        for name, other in zip(stream.inputs[1:], inputs[1:], strict=True):
            missing = [field for field in first if field not in list(other)] + [
                f for f in other if f not in list(first)
            ]
            if missing:
                columns = [f"`{column}`" for column in dict.fromkeys(field.name for field in missing)]
                differ = ", ".join(columns[:SPOKEN]) + (
                    f" and {len(columns) - SPOKEN} more" if columns[SPOKEN:] else ""
                )
                problem = (
                    f"the sides of a union must have the same columns and types; `{stream.inputs[0]}` and `{name}` "
                )
                raise PayloadError(stream.name, problem + f"differ in {differ}", "project one of them first")
        return first
