"""Which verdicts count: of commits that nothing replaced, and of spans in which nothing was published since."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.engine.commits.entry import State
from pipelines.flows.check import is_of_each
from pipelines.jobs.runs.counts import counted

if TYPE_CHECKING:
    from pipelines.engine.commits.history import Entry, LogState
    from pipelines.engine.commits.quality import Quality
    from pipelines.jobs.facts.report import Reported


def is_current(about: Reported, check: Quality) -> bool:
    """Say whether a check is of rows that count: of a commit that nothing replaced, or of a span as it stands.

    A check of a span is out of date once something was published in it. What the rows of a span broke together they
    break as long as they are the same.
    """
    if check.commit:
        entry = about.state.commits.get(check.commit)
        return entry is not None and check.commit not in about.state.successors and not made_good(about, entry)
    stays = not check.held and not is_of_each(check.expectation)
    return all(
        entry.at <= check.at or (stays and _has_the_rows_of_before(each.state, entry, check.at))
        for each in about.parts
        for entry in each.state.published
        if entry.span.start < check.end and check.start < entry.span.end
    )


def _has_the_rows_of_before(state: LogState, entry: Entry, at: int) -> bool:
    """Say whether an interval was run again since an instant, and gave the same rows each time."""
    while entry.at > at:
        before = state.commits.get(entry.supersedes[0]) if len(entry.supersedes) == 1 else None
        if before is None or (before.span, before.hashes) != (entry.span, entry.hashes):
            return False
        if counted(before, "landed") != counted(entry, "landed"):
            return False
        entry = before
    return True


def made_good(about: Reported, entry: Entry) -> bool:
    """Say whether a rejected commit was followed by a published one of its span."""
    later = about.state.at(entry.span)
    return entry.state is State.REJECTED and later is not None and later.commit > entry.commit
