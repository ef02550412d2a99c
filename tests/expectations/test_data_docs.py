"""Great Expectations' own pages need nothing but themselves, lead to each other, and show what failed."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import TYPE_CHECKING
from urllib.parse import unquote, urldefrag

import pytest

from expectations.checkpoints import Checkpoints
from expectations.data_docs import COMPILED
from expectations.own_checks import own_judgements
from tests.expectations.test_access import browser, hindrances
from tests.expectations.test_own_checks import of_all_cases, table, view_of

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

__all__ = ["browser"]

MADE_OF = {"script", "link", "img", "iframe", "object", "embed", "video", "audio", "base"}
"""What has a browser fetch or run something."""


class Parts(HTMLParser):
    """What a page is made of."""

    def __init__(self, text: str) -> None:
        """Read a page."""
        super().__init__()
        self.tags: set[str] = set()
        self.names: set[str] = set()
        self.leads: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag, its attributes and where it leads."""
        self.tags.add(tag)
        self.names |= {name for name, _ in attrs}
        self.leads |= {value or "" for name, value in attrs if name == "href"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the pages of checks of every kind, each of which fails."""
    folder = tmp_path_factory.mktemp("pages")
    checkpoints = Checkpoints("own", folder / "docs")
    own_judgements(of_all_cases(folder), "punctual", view_of(table(odd=True), None), checkpoints)
    assert checkpoints.publish() == folder / "docs" / "index.html"
    return folder / "docs"


def test_no_page_asks_for_anything_beside_it(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 2
    for page in pages:
        text = page.read_text()
        parts = Parts(text)
        assert parts.tags & MADE_OF == set(), page.name
        assert not [name for name in parts.names if name == "src" or name.startswith("on")], page.name
        assert "url(" not in text
        assert "@import" not in text
    assert {path.suffix for path in site.rglob("*") if path.is_file()} == {".html", ".json"}


def test_every_page_is_led_to_from_the_first(site: Path) -> None:
    left, reached = [site / "index.html"], set[str]()
    while left:
        page = left.pop()
        name = page.relative_to(site).as_posix()
        if name in reached:
            continue
        reached.add(name)
        for lead in Parts(page.read_text()).leads:
            to = unquote(urldefrag(lead)[0])
            if to and not lead.startswith("http"):
                assert (page.parent / to).is_file(), f"{lead} of {name}"
                left.append((page.parent / to).resolve())
    assert reached == {page.relative_to(site).as_posix() for page in site.rglob("*.html")}


def test_what_failed_is_seen_and_can_be_looked_at_alone(site: Path) -> None:
    # Sums and means are asked of frames of their own.
    text = max((page.read_text() for page in (site / "validations").rglob("*.html")), key=len)
    assert text.count("fa-times text-danger") > 20
    assert 'id="failed-only"' in text
    assert "fa-times text-danger" in (site / "index.html").read_text()


def test_templates_are_compiled_once(site: Path) -> None:
    known = len(vars(COMPILED)["_known"])
    assert known > 5
    checkpoints = Checkpoints("again", site.parent / "again")
    own_judgements(of_all_cases(site.parent), "punctual", view_of(table(odd=False), None), checkpoints)
    checkpoints.publish()
    assert len(vars(COMPILED)["_known"]) == known


def test_nothing_on_them_is_a_hindrance(browser: Browser, site: Path) -> None:
    for page in site.rglob("*.html"):
        assert hindrances(browser, page.read_text(), [("light", 1280), ("dark", 390)]) == []
