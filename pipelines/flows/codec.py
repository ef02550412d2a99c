"""How records become JSON and come back, as the types of their fields say it.

Enums are spelled by name in lower case, tuples are lists, a record is an object; whoever keeps records says what else a
type means. Nothing of a record is checked but its parts: which must be there, and which nobody knows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

Record = TypeVar("Record")


class Spelling(NamedTuple):
    """How values of a type are spelled."""

    tell: Callable[[Any], Any]
    """Give a value as JSON."""
    read: Callable[[Any], Any]
    """Give the value that JSON says."""


def same(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Give what is given."""
    return value


PLAIN = Spelling(same, same)
"""Of what JSON has itself: text, numbers, truth values, null."""


@dataclass(frozen=True, kw_only=True)
class Codec:
    """Spells records, that is dataclasses and named tuples; fields go by their name in any of them.

    >>> class Ball(NamedTuple):
    ...     name: str
    ...     sizes: tuple[int, ...] = ()
    >>> balls = Codec(called={"sizes": "cm"}, unsaid={"sizes"})
    >>> balls.to_json(Ball("small")), balls.to_json(Ball("round", (3, 4)))
    ({'name': 'small'}, {'name': 'round', 'cm': [3, 4]})
    >>> balls.from_json(Ball, {"name": "round", "cm": [3]})
    Ball(name='round', sizes=(3,))
    """

    called: Mapping[str, str] = field(default_factory=dict)
    """Fields that JSON calls otherwise."""
    unsaid: AbstractSet[str] = frozenset()
    """Fields that JSON has only where they differ from their default."""
    beside: AbstractSet[str] = frozenset()
    """Fields that JSON never has."""
    needed: AbstractSet[str] = frozenset()
    """Fields that JSON must have although they have a default."""
    lenient: bool = False
    """Whether parts that nobody knows are read past."""
    spelled: Mapping[Any, Spelling] = field(default_factory=dict)
    """Types with a spelling of their own."""
    _made: dict[Any, Spelling] = field(default_factory=dict, init=False)

    def to_json(self, record: object) -> dict[str, Any]:
        """Spell a record."""
        told: dict[str, Any] = self._of(type(record)).tell(record)
        return told

    def from_json(self, kind: type[Record], said: Mapping[str, Any]) -> Record:
        """Read a record; what JSON never has may be said as it is.

        Raises:
            KeyError: a part that is needed is missing, or a word stands for no value of its enumeration.
            TypeError: another part is missing or not known, or a value is of another kind.
            AttributeError, ValueError: a value is of another kind.
        """
        record: Record = self._of(kind).read(said)
        return record

    def _of(self, kind: Any) -> Spelling:  # noqa: ANN401 - a type
        if kind not in self._made:
            self._made[kind] = self.spelled.get(kind) or self._by_type(kind)
        return self._made[kind]

    def _by_type(self, kind: Any) -> Spelling:  # noqa: ANN401 - a type
        origin, of = get_origin(kind), get_args(kind)
        others = [each for each in of if each is not NoneType]
        if origin in {Union, UnionType} and len(others) == 1:
            return _or_none(self._of(others[0]))
        if origin is list or (origin is tuple and of[-1] is ...):
            return _list_of(self._of(of[0]), origin)
        if origin is tuple:
            return _row_of([self._of(each) for each in of])
        if origin in {dict, Mapping}:
            return _object_of(self._of(of[1]))
        if isinstance(kind, type) and issubclass(kind, Enum):
            return Spelling(lambda value: value.name.lower(), lambda said: kind[said.upper()])
        return self._of_record(kind) if is_dataclass(kind) or hasattr(kind, "_fields") else PLAIN

    def _of_record(self, kind: Any) -> Spelling:  # noqa: ANN401 - a type
        types, defaults = get_type_hints(kind, include_extras=True), _defaults(kind)
        keys = {name: self.called.get(name, name) for name in defaults}
        names = {key: name for name, key in keys.items()}
        told = {name: self._of(types[name]) for name in defaults if name not in self.beside}
        unsaid = [name for name in told if name in self.unsaid]
        needed = [keys[name] for name in told if name in self.needed]
        reads = {name: how.read for name, how in told.items() if how is not PLAIN}

        def tell(record: object) -> dict[str, Any]:
            said = {keys[name]: how.tell(getattr(record, name)) for name, how in told.items()}
            for name in unsaid:
                if getattr(record, name) == defaults[name]:
                    del said[keys[name]]
            return said

        def read(said: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a record
            for key in needed:
                said[key]
            parts = {names.get(key, key): part for key, part in said.items() if key in names or not self.lenient}
            for name, read_part in reads.items():
                if name in parts:
                    parts[name] = read_part(parts[name])
            return kind(**parts)

        return Spelling(tell, read)


def _defaults(kind: Any) -> dict[str, Any]:  # noqa: ANN401 - a type
    """Give the default of each field of a record, whatever stands for none."""
    if not is_dataclass(kind):
        return {name: kind._field_defaults.get(name) for name in kind._fields}
    found = {}
    for part in fields(kind):
        factory = part.default_factory
        found[part.name] = part.default if factory is MISSING else factory()
    return found


def _or_none(how: Spelling) -> Spelling:
    if how is PLAIN:
        return PLAIN
    return Spelling(
        lambda value: None if value is None else how.tell(value), lambda said: None if said is None else how.read(said)
    )


def _list_of(how: Spelling, made: type) -> Spelling:
    if how is PLAIN:
        return Spelling(list, made)
    return Spelling(lambda values: [*map(how.tell, values)], lambda said: made(map(how.read, said)))


def _row_of(each: list[Spelling]) -> Spelling:
    if all(how is PLAIN for how in each):
        return Spelling(list, tuple)
    return Spelling(
        lambda values: [how.tell(value) for how, value in zip(each, values, strict=True)],
        lambda said: tuple([how.read(part) for how, part in zip(each, said, strict=True)]),
    )


def _object_of(how: Spelling) -> Spelling:
    if how is PLAIN:
        return Spelling(dict, dict)
    return Spelling(
        lambda values: {name: how.tell(value) for name, value in values.items()},
        lambda said: {name: how.read(part) for name, part in said.items()},
    )
