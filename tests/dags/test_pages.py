"""Nothing outside the reports' folder is a page, however it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dags.tab.pages import DocsPage, Page, RowsFile, flow_of, page_at

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    """Give a folder with a page, and secrets around it."""
    folder = tmp_path / "reports"
    for name in ("index.html", "2013-01-01.html", "20130101T050000.html", "notes.txt", ".hidden.html"):
        (folder / "flights" / "main").mkdir(parents=True, exist_ok=True)
        (folder / "flights" / "main" / name).write_text(name)
    (tmp_path / "secret.html").write_text("secret")
    (folder / "secret.html").write_text("secret")
    (folder / "flights" / "main" / "link.html").symlink_to(tmp_path / "secret.html")
    (folder / "flights" / "linked").symlink_to(tmp_path)
    (folder / "trap").symlink_to(tmp_path)
    return folder


@pytest.mark.parametrize("name", ["index.html", "2013-01-01.html", "20130101T050000.html"])
def test_pages_are_found_by_their_words(reports: Path, name: str) -> None:
    file = Page(flow="flights", run="main", name=name).file(reports)
    assert file is not None
    assert file.read_text() == name


@pytest.mark.parametrize(
    ("flow", "run", "name"),
    [
        ("flights", "main", "gone.html"),
        ("flights", "main", "notes.txt"),
        ("flights", "main", ".hidden.html"),
        ("flights", "main", "../../secret.html"),
        ("flights", "main", "..%2f..%2fsecret.html"),
        ("flights", "main", "%2e%2e/secret.html"),
        ("flights", "main", "/etc/passwd.html"),
        ("flights", "main", "index.html\x00"),
        ("flights", "main", "index.html\n"),
        ("flights", "main", "link.html"),
        ("flights", "main", "..\\secret.html"),
        ("flights", "linked", "secret.html"),
        ("flights", "..", "secret.html"),
        ("flights", ".", "secret.html"),
        ("flights", "", "secret.html"),
        ("..", "reports", "secret.html"),
        ("flights/main", "..", "secret.html"),
        ("trap", "reports", "secret.html"),
        ("/", "etc", "secret.html"),
    ],
)
def test_nothing_else_is_a_page(reports: Path, flow: str, run: str, name: str) -> None:
    assert Page(flow=flow, run=run, name=name).file(reports) is None


def test_rows_that_break_something_are_found_by_their_words_and_nothing_else_is(reports: Path) -> None:
    folder = reports / "flights" / "main" / "rows" / "commit-2"
    folder.mkdir(parents=True)
    (folder / "punctual.diverted.a_law-0f.csv").write_text("rows")
    (folder / "link.csv").symlink_to(reports / "secret.html")
    words = {"flow": "flights", "run": "main", "judged": "commit-2", "name": "punctual.diverted.a_law-0f.csv"}
    file = RowsFile(**words).file(reports)
    assert file is not None
    assert file.read_text() == "rows"
    for word, wrong in (
        ("name", "link.csv"),
        ("name", "../../index.html"),
        ("name", "gone.csv"),
        ("name", "..csv"),
        ("judged", ".."),
        ("judged", "commit-2/../commit-2"),
        ("run", "linked"),
        ("flow", ".."),
    ):
        assert RowsFile(**{**words, word: wrong}).file(reports) is None


def test_a_page_that_is_reached_through_a_linked_home_is_found(reports: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.symlink_to(reports)
    assert Page(flow="flights", run="main").file(home) is not None


@pytest.mark.parametrize(
    ("dag_id", "flow"),
    [
        ("backfill_flights", "flights"),
        ("stream_my_flow", "my_flow"),
        ("quality_flights", "flights"),
        ("flights", None),
        ("backfill_", None),
        ("backfill_..", None),
        ("backfill_a/b", None),
        ("replay_flights", "flights"),
        ("reset_flights", None),
    ],
)
def test_the_flow_of_a_dag_is_in_its_name(dag_id: str, flow: str | None) -> None:
    assert flow_of(dag_id) == flow


def test_what_a_task_reported_is_a_page_of_its_own_flow_only(reports: Path) -> None:
    path = str(reports / "flights" / "main" / "2013-01-01.html")
    assert page_at(path, "flights", reports) == Page(flow="flights", run="main", name="2013-01-01.html")
    assert page_at(path, "other", reports) is None
    for strange in ("/etc/passwd", f"{reports}/../secret.html", f"{reports}/flights/main/gone.html", ""):
        assert page_at(strange, "flights", reports) is None


def test_data_docs_are_found_by_their_path_and_nothing_else_is(reports: Path) -> None:
    folder = reports / "flights" / "main" / "docs" / "commit-2"
    results = folder / "validations" / "flights" / "2013-01-01T05:00:00.000000Z to 2013-01-02T05:00:00.000000Z"
    results.mkdir(parents=True)
    for place in (folder / "index.html", results / "rows-span.html", folder / "punctual.json"):
        place.write_text("docs")
    (folder / "link.html").symlink_to(reports / "secret.html")

    def found(path: str, flow: str = "flights") -> bool:
        return DocsPage(flow=flow, run="main", path=path).file(reports) is not None

    assert found("commit-2/index.html")
    assert found(f"commit-2/validations/flights/{results.name}/rows-span.html")
    for wrong in (
        *("commit-2/punctual.json", "commit-2/link.html", "commit-2/gone.html", "commit-2", ""),
        *("commit-2/../../index.html", "../index.html", "/etc/passwd.html", "commit-2//index.html"),
    ):
        assert not found(wrong), wrong
    assert not found("commit-2/index.html", flow="..")
