"""A YAML file as a tree that knows its lines: no value is guessed, none becomes a float, no key is lost.

YAML readers let the second of two equal keys win, and turn `0.1` into a binary fraction. Here both stay as written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from ruamel.yaml import YAML
from ruamel.yaml.composer import MaxDepthExceededError
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from pipelines.flows.errors import FlowError

if TYPE_CHECKING:
    from pathlib import Path

TAG = "tag:yaml.org,2002:"
KINDS = frozenset({"str", "int", "float", "bool", "null", "timestamp"})
BARE_PARAMETER = re.compile(r"[:,\[]\s*(\$\{[^}]*\})")
DEEPEST = 20
"""Levels of lists and mappings within each other; with aliases, deeper is one that contains itself."""
MOST_BYTES = 256 << 10
"""Bytes of a file: a scheduler reads all flows again and again, and must not wait for one."""
MOST_VALUES = 20_000
"""Values and keys of a file, where each alias counts as all that it stands for."""
LONGEST = 10_000
"""Characters of one value or key."""


@dataclass(frozen=True)
class Scalar:
    """One plain value, as written."""

    text: str
    kind: str
    """`str`, `int`, `float`, `bool`, `null` or `timestamp`: what YAML takes it for."""
    line: int

    def __str__(self) -> str:
        return f"`{self.text}`" if self.kind != "null" else "nothing"


@dataclass(frozen=True)
class Listing:
    """A list."""

    items: tuple[Tree, ...]
    line: int

    def __str__(self) -> str:
        return f"a list of {len(self.items)}"


@dataclass(frozen=True)
class YamlMapping:
    """A mapping, its keys in the order in which they stand."""

    entries: dict[str, Tree]
    lines: dict[str, int]
    """Where each key stands."""
    line: int

    def __str__(self) -> str:
        return "a mapping"


Tree = Scalar | Listing | YamlMapping


def load(path: Path, top: str = "a mapping that begins with `flow: <name>`") -> YamlMapping:
    """Read a YAML file whose top is a mapping.

    Safe for files of strangers: size, depth, and what aliases stand for are bounded before they are read.

    Args:
        path: the file.
        top: what the mapping at its top is, for a message.

    Returns:
        The mapping at its top.

    Raises:
        FlowError: no such file, no YAML, two documents, a key that stands twice, another top than a mapping, or more
            than a flow can need.
    """
    file = str(path)
    text = ""
    try:
        text = _text(path)
        root = _nodes(text)
    except MaxDepthExceededError as problem:
        came = f"lists and mappings within each other, more than {DEEPEST} deep"
        raise FlowError(file, _line(problem), came, "plain values") from None
    except MarkedYAMLError as problem:
        line = _line(problem)
        raise FlowError(file, line, f"no YAML ({_one_line(problem.problem)})", _expected(text, line, problem)) from None
    except YAMLError as problem:
        raise FlowError(file, 1, f"no YAML ({_one_line(str(problem))})", "a readable document") from None
    except (OSError, UnicodeDecodeError) as problem:
        raise FlowError(file, 1, f"no readable file ({_one_line(str(problem))})", "YAML in UTF-8") from None
    tree = _Trees(file).tree(root, 0) if root is not None else Scalar("", "null", 1)
    if not isinstance(tree, YamlMapping):
        raise FlowError(file, tree.line, f"{tree} at the top", top)
    return tree


@lru_cache(maxsize=4)
def _nodes(text: str) -> Node | None:
    """Parse a file; a command asks for one several times, for its name and for all of it."""
    reader = YAML(typ="safe", pure=True)
    # Given up before it is read: the reader's own time grows with the square of the depth.
    reader.max_depth = DEEPEST + 1
    nodes: Node | None = reader.compose(text)
    return nodes


def _line(problem: MarkedYAMLError) -> int:
    mark = problem.problem_mark or problem.context_mark
    return mark.line + 1 if mark else 1


def _expected(text: str, line: int, problem: MarkedYAMLError) -> str:
    """Say what to write: no tab, and quotes round backquotes and round a parameter, whose braces are YAML's own."""
    if "'\\t'" in (problem.problem or ""):
        return "spaces in place of the tab, for YAML takes no tabs there"
    if "'`'" in (problem.problem or ""):
        return 'a readable document: write "`a name`", in quotes, for backquotes begin nothing in YAML'
    found = BARE_PARAMETER.search("".join(text.splitlines()[line - 1 : line]))
    return f'a readable document: write "{found[1]}", in quotes' if found else "a readable document"


def _one_line(text: str | None) -> str:
    return re.sub(r"\s+", " ", text or "unreadable").strip()


def _text(path: Path) -> str:
    """Read a file.

    Raises:
        OSError: it cannot be read, is none, or is too large.
        UnicodeDecodeError: it is no UTF-8.
    """
    if not path.is_file() and path.exists():
        raise OSError("it is no file")
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise OSError(f"it has more than {MOST_BYTES:,} bytes")
    return data.decode()


class _Trees:
    """Makes trees of one file's nodes, and counts them."""

    def __init__(self, file: str) -> None:
        self._file, self._count = file, 0

    def tree(self, node: Node, depth: int) -> Tree:
        line = self._counted(node)
        if depth > DEEPEST:
            raise FlowError(self._file, line, "an alias that contains itself", "plain values")
        if isinstance(node, MappingNode):
            return self._mapping(node, depth)
        if isinstance(node, SequenceNode):
            return Listing(tuple(self.tree(item, depth + 1) for item in node.value), line)
        kind = str(node.tag).removeprefix(TAG)
        if kind not in KINDS:
            raise FlowError(self._file, line, f"the tag {node.tag}", "a plain value")
        return Scalar(node.value, kind, line)

    def _counted(self, node: Node) -> int:
        """Give the line of a node, having seen that neither it nor the file is too large."""
        line = int(node.start_mark.line) + 1
        self._count += 1
        if self._count > MOST_VALUES:
            came = f"more than {MOST_VALUES:,} values, each alias counted as all that it stands for"
            raise FlowError(self._file, line, came, "a flow without so many aliases, or several flows")
        if isinstance(node, ScalarNode):
            self._check_text(node.value, line)
        return line

    def _check_text(self, text: str, line: int) -> None:
        if len(text) > LONGEST:
            raise FlowError(self._file, line, f"a value of {len(text):,} characters", f"at most {LONGEST:,}")
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            raise FlowError(self._file, line, "half of a character (a surrogate)", "text that UTF-8 can spell")

    def _mapping(self, node: MappingNode, depth: int) -> YamlMapping:
        entries: dict[str, Tree] = {}
        lines: dict[str, int] = {}
        for key, value in node.value:
            line = self._counted(key)
            if not isinstance(key, ScalarNode):
                raise FlowError(self._file, line, "a key that is no word", "a word before the colon")
            if key.value in entries:
                came = f"`{key.value}` a second time (the first is in line {lines[key.value]})"
                raise FlowError(self._file, line, came, "each key once")
            entries[key.value], lines[key.value] = self.tree(value, depth + 1), line
        return YamlMapping(entries, lines, node.start_mark.line + 1)
