"""The payload columns of streams: those of the inputs, or what a join, a window or a projection makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pipelines.engine.columnar.columns import ORDER_FIELDS
from pipelines.engine.tasks.carry import CHANGE, POSITION
from pipelines.errors import Exit, PulselineError
from pipelines.flows.errors import nearest
from pipelines.operators.deduplicate import CARRIED
from pipelines.operators.registry import parts_of
from pipelines.operators.scan import Per
from pipelines.operators.specs import SPECS
from pipelines.operators.window import Measure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pipelines.flows.model import Stream

PORT = "port"
"""The column that a merge of streams adds."""
SIDE = "side"
"""The column that tells rows of several inputs apart inside an operator and its carry."""
SPOKEN = 3
STAMPED = frozenset({CHANGE.name, POSITION.name})
"""Columns of the carry's rows that say what happened to them."""
EVENT = "event"
"""The column by which a part of the carry tells the open events of a key apart; ports are told apart by `port`."""
OF_WINDOWS = frozenset({"age", "window_start"})
"""Columns by which the carry tells open windows apart."""
OF_STANDING = frozenset({*CARRIED, "same", "event"})
"""Columns of the carry's table of remembered rows, beside their key."""
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


def output_payload(stream: Stream, inputs: Sequence[pa.Schema]) -> pa.Schema:
    """Give the payload columns of a stream.

    Args:
        stream: its operator and what was chosen for it.
        inputs: the payload of each input, in the order of the ports.

    Raises:
        PayloadError: a column is missing, or of a type that the operator cannot take.
    """
    _refuse_kept(stream, inputs)
    return MADE.get(stream.operator, _passed_on)(stream, inputs)


def _refuse_kept(stream: Stream, inputs: Sequence[pa.Schema]) -> None:
    """Refuse columns that the tables of the operator's carry have besides, with a meaning of their own."""
    parts = parts_of(stream.operator, stream.policy)
    fields = {name for part in parts for name in part.record.names or ()}
    fields |= {PORT} if any(part.per is Per.PORT for part in parts) else set()
    fields |= {EVENT} if stream.event_id and any(part.per is Per.EVENT for part in parts) else set()
    fields |= OF_STANDING if "standing" in SPECS[stream.operator].carry_besides else set()
    rows = [name for schema in inputs[: len(stream.feeding)] for name in schema.names]
    kept = [name for name in rows if name in STAMPED] + [name for name in stream.by if name in fields]
    kept += [name for name in getattr(stream.policy, "group", ()) if name in OF_WINDOWS]
    if kept:
        problem = f"its carry has a column `{kept[0]}` of its own"
        raise PayloadError(stream.name, problem, "`rename:` it in the source, or `project:` it under another name")


def has_sides(stream: Stream) -> bool:
    """Say whether the operator must know which input a row came from."""
    return stream.operator != "merge" and len(stream.inputs) > 1


def inner_payload(stream: Stream, inputs: Sequence[pa.Schema]) -> pa.Schema:
    """Give the columns that rows have inside the operator, and in its carry."""
    passed = _passed_on(stream, inputs)
    if not has_sides(stream):
        return passed
    if SIDE in passed.names:
        raise PayloadError(stream.name, f"its inputs have a column `{SIDE}`, a name it needs itself", "rename it")
    return pa.schema([*passed, pa.field(SIDE, pa.int64())])


def readable(payload: pa.Schema) -> pa.Schema:
    """Give the columns that an expression may read: the payload, and what every event has."""
    return pa.schema([*payload, *(field for field in ORDER_FIELDS if field.name in TIMED)])


def _passed_on(stream: Stream, inputs: Sequence[pa.Schema]) -> pa.Schema:
    """Give the columns of the inputs whose rows leave, and `port` behind a merge of streams."""
    fields = {field.name: field for schema in inputs[: len(stream.feeding)] for field in schema}
    merged = stream.operator == "merge" and stream.ports is not None and stream.ports.streams
    return pa.schema([*fields.values(), *([pa.field(PORT, pa.string())] if merged else [])])


def _filtered(stream: Stream, inputs: Sequence[pa.Schema]) -> pa.Schema:
    came = _typed(stream, stream.policy.where, inputs[0])  # type: ignore[attr-defined]
    if not pa.types.is_boolean(came):
        raise PayloadError(stream.name, f"`where` must be true or false; it is {came}", "write a comparison")
    return inputs[0]


def _projected(stream: Stream, inputs: Sequence[pa.Schema]) -> pa.Schema:
    policy: Any = stream.policy
    staying = (*stream.by, *((stream.event_id,) if stream.event_id else ()))
    fields = {name: inputs[0].field(name) for name in staying}
    for name, told in policy.parsed():
        fields[name] = pa.field(name, _typed(stream, told, inputs[0]))
    return pa.schema(list(fields.values()))


def _typed(stream: Stream, told: str, payload: pa.Schema) -> pa.DataType:
    from pipelines.engine.tasks.expressions import ExpressionTypeError, result_type
    from pipelines.flows.expressions import parse_expression

    try:
        return result_type(parse_expression(told), readable(payload))
    except ExpressionTypeError as error:
        near = f"; did you mean `{error.nearest}`?" if error.nearest else ""
        raise PayloadError(stream.name, f"`{told}` has {error.came}", f"expected {error.expected}{near}") from error


def _united(stream: Stream, inputs: Sequence[pa.Schema]) -> pa.Schema:
    first = inputs[0]
    for name, other in zip(stream.inputs[1:], inputs[1:], strict=True):
        missing = [field for field in first if field not in list(other)] + [f for f in other if f not in list(first)]
        if missing:
            columns = [f"`{column}`" for column in dict.fromkeys(field.name for field in missing)]
            differ = ", ".join(columns[:SPOKEN]) + (f" and {len(columns) - SPOKEN} more" if columns[SPOKEN:] else "")
            problem = f"the sides of a union must have the same columns and types; `{stream.inputs[0]}` and `{name}` "
            raise PayloadError(stream.name, problem + f"differ in {differ}", "project one of them first")
    return first


def _joined(stream: Stream, inputs: Sequence[pa.Schema]) -> pa.Schema:
    left, right = inputs
    on = (*stream.by, *stream.policy.on)  # type: ignore[attr-defined]
    for name in on:
        for side, schema in zip(stream.inputs, inputs, strict=True):
            _column(stream, schema, name, f"`on` names a column of both sides; `{side}`")
        _comparable(stream, "on", left.field(name))
        if left.field(name).type != right.field(name).type:
            problem = f"`{name}` must have one type on both sides; it is {left.field(name).type} and "
            raise PayloadError(stream.name, problem + f"{right.field(name).type}", "project one side with a CAST")
    for name in right.names:
        if name in left.names and name not in on:
            problem = f"both sides have a column `{name}`, which is not under `on`"
            raise PayloadError(stream.name, problem, "name it under `on`, or leave it out of one side by `project:`")
    return pa.schema([*left, *(field for field in right if field.name not in on)])


def _windowed(stream: Stream, inputs: Sequence[pa.Schema]) -> pa.Schema:
    policy: Any = stream.policy
    fields = {name: inputs[0].field(name) for name in stream.by}
    for name in policy.group:
        fields[name] = _column(stream, inputs[0], name, "`group` names columns of its input, which")
        _comparable(stream, "group", fields[name])
    for name, measure, column in policy.parsed():
        if name in fields:
            raise PayloadError(stream.name, f"`{name}` is a column of its group already", "call the measure otherwise")
        fields[name] = pa.field(name, _measured(stream, inputs[0], measure, column))
    return pa.schema(list(fields.values()))


def _deduplicated(stream: Stream, inputs: Sequence[pa.Schema]) -> pa.Schema:
    for name in stream.policy.on:  # type: ignore[attr-defined]
        _comparable(stream, "on", _column(stream, inputs[0], name, "`on` names columns of its input, which"))
    return inputs[0]


def _comparable(stream: Stream, setting: str, field: pa.Field) -> None:
    if pa.types.is_floating(field.type) or pa.types.is_nested(field.type):
        problem = f"`{setting}: {field.name}` is {field.type}, of which equal values cannot be told"
        raise PayloadError(stream.name, problem, "take text, a whole number, a decimal, a date or a time")


def _measured(stream: Stream, schema: pa.Schema, measure: Measure, column: str | None) -> pa.DataType:
    if column is None or measure is Measure.COUNT:
        if column is not None:
            _column(stream, schema, column, "`measures` name columns of its input, which")
        return pa.int64()
    came = _column(stream, schema, column, "`measures` name columns of its input, which").type
    number = pa.types.is_integer(came) or pa.types.is_floating(came)
    ordered = number or pa.types.is_date32(came) or pa.types.is_timestamp(came)
    if not (ordered if measure in (Measure.MIN, Measure.MAX) else number):
        wanted = "a whole number, a float, a date or a time" if measure in (Measure.MIN, Measure.MAX) else "a number"
        problem = f"{measure.name.lower()}({column}) needs {wanted}; `{column}` is {came}"
        raise PayloadError(stream.name, problem, "`project:` it with a CAST first")
    if measure in (Measure.MIN, Measure.MAX):
        return came
    return pa.int64() if measure is Measure.SUM and pa.types.is_integer(came) else pa.float64()


def _column(stream: Stream, schema: pa.Schema, name: str, required: str) -> pa.Field:
    if name not in schema.names:
        near = nearest(name, schema.names)
        remedy = f"write `{near}`" if near else f"it has {', '.join(schema.names)}"
        raise PayloadError(stream.name, f"{required} has no `{name}`", remedy)
    return schema.field(name)


MADE: Mapping[str, Callable[[Stream, Sequence[pa.Schema]], pa.Schema]] = {
    "filter": _filtered,
    "project": _projected,
    "union": _united,
    "join": _joined,
    "window": _windowed,
    "deduplicate": _deduplicated,
}
