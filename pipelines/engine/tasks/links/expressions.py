"""What the links of operators share that ask expressions of their events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.tasks.link import Link
from pipelines.engine.tasks.payload import PayloadError, readable

if TYPE_CHECKING:
    from pipelines.flows.model import Stream


class ExpressionLink(Link):
    """An operator that asks expressions of its events; timers and CTIs are none."""

    def _said(self, told: str, table: pa.Table) -> pa.Array | pa.ChunkedArray:
        """Give what an expression gives for rows."""
        from pipelines.engine.tasks.expressions import evaluate
        from pipelines.flows.expressions import parse_expression

        payload = pa.schema([table.schema.field(name) for name in self._payload])
        return evaluate(parse_expression(told), table.select(readable(payload).names))

    def _are_events(self, table: pa.Table) -> pa.ChunkedArray:
        return pc.invert(pc.is_in(table["kind"], pa.array(["timer", "cti"])))


def result_type_of(stream: Stream, told: str, payload: pa.Schema) -> pa.DataType:
    """Give the type of what an expression of a stream gives.

    Raises:
        PayloadError: a column is missing, or of a type that the expression cannot take.
    """
    from pipelines.engine.tasks.expressions import ExpressionTypeError, result_type
    from pipelines.flows.expressions import parse_expression

    try:
        return result_type(parse_expression(told), readable(payload))
    except ExpressionTypeError as error:
        near = f"; did you mean `{error.nearest}`?" if error.nearest else ""
        raise PayloadError(stream.name, f"`{told}` has {error.came}", f"expected {error.expected}{near}") from error
