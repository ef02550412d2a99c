"""`python -m dags.runbooks`: write a page of the docs from the docstring of each DAG file, which the UI shows too."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs" / "dags"
FILES = ("backfill", "stream", "replay", "quality", "promises", "maintain")
NOTE = "<!-- Made by `python -m dags.runbooks` from the docstring of dags/{name}.py. -->\n\n"


def page(name: str) -> str:
    """Give the page of a DAG file, by its name."""
    told = ast.get_docstring(ast.parse((HERE / f"{name}.py").read_text(encoding="utf-8")))
    return NOTE.format(name=name) + (told or "") + "\n"


def main() -> int:
    """Write all pages."""
    DOCS.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        (DOCS / f"{name}.md").write_text(page(name), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
