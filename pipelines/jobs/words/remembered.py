"""What the page of a run remembers, as JSON: the same figures, and the same words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from expectations.report.charts.trend import MOST_DRAWN
from expectations.report.checks import changed_sentence
from expectations.report.memory import changes
from expectations.report.words import ReportClock
from pipelines.jobs.text.moments import Moments

if TYPE_CHECKING:
    from collections.abc import Iterator

    from expectations.report import ExpectationFacts, PastVerdict, ReportFacts


def expectation_objects(facts: ReportFacts) -> Iterator[dict[str, Any]]:
    """Give an object for each expectation of a page: how it stands, when it failed, and the intervals that are drawn.

    Instants are spelled as `--start` and `--end` read them.
    """
    moments = Moments(facts.timezone)
    return (_expectation(each, moments) for each in facts.expectations)


def changes_object(facts: ReportFacts) -> dict[str, Any] | None:
    """Give what changed since the verdicts before; None where there are none before."""
    memories = {(each.table, each.name): each.memory for each in facts.expectations}
    found = changes(memories, of_last=facts.of_interval)
    if found is None:
        return None
    moments = Moments(facts.timezone)
    return {
        "sentence": changed_sentence(facts, ReportClock(facts.timezone)),
        "interval": moments.argument(found.now[0]),
        "since": moments.argument(found.before[0]),
        "newly_failing": [_named(*each) for each in found.broken],
        "found_earlier": [
            {**_named(table, name), "interval": moments.argument(span[0])} for table, name, span in found.earlier
        ],
        "fixed": [_named(*each) for each in found.fixed],
        "still_failing": [
            {**_named(table, name), "since": moments.argument(since[0])} for table, name, since in found.still
        ],
    }


def _named(table: str, name: str) -> dict[str, str]:
    return {"table": table, "expectation": name}


def _expectation(each: ExpectationFacts, moments: Moments) -> dict[str, Any]:
    memory = each.memory
    first, last, since = memory.first_failed, memory.last_failed, memory.since
    return {
        **_named(each.table, each.name),
        "sentence": each.sentence,
        "severity": each.severity,
        "held": each.held,
        "looked_at": each.looked_at,
        "unexpected": each.unexpected,
        "checks": each.checks,
        "files": [found.link for found in each.broken if found.link],
        "standing": memory.standing.value,
        **_when("since", since, moments),
        **_when("first_failed", first, moments),
        **_when("last_failed", last, moments),
        "intervals": len(memory.points),
        "history": [_point(point, moments) for point in memory.points[-MOST_DRAWN:]],
    }


def _when(name: str, found: PastVerdict | None, moments: Moments) -> dict[str, str | None]:
    """Say in which interval, or in which longer span, by where it begins and ends."""
    start, end = (None, None) if found is None else map(moments.argument, found.span)
    return {name: start, f"{name}_until": end}


def _point(point: PastVerdict, moments: Moments) -> dict[str, Any]:
    start, end = (moments.argument(tick) for tick in point.span)
    told = {"start": start, "end": end, "commit": point.commit, "outcome": point.outcome.value}
    return told | {"looked_at": point.looked_at, "unexpected": point.unexpected, "share": point.share}
