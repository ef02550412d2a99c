"""The expectations on the page: a line each, and what breaks one among the rows around it."""

from __future__ import annotations

import dataclasses
import re

import pytest

from expectations.report import Broken, ExpectationFacts, Memory, PastVerdict, ReportFacts, render
from expectations.report.checks import checks_view
from expectations.report.verdict import Tone, verdict
from expectations.report.words import ReportClock

CLOCK = ReportClock("America/New_York")
CTI = {"kind": "cti", "arrival": "2013-01-04T15:07:00Z", "event_time": "2013-01-04T12:55:00Z", "origin": None}
DATA = {"kind": "data", "arrival": "2013-01-04T15:43:00Z", "event_time": "2013-01-04T15:40:00Z", "origin": "JFK"}
LATE = {
    **DATA,
    "event_time": "2013-01-04T06:40:00Z",
    "gate": "<script>alert(1)</script>",
    "governed_by": CTI,
    "around": {"before": [DATA], "after": [{**DATA, "origin": "EWR"}]},
}
HOLDS = ExpectationFacts(
    name="timers",
    table="beating",
    severity="blocking",
    sentence="Timers strictly increase",
    remedy="Look.",
    looked_at=2920,
    checks=7,
)


def fails(facts: ReportFacts, *, severity: str = "blocking", commit: int | None = 4) -> ExpectationFacts:
    assert facts.start is not None
    assert facts.end is not None
    found = Broken(start=facts.start, end=facts.end, commit=commit, unexpected=7, rows=(LATE,) * 6)
    return dataclasses.replace(HOLDS, table="punctual", severity=severity, sentence="No event is late", broken=(found,))


@pytest.fixture
def checked(week: ReportFacts) -> ReportFacts:
    """Give the week with an expectation that holds."""
    return dataclasses.replace(week, expectations=(HOLDS,))


def test_what_fails_stands_first_and_shows_its_rows_in_order(checked: ReportFacts) -> None:
    view = checks_view(dataclasses.replace(checked, expectations=(HOLDS, fails(checked))), CLOCK)
    assert view is not None
    assert [line.facts.table for line in view.lines] == ["punctual", "beating"]
    scene = view.lines[0].broken[0].scenes[0]
    assert scene.columns[:3] == ("kind", "arrival", "event_time")
    assert [role for role, _ in scene.lines] == ["governor", "around", "offender", "around"]
    assert scene.lines[2][1][:4] == ("data", "2013-01-04 10:43:00", "2013-01-04 01:40:00", "JFK")


def test_the_page_escapes_the_values_of_rows_and_says_how_many_it_left_out(checked: ReportFacts) -> None:
    page = render(dataclasses.replace(checked, expectations=(fails(checked),)))
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<script" not in page
    assert "The first 5 of 7 rows." in page


def test_a_week_whose_expectations_hold_says_so_on_top(checked: ReportFacts) -> None:
    news = verdict(checked)
    assert news.tone is Tone.GOOD
    assert news.sentence.startswith("All 10 ways of computing it give the same bytes and what is expected holds: ")
    alone = verdict(dataclasses.replace(checked, certificate=None))
    assert alone.tone is Tone.GOOD
    assert alone.sentence.startswith("What is expected holds: ")


def test_what_nobody_checked_is_not_said_to_hold(checked: ReportFacts) -> None:
    half = dataclasses.replace(checked, certificate=None, unchecked=2)
    assert verdict(half).tone is Tone.OPEN
    assert "2 published commits have not been checked" in re.sub(r"\s+", " ", render(half))


@pytest.mark.parametrize(
    ("commit", "state", "told"),
    [
        (2, "rejected", "Commit 2 is not published: 7 rows break “No event is late” in punctual."),
        (3, "published", "An expectation does not hold: 7 rows break “No event is late” in punctual."),
    ],
)
def test_a_blocking_expectation_that_fails_is_the_news(
    checked: ReportFacts, commit: int, state: str, told: str
) -> None:
    commits = tuple(dataclasses.replace(c, state=state) if c.number == commit else c for c in checked.commits)
    news = verdict(dataclasses.replace(checked, commits=commits, expectations=(fails(checked, commit=commit),)))
    assert news.tone is Tone.BAD
    assert news.sentence == told


def test_what_a_person_let_pass_is_told_with_who_did(checked: ReportFacts) -> None:
    note = "accepted by ann: the feed was down; punctual: 7 rows break `No event is late`"
    commits = tuple(dataclasses.replace(c, note=note) if c.number == 3 else c for c in checked.commits)
    news = verdict(dataclasses.replace(checked, commits=commits, expectations=(fails(checked, commit=3),)))
    assert news.sentence.endswith("“No event is late” in punctual, accepted by ann: the feed was down.")
    alone = fails(checked, commit=3)
    start, end = next((c.start or 0, c.end or 0) for c in commits if c.number == 3)
    point = PastVerdict(
        start=start, end=end, commit=None, at=end, held=False, severity="blocking", looked_at=9, unexpected=7
    )
    (found,) = alone.broken
    spans = dataclasses.replace(
        alone, broken=(dataclasses.replace(found, commit=None, rows=()),), memory=Memory((point,))
    )
    news = verdict(dataclasses.replace(checked, commits=commits, expectations=(spans,)))
    assert news.sentence.endswith(", accepted by ann: the feed was down."), "a check of many days found it, of that one"
    adopted = dataclasses.replace(next(c for c in commits if c.number == 3), number=9, start=end, end=end, note="")
    news = verdict(dataclasses.replace(checked, commits=(*commits, adopted), expectations=(spans,)))
    assert news.sentence.endswith(", accepted by ann: the feed was down."), "an `apply` behind it has no rows"
    since = dataclasses.replace(fails(checked, commit=3), name="as_published", sentence="Nothing has changed")
    both = (fails(checked, commit=3), since)
    news = verdict(dataclasses.replace(checked, commits=commits, expectations=both))
    assert news.sentence.endswith("“Nothing has changed” in punctual, and 1 more expectation fails.")


def test_a_broken_promise_is_told_before_the_account_that_it_unbalances(checked: ReportFacts) -> None:
    account = dataclasses.replace(fails(checked), name="account_holds", sentence="Every row is somewhere")
    news = verdict(dataclasses.replace(checked, expectations=(account, fails(checked))))
    assert "“No event is late” in punctual, and 1 more expectation fails." in news.sentence


def test_a_warning_that_fails_is_told_and_does_not_turn_the_page_red(checked: ReportFacts) -> None:
    news = verdict(dataclasses.replace(checked, expectations=(HOLDS, fails(checked, severity="warning"))))
    assert news.tone is Tone.OPEN
    assert "1 of 2 expectations hold, the rest warn" in news.sentence


def test_a_check_of_a_whole_column_names_what_was_seen_and_no_rows(checked: ReportFacts) -> None:
    failed = fails(checked)
    seen = dataclasses.replace(failed.broken[0], unexpected=0, rows=({"observed_value": 73.9},))
    facts = dataclasses.replace(checked, expectations=(dataclasses.replace(failed, broken=(seen,)),))
    page = re.sub(r"\s+", " ", render(facts))
    assert "it does not hold" in page
    assert "73.9" in page
    assert "0 rows break" not in page
    assert "what is seen breaks" in verdict(facts).sentence


def test_a_law_of_intervals_counts_cases(checked: ReportFacts) -> None:
    quiet = dataclasses.replace(fails(checked, severity="warning"), name="rows_land")
    page = render(dataclasses.replace(checked, expectations=(quiet,)))
    assert "7 cases break it" in page
    assert "The first 5 of 7 cases." in page
