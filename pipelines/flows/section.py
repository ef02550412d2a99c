"""One mapping of a flow file and the questions the reader asks of it; a wrong answer is a `FlowError` with its line.

What was not asked for is not there: `only` is told all keys that a section may have before any is read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, NoReturn, TypeVar

from pipelines.flows import durations
from pipelines.flows.document import Listing, Scalar, Tree, YamlMapping
from pipelines.flows.errors import DurationError, FlowError, nearest, one_of

if TYPE_CHECKING:
    import collections.abc as cx
    from enum import Enum

Choice = TypeVar("Choice", bound="Enum")

OFF = "off"
"""The word that takes away a bound."""
DIGITS = 18
"""The most digits of a count, so that it stays below the largest tick."""

RATIO = re.compile(r"[+-]?[0-9_]{0,18}(\.[0-9_]{0,18})?(/[0-9_]{1,18})?([eE][+-]?[0-9]{1,2})?")


BESIDE_MODULE = frozenset({"parallel", "connection", "most_behind", "instances", "dispatch"})
"""Keys of a reference to a module, which people look for elsewhere too."""


@dataclass(frozen=True)
class Section:
    """A mapping, the file it stands in, what a person calls it, and the parameters it may use."""

    file: str
    what: str
    tree: YamlMapping
    parameters: cx.Mapping[str, str]
    said_at: cx.Mapping[str, str] = field(default_factory=dict)
    """File and line of the parameters of a module."""

    def line(self, key: str | None = None) -> int:
        """Give the line of a key, or of the section where the key is not there."""
        return self.tree.lines.get(key or "", self.tree.line)

    def wrong(self, key: str | None, came: str, expected: str, near: str | None = None) -> FlowError:
        """Make the error that `key` deserves."""
        return FlowError(self.file, self.line(key), f"{came} in {self.what}{self._where(key)}", expected, near)

    def _where(self, key: str | None) -> str:
        """Say where the parameters that stand under a key were given."""
        tree = self.tree.entries.get(key or "")
        names = durations.parameters_in(tree.text) if isinstance(tree, Scalar) else []
        return "".join(f", where {self.said_at[name]} gives `{name}`" for name in names if name in self.said_at)

    def has(self, key: str) -> bool:
        """Say whether the key is there."""
        return key in self.tree.entries

    def only(self, known: cx.Collection[str], later: cx.Collection[str] = ()) -> None:
        """Refuse every key but the known ones; those that are planned, or stand elsewhere, by name."""
        for key in self.tree.entries:
            if key in BESIDE_MODULE and key not in known:
                raise self.wrong(key, f"`{key}`, which stands beside `module:` alone,", one_of(known))
            if key in later:
                raise self.wrong(key, f"`{key}`, which is not built yet,", one_of(known))
            if key not in known:
                raise self.wrong(key, f"unknown key `{key}`", one_of(known), nearest(key, known))

    def inner(self, key: str, what: str, expected: str = "a mapping") -> Section:
        """Give the mapping under a key; an empty one where there is none."""
        tree = self.tree.entries.get(key, YamlMapping({}, {}, self.line(key)))
        if not isinstance(tree, YamlMapping):
            self._refuse(key, tree, expected)
        return replace(self, what=what, tree=replace(tree, line=self.line(key)))

    def text(self, key: str, default: str | None = None) -> str:
        """Give one word; one that must be there has no default."""
        if not self.has(key) and default is not None:
            return default
        tree = self._value(key, f"`{key}:` with a value")
        return self._word(key, tree, "a word")

    def optional(self, key: str) -> str | None:
        """Give one word, or None where the key is not there."""
        return self.text(key) if self.has(key) else None

    def names(self, key: str) -> tuple[str, ...]:
        """Give one word or a list of different words."""
        tree = self._value(key, f"`{key}:` with a name or a list of names")
        items = tree.items if isinstance(tree, Listing) else (tree,)
        found = tuple(self._word(key, item, "a name or a list of names") for item in items)
        if not found:
            raise self.wrong(key, f"an empty `{key}`", "at least one name")
        twice = [name for name in found if found.count(name) > 1]
        if twice:
            raise self.wrong(key, f"`{twice[0]}` twice under `{key}`", "different names")
        return found

    def words(self, key: str) -> dict[str, str]:
        """Give a mapping from word to word; an empty one where the key is not there."""
        if not self.has(key):
            return {}
        inside = self.inner(key, f"`{key}` in {self.what}")
        for name, after in pairwise(inside.tree.entries):
            first = inside.tree.entries[name]
            if isinstance(first, Scalar) and "(" in first.text and ")" not in first.text and after.endswith(")"):
                came = f"`{name}: {first.text}`, and `{after}` as another name,"
                raise inside.wrong(name, came, f'`{name}: "{first.text}, {after}"`: in braces a comma ends a value')
        return {name: inside.text(name) for name in inside.tree.entries}

    def values(self, key: str) -> tuple[str | int | bool, ...]:
        """Give a list of different texts, integers or truth values."""
        tree = self._value(key, "a list of values")
        if not isinstance(tree, Listing) or not tree.items:
            self._refuse(key, tree, "a list of values such as [EWR, JFK]")
        found = tuple(self._plain(key, item) for item in tree.items)
        twice = [value for value in found if found.count(value) > 1]
        if twice:
            raise self.wrong(key, f"`{twice[0]}` twice under `{key}`", "different values")
        return found

    def ticks(self, key: str) -> int:
        """Give a duration in ticks."""
        tree = self._value(key, f"`{key}:` with {durations.EXPECTED}")
        if not isinstance(tree, Scalar) or tree.kind in {"null", "bool", "timestamp"}:
            self._refuse(key, tree, durations.EXPECTED)
        try:
            return durations.parse(tree.text, self.parameters)
        except DurationError as problem:
            raise self.wrong(key, f"`{key}: {problem.came.strip('`')}`", problem.expected, problem.nearest) from None

    def bound(self, key: str, default: int | None) -> int | None:
        """Give a duration in ticks, or None for `off`."""
        if not self.has(key):
            return default
        return None if self._replaced(key) == OFF else self.ticks(key)

    def says(self, key: str, word: str) -> bool:
        """Say whether this very word stands under a key that is there."""
        return isinstance(self.tree.entries[key], Scalar) and self._replaced(key) == word

    def count(self, key: str, expected: str = "a whole number") -> int:
        """Give a whole number."""
        tree = self._value(key, f"`{key}:` with {expected}")
        text = self._replaced(key).replace("_", "")
        if not (text.isascii() and text.lstrip("+-").isdigit()) or len(text) > DIGITS:
            self._refuse(key, tree, expected)
        return int(text)

    def ratio(self, key: str) -> tuple[int, int]:
        """Give an integer, a decimal or `a/b` as numerator and denominator, exactly."""
        tree = self._value(key, f"`{key}:` with a ratio")
        written = self._replaced(key).replace(" ", "")
        # A power of ten in it would be multiplied out, whatever its size.
        if not RATIO.fullmatch(written):
            self._refuse(key, tree, "a ratio: a whole number, a decimal or `a/b`")
        try:
            exact = Fraction(written)
        except (ValueError, ZeroDivisionError):
            self._refuse(key, tree, "a ratio: a whole number, a decimal or `a/b`")
        return exact.numerator, exact.denominator

    def flag(self, key: str, yes: Choice, no: Choice) -> Choice:
        """Give `yes` for true and `no` for false or where the key is not there."""
        words = {"true": yes, "false": no}
        return words[self._one_of(key, words)] if self.has(key) else no

    def choice(self, key: str, choices: type[Choice], default: Choice | None = None) -> Choice:
        """Give the member that is written in lower case."""
        if not self.has(key) and default is not None:
            return default
        words = {member.name.lower(): member for member in choices}
        return words[self._one_of(key, words)]

    def _one_of(self, key: str, words: cx.Collection[str]) -> str:
        expected = one_of(words)
        tree = self._value(key, f"`{key}:` with {expected}")
        # YAML reads the word `null` as nothing, and where it is a word to choose it is meant.
        is_null = isinstance(tree, Scalar) and tree.kind == "null" and tree.text in words
        word = "null" if is_null else self._word(key, tree, expected)
        if word not in words:
            raise self.wrong(key, f"`{key}: {word}`", expected, nearest(word, words))
        return word

    def _value(self, key: str, expected: str) -> Tree:
        if not self.has(key):
            raise FlowError(self.file, self.line(), f"no `{key}` in {self.what}", expected)
        return self.tree.entries[key]

    def _word(self, key: str, tree: Tree, expected: str) -> str:
        if not isinstance(tree, Scalar) or tree.kind == "null":
            self._refuse(key, tree, expected)
        try:
            return durations.replaced(tree.text, self.parameters)
        except DurationError as problem:
            raise self.wrong(key, f"`{key}: {tree.text}`", problem.expected, problem.nearest) from None

    def _replaced(self, key: str) -> str:
        return self._word(key, self.tree.entries[key], "a value")

    def _plain(self, key: str, tree: Tree) -> str | int | bool:
        if not isinstance(tree, Scalar) or tree.kind not in {"str", "int", "bool"}:
            self._refuse(key, tree, "texts in quotes, whole numbers, true or false")
        if tree.kind == "str":
            return self._word(key, tree, "a text")
        return tree.text.lower() == "true" if tree.kind == "bool" else self._integer(key, tree)

    def _integer(self, key: str, tree: Scalar) -> int:
        written = tree.text.replace("_", "").lower()
        try:
            return int(written, 0 if written.lstrip("+-")[:2] in {"0x", "0o", "0b"} else 10)
        except ValueError:
            self._refuse(key, tree, "a whole number")

    def _refuse(self, key: str, tree: Tree, expected: str) -> NoReturn:
        raise self.wrong(key, f"{tree} under `{key}`", expected)
