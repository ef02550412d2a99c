"""The verdict: one sentence on whether the run may be relied on, and the next step where one is left."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from expectations.decided import passed_words
from expectations.laws import ACCOUNT_HOLDS, BLOCKING
from expectations.report.calendar import WAITING
from expectations.report.facts import MEANT, OF_PROMISES, rows_told
from expectations.report.words import counted, listed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from expectations.report.facts import Account, Broken, Certificate, CommitFacts, ExpectationFacts, ReportFacts

SETTLED = frozenset({"published", "superseded"})
SHOWN = 3
LEFT_OUT = ("landing", "dropped")
"""Operator and action of the ledger's lines about rows that did not land."""
OF_FILES = ("file_changed", "unreadable_file")
"""Reasons of the ledger's lines about a whole file, of which nobody knows the rows."""


class Tone(Enum):
    """How good the news is."""

    GOOD = "good"
    """Everything that was checked holds, but for what warned once and no longer does."""
    BAD = "bad"
    """A check failed: somebody must look."""
    OPEN = "open"
    """Nothing that blocks failed, and something warns, or is still to do."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The news, its tone, and the command to run next; none where nothing is left to do."""

    tone: Tone
    sentence: str
    next_step: str | None = None


def verdict(facts: ReportFacts) -> Verdict:
    """Judge a run by its worst fact: different bytes, lost rows, rejected commits, then what is unfinished."""
    wrong = _wrong(facts)
    if wrong:
        return Verdict(tone=Tone.BAD, sentence=wrong, next_step=facts.next_step)
    unfinished = _unfinished(facts)
    if unfinished:
        return Verdict(tone=Tone.OPEN, sentence=unfinished, next_step=facts.next_step)
    ways = 0 if facts.certificate is None else len(facts.certificate.ways)
    proved = [f"all {ways} ways of computing it give the same bytes"] if ways > 1 else []
    proved += [_holding(facts)] if facts.expectations and not facts.unchecked else []
    head = listed(proved) or "published, parity not checked yet"
    came = f"{_came(facts)}{_aside(facts)}{_dropped_late(facts)}{_dropped(facts)}{_kept(facts)}"
    sentence = f"{head[0].upper()}{head[1:]}: {came}."
    if proved and not _gaps(facts) and not facts.not_asked:
        left = any(day.state in WAITING and not day.is_accepted for day in facts.calendar)
        is_open = left or any(map(_warns, facts.expectations))
        return Verdict(tone=Tone.OPEN if is_open else Tone.GOOD, sentence=sentence)
    return Verdict(tone=Tone.OPEN, sentence=sentence, next_step=facts.next_step)


def _wrong(facts: ReportFacts) -> str | None:
    if facts.certificate is not None and facts.certificate.unequal:
        return _disagreement(facts.certificate)
    lost = next((account for account in facts.accounts if account.missing), None)
    if lost is not None:
        return _lost(lost)
    broken = [each for each in facts.expectations if not each.held and each.severity == BLOCKING]
    if broken:
        # What nobody decided stands first; what breaks a promise also unbalances the account, and says more.
        return _broken(facts, min(broken, key=lambda each: (bool(_passed(facts, each)), each.name == ACCOUNT_HOLDS)))
    commits = facts.commits
    rejected = [commit for commit in commits if commit.state == "rejected" and not _made_good(commit, commits)]
    return _rejected(rejected[0], len(rejected)) if rejected else None


def _disagreement(certificate: Certificate) -> str:
    row, way = certificate.unequal[0]
    right, wrong = (certificate.ways[place].full_title for place in (row.reference_way or 0, way))
    place = next((d.position for d in certificate.differences if (d.stream, d.way) == (row.stream, way)), None)
    where = f", first at row {place:,}" if place is not None else ""
    more = len(certificate.unequal) - 1
    rest = f"; {counted(more, 'more result differs', 'more results differ')}" if more else ""
    return f"Not the same bytes: {wrong} gives another {row.stream} than {right}{where}{rest}."


def _lost(account: Account) -> str:
    came = f"{account.stream} took in {counted(account.rows_in, 'row')}"
    if account.missing > 0:
        return f"Rows are missing: {came}, and {account.missing:,} of them are nowhere."
    return f"Rows were doubled: {came}, and {-account.missing:,} more left it."


def _broken(facts: ReportFacts, broken: ExpectationFacts) -> str:
    """Say which blocking expectation failed, for how many rows, and whether readers see them."""
    told = [each for each in broken.broken if not _passed_of(facts, broken, each)] or list(broken.broken)
    found = told[-1]
    unseen = {commit.number for commit in facts.commits if commit.state in {"rejected", "written"}}
    is_refused, decided = found.commit in unseen, _passed(facts, broken)
    head = f"Commit {found.commit} is not published" if is_refused else "An expectation does not hold"
    number = found.unexpected if is_refused else sum(each.unexpected for each in told)
    rows = counted(number, "row breaks", "rows break") if number else "what is seen breaks"
    others = sum(not each.held and each.severity == BLOCKING for each in facts.expectations) - 1
    rest = f", and {counted(others, 'more expectation fails', 'more expectations fail')}" if others else ""
    return f"{head}: {rows} \u201c{broken.sentence}\u201d in {broken.table}{decided}{rest}."


def _passed(facts: ReportFacts, broken: ExpectationFacts) -> str:
    """Say who let pass what was found of an expectation; nothing where nobody did, in each of the commits."""
    passed = [_passed_of(facts, broken, found) for found in broken.broken]
    return passed[-1] if all(passed) else ""


def _passed_of(facts: ReportFacts, broken: ExpectationFacts, found: Broken) -> str:
    numbers = _failing(facts, broken, found)
    notes = [commit.note for commit in facts.commits if commit.number in numbers]
    passed = [words for note in notes if (words := passed_words(note, broken.table, broken.sentence))]
    return f", {passed[-1]}" if passed and len(passed) == len(numbers) else ""


def _failing(facts: ReportFacts, broken: ExpectationFacts, found: Broken) -> set[object]:
    """Give the commits in which a check does not hold: those of the intervals in which it fails on its own."""
    if found.commit:
        return {found.commit}
    points = (each for each in broken.memory.points if not each.held and facts.holds(*each.span))
    spans = [each.span for each in points if found.start <= each.start and each.end <= found.end]
    seen = [commit for commit in facts.commits if commit.state == "published" and commit.start is not None]
    within = {commit.number for commit in seen if any(_lies_in(commit, span) for span in spans)}
    return {*within} or {row.get("commit") for row in found.rows}


def _lies_in(commit: CommitFacts, span: tuple[int, int]) -> bool:
    """Say whether a commit is of a span; that of an `apply`, which has no rows and ends where it begins, is of none."""
    if commit.start is None or commit.end is None:
        return False
    return span[0] <= commit.start < commit.end <= span[1]


def _made_good(commit: CommitFacts, every: tuple[CommitFacts, ...]) -> bool:
    """Say whether what a refused or given up commit covered was published later, also in other cuts."""
    if commit.start is None or commit.end is None:
        return False
    later = [c for c in every if c.number > commit.number and c.state in SETTLED and c.leg == commit.leg]
    upto = commit.start
    for start, end in sorted((c.start, c.end) for c in later if c.start is not None and c.end is not None):
        upto = max(upto, end) if start <= upto else upto
    return upto >= commit.end


def _rejected(commit: CommitFacts, rejected: int) -> str:
    more = f", and {counted(rejected - 1, 'more commit')}" if rejected > 1 else ""
    why = f": {commit.note}" if commit.note else ""
    return f"Commit {commit.number} was rejected{more}{why}."


def _unfinished(facts: ReportFacts) -> str | None:
    if not facts.commits and not any(stream.rows.num_rows for stream in facts.streams):
        return f"Nothing of {facts.flow} has run yet."
    given_up = {c for c in facts.commits if c.state == "abandoned" and _made_good(c, facts.commits)}
    waiting = [c for c in facts.commits if c.state not in {*SETTLED, "rejected"} and c not in given_up]
    if waiting:
        return _waiting(waiting)
    if facts.commits and not any(c.state == "published" and c.kind != "reset" for c in facts.commits):
        return f"Nothing of {facts.flow} is published: what was has been taken back."
    return _uncovered(facts)


def _waiting(waiting: list[CommitFacts]) -> str:
    shown = [f"{commit.number}{f' of {commit.leg}' if commit.leg else ''}" for commit in waiting[:SHOWN]]
    numbers = listed(shown + ([f"{len(waiting) - SHOWN} more"] if len(waiting) > SHOWN else []))
    states = listed(sorted({commit.state for commit in waiting}))
    named = f"commit {numbers} is" if len(waiting) == 1 else f"commits {numbers} are"
    return f"Not finished: {named} not published ({states})."


def _uncovered(facts: ReportFacts) -> str | None:
    """Say what a certificate does not cover: it speaks for the whole run or not at all."""
    if facts.certificate is None:
        return None
    wanted = {stream.name for stream in facts.streams} | ({"ledger"} if facts.ledger is not None else set())
    missing = sorted(wanted - {row.stream for row in facts.certificate.rows})
    if missing:
        return f"Not finished: the parity certificate does not cover {listed(missing)}."
    not_run = [way.full_title for way in facts.certificate.not_run]
    return f"Not finished: the parity certificate lacks {listed(not_run)}." if not_run else None


def _holding(facts: ReportFacts) -> str:
    held, every = sum(each.held for each in facts.expectations), len(facts.expectations)
    others = f" (not all were asked of {counted(facts.not_asked, 'commit')})" if facts.not_asked else ""
    if held == every == 1:
        return f"what is expected holds{others}"
    words = f"all {every} expectations hold" if held == every else f"{held} of {every} expectations hold, the rest warn"
    return f"{words}{others}"


def _warns(expectation: ExpectationFacts) -> bool:
    """Say whether an expectation does not hold of the newest interval that was judged."""
    points = expectation.memory.points
    return not (points[-1].held if points else expectation.held)


def _came(facts: ReportFacts) -> str:
    parts = [f"{counted(source.rows, 'row')} of {source.name}" for source in facts.sources]
    return f"{listed(parts) or 'no source'} came in"


def _aside(facts: ReportFacts) -> str:
    """Say how many rows were set aside, and why; where several streams may have set one aside, how often they did."""
    if not facts.set_aside:
        return _counted(facts.ledger_counts)
    if facts.set_aside_once:
        return f", {facts.set_aside:,} of them {facts.aside_for} and set aside"
    times, streams = counted(facts.set_aside, "time"), counted(facts.setting_aside, "stream")
    return f", with {'rows' if facts.aside_for != 'late' else 'late rows'} set aside {times} by {streams}"


def _counted(lines: Mapping[tuple[str, str, str], int]) -> str:
    """Say how often rows were set aside, or dropped without being asked to, by a ledger of which no line is read."""
    found: Counter[str] = Counter()
    for (_, reason, action), number in lines.items():
        if reason not in {*MEANT, *OF_PROMISES}:
            found[action] += number
    words = [("diverted", "what was set aside"), ("dropped", "what was dropped")]
    told = [f"{counted(found[action], 'line')} on {what}" for action, what in words if found[action]]
    return f", with {listed(told)} in the ledger" if told else ""


def _dropped_late(facts: ReportFacts) -> str:
    """Say how many rows operators dropped that nobody asked them to drop; each of them has come in."""
    late, other = rows_told(facts.late_and_dropped), rows_told(facts.otherwise_dropped)
    # They may be the same rows as those that another stream has set aside.
    by = f" by {listed(sorted(set(facts.late_and_dropped['stream'].to_pylist())))}" if facts.set_aside else ""
    told = [
        *([f"{late:,} of them late and dropped{by}"] if late else []),
        *([f"{other:,} dropped on the way"] if other else []),
    ]
    return f", {listed(told)}, with a line{' each' if late + other > 1 else ''} in the ledger" if told else ""


def _dropped(facts: ReportFacts) -> str:
    """Say how many rows never got into a stream: they came with the others, and only the ledger has them."""
    if facts.ledger is None:
        return ""
    lines = zip(*(facts.ledger[name].to_pylist() for name in ("operator", "action", "reason")), strict=True)
    rows = sum(line[:2] == LEFT_OUT and line[2] not in OF_FILES for line in lines)
    noun = "more was dropped at landing, with a line" if rows == 1 else "more were dropped at landing, with a line each"
    return f", {rows:,} {noun} in the ledger" if rows else ""


def _kept(facts: ReportFacts) -> str:
    gaps = _gaps(facts)
    if gaps:
        lost = listed([f"{first} to {last}" if first != last else str(first) for first, last in gaps])
        one = len(gaps) == 1 and gaps[0][0] == gaps[0][1]
        return f", and what landed with {'sequence' if one else 'the sequences'} {lost} was lost and given up"
    if not facts.accounts:
        return ""
    left = _left_files(facts)
    return f", and none of these was lost; {left}" if left else ", and none was lost"


def _left_files(facts: ReportFacts) -> str:
    """Say of how many files nobody took what is in them: the ledger has a line for each, and not their rows."""
    reasons = [] if facts.ledger is None else facts.ledger["reason"].to_pylist()
    changed, unread = (reasons.count(reason) for reason in OF_FILES)
    told = [
        *([f"{counted(changed, 'landed file')} changed afterwards"] if changed else []),
        *([f"{counted(unread, 'file')} could not be read"] if unread else []),
    ]
    return f"{listed(told)}: see the ledger" if told else ""


def _gaps(facts: ReportFacts) -> tuple[tuple[int, int], ...]:
    return () if facts.region is None else facts.region.gaps
