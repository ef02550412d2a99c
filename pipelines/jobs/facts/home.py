"""All runs of a home, as they stand: what `pulseline status`, Airflow's Overview and the site of pages say of them.

A run is told from its log, what was judged, and the end of its landing; no row of a stream is read, but the newest CTI.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from expectations.laws import BLOCKING
from expectations.report.calendar import WAITING, CalendarState
from expectations.report.checks import changed_sentence
from expectations.report.site import Need, SiteFacts, SiteLive, SiteRun, newest_day
from expectations.report.verdict import Tone, verdict
from expectations.report.words import ReportClock, counted
from pipelines.engine.columnar.columns import TABLE_INFINITY
from pipelines.engine.commits.history import CommitKind
from pipelines.engine.commits.lease import HolderStanding
from pipelines.engine.commits.paths import QualityLostError
from pipelines.engine.commits.quality import read_quality
from pipelines.engine.commits.readers import log_state
from pipelines.errors import PulselineError
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.exits import named
from pipelines.jobs.environment.settings import MAIN_RUN, TAKEN, command, publishing, read_settings
from pipelines.jobs.facts.asked import is_of_many, tells_of_each
from pipelines.jobs.facts.let_pass import decided, failing
from pipelines.jobs.facts.live import live_of
from pipelines.jobs.facts.overview import read_overview
from pipelines.jobs.facts.presence import presence_of
from pipelines.jobs.facts.quiet import UNHEARD, heard_until, promised
from pipelines.jobs.facts.report import Reported, checking
from pipelines.jobs.facts.status import lease_of, rejected_of, stale_epochs
from pipelines.jobs.runs.known import flow_name_or_file, open_run_of_home, runs_of
from pipelines.jobs.runs.remade import mark_file
from pipelines.jobs.runs.replaced import own_file
from pipelines.operators.rows import TICKS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence

    from expectations.report.calendar import CalendarDay
    from expectations.report.facts import Certificate, ReportFacts
    from pipelines.jobs.environment.settings import Settings
    from pipelines.jobs.facts.overview import Overview
    from pipelines.jobs.runs.known import KnownRun

    Facts = dict[str, Any]
    Certified = Callable[[Reported], Certificate | None]

MOST_SAID = 300
"""Characters of why a run cannot be read."""


def read_home(
    settings: Settings, now: int, called: Iterable[str], certified: Certified, only: Container[str] | None = None
) -> SiteFacts:
    """Read how all flows stand, those that never ran too.

    Args:
        settings: say where the home is.
        now: wall time, in ticks.
        called: what commands call the flows of the configuration.
        certified: gives the certificate of a run, where one was made.
        only: names of the flows that may be told; None for all.
    """
    read = partial(_run, now=now, certified=certified)
    found = [readable(name, run, read) for name, run in runs_in(settings) if only is None or name in only]
    begun = {each.flow for each in found}
    names = {flow_name_or_file(settings, each) for each in called} - begun
    if only is not None:
        names = {name for name in names if name in only}
    never = [SiteRun(flow=name, run=MAIN_RUN, tone=Tone.OPEN, sentence="It has not run yet.") for name in names]
    order = sorted((*found, *never), key=lambda each: each.flow)
    return SiteFacts(runs=tuple(order), made_at=now)


def runs_in(settings: Settings) -> Iterator[tuple[str, str]]:
    """Name the runs of a home that somebody made to be read, by flow; `main` first."""
    flows = {path.parent.parent.name for path in settings.home.glob("*/*/commits")} - set(TAKEN)
    for flow in sorted(flows):
        for run in sorted(runs_of(settings, flow), key=lambda run: (run != MAIN_RUN, run)):
            # What a certificate computed for itself is told by the certificate.
            if not mark_file(settings.root(flow, run), "parity").exists():
                yield flow, run


def readable(name: str, run: str, read: Callable[[str, str], SiteRun]) -> SiteRun:
    """Read how a run stands; of one that cannot be read, say so: the others are told all the same."""
    try:
        return read(name, run)
    except (PulselineError, OSError, pa.ArrowException) as error:
        if isinstance(error, WrongUse) and _has_only_begun(name, run):
            return SiteRun(flow=name, run=run, tone=Tone.OPEN, sentence="It has begun, and nothing is published yet.")
        # What others wrote may be of types that nobody can compare: that they did says more.
        why = next(_damage(name, run), "") or " ".join(str(error).split())
        said = f"It cannot be read: {named(why, name, run)}"[:MOST_SAID]
        need = Need(tone=Tone.BAD, words=said, command=command("doctor", name, run=run))
        return SiteRun(flow=name, run=run, tone=Tone.BAD, sentence=said, needs=(need,))


def _has_only_begun(name: str, run: str) -> bool:
    """Say whether a run was begun, and nothing written by which its flow is known: no configuration need have it."""
    root = read_settings().root(name, run)
    state = log_state(root)
    return state.lease is not None and not state.commits and own_file(root) is None


def _damage(name: str, run: str) -> Iterator[str]:
    with suppress(PulselineError, OSError, pa.ArrowException):
        yield from open_run_of_home(name, run).damaged


def stands(seen: Overview, facts: ReportFacts, now: int) -> SiteRun:
    """Say how a run stands.

    Args:
        seen: the run as its log tells it.
        facts: the same, as its page has it.
        now: wall time, in ticks.
    """
    news, clock = verdict(facts), ReportClock(facts.timezone)
    published = [entry for entry in seen.about.published if entry.span.end > entry.span.start]
    newest = max(published, key=lambda entry: entry.span.end, default=None)
    return SiteRun(
        flow=facts.flow,
        run=facts.run,
        about=facts.about,
        timezone=facts.timezone,
        tone=_tone(news.tone, seen),
        sentence=news.sentence,
        newest=None if newest is None else newest.span.end,
        newest_start=newest.span.start if newest is not None and newest.kind is CommitKind.INTERVAL else None,
        changed=changed_sentence(facts, clock),
        needs=tuple(_needs(seen, facts, clock)),
        owner=_owner(seen.about.known),
        live=_live(seen.about.known, now),
        streams=tuple(seen.about.flow.tables()),
    )


def _owner(known: KnownRun) -> str:
    return "" if known.flow_now is None else known.flow_now.asked


def _tone(news: Tone, seen: Overview) -> Tone:
    if seen.about.known.damaged:
        return Tone.BAD
    return Tone.OPEN if seen.unreadable and news is Tone.GOOD else news


def _run(name: str, run: str, now: int, certified: Certified) -> SiteRun:
    about = Reported(known=open_run_of_home(name, run))
    seen = read_overview(about, certified(about))
    return stands(seen, seen.facts, now)


def _live(known: KnownRun, now: int) -> SiteLive:
    """Say whether somebody works on a run, how far its promises lag, what is silent, and how late timers are."""
    lease, live = lease_of(known, now), live_of(known, now)
    works = lease["standing"] == HolderStanding.HELD.value
    ctis = [at for _, at in promised(known) if at < TABLE_INFINITY]
    # A day that was run again is the newest commit, and not the newest day.
    ended = max((entry.span.end for entry in known.state.published), default=None)
    upto = heard_until(live, now) if works and live else ended
    presence = presence_of(known, lease, live, now) if works and live else {}
    heartbeats = None if live is None else live["heartbeats"]
    return SiteLive(
        works="streams" if works and live else "runs" if works else "",
        lag=max(0, upto - min(ctis)) if ctis and upto is not None else None,
        silent=tuple(name for name, each in presence.items() if each["state"] in UNHEARD),
        late_ms=None if heartbeats is None else (heartbeats["p50_ms"], heartbeats["p99_ms"]),
    )


def _needs(seen: Overview, facts: ReportFacts, clock: ReportClock) -> Iterator[Need]:
    """Say what of a run needs a person, by the states of its days and what newly or still does not hold."""
    about = seen.about
    for damage in about.known.damaged:
        yield Need(tone=Tone.BAD, words=damage, command=about.known.command("doctor"))
    if seen.unreadable:
        yield Need(tone=Tone.OPEN, words=seen.unreadable, command=about.known.command("plan"))
    by_state: dict[CalendarState, list[CalendarDay]] = {}
    rejected, waits = None if facts.calendar else rejected_of(about.known), about.known.state.pending
    if rejected:
        # The calendar begins with the first day that is published.
        state = CalendarState.HELD if waits else CalendarState.REJECTED
        words = f"{clock.span(rejected['start'], rejected['end'])} is {state}: {rejected['why']}"
        command = about.known.looking_at(waits.commit if waits else rejected["commit"])
        yield Need(tone=Tone.BAD, words=words, command=command)
    for day in facts.calendar:
        if not day.is_accepted:
            by_state.setdefault(day.state, []).append(day)
    for state in (state for state in CalendarState if state in WAITING and state in by_state):
        refused = _refused(seen, by_state[state], clock)
        yield from [refused] if refused else _of_state(about, state, by_state[state], clock)
    for stale in stale_epochs(about.known):
        words = f"what was streamed over {clock.span(stale['start'], stale['end'])} is stale: {stale['why']}"
        yield Need(tone=Tone.OPEN, words=words, command=stale["command"])
    yield from _together(seen, clock)
    for each in facts.expectations:
        since = each.memory.since
        if each.severity != BLOCKING and since is not None:
            words = f"{each.memory.standing}, {clock.span(*since.span)}: {each.sentence}"
            yield Need(tone=Tone.OPEN, words=words)


def _together(seen: Overview, clock: ReportClock) -> Iterator[Need]:
    """Say what blocks and does not hold of the rows of several days together: no day is red for it."""
    about = seen.about
    published = {entry.commit for entry in about.published}
    newest = {(each.table, each.expectation, each.start, each.end): each for each in seen.by_age if not each.commit}
    for each in (each for each in seen.facts.expectations if each.severity == BLOCKING):
        for found in (found for found in each.broken if not found.commit):
            check = newest.get((each.table, each.name, found.start, found.end))
            if check is None or not is_of_many(about, check) or tells_of_each(about, check):
                continue
            if decided(about, [check], published):
                continue
            words = f"{clock.span(found.start, found.end)} together do not hold: {each.table}: {each.sentence}"
            yield Need(tone=Tone.BAD, words=words, command=checking(about, (found.start, found.end)))


def _refused(seen: Overview, days: Sequence[CalendarDay], clock: ReportClock) -> Need | None:
    """Say of a held day what its check found to block it; None of other days, and where nothing does."""
    known = seen.about.known
    waits = known.state.pending
    if waits is None or days[0].state is not CalendarState.HELD:
        return None
    broken = next(
        (each for each in failing(seen.judged) if each.commit == waits.commit and each.severity == BLOCKING), None
    )
    if broken is None:
        return None
    words = f"{clock.span(days[0].start, days[0].end)} is held, and does not hold: {broken.table}: {broken.sentence}"
    return Need(tone=Tone.BAD, words=words, command=known.looking_at(waits.commit))


def _of_days(about: Reported, state: CalendarState, days: Sequence[CalendarDay], clock: ReportClock) -> Need:
    """Say that days of one state need a person."""
    tone = Tone.BAD if state in {CalendarState.RED, CalendarState.REJECTED} else Tone.OPEN
    spans = clock.span(days[0].start, days[0].end)
    more = f" and {counted(len(days) - 1, 'more day')}" if len(days) > 1 else ""
    verb = "is" if len(days) == 1 else "are"
    causes = list(dict.fromkeys(cause for day in days for cause in (day.cause, *day.more) if cause))
    others = f"; and {counted(len(causes) - 1, 'other reason')}" if causes[1:] else ""
    cause = f": {causes[0]}{others}" if causes else ""
    return Need(tone=tone, words=f"{spans}{more} {verb} {state}{cause}", command=_command(about, state, days))


def _of_state(about: Reported, state: CalendarState, days: Sequence[CalendarDay], clock: ReportClock) -> Iterator[Need]:
    """Say that days of one state need a person: those that a check of all shows, then those that have to be asked."""
    for part in ([day for day in days if not day.alone], [day for day in days if day.alone]):
        if part:
            yield _of_days(about, state, part, clock)


def red_days(known: KnownRun, *, alone: bool = False) -> list[Need]:
    """Say which published days of a run do not hold, by themselves and together, and nobody let pass.

    Args:
        known: the run.
        alone: tell only of days that do not hold by themselves, and may where more is asked together.
    """
    # A check may have become one that blocks since it was asked.
    own = {} if known.flow_now is None else known.flow_now.expect
    blocks = {(table, each.label) for table, checks in own.items() for each in checks if each.severity == BLOCKING}
    failing = (each for each in read_quality(known.root) if not each.held)
    if not any(each.severity == BLOCKING or (each.table, each.expectation) in blocks for each in failing):
        return []
    about = Reported(known=known)
    seen, clock = read_overview(about, None), ReportClock(about.flow.timezone)
    red = [day for day in seen.seen_by_readers if day.state is CalendarState.RED and not day.is_accepted]
    if alone:
        return list(_of_state(about, CalendarState.RED, [day for day in red if day.alone], clock))
    return [*_of_state(about, CalendarState.RED, red, clock), *_together(seen, clock)]


def red_or_lost(known: KnownRun, *, alone: bool = False) -> tuple[list[Need], str]:
    """Give the red days of a run, and why nobody can say which they are, where that is so; as `red_days` does."""
    try:
        return red_days(known, alone=alone), ""
    except QualityLostError as lost:
        return [], str(lost)


def red_lines(needs: Iterable[Need]) -> list[str]:
    """Say what needs a person, with the command that shows why."""
    return [f"{need.words}: {need.command}" for need in needs]


def _command(about: Reported, state: CalendarState, days: Sequence[CalendarDay]) -> str:
    """Spell the command that a person would run next for days of one state."""
    known = about.known
    if state is CalendarState.HELD and known.state.pending is not None:
        return publishing(known.called, known.state.pending.commit, run=known.run)
    rejected = rejected_of(known)
    if state is CalendarState.REJECTED and rejected:
        return known.looking_at(rejected["commit"])
    if state is CalendarState.RED:
        # Of the rows of all days together it may hold.
        return checking(about, days[0].alone if all(day.alone for day in days) else None)
    if state in {CalendarState.STALE, CalendarState.MISSING}:
        return known.command("run", "--plan")
    return known.run_command(days[0].start, days[-1].end)


def need_lines(facts: SiteFacts) -> Iterator[str]:
    """Say what needs a person, a line each."""
    for each in facts.in_need:
        called = each.flow if each.run == MAIN_RUN else f"{each.flow} · {each.run}"
        owned = f" ({each.owner})" if each.owner else ""
        for need in each.needs:
            yield f"{called}{owned}: {need.words}"


def run_object(run: SiteRun) -> Facts:
    """Give a run as JSON: the same figures, and the same words, as the page of all flows has."""
    states = [day.state for day, _ in run.days]
    counts = {state.value: count for state in CalendarState if (count := states.count(state))}
    live = run.live
    return {
        "flow": run.flow,
        "run": run.run,
        "owner": run.owner,
        "page": run.folder + run.page,
        "verdict": run.tone.value,
        "sentence": run.sentence,
        "changed": run.changed,
        "newest": newest_day(run),
        "works": live.works,
        "lag_seconds": None if live.lag is None else live.lag / TICKS_PER_SECOND,
        "silent": list(live.silent),
        "late_ms": None if live.late_ms is None else dict(zip(("p50", "p99"), live.late_ms, strict=True)),
        "needs": [{"tone": need.tone.value, "words": need.words, "command": need.command} for need in run.needs],
        "days": counts,
    }
