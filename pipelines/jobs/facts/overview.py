"""How a whole run stands, day by day, from its log and what was judged: no row of a stream is read.

A run of a year, or of four hundred streams, is told as quickly as one of a week.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from expectations import report
from expectations.laws import BLOCKING, OF_FILES
from expectations.report.calendar import WORST_FIRST, CalendarDay, CalendarState
from pipelines.engine.columnar.clock import wall_now
from pipelines.engine.commits.history import CommitKind, State
from pipelines.engine.commits.quality import read_quality
from pipelines.flows.grid import DAY, cuts_between
from pipelines.jobs.facts.asked import (
    checks_asked,
    counting,
    is_of_many,
    not_asked,
    question,
    still_asked,
    tells_of_each,
)
from pipelines.jobs.facts.data_docs import docs_of
from pipelines.jobs.facts.delays import advising, chosen_delay
from pipelines.jobs.facts.let_pass import decided, failing
from pipelines.jobs.facts.narrowed import narrowed
from pipelines.jobs.facts.planned import PlanState
from pipelines.jobs.facts.planning import plan_of
from pipelines.jobs.facts.report import (
    Reported,
    account_facts,
    commit_facts,
    epochs_of,
    expectation_facts,
    next_step,
    remembered,
    unchecked,
)
from pipelines.jobs.facts.report_live import read_legs, read_presence, read_region
from pipelines.jobs.runs.counts import counted, ledger_counts
from pipelines.jobs.text.moments import Moments

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipelines.engine.commits.history import Entry
    from pipelines.engine.commits.quality import Quality
    from pipelines.flows.model import Flow
    from pipelines.jobs.facts.planned import RunPlan

STATES = {
    PlanState.PUBLISHED: CalendarState.PUBLISHED,
    PlanState.STALE: CalendarState.STALE,
    PlanState.HELD: CalendarState.HELD,
    PlanState.RED: CalendarState.REJECTED,
    PlanState.MISSING: CalendarState.MISSING,
    PlanState.PLANNED: CalendarState.PLANNED,
}
RECENT = 1_000
"""Epochs that a page of a run under way draws."""


@dataclass(frozen=True, kw_only=True)
class Overview:
    """A run as its page among all flows tells it, and what was judged of it."""

    about: Reported
    facts: report.ReportFacts
    judged: tuple[Quality, ...]
    """Every verdict, whether it still counts or not."""
    unreadable: str = ""
    """Why it cannot be said what its sources hold now; nothing where it can, or large files were not read for it."""

    @cached_property
    def by_day(self) -> Mapping[int, Sequence[tuple[Reported, Entry]]]:
        """Give the commits of each day of the calendar, and whose they are, by the start of the day."""
        days = self.facts.calendar
        starts = [day.start for day in days]
        found: dict[int, list[tuple[Reported, Entry]]] = defaultdict(list)
        for part in self.about.parts:
            for entry in (each for each in part.state.commits.values() if each.state is not State.ABANDONED):
                place = max(0, bisect_right(starts, entry.span.start) - 1)
                while place < len(days) and starts[place] < entry.span.end:
                    if entry.span.start < days[place].end:
                        found[starts[place]].append((part, entry))
                    place += 1
        return found

    @property
    def seen_by_readers(self) -> list[CalendarDay]:
        """Give the days with what does not hold of the rows that readers see, whatever else waits or was rejected."""
        beneath = {CalendarState.HELD, CalendarState.REJECTED}
        days = [
            replace(day, state=CalendarState.PUBLISHED, cause="") if day.state in beneath else day
            for day in self.facts.calendar
        ]
        seen = {0, *(entry.commit for entry in self.about.published)}
        checks = [each for each in counting(self.about, self.judged) if each.commit in seen]
        return judged_days(self.about, checks, days)

    @property
    def by_age(self) -> list[Quality]:
        """Give what was judged, the newest last."""
        return sorted(self.judged, key=lambda each: each.at)

    @cached_property
    def asked(self) -> str:
        """Spell the checks that the flow asks: pages say of which commits they were not."""
        return repr(checks_asked(self.about))

    @cached_property
    def verdicts(self) -> tuple[tuple[int, str, int], ...]:
        """Give what was judged, once each: where it begins, its name, and when it was judged."""
        return tuple(sorted({(each.start, each.judged, each.at) for each in self.judged}))


def read_overview(about: Reported, certificate: report.Certificate | None) -> Overview:
    """Read how a run stands.

    Args:
        about: the whole run.
        certificate: of the whole run, where one was made.
    """
    judged = narrowed(about, still_asked(about, read_quality(about.root)))
    checks = counting(about, judged)
    flow = about.flow
    first, last = about.bounds
    plan, stream = plan_of(about.known), chosen_delay(about)
    facts = report.ReportFacts(
        flow=flow.name,
        about=flow.about,
        run=about.run,
        timezone=flow.timezone,
        start=first,
        end=last,
        next_step=next_step(about, checks),
        made_at=wall_now(),
        sources=tuple(_sources(about)),
        ledger_counts=ledger_counts(about.known),
        commits=tuple(commit_facts(each, entry) for each in about.parts for entry in each.commits),
        certificate=certificate,
        accounts=tuple(account_facts(each, about.of(each.name)) for each in flow.streams.values() if each.accountable),
        expectations=expectation_facts(about, checks, remembered(about, judged, None)),
        data_docs=docs_of(about.root, checks),
        unchecked=len(unchecked(about, checks)),
        not_asked=len(not_asked(about, checks)),
        advise="" if stream is None else advising(about, stream),
        calendar=tuple(calendar_of(about, checks, plan)),
    )
    return Overview(about=about, facts=facts, judged=judged, unreadable=plan.unread if plan.is_unreadable else "")


def read_live(about: Reported) -> report.ReportFacts:
    """Read how a run that streams stands right now, so quickly that a page may ask again and again; no rows are read.

    Args:
        about: the whole run.
    """
    facts = read_overview(about, None).facts
    now = facts.made_at or wall_now()
    return replace(
        facts,
        expectations=tuple(_without_files(each) for each in facts.expectations),
        data_docs=(),
        next_step=about.known.command("status"),
        unchecked=0,
        not_asked=0,
        calendar=(),
        epochs=epochs_of(about)[-RECENT:],
        presence=read_presence(about.known, now),
        legs=read_legs(about.known, about.flow, now),
        region=read_region(about.known),
    )


def _without_files(each: report.ExpectationFacts) -> report.ExpectationFacts:
    """Give an expectation without the files of its rows: beside a page that lies nowhere there are none."""
    return replace(each, broken=tuple(replace(found, file=None, link="") for found in each.broken))


def _sources(about: Reported) -> Iterator[report.SourceFacts]:
    rows: Counter[str] = Counter()
    for entry in about.published:
        rows.update(counted(entry, "landed"))
    for name, source in about.flow.sources.items():
        yield report.SourceFacts(name=name, feed=source.feed.where, rows=rows[name])


def calendar_of(about: Reported, checks: Sequence[Quality], plan: RunPlan) -> list[CalendarDay]:
    """Say how each day of a run stands, in order, as its plan does.

    Args:
        about: the whole run.
        checks: what was judged of rows that count.
        plan: of the run.
    """
    found = {(each.start, each.end): each for each in (*_intervals(about, plan), *_epochs(about))}
    return days_of(about.flow, judged_days(about, checks, [found[span] for span in sorted(found)]))


def judged_days(about: Reported, checks: Sequence[Quality], days: Sequence[CalendarDay]) -> list[CalendarDay]:
    """Say of days what does not hold of them, in their order.

    Args:
        about: the whole run.
        checks: what was judged of rows that count.
        days: as the plan has them.
    """
    failed = failing(checks)
    wide = {question(each) for each in failed if is_of_many(about, each)}
    # Beside what checks of longer spans found: what was asked of one by itself.
    known = [each for each in checks if question(each) in wide]
    return [_judged(day, failed, known, about) for day in days]


def days_of(flow: Flow, ordered: Sequence[CalendarDay]) -> list[CalendarDay]:
    """Tell the intervals of each day as one, where they are shorter than days.

    Args:
        flow: says how long intervals are, and whose days.
        ordered: a day of the calendar for each interval, in order.
    """
    if flow.every >= DAY:
        return list(ordered)
    moments = Moments(flow.timezone)
    return [_one_day(list(group)) for _, group in groupby(ordered, key=lambda each: moments.at(each.start).date())]


def _intervals(about: Reported, plan: RunPlan) -> Iterator[CalendarDay]:
    """Give the intervals that were run, or should have been."""
    if not any(entry.kind is CommitKind.INTERVAL for entry in about.state.commits.values()):
        return
    for each in plan.found:
        yield CalendarDay(
            start=each.span.start, end=each.span.end, state=STATES[each.state], cause=each.why, rows=each.rows
        )


def _epochs(about: Reported) -> Iterator[CalendarDay]:
    """Give the intervals of the grid over which a stream published, from its first epoch to its last."""
    epochs = [entry for entry in about.published if entry.kind is CommitKind.EPOCH]
    if not epochs:
        return
    place = 0
    for start, end in pairwise(cuts_between(about.flow, epochs[0].span.start, epochs[-1].span.end)):
        while place < len(epochs) and epochs[place].span.end <= start:
            place += 1
        inside = _inside(epochs, place, start, end)
        gone_on = CalendarState.PUBLISHED if inside else CalendarState.MISSING
        rows = sum(sum(counted(entry, "landed").values()) for entry in inside) if inside else None
        cause = "" if inside else "the stream published nothing"
        yield CalendarDay(start=start, end=end, state=gone_on, cause=cause, rows=rows)


def _inside(epochs: Sequence[Entry], place: int, start: int, end: int) -> list[Entry]:
    """Give the epochs that begin in an interval, and the one over it where none does."""
    found: list[Entry] = []
    while place < len(epochs) and epochs[place].span.start < end:
        if epochs[place].span.end > start:
            found.append(epochs[place])
        place += 1
    return found


def _judged(day: CalendarDay, failed: Sequence[Quality], known: Sequence[Quality], about: Reported) -> CalendarDay:
    """Say what does not hold of a day that readers see, of all that does not."""
    if day.state not in {CalendarState.PUBLISHED, CalendarState.STALE}:
        return day
    near = [each for each in failed if each.start < day.end and day.start < each.end]
    if not near:
        return day
    numbers = {entry.commit for entry in about.published if entry.span.start < day.end and day.start < entry.span.end}
    of_day = [each for each in near if _is_of(about, each, day, numbers, known)]
    blocking = [each for each in of_day if each.severity == BLOCKING]
    # What nobody let pass is the reason, where there is such, and files before what they say.
    ranked = sorted(
        blocking, key=lambda each: (bool(decided(about, [each], numbers)), each.expectation not in OF_FILES)
    )
    red = next(iter(ranked), None)
    warned = len({(each.table, each.expectation) for each in of_day if each.severity != BLOCKING})
    if red is None:
        return replace(day, warned=warned)
    passed = decided(about, blocking, numbers)
    first, *more = dict.fromkeys(f"{each.table}: {each.sentence}" for each in ranked)
    return replace(
        day,
        state=CalendarState.RED,
        cause="; ".join([first, *([passed] if passed else [])]),
        more=tuple(more),
        alone=_alone(about, red),
        warned=warned,
        is_accepted=bool(passed),
    )


def _alone(about: Reported, check: Quality) -> tuple[int, int] | None:
    """Give the interval of a verdict that nobody finds again who asks of more rows together."""
    entry = about.state.commits.get(check.commit)
    is_of_interval = entry.kind is CommitKind.INTERVAL if entry else not is_of_many(about, check)
    return (check.start, check.end) if is_of_interval and not tells_of_each(about, check) else None


def _is_of(about: Reported, check: Quality, day: CalendarDay, commits: set[int], known: Sequence[Quality]) -> bool:
    """Say whether a verdict is of a day: of a commit of it, of a span within it, or of rows that it has.

    What is asked of the rows of many days together is of none, and what a day was asked since says more.
    """
    if check.commit:
        return check.commit in commits
    if _is_within(check, day):
        return True
    if not tells_of_each(about, check) or not any(row.get("commit") in commits for row in check.rows):
        return False
    since = (each for each in known if _is_within(each, day) and each.at > check.at)
    return not any(question(each) == question(check) for each in since)


def _is_within(check: Quality, day: CalendarDay) -> bool:
    return day.start <= check.start and check.end <= day.end


def _one_day(intervals: Sequence[CalendarDay]) -> CalendarDay:
    """Tell the intervals of a day as one: it is as the worst of them."""
    worst = min(intervals, key=lambda each: WORST_FIRST.index(each.state))
    rows = [each.rows for each in intervals if each.rows is not None]
    return replace(
        worst,
        start=intervals[0].start,
        end=intervals[-1].end,
        rows=sum(rows) if rows else None,
        warned=sum(each.warned for each in intervals),
        is_accepted=all(each.is_accepted for each in intervals if each.state is worst.state),
        intervals=len(intervals),
    )
