"""Whether the streams of a flow go together with the columns of its feeds: seen before anything is landed.

A flow's file does not know its feeds' columns, and a commit that was begun must be able to be finished.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import ORDER_FIELDS
from pipelines.engine.tasks.expressions import ExpressionTypeError, evaluate
from pipelines.flows.checks import expected_column, misfit_of, strange_column
from pipelines.flows.errors import nearest
from pipelines.flows.expressions import parse_expression
from pipelines.flows.known_columns import OF_EVERY_LANDING, OF_EVERY_STREAM, kind_of
from pipelines.flows.offered import offer_of
from pipelines.jobs.environment.errors import WrongUse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipelines.flows.check import Check
    from pipelines.flows.model import Flow, Stream


def fitting_payloads(flow: Flow, schemas: Mapping[str, pa.Schema]) -> dict[str, pa.Schema]:
    """Give the payload columns of everything, having seen that each stream can be made of its inputs.

    Args:
        flow: validated.
        schemas: payload of each source, as it lands.

    Raises:
        WrongUse: a stream cannot be made; says which, of which column, and what to do.
    """
    from pipelines.engine.tasks.payload import PayloadError, inner_payload
    from pipelines.engine.tasks.task import payloads

    try:
        known = payloads(flow, schemas)
        for stream in flow.streams.values():
            inner_payload(stream, [known[name] for name in stream.inputs])
    except PayloadError as error:
        raise WrongUse(f"{flow.where(error.stream)}: {error}") from error
    for name, schema in known.items():
        _see_cases(flow, name, schema.names)
    for stream in flow.streams.values():
        for problem in _problems(stream, known):
            raise WrongUse(f"{flow.where(stream.name)}: stream `{stream.name}`: {problem}")
    _see_checks(flow, known)
    return known


def _see_checks(flow: Flow, known: Mapping[str, pa.Schema]) -> None:
    """See that the columns are there that the flow's own checks are about, and fit: not behind a day's work.

    Raises:
        WrongUse: one is not, or has another type.
    """
    for table, checks in flow.expect.items():
        stamps = OF_EVERY_LANDING if table in flow.sources else OF_EVERY_STREAM
        schema = pa.schema([*(field for field in ORDER_FIELDS if field.name in stamps), *known[table]])
        there, kinds = schema.names, {field.name: kind_of(str(field.type)) for field in schema}
        for check in checks:
            strange = strange_column(check, there)
            if strange is not None:
                raise WrongUse(
                    f"{flow.where(table)}: `{check.name}` of `{table}` has the column `{strange}`, expected "
                    f"{expected_column(strange, there)}"
                )
            misfit = misfit_of(check, offer_of(check.name), {name: kinds[name] for name in check.columns})
            if misfit:
                came, expected = misfit[0].removesuffix(","), misfit[1]
                raise WrongUse(f"{flow.where(table)}: `{check.name}` of `{table}` has {came}, expected {expected}")
            if check.where:
                _see_where(flow, table, check, schema)


def _see_cases(flow: Flow, name: str, columns: Sequence[str]) -> None:
    """See that no two columns differ by case only: Delta takes no such table, and Spark cannot tell them apart.

    Raises:
        WrongUse: two do, or one differs so from a column that every stream has.
    """
    from pipelines.flows.model import RESERVED

    seen = {column.casefold(): column for column in sorted(RESERVED)}
    for column in columns:
        other = seen.setdefault(column.casefold(), column)
        if other != column:
            here = "source" if name in flow.sources else "stream"
            raise WrongUse(
                f"{flow.where(name)}: {here} `{name}`: columns must differ by more than case; `{other}` and "
                f"`{column}` do not: rename one (`rename:` of its source, or `project:`)"
            )


def _problems(stream: Stream, known: Mapping[str, pa.Schema]) -> Iterator[str]:
    seen: dict[str, tuple[str, pa.Field]] = {}
    for given in stream.inputs if stream.operator == "merge" else ():
        for field in known[given]:
            before, other = seen.setdefault(field.name, (given, field))
            if other.type != field.type:
                yield (
                    f"column `{field.name}` must have one type in all inputs; it is {other.type} in `{before}` and "
                    f"{field.type} in `{given}`: rename one (`rename:` of its source)"
                )
    yield from _port_problems(stream, {name: field for name, (_, field) in seen.items()})


def _port_problems(stream: Stream, there: Mapping[str, pa.Field]) -> Iterator[str]:
    import pyarrow as pa

    ports = stream.ports
    if ports is None or stream.operator != "merge":
        return
    if ports.column is None:
        return
    if ports.column not in there:
        near = nearest(ports.column, there)
        hint = f"; did you mean `{near}`?" if near else ""
        yield f"`ports_by` must name a column of its input; `{ports.column}` is none of {', '.join(there)}{hint}"
        return
    kind, known = there[ports.column].type, dict[object, object]()
    for value in ports.values:
        try:
            port = pa.scalar(value).cast(kind).as_py()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
            yield f"the values of `ports_by: {ports.column}` must be {kind}; `{value}` is none"
            continue
        if port in known:
            yield f"the values of `ports_by: {ports.column}` must differ; as {kind}, `{known[port]}` is `{value}`"
        known[port] = value


def _see_where(flow: Flow, table: str, check: Check, schema: pa.Schema) -> None:
    try:
        is_true(check.where, schema.empty_table())
    except WrongUse as problem:
        raise WrongUse(f"{flow.where(table)}: `{check.name}` of `{table}`: {problem}") from problem


def is_true(where: str, rows: pa.Table) -> pa.ChunkedArray:
    """Say of each row whether an expression of a flow is true; of one that is null it is not.

    Raises:
        WrongUse: it does not fit the columns, or is no condition.
    """
    expression = parse_expression(where)
    try:
        found = evaluate(expression, rows.select(expression.columns))
    except ExpressionTypeError as problem:
        raise WrongUse(f"`where: {where}` of a check has {problem.came}, expected {problem.expected}") from problem
    if not pa.types.is_boolean(found.type):
        raise WrongUse(f"`where: {where}` of a check is {found.type}, expected a condition such as `a > 1`")
    return pc.fill_null(found, False)  # noqa: FBT003 - the value
