"""The link of a quarantine: what breaks a check goes aside, and says which it breaks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import EPOCH, TICK
from pipelines.engine.columnar.row_texts import json_rows
from pipelines.engine.tasks.links.expressions import ExpressionLink, type_over
from pipelines.engine.tasks.payload import PayloadError, readable, require_comparable
from pipelines.flows.checks import instant_of, is_day, is_instant
from pipelines.flows.expressions import Call, Cast, Column, Literal, parse_expression
from pipelines.flows.model import BROKEN
from pipelines.operators import quarantine
from pipelines.operators.rows import Reason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.flows.expressions import Expression, Node
    from pipelines.flows.model import Stream
    from pipelines.operators.leaving import Leaving
    from pipelines.operators.rows import Longs, Records

COMPARED = {"=", "<", "<=", ">", ">=", "in"}
"""Calls that hold values against each other."""
BETWEEN = "; "
"""What stands between the names of checks that one row breaks."""


class QuarantineLink(ExpressionLink):
    """Ask every check of events; timers and CTIs are none and pass."""

    @staticmethod
    def read_over(told: str, there: pa.Schema) -> Expression:
        """Read what says a check; where columns turn out to be of times, what it writes beside them are times too."""
        read = parse_expression(told)
        return replace(read, root=_as_times(read.root, there))

    def _ports(self, table: pa.Table) -> Longs:
        policy: quarantine.QuarantinePolicy = self.stream.policy  # type: ignore[assignment]
        events = self._are_events(table)
        kept = [pc.fill_null(self._said(rule.keeps, table), False) for rule in policy.rules]  # noqa: FBT003 - a value
        broken = [np.asarray(pc.and_(events, pc.invert(each)), dtype=bool) for each in kept]
        self._broken_by_rule = broken
        return np.where(np.any(broken, axis=0), quarantine.BROKEN, 0)

    def _aside(self, out: Leaving, table: pa.Table) -> pa.Table:
        out = self._in_order(out)
        rows = self._stream(out, table)
        return rows.add_column(len(self.schema), pa.field(BROKEN, pa.string()), self._checks_broken(out.src))

    def _checks_broken(self, src: Longs) -> pa.Array:
        """Name the checks that rows of a block break, each once a row, in the order of the flow."""
        policy: quarantine.QuarantinePolicy = self.stream.policy  # type: ignore[assignment]
        if not len(src):
            return pa.array([], pa.string())
        # Few rows differ in what they break.
        found, at = np.unique([broken[src] for broken in self._broken_by_rule], axis=1, return_inverse=True)
        names = [
            BETWEEN.join(rule.check for rule, does in zip(policy.rules, each, strict=True) if does) for each in found.T
        ]
        return pa.array(names, pa.string()).take(pa.array(at.ravel()))

    def _told_more(self, out: Records, table: pa.Table) -> pa.Array:  # noqa: ARG002 - as every link has it
        """Say of a row that went aside which checks it breaks."""
        told = pa.table({BROKEN: self._checks_broken(np.ascontiguousarray(out["src"]))})
        went = pa.array(out["reason"] == Reason.QUARANTINED)
        return pc.if_else(went, json_rows(told, told.column_names).cast(pa.binary()), pa.scalar(None, pa.binary()))

    @staticmethod
    def made(stream: Stream, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """Give its payload columns; see `Link.made`."""
        there = readable(inputs[0])
        for rule in stream.policy.rules:  # type: ignore[attr-defined]
            type_over(stream, rule.check, QuarantineLink.read_over(rule.keeps, there), there)
            for name in rule.equal:
                require_comparable(stream, "expect", inputs[0].field(name))
        if BROKEN in inputs[0].names:
            problem = f"it adds a column `{BROKEN}` to what it sets aside; its input has one already"
            raise PayloadError(stream.name, problem, "`rename:` it in the source, or `project:` it under another name")
        return inputs[0]

    @staticmethod
    def aside_of(made: pa.Schema) -> pa.Schema:
        """Give the payload columns of what goes aside; see `Link.aside_of`."""
        return made.append(pa.field(BROKEN, pa.string()))


def _as_times(node: Node, there: pa.Schema) -> Node:
    """Give a part of a check with instants for texts beside a column of times, and days as instants beside instants."""
    if not isinstance(node, Call):
        return node
    parts = [_as_times(part, there) for part in node.arguments]
    kinds = {there.field(part.name).type for part in parts if isinstance(part, Column) and _is_time(part, there)}
    if node.name not in COMPARED or not kinds:
        return replace(node, arguments=(*parts,))
    texts = [part for part in parts if isinstance(part, Literal) and part.kind == "string"]
    if not all(is_instant(str(each.value)) for each in texts):
        return replace(node, arguments=(*parts,))
    days = all(map(pa.types.is_date, kinds)) and all(is_day(str(each.value)) for each in texts)
    return replace(node, arguments=tuple(_as_time(part, "date" if days else "timestamp", there) for part in parts))


def _is_time(column: Column, there: pa.Schema) -> bool:
    return not column.fields and column.name in there.names and pa.types.is_temporal(there.field(column.name).type)


def _as_time(part: Node, kind: str, there: pa.Schema) -> Node:
    if isinstance(part, Literal) and part.kind == "string":
        since = instant_of(str(part.value)) - EPOCH
        return Literal(kind, since.days if kind == "date" else since // TICK)
    if isinstance(part, Column) and _is_time(part, there) and kind == "timestamp":
        return Cast(part, kind)
    return part
