"""Which verdicts count: of commits that nothing replaced, and of spans in which nothing was published since."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.engine.commits.entry import State

if TYPE_CHECKING:
    from pipelines.engine.commits.history import Entry
    from pipelines.engine.commits.quality import Quality
    from pipelines.jobs.facts.report import Reported


def is_current(about: Reported, check: Quality) -> bool:
    """Say whether a check is of rows that count: of a commit that nothing replaced, or of a span as it stands.

    A check of a span is out of date once something was published in it.
    """
    if check.commit:
        entry = about.state.commits.get(check.commit)
        return entry is not None and check.commit not in about.state.successors and not made_good(about, entry)
    return all(
        entry.at <= check.at
        for each in about.parts
        for entry in each.state.published
        if entry.span.start < check.end and check.start < entry.span.end
    )


def made_good(about: Reported, entry: Entry) -> bool:
    """Say whether a rejected commit was followed by a published one of its span."""
    later = about.state.at(entry.span)
    return entry.state is State.REJECTED and later is not None and later.commit > entry.commit
