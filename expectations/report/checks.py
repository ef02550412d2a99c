"""The expectations as the page tells them: a line each, and the rows that break one among the rows around them."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from expectations.laws import OF_INTERVALS
from expectations.report.charts.trend import told, trend
from expectations.report.memory import VerdictStanding, changes
from expectations.report.words import counted, instant_or_text, listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from expectations.report.charts.trend import Trend
    from expectations.report.facts import Broken, DataDocs, ExpectationFacts, ReportFacts
    from expectations.report.memory import PastVerdict, Span
    from expectations.report.words import ReportClock

SHOWN_ROWS = 5
"""Offending rows told of one check."""
SHOWN_CHECKS = 3
"""Checks told of one expectation."""
MOST_LINES = 80
"""Expectations that are told one by one: of more, those that always held are one line a stream."""
SHOWN_BROKEN = 12
"""Expectations whose rows are shown."""
SHOWN_FAILURES = 200
"""Failures of the whole history that stand in the table behind the drawings: the newest."""
SHOWN_NAMES = 3
"""Expectations that the sentence on top names of each kind."""
LEFT_OUT = frozenset({"around", "before", "after", "governed_by", "position", "commit", "landed_place"})
LEADING = ("kind", "arrival", "place", "event_time", "event_end")
MOST_COLUMNS = 10


@dataclass(frozen=True, kw_only=True)
class OffenderScene:
    """One offending row in stream order: the rows before it, itself, the rows after it, and what governs it."""

    columns: tuple[str, ...]
    lines: tuple[tuple[str, tuple[str, ...]], ...]
    """`around`, `offender` or `governor`, and a text a column."""
    governed: bool


@dataclass(frozen=True, kw_only=True)
class BrokenView:
    """One check in which an expectation did not hold."""

    where: str
    rows: int
    scenes: tuple[OffenderScene, ...]
    link: str
    """The file with all of them, relative to the page; empty where there is none."""
    docs: str
    """Great Expectations' own page of it, relative to the page; empty where there is none."""
    page: str
    """The page of its day, on the page of a run; empty where there is none."""


@dataclass(frozen=True, kw_only=True)
class CheckLine:
    """One expectation on one stream."""

    facts: ExpectationFacts
    broken: tuple[BrokenView, ...]
    left_out: int
    """Checks in which it failed and that are not told."""
    trend: Trend | None
    """Its history, drawn; None where there is none."""
    standing: str
    """Such as `still failing since Thu 3 Jan 2013`; empty where there is nothing to say."""
    failed: str
    """When it failed first and last, where that says more than `standing`; else empty."""

    @property
    def noun(self) -> str:
        """Name what breaks it."""
        return noun_of(self.facts)


@dataclass(frozen=True, kw_only=True)
class FailureLine:
    """One failure of the history: stream, expectation, interval, commit, what was found, and what became of it."""

    words: tuple[str, ...]
    page: str
    """The page of its interval; empty where there is none."""


@dataclass(frozen=True, kw_only=True)
class ChecksView:
    """All expectations, and how many commits none of them has looked at."""

    lines: tuple[CheckLine, ...]
    quiet: tuple[tuple[str, int], ...]
    """By stream, how many more there are that hold and have always held."""
    more: int
    """Expectations that do not hold, or did not, and are not told."""
    unchecked: int
    not_asked: int
    """Commits of which not all of the flow's own checks were asked."""
    failures: tuple[FailureLine, ...]
    """The newest of the whole history, the latest first."""
    earlier: int
    """Failures that are not among them."""
    docs: tuple[tuple[str, str], ...]
    """Great Expectations' own pages: of what, and where."""

    @property
    def remembers(self) -> bool:
        """Say whether any has a history."""
        return any(line.trend or line.standing for line in self.lines)

    @property
    def broken(self) -> tuple[CheckLine, ...]:
        """Give those whose rows are shown."""
        return tuple(line for line in self.lines if line.broken)[:SHOWN_BROKEN]


def checks_view(facts: ReportFacts, clock: ReportClock) -> ChecksView | None:
    """Tell the expectations; none where nothing was published or checked."""
    if not facts.expectations and not facts.unchecked:
        return None
    ranked = sorted(facts.expectations, key=lambda each: each.held)
    shown = _shown(ranked)
    quiet: Counter[str] = Counter()
    if len(ranked) > MOST_LINES:
        quiet.update(each.table for each in ranked if _always_held(each))
    failures = _failures(facts)
    return ChecksView(
        lines=tuple(_line(each, facts, clock) for each in shown[:MOST_LINES]),
        quiet=tuple(quiet.items()),
        more=max(0, len(shown) - MOST_LINES),
        unchecked=facts.unchecked,
        not_asked=facts.not_asked,
        failures=tuple(_failure(*each, facts, clock) for each in failures[:SHOWN_FAILURES]),
        earlier=max(0, len(failures) - SHOWN_FAILURES),
        docs=tuple((_where(each, clock), each.link) for each in facts.data_docs),
    )


def _shown(ranked: Sequence[ExpectationFacts]) -> list[ExpectationFacts]:
    """Leave out what always held where there is too much to tell; what blocks, and does not hold, comes first."""
    if len(ranked) <= MOST_LINES:
        return list(ranked)
    return sorted((each for each in ranked if not _always_held(each)), key=lambda each: (each.held, each.severity))


def _always_held(facts: ExpectationFacts) -> bool:
    return facts.held and not facts.memory.failures


def _where(judged: Broken | DataDocs, clock: ReportClock) -> str:
    commit = f"commit {judged.commit}, " if judged.commit is not None else ""
    return f"{commit}{clock.span(judged.start, judged.end)}"


def _line(facts: ExpectationFacts, page: ReportFacts, clock: ReportClock) -> CheckLine:
    newest = facts.broken[-SHOWN_CHECKS:]
    return CheckLine(
        facts=facts,
        broken=tuple(_broken(found, facts.name, page, clock) for found in newest),
        left_out=len(facts.broken) - len(newest),
        trend=trend(facts.memory.points, noun_of(facts), clock),
        standing=standing_words(facts, clock),
        failed=_failed(facts, clock),
    )


def noun_of(facts: ExpectationFacts) -> str:
    """Name what breaks an expectation."""
    return "case" if facts.name in OF_INTERVALS else "row"


def standing_words(facts: ExpectationFacts, clock: ReportClock) -> str:
    """Say how an expectation stands beside the interval before; nothing where it held then and holds."""
    memory = facts.memory
    if memory.standing is VerdictStanding.STILL and memory.since is not None:
        return f"{VerdictStanding.STILL} since {clock.span(*memory.since.span)}"
    return "" if memory.standing is VerdictStanding.HOLDS else str(memory.standing)


def _failed(facts: ExpectationFacts, clock: ReportClock) -> str:
    first, last = facts.memory.first_failed, facts.memory.last_failed
    if first is None or last is None:
        return ""
    days = [clock.span(*each.span) for each in (first, last)]
    return f"failed {days[0]}" if days[0] == days[1] else f"failed first {days[0]}, last {days[1]}"


def _failures(facts: ReportFacts) -> list[tuple[PastVerdict, ExpectationFacts]]:
    """Give each failure that is known, the latest first."""
    found = [(failure, each) for each in facts.expectations for failure in each.memory.failures]
    return sorted(found, key=lambda pair: (pair[0].end, pair[0].at), reverse=True)


def _failure(failure: PastVerdict, of: ExpectationFacts, page: ReportFacts, clock: ReportClock) -> FailureLine:
    return FailureLine(
        page=page.page_at(failure.start, failure.end),
        words=(
            of.table,
            of.name,
            clock.span(failure.start, failure.end),
            "–" if failure.commit is None else f"{failure.commit}",
            told(failure, noun_of(of)),
            "mended" if of.memory.is_mended(failure) else str(failure.outcome),
        ),
    )


def changed_sentence(facts: ReportFacts, clock: ReportClock) -> str | None:
    """Say in one sentence what changed since the verdicts before; None where there are none before."""
    memories = {(each.table, each.name): each.memory for each in facts.expectations}
    found = changes(memories, of_last=facts.of_interval)
    if found is None:
        return None
    named = partial(_named, {name: clock.span(*span) for name, span in found.together.items()})
    told = [
        *([f"{named(found.broken)} newly {_verb(found.broken, 'fails', 'fail')}"] if found.broken else []),
        *([f"{named(found.fixed)} {_verb(found.fixed, 'is', 'are')} fixed"] if found.fixed else []),
    ]
    again = found.before == found.now
    since = f"Since {clock.span(*found.now)} was judged before" if again else f"Since {clock.span(*found.before)}"
    news = f"{since}: {', '.join(told)}" if told else f"{since}{',' if again else ''} nothing changed"
    news = "; ".join([news, *_earlier(found.earlier, clock)])
    if not found.still:
        return f"{news}."
    by_span: dict[Span, list[tuple[str, str]]] = {}
    for table, name, span in found.still:
        by_span.setdefault(span, []).append((table, name))
    shown = sorted(by_span.items())[:SHOWN_NAMES]
    # Of an interval that was judged again nobody looks at how it stands now.
    when = " of it" if again else ", since {}"
    told = [
        f"{named(names)} still {_verb(names, 'fails', 'fail')}{when.format(clock.span(*span))}" for span, names in shown
    ]
    more = len(found.still) - sum(len(names) for _, names in shown)
    return "; ".join([news, *told, *([f"{counted(more, 'more', 'more')} still fail"] if more else [])]) + "."


def _earlier(found: Sequence[tuple[str, str, Span]], clock: ReportClock) -> list[str]:
    """Say what the newest check alone found of other intervals, and of the first of which."""
    by_name: dict[tuple[str, str], list[Span]] = {}
    for table, name, span in found:
        by_name.setdefault((table, name), []).append(span)
    told = []
    for (table, name), spans in list(by_name.items())[:SHOWN_NAMES]:
        several = f" and {counted(len(spans) - 1, 'later interval')}" if len(spans) > 1 else ""
        told.append(f"{name} of {table} fails of {clock.span(*min(spans))}{several}")
    more = len(by_name) - len(told)
    told += [f"{counted(more, 'more fails', 'more fail')} of other intervals"] if more else []
    return [f"the newest check found besides that {listed(told)}"] if told else []


def _named(together: Mapping[tuple[str, str], str], names: Sequence[tuple[str, str]]) -> str:
    spans = [f" ({together[each]} together)" if each in together else "" for each in names]
    shown = [f"{name} of {table}{span}" for (table, name), span in zip(names, spans, strict=True)][:SHOWN_NAMES]
    more = len(names) - len(shown)
    return listed([*shown, *([f"{counted(more, 'more', 'more')}"] if more else [])])


def _verb(names: Sequence[object], one: str, several: str) -> str:
    return one if len(names) == 1 else several


def _broken(found: Broken, asked: str, page: ReportFacts, clock: ReportClock) -> BrokenView:
    scenes = tuple(_scene(row, asked, clock) for row in found.rows[:SHOWN_ROWS])
    return BrokenView(
        where=_where(found, clock),
        rows=found.unexpected,
        scenes=scenes,
        link=found.link,
        docs=page.docs_at(found.start, found.end, found.commit),
        page=page.page_at(found.start, found.end),
    )


def _scene(row: Mapping[str, object], asked: str, clock: ReportClock) -> OffenderScene:
    around = row.get("around")
    before, after = (_rows(around, side) for side in ("before", "after"))
    governor = row.get("governed_by")
    every = [
        *([("governor", governor)] if isinstance(governor, dict) else []),
        *[("around", each) for each in before],
        ("offender", row),
        *[("around", each) for each in after],
    ]
    columns = _columns([each for _, each in every], asked)
    lines = tuple((role, tuple(instant_or_text(each.get(name), clock) for name in columns)) for role, each in every)
    return OffenderScene(columns=columns, lines=lines, governed=isinstance(governor, dict))


def _rows(around: object, side: str) -> list[Mapping[str, object]]:
    found = around.get(side, []) if isinstance(around, dict) else []
    return [each for each in found if isinstance(each, dict)]


def _columns(rows: Sequence[Mapping[str, object]], asked: str) -> tuple[str, ...]:
    """Choose the columns that say something: those of every stream, what is asked about, then what most rows have.

    Args:
        rows: by column.
        asked: an expectation's name, with the columns that it is about.
    """
    names = dict.fromkeys(name for row in rows for name in row if name not in LEFT_OUT)
    filled = {name: sum(row.get(name) is not None for row in rows) for name in names}
    about = {name for name in names if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", asked.partition("(")[2])}
    leading = [name for name in LEADING if name in names and (filled[name] or name in about)]
    others = sorted(
        (name for name in names if name not in LEADING), key=lambda name: (name not in about, -filled[name])
    )
    return tuple([*leading, *(name for name in others if filled[name] or name in about)][:MOST_COLUMNS])
