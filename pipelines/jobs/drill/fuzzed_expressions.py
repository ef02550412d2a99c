"""Expressions for the drill `input`: right ones are what plain Python makes of them, mangled ones are told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from pipelines.engine.tasks.expressions import ExpressionTypeError, evaluate
from pipelines.flows.expressions import parse_expression
from pipelines.jobs.drill.fuzzed import Tried, mangled
from pipelines.jobs.environment.errors import WrongUse

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from pipelines.jobs.drill.fuzzed import FuzzedPlace

    Value = Callable[[dict[str, Any]], Any]

LEAST, MOST = -(2**63), 2**63 - 1
DEPTH = 4
GOOD = 0.6
"""Of the expressions, those that are right."""
ROWS: list[dict[str, Any]] = [
    {"a": 0, "b": 1, "s": "", "t": True},
    {"a": -7, "b": 3, "s": "west", "t": False},
    {"a": 7, "b": -3, "s": " a b ", "t": None},
    {"a": None, "b": 0, "s": None, "t": True},
    {"a": MOST, "b": MOST, "s": "größer", "t": False},
    {"a": LEAST, "b": -1, "s": "a'b\\c", "t": None},
    {"a": 2**31, "b": None, "s": "AA", "t": True},
]
TABLE = pa.table(
    {
        "a": pa.array([row["a"] for row in ROWS], pa.int64()),
        "b": pa.array([row["b"] for row in ROWS], pa.int64()),
        "s": pa.array([row["s"] for row in ROWS], pa.string()),
        "t": pa.array([row["t"] for row in ROWS], pa.bool_()),
    }
)


class Made(NamedTuple):
    """An expression as it is written, and what it is for a row."""

    text: str
    value: Value


def tried(place: FuzzedPlace) -> Tried:
    """Evaluate right and mangled expressions."""
    done, drawn = Tried(), place.drawn()
    for _ in range(place.count):
        made = drawn.choice((_whole, _truth, _text))(drawn, drawn.randint(1, DEPTH))
        done.inputs += 1
        if drawn.random() < GOOD:
            _right(made, done)
        else:
            _any(mangled(drawn, made.text), done)
    return done


def _right(made: Made, done: Tried) -> None:
    try:
        found = evaluate(parse_expression(made.text), TABLE).to_pylist()
    except Exception as error:  # noqa: BLE001 - whatever refuses what is right is the finding
        done.find(f"what is right was refused ({type(error).__name__}: {error})", made.text)
        return
    wanted = [made.value(row) for row in ROWS]
    if found != wanted:
        done.find(f"gave {found}, not {wanted}", made.text)


def _any(text: str, done: Tried) -> None:
    try:
        found = evaluate(parse_expression(text), TABLE)
    except ExpressionTypeError as error:
        # What a flow says around it: stream and setting.
        done.raised(WrongUse(str(error)), text)
    except Exception as error:  # noqa: BLE001 - what it is, is judged
        done.raised(error, text)
    else:
        if len(found) != len(ROWS):
            done.find(f"gave {len(found)} values for {len(ROWS)} rows", text)


def _whole(drawn: Random, depth: int) -> Made:
    """Draw an expression that is a BIGINT."""
    if depth == 0:
        name, number = drawn.choice("ab"), drawn.choice((0, 1, -1, 5, 1000, -(2**31), 2**31, MOST))
        plain = Made(f"CAST({number} AS BIGINT)", lambda _: number)
        return drawn.choice((Made(name, lambda row: row[name]), plain))
    return drawn.choice((_reckoned, _case, _coalesce, _absolute, _length, _nullif))(drawn, depth - 1)


def _fitting(number: int) -> int | None:
    return number if LEAST <= number <= MOST else None


def _rest(one: int, other: int) -> int | None:
    """Give what is left of a division, with the sign of what is divided."""
    if other == 0:
        return None
    left = abs(one) % abs(other)
    return -left if one < 0 else left


RECKONED: dict[str, Callable[[int, int], int | None]] = {
    "+": lambda one, other: _fitting(one + other),
    "-": lambda one, other: _fitting(one - other),
    "*": lambda one, other: _fitting(one * other),
    "%": _rest,
}


def _reckoned(drawn: Random, depth: int) -> Made:
    word = drawn.choice(sorted(RECKONED))
    one, other = _whole(drawn, depth), _whole(drawn, depth)
    return Made(f"({one.text} {word} {other.text})", _of_both(one, other, RECKONED[word]))


def _of_both(one: Made, other: Made, work: Callable[[Any, Any], Any]) -> Value:
    """Give what becomes of two values; null where one is."""

    def value(row: dict[str, Any]) -> Any:  # noqa: ANN401 - of the expression
        left, right = one.value(row), other.value(row)
        return None if left is None or right is None else work(left, right)

    return value


def _case(drawn: Random, depth: int) -> Made:
    when, then, other = _truth(drawn, depth), _whole(drawn, depth), _whole(drawn, depth)
    text = drawn.choice(("CASE WHEN {} THEN {} ELSE {} END", "IF({}, {}, {})")).format(when.text, then.text, other.text)
    return Made(text, lambda row: then.value(row) if when.value(row) else other.value(row))


def _coalesce(drawn: Random, depth: int) -> Made:
    parts = [_whole(drawn, depth) for _ in range(drawn.randint(2, 3))]
    text = f"COALESCE({', '.join(part.text for part in parts)})"
    return Made(text, lambda row: next((found for part in parts if (found := part.value(row)) is not None), None))


def _absolute(drawn: Random, depth: int) -> Made:
    one = _whole(drawn, depth)
    return Made(f"ABS({one.text})", _of_one(one, lambda value: _fitting(abs(value))))


def _length(drawn: Random, depth: int) -> Made:
    one = _text(drawn, depth)
    return Made(f"CAST(LENGTH({one.text}) AS BIGINT)", _of_one(one, len))


def _of_one(one: Made, work: Callable[[Any], Any]) -> Value:
    return lambda row: None if (value := one.value(row)) is None else work(value)


def _nullif(drawn: Random, depth: int) -> Made:
    one, other = _whole(drawn, depth), _whole(drawn, depth)
    text = f"NULLIF({one.text}, {other.text})"
    return Made(text, lambda row: None if (value := one.value(row)) == other.value(row) else value)


def _truth(drawn: Random, depth: int) -> Made:
    """Draw an expression that is a BOOLEAN."""
    if depth == 0:
        return drawn.choice(
            (Made("t", lambda row: row["t"]), Made("true", lambda _: True), Made("false", lambda _: False))
        )
    return drawn.choice((_compared, _same, _and, _or, _not, _is_null, _in, _between))(drawn, depth - 1)


COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda one, other: one == other,
    "<>": lambda one, other: one != other,
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
}


def _compared(drawn: Random, depth: int) -> Made:
    word, kind = drawn.choice(sorted(COMPARED)), drawn.choice((_whole, _text))
    one, other = kind(drawn, depth), kind(drawn, depth)

    def by_bytes(left: Any, right: Any) -> bool:  # noqa: ANN401 - two of one type
        pair = (left.encode(), right.encode()) if isinstance(left, str) else (left, right)
        return COMPARED[word](*pair)

    return Made(f"({one.text} {word} {other.text})", _of_both(one, other, by_bytes))


def _same(drawn: Random, depth: int) -> Made:
    one, other = _whole(drawn, depth), _whole(drawn, depth)
    return Made(f"({one.text} <=> {other.text})", lambda row: one.value(row) == other.value(row))


def _and(drawn: Random, depth: int) -> Made:
    return _chained(drawn, depth, "AND", decides=False)


def _or(drawn: Random, depth: int) -> Made:
    return _chained(drawn, depth, "OR", decides=True)


def _chained(drawn: Random, depth: int, word: str, *, decides: bool) -> Made:
    """Draw two truths of which one value decides, and else null does."""
    one, other = _truth(drawn, depth), _truth(drawn, depth)

    def value(row: dict[str, Any]) -> bool | None:
        both = (one.value(row), other.value(row))
        return decides if decides in both else None if None in both else not decides

    return Made(f"({one.text} {word} {other.text})", value)


def _not(drawn: Random, depth: int) -> Made:
    one = _truth(drawn, depth)
    return Made(f"(NOT ({one.text}))", _of_one(one, lambda value: not value))


def _is_null(drawn: Random, depth: int) -> Made:
    one, word = drawn.choice((_whole, _truth, _text))(drawn, depth), drawn.choice(("IS NULL", "IS NOT NULL"))
    return Made(f"(({one.text}) {word})", lambda row: (one.value(row) is None) == (word == "IS NULL"))


def _in(drawn: Random, depth: int) -> Made:
    one, among = _whole(drawn, depth), drawn.sample((0, 1, -7, 7, 1000), k=2)
    return Made(f"({one.text} IN ({among[0]}, {among[1]}))", _of_one(one, lambda value: value in among))


def _between(drawn: Random, depth: int) -> Made:
    one, low, high = (_whole(drawn, depth) for _ in range(3))

    def value(row: dict[str, Any]) -> bool | None:
        found, least, most = one.value(row), low.value(row), high.value(row)
        above = None if None in (found, least) else found >= least
        below = None if None in (found, most) else found <= most
        return False if False in (above, below) else None if None in (above, below) else True

    return Made(f"({one.text} BETWEEN {low.text} AND {high.text})", value)


def _text(drawn: Random, depth: int) -> Made:
    """Draw an expression that is a STRING."""
    if depth == 0:
        word, spelled = drawn.choice((("west", "west"), ("", ""), ("it's", "it\\'s"), ("b\\c", "b\\\\c"), ("ä%", "ä%")))
        return drawn.choice((Made("s", lambda row: row["s"]), Made(f"'{spelled}'", lambda _: word)))
    return drawn.choice((_joined, _trimmed, _cut, _chosen))(drawn, depth - 1)


def _joined(drawn: Random, depth: int) -> Made:
    one, other = _text(drawn, depth), _text(drawn, depth)
    text = drawn.choice(("({} || {})", "CONCAT({}, {})")).format(one.text, other.text)
    return Made(text, _of_both(one, other, lambda left, right: left + right))


def _trimmed(drawn: Random, depth: int) -> Made:
    one = _text(drawn, depth)
    return Made(f"TRIM({one.text})", _of_one(one, lambda value: value.strip(" ")))


def _cut(drawn: Random, depth: int) -> Made:
    one, first, count = _text(drawn, depth), drawn.randint(1, 4), drawn.randint(0, 4)
    return Made(f"SUBSTRING({one.text}, {first}, {count})", _of_one(one, lambda value: value[first - 1 :][:count]))


def _chosen(drawn: Random, depth: int) -> Made:
    when, then, other = _truth(drawn, depth), _text(drawn, depth), _text(drawn, depth)
    text = f"CASE WHEN {when.text} THEN {then.text} ELSE {other.text} END"
    return Made(text, lambda row: then.value(row) if when.value(row) else other.value(row))
