"""What does not hold of rows that readers see, and who let it pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from expectations.decided import passed_words
from expectations.laws import BLOCKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from collections.abc import Set as AbstractSet

    from pipelines.engine.commits.quality import Quality
    from pipelines.jobs.facts.report import Reported


def failing(checks: Iterable[Quality]) -> list[Quality]:
    """Give what does not hold by the newest verdict of each expectation of each span.

    Args:
        checks: verdicts that count.
    """
    newest = {(each.table, each.expectation, each.start, each.end): each for each in sorted(checks, key=_judged_at)}
    return [each for each in newest.values() if not each.held]


def _judged_at(check: Quality) -> int:
    return check.at


def decided(about: Reported, blocking: Sequence[Quality], numbers: AbstractSet[int]) -> str:
    """Say who let pass what blocks in some commits; nothing where nobody decided of each of them.

    Args:
        about: the run, or the interval of it.
        blocking: verdicts of what must hold and does not.
        numbers: of published commits.
    """
    named = [(each, _commits_of(each, about, numbers)) for each in blocking]
    verdicts = {entry.commit: entry.verdict for entry in about.published}
    passed = [
        passed_words(verdicts.get(number), each.table, each.sentence) for each, commits in named for number in commits
    ]
    return passed[0] if all(commits for _, commits in named) and all(passed) else ""


def _commits_of(check: Quality, about: Reported, numbers: AbstractSet[int]) -> set[int]:
    """Give those of some commits in which a check found what breaks: its rows name them, unless it is of one day."""
    if check.commit:
        return {check.commit}
    told = {row.get("commit") for row in check.rows} & numbers
    # The commit of an `apply` has no rows, and ends where it begins.
    within = (e.commit for e in about.published if check.start <= e.span.start < e.span.end <= check.end)
    return {number for number in told if number is not None} or {number for number in within if number in numbers}


def undecided(about: Reported, checks: Iterable[Quality]) -> Quality | None:
    """Give the first blocking check of published rows that fails, and that nobody let pass.

    Args:
        about: the run, or the interval of it.
        checks: verdicts that count.
    """
    published = {entry.commit for entry in about.published}
    blocking = (each for each in failing(checks) if each.severity == BLOCKING)
    seen = (each for each in blocking if not each.commit or each.commit in published)
    open_ones = (each for each in seen if not decided(about, [each], published))
    return min(open_ones, key=lambda each: (each.start, each.end), default=None)
