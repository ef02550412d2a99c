"""A YAML file as a tree that knows its lines: no value is guessed, none becomes a float, no key is lost.

YAML readers let the second of two equal keys win, and turn `0.1` into a binary fraction. Here both stay as written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from pipelines.flows.errors import FlowError

if TYPE_CHECKING:
    from pathlib import Path

TAG = "tag:yaml.org,2002:"
KINDS = frozenset({"str", "int", "float", "bool", "null", "timestamp"})
BARE_PARAMETER = re.compile(r"[:,\[]\s*(\$\{[^}]*\})")
DEEPEST = 20
"""Levels of lists and mappings within each other; deeper is an alias that contains itself."""


@dataclass(frozen=True)
class Scalar:
    """One plain value, as written."""

    text: str
    kind: str
    """`str`, `int`, `float`, `bool`, `null` or `timestamp`: what YAML takes it for."""
    line: int

    def __str__(self) -> str:
        """Spell it for a person."""
        return f"`{self.text}`" if self.kind != "null" else "nothing"


@dataclass(frozen=True)
class Listing:
    """A list."""

    items: tuple[Tree, ...]
    line: int

    def __str__(self) -> str:
        """Spell it for a person."""
        return f"a list of {len(self.items)}"


@dataclass(frozen=True)
class Mapping:
    """A mapping, its keys in the order in which they stand."""

    entries: dict[str, Tree]
    lines: dict[str, int]
    """Where each key stands."""
    line: int

    def __str__(self) -> str:
        """Spell it for a person."""
        return "a mapping"


Tree = Scalar | Listing | Mapping


def load(path: Path) -> Mapping:
    """Read a YAML file whose top is a mapping.

    Args:
        path: the file.

    Returns:
        The mapping at its top.

    Raises:
        FlowError: no such file, no YAML, two documents, a key that stands twice, or another top than a mapping.
    """
    file = str(path)
    text = ""
    try:
        text = path.read_text(encoding="utf-8")
        root = YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as problem:
        line = _line(problem)
        raise FlowError(file, line, f"no YAML ({_one_line(problem.problem)})", _expected(text, line)) from None
    except YAMLError as problem:
        raise FlowError(file, 1, f"no YAML ({_one_line(str(problem))})", "a readable document") from None
    except (OSError, UnicodeDecodeError) as problem:
        raise FlowError(file, 1, f"no readable file ({_one_line(str(problem))})", "a flow in YAML, in UTF-8") from None
    tree = _tree(root, file, 0) if root is not None else Scalar("", "null", 1)
    if not isinstance(tree, Mapping):
        raise FlowError(file, tree.line, f"{tree} at the top", "a mapping that begins with `flow: <name>`")
    return tree


def _line(problem: MarkedYAMLError) -> int:
    mark = problem.problem_mark or problem.context_mark
    return mark.line + 1 if mark else 1


def _expected(text: str, line: int) -> str:
    """Say what to write: a parameter among braces needs quotes, for its own braces are YAML's."""
    found = BARE_PARAMETER.search("".join(text.splitlines()[line - 1 : line]))
    return f'a readable document: write "{found[1]}", in quotes' if found else "a readable document"


def _one_line(text: str | None) -> str:
    return re.sub(r"\s+", " ", text or "unreadable").strip()


def _tree(node: Node, file: str, depth: int) -> Tree:
    line = node.start_mark.line + 1
    if depth > DEEPEST:
        raise FlowError(file, line, "an alias that contains itself", "plain values")
    if isinstance(node, MappingNode):
        return _mapping(node, file, depth)
    if isinstance(node, SequenceNode):
        return Listing(tuple(_tree(item, file, depth + 1) for item in node.value), line)
    kind = str(node.tag).removeprefix(TAG)
    if kind not in KINDS:
        raise FlowError(file, line, f"the tag {node.tag}", "a plain value")
    return Scalar(node.value, kind, line)


def _mapping(node: MappingNode, file: str, depth: int) -> Mapping:
    entries: dict[str, Tree] = {}
    lines: dict[str, int] = {}
    for key, value in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, ScalarNode):
            raise FlowError(file, line, "a key that is no word", "a word before the colon")
        if key.value in entries:
            came = f"`{key.value}` a second time (the first is in line {lines[key.value]})"
            raise FlowError(file, line, came, "each key once")
        entries[key.value], lines[key.value] = _tree(value, file, depth + 1), line
    return Mapping(entries, lines, node.start_mark.line + 1)
