"""`pulseline report --all`: a site of all flows of the home, which any web server or bucket serves as it is."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from expectations import report
from expectations.laws import BLOCKING
from expectations.report.calendar import WAITING, CalendarState
from expectations.report.checks import changed_sentence
from expectations.report.page import TEMPLATES
from expectations.report.site import Need, SiteFacts, SiteRun, newest_day, render_index, site_verdict
from expectations.report.verdict import Tone, verdict
from expectations.report.words import ReportClock, counted
from pipelines.engine.commits.lease import wall_ticks
from pipelines.engine.files import durable
from pipelines.errors import PulselineError
from pipelines.jobs.commands.report import INDEX, copy_rows, page_name
from pipelines.jobs.environment.settings import MAIN_RUN, TAKEN, command, publishing, read_settings
from pipelines.jobs.facts.overview import Overview, read_overview
from pipelines.jobs.facts.report import Reported, read_facts
from pipelines.jobs.proofs.certificates import kept_certificate
from pipelines.jobs.runs.known import open_run, runs_of
from pipelines.jobs.runs.remade import mark_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from expectations.report.calendar import CalendarDay
    from pipelines.jobs.environment.settings import Settings

SITE = "_site"
"""Folder below the reports' where a site lies unless another is named."""
OVERVIEW = "overview.html"
MOST_SAID = 300
"""Characters of why a run cannot be read."""
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
    runs = tuple(_read(site, name, run) for name, run in _runs(settings))
    facts = SiteFacts(runs=runs, made_at=wall_ticks())
    site.write(INDEX, render_index(facts))
    durable.replace(folder / MADE, json.dumps(site.digests, indent=0, sort_keys=True).encode())
    tone, sentence = site_verdict(facts)
    if as_json:
        summary = {"site": str(folder / INDEX), "verdict": tone.value, "sentence": sentence}
        for told in (*map(_object, runs), summary | {"pages": site.pages, "made": site.made}):
            echo(json.dumps(told, ensure_ascii=False))
        return
    echo(sentence)
    for each in facts.in_need:
        called = each.flow if each.run == MAIN_RUN else f"{each.flow} · {each.run}"
        for need in each.needs:
            echo(f"{called}: {need.words}")
    echo(f"{counted(site.pages, 'page')}, {site.made:,} of them made now")
    echo(f"open {(folder / INDEX).as_uri()}")


def _digests(file: Path) -> dict[str, str]:
    """Read what pages were made from; nothing where that cannot be read: all are made then."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _runs(settings: Settings) -> Iterator[tuple[str, str]]:
    """Name the runs of the home that somebody made to be read, by flow; `main` first."""
    flows = {path.parent.parent.name for path in settings.home.glob("*/*/commits")} - set(TAKEN)
    for flow in sorted(flows):
        for run in sorted(runs_of(settings, flow), key=lambda run: (run != MAIN_RUN, run)):
            # What a certificate computed for itself is told by the certificate.
            if not mark_file(settings.root(flow, run), "parity").exists():
                yield flow, run


def _read(site: Site, name: str, run: str) -> SiteRun:
    """Make the pages of a run; of one that cannot be read, say so: the others are told all the same."""
    try:
        return _run(site, name, run)
    except (PulselineError, OSError, pa.ArrowException) as error:
        said = f"It cannot be read: {' '.join(str(error).split())}"[:MOST_SAID]
        need = Need(tone=Tone.BAD, words=said, command=command("doctor", name, run=run))
        return SiteRun(flow=name, run=run, tone=Tone.BAD, sentence=said, needs=(need,))


def _run(site: Site, name: str, run: str) -> SiteRun:
    """Make the pages of a run, and say how it stands."""
    about = Reported(known=open_run(name, run))
    seen = read_overview(about, kept_certificate(about))
    stem = {day.start: page_name(about.flow.timezone, day.start) for day in seen.facts.calendar}
    days = tuple(
        replace(day, page=f"{stem[day.start]}.html") if day.start in seen.by_day else day for day in seen.facts.calendar
    )
    facts = replace(seen.facts, calendar=days)
    folder = f"{name}/{run}/"
    copy_rows(facts, site.folder / folder)
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
    return _told(seen, facts, folder, tuple((day, stem[day.start]) for day in days))


def _day(site: Site, seen: Overview, day: CalendarDay, folder: str, around: report.Around) -> None:
    """Make the page of a day, unless it would come out as it is."""
    if site.is_as(folder + day.page, _digest(seen, day, around)):
        return
    about = replace(seen.about, span=(day.start, day.end))
    facts = read_facts(about, kept_certificate(about), seen.judged)
    copy_rows(facts, site.folder / folder)
    site.write(folder + day.page, report.render(facts, around=around))


def _digest(seen: Overview, day: CalendarDay, around: report.Around) -> str:
    """Name what the page of a day is made from: its commits, all verdicts that begin before its end, what writes it."""
    commits = [
        (part.leg, entry.commit, str(entry.state), entry.at, part.state.successors.get(entry.commit))
        for part, entry in seen.by_day[day.start]
    ]
    verdicts = [verdict for verdict in seen.verdicts if verdict[0] < day.end]
    told = [_writer(), commits, verdicts, vars(around)]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


@cache
def _writer() -> str:
    """Name the templates that pages are written by."""
    found = sorted(TEMPLATES.iterdir())
    return hashlib.sha256(b"".join(file.read_bytes() for file in found)).hexdigest()[:16]


def _told(seen: Overview, facts: report.ReportFacts, folder: str, days: tuple[tuple[CalendarDay, str], ...]) -> SiteRun:
    news, clock = verdict(facts), ReportClock(facts.timezone)
    published = [entry.span for entry in seen.about.published if entry.span.end > entry.span.start]
    newest = max(published, key=lambda span: span.end, default=None)
    return SiteRun(
        flow=facts.flow,
        run=facts.run,
        about=facts.about,
        timezone=facts.timezone,
        folder=folder,
        page=OVERVIEW,
        tone=news.tone,
        sentence=news.sentence,
        newest=None if newest is None else newest.end,
        newest_start=None if newest is None else newest.start,
        changed=changed_sentence(facts, clock),
        needs=tuple(_needs(seen.about, facts, clock)),
        streams=tuple(seen.about.flow.tables()),
        days=days,
    )


def _needs(about: Reported, facts: report.ReportFacts, clock: ReportClock) -> Iterator[Need]:
    """Say what of a run needs a person, by the states of its days and what newly or still does not hold."""
    by_state: dict[CalendarState, list[CalendarDay]] = {}
    for day in facts.calendar:
        by_state.setdefault(day.state, []).append(day)
    for state in (state for state in CalendarState if state in WAITING and state in by_state):
        days = by_state[state]
        tone = Tone.BAD if state in {CalendarState.RED, CalendarState.REJECTED} else Tone.OPEN
        spans = clock.span(days[0].start, days[0].end)
        more = f" and {counted(len(days) - 1, 'more day')}" if len(days) > 1 else ""
        verb = "is" if len(days) == 1 else "are"
        cause = f": {days[0].cause}" if days[0].cause else ""
        yield Need(tone=tone, words=f"{spans}{more} {verb} {state}{cause}", command=_command(about, state, days))
    for each in facts.expectations:
        since = each.memory.since
        if each.severity != BLOCKING and since is not None:
            words = f"{each.memory.standing}, {clock.span(*since.span)}: {each.sentence}"
            yield Need(tone=Tone.OPEN, words=words)


def _command(about: Reported, state: CalendarState, days: Sequence[CalendarDay]) -> str:
    """Spell the command that a person would run next for days of one state."""
    known = about.known
    if state is CalendarState.HELD and known.state.pending is not None:
        return publishing(known.called, known.state.pending.commit, run=known.run)
    if state is CalendarState.RED:
        return known.command("check")
    if state in {CalendarState.STALE, CalendarState.MISSING}:
        return known.command("run", "--plan")
    return known.run_command(days[0].start, days[-1].end)


def _object(run: SiteRun) -> Mapping[str, Any]:
    """Give a run of the first page as JSON: the same figures, and the same words."""
    return {
        "flow": run.flow,
        "run": run.run,
        "page": run.folder + run.page,
        "verdict": run.tone.value,
        "sentence": run.sentence,
        "changed": run.changed,
        "newest": newest_day(run),
        "needs": [{"tone": need.tone.value, "words": need.words, "command": need.command} for need in run.needs],
        "days": {state.value: count for state, count in _counts(run) if count},
    }


def _counts(run: SiteRun) -> Iterator[tuple[CalendarState, int]]:
    states = [day.state for day, _ in run.days]
    return ((state, states.count(state)) for state in CalendarState)
