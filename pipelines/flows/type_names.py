"""Types of columns as a flow file spells them, such as `decimal(10, 2)` or `list<struct<at: timestamp, n: int8>>`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipelines.flows.errors import nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

PLAIN = (
    *("bool", "int8", "int16", "int32", "int64", "float32", "float64"),
    *("string", "binary", "date", "timestamp"),
)
NESTED = ("list", "struct")
SPELLED = (*PLAIN, "decimal(10, 2)", "list<int64>", "struct<a: int64, b: string>")
"""What to offer to somebody who wrote something else."""
ELSEWHERE = {
    **dict.fromkeys(("double", "float", "real", "number"), "float64"),
    **dict.fromkeys(("int", "integer", "long", "bigint"), "int64"),
    **dict.fromkeys(("str", "text", "varchar", "char", "object"), "string"),
    **dict.fromkeys(("datetime", "timestamptz", "datetime64", "instant"), "timestamp"),
    **dict.fromkeys(("short", "smallint"), "int16"),
    "boolean": "bool",
    "bytes": "binary",
    "tinyint": "int8",
    "array": "list<int64>",
    "numeric": "decimal(10, 2)",
}
"""What SQL, Spark, Python and pandas call a type, and what a flow file calls it."""
MOST_DIGITS = 38

_WORD = re.compile(r"\s*(\w+|[<>(),:])\s*")


@dataclass(frozen=True)
class TypeName:
    """A type that was read."""

    name: str
    """One of PLAIN, `decimal`, `list` or `struct`."""
    digits: tuple[int, int] = (0, 0)
    """Of a decimal: how many in all, and how many behind the point."""
    inner: tuple[tuple[str, TypeName], ...] = ()
    """Of a list its element, called `item`; of a struct its fields."""

    def holds(self, name: str) -> bool:
        """Say whether this is, or has inside, the type `name`."""
        return self.name == name or any(part.holds(name) for _, part in self.inner)


def read_type(text: str) -> TypeName | None:
    """Read a type; None where it is none.

    >>> read_type("decimal(10, 2)")
    TypeName(name='decimal', digits=(10, 2), inner=())
    >>> read_type("list<list>") is None
    True
    """
    try:
        words = _words(text)
        read = _type(words)
        more = next(words, None)
    except (ValueError, RecursionError):
        return None
    return read if more is None else None


def meant(text: str) -> str | None:
    """Give the type that somebody means who spells it as another system does.

    >>> meant("Double")
    'float64'
    >>> meant("float46")
    'float64'
    """
    name = re.split(r"\W", text.strip().lower(), maxsplit=1)[0]
    return ELSEWHERE.get(name) or nearest(text, SPELLED)


def _words(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        found = _WORD.match(text, at)
        if found is None:
            raise ValueError(text)
        yield found[1]
        at = found.end()


def _type(words: Iterator[str]) -> TypeName:
    name = next(words, "")
    if name == "decimal":
        return _decimal(words)
    if name == "list":
        _expect(words, "<")
        element = _type(words)
        _expect(words, ">")
        return TypeName(name, inner=(("item", element),))
    if name == "struct":
        return _struct(words)
    if name not in PLAIN:
        raise ValueError(name)
    return TypeName(name)


def _decimal(words: Iterator[str]) -> TypeName:
    _expect(words, "(")
    whole = int(next(words, ""))
    _expect(words, ",")
    behind = int(next(words, ""))
    _expect(words, ")")
    if not (0 < whole <= MOST_DIGITS and 0 <= behind <= whole):
        raise ValueError(whole)
    return TypeName("decimal", digits=(whole, behind))


def _struct(words: Iterator[str]) -> TypeName:
    _expect(words, "<")
    fields: dict[str, TypeName] = {}
    while True:
        name = next(words, "")
        if not name.isidentifier() or name in fields:
            raise ValueError(name)
        _expect(words, ":")
        fields[name] = _type(words)
        if (following := next(words, "")) == ">":
            return TypeName("struct", inner=tuple(fields.items()))
        if following != ",":
            raise ValueError(following)


def _expect(words: Iterator[str], wanted: str) -> None:
    if (came := next(words, "")) != wanted:
        raise ValueError(came)
