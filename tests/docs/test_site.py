"""The documentation site: every page has its place, no link is broken, nothing comes from another host."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import sync_playwright

from docs.site.built import problems
from tests.browsers import browser_path

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LINK = re.compile(r"\]\(([^)#\s]*)(#[^)\s]*)?\)")
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
PAGE = "<html><body>{}</body></html>"


def settings() -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]
    return project


def named(nav: list[dict[str, Any]]) -> Iterator[str]:
    """Name the pages of a part of the navigation, whatever its depth."""
    for entry in nav:
        for under in entry.values():
            yield from (under,) if isinstance(under, str) else named(under)


def texts() -> list[Path]:
    """List what people read: the pages of the site, and the files beside README."""
    return [*sorted(DOCS.rglob("*.md")), *sorted(ROOT.glob("*.md"))]


def headings(page: Path) -> set[str]:
    """Name the anchors of a page as both the site and the forges that show Markdown make them."""
    told = re.findall(r"^#+ (.+)$", FENCED.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", each.lower()).strip()) for each in told}


def test_every_page_has_a_line_in_the_navigation() -> None:
    listed = list(named(settings()["nav"]))

    assert len(listed) == len(set(listed))
    assert set(listed) == {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}, "see nav in zensical.toml"


def test_every_link_leads_to_a_file_and_a_heading_that_is_there() -> None:
    broken = []
    for text in texts():
        for file, anchor in LINK.findall(FENCED.sub("", text.read_text(encoding="utf-8"))):
            if "://" in file or file.startswith("mailto:"):
                continue
            target = (text.parent / file) if file else text
            if not target.exists() or (anchor and anchor[1:] not in headings(target)):
                broken.append(f"{text.relative_to(ROOT)}: {file}{anchor}")

    assert broken == []


def test_pages_of_the_site_link_to_nothing_outside_of_it() -> None:
    outside = [
        f"{page.relative_to(ROOT)}: {file}"
        for page in DOCS.rglob("*.md")
        for file, _ in LINK.findall(FENCED.sub("", page.read_text(encoding="utf-8")))
        if "://" not in file and DOCS not in (page.parent / file).resolve().parents and file
    ]

    assert outside == []


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site, as `make docs` does, where any warning ends it."""
    if importlib.util.find_spec("zensical") is None:
        pytest.skip("zensical is not installed: make setup installs it")
    folder = tmp_path_factory.mktemp("built")
    shutil.copy(ROOT / "zensical.toml", folder)
    shutil.copytree(DOCS, folder / "docs", ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder.joinpath(settings()["site_dir"])


def test_the_site_that_is_built_has_no_problem_and_no_code(site: Path) -> None:
    assert problems(site) == ()
    assert not list(site.rglob("*.py*"))


def test_its_search_finds_a_word_in_the_files_alone(site: Path) -> None:
    browser = browser_path()
    asked: list[str] = []
    with sync_playwright() as playwright:
        window = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = window.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.goto((site / "index.html").as_uri())
        page.keyboard.press("/")
        page.wait_for_function("document.activeElement.shadowRoot !== null")
        page.keyboard.type("max_catch_up")
        page.locator("a[role=option][href*='operators/heartbeat.html']").first.wait_for()
        window.close()

    assert asked
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:", "about:"))] == []


WRONG = {
    '<script src="https://elsewhere.example/x.js"></script>': "index.html loads https://elsewhere.example/x.js: ",
    '<link rel="stylesheet" href="//elsewhere.example/x.css">': "index.html loads //elsewhere.example/x.css: ",
    '<img src="gone.png">': "index.html names gone.png, and gone.png is not there: ",
    '<a href="deep/gone.yaml">': "index.html names deep/gone.yaml, and deep/gone.yaml is not there: ",
}


@pytest.mark.parametrize("part", WRONG)
def test_what_is_wrong_with_a_built_page_is_said(part: str, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(PAGE.format(part))

    (found,) = problems(tmp_path)

    assert found.startswith(WRONG[part])


def test_a_page_that_is_three_clicks_away_is_named(tmp_path: Path) -> None:
    for name, to in (("index", "one"), ("one", "two"), ("two", "three"), ("three", "index")):
        (tmp_path / f"{name}.html").write_text(PAGE.format(f'<a href="{to}.html#part">'))

    (found,) = problems(tmp_path)

    assert found.startswith("three.html is more than 2 clicks from index.html: ")


def test_a_folder_without_a_site_is_told_what_to_do(tmp_path: Path) -> None:
    assert problems(tmp_path) == (f"{tmp_path} must hold a built site, it has no index.html: run make docs",)
