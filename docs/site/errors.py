"""Every error of ours that can end a command, by its exit code, with the sentence that it says."""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING, NamedTuple

from pipelines.errors import Exit, PulselineError

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
LAYERS = ("pipelines", "expectations")
SOME = "…"


class Known(NamedTuple):
    """An error and what is said of it."""

    name: str
    code: Exit
    what: str
    says: str


def errors() -> str:
    """Give a table of errors for each exit code that errors have."""
    found = sorted(_known(), key=lambda each: each.name)
    return "\n\n".join(_table(code, [each for each in found if each.code == code]) for code in Exit if code)


def _table(code: Exit, errors: list[Known]) -> str:
    rows = [f"| `{each.name}` | {_cell(each.what)} | {_cell(each.says)} |" for each in errors]
    return "\n".join((f"### Exit code {int(code)}", "", "| error | what it is | says |", "| --- | --- | --- |", *rows))


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def _known() -> Iterator[Known]:
    for kind in known_classes():
        yield Known(kind.__name__, kind.code, (inspect.getdoc(kind) or "").partition("\n")[0], _says(kind))


def known_classes() -> list[type[PulselineError]]:
    """Give every error of ours, in the order of the modules that hold them."""
    found = []
    for module in _modules():
        for kind in vars(importlib.import_module(module)).values():
            own = inspect.isclass(kind) and issubclass(kind, PulselineError) and kind.__module__ == module
            if own and kind is not PulselineError and not kind.__name__.startswith("_"):
                found.append(kind)
    return found


def _modules() -> Iterator[str]:
    """Name the modules that hold a class which may be an error; the others are not loaded."""
    for layer in LAYERS:
        for path in sorted((ROOT / layer).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            if any(isinstance(node, ast.ClassDef) and _may_be_error(node) for node in tree.body):
                yield ".".join(path.relative_to(ROOT).with_suffix("").parts)


def _may_be_error(node: ast.ClassDef) -> bool:
    bases = {base.id for base in node.bases if isinstance(base, ast.Name)}
    return any(base.endswith(("Error", "Exception", "WrongUse")) for base in bases)


def _says(kind: type[PulselineError]) -> str:
    """Give the sentence of an error, its facts in braces; empty where whoever raises it writes it."""
    told = kind.__str__
    speaker = next(each for each in kind.__mro__ if "__str__" in vars(each))
    if speaker is PulselineError or "says" in vars(speaker):
        return "".join(text + (f"{{{fact}}}" if fact else "") for text, fact, _, _ in Formatter().parse(kind.says))
    (function,) = ast.parse(textwrap.dedent(inspect.getsource(told))).body
    returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return) and node.value is not None]
    text = _text(returned[-1]) if returned else ""
    return "" if text == SOME else text


def _text(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_text(part) for part in parts)
        case ast.FormattedValue(value=value):
            return _fact(value)
        case ast.BinOp(left=left, right=right):
            return _text(left) + _text(right)
        case _:
            return SOME


def _fact(node: ast.expr) -> str:
    """Name the fact that stands in a sentence: the attribute it is taken from."""
    found = [each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute) and _is_own(each.value)]
    return f"{{{found[0]}}}" if len(set(found)) == 1 else SOME


def _is_own(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"
