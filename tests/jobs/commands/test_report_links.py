"""A page of the report leads to Great Expectations' own, to the ledger, to days and to Airflow, and no link is dead."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from urllib.parse import unquote, urldefrag

import pytest

from expectations.report import render
from pipelines.jobs.commands.check import check_flow
from pipelines.jobs.commands.report import report_flow
from pipelines.jobs.commands.report_all import report_all
from pipelines.jobs.environment.asked_for import LONGEST, RUN_URL, run_address
from pipelines.jobs.facts.overview import read_live
from pipelines.jobs.facts.report import Reported
from pipelines.jobs.runs.known import open_run

if TYPE_CHECKING:
    from pathlib import Path

    from tests.jobs.conftest import House

CHECK = "expect: [{expect_column_values_to_be_between: {column: number, max_value: 15}, severity: warning}]"
RUN = "http://airflow:8080/dags/backfill_tiny/runs/manual__1%202"


class Links(HTMLParser):
    """Where a page leads, and what of it can be led to."""

    def __init__(self, page: Path) -> None:
        """Read a page."""
        super().__init__()
        self.leads: set[str] = set()
        self.ids: list[str] = []
        self.feed(page.read_text())

    def handle_starttag(self, _: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note both."""
        self.leads |= {value or "" for name, value in attrs if name == "href"}
        self.ids += [value or "" for name, value in attrs if name == "id"]


def followed(folder: Path) -> dict[str, set[str]]:
    """Follow every link of all pages of a folder; give what each page leads to beside what a browser fetches."""
    pages = {page: Links(page) for page in folder.rglob("*.html")}
    for page, links in pages.items():
        assert len(links.ids) == len(set(links.ids)), page
        for lead in links.leads - {"?still"}:
            path, anchor = map(unquote, urldefrag(lead))
            if lead.startswith("http"):
                continue
            to = (page.parent / path).resolve() if path else page
            assert to.is_file(), f"{lead} of {page}"
            assert to.is_relative_to(folder.resolve()), f"{lead} of {page} leads out of {folder}"
            assert not anchor or anchor in pages[to].ids, f"{lead} of {page}"
    return {page.relative_to(folder).as_posix(): links.leads for page, links in pages.items()}


def with_checks(house: House) -> None:
    """Have a check that some days break."""
    file = house.config / "flows" / "tiny.yaml"
    file.write_text(file.read_text().replace("late: divert}", f"late: divert, {CHECK}}}"))


def test_a_page_alone_leads_to_all_there_is_and_is_led_back_to(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    with_checks(house)
    monkeypatch.setenv(RUN_URL, RUN)
    house.backfill("2013-01-01", "2013-01-03")
    monkeypatch.delenv(RUN_URL)
    house.backfill("2013-01-03", "2013-01-04")
    check_flow("tiny", None, None, 2, "main", as_json=False, echo=house.tell)
    folder = house.home / "reports" / "tiny" / "main"
    report_flow("tiny", "2013-01-02", "main", as_json=False, echo=house.tell)
    pages = followed(folder)
    docs = "docs/commit-2/index.html"
    assert {RUN, docs, "#ledger"} <= pages["2013-01-02.html"]
    assert "../../2013-01-02.html" in pages[docs]
    assert "../../index.html" not in pages[docs], "there is none"

    check_flow("tiny", None, None, None, "main", as_json=False, echo=house.tell)
    report_flow("tiny", None, "main", as_json=False, echo=house.tell)
    pages = followed(folder)
    assert RUN in pages["index.html"]
    assert {"../../2013-01-02.html", "../../index.html"} <= pages[docs]
    (of_all,) = (each for each in pages["index.html"] if each.startswith("docs/2013"))
    assert "../../index.html" in pages[of_all]
    results = [name for name in pages if name.startswith("docs/commit-2/validations/")]
    assert results
    assert all(any(lead.endswith("../2013-01-02.html") for lead in pages[name]) for name in results)
    report_flow("tiny", "2013-01-03", "main", as_json=False, echo=house.tell)
    assert RUN not in followed(folder)["2013-01-03.html"], "a person ran that day"


def test_the_account_leads_to_the_rows_in_the_ledger_and_back(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-03")
    report_flow("tiny", None, "main", as_json=False, echo=house.tell)
    leads = followed(house.home / "reports" / "tiny" / "main")["index.html"]
    # The merge knows no port of number 9, and number 5 is late.
    assert {"#ledger-2", "#account-2", "#ledger-3", "#account-3"} <= leads


def test_a_site_leads_from_the_run_to_its_days_and_from_what_was_judged_to_both(house: House, tmp_path: Path) -> None:
    with_checks(house)
    house.backfill("2013-01-01", "2013-01-04")
    for commit in (2, 3):
        check_flow("tiny", None, None, commit, "main", as_json=False, echo=house.tell)
    for _ in range(2):
        report_all(str(tmp_path / "site"), as_json=False, echo=house.tell)
        pages = followed(tmp_path / "site")
        run = pages["tiny/main/overview.html"]
        assert {"2013-01-02.html", "docs/commit-2/index.html", "docs/commit-3/index.html"} <= run
        assert "docs/commit-2/index.html" in pages["tiny/main/2013-01-02.html"]
        assert {"../../2013-01-02.html", "../../overview.html"} <= pages["tiny/main/docs/commit-2/index.html"]
    check_flow("tiny", None, None, 2, "main", as_json=False, echo=house.tell)
    report_all(str(tmp_path / "site"), as_json=False, echo=house.tell)
    followed(tmp_path / "site")
    results = (tmp_path / "site" / "tiny" / "main" / "docs" / "commit-2" / "validations").glob("tiny/*/*/*")
    suites = [path.parent for path in results]
    assert len(suites) == len(set(suites)) > 0, "what was judged before is gone with its pages"


def test_a_page_that_lies_nowhere_leads_to_no_file(house: House) -> None:
    with_checks(house)
    house.backfill("2013-01-01", "2013-01-03")
    check_flow("tiny", None, None, None, "main", as_json=False, echo=house.tell)
    page = render(read_live(Reported(known=open_run("tiny", "main"))), refresh=5)
    assert "break it" in page
    assert [lead for lead in re.findall(r'href="([^"]+)"', page) if lead[0] not in "#?"] == []


@pytest.mark.parametrize(
    "said",
    ["", "javascript:alert(1)", "//host/x", "http://me:secret@host/", "http://a b/", "http://h/" + "x" * LONGEST],
)
def test_what_is_no_address_is_not_kept(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    monkeypatch.setenv(RUN_URL, said)
    assert run_address() == ""
