"""Which verdicts are of what a flow asks now: one of a check that was changed, or is gone, answers another question.

A verdict of a team's own check keeps a mark of what was asked. So days that were judged under other bounds are not told
under those of now: nobody has asked them that yet. What older code judged is known by its sentence, which says them.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from expectations.decided import IN_EACH
from pipelines.engine.commits.entry import CommitKind, State
from pipelines.flows.check import OWN, is_of_each
from pipelines.jobs.facts.current import is_current
from pipelines.jobs.facts.narrowed import is_of_some
from pipelines.jobs.runs.counts import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pipelines.engine.commits.history import Entry
    from pipelines.engine.commits.quality import Quality
    from pipelines.flows.check import Check
    from pipelines.jobs.facts.report import Reported

NUMBERED = re.compile(r" #\d+$")
"""How a label ends of which there are several; the first has none."""


class Question(NamedTuple):
    """What was asked."""

    table: str
    expectation: str
    asked: str
    """Of a team's own check; empty of a law, of which the sentence may say what was usual then."""


def question(check: Quality) -> Question:
    """Say what a verdict answers, of one interval or of many."""
    said = (check.asked or _said(check)) if check.expectation.startswith(OWN) else ""
    return Question(check.table, check.expectation, said)


def _said(check: Quality) -> str:
    return check.sentence.replace(IN_EACH, "")


def still_asked(about: Reported, judged: Sequence[Quality]) -> tuple[Quality, ...]:
    """Leave out the verdicts of checks that the flow no longer has, or that ask something else since.

    A check goes by the label and the severity that it has now. What waits or was rejected keeps the verdicts that are
    the reason.

    Args:
        about: the run, or the interval of a page.
        judged: all verdicts of the run.
    """
    now = _Now(about, judged)
    found = ((each, now.check_of(each)) for each in judged)
    return tuple(
        each if own is None else _as_now(each, own, is_reason=_is_reason(about, each))
        for each, own in found
        if own is not None or not each.expectation.startswith(OWN) or _is_reason(about, each)
    )


def _as_now(check: Quality, own: Check, *, is_reason: bool) -> Quality:
    severity = check.severity if is_reason else own.severity
    return replace(check, expectation=own.label, asked=own.asks, severity=severity)


def checks_asked(about: Reported) -> dict[str, Sequence[Check]]:
    """Give the checks that are asked: those of the file, whichever flow made the rows."""
    return dict((about.known.flow_now or about.flow).expect)


class _Now:
    """What a flow asks now, against which verdicts are held."""

    def __init__(self, about: Reported, judged: Sequence[Quality]) -> None:
        self._checks = checks_asked(about)
        self._sentences: dict[tuple[str, str], str] = {}
        """Of what older code judged, the words in which each check was asked last."""
        own = {(table, each.label): each.asks for table, checks in self._checks.items() for each in checks}
        for each in sorted(judged, key=lambda each: each.at):
            about_it = (each.table, each.expectation)
            if each.asked in {"", own.get(about_it)} and not _says_nothing(each):
                self._sentences[about_it] = _said(each)

    def check_of(self, verdict: Quality) -> Check | None:
        """Give the check of now that a verdict answers; None where there is none."""
        about = NUMBERED.sub("", verdict.expectation)
        alike = (each for each in self._checks.get(verdict.table, ()) if NUMBERED.sub("", each.label) == about)
        # The same check may stand there twice.
        ranked = sorted(alike, key=lambda each: each.label != verdict.expectation)
        return next((each for each in ranked if self._answers(verdict, each)), None)

    def _answers(self, verdict: Quality, check: Check) -> bool:
        if verdict.asked:
            return verdict.asked == check.asks
        if _says_nothing(verdict):
            return verdict.expectation == check.label
        return self._sentences.get((verdict.table, check.label), "") in {_said(verdict), ""}


def _says_nothing(check: Quality) -> bool:
    """Say whether a verdict is of a table that never had a row: nothing was asked."""
    return check.sentence == f"{check.expectation} ({check.table})"


def _is_reason(about: Reported, check: Quality) -> bool:
    entry = about.state.commits.get(check.commit)
    return entry is not None and entry.state is not State.PUBLISHED and is_current(about, check)


def counting(about: Reported, judged: Sequence[Quality]) -> list[Quality]:
    """Give the verdicts that count: of what readers see, and not asked once more since of a span that has all of it.

    Args:
        about: the run, or the interval of a page.
        judged: verdicts, told by interval as `narrowed` does.
    """
    checks = [each for each in judged if is_current(about, each)]
    wide: dict[Question, list[Quality]] = {}
    for each in judged:
        # Of an interval what a later check found of it stands beside it already. One that held still says so of the
        # rest of its span once an interval of it was run again; one that did not is told by its intervals then.
        if is_of_many(about, each) and (each.held or is_current(about, each)):
            wide.setdefault(question(each), []).append(each)
    late = {id(each) for found in wide.values() for each in found for one in found if _is_newer(about, one, each)}
    return [each for each in checks if id(each) not in late]


def _is_newer(about: Reported, wide: Quality, check: Quality) -> bool:
    """Say whether one verdict of many intervals tells, later, of each row that another of some of them told of.

    What is asked of many intervals together tells of no row, but takes the place of what was asked of fewer together.
    """
    if wide.start > check.start or check.end > wide.end or wide.at <= check.at:
        return False
    replaces = is_of_many(about, check) and is_current(about, wide) and not is_of_some(wide)
    return replaces or tells_of_each(about, wide)


def is_of_many(about: Reported, check: Quality) -> bool:
    """Say whether a verdict is of several intervals: a day of a change of clocks is an hour longer or shorter."""
    return not check.commit and 2 * (check.end - check.start) >= 3 * about.flow.every


def not_asked(about: Reported, checks: Sequence[Quality]) -> list[Entry]:
    """Give the published commits of which the flow has a check that nobody has asked of them.

    Args:
        about: the run, or the interval of a page.
        checks: verdicts that count, of what is asked now.
    """
    asked: dict[tuple[str, str], list[Quality]] = {}
    for each in checks:
        if about.span is None or tells_of_page(about, each):
            asked.setdefault((each.table, each.expectation), []).append(each)
    wanted = [(table, each.label) for table, checks in checks_asked(about).items() for each in checks]
    return [
        entry
        for entry in about.published
        if entry.kind in {CommitKind.INTERVAL, CommitKind.EPOCH}
        and any(_has(entry, table) and not _covered(entry, asked.get((table, label), ())) for table, label in wanted)
    ]


def tells_of_each(about: Reported, wide: Quality) -> bool:
    """Say whether a verdict of many intervals is one of each of them: it was asked of each row, and none is let off."""
    if not is_of_each(wide.expectation) or is_of_some(wide):
        return False
    own = (each for each in checks_asked(about).get(wide.table, ()) if each.label == wide.expectation)
    return not (wide.held and wide.unexpected) and not any("mostly" in each.arguments for each in own if not wide.held)


def tells_of_page(about: Reported, check: Quality) -> bool:
    """Say whether a verdict is one of the page's rows: what was asked of many intervals together is none of one."""
    return tells_of_each(about, check) or about.has_all_of(check)


def _has(entry: Entry, table: str) -> bool:
    """Say whether a commit knows of a table: a stream that came later was not there to be asked about."""
    return table in entry.counts or table in counted(entry, "landed")


def _covered(entry: Entry, checks: Iterable[Quality]) -> bool:
    return any(
        each.commit == entry.commit or (each.start <= entry.span.start and entry.span.end <= each.end)
        for each in checks
    )
