"""Columns that rows bring and nobody declared: typed by what came, and landed beside the declared ones.

They change no declared row, and no stream reads them: they are there for whoever declares them later.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import RESERVED, UNREADABLE, canonical_json

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

JSON, NOTHING = "json", "null"
"""Kinds beside the types that land: text that spells JSON, and a column of which no value ever came."""
PLAIN = {"bool": pa.bool_(), "int64": pa.int64(), "float64": pa.float64(), "string": pa.string(), JSON: pa.string()}
"""Arrow's type of each kind that JSON makes."""
MARK = {b"pulseline": JSON.encode()}
"""What a file says of a column of text that spells JSON."""
MOST_NAMES = 100
"""Undeclared columns of one sequence and source; others stay where they are, in the bytes of their rows."""
LONGEST_NAME = 200
DEEPEST = 50
"""How deep a value of JSON may be nested to land in a column."""
INT64 = range(-(1 << 63), 1 << 63)
EXACT = 1 << 53
"""Up to here a float64 is a whole number exactly."""


class Undeclared(NamedTuple):
    """One column that nobody declared, of some rows."""

    kind: str
    """Its type as a flow spells it, JSON, or NOTHING."""
    values: pa.Array

    @property
    def valued(self) -> int:
        """Count the rows that have a value."""
        return len(self.values) - int(self.values.null_count)

    def taken(self, rows: pa.Array) -> Undeclared:
        """Give some of the rows.

        Args:
            rows: numbers of rows, or a truth value for each.
        """
        kept = self.values.filter(rows) if pa.types.is_boolean(rows.type) else self.values.take(rows)
        return Undeclared(self.kind, kept)


@dataclass
class Names:
    """The undeclared columns that a sequence has room for, first come, first served.

    Args:
        taken: names that other columns have.
    """

    taken: Collection[str] = ()
    known: set[str] = field(default_factory=set)

    def admit(self, name: str) -> bool:
        """Say whether the column may land; it is known from now on."""
        if name in self.known:
            return True
        is_name = name.isprintable() and 0 < len(name) <= LONGEST_NAME
        if not is_name or name in RESERVED or name == UNREADABLE or name in self.taken or len(self.known) >= MOST_NAMES:
            return False
        self.known.add(name)
        return True


def is_deep(value: object) -> bool:
    """Say whether a value is nested too deep to land in a column."""
    level = [value]
    for _ in range(DEEPEST):
        level = [inner for each in level if isinstance(each, dict | list) for inner in _parts(each)]
        if not level:
            return False
    return True


def _parts(value: dict[str, object] | list[object]) -> Collection[object]:
    return value.values() if isinstance(value, dict) else value


def of_objects(values: Mapping[int, object], rows: int) -> Undeclared:
    """Give a column its type by the values that JSON had for it.

    Values of different types, nested ones and numbers that no type holds exactly become text that spells JSON.

    >>> of_objects({0: 1, 2: 2.5}, 3).values.to_pylist()
    [1.0, None, 2.5]
    >>> of_objects({0: 1, 1: "a"}, 2).values.to_pylist()
    ['1', '"a"']

    Args:
        values: by row; rows without the column are not there.
        rows: how many there are in all.
    """
    there = {row: value for row, value in values.items() if value is not None}
    kinds = {_kind(value) for value in there.values()}
    if not kinds:
        return Undeclared(NOTHING, pa.nulls(rows))
    if kinds == {"int64", "float64"} and all(abs(value) <= EXACT for value in there.values() if isinstance(value, int)):
        kinds = {"float64"}
    kind = kinds.pop() if len(kinds) == 1 else JSON
    laid: list[object] = [None] * rows
    for row, value in there.items():
        laid[row] = to_json(value) if kind == JSON else value
    return Undeclared(kind, pa.array(laid, PLAIN[kind]))


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int64" if value in INT64 else JSON
    if isinstance(value, float):
        return "float64" if math.isfinite(value) else JSON
    return "string" if isinstance(value, str) else JSON


def to_json(value: object) -> str:
    """Give a value as JSON: as the ledger does, but a whole number the same whether it came with a fraction or not.

    So it does not matter of which type the column was when it landed.

    >>> to_json({"b": 1.0, "a": [True]}), to_json("x")
    ('{"a":[true],"b":1}', '"x"')
    """
    return canonical_json(_whole(value))


def _whole(value: object) -> object:
    if isinstance(value, float) and value.is_integer() and abs(value) <= EXACT:
        return int(value)
    if isinstance(value, dict):
        return {name: _whole(inner) for name, inner in value.items()}
    return [_whole(inner) for inner in value] if isinstance(value, list) else value


def texts_of(column: Undeclared, *, as_json: bool = False) -> pa.Array:
    """Give the values as canonical text; text itself stands as it is, unless it is to spell JSON."""
    if column.kind == (JSON if as_json else "string"):
        return column.values
    if column.kind == JSON:
        spelt = [None if text is None else json.loads(text) for text in column.values.to_pylist()]
        return pa.array([value if value is None else _text(value) for value in spelt], pa.string())
    write = to_json if as_json else _text
    return pa.array([value if value is None else write(value) for value in column.values.to_pylist()], pa.string())


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    text = to_json(value)
    return str(json.loads(text)) if text.startswith('"') else text


def together(parts: Sequence[tuple[int, Mapping[str, Undeclared]]]) -> dict[str, Undeclared]:
    """Join the undeclared columns of several readings into those of one sequence.

    Args:
        parts: how many rows each has, and its columns.
    """
    found: dict[str, list[Undeclared]] = defaultdict(list)
    before = 0
    for rows, columns in parts:
        for name, column in columns.items():
            have = sum(len(each.values) for each in found[name])
            found[name] += [_nothing(before - have), column]
        before += rows
    return {name: _joined([*columns, _nothing(before - _length(columns))]) for name, columns in found.items()}


def _length(columns: Iterable[Undeclared]) -> int:
    return sum(len(column.values) for column in columns)


def _nothing(rows: int) -> Undeclared:
    return Undeclared(NOTHING, pa.nulls(rows))


def _joined(columns: Sequence[Undeclared]) -> Undeclared:
    kinds = {column.kind: column.values.type for column in columns if column.kind != NOTHING}
    kind, type_ = _common(kinds, columns)
    return Undeclared(kind, pa.concat_arrays([_as(column, kind, type_) for column in columns]))


def _as(column: Undeclared, kind: str, type_: pa.DataType) -> pa.Array:
    if column.kind == NOTHING:
        return pa.nulls(len(column.values), type_)
    return texts_of(column, as_json=True) if kind == JSON else column.values.cast(type_)


def coalesced(columns: Sequence[Undeclared]) -> Undeclared:
    """Join columns of the same rows, of which each row has a value in one at most."""
    kinds = {column.kind: column.values.type for column in columns if column.kind != NOTHING}
    kind, type_ = _common(kinds, columns)
    return Undeclared(kind, pc.coalesce(*(_as(column, kind, type_) for column in columns)))


def retyped(column: Undeclared) -> Undeclared:
    """Give a column the type that its own values have; others of its file may have had another."""
    if column.values.null_count == len(column.values):
        return Undeclared(NOTHING, pa.nulls(len(column.values)))
    if column.kind != JSON:
        return column
    texts = column.values.to_pylist()
    return of_objects({row: json.loads(text) for row, text in enumerate(texts) if text is not None}, len(texts))


def _common(kinds: Mapping[str, pa.DataType], columns: Sequence[Undeclared]) -> tuple[str, pa.DataType]:
    """Give the one kind that holds all values; text that spells JSON where there is none."""
    if not kinds:
        return NOTHING, pa.null()
    if len(kinds) == 1:
        return next(iter(kinds.items()))
    types = list(kinds.values())
    if JSON not in kinds and all(pa.types.is_integer(kind) for kind in types):
        return "int64", pa.int64()
    is_number = JSON not in kinds and all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in types)
    if is_number and all(_is_exact(column.values) for column in columns):
        return "float64", pa.float64()
    return JSON, pa.string()


def _is_exact(values: pa.Array) -> bool:
    """Say whether a float64 holds every value of a column of numbers."""
    if not pa.types.is_integer(values.type) or values.null_count == len(values):
        return True
    low, high = (end.as_py() for end in pc.min_max(values).values())
    return bool(low >= -EXACT and high <= EXACT)


def table_of(columns: Mapping[str, Undeclared]) -> pa.Table | None:
    """Lay the columns out as a sequence's file has them; None where none of them has a value."""
    there = {name: column for name, column in columns.items() if column.kind != NOTHING}
    if not there:
        return None
    fields = [
        pa.field(name, column.values.type, metadata=MARK if column.kind == JSON else None)
        for name, column in there.items()
    ]
    return pa.Table.from_arrays([column.values for column in there.values()], schema=pa.schema(fields))
