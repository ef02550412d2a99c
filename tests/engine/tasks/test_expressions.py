from __future__ import annotations

import datetime as dt
import math
import pickle
from decimal import Decimal
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.engine.columnar.columns import TIME
from pipelines.engine.tasks.expressions import CALLS, CASTABLE, CASTING, ExpressionTypeError, evaluate, result_type
from pipelines.flows.expressions import CASTS, FUNCTIONS, STEADFAST, Call, is_for_spark, parse_expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from pipelines.flows.expressions import Node
    from tests.conftest import LentSpark

BATCH = 130
"""Expressions in one Spark job; each job compiles them anew, which is what takes the time."""
ROWS = 211
"""A prime, so that columns whose values repeat at different lengths meet in many ways."""


def whole(bits: int) -> list[int | None]:
    """Give integers at the edges of a width."""
    top = 2 ** (bits - 1)
    return [None, 0, 1, -1, 2, 3, -7, 100, top - 1, -top, top - 2, 1 - top]


def utc(*parts: int) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=dt.UTC)  # type: ignore[arg-type,misc] # a moment's parts are integers


FLOATS = (
    *(None, 0.0, -0.0, 1.0, -1.0, 1.5, -2.5, 0.1, math.nan, math.inf, -math.inf, 1e300, -1e300, 5e-324, 3e-45, 1e16),
    *(2147483647.0, 2147483648.0, 2147483647.9, -2147483648.9, -2147483649.0, 9.223372036854775807e18, -9.3e18),
)
TEXTS = (
    *(None, "", " ", "a", "A", "b", "abc", "aBc", "100%", "a_b", "a\\b", "a\nb", "  spaced  ", "\ttab\t", "äöü", "ß"),
    *("straße", "İı", "ﬁ", "😀", "😀é", "e\u0301", "Σίσυφος", "\uffff", "\U00010428", "ŉ", "it's", '"', "a.b", "a b"),
)
ODD = (
    *(None, "", " ", "0", "-0", "+7", " 12 ", "\t-5\n", "\x0112", "\x7f3", "1.5", "1.", ".5", "-.5e-3", "1e400", "12a"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "2147483648"),
    *("000000000000000000000000012", "99999999999999999999999", "+", "-", "+-1", "1d", "1F", "0x1p3", "-0X.8P-2f"),
    *(
        "inf",
        " -Infinity ",
        "NaN",
        "nan",
        "-NaN",
        "+nan",
        "+NaN",
        "+inf",
        "Infinityd",
        "1_0",
        "\uff11",
        "1e",
        "e1",
        "0x1",
    ),
    *(
        "t",
        "TRUE",
        " yes ",
        "n",
        "False",
        "tru",
        "y\x00",
        "1 2",
        "--1",
        "4.9e-324",
        "1e-400",
        "0.1",
        "\u00a05",
        "0x1p9999",
    ),
)
DAYS = (None, dt.date(1970, 1, 1), dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(2024, 2, 29), dt.date(1582, 10, 10))
TIMES = (
    *(None, utc(1970, 1, 1), utc(1, 1, 1), utc(9999, 12, 31, 23, 59, 59, 999999), utc(2024, 2, 29, 12, 30)),
    *(utc(1969, 12, 31, 23, 59, 59, 500000), utc(1582, 10, 10, 1, 2, 3, 40), utc(2024, 3, 31, 1, 59, 59, 100)),
)
STRUCT = pa.struct([("n", pa.int32()), ("s", pa.string()), ("in", pa.struct([("x", pa.float64()), ("at", TIME)]))])
VALUES: dict[str, tuple[pa.DataType, Sequence[Any]]] = {
    "yes": (pa.bool_(), (None, True, False, True)),
    "no": (pa.bool_(), (False, None, True)),
    **{f"i{bits}": (getattr(pa, f"int{bits}")(), whole(bits)) for bits in (8, 16, 32, 64)},
    **{f"j{bits}": (getattr(pa, f"int{bits}")(), [*whole(bits), 5]) for bits in (8, 16, 32, 64)},
    "f32": (pa.float32(), [*FLOATS, 16777216.0, 2.0]),
    "g32": (pa.float32(), [*FLOATS, 0.3]),
    "f64": (pa.float64(), [*FLOATS, 0.3]),
    "g64": (pa.float64(), [*FLOATS, 0.2, 7.0, 2.0]),
    "d5": (pa.decimal128(5, 2), [None, *map(Decimal, ("0", "-0.01", "999.99", "-999.99", "1.50", "300.00"))]),
    "d10": (pa.decimal128(10, 2), [None, *map(Decimal, ("0", "1.50", "-1.50", "99999999.99", "2147483.64"))]),
    "d38": (
        pa.decimal128(38, 18),
        [None, *map(Decimal, ("0", "0.1", "-0.3", "9" * 20 + ".5", "1.123456789012345678"))],
    ),
    "d0": (
        pa.decimal128(38, 0),
        [None, *map(Decimal, ("0", "9" * 38, "-" + "9" * 38, str(2**63), str(2**63 - 1), "7"))],
    ),
    "s": (pa.string(), TEXTS),
    "u": (pa.string(), [*reversed(TEXTS), "a"]),
    "odd": (pa.string(), ODD),
    "raw": (pa.binary(), (None, b"", b"\x00", b"\xff\xfe", b"a", "é".encode())),
    "rest": (pa.binary(), (b"a", None, b"\xff", b"", b"ab")),
    "day": (pa.date32(), DAYS),
    "other day": (pa.date32(), [*DAYS, dt.date(2024, 3, 1)]),
    "at": (TIME, TIMES),
    "end": (TIME, [*TIMES, utc(2024, 3, 1)]),
    "inside": (
        STRUCT,
        (
            *(None, {"n": None, "s": "a", "in": None}, {"n": 7, "s": None, "in": {"x": math.nan, "at": None}}),
            {"n": -1, "s": "é", "in": {"x": -0.0, "at": utc(2024, 1, 1)}},
        ),
    ),
    "many": (pa.list_(pa.field("element", pa.int64())), (None, [], [1, None], [-(2**63)])),
    "event_time": (TIME, TIMES),
    "event_end": (TIME, (None, *TIMES)),
    "arrival": (TIME, TIMES[1:]),
    "kind": (pa.string(), ("event", "timer", "cti")),
}

COMPARED = tuple(
    f"{left} {sign} {right}"
    for sign, pairs in {
        "=": (("f64", "g64"), ("f32", "g32"), ("s", "u"), ("d10", "d38"), ("raw", "rest"), ("at", "`end`")),
        "<>": (("f64", "g64"), ("i8", "i64"), ("day", "`other day`"), ("yes", "no"), ("f32", "0.1")),
        "<": (
            ("f64", "g64"),
            ("f32", "f64"),
            ("i64", "f64"),
            ("i32", "f32"),
            ("s", "u"),
            ("raw", "rest"),
            ("yes", "no"),
        ),
        "<=": (("f64", "g64"), ("d10", "i32"), ("d38", "f64"), ("d5", "f32"), ("i32", "2.5"), ("at", "`end`")),
        ">": (("f64", "g64"), ("d38", "d5"), ("d0", "i64"), ("d38", "1"), ("i8", "300"), ("f64", "1e3"), ("s", "'a'")),
        ">=": (("f64", "g64"), ("f64", "0.0"), ("day", "DATE '2024-02-29'"), ("i64", "9223372036854775807")),
        "<=>": (("f64", "g64"), ("s", "u"), ("i16", "NULL"), ("yes", "true"), ("d5", "d10"), ("raw", "rest")),
    }.items()
    for left, right in pairs
)
SAME = (
    *COMPARED,
    *("yes AND no", "yes OR no", "NOT yes", "yes AND NOT no OR yes", "NOT yes = no", "NULL OR yes", "no AND NULL"),
    *("s IS NULL", "inside IS NOT NULL", "many IS NULL", "NOT i8 IS NULL", "(yes AND no) IS NULL", "f64 IS NULL"),
    *("i8 IN (1, 2, 300)", "i32 NOT IN (1, NULL)", "s IN ('a', 'ß', '')", "d10 IN (1.5, 0)", "f64 IN (0, 1.5, 1e300)"),
    *("f32 IN (0.1, 1)", "at IN (TIMESTAMP '1970-01-01')", "day NOT IN (DATE '0001-01-01')", "i8 NOT IN (1, -1)"),
    *("i64 IN (1, 2.5)", "yes IN (true)", "s NOT IN ('a')", "i64 IN (9223372036854775807, 1)", "d0 IN (7, 0)"),
    *(
        "f64 IN (0.0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)",
        "s IN ('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'ß', '')",
    ),
    *("i8 BETWEEN -1 AND 3", "f64 BETWEEN 0 AND 1e16", "s NOT BETWEEN 'a' AND 'b'", "i8 + 1 BETWEEN j8 AND 5"),
    *("at BETWEEN TIMESTAMP '1969-01-01T00:00:00+01:00' AND TIMESTAMP '2024-02-29 12:30:00Z'", "d5 BETWEEN 0 AND i32"),
    *(f"s LIKE '{'_' * 1000}'", f"s LIKE '{'%_' * 500}'"),
    *("s LIKE 'a%'", "s LIKE '%b%'", "s LIKE 'a_b'", "s LIKE '_'", "s LIKE ''", "s LIKE '%'", r"s LIKE '100\%'"),
    *(r"s LIKE 'a\_b'", r"s LIKE 'a\\\\b'", "s NOT LIKE '%é'", r"s LIKE 'a\nb'", "s LIKE 'a.b'", "s LIKE '% %'"),
    *(r"s LIKE 'it\'s'", "s || u LIKE 'a%a'", r"s = '\"'", r"s = '\ttab\t'", r"s || '\\\_\%\r'", "kind LIKE 'c_i'"),
    *(
        "f64 + g64",
        "f64 - g64",
        "f64 * g64",
        "f32 + g32",
        "f32 - g32",
        "f32 * g32",
        "f32 + 1",
        "f32 * 1.5",
        "f32 + f64",
    ),
    *("f64 + i64", "f32 - i8", "f64 * 1.5", "f64 - d38", "d5 + f32", "-f64", "-f32", "-d10", "- -1", "-(1)", "1 - -1"),
    *("d5 + d10", "d10 - d5", "d5 * d10", "d10 + 1", "d10 - i32", "d5 * i64", "i32 * 1.5", "i8 - 0.05", "d10 * 0.50"),
    *("1 + 1.5", "d5 * -1", "2 - d5", "d5 + NULL", "3000000000 + 1", "-9223372036854775808", "-2147483648", "100.0"),
    *("99999999999999999999", ".5", "1.", "0.05", "1e3", "1.5E-3", "'a'", "true", "DATE '0001-01-01'", "0.0", "0.00"),
    *(
        "TIMESTAMP '9999-12-31 23:59:59.999999'",
        "TIMESTAMP '2024-01-01 01:02'",
        "TIMESTAMP '2024-01-01 00:00:00.5-11:30'",
    ),
    *("CASE WHEN yes THEN i8 WHEN no THEN j32 END", "CASE i8 WHEN 1 THEN 'one' WHEN -7 THEN s ELSE u END"),
    *(
        "CASE WHEN i8 > 0 THEN f32 ELSE d5 END",
        "CASE WHEN yes THEN d5 ELSE 0 END",
        "CASE WHEN yes THEN i32 ELSE f32 END",
    ),
    *("CASE WHEN yes THEN day ELSE `other day` END", "CASE WHEN no THEN raw END", "CASE WHEN yes THEN d5 ELSE i8 END"),
    *("IF(yes, i8, i64)", "IF(f64 > g64, f64, g64)", "IF(NULL, 1, 2.5)", "if(no, at, `end`)", "IF(yes, d10, d5)"),
    *(
        "COALESCE(s, u, 'none')",
        "coalesce(i8, 1)",
        "coalesce(d10, 0)",
        "coalesce(NULL, f32, 1.5)",
        "coalesce(d5, i64, f32)",
    ),
    *("NULLIF(i8, 1)", "nullif(f64, g64)", "nullif(s, '')", "nullif(d10, 0)", "nullif(i8, 1.0)", "nullif(i64, f32)"),
    *("nullif(1, i8)", "nullif(s, NULL)", "i8 * 1.5 = d10", "i64 = 1.5", "d38 > i32"),
    *(
        "ABS(f64)",
        "abs(f32)",
        "abs(d10)",
        "UPPER(s)",
        "upper(u || s)",
        "LENGTH(s)",
        "length(raw)",
        "TRIM(s)",
        "trim(odd)",
    ),
    *("SUBSTRING(s, 1, 2)", "substring(s, 0, 2)", "substr(s, -2)", "substring(s, -5, 3)", "substring(s, -5, 4)"),
    *(
        "substring(s, -1, 1)",
        "substring(s, 2, 0)",
        "substring(s, 2, -1)",
        "substring(s, -3, 9)",
        "substring(s, -2, -1)",
    ),
    *("substring(s, 2)", "substring(s, 2147483647, 2147483647)", "substring(s, -2147483648, 2147483647)"),
    *("CONCAT(s, u, 'x')", "s || u", "concat(s)", "s || NULL", "concat('a', s) || '\\''", "s || u || s"),
    *(
        "inside",
        "inside.n",
        "inside.s || s",
        "inside.`in`.x",
        "inside.in.at",
        "inside.in.x = -0.0",
        "many",
        "`other day`",
    ),
    *("event_time < event_end", "arrival", "kind = 'timer'", "i8 % 3 * 2 - 5 + 1", "-d5 * 0 + 2", "20 - 5 - 3 * 2 % 4"),
    *(
        "at = TIMESTAMP '2024-02-29 13:30:00+01:00'",
        "i8 IS NULL OR i8 = 1",
        "2 / 3 * 3",
        "1 <=> NULL",
        "i8",
        "raw",
        "d38",
    ),
    *("CAST(i8 AS INT)", "CAST(i16 AS BIGINT)", "CAST(i64 AS DOUBLE)", "CAST(i8 AS STRING)", "CAST(i64 AS string)"),
    *(
        "CAST(i32 AS BOOLEAN)",
        "CAST(f64 AS BOOLEAN)",
        "CAST(f32 AS BOOLEAN)",
        "CAST(f32 AS DOUBLE)",
        "CAST(d38 AS DOUBLE)",
    ),
    *("CAST(d0 AS DOUBLE)", "CAST(d5 AS DOUBLE)", "CAST(d5 AS INT)", "CAST(yes AS INT)", "CAST(yes AS BIGINT)"),
    *(
        "CAST(yes AS DOUBLE)",
        "CAST(yes AS STRING)",
        "CAST(day AS STRING)",
        "CAST(day AS TIMESTAMP)",
        "CAST(at AS BIGINT)",
    ),
    *("CAST(at AS DOUBLE)", "CAST(at AS STRING)", "CAST(at AS DATE)", "CAST(NULL AS STRING)", "CAST(NULL AS DATE)"),
    *(
        "CAST(s AS STRING)",
        "CAST('2024-01-31' AS DATE)",
        "CAST('2024-01-31 10:00:00' AS TIMESTAMP)",
        "CAST(1.5 AS DOUBLE)",
    ),
    *(
        "CAST(i32 AS LONG)",
        "CAST(i8 AS INTEGER)",
        "CAST(NULL AS INT) + 1",
        "1e23",
        "2e23",
        "5e-324",
        "1.7976931348623157E308",
        "CAST(day AS DATE)",
        "CAST(at AS TIMESTAMP)",
    ),
)
"""Expressions that mean the same to Spark as they stand."""
SIGNS = {"+": "try_add", "-": "try_subtract", "*": "try_multiply", "/": "try_divide", "%": "try_mod"}
TRIED = (
    *(
        (f"{left} {sign} {right}", f"{called}({left}, {right})")
        for sign, called in SIGNS.items()
        for left, right in (
            *((f"i{bits}", f"j{bits}") for bits in (8, 16, 32, 64)),
            *(
                ("i8", "j16"),
                ("i32", "j64"),
                ("i8", "1"),
                ("i64", "-1"),
                ("-1", "j64"),
                ("2", "NULL"),
                ("i32", "3000000000"),
            ),
        )
    ),
    *(
        (f"{left} / {right}", f"try_divide({left}, {right})")
        for left, right in (("f64", "g64"), ("f32", "g32"), ("i64", "f32"), ("f64", "1.5"), ("d5", "f64"), ("1", "0"))
    ),
    *(
        (f"{left} % {right}", f"try_mod({left}, {right})")
        for left, right in (
            ("f64", "g64"),
            ("f32", "g32"),
            ("f32", "2"),
            ("f64", "d5"),
            ("i8", "f64"),
            ("-5.5e0", "g64"),
        )
    ),
    *(
        (f"CAST({column} AS {to})", f"try_cast({column} AS {to})")
        for to in ("INT", "BIGINT")
        for column in ("i32", "i64", "f32", "f64", "g64", "d38", "d0", "odd", "s")
    ),
    *((f"CAST(odd AS {to})", f"try_cast(odd AS {to})") for to in ("DOUBLE", "BOOLEAN")),
    *(
        (f"-i{bits}", f"try_subtract(CAST(0 AS {to}), i{bits})")
        for bits, to in ((8, "TINYINT"), (16, "SMALLINT"), (32, "INT"), (64, "BIGINT"))
    ),
    *(
        (f"abs(i{bits})", f"IF(i{bits} = -{2 ** (bits - 1)}, NULL, abs(nullif(i{bits}, -{2 ** (bits - 1)})))")
        for bits in (8, 16, 32, 64)
    ),
    *(
        (f"at {sign} INTERVAL {spelled}", f"at {sign} INTERVAL {spelled}")
        for sign, spelled in (
            ("+", "5 MINUTES"),
            ("-", "'90' SECOND"),
            ("+", "36 hours"),
            ("-", "1 HOUR 30 MINUTES"),
            ("-", "'-1' DAY"),
            ("+", "'400 days'"),
            ("-", "400 DAYS"),
        )
    ),
    ("INTERVAL 1 DAY + at - INTERVAL 1 HOUR + INTERVAL 30 MINUTES",) * 2,
    ("at - INTERVAL 1 HOUR < `end`",) * 2,
    ("at + INTERVAL 106000000 DAYS", "try_add(at, INTERVAL 106000000 DAYS)"),
    ("CAST(at + INTERVAL 400 DAYS AS STRING)",) * 2,
    ("CAST(at - INTERVAL 800 DAYS AS STRING)",) * 2,
    ("CAST(CAST(at + INTERVAL 400 DAYS AS DATE) AS STRING)",) * 2,
    ("CAST(CAST(at - INTERVAL 800 DAYS AS DATE) AS STRING)",) * 2,
    ("(i64 + 1) * 2 > 5 OR s LIKE 'a%'", "try_multiply(try_add(i64, 1), 2) > 5 OR s LIKE 'a%'"),
    ("i8 + 1 BETWEEN j8 AND 5", "try_add(CAST(i8 AS INT), 1) BETWEEN j8 AND 5"),
)
"""Expressions where Spark may stop the job, and how Spark is asked for null instead."""


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    """Give a table with every type that lands, and the values at its edges."""
    columns = {name: pa.array(list(islice(cycle(values), ROWS)), kind) for name, (kind, values) in VALUES.items()}
    return pa.table({**columns, "row": pa.array(range(ROWS), pa.int64())})


@pytest.fixture
def session(spark: LentSpark) -> Iterator[SparkSession]:
    """Give Spark in its default mode, in which a number that does not fit stops the job."""
    found = spark.session()
    before = found.conf.get("spark.sql.ansi.enabled", "true") or "true"
    found.conf.set("spark.sql.ansi.enabled", "true")
    yield found
    found.conf.set("spark.sql.ansi.enabled", before)


def shown(array: pa.ChunkedArray) -> list[object]:
    """Give values so that they are equal where their bytes are; there is one NaN."""
    if not pa.types.is_floating(array.type):
        return list(array.cast(pa.int64()).to_pylist() if array.type == TIME else array.to_pylist())
    return [None if each is None else "NaN" if math.isnan(each) else each.hex() for each in array.to_pylist()]


def test_spark_gives_the_same_types_and_bytes(session: SparkSession, rows: pa.Table, tmp_path: Path) -> None:
    pq.write_table(rows, tmp_path / "rows.parquet")
    there = session.read.parquet(str(tmp_path / "rows.parquet"))
    asked = list(dict.fromkeys([*((text, text) for text in SAME), *TRIED]))
    wrong = {}
    for first in range(0, len(asked), BATCH):
        batch = asked[first : first + BATCH]
        spelled = [f"{theirs} AS `{number}`" for number, (_, theirs) in enumerate(batch)]
        answer = there.selectExpr("`row`", *spelled).toArrow().sort_by("row")
        for number, (ours, _) in enumerate(batch):
            found, expected = evaluate(parse_expression(ours), rows), answer[str(number)]
            if found.type != expected.type and not pa.types.is_nested(found.type):
                wrong[ours] = f"{found.type}, Spark {expected.type}"
            elif repr(shown(found)) != repr(shown(expected)):
                pairs = enumerate(zip(shown(found), shown(expected), strict=True))
                wrong[ours] = next(
                    f"row {at}: {one!r}, Spark {two!r}" for at, (one, two) in pairs if repr(one) != repr(two)
                )

    assert wrong == {}
    assert len(asked) > 300


def test_what_spark_is_asked_in_the_very_words_is_compared_with_it_so() -> None:
    """`is_for_spark` says of which expressions that is right; what needs other words there is none of them."""
    asked = [text for text in SAME if is_for_spark(parse_expression(text))]
    heard = {node.name for text in asked for node in _calls(parse_expression(text).root)}

    assert heard == STEADFAST
    assert len(asked) > 80
    assert not [ours for ours, theirs in TRIED if ours != theirs and is_for_spark(parse_expression(ours))]


def _calls(node: Node) -> Iterator[Call]:
    if isinstance(node, Call):
        yield node
        for argument in node.arguments:
            yield from _calls(argument)


def test_capitals_are_those_of_spark_for_every_letter_there_is(session: SparkSession, tmp_path: Path) -> None:
    letters = [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code <= 0xDFFF]
    texts = ["".join(letters[first : first + 997]) for first in range(0, len(letters), 997)]
    table = pa.table({"row": range(len(texts)), "s": texts})
    pq.write_table(table, tmp_path / "letters.parquet")
    theirs = session.read.parquet(str(tmp_path / "letters.parquet")).selectExpr("`row`", "upper(s) AS u").toArrow()

    ours = evaluate(parse_expression("upper(s)"), table).to_pylist()

    wrong = [
        f"{one!a} {two!a}" for one, two in zip(ours, theirs.sort_by("row")["u"].to_pylist(), strict=True) if one != two
    ]
    assert len(wrong) == 0, wrong[0]


def test_every_operator_function_and_cast_is_compared_with_spark() -> None:
    asked = [*SAME, *(ours for ours, _ in TRIED)]
    names, casts = set(), set()
    kinds = pa.schema([(name, kind) for name, (kind, _) in VALUES.items()])

    def walk(node: Any) -> None:  # noqa: ANN401 - a node of any kind
        names.add(getattr(node, "name", "")) if hasattr(node, "arguments") else None
        if hasattr(node, "to"):
            argument = node.argument
            if hasattr(argument, "fields"):
                casts.add((str(kinds.field(argument.name).type).split("(")[0].split("[")[0], node.to))
            walk(argument)
        for each in getattr(node, "arguments", ()):
            walk(each)

    for text in asked:
        walk(parse_expression(text).root)

    assert set(CALLS) - names == set()
    assert {to for _, to in casts} == set(CASTS.values())
    groups = {"bool": "boolean", "float": "float", "double": "float", "date32": "date", "decimal128": "decimal"}
    grouped = {(groups.get(kind, "integer" if kind.startswith("int") else kind), to) for kind, to in casts}
    assert set(CASTING) - grouped == set()
    assert {(group, to) for group, all_to in CASTABLE.items() for to in all_to if group != "null"} - {
        (group, to) for group, to in grouped | set(CASTING)
    } == {("boolean", "boolean")}
    assert {takes.name for takes in FUNCTIONS.values()} <= set(CALLS)


@pytest.mark.parametrize("text", [*SAME, *(ours for ours, _ in TRIED)])
def test_a_type_stays_whatever_the_rows_are(rows: pa.Table, text: str) -> None:
    expression = parse_expression(text)
    kind = result_type(expression, rows.schema)
    missing = pa.table([pa.nulls(3, field.type) for field in rows.schema], schema=rows.schema)

    assert evaluate(expression, rows.schema.empty_table()).type == kind
    assert len(evaluate(expression, rows.slice(0, 0))) == 0
    assert evaluate(expression, missing).type == kind
    cut = pa.concat_tables([rows.slice(0, 100), rows.slice(100)])
    whole, parts = evaluate(expression, rows), evaluate(expression, cut)
    assert repr(shown(whole)) == repr(shown(parts))
    assert (whole.type, len(whole)) == (kind, ROWS)


@pytest.mark.parametrize(
    ("text", "came", "expected", "nearest"),
    [
        ("i88 > 1", "the column `i88`", "one of `yes`", "i8"),
        ("I8 > 1", "the column `I8`", "one of `yes`", "i8"),
        ("inside.m = 1", "the field `m` of `inside`", "one of `n`, `s`, `in`", None),
        ("s.n = 1", "`s.n`", "a struct in front of `.n`; `s` is STRING", None),
        ("s = 1", "STRING and INT together in `=`", "write CAST(s AS BIGINT)", None),
        ("1.5 < s", "DECIMAL(2, 1) and STRING together in `<`", "write CAST(s AS DOUBLE)", None),
        ("at > '2024-01-01'", "TIMESTAMP and STRING together in `>`", "TIMESTAMP '…' for a literal", None),
        ("day = at", "DATE and TIMESTAMP together in `=`", "write CAST(day AS TIMESTAMP)", None),
        ("yes = 1", "BOOLEAN and INT together in `=`", "write CAST(yes AS INT)", None),
        ("at = 1", "TIMESTAMP and INT together in `=`", "write CAST(at AS BIGINT)", None),
        ("raw = 'a'", "BINARY and STRING together in `=`", "no cast leads from one of these", None),
        ("inside = inside", "STRUCT", "plain values: name a field", None),
        ("coalesce(many, many)", "LIST", "plain values: name a field", None),
        ("d0 = d38", "DECIMAL(38, 0) and DECIMAL(38, 18) together in `=`", "write CAST(", None),
        ("d38 * d38", "which need 77 digits", "at most 38: write CAST(d38 AS DOUBLE)", None),
        ("d5 / 2", "DECIMAL(5, 2) in `/`", "write CAST(d5 AS DOUBLE)", None),
        ("i8 % 1.5", "DECIMAL(2, 1) in `%`", "write CAST(1.5 AS DOUBLE)", None),
        ("s + 1", "STRING and INT together in `+`", "write CAST(s AS DOUBLE), or `||` to join text", None),
        ("at - `end`", "TIMESTAMP and TIMESTAMP together in `-`", "write CAST(at AS DOUBLE) for seconds", None),
        ("day + 1", "DATE and INT together in `+`", "write CAST(day AS TIMESTAMP) and add an INTERVAL", None),
        ("day + INTERVAL 1 DAY", "DATE and INTERVAL together", "write CAST(day AS TIMESTAMP)", None),
        ("yes * 2", "BOOLEAN and INT together in `*`", "write CAST(yes AS INT)", None),
        ("i8 AND yes", "TINYINT in `AND`", "BOOLEAN: write CAST(i8 AS BOOLEAN)", None),
        ("NOT d5", "DECIMAL(5, 2) in `NOT`", "BOOLEAN", None),
        ("s || i8", "TINYINT in `||`", "STRING: write CAST(i8 AS STRING)", None),
        ("upper(day)", "DATE in `upper`", "STRING: write CAST(day AS STRING)", None),
        ("i8 LIKE '1%'", "TINYINT in `LIKE`", "STRING: write CAST(i8 AS STRING)", None),
        ("f64 || s", "DOUBLE in `||`", "STRING", None),
        ("-s", "STRING in `-`", "a number: write CAST(s AS DOUBLE)", None),
        ("abs(raw)", "BINARY in `abs`", "a number", None),
        ("CAST(f64 AS STRING)", "a CAST of DOUBLE to STRING", "INT, BIGINT, DOUBLE, BOOLEAN", None),
        ("CAST(s AS DATE)", "a CAST of STRING to DATE", "INT, BIGINT, DOUBLE, BOOLEAN, STRING", None),
        ("CAST(raw AS STRING)", "a CAST of BINARY to STRING", "it cannot be cast", None),
        ("NULL", "NULL without a type", "CAST(NULL AS STRING)", None),
        ("NULL = NULL", "only NULL in `=`", "CAST(NULL AS STRING)", None),
        ("NULL + NULL", "only NULL in `+`", "CAST(NULL AS INT)", None),
        ("coalesce(NULL, NULL)", "NULL without a type", "CAST(NULL AS STRING)", None),
        ("nullif(NULL, 1)", "NULL in front in `nullif`", "CAST(NULL AS STRING)", None),
        ("IF(yes, s, 1)", "STRING and INT together in `CASE`", "write CAST(s AS BIGINT)", None),
        ("s IN ('a', 1)", "STRING and INT together in `in`", "write CAST(s AS BIGINT)", None),
    ],
)
def test_what_does_not_fit_is_refused_with_what_to_write(
    rows: pa.Table, text: str, came: str, expected: str, nearest: str | None
) -> None:
    expression = parse_expression(text)
    with pytest.raises(ExpressionTypeError) as caught:
        result_type(expression, rows.schema)
    with pytest.raises(ExpressionTypeError) as again:
        evaluate(expression, rows)

    error = caught.value
    assert came in error.came
    assert expected in error.expected
    assert (error.text, error.nearest) == (text, nearest)
    assert str(error) == str(again.value) == str(pickle.loads(pickle.dumps(error)))
    assert "\n" not in str(error)


def test_one_odd_row_ends_nothing() -> None:
    rows = pa.table(
        {"a": pa.array([127, 1, None], pa.int8()), "b": pa.array([1, 0, 1], pa.int8()), "s": ["1", "x", None]}
    )

    assert evaluate(parse_expression("a + b"), rows).to_pylist() == [None, 1, None]
    assert evaluate(parse_expression("a / b"), rows).to_pylist() == [127.0, None, None]
    assert evaluate(parse_expression("a % b"), rows).to_pylist() == [0, None, None]
    assert evaluate(parse_expression("CAST(s AS INT)"), rows).to_pylist() == [1, None, None]


def test_a_column_that_stands_there_twice_is_not_guessed() -> None:
    rows = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(ExpressionTypeError, match="the column `a`"):
        evaluate(parse_expression("a"), rows)


def test_a_column_with_other_signs_is_asked_for_in_backticks() -> None:
    rows = pa.table({"draft-class": [1, 2]})
    with pytest.raises(ExpressionTypeError, match="one with such signs in backticks; did you mean `draft-class`"):
        evaluate(parse_expression("draft-class = 1"), rows)
    assert evaluate(parse_expression("`draft-class` = 1"), rows).to_pylist() == [True, False]
    with pytest.raises(ExpressionTypeError) as plain:
        evaluate(parse_expression("dely"), pa.table({"delay": [1]}))
    assert "backticks" not in str(plain.value)


def test_null_is_the_third_truth() -> None:
    rows = pa.table({"a": [None, None, None, True], "b": [True, False, None, None]})

    assert evaluate(parse_expression("a AND b"), rows).to_pylist() == [None, False, None, None]
    assert evaluate(parse_expression("a OR b"), rows).to_pylist() == [True, None, None, True]
    assert evaluate(parse_expression("a = b"), rows).to_pylist() == [None] * 4
    assert evaluate(parse_expression("a <=> b"), rows).to_pylist() == [False, False, True, False]
