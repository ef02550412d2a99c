"""`pulseline report --all`: a site of all flows of the home, which any web server or bucket serves as it is."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from expectations import report
from expectations.report.page import TEMPLATES
from expectations.report.site import SiteFacts, render_index, site_verdict
from expectations.report.words import counted
from pipelines.engine.columnar.clock import wall_now
from pipelines.engine.files import durable
from pipelines.jobs.commands.report import INDEX, copy_rows, docs_beside, opened, page_name
from pipelines.jobs.environment.settings import read_settings
from pipelines.jobs.facts.delays import chosen_delay, delays_of
from pipelines.jobs.facts.home import need_lines, readable, run_object, runs_in, stands
from pipelines.jobs.facts.overview import Overview, read_overview
from pipelines.jobs.facts.report import Reported, read_facts
from pipelines.jobs.proofs.certificates import kept_certificate
from pipelines.jobs.runs.known import open_run_of_home

if TYPE_CHECKING:
    from collections.abc import Callable

    from expectations.report.calendar import CalendarDay
    from expectations.report.site import SiteRun

SITE = "_site"
"""Folder below the reports' where a site lies unless another is named."""
OVERVIEW = "overview.html"
ON_A_PAGE = 50_000
"""Rows of a run that are read for what other delays would have done: of more the page names the command."""
MADE = "made.json"
"""What each page of a day was made from: one that would come out as it is stays."""


@dataclass
class Site:
    """A site that is being made."""

    folder: Path
    digests: dict[str, str]
    """By page, of the time before."""
    pages: int = 0
    made: int = 0

    def write(self, name: str, page: str) -> None:
        """Write a page."""
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        durable.replace(file, page.encode())
        self.pages += 1
        self.made += 1

    def is_as(self, name: str, digest: str) -> bool:
        """Say whether a page is there and was made from what a digest stands for; it is, from now on."""
        stays = self.digests.get(name) == digest and (self.folder / name).is_file()
        self.digests[name] = digest
        self.pages += stays
        return stays


def report_all(to: str | None, as_json: bool, echo: Callable[[str], None]) -> None:  # noqa: FBT001 - the command's flag
    """Make the site of all runs of the home, and say where it is.

    Pages of days that would come out as they are stay: a second call makes what is new.

    Args:
        to: folder of the site; one below the reports' unless given.
        as_json: a JSON object for each run, and one last that sums up, instead of words.
        echo: where lines go.
    """
    settings = read_settings()
    folder = settings.home / "reports" / SITE if to is None else Path(to).absolute()
    site = Site(folder=folder, digests=_digests(folder / MADE))
    now = wall_now()
    read = partial(_run, site, now)
    runs = tuple(readable(name, run, read) for name, run in runs_in(settings))
    facts = SiteFacts(runs=runs, made_at=now)
    site.write(INDEX, render_index(facts))
    durable.replace(folder / MADE, json.dumps(site.digests, indent=0, sort_keys=True).encode())
    tone, sentence = site_verdict(facts)
    if as_json:
        summary = {"site": str(folder / INDEX), "verdict": tone.value, "sentence": sentence}
        for told in (*map(run_object, runs), summary | {"pages": site.pages, "made": site.made}):
            echo(json.dumps(told, ensure_ascii=False))
        return
    echo(sentence)
    for line in need_lines(facts):
        echo(line)
    echo(f"{counted(site.pages, 'page')}, {site.made:,} of them made now")
    echo(opened(folder / INDEX))


def _digests(file: Path) -> dict[str, str]:
    """Read what pages were made from; nothing where that cannot be read: all are made then."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _run(site: Site, now: int, name: str, run: str) -> SiteRun:
    """Make the pages of a run, and say how it stands."""
    about = Reported(known=open_run_of_home(name, run))
    seen = read_overview(about, kept_certificate(about))
    stem = {day.start: page_name(about.flow.timezone, day.start) for day in seen.facts.calendar}
    days = tuple(
        replace(day, page=f"{stem[day.start]}.html") if day.start in seen.by_day else day for day in seen.facts.calendar
    )
    stream = chosen_delay(about)
    delays = None if stream is None else delays_of(about, stream, ON_A_PAGE)
    facts = replace(seen.facts, calendar=days, delays=delays)
    folder = f"{name}/{run}/"
    copy_rows(facts, site.folder / folder)
    docs_beside(facts, site.folder / folder / OVERVIEW, OVERVIEW)
    site.write(folder + OVERVIEW, report.render(facts, around=report.Around(index=f"../../{INDEX}")))
    told = [day for day in days if day.page]
    for place, day in enumerate(told):
        around = report.Around(
            index=f"../../{INDEX}",
            flow=OVERVIEW,
            before=told[place - 1].page if place else "",
            after=told[place + 1].page if place + 1 < len(told) else "",
        )
        _day(site, seen, day, folder, around)
    with_names = tuple((day, stem[day.start]) for day in days)
    return replace(stands(seen, facts, now), folder=folder, page=OVERVIEW, days=with_names)


def _day(site: Site, seen: Overview, day: CalendarDay, folder: str, around: report.Around) -> None:
    """Make the page of a day, unless it would come out as it is."""
    if site.is_as(folder + day.page, _digest(seen, day, around)):
        return
    about = replace(seen.about, span=(day.start, day.end))
    facts = read_facts(about, kept_certificate(about), seen.judged)
    copy_rows(facts, site.folder / folder)
    docs_beside(facts, site.folder / folder / day.page, OVERVIEW)
    site.write(folder + day.page, report.render(facts, around=around))


def _digest(seen: Overview, day: CalendarDay, around: report.Around) -> str:
    """Name what a day's page is made from: its commits, verdicts that begin before its end, checks, what writes it."""
    commits = [
        (part.leg, entry.commit, str(entry.state), entry.at, part.state.successors.get(entry.commit))
        for part, entry in seen.by_day[day.start]
    ]
    verdicts = [verdict for verdict in seen.verdicts if verdict[0] < day.end]
    told = [_writer(), commits, verdicts, seen.asked, vars(around)]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


@cache
def _writer() -> str:
    """Name the templates that pages are written by."""
    found = sorted(TEMPLATES.iterdir())
    return hashlib.sha256(b"".join(file.read_bytes() for file in found)).hexdigest()[:16]
