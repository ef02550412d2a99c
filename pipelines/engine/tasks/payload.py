"""The payload columns of streams: those of the inputs, or what a join, a window or a projection makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from pipelines.engine.columnar.columns import ORDER_FIELDS
from pipelines.engine.tasks.carry import CHANGE, POSITION
from pipelines.errors import Exit, PulselineError
from pipelines.flows.errors import nearest
from pipelines.operators.registry import parts_of
from pipelines.operators.scan import Per
from pipelines.operators.specs import SPECS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.flows.model import Stream

PORT = "port"
"""The column that a merge of streams adds."""
SIDE = "side"
"""The column that tells rows of several inputs apart inside an operator and its carry."""
STAMPED = frozenset({CHANGE.name, POSITION.name})
"""Columns of the carry's rows that say what happened to them."""
EVENT = "event"
"""The column by which a part of the carry tells the open events of a key apart; ports are told apart by `port`."""
TIMED = frozenset({"event_time", "event_end", "arrival", "kind"})
"""Columns of every stream that expressions may read."""


@dataclass(eq=False)
class PayloadError(PulselineError, ValueError):
    """A stream cannot be made of the columns of its inputs."""

    stream: str
    problem: str
    remedy: str
    code = Exit.WRONG_USE
    says = "stream `{stream}`: {problem}: {remedy}"


def has_sides(stream: Stream) -> bool:
    """Say whether the operator must know which input a row came from."""
    return SPECS[stream.operator].inputs != "ports" and len(stream.inputs) > 1


def passed_on(stream: Stream, inputs: Sequence[pa.Schema]) -> pa.Schema:
    """Give the columns of the inputs whose rows leave."""
    return pa.schema({field.name: field for schema in inputs[: len(stream.feeding)] for field in schema}.values())


def with_port(stream: Stream, inputs: Sequence[pa.Schema]) -> pa.Schema:
    """Give the columns of the inputs whose rows leave, and `port` where each of them is a port.

    Raises:
        PayloadError: they have a `port` already.
    """
    passed = passed_on(stream, inputs)
    if SPECS[stream.operator].inputs != "ports" or stream.ports is None or not stream.ports.streams:
        return passed
    if PORT in passed.names:
        problem = f"a merge of streams adds the column `{PORT}`; its inputs have one already"
        remedy = "rename it (`rename:` of its source), or, where another merge made it, merge all streams at once"
        raise PayloadError(stream.name, problem, remedy)
    return passed.append(pa.field(PORT, pa.string()))


def require_free(stream: Stream, inputs: Sequence[pa.Schema], named: Sequence[str]) -> None:
    """Refuse columns that the tables of the operator's carry have besides, with a meaning of their own.

    Args:
        stream: its operator and what was chosen for it.
        inputs: the payload of each input.
        named: columns that it names and that its carry has, beside those of its parts.

    Raises:
        PayloadError: there is one.
    """
    parts = parts_of(stream.operator, stream.policy)
    fields = {name for part in parts for name in part.record.names or ()}
    fields |= {PORT} if any(part.per is Per.PORT for part in parts) else set()
    fields |= {EVENT} if stream.event_id and any(part.per is Per.EVENT for part in parts) else set()
    rows = [name for schema in inputs[: len(stream.feeding)] for name in schema.names]
    kept = [name for name in rows if name in STAMPED] + [name for name in stream.by if name in fields] + list(named)
    if kept:
        problem = f"it keeps a column `{kept[0]}` of its own with what it remembers"
        raise PayloadError(stream.name, problem, "`rename:` it in the source, or `project:` it under another name")


def inner_payload(stream: Stream, inputs: Sequence[pa.Schema]) -> pa.Schema:
    """Give the columns that rows have inside the operator, and in its carry."""
    passed = with_port(stream, inputs)
    if not has_sides(stream):
        return passed
    if SIDE in passed.names:
        raise PayloadError(
            stream.name,
            f"its inputs have a column `{SIDE}`, a name it needs itself",
            "`rename:` it in the source, or `project:` it under another name",
        )
    return pa.schema([*passed, pa.field(SIDE, pa.int64())])


def readable(payload: pa.Schema) -> pa.Schema:
    """Give the columns that an expression may read: the payload, and what every event has."""
    return pa.schema([*payload, *(field for field in ORDER_FIELDS if field.name in TIMED)])


def require_comparable(stream: Stream, setting: str, field: pa.Field) -> None:
    """Refuse a column whose equal values cannot be told.

    Raises:
        PayloadError: it is one.
    """
    if pa.types.is_floating(field.type) or pa.types.is_nested(field.type):
        problem = f"`{setting}: {field.name}` is {field.type}, of which equal values cannot be told"
        raise PayloadError(stream.name, problem, "take text, a whole number, a decimal, a date or a time")


def column_of(stream: Stream, schema: pa.Schema, name: str, required: str) -> pa.Field:
    """Give a column that a stream names.

    Args:
        stream: which names it.
        schema: of the input that is to have it.
        name: the column.
        required: begins the sentence about one that is not there.

    Raises:
        PayloadError: it is not there; the sentence names the nearest.
    """
    if name not in schema.names:
        near = nearest(name, schema.names)
        remedy = f"write `{near}`" if near else f"it has {', '.join(schema.names)}"
        raise PayloadError(stream.name, f"{required} has no `{name}`", remedy)
    return schema.field(name)
