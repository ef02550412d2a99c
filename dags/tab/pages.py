"""The pages that may be shown: files of the reports' folder, by flow, run and name, and nothing else of the disk."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

BACKFILL = "backfill"
KINDS = (BACKFILL, "stream", "replay", "quality")
WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}")
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_+-]{0,99}\.html")
ROWS = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,149}\.csv")
PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_ .:+-]{0,199}")
"""Of the path of one of Great Expectations' own pages, which are named after what was judged."""
DEEPEST = 8
INDEX = "index.html"


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page by the three words that name it."""

    flow: str
    run: str
    name: str = INDEX

    def file(self, reports: Path) -> Path | None:
        """Find its file; None where there is none, or where it is not exactly where its words say.

        Safe against `..`, absolute paths and what is encoded into them, for words hold no such signs; and against
        links, for a file that lies elsewhere than its words say is no page.

        Args:
            reports: the folder of all pages.
        """
        words = (self.flow, self.run)
        if not all(WORD.fullmatch(word) for word in words) or not NAME.fullmatch(self.name):
            return None
        return _exactly(reports, *words, self.name)


@dataclass(frozen=True, kw_only=True)
class RowsFile:
    """A file of all rows that break an expectation, which a page leads to, by the four words that name it."""

    flow: str
    run: str
    judged: str
    """The commit or span, as its folder is called."""
    name: str

    def file(self, reports: Path) -> Path | None:
        """Find it, as safely as a page; None where there is none."""
        words = (self.flow, self.run, self.judged)
        if not all(WORD.fullmatch(word) for word in words) or not ROWS.fullmatch(self.name):
            return None
        return _exactly(reports, self.flow, self.run, "rows", self.judged, self.name)


@dataclass(frozen=True, kw_only=True)
class DocsPage:
    """One of Great Expectations' own pages, which a page leads to, by the words that name it."""

    flow: str
    run: str
    path: str
    """Below their folder."""

    def file(self, reports: Path) -> Path | None:
        """Find it, as safely as a page; None where there is none."""
        parts = self.path.split("/")
        named = all(WORD.fullmatch(word) for word in (self.flow, self.run)) and all(map(PART.fullmatch, parts))
        if not named or len(parts) > DEEPEST or not self.path.endswith(".html"):
            return None
        return _exactly(reports, self.flow, self.run, "docs", *parts)


def _exactly(reports: Path, *words: str) -> Path | None:
    here = reports.resolve()
    meant = here.joinpath(*words)
    return meant if meant.resolve() == meant and meant.is_file() else None


def flow_of(dag_id: str) -> str | None:
    """Give the flow that a DAG runs; None where the DAG is none of ours.

    >>> flow_of("backfill_flights"), flow_of("stream_my_flow"), flow_of("somebody_elses")
    ('flights', 'my_flow', None)
    """
    kind, _, flow = dag_id.partition("_")
    return flow if kind in KINDS and WORD.fullmatch(flow) else None


def page_at(path: str, flow: str, reports: Path) -> Page | None:
    """Read the path that a task reported as a page of a flow; None where it is none.

    Args:
        path: what the task `report` gave as its result.
        flow: of the DAG that the task belongs to.
        reports: the folder of all pages.
    """
    parts = path.removeprefix(f"{reports}/").split("/")
    if len(parts) != len(("flow", "run", "name")) or parts[0] != flow:
        return None
    page = Page(flow=parts[0], run=parts[1], name=parts[2])
    return page if page.file(reports) is not None else None
