"""The link of a dispatch: which instance each row goes to, as far as one row says it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import longs
from pipelines.engine.columnar.keys import bucket_of, canonical_keys
from pipelines.engine.tasks.links.expressions import ExpressionLink, result_type_of
from pipelines.engine.tasks.payload import PayloadError, column_of, require_comparable
from pipelines.flows.expressions import parse_expression
from pipelines.operators.dispatch import EVERY, NOWHERE, DispatchStyle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.flows.model import Stream
    from pipelines.operators.rows import Longs


class DealingLink(ExpressionLink):
    """An operator that knows to which instance rows go by what they say."""

    def _instances(self, of: Sequence[str], numeric: str, instances: int, table: pa.Table) -> Longs:
        """Give the number of each row's instance, by an expression or a hash of columns; NOWHERE where it is null."""
        return self._remainder(numeric, instances, table) if numeric else self._part(of, instances, table)

    def _remainder(self, numeric: str, instances: int, table: pa.Table) -> Longs:
        number = self._said(numeric, table).cast(pa.int64())
        known = np.asarray(pc.is_valid(number))
        return np.where(known, longs(pc.fill_null(number, 0)) % instances, NOWHERE)

    @staticmethod
    def _part(of: Sequence[str], instances: int, table: pa.Table) -> Longs:
        columns = [table[name].combine_chunks() for name in of]
        known = np.all([np.asarray(pc.is_valid(column)) for column in columns], axis=0)
        found = np.full(table.num_rows, NOWHERE, dtype=np.int64)
        if known.any():
            chosen = [column.filter(pa.array(known)) for column in columns]
            found[known] = bucket_of(canonical_keys(chosen), instances)
        return found


class DispatchLink(DealingLink):
    """Rows of one input that go to one instance; a row's port is the number of its instance."""

    def _ports(self, table: pa.Table) -> Longs:
        policy: Any = self.stream.policy
        if policy.style not in {DispatchStyle.NUMERIC, DispatchStyle.OF}:
            return np.full(table.num_rows, EVERY, dtype=np.int64)
        found = self._instances(policy.of, policy.numeric, policy.instances, table)
        # A timer has a key and nothing else.
        asked = parse_expression(policy.numeric).columns if policy.numeric else policy.of
        timers = np.asarray(pc.equal(table["kind"], "timer"))
        return found if set(asked) <= set(self.stream.by) else np.where(timers, EVERY, found)

    @staticmethod
    def made(stream: Stream, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """Give its payload columns; see `Link.made`."""
        policy: Any = stream.policy
        # As the file names it: the stream of each instance and port is ours.
        stream = replace(stream, name=stream.name.rsplit(".", 2)[0])
        if policy.numeric:
            came = result_type_of(stream, policy.numeric, inputs[0])
            if not pa.types.is_integer(came):
                todo = "write a CAST, or `{of: [columns]}`, which goes by values of any type"
                raise PayloadError(stream.name, f"`numeric` of `dispatch` must be a whole number; it is {came}", todo)
        for name in policy.of:
            require_comparable(
                stream,
                "of",
                column_of(stream, inputs[0], name, "`of` of `dispatch` names a column of its input, which"),
            )
        return inputs[0]
