"""Draws every case of docs/operators, and writes into the pages what came out."""

from __future__ import annotations

import sys

from docs.diagrams.cases import PAGES, cases
from docs.diagrams.drawn import drawn
from docs.diagrams.pages import pages, remade
from docs.diagrams.running import run


def main() -> int:
    """Write all pictures, and the made parts of all pages."""
    ran = {case.name: run(case) for case in cases()}
    for name, one in ran.items():
        if one.case.draws:
            (PAGES / f"{name}.svg").write_text(drawn(one), encoding="utf-8")
    for page in pages():
        page.write_text(remade(page.read_text(encoding="utf-8"), ran), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
