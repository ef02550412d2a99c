"""The link of a projection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.tasks.links.expressions import ExpressionLink, result_type_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.flows.model import Stream
    from pipelines.operators.leaving import Leaving


class ProjectLink(ExpressionLink):
    """Compute the columns of events; timers and CTIs have none."""

    def _columns(self, names: Sequence[str], out: Leaving, table: pa.Table) -> pa.Table:
        policy: Any = self.stream.policy
        columns = {name: table[name] for name in names if name in table.column_names}
        for name, told in policy.parsed():
            none = pa.scalar(None, self.schema.field(name).type)
            columns[name] = pc.if_else(self._are_events(table), self._said(told, table), none)
        return self._taken(pa.table({name: columns[name] for name in names}), out.src)

    @staticmethod
    def made(stream: Stream, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """Give its payload columns; see `Link.made`."""
        policy: Any = stream.policy
        staying = (*stream.by, *((stream.event_id,) if stream.event_id else ()))
        fields = {name: inputs[0].field(name) for name in staying}
        for name, told in policy.parsed():
            fields[name] = pa.field(name, result_type_of(stream, told, inputs[0]))
        return pa.schema(list(fields.values()))
