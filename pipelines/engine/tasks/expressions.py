"""What an expression of a flow gives for rows: the type and the bytes that Spark gives, without a JVM.

Types and values are those of Spark in its default (ANSI) mode. Where that mode would stop the job, because a number
does not fit, is divided by zero or cannot be cast, the result is null, as `try_add`, `try_divide` and `try_cast` give
it: one odd row must not end a stream. What cannot be shown to equal Spark is refused before a row is read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import TIME
from pipelines.flows.errors import nearest
from pipelines.flows.expressions import MOST_DIGITS, Cast, Column, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from pipelines.flows.expressions import Expression, Node

INT64 = np.iinfo(np.int64)
DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
"""How many digits Spark gives an integer that it turns into a decimal."""
LITERALS = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": TIME,
}
TARGETS = {name: kind for name, kind in LITERALS.items() if name != "null"}
SPELLED = {
    **{kind: name.upper() for name, kind in TARGETS.items()},
    pa.null(): "NULL",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.float32(): "FLOAT",
    pa.binary(): "BINARY",
}
CASTABLE = {
    "integer": ("int", "bigint", "double", "string", "boolean"),
    "float": ("int", "bigint", "double", "boolean"),
    "decimal": ("int", "bigint", "double"),
    "boolean": ("int", "bigint", "double", "string", "boolean"),
    "string": ("int", "bigint", "double", "boolean", "string"),
    "date": ("string", "timestamp", "date"),
    "timestamp": ("bigint", "double", "string", "date", "timestamp"),
    "null": tuple(TARGETS),
    "binary": (),
    "struct or list": (),
}
"""What a value of each kind can be cast to."""
WRITTEN = {
    frozenset(("string", "integer")): "CAST({string} AS BIGINT)",
    frozenset(("string", "float")): "CAST({string} AS DOUBLE)",
    frozenset(("string", "decimal")): "CAST({string} AS DOUBLE)",
    frozenset(("string", "boolean")): "CAST({string} AS BOOLEAN)",
    frozenset(("string", "date")): "DATE '…' for a literal, or CAST({date} AS STRING)",
    frozenset(("string", "timestamp")): "TIMESTAMP '…' for a literal, or CAST({timestamp} AS STRING)",
    frozenset(("date", "timestamp")): "CAST({date} AS TIMESTAMP)",
    frozenset(("integer", "timestamp")): "CAST({timestamp} AS BIGINT)",
    frozenset(("float", "timestamp")): "CAST({timestamp} AS DOUBLE)",
    frozenset(("decimal", "timestamp")): "CAST({timestamp} AS DOUBLE)",
    frozenset(("integer", "boolean")): "CAST({boolean} AS INT)",
    frozenset(("float", "boolean")): "CAST({boolean} AS INT)",
    frozenset(("decimal", "boolean")): "CAST({boolean} AS INT)",
    frozenset(("decimal",)): "CAST({decimal} AS DOUBLE)",
}
"""The cast that lets two kinds go together."""
NEWER = (
    *((0x10D70 + each, 0x10D50 + each) for each in range(22)),
    *((0x16EBB + each, 0x16EA0 + each) for each in range(25)),
    *((0x19B, 0xA7DC), (0x264, 0xA7CB), (0x1C8A, 0x1C89), (0xA7CD, 0xA7CC), (0xA7CF, 0xA7CE), (0xA7D3, 0xA7D2)),
    *((0xA7D5, 0xA7D4), (0xA7DB, 0xA7DA)),
)
"""Letters, and their capitals, that Spark's edition of Unicode has and Python's does not."""
CAPITALS = dict(NEWER)

_BLANK = "".join(map(chr, range(0x21))) + "\x7f"
_BLANK_OF_JAVA = "".join(map(chr, range(0x21)))
_INTEGER = r"\A[+-]?[0-9]+\z"
_FINITE = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?", re.ASCII)
_HEXADECIMAL = re.compile(r"[+-]?0[xX]([0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[dDfF]?", re.ASCII)
_OF_JAVA = re.compile(r"[+-]?(NaN|Infinity)")
_INFINITE = re.compile(r"[+-]?inf(inity)?|nan", re.ASCII | re.IGNORECASE)
_TRUE, _FALSE = ("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0")
FIRST_YEAR, LAST_YEAR = 1970, 9999
_SECOND = 1_000_000
_DAY = 86_400 * _SECOND


@dataclass(eq=False)
class ExpressionTypeError(ValueError):
    """An expression that does not fit the columns it is asked of.

    >>> print(ExpressionTypeError("dely > 1", "the column `dely`", "one of the columns", "delay"))
    `dely > 1` has the column `dely`, expected one of the columns; did you mean `delay`?
    """

    text: str
    """The whole expression."""
    came: str
    """What stands there."""
    expected: str
    """What should stand there."""
    nearest: str | None = None
    """The right word that looks most like what came, where there is one."""

    def __str__(self) -> str:
        hint = f"; did you mean `{self.nearest}`?" if self.nearest else ""
        return f"`{' '.join(self.text.split())}` has {self.came}, expected {self.expected}{hint}"


class _Misfit(Exception):  # noqa: N818 - never leaves this module
    """What does not fit, before the text is known."""

    def __init__(self, came: str, expected: str, nearest: str | None = None) -> None:
        super().__init__(came, expected, nearest)


class Digits(NamedTuple):
    """Of a decimal: how many digits in all, and how many behind the point."""

    all: int
    behind: int


@dataclass(frozen=True)
class Bound:
    """A part of an expression over a certain schema."""

    kind: pa.DataType
    run: Callable[[pa.RecordBatch], pa.Array]
    spelled: str
    """As an error names it."""
    literal: Literal | None = None


def result_type(expression: Expression, schema: pa.Schema) -> pa.DataType:
    """Give the type that an expression has over rows of a schema.

    >>> from pipelines.flows.expressions import parse_expression
    >>> result_type(parse_expression("a / 2"), pa.schema([("a", pa.int8())]))
    DataType(double)

    Raises:
        ExpressionTypeError: a column is not there, or types do not go together.
    """
    return _bound(expression, schema).kind


def evaluate(expression: Expression, table: pa.Table) -> pa.ChunkedArray:
    """Give the value of an expression for each row; a number that overflows, x / 0 and a bad CAST are null.

    >>> from pipelines.flows.expressions import parse_expression
    >>> evaluate(parse_expression("12 / a"), pa.table({"a": [8, 0, None]})).to_pylist()
    [1.5, None, None]

    Raises:
        ExpressionTypeError: a column is not there, or types do not go together.
    """
    bound = _bound(expression, table.schema)
    return pa.chunked_array([bound.run(batch) for batch in table.to_batches()], type=bound.kind)


def _bound(expression: Expression, schema: pa.Schema) -> Bound:
    try:
        return _with_type(_bind(expression.root, schema))
    except _Misfit as misfit:
        raise ExpressionTypeError(expression.text, *misfit.args) from None


def _with_type(bound: Bound) -> Bound:
    if pa.types.is_null(bound.kind):
        raise _Misfit("NULL without a type", "a type for it, such as CAST(NULL AS STRING)")
    return bound


def _bind(node: Node, schema: pa.Schema) -> Bound:
    if isinstance(node, Column):
        return _column(node, schema)
    if isinstance(node, Literal):
        return _literal(node)
    if isinstance(node, Cast):
        return _cast(_bind(node.argument, schema), node.to)
    if node.name == "shift":
        return _shift(_bind(node.arguments[0], schema), node.arguments[1])
    arguments = [_bind(each, schema) for each in node.arguments]
    return CALLS[node.name](node.name, arguments)


def _spelled(kind: pa.DataType) -> str:
    return SPELLED.get(kind) or str(kind).replace("128(", "(").upper()


def _group(kind: pa.DataType) -> str:  # noqa: PLR0911 - one line a group
    if kind in DIGITS:
        return "integer"
    if pa.types.is_floating(kind):
        return "float"
    if pa.types.is_decimal(kind):
        return "decimal"
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_date(kind):
        return "date"
    if pa.types.is_nested(kind):
        return "struct or list"
    return str(kind).split("[")[0]


# ---------------------------------------------------------------------------------------------------------------------
# Columns and literals.


def _column(node: Column, schema: pa.Schema) -> Bound:
    places = schema.get_all_field_indices(node.name)
    if len(places) != 1:
        near = nearest(node.name, schema.names)
        quoted = "" if near is None or near.isidentifier() else ", one with such signs in backticks"
        raise _Misfit(f"the column `{node.name}`", _names(schema.names) + quoted, near)
    (place,) = places
    kind, way, reached = schema.field(place).type, list[int](), node.name
    for name in node.fields:
        if not pa.types.is_struct(kind):
            raise _Misfit(f"`{reached}.{name}`", f"a struct in front of `.{name}`; `{reached}` is {_spelled(kind)}")
        names = [field.name for field in kind]
        if name not in names:
            raise _Misfit(f"the field `{name}` of `{reached}`", _names(names), nearest(name, names))
        way.append(names.index(name))
        kind, reached = kind.field(way[-1]).type, f"{reached}.{name}"

    def run(batch: pa.RecordBatch) -> pa.Array:
        return reduce(lambda array, index: pc.struct_field(array, [index]), way, batch.column(place))

    return Bound(kind, run, reached)


def _names(names: Sequence[str]) -> str:
    return "one of " + ", ".join(f"`{name}`" for name in names)


def _literal(node: Literal) -> Bound:
    kind = LITERALS.get(node.kind)
    if kind is None and isinstance(node.value, Decimal):
        kind = pa.decimal128(*_digits_of(node.value))
    return _constant(node, kind)


def _constant(node: Literal, kind: pa.DataType) -> Bound:
    scalar = pa.scalar(node.value, kind)
    spelled = f"'{node.value}'" if isinstance(node.value, str) else str(scalar)
    return Bound(kind, lambda batch: pa.repeat(scalar, batch.num_rows), spelled, node)


def _digits_of(value: Decimal) -> Digits:
    """Give the digits that Spark gives a number that stands in the text."""
    _, digits, exponent = value.as_tuple()
    return Digits(max(len(digits), -int(exponent)), -int(exponent))


# ---------------------------------------------------------------------------------------------------------------------
# One type for several values.


def _digits(bound: Bound, *, least: bool) -> Digits:
    """Give the digits of an integer or decimal as a decimal; with `least`, of a literal as few as it needs."""
    if pa.types.is_decimal(bound.kind):
        return Digits(bound.kind.precision, bound.kind.scale)
    if least and bound.literal is not None:
        return _digits_of(Decimal(str(bound.literal.value)))
    return Digits(DIGITS[bound.kind], 0)


def _common(name: str, left: Bound, right: Bound, *, least: bool) -> pa.DataType:
    """Give the type of which two values both are, as Spark finds it."""
    groups = _group(left.kind), _group(right.kind)
    if left.kind == right.kind:
        return left.kind
    if "null" in groups:
        return left.kind if groups[1] == "null" else right.kind
    if groups == ("integer", "integer"):
        return max(left.kind, right.kind, key=DIGITS.__getitem__)
    if "float" in groups and set(groups) <= {"float", "integer", "decimal"}:
        return pa.float64()
    if set(groups) <= {"integer", "decimal"}:
        one, two = _digits(left, least=least), _digits(right, least=least)
        behind = max(one.behind, two.behind)
        digits = max(one.all - one.behind, two.all - two.behind) + behind
        if digits <= MOST_DIGITS:
            return pa.decimal128(digits, behind)
    raise _apart(name, left, right)


def _apart(name: str, left: Bound, right: Bound) -> _Misfit:
    groups = {_group(left.kind): left.spelled, _group(right.kind): right.spelled}
    if set(groups) == {"integer", "decimal"}:
        groups = {"decimal": groups["decimal"]}
    written = WRITTEN.get(frozenset(groups))
    came = f"{_spelled(left.kind)} and {_spelled(right.kind)} together in `{name}`"
    if written is None:
        return _Misfit(came, "two types that go together; no cast leads from one of these to the other")
    return _Misfit(came, "two types that go together; write " + written.format(**groups))


def _common_of_all(name: str, bounds: Sequence[Bound]) -> pa.DataType:
    """Give the one type of several values."""
    for bound in bounds:
        if _group(bound.kind) == "struct or list":
            raise _Misfit(f"{_spelled(bound.kind)} in `{name}`", "plain values: name a field with `.`")
    first, *others = bounds
    return reduce(lambda kind, other: _common(name, _typed(bounds, kind), other, least=False), others, first.kind)


def _typed(bounds: Sequence[Bound], kind: pa.DataType) -> Bound:
    """Give a stand-in of a type, spelled as the first value that is of it."""
    return next((each for each in bounds if each.kind == kind), Bound(kind, bounds[0].run, bounds[0].spelled))


def _as(bound: Bound, kind: pa.DataType) -> Bound:
    """Give a value as the common type that was found for it; every value of it fits."""
    if bound.kind == kind:
        return bound
    if bound.literal is not None and not pa.types.is_floating(kind) and bound.literal.value is not None:
        value = bound.literal.value
        return _constant(Literal(bound.literal.kind, Decimal(str(value)) if pa.types.is_decimal(kind) else value), kind)
    if _group(bound.kind) == "null":
        return Bound(kind, lambda batch: pa.nulls(batch.num_rows, kind), bound.spelled)
    if pa.types.is_decimal(bound.kind) and pa.types.is_floating(kind):
        return Bound(kind, lambda batch: _decimal_to_double(bound.run(batch)), bound.spelled)
    if bound.kind in DIGITS and pa.types.is_decimal(kind):
        return Bound(kind, lambda batch: _integer_to_decimal(bound.run(batch), kind), bound.spelled)
    return Bound(kind, lambda batch: bound.run(batch).cast(kind, safe=False), bound.spelled)


def _decimal_to_double(array: pa.Array) -> pa.Array:
    """Give the nearest double; Arrow's own cast is often the second nearest."""
    return array.cast(pa.string()).cast(pa.float64())


def _integer_to_decimal(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Give integers as decimals that have room for them, if not for every integer of their width, as Arrow asks."""
    return array.cast(pa.decimal256(2 * MOST_DIGITS, kind.scale)).cast(kind)


# ---------------------------------------------------------------------------------------------------------------------
# Comparing.


def _missing(*arrays: pa.Array) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = np.logical_or.reduce([np.asarray(array.is_null()) for array in arrays])
    return found


def _values(array: pa.Array) -> NDArray[Any]:
    """Give the numbers of an array, 0 for null."""
    found: NDArray[Any] = pc.fill_null(array, 0).to_numpy(zero_copy_only=False)
    return found


def _equal(left: pa.Array, right: pa.Array) -> pa.Array:
    if not pa.types.is_floating(left.type):
        return pc.equal(left, right)
    one, two = _values(left), _values(right)
    found = (one == two) | (np.isnan(one) & np.isnan(two))
    return pa.array(found, pa.bool_(), mask=_missing(left, right))


def _less(left: pa.Array, right: pa.Array) -> pa.Array:
    """Say what is less; NaN is above all."""
    if not pa.types.is_floating(left.type):
        return pc.less(left, right)
    one, two = _values(left), _values(right)
    found = (one < two) | (~np.isnan(one) & np.isnan(two))
    return pa.array(found, pa.bool_(), mask=_missing(left, right))


def _same(left: pa.Array, right: pa.Array) -> pa.Array:
    """Say what is equal, where null equals null alone."""
    both_missing = pc.and_(left.is_null(), right.is_null())
    return pc.if_else(both_missing, pa.scalar(value=True), pc.fill_null(_equal(left, right), fill_value=False))


COMPARED: dict[str, Callable[[pa.Array, pa.Array], pa.Array]] = {
    "=": _equal,
    "<>": lambda left, right: pc.invert(_equal(left, right)),
    "<": _less,
    "<=": lambda left, right: pc.invert(_less(right, left)),
    ">": lambda left, right: _less(right, left),
    ">=": lambda left, right: pc.invert(_less(left, right)),
    "<=>": _same,
}


def _compared(name: str, arguments: Sequence[Bound]) -> Bound:
    left, right = arguments
    kind = _comparable(name, _common(name, left, right, least=True))
    one, two = _as(left, kind), _as(right, kind)
    return Bound(pa.bool_(), lambda batch: COMPARED[name](one.run(batch), two.run(batch)), f"{name}(…)")


def _comparable(name: str, kind: pa.DataType) -> pa.DataType:
    if _group(kind) == "struct or list":
        raise _Misfit(f"{_spelled(kind)} in `{name}`", "plain values: name a field with `.`")
    if _group(kind) == "null":
        raise _Misfit(f"only NULL in `{name}`", "a value that has a type, such as CAST(NULL AS STRING)")
    return kind


def _in(name: str, arguments: Sequence[Bound]) -> Bound:
    kind = _comparable(name, _common_of_all(name, arguments))
    value, *offered = (_as(each, kind) for each in arguments)

    def run(batch: pa.RecordBatch) -> pa.Array:
        array = value.run(batch)
        return reduce(pc.or_kleene, (_equal(array, each.run(batch)) for each in offered))

    return Bound(pa.bool_(), run, "IN (…)")


def _like(_: str, arguments: Sequence[Bound]) -> Bound:
    value, pattern = arguments
    text = _only("LIKE", value, "string")
    literal = pattern.literal
    spelled = "" if literal is None else _regular(str(literal.value))
    return Bound(pa.bool_(), lambda batch: pc.match_substring_regex(text.run(batch), spelled), "LIKE")


def _regular(pattern: str) -> str:
    """Spell a pattern of LIKE as a regular expression."""
    parts = (re.escape(part[-1]) if part not in "%_" else {"%": ".*", "_": "."}[part] for part in _parts(pattern))
    return rf"\A(?s:{''.join(parts)})\z"


def _parts(pattern: str) -> list[str]:
    return re.findall(r"\\.|.", pattern, re.DOTALL)


# ---------------------------------------------------------------------------------------------------------------------
# Truth.


def _only(name: str, bound: Bound, group: str) -> Bound:
    """Give a value that must be of one group; NULL is of every one."""
    kind = {"boolean": pa.bool_(), "string": pa.string(), "timestamp": TIME}[group]
    if bound.kind == kind:
        return bound
    if _group(bound.kind) == "null":
        return _as(bound, kind)
    came = f"{_spelled(bound.kind)} in `{name}`"
    if group in CASTABLE[_group(bound.kind)]:
        raise _Misfit(came, f"{_spelled(kind)}: write CAST({bound.spelled} AS {_spelled(kind)})")
    raise _Misfit(came, _spelled(kind))


def _chained(name: str, arguments: Sequence[Bound]) -> Bound:
    joined = pc.and_kleene if name == "and" else pc.or_kleene
    truths = [_only(name.upper(), each, "boolean") for each in arguments]
    return Bound(pa.bool_(), lambda batch: reduce(joined, (each.run(batch) for each in truths)), f"… {name.upper()} …")


def _not(_: str, arguments: Sequence[Bound]) -> Bound:
    truth = _only("NOT", arguments[0], "boolean")
    return Bound(pa.bool_(), lambda batch: pc.invert(truth.run(batch)), "NOT …")


def _is_null(_: str, arguments: Sequence[Bound]) -> Bound:
    value = arguments[0]
    return Bound(pa.bool_(), lambda batch: value.run(batch).is_null(), "IS NULL")


def _case(_: str, arguments: Sequence[Bound]) -> Bound:
    conditions = [_only("CASE", each, "boolean") for each in arguments[:-1:2]]
    values = [*arguments[1::2], arguments[-1]]
    kind = _common_of_all("CASE", values)
    *chosen, default = (_as(each, kind) for each in values)

    def run(batch: pa.RecordBatch) -> pa.Array:
        found = default.run(batch)
        for condition, value in zip(reversed(conditions), reversed(chosen), strict=True):
            found = pc.if_else(pc.fill_null(condition.run(batch), fill_value=False), value.run(batch), found)
        return found

    return Bound(kind, run, "CASE … END")


def _coalesce(name: str, arguments: Sequence[Bound]) -> Bound:
    kind = _common_of_all(name, arguments)
    values = [_as(each, kind) for each in arguments]

    def run(batch: pa.RecordBatch) -> pa.Array:
        def first(found: pa.Array, other: pa.Array) -> pa.Array:
            return pc.if_else(found.is_valid(), found, other)

        return reduce(first, (each.run(batch) for each in values))

    return Bound(kind, run, "coalesce(…)")


def _nullif(_: str, arguments: Sequence[Bound]) -> Bound:
    value, other = arguments
    equal, kind = _compared("=", (value, other)), value.kind
    if pa.types.is_null(kind):
        raise _Misfit("NULL in front in `nullif`", "a value that has a type, such as CAST(NULL AS STRING)")

    def run(batch: pa.RecordBatch) -> pa.Array:
        is_equal = pc.fill_null(equal.run(batch), fill_value=False)
        return pc.if_else(is_equal, pa.scalar(None, kind), value.run(batch))

    return Bound(kind, run, "nullif(…)")


# ---------------------------------------------------------------------------------------------------------------------
# Reckoning.


def _arithmetic(name: str, arguments: Sequence[Bound]) -> Bound:
    left, right = arguments
    for each, other in ((left, right), (right, left)):
        if _group(each.kind) not in {"integer", "float", "decimal", "null"}:
            raise _no_number(name, each, other)
    groups = {_group(left.kind), _group(right.kind)}
    if groups == {"null"}:
        raise _Misfit(f"only NULL in `{name}`", "a value that has a type, such as CAST(NULL AS INT)")
    if "decimal" in groups and "float" not in groups:
        return _of_decimals(name, left, right)
    kind = pa.float64() if name == "/" else _common(name, left, right, least=True)
    one, two = _as(left, kind), _as(right, kind)

    def run(batch: pa.RecordBatch) -> pa.Array:
        first, second = one.run(batch), two.run(batch)
        with np.errstate(all="ignore"):
            found, undefined = RECKONED[name](_values(first), _values(second))
        return pa.array(found, kind, mask=_missing(first, second) | undefined)

    return Bound(kind, run, f"(… {name} …)")


def _no_number(name: str, bound: Bound, other: Bound) -> _Misfit:
    came = f"{_spelled(bound.kind)} and {_spelled(other.kind)} together in `{name}`"
    group = _group(bound.kind)
    if group == "timestamp":
        return _Misfit(came, f"numbers: write CAST({bound.spelled} AS DOUBLE) for seconds, or add an INTERVAL")
    if group == "date":
        return _Misfit(came, f"numbers: write CAST({bound.spelled} AS TIMESTAMP) and add an INTERVAL")
    if group == "string":
        return _Misfit(came, f"numbers: write CAST({bound.spelled} AS DOUBLE), or `||` to join text")
    if group == "boolean":
        return _Misfit(came, f"numbers: write CAST({bound.spelled} AS INT)")
    return _Misfit(came, "numbers")


Reckoned = tuple["NDArray[Any]", "NDArray[np.bool_]"]
"""What came out, and where there is no result."""


def _is_whole(values: NDArray[Any]) -> bool:
    return bool(np.issubdtype(values.dtype, np.integer))


def _plus(left: NDArray[Any], right: NDArray[Any]) -> Reckoned:
    found = left + right
    return found, ((left ^ found) & (right ^ found)) < 0 if _is_whole(left) else np.zeros(len(left), np.bool_)


def _minus(left: NDArray[Any], right: NDArray[Any]) -> Reckoned:
    found = left - right
    return found, ((left ^ right) & (left ^ found)) < 0 if _is_whole(left) else np.zeros(len(left), np.bool_)


def _times(left: NDArray[Any], right: NDArray[Any]) -> Reckoned:
    found = left * right
    if not _is_whole(left):
        return found, np.zeros(len(left), np.bool_)
    least = np.iinfo(left.dtype).min
    by = np.where(left == 0, 1, left).astype(left.dtype)
    wrapped = (left != 0) & ((found // by != right) | ((left == -1) & (right == least)))
    return found, wrapped


def _over(left: NDArray[Any], right: NDArray[Any]) -> Reckoned:
    return left / right, right == 0


def _rest(left: NDArray[Any], right: NDArray[Any]) -> Reckoned:
    """Give the rest, with the sign of what was divided."""
    by = np.where(right == 0, 1, right).astype(right.dtype)
    return np.fmod(left, by), right == 0


RECKONED: dict[str, Callable[[Any, Any], Reckoned]] = {"+": _plus, "-": _minus, "*": _times, "/": _over, "%": _rest}


def _of_decimals(name: str, left: Bound, right: Bound) -> Bound:
    """Add, subtract or multiply decimals, where the result has room for every digit."""
    decimal = left if pa.types.is_decimal(left.kind) else right
    if name in {"/", "%"}:
        raise _Misfit(f"{_spelled(decimal.kind)} in `{name}`", f"doubles: write CAST({decimal.spelled} AS DOUBLE)")
    left, right = (_as(each, decimal.kind) if _group(each.kind) == "null" else each for each in (left, right))
    one, two = _digits(left, least=True), _digits(right, least=True)
    if name == "*":
        digits = Digits(one.all + two.all + 1, one.behind + two.behind)
    else:
        behind = max(one.behind, two.behind)
        digits = Digits(max(one.all - one.behind, two.all - two.behind) + behind + 1, behind)
    if digits.all > MOST_DIGITS:
        came = f"{_spelled(left.kind)} and {_spelled(right.kind)} in `{name}`, which need {digits.all} digits"
        raise _Misfit(came, f"at most {MOST_DIGITS}: write CAST({decimal.spelled} AS DOUBLE)")
    kind = pa.decimal128(*digits)
    first, second = _as(left, pa.decimal128(*one)), _as(right, pa.decimal128(*two))
    reckoned = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}[name]
    return Bound(kind, lambda batch: reckoned(first.run(batch), second.run(batch)).cast(kind), f"(… {name} …)")


def _shift(value: Bound, by: Node) -> Bound:
    if not isinstance(by, Literal) or not isinstance(by.value, int):
        raise TypeError(by)
    ticks = by.value
    if _group(value.kind) == "date":
        raise _Misfit("DATE and INTERVAL together", f"a timestamp: write CAST({value.spelled} AS TIMESTAMP)")
    time = _only("INTERVAL", value, "timestamp")

    def run(batch: pa.RecordBatch) -> pa.Array:
        array = time.run(batch)
        before = _values(array.cast(pa.int64()))
        with np.errstate(all="ignore"):
            after, overflowed = _plus(before, np.full(len(before), ticks, np.int64))
        return pa.array(after, pa.int64(), mask=_missing(array) | overflowed).cast(TIME)

    return Bound(TIME, run, "(… + INTERVAL …)")


def _alone(name: str, arguments: Sequence[Bound]) -> Bound:
    """Turn one number's sign, or take it off."""
    (value,) = arguments
    shown = "-" if name == "negative" else name
    group = _group(value.kind)
    if group not in {"integer", "float", "decimal"}:
        cast = f": write CAST({value.spelled} AS DOUBLE)" if "double" in CASTABLE[group] else ""
        raise _Misfit(f"{_spelled(value.kind)} in `{shown}`", f"a number{cast}")
    turn = np.negative if name == "negative" else np.abs

    def run(batch: pa.RecordBatch) -> pa.Array:
        array = value.run(batch)
        if group == "decimal":
            return (pc.negate if name == "negative" else pc.abs)(array).cast(value.kind)
        numbers = _values(array)
        no_result = numbers == np.iinfo(numbers.dtype).min if _is_whole(numbers) else np.zeros(len(numbers), np.bool_)
        with np.errstate(all="ignore"):
            return pa.array(turn(numbers), value.kind, mask=_missing(array) | no_result)

    return Bound(value.kind, run, f"{shown}(…)")


# ---------------------------------------------------------------------------------------------------------------------
# Text.


def _upper(name: str, arguments: Sequence[Bound]) -> Bound:
    text = _only(name, arguments[0], "string")

    def run(batch: pa.RecordBatch) -> pa.Array:
        array = text.run(batch)
        if pc.all(pc.string_is_ascii(array), skip_nulls=True).as_py() is not False:
            return pc.ascii_upper(array)
        spelled = (each.as_py() for each in array)
        return pa.array([None if each is None else each.translate(CAPITALS).upper() for each in spelled], pa.string())

    return Bound(pa.string(), run, "upper(…)")


def _length(name: str, arguments: Sequence[Bound]) -> Bound:
    (value,) = arguments
    if pa.types.is_binary(value.kind):
        return Bound(pa.int32(), lambda batch: pc.binary_length(value.run(batch)), "length(…)")
    text = _only(name, value, "string")
    return Bound(pa.int32(), lambda batch: pc.utf8_length(text.run(batch)), "length(…)")


def _trim(name: str, arguments: Sequence[Bound]) -> Bound:
    text = _only(name, arguments[0], "string")
    return Bound(pa.string(), lambda batch: pc.utf8_trim(text.run(batch), characters=" "), "trim(…)")


def _substring(name: str, arguments: Sequence[Bound]) -> Bound:
    text, place, *length = arguments
    text = _only(name, text, "string")
    start = max(_written(place) - 1, 0) if _written(place) >= 0 else _written(place)
    stop = start + max(_written(length[0]), 0) if length else None
    if stop is not None and start < 0 <= stop and stop != start:
        stop = None
    return Bound(
        pa.string(), lambda batch: pc.utf8_slice_codeunits(text.run(batch), start=start, stop=stop), "substring(…)"
    )


def _written(bound: Bound) -> int:
    if bound.literal is None or not isinstance(bound.literal.value, int):
        raise TypeError(bound)
    return bound.literal.value


def _concat(_: str, arguments: Sequence[Bound]) -> Bound:
    texts = [_only("||", each, "string") for each in arguments]

    def run(batch: pa.RecordBatch) -> pa.Array:
        return pc.binary_join_element_wise(*(each.run(batch) for each in texts), "", null_handling="emit_null")

    return Bound(pa.string(), run, "(… || …)")


CALLS: dict[str, Callable[[str, Sequence[Bound]], Bound]] = {
    **dict.fromkeys(COMPARED, _compared),
    **dict.fromkeys(RECKONED, _arithmetic),
    **dict.fromkeys(("and", "or"), _chained),
    **dict.fromkeys(("abs", "negative"), _alone),
    "case": _case,
    "coalesce": _coalesce,
    "concat": _concat,
    "in": _in,
    "is_null": _is_null,
    "length": _length,
    "like": _like,
    "not": _not,
    "nullif": _nullif,
    "substring": _substring,
    "trim": _trim,
    "upper": _upper,
}

# ---------------------------------------------------------------------------------------------------------------------
# Casts.


def _cast(value: Bound, to: str) -> Bound:
    group, kind = _group(value.kind), TARGETS[to]
    if to not in CASTABLE[group]:
        offered = ", ".join(name.upper() for name in CASTABLE[group])
        expected = f"a CAST of it to {offered}" if offered else "a column of another type: it cannot be cast"
        raise _Misfit(f"a CAST of {_spelled(value.kind)} to {_spelled(kind)}", expected)
    if group == "null" or value.kind == kind:
        return _as(value, kind)
    return Bound(kind, lambda batch: CASTING[group, to](value.run(batch)), f"CAST({value.spelled} AS {_spelled(kind)})")


def _narrowed(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Give integers as INT or BIGINT, null where they do not fit."""
    numbers, bounds = _values(array), np.iinfo(kind.to_pandas_dtype())
    unfit = (numbers < bounds.min) | (numbers > bounds.max)
    return pa.array(np.where(unfit, 0, numbers).astype(bounds.dtype), kind, mask=_missing(array) | unfit)


def _cut(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Cut what is behind the point of floats; null where the rest does not fit, as Java sees its largest integer."""
    numbers, bounds = _values(array).astype(np.float64), np.iinfo(kind.to_pandas_dtype())
    fits = (np.floor(numbers) <= float(bounds.max)) & (np.ceil(numbers) >= float(bounds.min))
    at_most = numbers >= float(bounds.max)
    with np.errstate(invalid="ignore"):
        whole = np.where(fits & ~at_most, numbers, 0).astype(np.int64)
    found = np.where(at_most, bounds.max, whole).astype(bounds.dtype)
    return pa.array(found, kind, mask=_missing(array) | ~fits)


def _decimal_cut(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Cut what is behind the point of decimals; null where the rest does not fit."""
    bounds = np.iinfo(kind.to_pandas_dtype())
    values = (None if each is None else int(each) for each in array.to_pylist())
    return pa.array([each if each is not None and bounds.min <= each <= bounds.max else None for each in values], kind)


def _read_integer(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Read integers in text; null where there is none, or it does not fit."""
    text = pc.utf8_trim(array, characters=_BLANK)
    text = pc.if_else(pc.match_substring_regex(text, _INTEGER), text, pa.scalar(None, pa.string()))
    digits = pc.utf8_ltrim(pc.utf8_ltrim(text, characters="+-"), characters="0")
    digits = pc.if_else(pc.less_equal(pc.utf8_length(digits), 19), digits, pa.scalar(None, pa.string()))
    digits = pc.if_else(pc.equal(digits, ""), "0", digits)
    size = pc.fill_null(digits.cast(pa.uint64()), 0).to_numpy(zero_copy_only=False)
    negative = np.asarray(pc.fill_null(pc.starts_with(text, "-"), fill_value=False))
    unfit = np.where(negative, size > 2**63, size >= 2**63)
    with np.errstate(over="ignore"):
        number = np.where(negative, np.negative(size), size).view(np.int64)
    return _narrowed(pa.array(number, pa.int64(), mask=_missing(digits) | unfit), kind)


def _read_double(array: pa.Array) -> pa.Array:
    """Read doubles in text as Java does, which takes `1d`, `0x1p3` and ` inf ` too; null where there is none."""
    texts = (None if each is None else each.strip(_BLANK_OF_JAVA) for each in array.to_pylist())
    return pa.array([None if text is None else _double(text) for text in texts], pa.float64())


def _double(text: str) -> float | None:
    if _FINITE.fullmatch(text):
        return float(text.rstrip("dDfF"))
    if _OF_JAVA.fullmatch(text) or _INFINITE.fullmatch(text):
        return float(text)
    if _HEXADECIMAL.fullmatch(text):
        try:
            return float.fromhex(re.sub(r"[dDfF]\Z", "", text) if re.search(r"[pP][+-]?[0-9]+[dDfF]\Z", text) else text)
        except OverflowError:
            return float("-inf" if text.startswith("-") else "inf")
    return None


def _read_boolean(array: pa.Array) -> pa.Array:
    text = pc.ascii_lower(pc.utf8_trim(array, characters=_BLANK))
    is_true, is_false = (pc.is_in(text, pa.array(words)) for words in (_TRUE, _FALSE))
    return pc.if_else(is_true, pa.scalar(value=True), pc.if_else(is_false, pa.scalar(value=False), None))


def _spelled_days(array: pa.Array) -> pa.Array:
    return _years(array, _values(array.cast(pa.int32())).astype("datetime64[D]"))


def _years(array: pa.Array, moments: NDArray[np.datetime64]) -> pa.Array:
    """Spell days or seconds as Java does, which gives years four digits, and beyond 9999 a plus."""
    spelled = pa.array(np.datetime_as_string(moments).astype(object), pa.string())
    beyond = pa.array(moments.astype("datetime64[Y]").astype(np.int64) > LAST_YEAR - FIRST_YEAR)
    spelled = pc.if_else(beyond, pc.binary_join_element_wise("+", spelled, ""), spelled)
    spelled = pc.replace_substring_regex(spelled, r"^-([0-9]{3})-", r"-0\1-")
    return pc.if_else(array.is_valid(), pc.replace_substring(spelled, "T", " "), pa.scalar(None, pa.string()))


def _spelled_times(array: pa.Array) -> pa.Array:
    seconds, ticks = np.divmod(_values(array.cast(pa.int64())), _SECOND)
    fraction = pc.utf8_rtrim(pc.utf8_lpad(pa.array(ticks).cast(pa.string()), 6, "0"), characters="0")
    fraction = pc.if_else(pa.array(ticks == 0), "", pc.binary_join_element_wise(".", fraction, ""))
    return pc.binary_join_element_wise(_years(array, seconds.astype("datetime64[s]")), fraction, "")


def _midnights(array: pa.Array) -> pa.Array:
    days = _values(array.cast(pa.int32())).astype(np.int64)
    unfit = np.abs(days) > INT64.max // _DAY
    return pa.array(np.where(unfit, 0, days) * _DAY, pa.int64(), mask=_missing(array) | unfit).cast(TIME)


def _in_seconds(array: pa.Array) -> pa.Array:
    return pa.array(_values(array.cast(pa.int64())) // _SECOND, pa.int64(), mask=_missing(array))


def _in_fractions(array: pa.Array) -> pa.Array:
    return pa.array(_values(array.cast(pa.int64())) / float(_SECOND), pa.float64(), mask=_missing(array))


def _days(array: pa.Array) -> pa.Array:
    days = (_values(array.cast(pa.int64())) // _DAY).astype(np.int32)
    return pa.array(days, pa.int32(), mask=_missing(array)).cast(pa.date32())


def _is_not_zero(array: pa.Array) -> pa.Array:
    return pa.array(_values(array) != 0, pa.bool_(), mask=_missing(array))


CASTING: dict[tuple[str, str], Callable[[pa.Array], pa.Array]] = {
    ("integer", "int"): lambda array: _narrowed(array, pa.int32()),
    ("integer", "bigint"): lambda array: array.cast(pa.int64()),
    ("integer", "double"): lambda array: array.cast(pa.float64(), safe=False),
    ("integer", "string"): lambda array: array.cast(pa.string()),
    ("integer", "boolean"): _is_not_zero,
    ("float", "int"): lambda array: _cut(array, pa.int32()),
    ("float", "bigint"): lambda array: _cut(array, pa.int64()),
    ("float", "double"): lambda array: array.cast(pa.float64()),
    ("float", "boolean"): _is_not_zero,
    ("decimal", "int"): lambda array: _decimal_cut(array, pa.int32()),
    ("decimal", "bigint"): lambda array: _decimal_cut(array, pa.int64()),
    ("decimal", "double"): _decimal_to_double,
    ("boolean", "int"): lambda array: array.cast(pa.int32()),
    ("boolean", "bigint"): lambda array: array.cast(pa.int64()),
    ("boolean", "double"): lambda array: array.cast(pa.int8()).cast(pa.float64()),
    ("boolean", "string"): lambda array: array.cast(pa.string()),
    ("string", "int"): lambda array: _read_integer(array, pa.int32()),
    ("string", "bigint"): lambda array: _read_integer(array, pa.int64()),
    ("string", "double"): _read_double,
    ("string", "boolean"): _read_boolean,
    ("date", "string"): _spelled_days,
    ("date", "timestamp"): _midnights,
    ("timestamp", "bigint"): _in_seconds,
    ("timestamp", "double"): _in_fractions,
    ("timestamp", "string"): _spelled_times,
    ("timestamp", "date"): _days,
}
