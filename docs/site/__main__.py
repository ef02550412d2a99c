"""`python -m docs.site`: write the made parts of the reference; `check FOLDER`: look over the site built there."""

from __future__ import annotations

import sys
from pathlib import Path

from docs.site.built import problems

USAGE = "usage: python -m docs.site [check FOLDER]"


def main(words: list[str]) -> int:
    """Do what the words say.

    Returns:
        0; 1 where the site has a problem; 2 where the words say nothing that can be done.
    """
    match words:
        case []:
            return _write()
        case ["check", folder]:
            return _check(Path(folder))
    sys.stderr.write(f"{USAGE}\n")
    return 2


def _write() -> int:
    from docs.site.pages import pages, remade

    for page in pages():
        page.write_text(remade(page.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


def _check(folder: Path) -> int:
    found = problems(folder)
    for problem in found:
        sys.stderr.write(f"docs: {problem}\n")
    if not found:
        sys.stdout.write(f"open {(folder / 'index.html').resolve().as_uri()}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
