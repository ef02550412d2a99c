"""Great Expectations' own pages need nothing but themselves, lead to each other, and show what failed."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urldefrag

import pyarrow as pa
import pytest
from great_expectations.render.components import (
    CollapseContent,
    RenderedBootstrapTableContent,
    RenderedBulletListContent,
    RenderedComponentContent,
    RenderedContentBlockContainer,
    RenderedDocumentContent,
    RenderedGraphContent,
    RenderedHeaderContent,
    RenderedMarkdownContent,
    RenderedSectionContent,
    RenderedStringTemplateContent,
    RenderedTableContent,
    RenderedTabsContent,
    TextContent,
    ValueListContent,
)

from expectations.checkpoints import Checkpoints
from expectations.data_docs import COMPILED, IndexView, PageView
from expectations.own_checks import own_judgements
from tests.expectations.test_access import browser, hindrances
from tests.expectations.test_own_checks import ROWS, flow_of, of_all_cases, table, view_of

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

__all__ = ["browser"]

MADE_OF = {"script", "link", "img", "iframe", "object", "embed", "video", "audio", "base"}
"""What has a browser fetch or run something."""
FORGED = '"><script>document.title=7</script><img src="x" onerror="document.title=7"><h1>All hold</h1>'
"""A text that would be markup, wherever it stood unescaped."""


class Parts(HTMLParser):
    """What a page is made of."""

    def __init__(self, text: str) -> None:
        """Read a page."""
        super().__init__()
        self.tags: set[str] = set()
        self.names: set[str] = set()
        self.leads: set[str] = set()
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag, its attributes and where it leads."""
        self.tags.add(tag)
        self.names |= {name for name, _ in attrs}
        self.leads |= {value or "" for name, value in attrs if name == "href"}

    def handle_data(self, data: str) -> None:
        """Note what is read."""
        self.texts.append(data)


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


@pytest.fixture(scope="module")
def forged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the pages of checks of which all that a flow and its rows say would be markup."""
    folder = tmp_path_factory.mktemp("forged")
    said, blocks = json.dumps(FORGED), ("content_block_type", "styling")
    other = json.dumps(f"{FORGED}$.")
    checks = [
        f"expect_column_values_to_be_in_set: {{column: {said}, value_set: [{other}]}}",
        f"expect_column_values_to_match_regex: {{column: {said}, regex: {other}}}",
        f"expect_column_values_to_match_regex_list: {{column: {said}, regex_list: [{other}]}}",
        f"expect_column_distinct_values_to_equal_set: {{column: {said}, value_set: [{other}]}}",
        f"expect_compound_columns_to_be_unique: {{column_list: [{said}, {', '.join(blocks)}]}}",
    ]
    asked = [f"{check}\n        remedy: {said}\n        owner: {said}" for check in checks]
    rows = table(odd=False)
    for name in (FORGED, *blocks):
        rows = rows.append_column(name, pa.array([FORGED] * ROWS))
    checkpoints = Checkpoints(f"of <b> {FORGED.replace('/', '')}", folder / "docs")
    judged = own_judgements(flow_of(folder, asked), "punctual", view_of(rows, None), checkpoints)
    assert [each.expectation for each in judged if each.held] == []
    assert FORGED in str(judged[0].rows[0])
    checkpoints.publish()
    return folder / "docs"


def test_what_rows_and_flows_say_is_text(forged: Path) -> None:
    pages = list(forged.rglob("*.html"))
    assert len(pages) > 2
    for page in pages:
        parts = Parts(page.read_text())
        assert parts.tags & (MADE_OF | {"h1", "b"}) == set(), page.name
        assert not [name for name in parts.names if name == "src" or name.startswith("on")], page.name
        # What GX escape themselves is not escaped twice.
        assert not [text for text in parts.texts if "&lt;" in text], page.name
    results = [text for page in (forged / "validations").rglob("*.html") for text in Parts(page.read_text()).texts]
    assert FORGED in results
    assert [text for text in results if "'content_block_type': " in text]


def test_records_keep_the_values(forged: Path) -> None:
    results = [each for file in forged.glob("*.json") for each in json.loads(file.read_text())["results"]]
    assert FORGED in [value for each in results for value in each["result"].get("partial_unexpected_list", [])]


def of_every_kind(said: str) -> list[RenderedComponentContent]:
    """Give a block of each kind that GX's pages have, with a text wherever one may stand."""
    styling = {"attributes": {"title": said}, "styles": {"color": said}, "classes": [said]}
    template = RenderedStringTemplateContent(
        {
            "template": f"$value {said}",
            "params": {"value": said, "html_success_icon": said},
            "tooltip": {"content": said},
            "styling": {**styling, "default": styling, "params": {"value": styling}},
        },
        styling={"parent": styling},
    )
    cells = [said, [said, {said: said}], {"content_block_type": "text", "text": [said]}, template, 1, None]
    all_styling = {**styling, "body": styling, "header": styling, "subheader": styling}
    around: dict[str, Any] = {"header": said, "subheader": said, "styling": all_styling}
    return [
        template,
        RenderedHeaderContent(**around),
        RenderedTableContent([cells], header_row=[said], table_options={"search": said}, **around),
        RenderedBootstrapTableContent(
            [{"a": said, "_table_row_link_path": said}], [{"field": "a", "title": said}], **around
        ),
        RenderedBulletListContent([said, template], **around),
        ValueListContent([said, template], **around),
        TextContent([said, template], **around),
        RenderedMarkdownContent(said),
        RenderedGraphContent({"mark": said}, **around),
        RenderedTabsContent([{"tab_name": said, "tab_content": said}], **around),
        RenderedContentBlockContainer([template]),
        CollapseContent([template], collapse_toggle_link=said, **around),
    ]


@pytest.mark.parametrize("view", [PageView, IndexView])
def test_a_text_is_a_text_in_every_kind_of_block(view: type[PageView]) -> None:
    blocks = [RenderedSectionContent([each], section_name=FORGED) for each in of_every_kind(FORGED)]
    page = view().render(
        RenderedDocumentContent(
            blocks, page_title=FORGED, renderer_type="ExpectationSuitePageRenderer", expectation_suite_name=FORGED
        )
    )
    parts, plain = Parts(page), Parts(view().render(RenderedDocumentContent([], renderer_type="")))
    assert parts.tags & (MADE_OF | {"h1"}) == set()
    assert not [name for name in parts.names if name == "src" or name.startswith("on")]
    assert plain.tags < parts.tags
    assert page.count("&lt;script&gt;") > 50


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


def test_a_script_on_a_page_would_not_run(browser: Browser, site: Path) -> None:
    for page in site.rglob("*.html"):
        shown = browser.new_page()
        shown.set_content(page.read_text().replace("</body>", f'<p title="{FORGED}</p></body>'))
        assert shown.locator("h1").inner_text() == "All hold"
        assert shown.title() != "7", page.name
        shown.close()


def test_nothing_on_them_is_a_hindrance(browser: Browser, site: Path) -> None:
    for page in site.rglob("*.html"):
        assert hindrances(browser, page.read_text(), [("light", 1280), ("dark", 390)]) == []
