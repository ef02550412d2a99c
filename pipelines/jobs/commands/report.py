"""`pulseline report`: from the tables of a run to a page that can be opened anywhere."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING

from expectations import report
from expectations.report.checks import changed_sentence
from expectations.report.verdict import verdict
from expectations.report.words import ReportClock
from pipelines.engine.files import durable
from pipelines.engine.files.stored import is_stored
from pipelines.flows.grid import interval_of
from pipelines.jobs.commands.report_pdf import print_page
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.settings import read_settings
from pipelines.jobs.facts.data_docs import copy_docs
from pipelines.jobs.facts.report import Reported, read_facts
from pipelines.jobs.proofs.certificates import kept_certificate
from pipelines.jobs.runs.known import open_run
from pipelines.jobs.text.moments import Moments
from pipelines.jobs.words.remembered import changes_object, expectation_objects

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipelines.flows.model import Flow
    from pipelines.jobs.environment.settings import Settings
    from pipelines.jobs.facts.report import Span
    from pipelines.jobs.runs.known import KnownRun

INDEX = "index.html"
LONGEST = 48
"""Characters of a name that a kept page has."""


def report_flow(  # noqa: PLR0913 - the options of the command
    called: str,
    interval: str | None,
    run: str,
    as_json: bool,  # noqa: FBT001 - the command's flag
    echo: Callable[[str], None],
    keep: str | None = None,
    pdf: bool = False,  # noqa: FBT001, FBT002 - the command's flag
) -> None:
    """Make the page of a run or of one interval, and say where it is.

    Args:
        called: name of the flow, or the path of its file.
        interval: a day or instant within the interval; None for the whole run.
        run: name of the run.
        as_json: a JSON object for each expectation, and one last that sums up, instead of words.
        echo: where lines go.
        keep: name under which the page as it is now is kept, too; that one is shown then, and never changes.
        pdf: print it as PDF, too.

    Raises:
        WrongUse: no such flow, run or interval; or nothing that prints.
    """
    known = open_run(called, run)
    known.require_undamaged()
    span = None if interval is None else _span(known, interval)
    about = Reported(known=known, span=span)
    facts = read_facts(about, kept_certificate(about))
    page = _write(facts, page_path(about, read_settings().pages(known.name, run)))
    page = page if keep is None else _keep(facts, about, page, keep)
    printed = print_page(page) if pdf else None
    news = verdict(facts)
    if as_json:
        told = {
            "flow": known.name,
            "run": run,
            "page": str(page),
            "pdf": None if printed is None else str(printed),
            "verdict": news.tone.value,
            "sentence": news.sentence,
            "changed": changes_object(facts),
        }
        for each in (*expectation_objects(facts), told):
            echo(json.dumps(each, ensure_ascii=False))
        return
    echo(news.sentence)
    changed = changed_sentence(facts, ReportClock(facts.timezone))
    if changed is not None:
        echo(changed)
    echo(opened(page))
    if printed is not None:
        echo(f"printed {printed}")
    if news.next_step:
        echo(f"next: {news.next_step}")


def opened(page: Path) -> str:
    """Say how a page is opened; in an object store no browser reads it from where it lies."""
    if is_stored(page):
        return f"written to {page}: copy it from the store to open it, or write a site here (report --all --to FOLDER)"
    return f"open {page.as_uri()}"


def _span(known: KnownRun, interval: str) -> Span:
    """Give the interval of the grid, or the commit's span, that holds an instant.

    Raises:
        WrongUse: nothing was begun there.
    """
    start, end = interval_of(known.grid, interval)
    spans = [entry.span for entry in known.state.commits.values() if entry.span.start < end and start < entry.span.end]
    if not spans:
        there = [entry.span for entry in known.state.published]
        known_spans = (
            f"published is {known.moments.span(there[0].start, there[-1].end)}" if there else "nothing is published"
        )
        raise WrongUse(f"--interval must lie in what was run; nothing ran at {interval}: {known_spans}")
    return start, end


def page_path(about: Reported, folder: Path) -> Path:
    """Give the file of a page: `index.html` for the run, else the interval's first day or instant."""
    if about.span is None:
        return folder / INDEX
    return folder / f"{page_name(about.flow.timezone, about.span[0])}.html"


def page_name(timezone: str, start: int) -> str:
    """Name an interval as a file can be named.

    >>> page_name("UTC", 1_357_016_400_000_000), page_name("America/New_York", 1_357_016_400_000_000)
    ('20130101T050000', '2013-01-01')
    """
    moments = Moments(timezone)
    day = moments.argument(start)
    return day if len(day) == len("2013-01-01") else f"{moments.at(start):%Y%m%dT%H%M%S}"


def write_page(settings: Settings, flow: Flow, run: str) -> Path:
    """Make the page of a whole run from its tables.

    Args:
        settings: say where tables and pages lie.
        flow: the model.
        run: its name.

    Returns:
        The file.
    """
    about = Reported(known=open_run(flow.name, run))
    return _write(read_facts(about, kept_certificate(about)), page_path(about, settings.pages(flow.name, run)))


def _keep(facts: report.ReportFacts, about: Reported, page: Path, name: str) -> Path:
    """Write a page as it is now under a name of its own; one that is there already stays as it is."""
    newest = max(about.commits, key=lambda entry: entry.commit, default=None)
    state = "nothing" if newest is None else f"{newest.commit}-{newest.state.value}"
    kept = page.with_name(f"{page.stem}-{state}-{_as_file(name)}.html")
    if not kept.is_file():
        note = report.Kept(name=name, commit=None if newest is None else newest.commit, now=page.name)
        durable.replace(kept, report.render(facts, note).encode())
    return kept


def _as_file(name: str) -> str:
    """Spell a name with the signs that names of pages have.

    >>> _as_file("manual__2013-01-01T00:00:00+00:00")
    'manual__2013-01-01T00-00-00+00-00'
    """
    plain = re.sub(r"[^A-Za-z0-9_+-]", "-", name)
    return plain if len(plain) <= LONGEST else f"{plain[:LONGEST]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def copy_rows(facts: report.ReportFacts, folder: Path) -> None:
    """Put the files of all rows that break something beside the page that leads to them."""
    for found in (found for each in facts.expectations for found in each.broken):
        if found.file is not None:
            copy = folder / found.link
            copy.parent.mkdir(parents=True, exist_ok=True)
            durable.replace(copy, found.file.read_bytes())


def docs_beside(facts: report.ReportFacts, page: Path, of_run: str = INDEX) -> None:
    """Put Great Expectations' own pages beside the page that leads to them.

    They lead back to it, to the page of the run and to that of their day, as far as these are there.

    Args:
        facts: of the page.
        page: its file.
        of_run: name of the run's page.
    """

    def back(docs: report.DataDocs) -> dict[str, str]:
        day = facts.page_at(docs.start, docs.end)
        alone = f"{page_name(facts.timezone, docs.start)}.html" if docs.commit else page.name
        there = [name for name in (of_run, alone, page.name) if name == page.name or (page.parent / name).is_file()]
        names = dict.fromkeys([name for name in (*there, day) if name])
        return {name: f"{facts.flow} · {facts.run}" if name == of_run else name.removesuffix(".html") for name in names}

    copy_docs(facts.data_docs, page.parent, back)


def _write(facts: report.ReportFacts, page: Path) -> Path:
    page.parent.mkdir(parents=True, exist_ok=True)
    copy_rows(facts, page.parent)
    docs_beside(facts, page)
    durable.replace(page, report.render(facts).encode())
    return page
