"""Records as JSON and back: by the types of their fields, and by what is said of fields and types."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - the codec reads the types of fields
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any, NamedTuple

import pytest

from pipelines.flows.codec import Codec, Spelling

Hexadecimal = Annotated[int, "hexadecimal"]


class Colour(Enum):
    """Spelled by name, never by value."""

    DARK_RED = "dr"
    BLUE = "b"


class Dot(NamedTuple):
    """A named tuple is an object, too."""

    x: int
    colour: Colour = Colour.BLUE


@dataclass(frozen=True, kw_only=True)
class Thing:
    """A field of each type that is known."""

    name: str
    """Called `is` in JSON."""
    colours: tuple[Colour, ...]
    dot: Dot | None = None
    number: Hexadecimal = 0
    spans: tuple[tuple[Hexadecimal, Colour], ...] = ()
    by: Mapping[str, Colour] = field(default_factory=dict)
    lists: list[dict[str, Colour]] = field(default_factory=list)
    mixed: tuple[str | int | bool | None, ...] = ()
    """Left out where there is nothing."""
    place: object = None
    """Never there."""


CODEC = Codec(
    called={"name": "is"},
    unsaid={"mixed"},
    beside={"place"},
    needed={"number"},
    spelled={Hexadecimal: Spelling(hex, lambda text: int(text, 16))},
)
PLAIN: dict[str, Any] = {"is": "a", "colours": [], "dot": None, "number": "0x0", "spans": [], "by": {}, "lists": []}


@pytest.mark.parametrize(
    ("thing", "said"),
    [
        (Thing(name="a", colours=()), {}),
        (Thing(name="a", colours=(Colour.DARK_RED, Colour.BLUE)), {"colours": ["dark_red", "blue"]}),
        (Thing(name="a", colours=(), dot=Dot(1)), {"dot": {"x": 1, "colour": "blue"}}),
        (Thing(name="a", colours=(), number=255), {"number": "0xff"}),
        (Thing(name="a", colours=(), spans=((1, Colour.BLUE),)), {"spans": [["0x1", "blue"]]}),
        (Thing(name="a", colours=(), by={"k": Colour.BLUE}), {"by": {"k": "blue"}}),
        (Thing(name="a", colours=(), lists=[{"k": Colour.BLUE}, {}]), {"lists": [{"k": "blue"}, {}]}),
        (Thing(name="a", colours=(), mixed=("x", 1, True, None)), {"mixed": ["x", 1, True, None]}),
    ],
)
def test_a_record_is_spelled_by_its_types_and_read_back(thing: Thing, said: dict[str, object]) -> None:
    assert CODEC.to_json(thing) == PLAIN | said
    assert CODEC.from_json(Thing, PLAIN | said) == thing


def test_fields_stand_in_their_order_with_those_left_out_where_they_were() -> None:
    codec = Codec(unsaid={"colours", "number"})
    told = codec.to_json(Thing(name="a", colours=(Colour.BLUE,), number=1, place=None))
    assert list(told) == ["name", "colours", "dot", "number", "spans", "by", "lists", "mixed", "place"]


def test_what_json_never_has_is_read_where_it_is_said_beside() -> None:
    place = object()
    thing = CODEC.from_json(Thing, PLAIN | {"place": place})
    assert thing.place is place
    assert CODEC.to_json(thing) == PLAIN


def test_parts_with_a_default_may_be_missing_but_for_those_that_are_needed() -> None:
    assert CODEC.from_json(Thing, {"is": "a", "colours": [], "number": "0x0"}) == Thing(name="a", colours=())
    with pytest.raises(KeyError, match="number"):
        CODEC.from_json(Thing, {"is": "a", "colours": []})
    with pytest.raises(TypeError, match="'colours'"):
        CODEC.from_json(Thing, {"is": "a", "number": "0x0"})


def test_a_part_that_nobody_knows_is_refused_or_read_past() -> None:
    with pytest.raises(TypeError, match="'strange'"):
        CODEC.from_json(Thing, PLAIN | {"strange": 1})
    assert Codec(lenient=True).from_json(Dot, {"x": 1, "strange": 1}) == Dot(1)


def test_a_word_that_stands_for_nothing_is_refused() -> None:
    with pytest.raises(KeyError, match="GREEN"):
        CODEC.from_json(Thing, PLAIN | {"colours": ["green"]})
