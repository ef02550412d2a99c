"""The link of a filter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.tasks.links.expressions import ExpressionLink, result_type_of
from pipelines.engine.tasks.payload import PayloadError
from pipelines.operators.pass_through import REFUSED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.flows.model import Stream
    from pipelines.operators.rows import Longs


class FilterLink(ExpressionLink):
    """Refuse the events of which the condition is not true; what is no event passes."""

    def _ports(self, table: pa.Table) -> Longs:
        condition: Any = self.stream.policy
        held = pc.fill_null(self._said(condition.where, table), False)  # noqa: FBT003 - a value
        refused = pc.and_(self._are_events(table), pc.invert(held))
        return np.where(np.asarray(refused, dtype=bool), REFUSED, 0)

    @staticmethod
    def made(stream: Stream, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """Give its payload columns; see `Link.made`."""
        came = result_type_of(stream, stream.policy.where, inputs[0])  # type: ignore[attr-defined]
        if not pa.types.is_boolean(came):
            raise PayloadError(stream.name, f"`where` must be true or false; it is {came}", "write a comparison")
        return inputs[0]
