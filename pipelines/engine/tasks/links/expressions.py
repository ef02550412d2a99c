"""What the links of operators share that ask expressions of their events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.tasks.link import Link
from pipelines.engine.tasks.payload import PayloadError, readable

if TYPE_CHECKING:
    from pipelines.flows.expressions import Expression
    from pipelines.flows.model import Stream


class ExpressionLink(Link):
    """An operator that asks expressions of its events; timers and CTIs are none."""

    def _said(self, told: str, table: pa.Table) -> pa.Array | pa.ChunkedArray:
        """Give what an expression gives for rows."""
        from pipelines.engine.tasks.expressions import evaluate

        there = readable(pa.schema([table.schema.field(name) for name in self._payload]))
        return evaluate(self.read_over(told, there), table.select(there.names))

    @staticmethod
    def read_over(told: str, there: pa.Schema) -> Expression:  # noqa: ARG004 - for checks
        """Read an expression over columns."""
        from pipelines.flows.expressions import parse_expression

        return parse_expression(told)

    def _are_events(self, table: pa.Table) -> pa.ChunkedArray:
        return pc.invert(pc.is_in(table["kind"], pa.array(["timer", "cti"])))


def result_type_of(stream: Stream, told: str, payload: pa.Schema) -> pa.DataType:
    """Give the type of what an expression of a stream gives.

    Raises:
        PayloadError: a column is missing, or of a type that the expression cannot take.
    """
    return type_over(stream, told, ExpressionLink.read_over(told, payload), readable(payload))


def type_over(stream: Stream, called: str, expression: Expression, there: pa.Schema) -> pa.DataType:
    """Give the type of what an expression gives over columns.

    Args:
        stream: whose it is.
        called: what a person knows it by.
        expression: it.
        there: all columns that it may read.

    Raises:
        PayloadError: a column is missing, or of a type that the expression cannot take.
    """
    from pipelines.engine.tasks.expressions import ExpressionTypeError, result_type

    try:
        return result_type(expression, there)
    except ExpressionTypeError as error:
        near = f"; did you mean `{error.nearest}`?" if error.nearest else ""
        raise PayloadError(stream.name, f"`{called}` has {error.came}", f"expected {error.expected}{near}") from error
