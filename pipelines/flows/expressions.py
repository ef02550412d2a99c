"""Expressions over the columns of one row: the part of Spark SQL that every engine can give with the same bytes.

What they give for rows is in `pipelines/engine/tasks/expressions.py`.
"""

from __future__ import annotations

import datetime as dt
import re
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, lru_cache
from textwrap import shorten
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from pipelines.flows.errors import FlowsError, nearest, one_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlglot import exp
    from sqlglot.tokenizer_core import Token

MOST_DEEP = 100
"""How many operators may stand inside each other; a chain of AND or of OR counts as one."""
MOST_DIGITS = 38
MOST_WRITTEN = 1_000
"""Characters of a number: Python refuses to read one of several thousand digits."""
LONGEST_QUOTED = 200
"""How many characters of an expression an error repeats."""
LONGEST_PATTERN = 1_000
"""Characters of a pattern: it becomes a program, and those have a largest size."""
INT = range(-(2**31), 2**31)
BIGINT = range(-(2**63), 2**63)


class Takes(NamedTuple):
    """What a function is called inside, and how many arguments it takes."""

    name: str
    least: int
    most: int | None


FUNCTIONS = {
    "abs": Takes("abs", 1, 1),
    "coalesce": Takes("coalesce", 1, None),
    "concat": Takes("concat", 1, None),
    "if": Takes("case", 3, 3),
    "length": Takes("length", 1, 1),
    "nullif": Takes("nullif", 2, 2),
    "substr": Takes("substring", 2, 3),
    "substring": Takes("substring", 2, 3),
    "trim": Takes("trim", 1, 1),
    "upper": Takes("upper", 1, 1),
}
CASTS = {
    "bigint": "bigint",
    "boolean": "boolean",
    "date": "date",
    "double": "double",
    "int": "int",
    "integer": "int",
    "long": "bigint",
    "string": "string",
    "timestamp": "timestamp",
}
"""Types a CAST may name, and what they are called inside."""
INSTEAD = {
    "cast": "cast",
    "char_length": "length",
    "character_length": "length",
    "ifnull": "coalesce",
    "lcase": "upper",
    "len": "length",
    "lower": "upper",
    "nvl": "coalesce",
    "try_add": "+",
    "try_divide": "/",
    "try_mod": "%",
    "try_multiply": "*",
    "try_subtract": "-",
    "ucase": "upper",
}
"""What to offer for functions whose name alone does not lead there."""
UNSTEADY = frozenset(
    (
        *("curdate", "current_date", "current_time", "current_timestamp", "current_timezone", "localtime"),
        *("localtimestamp", "now", "sysdate", "systimestamp", "unix_timestamp"),
        *("rand", "randn", "random", "randstr", "shuffle", "uniform", "uuid", "sample"),
        *("current_catalog", "current_database", "current_schema", "current_user", "session_user", "user", "version"),
        *("input_file_block_length", "input_file_block_start", "input_file_name", "monotonically_increasing_id"),
        *("java_method", "reflect", "spark_partition_id", "try_reflect"),
    )
)
"""Functions that can give something else on the next run."""
OVER_MANY = frozenset(
    (
        *("any", "any_value", "approx_count_distinct", "array_agg", "avg", "bool_and", "bool_or", "collect_list"),
        *("collect_set", "count", "count_if", "cume_dist", "dense_rank", "every", "explode", "first", "first_value"),
        *("lag", "last", "last_value", "lead", "listagg", "max", "max_by", "mean", "median", "min", "min_by", "mode"),
        *("ntile", "percent_rank", "percentile", "rank", "row_number", "some", "std", "stddev", "string_agg", "sum"),
        *("try_avg", "try_sum", "var_pop", "variance"),
    )
)
"""Functions over many rows, or into many."""
UNITS = {"second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000, "day": 86_400_000_000}
"""Ticks in each unit an INTERVAL may have."""

STEADY = (
    "what is the same on every run, for the same input must give the same rows: use `event_time`, `arrival` or another "
    "column"
)
ONE_ROW = "an expression over the columns of one row: there are no aggregates, windows, subqueries or `*`"
SUPPORTED = (
    "columns, literals, `=` `<>` `<` `<=` `>` `>=` `<=>`, AND, OR, NOT, IS NULL, IN, BETWEEN, LIKE, `+` `-` `*` `/` "
    "`%` `||`, CASE, CAST, or a function: " + ", ".join(sorted(FUNCTIONS))
)

STEADFAST = frozenset(("=", "<>", "<", "<=", ">", ">=", "<=>", "and", "or", "not", "is_null", "in", "like"))
"""What Spark, asked in the very words, never stops a job for, and gives the same of every value."""

_COMPARED = {"EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">=", "NullSafeEQ": "<=>"}
_ARITHMETIC = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "Mod": "%"}
_CHAINED = {"And": "and", "Or": "or"}
_TRUTHS = frozenset((*_COMPARED, *_CHAINED, "Not", "Is", "In", "Between", "Like"))
_OVER_MANY = frozenset(("Window", "Subquery", "Select", "Exists", "Star", "Distinct", "IgnoreNulls", "RespectNulls"))
_BARE = frozenset(("current_time", "current_user", "localtimestamp", "session_user"))
"""Those of UNSTEADY that Spark calls without parentheses too, and that come as columns."""
_INTEGER = re.compile(r"[0-9]+")
_DECIMAL = re.compile(r"[0-9]+\.[0-9]*|\.[0-9]+")
_DOUBLE = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+")
_SIGNED = re.compile(r"[+-]?[0-9]{1,19}")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = "\\'\"%_ntr"
_PATTERN = re.compile(r"(?:[^\\]|\\[\\%_])*", re.DOTALL)
_DAY = re.compile(r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})")
_INSTANT = re.compile(
    r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[ T](?P<time>[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?)"
    r"(?:Z|(?P<sign>[+-])(?P<hours>0[0-9]|1[0-7]):(?P<minutes>[0-5][0-9]))?)?"
)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(eq=False)
class ExpressionError(FlowsError, ValueError):
    """An expression that cannot be read, or says what not every engine can say the same way.

    >>> print(ExpressionError("uper(city)", "the function `uper`", "a function that is offered", "upper"))
    `uper(city)` has the function `uper`, expected a function that is offered; did you mean `upper`?
    """

    text: str
    """The whole expression, as it was given."""
    came: str
    """What stands there."""
    expected: str
    """What should stand there."""
    nearest: str | None = None
    """The right word that looks most like what came, where there is one."""

    def __str__(self) -> str:
        hint = f"; did you mean `{self.nearest}`?" if self.nearest else ""
        return (
            f"`{shorten(self.text, LONGEST_QUOTED, placeholder=' …')}` has {self.came}, expected {self.expected}{hint}"
        )


@dataclass(frozen=True)
class Column:
    """A column, or a field inside a struct."""

    name: str
    fields: tuple[str, ...] = ()
    """The way from the column down to the field."""


@dataclass(frozen=True)
class Literal:
    """A value that stands in the text."""

    kind: str
    """`null`, `boolean`, `int`, `bigint`, `decimal`, `double`, `string`, `date`, `timestamp` or `interval`."""
    value: bool | int | float | str | Decimal | None
    """A date in days since 1970, a timestamp and an interval in ticks."""


@dataclass(frozen=True)
class Cast:
    """A value as another type."""

    argument: Node
    to: str
    """One of the values of `CASTS`."""


@dataclass(frozen=True)
class Call:
    """An operator or function over values.

    `case` has a condition and a value by turns, and the value for all else last; `shift` a timestamp and an interval;
    `in` the value and then the literals; `and`, `or`, `coalesce` and `concat` any number; all else as written.
    """

    name: str
    arguments: tuple[Node, ...]


Node = Column | Literal | Cast | Call


@dataclass(frozen=True)
class Expression:
    """An expression that was read."""

    text: str
    """As it was given."""
    root: Node
    columns: tuple[str, ...]
    """The columns it needs, each once, in the order in which they stand there."""


@lru_cache
def parse_expression(text: str) -> Expression:
    """Read an expression.

    >>> parse_expression("delay > 15 AND carrier <> 'UA'").columns
    ('delay', 'carrier')
    >>> parse_expression("a + 1").root
    Call(name='+', arguments=(Column(name='a', fields=()), Literal(kind='int', value=1)))

    Raises:
        ExpressionError: it cannot be read, or has something that is not offered.
    """
    root = _Reading(text).root()
    return Expression(text, root, tuple(dict.fromkeys(_columns(root))))


def is_for_spark(expression: Expression) -> bool:
    """Say whether Spark can be asked the very words: values are compared, and nothing is computed of them.

    >>> is_for_spark(parse_expression("a > 1 AND b IN ('x', 'y')")), is_for_spark(parse_expression("a + 1 > b"))
    (True, False)
    """
    return _is_for_spark(expression.root)


def _is_for_spark(node: Node) -> bool:
    if isinstance(node, Call):
        return node.name in STEADFAST and all(map(_is_for_spark, node.arguments))
    return isinstance(node, Literal) or (isinstance(node, Column) and not node.fields)


def _columns(node: Node) -> Iterator[str]:
    if isinstance(node, Column):
        yield node.name
    elif isinstance(node, Cast):
        yield from _columns(node.argument)
    elif isinstance(node, Call):
        for argument in node.arguments:
            yield from _columns(argument)


@cache
def _parser() -> type[Any]:
    """Give a parser that leaves functions under the names that were written, and gives none a syntax of its own."""
    from sqlglot.parsers.spark import SparkParser

    class Plain(SparkParser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {"CAST": SparkParser.FUNCTION_PARSERS["CAST"]}
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: SparkParser.NO_PAREN_FUNCTION_PARSERS[name] for name in ("CASE", "IF")
        }

        def _warn_unsupported(self) -> None:
            """Write no log: what is no expression is refused by name."""

    return Plain


def _is_whole(spelled: str) -> bool:
    return _SIGNED.fullmatch(spelled) is not None and len(spelled) <= MOST_WRITTEN


def _kind(node: exp.Expr) -> str:
    return type(node).__name__


def _bare(node: exp.Expr) -> exp.Expr:
    """Take the parentheses off."""
    while _kind(node) == "Paren":
        node = node.this
    return node


class _Reading:
    """One expression being read."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._forms = {
            "Column": self._column,
            "Literal": self._literal,
            "Boolean": lambda node, _: Literal("boolean", bool(node.this)),
            "Null": lambda _node, _depth: Literal("null", None),
            "Neg": self._negative,
            "Not": lambda node, depth: Call("not", (self._node(node.this, depth),)),
            "Is": self._is,
            "In": self._in,
            "Between": self._between,
            "Like": self._like,
            "Case": self._case,
            "If": lambda node, depth: self._function("if", list(node.args.values()), depth),
            "Anonymous": lambda node, depth: self._function(node.name, node.expressions, depth),
            "DPipe": lambda node, depth: Call("concat", self._both(node, depth)),
            "Cast": self._typed_literal,
            "TryCast": self._cast,
            **dict.fromkeys(_COMPARED, self._compared),
            **dict.fromkeys(_ARITHMETIC, self._arithmetic),
            **dict.fromkeys(_CHAINED, self._chained),
        }

    def root(self) -> Node:
        """Read it all."""
        try:
            found = self._parsed()
            return self._node(found, 0)
        except RecursionError:
            raise self._too_deep() from None

    def _parsed(self) -> exp.Expr:
        from sqlglot import exp
        from sqlglot.dialects.spark import Spark
        from sqlglot.errors import ParseError, TokenError

        try:
            tokens = Spark().tokenize(self._text)
            self._check_tokens(tokens)
            found = _parser()(dialect=Spark()).parse_into(exp.Condition, tokens, self._text)
        except TokenError:
            raise self._error("text that cannot be read", "Spark SQL: is a quote not closed?") from None
        except ParseError as error:
            at = error.errors[0] if error.errors else {}
            came = f"`{at['highlight']}` at character {at['col']}" if at.get("highlight") else "an end too early"
            raise self._error(f"a syntax error at {came}", "a Spark SQL expression") from None
        root: exp.Expr | None = found[0] if found else None
        if root is None:
            raise self._error("nothing in it", "a Spark SQL expression")
        return root

    def _error(self, came: str, expected: str, right: str | None = None) -> ExpressionError:
        return ExpressionError(self._text, came, expected, right)

    def _too_deep(self) -> ExpressionError:
        return self._error(f"more than {MOST_DEEP} operators inside each other", "a flatter one")

    def _check_tokens(self, tokens: list[Token]) -> None:
        """Refuse what the tree no longer shows."""
        from sqlglot.tokenizer_core import TokenType

        open_now = 0
        for at, token in enumerate(tokens):
            open_now += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
            raw = self._text[token.start : token.end + 1]
            if token.token_type == TokenType.SEMICOLON:
                raise self._error("a `;`", "one expression without an end mark")
            if token.token_type == TokenType.DCOLON:
                raise self._error("a cast by `::` or by a letter behind a number", "CAST(… AS …)")
            if token.token_type == TokenType.STRING and raw.startswith('"'):
                raise self._error(f"`{raw}` in double quotes", "'text' in single quotes, or `column` in backticks")
            if token.token_type == TokenType.STRING:
                self._check_escapes(raw)
            to = tokens[at + 1].text if token.token_type == TokenType.ALIAS and at + 1 < len(tokens) else "int"
            if to.lower() not in CASTS:
                raise self._error(
                    f"`AS {to}`", f"AS in a CAST, and {one_of(sorted(set(CASTS.values())))}", nearest(to, CASTS)
                )
        if open_now > 0:
            raise self._error("a `(` that is not closed", "a `)` for each `(`")

    def _check_escapes(self, raw: str) -> None:
        for escaped in _ESCAPED.finditer(raw):
            if escaped[1] not in _ESCAPES:
                expected = "one of " + " ".join(f"\\{each}" for each in _ESCAPES)
                raise self._error(f"the escape `{escaped[0]}` in a string", expected)

    def _node(self, node: exp.Expr, depth: int) -> Node:
        node = _bare(node)
        if depth > MOST_DEEP:
            raise self._too_deep()
        kind = _kind(node)
        if kind in self._forms:
            return self._forms[kind](node, depth + 1)
        if kind in _OVER_MANY:
            raise self._error(f"`{self._spelled(node)}`", ONE_ROW)
        if kind == "Interval":
            raise self._error("an INTERVAL that stands alone", "an INTERVAL added to a timestamp, or taken from one")
        if kind == "Concat":
            raise self._error("two strings side by side", r"one string, with \' for a quote inside it")
        if self._word(node) in UNSTEADY:
            raise self._error(f"`{self._spelled(node)}`", STEADY)
        raise self._error(f"`{self._spelled(node)}`", SUPPORTED)

    def _spelled(self, node: exp.Expr) -> str:
        return node.sql(dialect="spark")

    def _word(self, node: exp.Expr) -> str:
        """Give `current_date` for CurrentDate, which may stand without parentheses."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", _kind(node)).lower()

    def _operand(self, node: exp.Expr, depth: int) -> Node:
        """Read what stands beside an operator, where Spark and others differ about what binds closer."""
        if _kind(node) in _TRUTHS:
            raise self._error(
                f"`{self._spelled(node)}` beside another operator", f"({self._spelled(node)}) with parentheses"
            )
        return self._node(node, depth)

    def _both(self, node: exp.Expr, depth: int) -> tuple[Node, Node]:
        return self._operand(node.this, depth), self._operand(node.expression, depth)

    def _column(self, node: exp.Expr, _: int) -> Node:
        parts = list(node.parts)  # type: ignore[attr-defined] # the caller saw that it is a Column
        if any(_kind(part) != "Identifier" for part in parts):
            raise self._error(f"`{self._spelled(node)}`", ONE_ROW)
        first, *fields = (str(part.this) for part in parts)
        if not fields and first.lower() in _BARE and not parts[0].args.get("quoted"):
            raise self._error(f"`{first}`", STEADY)
        return Column(first, tuple(fields))

    def _literal(self, node: exp.Expr, _: int, sign: str = "") -> Node:
        spelled = str(node.this)
        if node.is_string:
            return Literal("string", spelled)
        if _INTEGER.fullmatch(spelled) and len(spelled) <= MOST_WRITTEN:
            whole = int(sign + spelled)
            if whole in BIGINT:
                return Literal("int" if whole in INT else "bigint", whole)
            return self._decimal(sign + spelled)
        if _INTEGER.fullmatch(spelled) or _DECIMAL.fullmatch(spelled):
            return self._decimal(sign + spelled)
        if _DOUBLE.fullmatch(spelled):
            return Literal("double", float(sign + spelled))
        raise self._error(f"the number `{spelled}`", "an integer, a decimal such as 1.5, or a double such as 1e3")

    def _decimal(self, spelled: str) -> Literal:
        if len(spelled) > MOST_WRITTEN:
            raise self._error(f"a number of {len(spelled):,} characters", f"at most {MOST_DIGITS} digits")
        value = Decimal(spelled)
        _, digits, exponent = value.as_tuple()
        if max(len(digits), -int(exponent)) > MOST_DIGITS:
            raise self._error(f"the number `{spelled}`", f"at most {MOST_DIGITS} digits")
        return Literal("decimal", value)

    def _negative(self, node: exp.Expr, depth: int) -> Node:
        if _kind(node.this) == "Literal" and not node.this.is_string:
            return self._literal(node.this, depth, "-")
        return Call("negative", (self._operand(node.this, depth),))

    def _compared(self, node: exp.Expr, depth: int) -> Node:
        return Call(_COMPARED[_kind(node)], self._both(node, depth))

    def _chained(self, node: exp.Expr, depth: int) -> Node:
        """Read a chain as one call, however long it is."""
        kind, parts = _kind(node), list[Any]()
        while _kind(node) == kind:
            parts.append(node.expression)
            node = node.this
        return Call(_CHAINED[kind], tuple(self._node(part, depth) for part in [node, *reversed(parts)]))

    def _arithmetic(self, node: exp.Expr, depth: int) -> Node:
        name = _ARITHMETIC[_kind(node)]
        left, right = self._interval(node.this), self._interval(node.expression)
        if left is not None and right is not None:
            raise self._error("an INTERVAL that stands alone", "an INTERVAL added to a timestamp, or taken from one")
        if right is not None and name in "+-":
            ticks = right if name == "+" else -right
            return Call("shift", (self._operand(node.this, depth), Literal("interval", ticks)))
        if left is not None and name == "+":
            return Call("shift", (self._operand(node.expression, depth), Literal("interval", left)))
        return Call(name, self._both(node, depth))

    def _interval(self, node: exp.Expr) -> int | None:
        """Give an interval, or a sum of some, in ticks; None where it is something else."""
        node = _bare(node)
        if _kind(node) == "Add":
            first = self._interval(node.this)
            second = None if first is None else self._interval(node.expression)
            return None if first is None or second is None else first + second
        if _kind(node) != "Interval":
            return None
        unit = node.args.get("unit")
        word = "" if unit is None else str(unit.this).lower().removesuffix("s")
        if _kind(node.this) != "Literal" or not _is_whole(str(node.this.this)) or word not in UNITS:
            expected = f"a whole number and {one_of(UNITS)}"
            came = f"`{self._spelled(node)[:LONGEST_QUOTED]}`"
            raise self._error(came, expected, nearest(word, UNITS) if word not in UNITS else None)
        ticks = int(node.this.this) * UNITS[word]
        if ticks not in BIGINT:
            raise self._error(f"`{self._spelled(node)}`", "at most 292,000 years")
        return ticks

    def _is(self, node: exp.Expr, depth: int) -> Node:
        if _kind(node.expression) != "Null":
            raise self._error(f"`{self._spelled(node)}`", "IS NULL, IS NOT NULL, or `<=>` with true or false")
        return Call("is_null", (self._operand(node.this, depth),))

    def _in(self, node: exp.Expr, depth: int) -> Node:
        if node.args.get("query") is not None:
            raise self._error(f"`{self._spelled(node)}`", ONE_ROW)
        offered = [self._node(each, depth) for each in node.expressions]
        if not offered or not all(isinstance(each, Literal) for each in offered):
            raise self._error(f"`{self._spelled(node)}`", "IN with literals, or `=` and OR for columns")
        return Call("in", (self._operand(node.this, depth), *offered))

    def _between(self, node: exp.Expr, depth: int) -> Node:
        if node.args.get("symmetric"):
            raise self._error(f"`{self._spelled(node)}`", SUPPORTED)
        value, low, high = (self._operand(node.args[part], depth) for part in ("this", "low", "high"))
        return Call("and", (Call(">=", (value, low)), Call("<=", (value, high))))

    def _like(self, node: exp.Expr, depth: int) -> Node:
        value, pattern = self._operand(node.this, depth), self._node(node.expression, depth)
        if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
            raise self._error(f"`{self._spelled(node)}`", "LIKE with a pattern that stands there as 'text'")
        if not _PATTERN.fullmatch(pattern.value):
            raise self._error(f"the pattern `{pattern.value}`", r"`\` only in front of `%`, `_` or another `\`")
        if len(pattern.value) > LONGEST_PATTERN:
            came = f"a pattern of {len(pattern.value):,} characters"
            raise self._error(came, f"LIKE with a pattern of {LONGEST_PATTERN:,} at most")
        found = Call("like", (value, pattern))
        return Call("not", (found,)) if node.args.get("negate") else found

    def _case(self, node: exp.Expr, depth: int) -> Node:
        parts: list[Node] = []
        base = node.this
        for when in node.args["ifs"]:
            if base is None:
                parts.append(self._node(when.this, depth))
            else:
                parts.append(Call("=", (self._operand(base, depth), self._operand(when.this, depth))))
            parts.append(self._node(when.args["true"], depth))
        default = node.args.get("default")
        return Call("case", (*parts, Literal("null", None) if default is None else self._node(default, depth)))

    def _function(self, written: str, given: list[exp.Expr | None], depth: int) -> Node:
        name = written.lower()
        if name in UNSTEADY:
            raise self._error(f"`{written}()`", STEADY)
        if name in OVER_MANY:
            raise self._error(f"`{written}()`", ONE_ROW)
        if name not in FUNCTIONS:
            if name in CASTS:
                raise self._error(f"the function `{written}`", f"CAST(… AS {CASTS[name].upper()})")
            close = INSTEAD.get(name) or nearest(name, FUNCTIONS)
            raise self._error(f"the function `{written}`", one_of(sorted(FUNCTIONS)), close)
        takes, arguments = FUNCTIONS[name], [each for each in given if each is not None]
        if len(arguments) < takes.least or (takes.most is not None and len(arguments) > takes.most):
            most = " or more" if takes.most is None else f" to {takes.most}" if takes.most > takes.least else ""
            raise self._error(f"`{written}` with {len(arguments)} arguments", f"{takes.least}{most}")
        found = tuple(self._node(each, depth) for each in arguments)
        if takes.name == "substring":
            for each in found[1:]:
                if not (isinstance(each, Literal) and each.kind == "int"):
                    raise self._error(f"`{written}` with a place that is computed", "an integer that stands there")
        return Call(takes.name, found)

    def _cast(self, node: exp.Expr, depth: int) -> Node:
        from sqlglot.expressions import DataType

        names = {
            DataType.Type.BIGINT: "bigint",
            DataType.Type.BOOLEAN: "boolean",
            DataType.Type.DATE: "date",
            DataType.Type.DOUBLE: "double",
            DataType.Type.INT: "int",
            DataType.Type.TEXT: "string",
            DataType.Type.TIMESTAMPTZ: "timestamp",
        }
        to, argument = node.args["to"], self._node(node.this, depth)
        if to.this not in names or to.expressions or node.args.get("format"):
            raise self._error(f"`{self._spelled(node)}`", f"a CAST to {one_of(sorted(set(CASTS.values())))}")
        name = names[to.this]
        if name in {"date", "timestamp"} and isinstance(argument, Literal) and isinstance(argument.value, str):
            return self._time(argument.value, name)
        return Cast(argument, name)

    def _typed_literal(self, node: exp.Expr, _: int) -> Node:
        from sqlglot.expressions import DataType

        names = {DataType.Type.DATE: "date", DataType.Type.TIMESTAMPTZ: "timestamp"}
        to = node.args["to"].this
        if to not in names or _kind(node.this) != "Literal" or not node.this.is_string:
            raise self._error(f"`{self._spelled(node)}`", "DATE '2024-01-31' or TIMESTAMP '2024-01-31 12:00:00'")
        return self._time(str(node.this.this), names[to])

    def _time(self, spelled: str, name: str) -> Literal:
        """Read a date or, as UTC, a timestamp."""
        found = (_INSTANT if name == "timestamp" else _DAY).fullmatch(spelled)
        at = None
        with suppress(ValueError):
            time = found["time"] if found is not None and name == "timestamp" else None
            at = None if found is None else dt.datetime.fromisoformat(f"{found['day']}T{time or '00:00'}+00:00")
        if found is None or at is None:
            shape = "'2024-01-31'" if name == "date" else "'2024-01-31 12:00:00', or with Z or +01:00 behind it"
            raise self._error(f"{name.upper()} '{spelled}'", f"{name.upper()} {shape}")
        if name == "date":
            return Literal("date", (at - _EPOCH).days)
        ticks = (at - _EPOCH) // dt.timedelta(microseconds=1)
        if found["sign"]:
            ahead = int(found["hours"]) * UNITS["hour"] + int(found["minutes"]) * UNITS["minute"]
            ticks += -ahead if found["sign"] == "+" else ahead
        return Literal("timestamp", ticks)
