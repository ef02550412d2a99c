"""The link of a join."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pipelines.engine.tasks.links.meeting import NOBODY, ResultLink, codes
from pipelines.engine.tasks.payload import PayloadError, column_of, require_comparable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.flows.model import Stream
    from pipelines.operators.leaving import Leaving
    from pipelines.operators.rows import Longs


class JoinLink(ResultLink):
    """A join: rows are matched by scope and the columns under `on`, results are a left row and a right row."""

    def _lay(self, table: pa.Table, key: Longs) -> None:
        on = tuple(dict.fromkeys((*self.stream.by, *self.operator.policy.on)))
        steering = np.full(len(key) + 2, NOBODY, dtype=np.int64)
        by_key = on == tuple(self.stream.by) and not any(table[name].null_count for name in on)
        steering[: len(key)] = key if by_key else codes(table, on)
        self.operator.match = steering

    def _columns(self, names: Sequence[str], out: Leaving, table: pa.Table) -> pa.Table:
        left, right = self._sides
        mine = [name for name in names if name in left]
        others = [name for name in names if name not in left and name in right]
        taken = {
            **dict(zip(mine, self._taken(table.select(mine), out.src).columns, strict=True)),
            **dict(zip(others, self._taken(table.select(others), self._made_of(out)).columns, strict=True)),
            **self._without_identity(len(out.src)),
        }
        return pa.table({name: taken[name] for name in names})

    @property
    def _sides(self) -> tuple[frozenset[str], frozenset[str]]:
        """Name the payload columns that are taken from the left row, and those from the right one."""
        left, right = (frozenset(schema.names) for schema in self.payload)
        return left, right - left

    @staticmethod
    def made(stream: Stream, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """Give its payload columns; see `Link.made`."""
        left, right = inputs
        on = (*stream.by, *stream.policy.on)  # type: ignore[attr-defined]
        for name in on:
            for side, schema in zip(stream.inputs, inputs, strict=True):
                column_of(stream, schema, name, f"`on` names a column of both sides; `{side}`")
            require_comparable(stream, "on", left.field(name))
            if left.field(name).type != right.field(name).type:
                problem = f"`{name}` must have one type on both sides; it is {left.field(name).type} and "
                raise PayloadError(stream.name, problem + f"{right.field(name).type}", "project one side with a CAST")
        for name in right.names:
            if name in left.names and name not in on:
                problem = f"both sides have a column `{name}`, which is not under `on`"
                raise PayloadError(
                    stream.name, problem, "name it under `on`, or leave it out of one side by `project:`"
                )
        return pa.schema([*left, *(field for field in right if field.name not in on)])
