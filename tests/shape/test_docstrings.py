"""A docstring says something of its function that the function's name does not."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import pytest

from tests.shape.test_tree import ROOT, files_of_the_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

FORMULA = re.compile(
    r"(Say|Tell|Spell|Give|Write|Name) (it|so|this|that|them)( (in|for) (\w+ )?(words?|line|sentence|person|people))?\."
    r"|Say in words what it does\b.*"
    r"|Say what to do\."
)
"""What may stand at any function, so that it says nothing of the one it stands at."""


def said(text: str) -> Iterator[str]:
    """Give all docstrings of a module."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, kinds) and (found := ast.get_docstring(node)):
            yield found


def test_no_docstring_is_a_formula() -> None:
    modules = {path: path.read_text(encoding="utf-8") for path in files_of_the_tree() if path.suffix == ".py"}
    found = {
        f"{path.relative_to(ROOT)}: {docstring}"
        for path, text in modules.items()
        if FORMULA.search(text)
        for docstring in said(text)
        if FORMULA.fullmatch(docstring)
    }

    assert modules
    assert found == set(), "say what of it nobody would guess, or leave the docstring out where Python's name says it"


@pytest.mark.parametrize(
    "docstring",
    [
        "Say it in one sentence.",
        "Say it in a line.",
        "Say in words what it does; see `Policy.words`.",
        "Say what to do.",
        "Spell it for a person.",
        "Give this.",
    ],
)
def test_a_formula_would_be_found(docstring: str) -> None:
    module = f'def f():\n    """{docstring}"""\n\n\nclass C:\n    """Hold rows."""\n'
    assert [FORMULA.fullmatch(each) is not None for each in said(module)] == [True, False]
