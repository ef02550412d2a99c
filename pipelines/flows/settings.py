"""One reader for the settings that each operator declares as data."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pipelines.flows.document import Scalar
from pipelines.flows.durations import unfilled
from pipelines.flows.errors import nearest, one_of
from pipelines.flows.model import RESERVED
from pipelines.flows.policies import enum_of
from pipelines.operators.specs import Reads, Unset

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from enum import IntEnum

    from pipelines.flows.document import Tree
    from pipelines.flows.section import Section
    from pipelines.operators.specs import OperatorSpec, Setting

MEASURES = ("count", "sum", "min", "max", "mean")
MEASURE = re.compile(r"([a-z]+)(?:\(\s*(?:([^\W\d]\w*)|`([^`]+)`)\s*\))?")
"""A function, and the column that it is of: any other name than a word stands in backquotes, as in expressions."""


def read_settings(section: Section, spec: OperatorSpec, taken: Mapping[str, str]) -> dict[str, Any]:
    """Read what a stream says of its operator; what it does not say and the policy knows by itself is left out.

    Args:
        section: of the stream.
        spec: of the operator.
        taken: names that no column may get, and why.

    Returns:
        Fields of the policy.

    Raises:
        FlowError: a setting is missing, or makes no sense.
    """
    found: dict[str, Any] = {}
    for setting in spec.settings:
        if setting.reads is Reads.ELSEWHERE:
            continue
        if section.has(setting.key) or (setting.default is Unset.NEEDED and not setting.like):
            found[setting.field or setting.key] = _read(section, spec, setting, taken)
        elif setting.like:
            found[setting.key] = found[setting.like]
        elif setting.default is not Unset.POLICY:
            found[setting.field or setting.key] = setting.default
    return found


def _read(section: Section, spec: OperatorSpec, setting: Setting, taken: Mapping[str, str]) -> object:
    key = setting.key
    readers: Mapping[Reads, Callable[[], object]] = {
        Reads.TICKS: lambda: section.ticks(key),
        Reads.BOUND: lambda: section.bound(key, None),
        Reads.COUNT: lambda: section.count(key),
        Reads.RATIO: lambda: section.ratio(key),
        Reads.NAMES: lambda: section.names(key),
        Reads.CHOICE: lambda: section.choice(key, enum_of(spec.name, key)),
        Reads.FLUSH: lambda: _flush(section, key, enum_of(spec.name, setting.field)),
        Reads.EXPRESSION: lambda: expression_at(section, key, section.text(key)),
        Reads.COLUMNS: lambda: _columns(section, key, taken),
        Reads.MEASURES: lambda: _measures(section, key),
    }
    return readers[setting.reads]()


def _flush(section: Section, key: str, ends: type[IntEnum]) -> IntEnum:
    return section.flag(key, yes=ends["FLUSH"], no=ends["HOLD"])


def _columns(section: Section, key: str, taken: Mapping[str, str]) -> tuple[str, ...]:
    """Read columns that are made; one that stays anyway may be named as itself, for where it would not stay."""
    told, inside = section.words(key), section.inner(key, f"`{key}` of {section.what}")
    told = {name: f"`{name}`" if text == name and not _is_expression(text) else text for name, text in told.items()}
    made = {
        name: text
        for name, text in told.items()
        if name in RESERVED or name not in taken or text not in {name, f"`{name}`"}
    }
    for name, text in made.items():
        if name in taken:
            itself = "" if name in RESERVED else f", or `{name}: {name}`"
            raise inside.wrong(name, f"`{name}`, a column that {taken[name]},", f"another name{itself}")
        expression_at(inside, name, text)
    return tuple(f"{name}={text}" for name, text in made.items())


def _is_expression(text: str) -> bool:
    """Say whether a text can be read as one; a name with a blank cannot, and means itself where it is all there is."""
    from pipelines.flows.expressions import ExpressionError, parse_expression

    try:
        parse_expression(text)
    except ExpressionError:
        return False
    return True


def expression_at(section: Section, key: str, text: str) -> str:
    """Give the expression that stands under a key.

    Raises:
        FlowError: it cannot be read.
    """
    from pipelines.flows.expressions import ExpressionError, parse_expression

    try:
        parse_expression(text)
    except ExpressionError as problem:
        left = unfilled(text)
        if left is not None:
            came, expected = f"`{key}: {text}` with `${{{left}}}`", f"a value for the parameter `{left}`"
            raise section.wrong(key, came, expected, nearest(left, section.parameters)) from problem
        came = f"`{key}: {text}` with {problem.came}"
        raise section.wrong(key, came, problem.expected, problem.nearest) from problem
    return text


def _measures(section: Section, key: str) -> tuple[str, ...]:
    inside = section.inner(key, f"`{key}` of {section.what}")
    return tuple(f"{name}={_measure(inside, name, tree)}" for name, tree in inside.tree.entries.items())


def _measure(section: Section, name: str, tree: Tree) -> str:
    expected = "`count`, or " + one_of(f"{function}(<column>)" for function in MEASURES)
    if not isinstance(tree, Scalar) or tree.kind == "null":
        raise section.wrong(name, f"{tree} under `{name}`", expected)
    text = section.text(name)
    if name in RESERVED:
        raise section.wrong(name, f"`{name}`, a column that every stream has,", "another name")
    found = MEASURE.fullmatch(text.strip())
    column = None if found is None else found[2] or found[3]
    if found is None or found[1] not in MEASURES or (column is None and found[1] != "count"):
        function, bracket, rest = text.strip().partition("(")
        column = rest.removesuffix(")")
        if function in MEASURES and bracket and " " in column and "`" not in column:
            raise section.wrong(
                name, f"`{name}: {text}`", f"backquotes around a name with a blank, {function}(`{column}`)"
            )
        near = nearest(function.strip(), MEASURES)
        raise section.wrong(name, f"`{name}: {text}`", expected, f"{near}(<column>)" if near else None)
    return found[1] if column is None else f"{found[1]}({column})"
