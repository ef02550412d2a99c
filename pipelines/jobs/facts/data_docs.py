"""Great Expectations' own pages of what was judged, and a copy of them beside the report's page that leads there.

They are written where a commit or span is judged, among the run's tables. A page may be mailed, or lie on a web server,
so what it leads to lies beside it; and each page of a copy leads back.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from expectations import report
from pipelines.engine.commits.quality import judged_name
from pipelines.engine.files import durable
from pipelines.engine.files.durable import of_this_machine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pipelines.engine.commits.quality import Quality

DOCS = "quality_docs"
"""Folder in a run's root: pages and results, a folder for each commit or span that was judged."""
FIRST = "index.html"
BODY = "<body>"
MOST = 12
"""Judgements whose pages a page of the report leads to: the newest, what does not hold before what does."""


def docs_folder(root: Path, start: int, end: int, commit: int) -> Path:
    """Give the folder of the pages of a commit, or of a span where `commit` is 0."""
    return of_this_machine(root) / DOCS / _plain(start, end, commit)


def _plain(start: int, end: int, commit: int) -> str:
    return judged_name(start, end, commit).translate(str.maketrans(" ", "-", ":."))


def docs_of(root: Path, checks: Sequence[Quality], span: tuple[int, int] | None = None) -> tuple[report.DataDocs, ...]:
    """Find the pages that are there of what was judged, in the order of the spans.

    Args:
        root: the run's folder.
        checks: what was judged of rows that count.
        span: of the page of an interval, which leads to no pages of longer spans: that of the run does.
    """
    checks = [each for each in checks if span is None or (span[0] <= each.start and each.end <= span[1])]
    broken = {(each.start, each.end, each.commit) for each in checks if not each.held}
    newest = {(each.start, each.end, each.commit): each.at for each in sorted(checks, key=lambda each: each.at)}
    found: list[report.DataDocs] = []
    for judged in sorted(newest, key=lambda each: (each in broken, newest[each]), reverse=True):
        if len(found) == MOST:
            break
        folder = docs_folder(root, *judged)
        if (folder / FIRST).is_file():
            start, end, commit = judged
            found.append(report.DataDocs(start=start, end=end, commit=commit or None, folder=folder))
    return tuple(sorted(found, key=lambda each: (each.start, each.end, each.commit or 0)))


def copy_docs(
    docs: Iterable[report.DataDocs], beside: Path, back: Callable[[report.DataDocs], Mapping[str, str]]
) -> None:
    """Put pages beside the one that leads to them, each with a way back.

    Args:
        docs: those that it leads to.
        beside: the folder of the page.
        back: gives pages in that folder to which they lead back, with what each is called.
    """
    for each in docs:
        copy, pages = beside / each.below, back(each)
        made = {file.relative_to(each.folder): file for file in sorted(each.folder.rglob("*.html"))}
        if _is_as(copy / FIRST, _with_leads(made[Path(FIRST)], f"../{'../' * each.below.count('/')}", pages)):
            continue
        durable.remove_folder(copy, ignore_errors=True)
        # The first last: where it is, all are.
        for name in sorted(made, key=lambda name: name == Path(FIRST)):
            up = "../" * (len(name.parts) + each.below.count("/"))
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            durable.replace(copy / name, _with_leads(made[name], up, pages))


def _with_leads(page: Path, up: str, pages: Mapping[str, str]) -> bytes:
    """Give one of Great Expectations' pages with links to pages of the report, which lie `up` from it."""
    leads = " · ".join(f'<a href="{up}{escape(name)}">{escape(words)}</a>' for name, words in pages.items())
    text = page.read_text(encoding="utf-8")
    return text.replace(BODY, f"{BODY}\n    <p>Report: {leads}</p>", 1).encode()


def _is_as(file: Path, content: bytes) -> bool:
    return file.is_file() and file.read_bytes() == content
