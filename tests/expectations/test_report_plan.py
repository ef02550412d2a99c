"""The page of a plan: each day as it stands, each cause once, in words that nobody needs eyes for, and nothing but."""

from __future__ import annotations

import dataclasses
import re

import pytest

from expectations.report import Around
from expectations.report.calendar import CalendarState
from expectations.report.plan import PlanFacts, PlanForm, PlanSpan, causes, render_plan
from tests.expectations.conftest import DAY, START
from tests.expectations.test_report_page import HOSTILE, Reading
from tests.expectations.test_report_site import MEGABYTE, YEAR, day

STATES = ("published", "stale", "held", "red", "missing", "planned")
FILE, FOLLOWS = "what arrives of trips is not what landed: a late or changed file", "what comes before it is run again"


def span(state: str, first: int, last: int, cause: str = "") -> PlanSpan:
    """Give days of 2013 that stand alike, counted from 1, the last one included."""
    start, end = START + (first - 1) * DAY, START + last * DAY
    return PlanSpan(state=CalendarState(state), start=start, end=end, intervals=last - first + 1, cause=cause)


def plan(*spans: PlanSpan, **more: object) -> PlanFacts:
    """Give the facts of a plan with a day for each interval."""
    days = [
        day((each.start - START) // DAY + place + 1, each.state, cause=each.cause, page="")
        for each in spans
        for place in range(each.intervals)
    ]
    left = sum(each.intervals for each in spans if each.state is not CalendarState.PUBLISHED)
    facts = PlanFacts(
        flow="flights",
        run="main",
        timezone="America/New_York",
        sentence=f"Running would run {left} intervals.",
        command="pulseline run flights --plan",
        spans=spans,
        days=tuple(days),
        left=left,
    )
    return dataclasses.replace(facts, **more)  # type: ignore[arg-type]


EVERY = plan(*(span(state, place, place, f"why {state}") for place, state in enumerate(STATES, 1)), seconds=754.0)


def test_each_state_is_a_colour_a_sign_and_a_word() -> None:
    page = render_plan(EVERY)
    seen = Reading(page)
    assert not seen.wrong
    signs = set()
    for state in STATES:
        cell = re.search(rf'<span class="day {state}" title="[^"]*">\d+(.*?), {state}</span></span>', page)
        assert cell is not None, state
        signs.add(cell[1])
        assert f"1 {state}" in seen.text, "the legend counts it"
    assert len(signs) == len(STATES)
    assert "5 of 6" in seen.text
    assert "12 min 34 s" in seen.text
    assert "Next: pulseline run flights --plan" in seen.text


def test_a_cause_is_told_once_with_where_it_begins_and_all_that_follows() -> None:
    spans = (
        span("published", 1, 2),
        span("stale", 3, 3, FILE),
        span("stale", 4, 5, FOLLOWS),
        span("stale", 6, 6, FILE),
        span("stale", 7, 9, FOLLOWS),
        span("planned", 10, 12),
    )
    assert causes(spans) == (
        dataclasses.replace(span("stale", 3, 6, FILE), intervals=2),
        dataclasses.replace(span("stale", 4, 9, FOLLOWS), intervals=5),
    )
    page = render_plan(plan(*spans, follow=5))
    table = re.search(r'<section id="causes".*?</section>', page, re.DOTALL)
    assert table is not None
    assert table[0].count(FILE) == 1
    assert "Thu 3 Jan 2013" in table[0]


@pytest.mark.parametrize(
    ("facts", "tone"),
    [
        (plan(), "open"),
        (plan(span("published", 1, 2)), "good"),
        (plan(span("published", 1, 2), span("planned", 3, 3)), "open"),
        (plan(span("published", 1, 2), span("red", 3, 3)), "bad"),
    ],
)
def test_the_verdict_is_as_good_as_the_news(facts: PlanFacts, tone: str) -> None:
    assert f'<h1 class="verdict {tone}">' in render_plan(facts)


def test_a_flow_of_which_nothing_is_known_has_a_page_that_says_what_to_do() -> None:
    page = render_plan(plan(command="pulseline flows validate flights"))
    assert not Reading(page).wrong
    assert "<table" not in page
    assert "Next: <code>pulseline flows validate flights</code>" in page


def test_it_leads_to_all_flows_and_to_the_pages_of_days_and_nowhere_else() -> None:
    days = (day(1, CalendarState.PUBLISHED, page="pages/main/2013-01-01.html"),)
    page = render_plan(plan(span("published", 1, 1), days=days), Around(index="../../overview", flow="../backfill_f"))
    assert re.findall(r'href="([^"]*)"', page) == ["../../overview", "../backfill_f", "pages/main/2013-01-01.html"]
    assert not re.findall(r'href="([^"]*)"', render_plan(EVERY))


def test_the_button_offers_what_is_open_and_a_year_ahead_only_where_nothing_else_is() -> None:
    form = PlanForm(action="../backfill_flights/plan", runs="backfill_flights")
    page = render_plan(EVERY, form=form)
    assert re.findall(r'name="(\w+)" value="([^"]*)"', page) == [("start", "2013-01-02"), ("end", "2013-01-06")]
    assert '<form class="press" method="post" action="../backfill_flights/plan">' in page
    assert "Run what is red, held, missing or stale</button>" in page
    ahead = render_plan(plan(span("published", 1, 2), span("planned", 3, 365)), form=form)
    assert 'value="2013-01-03"' in ahead
    assert 'value="2014-01-01"' in ahead
    assert "Run what is planned</button>" in ahead
    assert "unpause it" in render_plan(EVERY, form=dataclasses.replace(form, paused=True))
    for silent in (render_plan(EVERY), render_plan(plan(span("published", 1, 2)), form=form)):
        assert "<form" not in silent


def test_hostile_names_are_words() -> None:
    page = render_plan(plan(span("red", 1, 1, HOSTILE), flow=HOSTILE, about=HOSTILE, sentence=HOSTILE, command=HOSTILE))
    assert "<script" not in page
    assert "onerror=alert(1)>" not in page
    assert not re.search(r"https?://|url\(|@import|javascript:", page)


def test_a_year_in_which_each_day_stands_otherwise_stays_light() -> None:
    spans = (span(STATES[number % len(STATES)], number, number, f"{FILE} {number}") for number in range(1, YEAR + 1))
    assert len(render_plan(plan(*spans)).encode()) < MEGABYTE
