"""Look over the site that was built: what the builder itself does not check.

Zensical's strict mode finds links to pages and headings that are not there. Here: files and pictures that are not
there, anything that would be loaded from another host, and pages that are more than two clicks away.
"""

from __future__ import annotations

from html.parser import HTMLParser
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOME = "index.html"
APART = frozenset({"404.html"})
"""Pages that nobody goes to by a link."""
CLICKS = 2
LOADING = frozenset({("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("link", "href")})
"""Where a page names what the browser fetches without being asked."""
CANONICAL = frozenset({"canonical", "next", "prev"})
"""Relations of links that a browser does not fetch."""


class _Page(HTMLParser):
    """What a page loads, and where its links lead."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        if tag == "a" and told.get("href"):
            self.links.append(told["href"] or "")
        if tag == "link" and told.get("rel") in CANONICAL:
            return
        self.loads += [value for name, value in attrs if value and (tag, name) in LOADING]


def problems(site: Path) -> tuple[str, ...]:
    """Say what is wrong with a built site, a line each; nothing where all is well.

    Args:
        site: the folder that the builder wrote.
    """
    pages = {path.relative_to(site).as_posix(): _read(path) for path in sorted(site.rglob("*.html"))}
    if HOME not in pages:
        return (f"{site} must hold a built site, it has no {HOME}: run make docs",)
    found = [problem for name, page in pages.items() for problem in _of_page(site, name, page)]
    return (*found, *_far(site, pages))


def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def _of_page(site: Path, name: str, page: _Page) -> Iterator[str]:
    for load in page.loads:
        if urlsplit(load).netloc:
            yield f"{name} loads {load}: keep a copy under docs/ and name that"
    # The page of what is not there names all it needs from the root of a server.
    for link in () if name in APART else (*page.loads, *page.links):
        file = _file(site, name, link)
        if file is not None and not file.exists():
            yield f"{name} names {link}, and {file.relative_to(site.resolve())} is not there: correct the link"


def _file(site: Path, name: str, link: str) -> Path | None:
    """Give the file that a link of a page means; None where it leads elsewhere."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc or not parts.path:
        return None
    return (site / name).parent.joinpath(unquote(parts.path)).resolve()


def _far(site: Path, pages: dict[str, _Page]) -> Iterator[str]:
    root = site.resolve()
    reached = {HOME}
    for _ in range(CLICKS):
        files = {_file(site, name, link) for name in reached for link in pages[name].links}
        named = {file.relative_to(root).as_posix() for file in files if file is not None and root in file.parents}
        reached |= named & set(pages)
    for name in sorted(set(pages) - reached - APART):
        yield f"{name} is more than {CLICKS} clicks from {HOME}: give it a line in `nav` of zensical.toml"
