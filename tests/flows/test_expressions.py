from __future__ import annotations

import pickle
import subprocess
import sys
from decimal import Decimal

import pytest

from pipelines.flows.errors import FlowsError
from pipelines.flows.expressions import (
    MOST_DEEP,
    ONE_ROW,
    STEADY,
    Call,
    Cast,
    Column,
    ExpressionError,
    Literal,
    parse_expression,
)

A, B = Column("a"), Column("b")
ONE = Literal("int", 1)


@pytest.mark.parametrize(
    ("text", "root"),
    [
        ("a.b.c", Column("a", ("b", "c"))),
        ("`a.b`.`c d`", Column("a.b", ("c d",))),
        ("user = 'x'", Call("=", (Column("user"), Literal("string", "x")))),
        ("date", Column("date")),
        ("-1", Literal("int", -1)),
        ("-2147483649", Literal("bigint", -2147483649)),
        ("9223372036854775808", Literal("decimal", Decimal(2**63))),
        ("0.05", Literal("decimal", Decimal("0.05"))),
        ("1e3", Literal("double", 1000.0)),
        (r"'a\'b\n'", Literal("string", "a'b\n")),
        ("DATE '1970-01-02'", Literal("date", 1)),
        ("TIMESTAMP '1970-01-01 00:00:00.000001'", Literal("timestamp", 1)),
        ("TIMESTAMP '1970-01-01T01:00+01:00'", Literal("timestamp", 0)),
        ("CAST('1970-01-02' AS DATE)", Literal("date", 1)),
        ("a OR b OR a", Call("or", (A, B, A))),
        ("a = 1 AND NOT b", Call("and", (Call("=", (A, ONE)), Call("not", (B,))))),
        ("NOT a = 1", Call("not", (Call("=", (A, ONE)),))),
        ("a - 1 - b", Call("-", (Call("-", (A, ONE)), B))),
        ("a + 1 * b", Call("+", (A, Call("*", (ONE, B))))),
        ("a NOT BETWEEN 1 AND b", Call("not", (Call("and", (Call(">=", (A, ONE)), Call("<=", (A, B)))),))),
        ("CASE a WHEN 1 THEN b END", Call("case", (Call("=", (A, ONE)), B, Literal("null", None)))),
        ("a - INTERVAL 1 MINUTE 1 SECOND", Call("shift", (A, Literal("interval", -61_000_000)))),
        ("CAST(a AS long)", Cast(A, "bigint")),
        ("Upper(a) -- in capitals", Call("upper", (A,))),
        ("(((a)))", A),
    ],
)
def test_an_expression_is_read(text: str, root: object) -> None:
    read = parse_expression(text)

    assert (read.root, read.text) == (root, text)
    assert pickle.loads(pickle.dumps(read)) == read
    assert hash(read) == hash(parse_expression(text))


def test_columns_are_named_once_in_order() -> None:
    assert parse_expression("CASE WHEN c.x > 1 THEN CAST(b AS INT) ELSE coalesce(a, c.y, 1) END").columns == (
        "c",
        "b",
        "a",
    )
    assert parse_expression("1 = 1").columns == ()


@pytest.mark.parametrize("name", ["rand", "randn", "random", "uuid", "shuffle", "now", "monotonically_increasing_id"])
@pytest.mark.parametrize("shape", ["{}()", "{}( 1 ) > 0", "a = 1 OR upper({}()) = 'x'"])
def test_what_differs_from_run_to_run_is_refused(name: str, shape: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_expression(shape.format(name))

    assert caught.value.came == f"`{name}()`"
    assert caught.value.expected == STEADY
    for said in ("the same on every run", "same input must give the same rows", "`event_time`", "`arrival`"):
        assert said in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "current_timestamp",
            "CURRENT_TIMESTAMP()",
            "current_date",
            "current_date()",
            "localtimestamp",
            "CURRENT_USER",
        ),
        *(
            "input_file_name()",
            "spark_partition_id()",
            "unix_timestamp()",
            "arrival > current_timestamp - INTERVAL 1 DAY",
        ),
    ],
)
def test_clocks_and_places_are_refused(text: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_expression(text)
    assert caught.value.expected == STEADY


@pytest.mark.parametrize(
    "text",
    [
        *(
            "count(*)",
            "sum(a) > 1",
            "MAX(a)",
            "row_number() OVER (ORDER BY a)",
            "lag(a) OVER (PARTITION BY b ORDER BY a)",
        ),
        *("(SELECT 1)", "a IN (SELECT b FROM t)", "EXISTS (SELECT 1)", "*", "t.*", "explode(a)", "upper(a) OVER ()"),
    ],
)
def test_what_needs_other_rows_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_expression(text)
    assert caught.value.expected == ONE_ROW


@pytest.mark.parametrize(
    ("text", "came", "expected", "nearest"),
    [
        ("uper(a)", "the function `uper`", "`upper`", "upper"),
        ("SUBSTRIN(a, 1)", "the function `SUBSTRIN`", "`substring`", "substring"),
        ("nvl(a, 1)", "the function `nvl`", "`coalesce`", "coalesce"),
        ("lower(a)", "the function `lower`", "`upper`", "upper"),
        ("try_add(a, 1)", "the function `try_add`", "one of `abs`", "+"),
        ("sqrt(a)", "the function `sqrt`", "one of `abs`", None),
        ("date(a)", "the function `date`", "CAST(… AS DATE)", None),
        ("if(a, 1)", "`if` with 2 arguments", "3", None),
        ("abs()", "`abs` with 0 arguments", "1", None),
        ("concat()", "`concat` with 0 arguments", "1 or more", None),
        ("substring(a)", "`substring` with 1 arguments", "2 to 3", None),
        ("substring(a, b)", "`substring` with a place that is computed", "an integer that stands there", None),
        ("a b", "a syntax error at `b` at character 3", "a Spark SQL expression", None),
        ("CAST(a AS decimal(10, 2))", "`AS decimal`", "one of `bigint`", None),
        ("CAST(a AS varchar(3))", "`AS varchar`", "`string`", None),
        ("CAST(a AS bigin)", "`AS bigin`", "`bigint`", "bigint"),
        ("a::int", "a cast by `::`", "CAST(… AS …)", None),
        ("10L + a", "by a letter behind a number", "CAST(… AS …)", None),
        ("a = b IN (1)", "`b IN (1)` beside another operator", "(b IN (1)) with parentheses", None),
        ("a < b = b", "`a < b` beside another operator", "(a < b) with parentheses", None),
        ("a = NOT b", "`NOT b` beside another operator", "(NOT b) with parentheses", None),
        ("a IN (b)", "`a IN (b)`", "IN with literals", None),
        ("a IN ()", "`a IN ()`", "IN with literals", None),
        ("a IS TRUE", "`a IS TRUE`", "`<=>` with true", None),
        ("a LIKE b", "`a LIKE b`", "a pattern that stands there", None),
        (r"a LIKE 'x\\y'", r"the pattern `x\y`", r"in front of `%`, `_`", None),
        (r"a LIKE 'x\\'", "the pattern `x\\`", r"in front of `%`, `_`", None),
        (r"a = 'x\q'", r"the escape `\q` in a string", r"one of \\", None),
        ("'it''s'", "two strings side by side", r"\' for a quote", None),
        ('a = "b"', '`"b"` in double quotes', "'text' in single quotes", None),
        (f"a LIKE '{'_' * 200_000}'", "a pattern of 200,000 characters", "1,000 at most", None),
        ("a RLIKE 'x'", "`a RLIKE 'x'`", "LIKE", None),
        ("a ILIKE 'x'", "`a ILIKE 'x'`", "LIKE", None),
        ("a[0]", "`a[0]`", "columns, literals", None),
        ("a DIV 2", "`a DIV 2`", "`/`", None),
        ("X'1F'", "`X'1F'`", "literals", None),
        ("DATE '2024-02-30'", "DATE '2024-02-30'", "DATE '2024-01-31'", None),
        ("DATE '2024-2-3'", "DATE '2024-2-3'", "DATE '2024-01-31'", None),
        ("TIMESTAMP '2024-01-01 25:00:00'", "TIMESTAMP '2024-01-01 25:00:00'", "or with Z or +01:00", None),
        ("TIMESTAMP '2024-01-01 10:00 CET'", "TIMESTAMP '2024-01-01 10:00 CET'", "or with Z or +01:00", None),
        ("a + INTERVAL 1 MONTH", "`INTERVAL '1' MONTH`", "`second`, `minute`, `hour`, `day`", None),
        ("a + INTERVAL 1 DAI", "`INTERVAL '1' DAI`", "a whole number", "day"),
        ("a + INTERVAL '1.5' DAY", "`INTERVAL '1.5' DAY`", "a whole number", None),
        ("a + INTERVAL 200000000 DAYS", "`INTERVAL '200000000' DAYS`", "at most 292,000 years", None),
        ("INTERVAL 1 DAY", "an INTERVAL that stands alone", "added to a timestamp", None),
        ("INTERVAL 1 DAY - a", "an INTERVAL that stands alone", "added to a timestamp", None),
        ("1" * 39, f"the number `{'1' * 39}`", "at most 38 digits", None),
        ("", "nothing in it", "a Spark SQL expression", None),
        (" -- only this", "nothing in it", "a Spark SQL expression", None),
        ("a;", "a `;`", "one expression", None),
        ("a AS b", "`AS b`", "AS in a CAST", None),
        ("a +", "a syntax error at `+` at character 3", "a Spark SQL expression", None),
        ("CASE WHEN a THEN 1", "a syntax error", "a Spark SQL expression", None),
        ("CAST(a AS INT", "a `(` that is not closed", "a `)`", None),
        ("upper(a", "a `(` that is not closed", "a `)`", None),
        ("a = 'b", "text that cannot be read", "is a quote not closed?", None),
        ("SELECT a", "a syntax error", "a Spark SQL expression", None),
        ("(" * 5000 + "a" + ")" * 5000, f"more than {MOST_DEEP} operators inside each other", "a flatter one", None),
        ("+".join("a" * 102), f"more than {MOST_DEEP} operators inside each other", "a flatter one", None),
    ],
)
def test_the_rest_is_refused_with_what_to_write(text: str, came: str, expected: str, nearest: str | None) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_expression(text)

    error = caught.value
    assert came in error.came
    assert expected in error.expected
    assert (error.text, error.nearest) == (text, nearest)
    assert isinstance(error, FlowsError)
    assert isinstance(error, ValueError)


def test_long_chains_and_many_parentheses_are_no_depth() -> None:
    assert len(parse_expression(" OR ".join(["a = 1"] * 500)).columns) == 1
    assert parse_expression("+".join("a" * 100)).columns == ("a",)
    assert parse_expression("(" * 40 + "a" + ")" * 40).root == A


def test_an_error_is_one_short_sentence_and_survives_pickling() -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_expression("uper(a)\n OR " + "a = 1 OR " * 500 + "b")

    error = caught.value
    assert "\n" not in str(error)
    assert len(str(error)) < 500
    assert str(error).endswith("did you mean `upper`?")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), vars(again)) == (str(error), vars(error))


def test_the_parser_is_loaded_by_the_first_expression_only() -> None:
    code = (
        "import sys; from pipelines.flows.expressions import parse_expression; before = 'sqlglot' in sys.modules; "
        "parse_expression('a'); print(before, 'sqlglot' in sys.modules, 'pyarrow' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "True", "False"]


def test_what_is_no_expression_writes_no_log(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ExpressionError):
        parse_expression("IF b")

    assert caplog.records == []


@pytest.mark.parametrize(
    "text", ["9" * 5_000, "-" + "9" * 5_000, "1." + "9" * 5_000, f"a + INTERVAL {'9' * 5_000} DAYS"]
)
def test_a_number_of_thousands_of_digits_is_refused_in_one_short_sentence(text: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_expression(text)

    assert len(str(caught.value)) < 1_000
